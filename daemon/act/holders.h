/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who else has a file open, for people: "cat (pid 17)", as far as /proc shows it to us. */
#ifndef TERRACE_ACT_HOLDERS_H
#define TERRACE_ACT_HOLDERS_H

#include <stddef.h>

void holders_of(const char *path, char *text, size_t bytes);

#endif
