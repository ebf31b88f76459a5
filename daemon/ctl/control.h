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

/* Where the blocks of @nr regions from @first on are; waits if the volume is suspended. 0, or -errno
 * after a message (-EINTR: without).
 */
int control_regions(int fd, u64 first, u32 nr, struct terrace_region *region);

/* What region @number has on @tier: see TERRACE_REGIONS_TIER. */
int control_region_on(int fd, u64 number, u32 tier, struct terrace_region *region);

enum block_where { BLOCK_NOWHERE, BLOCK_FAST, BLOCK_BOTH, BLOCK_PACKED, BLOCK_LOOSE, NR_BLOCK_WHERE };

extern const char *const block_where_word[NR_BLOCK_WHERE];	/* for programs */
extern const char *const block_where_text[NR_BLOCK_WHERE];	/* for people */

/* Of block @bit of the region. */
enum block_where block_where(const struct terrace_region *region, u32 bit);

static inline bool control_bit(const __u64 *map, u32 bit)
{
	return map[bit / 64] >> bit % 64 & 1;
}

#endif
