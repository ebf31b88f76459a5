/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A place: where a block lives. The tier and a block number within the
 * tier's data area, in 40 bits, the same in memory and on disk.
 */
#ifndef TERRACE_CORE_PLACE_H
#define TERRACE_CORE_PLACE_H

#include <linux/types.h>
#include <terrace_format.h>

#define TR_NO_PLACE	TERRACE_NO_PLACE
#define TR_PLACE_BYTES	(TERRACE_PLACE_BITS / 8)	/* on disk */

/* No virtual volume or device is larger: 2^63 bytes. */
#define TR_MAX_BLOCKS	0x8000000000000ull

static inline u64 tr_place(u32 tier, u64 index)
{
	return index << TERRACE_PLACE_TIER_BITS | tier;
}

static inline u32 tr_place_tier(u64 place)
{
	return place & (TERRACE_MAX_TIERS - 1);
}

static inline u64 tr_place_index(u64 place)
{
	return place >> TERRACE_PLACE_TIER_BITS;
}

/* The place @n blocks further on. TR_NO_PLACE stays what it is. */
static inline u64 tr_place_add(u64 place, u64 n)
{
	return place == TR_NO_PLACE ? place : place + (n << TERRACE_PLACE_TIER_BITS);
}

#endif
