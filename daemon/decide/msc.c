// SPDX-License-Identifier: GPL-2.0-or-later
/* The demotion scores; msc.h has the formulas and what they mean. */
#include "decide/msc.h"

static const struct tunable rows[] = {
	TUNABLE(TUNABLE_DOUBLE, msc_tunables, append_debt, 0.25, 0.0, 4.0,
		"share of the later merge that one append is charged for"),
	TUNABLE(TUNABLE_DOUBLE, msc_tunables, wear_price, 1.0, 0.01, 1000.0,
		"price of writing to the lower tier, 1 = a healthy drive"),
	TUNABLE(TUNABLE_DOUBLE, msc_tunables, min_cost, 0.05, 0.001, 1.0,
		"cost of a demotion without data I/O (clean slots only)"),
};
TUNABLE_TABLE(msc_tunable_table, "msc", rows);

double msc_merge_cost(double fanout, double overwritten, double pinned)
{
	return fanout * (2.0 - overwritten) / (1.0 - pinned) + 1.0;
}

/*
 * An append leaves the packs alone, but only REGION_PACKS fit: the nearer the
 * region is to its forced merge, the larger the share of it this append carries.
 */
static double append_cost(const struct region_view *r, double merge_cost, double debt)
{
	double used = (double)r->packs / REGION_PACKS;

	return 1.0 + debt * used * (merge_cost - 1.0);
}

static double per_block_cost(const struct region_view *r, const struct msc_tunables *t,
			     double pinned, enum move_mode *mode)
{
	double fast = region_fast_blocks(r);
	double overwritten = r->packed_blocks > 0 ? r->garbage_blocks / r->packed_blocks : 0;
	double merge = msc_merge_cost(r->packed_blocks / fast, overwritten, pinned);
	double append = append_cost(r, merge, t->append_debt);

	*mode = MOVE_MERGE;
	/* Without packs there is nothing to merge. */
	if (r->packs >= REGION_PACKS || (r->packs && append >= merge))
		return merge;
	*mode = MOVE_APPEND;
	return append;
}

void msc_score(const struct region_view *r, const struct msc_tunables *t, struct msc *out)
{
	double fast = region_fast_blocks(r);
	double pinned, cost;

	*out = (struct msc){ .score = MSC_SKIP, .mode = MOVE_APPEND };
	if (fast <= 0 || r->pinned_blocks >= region_fast_blocks(r))
		return;
	pinned = r->pinned_blocks / fast;
	cost = per_block_cost(r, t, pinned, &out->mode);
	cost *= t->wear_price * r->dirty_blocks / fast;
	out->benefit = r->coldness;
	out->cost = cost > t->min_cost ? cost : t->min_cost;
	out->score = out->benefit / out->cost;
}

double hotrap_score(const struct region_view *r)
{
	double fast = region_fast_blocks(r);

	if (fast <= 0)
		return MSC_SKIP;
	return (fast - r->hot_blocks) / (fast + r->packed_blocks);
}
