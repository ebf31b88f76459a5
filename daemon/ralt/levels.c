// SPDX-License-Identifier: GPL-2.0-or-later
/* Planning merges; see levels.h. */
#include "ralt/levels.h"

#include <string.h>

static uint64_t capacity(const struct ralt_tunables *t, uint32_t level)
{
	uint64_t c = t->buffer_records;

	while (level--)
		c *= t->fanout;
	return c;
}

static uint32_t young(const struct level_run *runs, uint32_t count)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < count; i++)
		n += runs[i].level == 0;
	return n;
}

/* All runs of @from and @from + 1 become one of @from + 1. */
static void merge_levels(struct merge_plan *plan, const struct level_run *runs, uint32_t count,
			 uint32_t from)
{
	plan->level = from + 1;
	for (uint32_t i = 0; i < count; i++)
		if (runs[i].level == from || runs[i].level == from + 1)
			plan->input[plan->inputs++] = i;
	plan->complete = plan->inputs == count;
}

void plan_merge(struct merge_plan *plan, const struct ralt_tunables *t,
		const struct level_run *runs, uint32_t count)
{
	memset(plan, 0, sizeof(*plan));
	/* A large level first: it is what keeps the ones above from emptying into it. */
	for (uint32_t i = 0; i < count; i++) {
		uint32_t level = runs[i].level;

		if (level && level + 1 < RALT_LEVELS_MAX &&
		    runs[i].records > capacity(t, level)) {
			merge_levels(plan, runs, count, level);
			return;
		}
	}
	if (young(runs, count) >= t->young_runs)
		merge_levels(plan, runs, count, 0);
}

void plan_complete_merge(struct merge_plan *plan, const struct ralt_tunables *t,
			 const struct level_run *runs, uint32_t count)
{
	uint64_t records = 0;

	memset(plan, 0, sizeof(*plan));
	for (uint32_t i = 0; i < count; i++) {
		plan->input[plan->inputs++] = i;
		records += runs[i].records;
	}
	/* Where it fits, so that it is not merged again at once. */
	plan->level = 1;
	while (plan->level + 1 < RALT_LEVELS_MAX && capacity(t, plan->level) < records)
		plan->level++;
	for (uint32_t i = 0; i < count; i++)
		if (runs[i].level > plan->level)
			plan->level = runs[i].level;
	plan->complete = true;
}
