/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The labels of a volume that leaves: off its devices, and back on them as
 * long as nobody has written to the plain device alone. Meanwhile they are in
 * /run/terrace/UUID.labels, for the call that comes after one that was killed.
 */
#ifndef TERRACE_CTL_LABELS_H
#define TERRACE_CTL_LABELS_H

#include "find.h"

/* Both copies, on a device that may be in use. 0, or -errno after a message. */
int labels_write(const char *path, const void *blocks);

/* Kept, then zeroed. -errno after a message: labels_back() is due. */
int labels_take(const struct found_volume *v);

/* As they were; 0 also when none were taken. -errno after a message: the same call tries again. */
int labels_back(const u8 *uuid);

/* They are not wanted any more. */
void labels_forget(const u8 *uuid);

#endif
