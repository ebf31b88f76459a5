/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Options of a volume that each activation on this machine gets: one file of
 * lines TUNABLE=VALUE under /etc/terrace, by the volume's UUID.
 */
#ifndef TERRACE_CTL_KEPT_H
#define TERRACE_CTL_KEPT_H

#include "ctl.h"

#define KEPT_MAX	63

/* Words to be freed; returns how many. A file that cannot be read is said. */
u32 kept_read(const u8 *uuid, char **word);

/* As strict as one can be with a file that somebody has written: how many, or -1 after a message. */
int kept_load(const char *path, char **word);

/* The one of @tunable, to be freed; NULL: it has the default. */
char *kept_value(const u8 *uuid, const char *tunable);

/* @value NULL: the default again. All or nothing. 0, or -errno after a message. */
int kept_write(const u8 *uuid, const char *tunable, const char *value);

#endif
