/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A leaf: the places of one region's blocks, in little more than four bytes
 * each. A presence bitmap says which blocks have a place, the places stand
 * packed in block order, and a place is found by rank: the number of present
 * blocks before it. No false positives, no search (the succinct index of
 * RocksMash, brought below the block layer).
 *
 * The low 32 bits of a place hold the tier and 2 TiB of blocks. Only when a
 * region has a place beyond that does it carry a second array with the high
 * byte of each.
 *
 * The same structure serves recovery as a *delta*: present = "touched by the
 * journal", and TR_NO_PLACE as a value says "unmapped since".
 *
 * Nothing here allocates or locks. Readers (tr_leaf_has, tr_leaf_get,
 * tr_leaf_run) may run beside one writer if the writer brackets each change
 * with a sequence counter, the reader asks again when the counter moved, and
 * arrays are freed by RCU. In between they get garbage, never a fault. The
 * rule that makes it so:
 *
 *   Arrays of a leaf that others read change only in tr_leaf_replace(), never
 *   by assigning to its fields or to the whole struct, and an array taken out
 *   is not put back. It lowers @cap to what old and new arrays both have, then
 *   puts the new arrays in, then raises @cap. A reader loads the arrays, then
 *   @cap, then the arrays again: unchanged, they were in place while @cap was
 *   read, hence have at least that room, and no index reaches past it.
 */
#ifndef TERRACE_CORE_LEAF_H
#define TERRACE_CORE_LEAF_H

#include <linux/bitops.h>
#include <linux/compiler.h>
#include "place.h"

#define TR_LEAF_WORDS	(TERRACE_REGION_BLOCKS / 64)

struct tr_leaf {
	u64 present[TR_LEAF_WORDS];
	u16 rank[TR_LEAF_WORDS];	/* present blocks before each word */
	u16 nr;				/* present blocks */
	u16 cap;			/* room in low[] (and high[]) */
	u32 *low;
	u8 *high;			/* NULL while every place fits 32 bits */
};

/* Sets up an empty leaf without room. */
void tr_leaf_init(struct tr_leaf *leaf);

/* The @rank-th place, TR_NO_PLACE when a torn read led past the room. */
u64 tr_leaf_at(const struct tr_leaf *leaf, u32 rank);

static inline bool tr_leaf_has(const struct tr_leaf *leaf, u32 i)
{
	return READ_ONCE(leaf->present[i / 64]) >> (i % 64) & 1;
}

/* Where block @i is, or TR_NO_PLACE when it has no place. */
static inline u64 tr_leaf_get(const struct tr_leaf *leaf, u32 i)
{
	u64 word = READ_ONCE(leaf->present[i / 64]);
	u64 bit = 1ull << (i % 64);

	if (!(word & bit))
		return TR_NO_PLACE;
	return tr_leaf_at(leaf, READ_ONCE(leaf->rank[i / 64]) + hweight64(word & (bit - 1)));
}

/*
 * The run that starts at block @i: how many blocks, up to @max, are either
 * all absent, or present at consecutive places of one tier. *@place gets the
 * first one's place, TR_NO_PLACE for an absent run (in a delta also for a run
 * of present TR_NO_PLACE). Does not call out, safe under a sequence counter.
 * 1 <= @max, @i + @max <= TERRACE_REGION_BLOCKS.
 */
u32 tr_leaf_run(const struct tr_leaf *leaf, u32 i, u32 max, u64 *place);

/* How many more places [@i, @i + @n) would need, 0 .. @n. */
u32 tr_leaf_missing(const struct tr_leaf *leaf, u32 i, u32 n);

/*
 * Gives blocks @i .. @i+@n-1 the places @place, @place+1, … (or TR_NO_PLACE
 * as a value, in a delta). Needs room for tr_leaf_missing() more; needs
 * @high if the last place is high (tr_place_is_high). -ENOSPC when either is
 * missing, and then nothing has changed.
 */
int tr_leaf_set(struct tr_leaf *leaf, u32 i, u32 n, u64 place);

/* Takes the places of blocks @i .. @i+@n-1 away; absent ones stay absent. */
void tr_leaf_clear(struct tr_leaf *leaf, u32 i, u32 n);

/*
 * Puts the leaf into new arrays with room for @cap places (@high may be NULL
 * if no place is high; @low may be NULL if @cap is 0). -ENOSPC when they
 * don't hold what is there, and then nothing has changed. Readers see the
 * same places throughout. The caller notes the old arrays before and frees
 * them afterwards, past a grace period if the leaf has readers.
 */
int tr_leaf_replace(struct tr_leaf *leaf, u32 *low, u8 *high, u32 cap);

/*
 * Copies @from into the arrays of @to, which nobody else reads. -ENOSPC when
 * @to's room is below @from->nr or it lacks the high bytes that are needed.
 */
int tr_leaf_copy(struct tr_leaf *to, const struct tr_leaf *from);

/* All places in the order of their blocks, TR_PLACE_BYTES each, the lowest first: as map pages have them. */
void tr_leaf_write(const struct tr_leaf *leaf, u8 *to);

/* Does any place need the high bytes? (They may be there without need.) */
bool tr_leaf_needs_high(const struct tr_leaf *leaf);

/* Not in 32 bits. All ones in 32 bits stand for TR_NO_PLACE, so the one place
 * that looks like it is high as well.
 */
static inline bool tr_place_is_high(u64 place)
{
	return place >= 0xffffffffull && place != TR_NO_PLACE;
}

/* Room for at least @nr places, rounded up so that growth is amortised: at
 * most 25 % and 16 places more than needed, never above a whole region.
 */
u32 tr_leaf_room(u32 nr);

/* Sets in @mask the bit of each block that has a place on a tier whose bit is set in @tiers. */
void tr_leaf_on_tiers(const struct tr_leaf *leaf, u32 tiers, u64 *mask);

/* Next present block at or after @i, TERRACE_REGION_BLOCKS when none. */
u32 tr_leaf_next(const struct tr_leaf *leaf, u32 i);

#endif
