/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An open shelf, for those who open one (shelf.c, reopen.c).
 */
#ifndef DM_TERRACE_SHELF_H
#define DM_TERRACE_SHELF_H

#include "terrace.h"

#define SHELF_DATA	(TERRACE_CHUNK_BLOCKS - TERRACE_TABLE_BLOCKS)
#define SHELF_NO_OFFSET	(~0u)

struct tr_shelf {
	struct list_head list;		/* tier->full_shelves */
	struct tr_chunk *chunk;
	u64 id;
	u32 next;			/* offset the next block gets */
	u32 unpublished;		/* given out, neither published nor abandoned */
	u32 gets;			/* … in so many pieces */
	u32 nr_unnamed;			/* published, not yet in an owner block … */
	u32 due;			/* … the first so many when the commit under way began */
	u32 prev_owner;
	bool naming;			/* the commit works on it: do not close */
	u16 unnamed[TERRACE_CHUNK_BLOCKS];
	u64 owner[TERRACE_CHUNK_BLOCKS];
};

/* The stream ends here: the owner table, and zeros before it, are whole units. */
static inline u32 tr_shelf_end(const struct tr_tier *tier)
{
	return round_down(SHELF_DATA, tier->unit);
}

static inline sector_t tr_shelf_sector(const struct tr_tier *tier, u32 chunk, u32 offset)
{
	u64 index = ((u64)chunk << TERRACE_CHUNK_SHIFT) + offset;

	return tier->data_sector + index * TERRACE_BLOCK_SECTORS;
}

/* Owner blocks that name @blocks. */
static inline u32 tr_shelf_owner_blocks(u32 blocks)
{
	return DIV_ROUND_UP(blocks, TERRACE_OWNERS_PER_BLOCK);
}

/* Goes on at the next border, if the owners to come have their room there too. How many blocks
 * that leaves out.
 */
u32 tr_shelf_skip__f(struct tr_tier *tier, struct tr_shelf *shelf);

/* An empty shelf, with @chunk, pinned, which becomes its. NULL: no memory. */
struct tr_shelf *tr_shelf_create(struct terrace *tr, struct tr_chunk *chunk);
void tr_shelf_destroy(struct terrace *tr, struct tr_shelf *shelf);
/* Data blocks that it can still take. */
u32 tr_shelf_left(const struct tr_tier *tier, const struct tr_shelf *shelf);

#endif
