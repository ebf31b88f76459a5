/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Mapper: which tracked blocks are pinned to the fast tier (PrismDB).
 *
 * The pinning threshold is a share of the tracker.  Walking the clock values
 * from the highest down, whole values are pinned while they fit; blocks at the
 * boundary value, where the budget runs out, are pinned with the probability
 * that fills it exactly.
 *
 * Example: 10 tracked blocks per value 0..3 in a full tracker of 40, threshold
 * 70 % = 28: values 3 and 2 fit (20), value 1 is the boundary with
 * probability (28 - 20) / 10 = 0.8, value 0 is never pinned.
 *
 * The draw is a hash of the block and a salt, not a coin: asked twice within a
 * decision it answers the same.  A new salt (from the caller's PRNG) per refresh
 * keeps the same blocks from always losing.
 */
#ifndef DECIDE_MAPPER_H
#define DECIDE_MAPPER_H

#include <stdbool.h>
#include <stdint.h>

#include "decide/prng.h"
#include "decide/tracker.h"
#include "decide/tunable.h"

struct mapper_tunables {
	double pinning_threshold;
};

extern const struct tunable_table mapper_tunable_table;

struct mapper {
	double probability[TRACKER_VALUES];	/* of being pinned, by clock value */
	uint64_t salt;
};

/* Recomputes the mapping from the tracker's population. */
void mapper_refresh(struct mapper *m, const struct mapper_tunables *t,
		    const struct tracker *tr, struct prng *prng);

/* @value: the block's clock value or TRACKER_NO_VALUE (never pinned). */
bool mapper_pins(const struct mapper *m, uint64_t block, int value);

#endif
