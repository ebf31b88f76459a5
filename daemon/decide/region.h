/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the policies know of a region: the kernel's summary plus what the heat
 * source adds.  Everything is counted in blocks, since all blocks are 4 KiB; packed
 * blocks are counted after compression, as the blocks' worth of shelf they take.
 */
#ifndef DECIDE_REGION_H
#define DECIDE_REGION_H

#include <stdint.h>

#define REGION_BLOCKS	1024u
#define REGION_PACKS	4u	/* most packs one region may have */

struct region_view {
	uint64_t region;
	uint32_t dirty_blocks;	/* fast blocks whose only copy is the fast one */
	uint32_t clean_blocks;	/* clean slots: dropping them costs no data I/O */
	double packed_blocks;	/* shelf room that a merge reads: packs with their garbage, loose blocks */
	double garbage_blocks;	/* part of it that was overwritten since */
	uint32_t packs;
	uint32_t pinned_blocks;	/* fast blocks the mapper or RALT keeps up */
	double coldness;	/* sum over the fast blocks of 1 / (clock + 1) */
	uint64_t age;		/* since the region's last move or write; any unit */
	uint32_t hot_blocks;	/* hot blocks on the fast tier, for HotRAP's benefit */
};

static inline uint32_t region_fast_blocks(const struct region_view *r)
{
	return r->dirty_blocks + r->clean_blocks;
}

#endif
