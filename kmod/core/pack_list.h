/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The packs of a region, newest (highest id) first, and which blocks are live
 * in each: those whose value it holds. No block is live in two of them.
 *
 *   place, live:    no    no    unmapped
 *                   yes   no    only at its place
 *                   no    yes   packed
 *                   yes   yes   clean slot: dropping it costs no data I/O
 *
 * So nothing is resurrected: what overwrites or discards a block clears its
 * live bit, by a record of its own; what the pack still contains is garbage.
 *
 * Readers (tr_packs_find, tr_packs_run) may run beside one writer as in
 * leaf.h: under a sequence counter, the list freed by RCU. A list is never
 * taken from its readers but by putting in a copy with more (or less) room.
 */
#ifndef TERRACE_CORE_PACK_LIST_H
#define TERRACE_CORE_PACK_LIST_H

#include <linux/compiler.h>
#include "leaf.h"

struct tr_pack {
	u64 id;
	u64 place;		/* of the run */
	u64 index_place;	/* of the index copy, TR_NO_PLACE: none */
	u16 blocks;		/* of the run */
	u16 index_blocks;
	u32 header_crc;
	u64 live[TR_LEAF_WORDS];
};

struct tr_packs {
	u16 nr;			/* <= cap <= TERRACE_PACK_SLOTS, a page's at most */
	u16 cap;
	struct tr_pack pack[];
};

#define TR_NO_PACK	(~0u)

static inline u32 tr_packs_bytes(u32 cap)
{
	return sizeof(struct tr_packs) + cap * sizeof(struct tr_pack);
}

/* An empty list with room for @cap packs. */
void tr_packs_init(struct tr_packs *packs, u32 cap);
/* @to has no readers. -ENOSPC: too little room. */
int tr_packs_copy(struct tr_packs *to, const struct tr_packs *from);

/* In which pack (its position) block @i is live, or TR_NO_PACK. NULL: no packs. */
u32 tr_packs_find(const struct tr_packs *packs, u32 i);

/* How many blocks from @i on, up to @max, are live in the same pack (or none). */
u32 tr_packs_run(const struct tr_packs *packs, u32 i, u32 max, u32 *pack);

/* Position of the pack with @id, or TR_NO_PACK. */
u32 tr_packs_by_id(const struct tr_packs *packs, u64 id);

/* Live blocks of one pack; of all: blocks live anywhere. */
u32 tr_pack_live(const struct tr_pack *pack);
u32 tr_packs_live(const struct tr_packs *packs);
/* The union of all live bitmaps. */
void tr_packs_mask(const struct tr_packs *packs, u64 *mask);

/* --- changes; those with a record are named after it ------------------------ */

/* PACK_ADD. Comes with the live bits it has (none, normally). -ENOSPC: no room;
 * -EEXIST: there already.
 */
int tr_packs_add(struct tr_packs *packs, const struct tr_pack *pack);
/* PACK_DROP. -ENOENT; -EBUSY: a block is live in it. */
int tr_packs_drop(struct tr_packs *packs, u64 id);
/* INDEX_ADD, INDEX_DROP (@place TR_NO_PLACE, @nr 0). -ENOENT. */
int tr_packs_index(struct tr_packs *packs, u64 id, u64 place, u32 nr);
/* PACKED, PACKED_MASK, CLEAN: blocks @i .. @i+@n-1 are live in @id, no longer
 * in another. -ENOENT.
 */
int tr_packs_put(struct tr_packs *packs, u64 id, u32 i, u32 n);
/* MAP, UNMAP: they are live in no pack any more. Returns how many were. */
u32 tr_packs_clear(struct tr_packs *packs, u32 i, u32 n);

#endif
