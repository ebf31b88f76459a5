/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Idle or not?  After idle_seconds with fewer than idle_iops user operations a second, moves
 * get boost times their bandwidth; one busy interval ends it.
 */
#ifndef DECIDE_IDLE_H
#define DECIDE_IDLE_H

#include <stdint.h>

#include "decide/tunable.h"

struct idle_tunables {
	double idle_iops;
	double idle_seconds;
	double boost;
};

extern const struct tunable_table idle_tunable_table;

struct idle {
	double quiet_seconds;
};

/* @ops user operations in the last @seconds.  The factor for the budgets: 1 or boost. */
double idle_step(struct idle *i, const struct idle_tunables *t, uint64_t ops, double seconds);

#endif
