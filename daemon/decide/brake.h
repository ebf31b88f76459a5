/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The foreground brake: user I/O that gets slower while moves are under way slows the moves down.
 *
 * What "slower" means is learnt: the latency of intervals without moves, smoothed, is the
 * base.  An interval with moves whose latency is more than 1 + tolerance times the base
 * multiplies the moves' share by back_off; any other adds recover.  Below floor_us nothing is
 * judged: nobody waits for that.
 *
 * Where there is always something to move and nobody rests there are no such intervals.  So after learn_after with
 * moves, and when the base is older than relearn_after of them, the brake listens: no order is to be given
 * until those under way have ended and an interval has been heard, or too few were there to be heard.
 *
 *	base 100 us, tolerance 1: 250 us -> share 1 to 0.5, again -> 0.25, then 150 us -> 0.30
 */
#ifndef DECIDE_BRAKE_H
#define DECIDE_BRAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "decide/tunable.h"

struct brake_tunables {
	double tolerance;
	double floor_us;
	double back_off;
	double recover;
	double min_share;
	double smoothing;
	uint64_t min_ops;
	uint64_t learn_after, relearn_after;
};

extern const struct tunable_table brake_tunable_table;

struct brake {
	double share;		/* of the budgets, min_share..1 */
	double base_us;		/* 0: not known yet */
	uint64_t braked;	/* intervals that reduced the share */
	uint64_t unheard;	/* intervals with moves since the last without */
	bool listens;		/* no order is to be given */
};

void brake_init(struct brake *b);

/* @latency_us: mean over @ops user operations of the interval; @moving: orders were under way. */
double brake_step(struct brake *b, const struct brake_tunables *t, double latency_us,
		  uint64_t ops, bool moving);

#endif
