/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files of our own that others go on from: whole, the old or the new one.
 */
#ifndef TERRACE_CTL_FILE_H
#define TERRACE_CTL_FILE_H

#include "ctl.h"

/* What is not to outlive a boot: of volumes in the middle of something. */
#define FILE_RUN	"/run/terrace"

/* Beside it, then in its place. 0, or -errno after a message. */
int file_put(const char *path, const void *data, size_t bytes);

#endif
