/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tuning the limits: HotRAP's Algorithm 1 on the resident sample.
 *
 * The hot set is whatever keeps being accessed again: the stable records.  When the
 * members of the hot set outgrow its limit, or a period has passed, the limit
 * becomes
 *
 *	clamp(stable + D_hs, L_hs, R_hs)
 *
 * D_hs being the room in which new (unstable) records may prove themselves.  If the
 * members still exceed the limit, the threshold rises until beta less than the
 * limit remain: expired records go first, then candidates, then the lowest scores.  The physical
 * limit is r times the hot limit; what lies between the two stays on disk and
 * is not hot.
 *
 * While the heat of some blocks is being passed on to others, both are members, and the first are not counted
 * (struct ralt_judge, `passed_on`): or the threshold would rise through what is hot, and stay there when they are gone.
 *
 * Filling: the hot set is at most R_hs of the fast tier and, under a load without a
 * sharp edge (Zipf), far less.  The rest of the tier then holds what came first.
 * When the policy asks for it (it should see skew first), the blocks with the highest
 * scores outside the hot set count as hot too, until both take the share of the fast tier
 * it names.
 *
 * A uniform load makes hardly any record stable within D_hs, so the limit falls to
 * L_hs and next to nothing is promoted.
 */
#ifndef RALT_TUNE_H
#define RALT_TUNE_H

#include <stdbool.h>
#include <stdint.h>

#include "ralt/record.h"
#include "ralt/sample.h"
#include "ralt/tunables.h"

struct tune {
	uint64_t hot_limit;
	uint64_t tuned_period;		/* of the last tuning */
	uint64_t tunings;
	uint64_t evictions;		/* times the hot threshold was raised */
	double fill_share;		/* 0: the hot set only */
	struct sample_census census;	/* as of the last step */
};

void tune_init(struct tune *t, const struct ralt_sizes *s);

/* Algorithm 1's formula. */
uint64_t tune_limit(const struct ralt_sizes *s, double stable);

/*
 * Looks at the sample, tunes the limit if it is time, evicts from the hot set if
 * it is over the limit: then @j->hot is new.  Returns true if anything changed.
 * @scratch: sample_scratch_bytes().
 */
bool tune_step(struct tune *t, struct ralt_judge *j, const struct ralt_tunables *tunables,
	       struct sample *s, double *scratch);

/* Records to keep on disk. */
uint64_t tune_physical_limit(const struct tune *t, const struct ralt_sizes *s,
			     const struct ralt_tunables *tunables);

#endif
