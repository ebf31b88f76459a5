/* SPDX-License-Identifier: GPL-2.0 */
/* Inside of order.c, order_data.c and order_commit.c: an order while it runs. */
#ifndef DM_TERRACE_ORDER_STATE_H
#define DM_TERRACE_ORDER_STATE_H

#include <linux/bitmap.h>

#include "order.h"
#include "packs.h"

#define BLOCKS		TERRACE_REGION_BLOCKS
#define TR_GENTLE_BLOCKS	8	/* read from, or written to, slots at once */

/* What is known of an order while it runs; kept until its commit. */
struct tr_order_state {
	struct tr_move move;
	unsigned int seq;		/* of the region, when the snapshot was begun */
	u64 about[TR_LEAF_WORDS];	/* the blocks that are looked at */
	u64 place[BLOCKS];
	u64 pack[BLOCKS];		/* id it was live in, 0: none */
	u64 fresh[BLOCKS];		/* place on tier_up or at home, of blocks in up or into alone */
	u64 into[TR_LEAF_WORDS], up[TR_LEAF_WORDS], drop[TR_LEAF_WORDS];
	u64 slow[TR_LEAF_WORDS];	/* pinned off the fast tiers, or dead */
	struct tr_pack_ref ref[TERRACE_PACK_SLOTS];
	u32 nr_refs;
	struct tr_pack made;		/* id 0: no pack was written */
	u64 index;			/* of its run */
	u64 index_place;		/* of its index copy, TR_NO_PLACE: none */
	void *header;
	u32 header_bytes, header_blocks;
	u64 had[TR_LEAF_WORDS];		/* at places: from the promotion cache */
	u32 failed;			/* reads, of whatever pack or place */
	u32 avoid;			/* tiers that are to be left, bits (tunable avoid_tiers) */
	u64 unpack[TR_LEAF_WORDS];	/* of up: they leave their pack as well, which is on one of these; or all do (unclean) */
	bool unclean;			/* what goes up gets no clean slots (tunable clean_slots) */
	bool refused;			/* blocks stay that were to go up: to one of these, or without a slot */
	bool merge;
	u64 along[TR_LEAF_WORDS];	/* of into: not what was asked for, but their pack goes with it */
	bool loose;			/* of one shelf what was never packed */
	struct tr_tier *home;		/* down means there, as they are; NULL: into a pack */
	bool taken;			/* the made pack became part of the region */
};

/* Memory for one order at a time. */
struct tr_order_area {
	struct list_head list;
	bool unused;			/* since the last tick */
	struct tr_pack_build build;
	struct tr_codec *codec;
	void *data;			/* a region, by block */
	void *image;
	u32 image_bytes;
	void *cluster;
};

static inline bool tr_bit(const u64 *map, u32 i)
{
	return map[i / 64] >> (i % 64) & 1;
}

static inline void tr_bit_set(u64 *map, u32 i)
{
	map[i / 64] |= 1ull << (i % 64);
}

static inline void tr_bit_clear(u64 *map, u32 i)
{
	map[i / 64] &= ~(1ull << (i % 64));
}

static inline u32 tr_bits_count(const u64 *map)
{
	return bitmap_weight((const unsigned long *)map, BLOCKS);
}

/* The next block, from @i on, that goes anywhere; BLOCKS: none. */
static inline u32 tr_order_next(const struct tr_order_state *s, u32 i)
{
	u32 w = i / 64;
	u64 word;

	if (i >= BLOCKS)
		return BLOCKS;
	word = (s->into[w] | s->up[w]) & ~0ull << (i % 64);
	while (!word && ++w < TR_LEAF_WORDS)
		word = s->into[w] | s->up[w];
	return word ? w * 64 + __ffs64(word) : BLOCKS;
}

static inline struct tr_tier *tier_of(struct terrace *tr, u64 place)
{
	return &tr->tier[tr_place_tier(place)];
}

static inline bool tr_avoids(const struct tr_order_state *s, u64 place)
{
	return place != TR_NO_PLACE && s->avoid >> tr_place_tier(place) & 1;
}

/* The packs that something lives in. */
static inline u32 tr_order_live_packs(const struct tr_order_state *s)
{
	u32 i, k, nr = 0;

	for (k = 0; k < s->nr_refs; k++) {
		for (i = 0; i < BLOCKS && s->pack[i] != s->ref[k].id; i++)
			;
		nr += i < BLOCKS;
	}
	return nr;
}

