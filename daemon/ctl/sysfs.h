/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Small files that hold one line.
 */
#ifndef TERRACE_CTL_SYSFS_H
#define TERRACE_CTL_SYSFS_H

#include "ctl.h"

/* The first line of a file, without its end; NULL if it cannot be read. To be freed. */
char *sysfs_line(const char *format, ...) CTL_PRINTF(1, 2);

/* The number in a file, @otherwise if there is none. */
u64 sysfs_number(u64 otherwise, const char *format, ...) CTL_PRINTF(2, 3);

/* 0, or -errno. */
int sysfs_write(const char *path, const char *value);

/* Calls @fn for each entry of a folder that does not begin with a dot, sorted. */
void sysfs_each(const char *folder, void (*fn)(void *ctx, const char *name), void *ctx);

#endif
