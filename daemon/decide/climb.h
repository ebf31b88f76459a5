/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hill climbing of one tunable, the pinning threshold above all (PrismDB left its
 * choice to the user).
 *
 * Each period the caller reports how good the period was (higher is better: the
 * fast-read ratio less the price of the moves).  Beside the best value known another
 * one is tried.  One that is better is the best from then on, and the next is tried beyond
 * it; one that is not, or not by more than noise, is left for the best, and the next is tried on its other
 * side, half as far.  When nothing near is better the best value is kept, and after some quiet periods
 * others are tried again, since loads change.
 *
 * So what is reported wrongly, or late, costs a period: going on from where a trial ended would be
 * a random walk.
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
	double read_share;
};

extern const struct tunable_table climb_tunable_table;

struct climb {
	double value;		/* in use: the best one, or one beside it */
	double best;
	double best_score;
	double step;		/* signed */
	uint32_t quiet;
	uint32_t periods;
};

/* -EINVAL for tunables out of range, min >= max, or @start outside them. */
int climb_init(struct climb *c, const struct climb_tunables *t, double start);

/* Reports the score of the period that ran with the current value; returns the next value. */
double climb_step(struct climb *c, const struct climb_tunables *t, double score);

#endif
