/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The devices of a volume in use: those of its table, by their numbers. What
 * else carries its labels (a copy of a drive, a snapshot) is not it.
 */
#ifndef TERRACE_CTL_TABLED_H
#define TERRACE_CTL_TABLED_H

#include "find.h"

/* As find_volumes(), of the table's devices and of @more, if that is not 0. */
void tabled_find(struct found *found, const char *params, dev_t more);

/* The volume in it; NULL: no device carries a label of it. */
struct found_volume *tabled_volume(struct found *found, const u8 *uuid);

/* None of the table's devices is lacking in it. */
bool tabled_has_all(const struct found_volume *v, const char *params);

/*
 * Could the kernel take that table? It reads the label of each device, and
 * refuses the whole table for one that it cannot read. 0, or -EIO after a
 * message for each such device.
 */
int tabled_check(const char *params, const u8 *uuid, const char *name);

#endif