static inline bool tr_bits_none(const u64 *map)
{
	return bitmap_empty((const unsigned long *)map, BLOCKS);
}

/* --- order_flight.c: limits of the tiers, memory ------------------------------- */

/* Counts at all of @tiers (bits), once each of them has room. Sleeps. */
void tr_flight_enter(struct terrace *tr, u32 tiers);
void tr_flight_leave(struct terrace *tr, u32 tiers);
/* NULL: no memory. Only while it counts, so that the limits bound it. */
struct tr_order_area *tr_order_area_get(struct terrace *tr);
void tr_order_area_put(struct terrace *tr, struct tr_order_area *area);

/* --- order_data.c: everything that is read and written ------------------------ */

/* What was read is in the area, by block. What could not be read, from neither copy, is in none
 * of the classes any more. -EIO: too much of it, or all; result->bad_block.
 */
int tr_order_read(struct terrace *tr, struct tr_order_state *s, struct tr_order_area *area,
		  struct terrace_result *result);
/* Of one pack the blocks in @mask, which it uses up; @drive: from nowhere else. Those that
 * neither it nor a clean slot gives are in @lost. -EIO: the pack is bad somewhere; -EINTR: and
 * the rest was not tried.
 */
int tr_order_read_pack(struct terrace *tr, struct tr_order_state *s,
		       const struct tr_pack_ref *ref, bool drive, struct tr_order_area *area,
		       u64 *mask, u64 *lost, struct terrace_result *result);
/* Builds and writes the pack of the blocks in `into`. -ENOSPC: no shelf has room; -E2BIG: they
 * lie loose on a shelf, and most of them do not compress.
 */
int tr_order_pack(struct terrace *tr, struct tr_order_state *s, const struct terrace_move *ask,
		  struct tr_order_area *area, struct terrace_result *result);
/* Writes the blocks in `into` to their homes; those without a free one are in none of
 * the classes any more. -ENOSPC: the drive is full inside, or no home was free.
 */
int tr_order_home(struct terrace *tr, struct tr_order_state *s, struct tr_order_area *area,
		  struct terrace_result *result);
/* Writes the blocks in `up` to fresh places; -ENOSPC: not all of them. */
int tr_order_up(struct terrace *tr, struct tr_order_state *s, const struct terrace_move *ask,
		struct tr_order_area *area, struct terrace_result *result);

/* --- order.c, order_scrub.c ------------------------------------------------------ */

/* An order is of one region: with so many reads that failed, of whatever length, it ends; and where
 * a suspend waits for it, with the first.
 */
static inline bool tr_order_gave_up(const struct terrace *tr, u32 failed)
{
	return failed && (READ_ONCE(tr->orders_held) || READ_ONCE(tr->stopping) || failed >= 64);
}

/* Has the region still got that pack? */
bool tr_order_has_pack(const struct tr_order_state *s, u64 id);
/* A pack nobody took away yet: there was no journal room, or no page since; or its last block was
 * written during the snapshot. Or one with a copy of its index on a tier that is to be left.
 */
bool tr_order_drops_pack(const struct tr_order_state *s);

/* Of every block that the order is about: its place, and the pack it is live in. */
void tr_order_snapshot(struct tr_order_state *s);
/* 0, or why what stays does. */
int tr_order_clean(struct terrace *tr, struct tr_order *order);
/* -EIO: result->unreadable blocks are, or headers are bad. -EINTR: and it has given up. */
int tr_order_scrub(struct terrace *tr, struct tr_order *order, struct tr_order_state *s);
/* The owner table of a shelf. -EIO: result->unreadable blocks are bad; -ENOENT: it has none. */
int tr_order_scrub_shelf(struct terrace *tr, struct tr_order *order);

/* --- order_commit.c --------------------------------------------------------------- */

/* Leaves out of `into` what is not as in the snapshot any more: of all others the value
 * that was read is whole, and their own. The commit looks once more.
 */
void tr_order_read_ended(struct tr_order_state *s, struct terrace_result *result);
/* Publishes what is still as in the snapshot. -EROFS, -EIO: nothing was. */
int tr_order_commit(struct terrace *tr, struct tr_order_state *s, const struct terrace_move *ask,
		    struct terrace_result *result);
u32 tr_order_nr_fresh(const struct tr_order_state *s);

#endif
