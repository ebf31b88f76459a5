/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A miniature of the volume: what the policy would make of the load with other settings, from a sample of the
 * blocks (Waldspurger et al., "Cache Modeling and Optimization using Miniature Simulations", ATC'17).
 *
 * The ghost cache (shards.h) knows the hit rate of an LRU of any size from one list, but a policy that is no
 * LRU has no such curve.  So it is run: of every 2^shift blocks that follow each other one is taken, by a hash of which, and these
 * are a volume of their own, with a fast tier, a heat source and regions as much smaller.  Where blocks lie there is decided by
 * the daemon's own code: heat, mapper, watermarks, choice of regions, `up` masks.
 *
 *	hit rate = 1 - misses * 2^shift / reads		reads: of all blocks, misses: of the sample
 *
 * The few blocks that get most of the reads are hits in any placement worth a name; so it makes no difference
 * how many of them happen to be in the sample.
 *
 * What is left out: batches (a hot block that is read slowly goes up at once), epochs, what budgets, brakes and the governor hold back,
 * and the time that moves take.
 */
#ifndef DECIDE_MINIATURE_H
#define DECIDE_MINIATURE_H

#include "decide/buckets.h"
#include "decide/choose.h"
#include "decide/flush.h"
#include "decide/heat.h"
#include "decide/upmask.h"
#include "decide/watermark.h"

struct miniature_tunables {
	uint32_t samples, counted;
	double most_share;
};

extern const struct tunable_table miniature_tunable_table;

/* --- which blocks --------------------------------------------------------------- */

/* The least number of times that a volume of @blocks has to be halved to fit. */
uint32_t miniature_shift(const struct miniature_tunables *t, uint64_t blocks);

/* The same, for the sample in which uses are only counted (headcount.h). */
uint32_t miniature_counted_shift(const struct miniature_tunables *t, uint64_t blocks);

/* So small a share of the accesses is heard that it costs next to nothing. */
bool miniature_worthwhile(const struct miniature_tunables *t, uint32_t shift);

/* Blocks [n << shift, + 1 << shift) are stood for by this one. */
uint64_t miniature_block(uint64_t n, uint32_t shift);

/* The number of @block, -1: it is not in the sample. */
int64_t miniature_number(uint64_t block, uint32_t shift);

/* --- one setting ------------------------------------------------------------------ */

/* What may go up. */
enum miniature_up {
	MINIATURE_NOTHING,	/* the load shows no skew */
	MINIATURE_HOT,
	MINIATURE_ALL,		/* at first sight */
};

struct miniature_rules {
	enum choose_rule rule;
	const struct choose_tunables *choose;
	const struct msc_tunables *msc;
	const struct bucket_tunables *buckets;
	const struct watermark_tunables *watermark;
	const struct flush_tunables *flush;
};

struct miniature_region {
	uint32_t fast, dirty;
	uint32_t listed;	/* place in `with_fast` + 1 */
	uint64_t used;		/* when it was last moved or written to */
};

struct miniature {
	uint32_t blocks, region_blocks, regions;
	uint32_t fast_blocks, fast_used;
	uint32_t shift;
	uint8_t *place;
	struct miniature_region *region;
	uint32_t *with_fast;	/* regions that have fast blocks, in no order */
	uint32_t nr_with_fast;
	struct watermark watermark;
	enum miniature_up up;
	uint64_t accesses, again;	/* until then no room is looked for: all was hot */
	double misses;		/* aged with the reads that the caller counts */
};

size_t miniature_bytes(uint32_t blocks, uint32_t shift);

/* All is below.  @mem: miniature_bytes(), 8-aligned, the caller's.  -EINVAL, -ENOMEM. */
int miniature_init(struct miniature *m, uint32_t blocks, uint32_t fast_blocks, uint32_t shift, void *mem, size_t bytes);

/* The heat has heard of it. */
void miniature_read(struct miniature *m, const struct miniature_rules *r, const struct heat *heat, uint32_t block,
		    struct prng *prng);
void miniature_write(struct miniature *m, const struct miniature_rules *r, const struct heat *heat, uint32_t block,
		     struct prng *prng);

/* What is too much goes down at once. */
void miniature_resize(struct miniature *m, const struct miniature_rules *r, const struct heat *heat, uint32_t fast_blocks,
		      struct prng *prng);

/* It holds nothing any more. */
void miniature_forget(struct miniature *m, uint32_t block);

/* @reads: of the whole volume, since the misses began to be counted. */
double miniature_hit_rate(const struct miniature *m, double reads);

void miniature_age(struct miniature *m);

#endif
