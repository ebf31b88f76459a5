// SPDX-License-Identifier: GPL-2.0-or-later
/* One-dimensional hill climbing under noise; see climb.h. */
#include "decide/climb.h"

#include <errno.h>

static const struct tunable rows[] = {
	TUNABLE(TUNABLE_DOUBLE, climb_tunables, min, 0.1, 0.0, 1.0, "lowest value tried"),
	TUNABLE(TUNABLE_DOUBLE, climb_tunables, max, 0.95, 0.0, 1.0, "highest value tried"),
	TUNABLE(TUNABLE_DOUBLE, climb_tunables, first_step, 0.1, 0.001, 1.0,
		"step of a fresh search"),
	TUNABLE(TUNABLE_DOUBLE, climb_tunables, last_step, 0.0125, 0.0001, 1.0,
		"step at which the search rests"),
	TUNABLE(TUNABLE_DOUBLE, climb_tunables, noise, 0.002, 0.0, 1.0,
		"change of the score that means nothing"),
	TUNABLE(TUNABLE_U32, climb_tunables, quiet_periods, 8, 1, 100000,
		"periods of rest before a fresh search"),
	TUNABLE(TUNABLE_DOUBLE, climb_tunables, read_share, 0.1, 0.0, 1.0,
		"reads, as a share of governor.epoch_ops, below which an epoch says nothing and is no period"),
};
TUNABLE_TABLE(climb_tunable_table, "climb", rows);

int climb_init(struct climb *c, const struct climb_tunables *t, double start)
{
	if (tunable_check(&climb_tunable_table, t, NULL) || t->min >= t->max ||
	    !(start >= t->min && start <= t->max))
		return -EINVAL;
	*c = (struct climb){ .value = start, .best = start, .step = t->first_step };
	return 0;
}

static double within(const struct climb_tunables *t, double x)
{
	return x < t->min ? t->min : x > t->max ? t->max : x;
}

/* A wall is no slope: the step turns round and keeps its size. */
static void probe(struct climb *c, const struct climb_tunables *t)
{
	double next = c->best + c->step;

	if (next < t->min || next > t->max)
		c->step = -c->step;
	c->value = within(t, c->best + c->step);
}

static int at_rest(const struct climb *c, const struct climb_tunables *t)
{
	return (c->step < 0 ? -c->step : c->step) < t->last_step;
}

/* The mean of what the best value scored while the search rested: nearly without noise. */
static void rest(struct climb *c, double score)
{
	c->quiet++;
	c->best_score += (score - c->best_score) / c->quiet;
}

double climb_step(struct climb *c, const struct climb_tunables *t, double score)
{
	if (!c->periods++) {
		c->best_score = score;
	} else if (at_rest(c, t)) {
		rest(c, score);
		if (c->quiet < t->quiet_periods)
			return c->value;
		c->quiet = 0;
		c->step = c->step < 0 ? -t->first_step : t->first_step;
	} else if (score - c->best_score > t->noise) {
		c->best = c->value;
		c->best_score = score;
	} else {
		c->step = -c->step / 2;
	}
	if (at_rest(c, t))
		c->value = c->best;
	else
		probe(c, t);
	return c->value;
}
