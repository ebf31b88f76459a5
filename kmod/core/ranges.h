/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Marks on ranges of blocks: a sorted array of disjoint ranges, each with a set
 * of marks (bits), none of them empty, no two neighbours alike. A change makes
 * a new array, so readers of the old one need no lock.
 */
#ifndef TERRACE_CORE_RANGES_H
#define TERRACE_CORE_RANGES_H

#include <linux/types.h>

struct tr_range {
	u64 first, end;
	u32 marks;
};

/*
 * Blocks [@first, @end) lose the marks in @clear and get those in @set; the
 * result is in @to, which has @room. How many ranges it has, or -ENOSPC.
 */
int tr_ranges_change(const struct tr_range *from, u32 nr, struct tr_range *to, u32 room,
		     u64 first, u64 end, u32 clear, u32 set);

/* The marks of @block; *@n (1 or more) is lowered to how many blocks have the same. */
u32 tr_ranges_find(const struct tr_range *range, u32 nr, u64 block, u64 *n);

#endif
