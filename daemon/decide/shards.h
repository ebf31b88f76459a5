/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * SHARDS: a sampled ghost cache that tells the hit rate other fast-tier sizes would
 * have (Waldspurger et al., FAST'15; fixed-size variant with the SHARDS-adj
 * correction).
 *
 * A block belongs to the sample if hash(block) < threshold.  For each access to a
 * sampled block the number of distinct sampled blocks since its previous access,
 * divided by the sampling rate, estimates its LRU reuse distance; a histogram of
 * those distances is the hit-rate curve.  When the sample is full, the block with
 * the largest hash leaves and the threshold falls to it, so memory is constant
 * whatever the volume; what was counted before stays as it is.
 *
 * Sampling blocks misjudges how many accesses the sample should have seen when a few
 * blocks are very hot; the difference is added to the first bucket, since what is
 * missing (or too much) are accesses to hot blocks.
 *
 * The histogram counts accesses, each sampled one for as many as it stands for; shards_age() halves it, so
 * that a curve follows the load.
 *
 * Below a database such a curve is blind: its own cache has had whatever comes again soon, and an LRU has no more hits from the rest
 * than from a uniform load.  So the sample also remembers two periods, in each of which a block was accessed once on
 * average: how much more often than under a uniform load are the same blocks accessed in both?
 */
#ifndef DECIDE_SHARDS_H
#define DECIDE_SHARDS_H

#include <stddef.h>
#include <stdint.h>

#include "decide/tunable.h"

struct shards_tunables {
	uint32_t samples;
	uint32_t buckets;
};

extern const struct tunable_table shards_tunable_table;

struct shards_sample {
	uint64_t block;
	uint64_t hash;
	uint32_t time;		/* last access, in the tree's time */
	uint32_t heap_at;
};

/* Of one kind of use. */
struct shards_curve {
	double *histogram;	/* hits by distance bucket */
	double cold;		/* first accesses */
	double far;		/* seen before, but beyond the curve's end */
	double all;		/* sampled or not, aged like the histogram */
};

struct shards {
	struct shards_sample *samples;
	uint32_t *slots;	/* hash table of sample numbers + 1 */
	uint32_t *heap;		/* sample numbers, the largest hash on top */
	uint32_t *tree;		/* Fenwick tree: 1 at the last access of each sample */
	uint32_t *at_time;	/* sample number + 1 at each time, for renumbering */
	uint32_t mask;
	uint32_t limit;
	uint32_t count;
	uint32_t now;		/* 1..span */
	uint32_t span;
	uint32_t buckets;
	uint64_t bucket_blocks;	/* distance covered by one bucket */
	uint64_t threshold;	/* rate = threshold / 2^64 */
	struct shards_curve access, touch;
	uint8_t *uses[2];	/* accesses of each sample in this period and in the one before, 255 at most */
	uint64_t used;		/* sum of this period's */
	uint32_t distinct;	/* blocks that had one */
	double lasting;
};

size_t shards_bytes(const struct shards_tunables *t);

/* The curve covers sizes up to @max_blocks.  @mem as for tracker_init(). */
int shards_init(struct shards *s, const struct shards_tunables *t, uint64_t max_blocks,
		void *mem, size_t bytes);

void shards_access(struct shards *s, uint64_t block);
/* It has been used by what no hit speeds up: a write takes its place in the LRU, and has a curve of its own. */
void shards_touch(struct shards *s, uint64_t block);

/* Predicted hit rate of an LRU fast tier of @blocks, 0..1: of accesses, not of touches. */
double shards_hit_rate(const struct shards *s, uint64_t blocks);
/* The same, of touches. */
double shards_touch_rate(const struct shards *s, uint64_t blocks);

/* Share of the accesses that met a block seen before, whatever the distance. */
double shards_reuse(const struct shards *s);

/*
 * What lasts from period to period: 0 under a uniform load, over whatever part of the volume, and up to 0.06 if that is seen below a cache; the square of
 * the coefficient of variation of how often blocks are accessed, a little less.  0 before two periods are over.
 */
double shards_lasting(const struct shards *s);

/* Halves the weight of everything seen so far, once the sample has been used as often as it has blocks. */
void shards_age(struct shards *s);

double shards_rate(const struct shards *s);

#endif
