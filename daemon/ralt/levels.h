/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which runs to merge next.
 *
 * Level 0 holds flushed buffers, newest last; every level below holds one run, T
 * times as large as the one above may get.  When young_runs buffers have gathered
 * they are merged with level 1; when a level outgrows its capacity it is merged
 * into the next.  A complete merge (eviction) takes everything into one run at
 * the lowest level there is.
 */
#ifndef RALT_LEVELS_H
#define RALT_LEVELS_H

#include <stdbool.h>
#include <stdint.h>

#include "ralt/manifest.h"
#include "ralt/tunables.h"

struct level_run {
	uint32_t level;
	uint64_t records;
};

struct merge_plan {
	uint32_t inputs;		/* 0: nothing to do */
	uint32_t input[RALT_RUNS_MAX];	/* positions in the list, oldest first */
	uint32_t level;			/* of the output */
	bool complete;			/* every run is an input */
};

/* @runs: oldest first, that is deepest level first, within level 0 in flush order. */
void plan_merge(struct merge_plan *plan, const struct ralt_tunables *t,
		const struct level_run *runs, uint32_t count);
void plan_complete_merge(struct merge_plan *plan, const struct ralt_tunables *t,
			 const struct level_run *runs, uint32_t count);

#endif
