/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hill climbing of one tunable, the pinning threshold above all (PrismDB left its
 * choice to the user).
 *
 * Each period the caller reports how good the period was (higher is better: the
 * fast-read ratio less the price of the moves).  While that improves, the value
 * keeps moving the same way; when it worsens, it turns round with half the step;
 * when the difference is within the noise, it stays, and after some quiet periods
 * probes again, since loads change.
 */
#ifndef DECIDE_CLIMB_H
#define DECIDE_CLIMB_H

#include <stdint.h>

#include "decide/tunable.h"

struct climb_tunables {
	double min;
	double max;
	double first_step;
	double last_step;
	double noise;
	uint32_t quiet_periods;
};

extern const struct tunable_table climb_tunable_table;

struct climb {
	double value;
	double step;		/* signed */
	double last_score;
	uint32_t quiet;
	uint32_t periods;
};

/* -EINVAL for tunables out of range, min >= max, or @start outside them. */
int climb_init(struct climb *c, const struct climb_tunables *t, double start);

/* Reports the score of the period that ran with the current value; returns the next value. */
double climb_step(struct climb *c, const struct climb_tunables *t, double score);

#endif
