/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Admission while the fast tier has room: may blocks go up at their first slow read?
 *
 * Waiting for a second access costs a pass over the hot set, and room left empty
 * helps nobody; but under a uniform load every promotion is in vain.  What tells the
 * two apart early is reuse: of n accesses spread evenly over V blocks a share of
 *
 *	u(n / V),  u(x) = 1 - (1 - e^-x) / x
 *
 * meets a block seen before; a skewed load reaches a multiple of that.  Promotion at
 * first sight is allowed while the observed reuse (from the ghost cache) is at
 * least `skew` times the uniform one, and the fast tier has not been full yet.
 */
#ifndef DECIDE_ADMIT_H
#define DECIDE_ADMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "decide/tunable.h"

struct admit_tunables {
	double skew;
	double lasting;
	double uniform;
	double uniform_hits;
	double fill;
	double emptied;
	uint64_t min_accesses;
};

extern const struct tunable_table admit_tunable_table;

/*
 * Whether moves can pay at all: an LRU fast tier of this size would have at least `skew` times the
 * hit rate of a random placement (its share of the volume), or at most 1 / `skew` of its misses (@ghost_hit: from shards_hit_rate()); or the
 * same blocks are accessed more often than others for longer than a cache above remembers (@lasting: from shards_lasting()).
 */
bool admit_skewed(const struct admit_tunables *t, uint64_t accesses, uint64_t mapped_blocks,
		  double ghost_hit, double lasting, uint64_t fast_blocks);

/* What a hit rate was told from: so many accesses; all there were, or those to a sample of blocks. */
struct admit_sample {
	double sampled;
	bool all;
};

/*
 * Whether no placement is better than another: an LRU of this size would have no more than `uniform` times the hits of
 * a random placement, nor noticeably fewer misses.  @of: what @ghost_hit was told from.  @before: it was so, and
 * is until the load is clearly otherwise.
 */
bool admit_uniform(const struct admit_tunables *t, uint64_t accesses, struct admit_sample of, uint64_t mapped_blocks,
		   double ghost_hit, uint64_t fast_blocks, bool before);

/* u(x) above, without a math library; exact to 1e-9. */
double admit_uniform_reuse(double passes);

/* The fast tier: room that was made is not room that was never filled, it is needed again soon. */
struct admit_room {
	bool been_full;		/* and neither emptied nor grown since */
	uint64_t blocks;
};

/* Now and then, before it is asked; @fill: the tunable, or less where a reserve is kept back. */
void admit_watch_room(struct admit_room *r, const struct admit_tunables *t, double fill, uint64_t used, uint64_t blocks);

/* @mapped_blocks: V; @reuse: observed share over @accesses. */
bool admit_first_sight(const struct admit_tunables *t, const struct admit_room *r, uint64_t accesses,
		       uint64_t mapped_blocks, double reuse);

#endif
