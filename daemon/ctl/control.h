/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The control device of an active volume: uapi/terrace.h is its manual.
 */
#ifndef TERRACE_CTL_CONTROL_H
#define TERRACE_CTL_CONTROL_H

#include "dm.h"
#include "terrace.h"

/* A file descriptor that has said HELLO, or -errno after a message. */
int control_open(const struct dm_volume *v, struct terrace_hello *hello);

/* Where the blocks of @nr regions from @first on are. 0, or -errno after a message. */
int control_regions(int fd, u64 first, u32 nr, struct terrace_region *region);

#endif
