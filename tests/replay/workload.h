/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loads: which block is accessed next.
 *
 *	zipf		rank r with weight r^-theta
 *	hotspot		a share of the blocks gets a share of the accesses
 *	laps		a hotspot each of whose blocks comes once before any comes again
 *	uniform
 *	shift		a hotspot that jumps elsewhere with every stage
 *	grow, shrink	a hotspot that doubles or halves with every stage
 *
 * Keys are clustered (hot blocks are neighbours) or hashed (scattered over the volume).
 */
#ifndef REPLAY_WORKLOAD_H
#define REPLAY_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "decide/prng.h"

struct workload {
	char kind[16];
	uint64_t blocks;
	bool hashed;
	double theta;
	double hot_share;
	double hot_probability;
	uint64_t stage;
	struct prng prng;
	double *sums;		/* Zipf: cumulative weights */
	uint64_t *lap, lap_at;	/* laps: the order of this one */
};

/* False for an unknown kind.  @hot_share: of the hotspot kinds, at stage 0. */
bool workload_init(struct workload *w, const char *kind, uint64_t blocks, bool hashed,
		   double hot_share, uint64_t seed);
void workload_exit(struct workload *w);

void workload_stage(struct workload *w, uint64_t stage);
uint64_t workload_next(struct workload *w);

/* Blocks in the hot set now, as a pass over it counts them; 10 % of the volume for zipf. */
uint64_t workload_hot_blocks(const struct workload *w);

#endif
