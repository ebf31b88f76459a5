/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files that make regions (region.c, load.c, settle.c) share and
 * nobody else needs.
 */
#ifndef DM_TERRACE_REGION_H
#define DM_TERRACE_REGION_H

#include "terrace.h"

/* The arrays of a leaf, in one piece (array.c): low[cap], then high[cap] if needed. The
 * region's packs hang on it, so that regions without them pay nothing; they
 * go along when the array is replaced.
 */
struct tr_array {
	struct rcu_head rcu;
	struct tr_packs_memory *packs;
	union {
		struct {
			u16 cap;
			u8 class;
			bool pooled;
		};
		mempool_t *pool;	/* once freed, if pooled */
	};
	u32 low[];
};

struct tr_packs_memory {
	struct rcu_head rcu;
	mempool_t *pool;		/* NULL: the allocator's */
	struct tr_packs packs;		/* last: its array follows */
};

/* Room for @nr places at least; how many, it says itself. Sleeps. */
struct tr_array *tr_array_alloc(struct terrace *tr, u32 nr, bool high);
void tr_array_free(struct terrace *tr, struct tr_array *array);	/* by RCU; NULL is fine */

static inline u8 *tr_array_high(struct tr_array *array, bool high)
{
	return high ? (u8 *)&array->low[array->cap] : NULL;
}

/* Outside the table, empty. */
struct tr_region *tr_region_alloc(struct terrace *tr, u64 number);
void tr_region_free(struct terrace *tr, struct tr_region *region);
/* The slot of @number in the table, under discard_lock; NULL: its page has to
 * be made first, without the lock.
 */
struct tr_region **tr_table_slot__f(struct terrace *tr, u64 number);
void tr_table_page_make(struct terrace *tr, u64 number);
void tr_region_mark_dirty__f(struct terrace *tr, struct tr_region *region, u64 first_seq);

/* --- load.c ---------------------------------------------------------------- */

/* A region as page and recovery have it, outside the table. */
struct tr_build {
	struct tr_region *region;	/* NULL: it has no page and no delta */
	struct tr_delta *delta;		/* what recovery found; still recovery's */
	u64 page_seq;
	u64 gone[TR_LEAF_WORDS];	/* discarded, their places not yet freed */
};

/*
 * Builds region @number; changes nothing. Under its load mutex, while it is
 * not in the table. @create: make an empty one when there is nothing.
 * -EIO: its page cannot be read now; another error: it is damaged.
 */
int tr_region_build(struct terrace *tr, u64 number, bool create, struct tr_build *build);
/* Adds to gone what discard @seq took, or a newer one that recovery knows of.
 * false: nothing is gone.
 */
bool tr_build_discard(struct tr_build *build, u64 seq);

/* --- capture.c ------------------------------------------------------------- */

struct tr_out;
void tr_region_encode__f(struct terrace *tr, struct tr_region *region, struct tr_out *out,
			 u64 generation);

#endif
