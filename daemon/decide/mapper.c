// SPDX-License-Identifier: GPL-2.0-or-later
/* The pinning threshold turned into one probability per clock value; see mapper.h. */
#include "decide/mapper.h"

static const struct tunable rows[] = {
	TUNABLE(TUNABLE_DOUBLE, mapper_tunables, pinning_threshold, 0.7, 0.0, 1.0,
		"share of the tracker that is pinned to the fast tier; climb moves it"),
};
TUNABLE_TABLE(mapper_tunable_table, "mapper", rows);

/*
 * The budget is a share of the blocks tracked now, not of the table: while the
 * tracker fills up it already says what is popular.  Value 0 can be reached: with
 * a threshold of 1 everything tracked is pinned.
 */
void mapper_refresh(struct mapper *m, const struct mapper_tunables *t,
		    const struct tracker *tr, struct prng *prng)
{
	double budget = t->pinning_threshold * (double)tr->count;

	for (int v = TRACKER_VALUES - 1; v >= 0; v--) {
		double here = (double)tr->population[v];

		if (budget <= 0)
			m->probability[v] = 0;
		else if (here <= budget)
			m->probability[v] = 1;
		else
			m->probability[v] = budget / here;
		budget -= here;
	}
	m->salt = prng_next(prng);
}

bool mapper_pins(const struct mapper *m, uint64_t block, int value)
{
	double draw;

	if (value < 0 || value >= (int)TRACKER_VALUES)
		return false;
	draw = (double)(mix64(block ^ m->salt) >> 11) * 0x1p-53;
	return draw < m->probability[value];
}
