// SPDX-License-Identifier: GPL-2.0-or-later
/* Algorithm 1; see tune.h. */
#include "ralt/tune.h"

void tune_init(struct tune *t, const struct ralt_sizes *s)
{
	*t = (struct tune){ .hot_limit = s->initial_hot };
}

uint64_t tune_limit(const struct ralt_sizes *s, double stable)
{
	double limit = stable + (double)s->candidates;

	if (limit < (double)s->min_hot)
		return s->min_hot;
	if (limit > (double)s->max_hot)
		return s->max_hot;
	return (uint64_t)limit;
}

static void evict(struct tune *t, struct ralt_judge *j, double beta, struct sample *s,
		  double *scratch)
{
	j->hot = sample_kth(s, j, (1 - beta) * (double)t->hot_limit, scratch);
	t->census = sample_settle(s, j);
	t->evictions++;
}

static void set_fill(const struct tune *t, struct ralt_judge *j,
		     const struct ralt_tunables *tunables, const struct sample *s, double *scratch)
{
	/* What the hot set leaves of the share: together they must fit the fast tier. */
	double keep = t->fill_share * (double)j->sizes->fast_blocks - t->census.stable - t->census.passed, score;

	j->fill = (struct ralt_threshold){ .set = t->fill_share > 0, .tick = j->now.tick };
	if (!j->fill.set)
		return;
	score = sample_kth_other(s, &t->census, keep, scratch);
	j->fill.score = score > tunables->fill_score ? score : tunables->fill_score;
}

bool tune_step(struct tune *t, struct ralt_judge *j, const struct ralt_tunables *tunables,
	       struct sample *s, double *scratch)
{
	bool due = j->now.period != t->tuned_period;

	t->census = sample_census(s, j, scratch);
	set_fill(t, j, tunables, s, scratch);
	if (!due && t->census.members <= (double)t->hot_limit)
		return false;
	t->hot_limit = tune_limit(j->sizes, t->census.stable);
	t->tuned_period = j->now.period;
	t->tunings++;
	if (t->census.members > (double)t->hot_limit)
		evict(t, j, tunables->evict_share, s, scratch);
	return true;
}

uint64_t tune_physical_limit(const struct tune *t, const struct ralt_sizes *s,
			     const struct ralt_tunables *tunables)
{
	double limit = (double)t->hot_limit * tunables->physical_ratio;
	double least = (double)s->fast_blocks * tunables->tracked_share;

	return (uint64_t)(limit > least ? limit : least);
}
