/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The little of dmsetup that a test does thousands of times. All return 0 or a negative errno. */
#ifndef ORACLE_DM_H
#define ORACLE_DM_H

#include <stdbool.h>

/* @table: one line, as for dmsetup create; makes /dev/mapper/NAME */
int dm_create(const char *name, const char *table);
int dm_remove(const char *name);
__attribute__((format(printf, 2, 3))) int dm_message(const char *name, const char *format, ...);
int dm_suspend(const char *name, bool noflush);
int dm_resume(const char *name);

#endif
