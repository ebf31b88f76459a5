// SPDX-License-Identifier: GPL-2.0-or-later
/* The demotion scores; msc.h has the formulas and what they mean. */
#include "decide/msc.h"

static const struct tunable rows[] = {
	TUNABLE(TUNABLE_DOUBLE, msc_tunables, append_debt, 0.25, 0.0, 4.0,
		"share of the later merge that one append is charged for, and that merge no more"),
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
 * An append leaves the packs alone, but only REGION_PACKS fit: it pays its share of the merge that it brings nearer.
 * The merge then costs what the appends before it have not paid.  So a region is not spared
 * for being due: cold blocks that wait take room just the same.
 */
static double merge_share(const struct region_view *r, double debt)
{
	double paid = r->packs ? debt * (r->packs - 1) : 0;

	return paid < 1 - 1.0 / REGION_PACKS ? 1 - paid : 1.0 / REGION_PACKS;
}

/* The rewriting to be paid for each block that leaves, and by which mode. */
static double rewrites_per_block(const struct region_view *r, const struct msc_tunables *t,
				 double pinned, enum move_mode *mode)
{
	double leaving = region_fast_blocks(r) * (1 - pinned);
	double read = r->packed_blocks / leaving, written = (r->packed_blocks - r->garbage_blocks) / leaving;
	double rewrites = read + written * t->wear_price;
	double share = merge_share(r, t->append_debt);

	*mode = MOVE_MERGE;
	/* Without packs there is nothing to merge. */
	if (r->packs >= REGION_PACKS || (r->packs && t->append_debt >= share))
		return rewrites * share;
	*mode = MOVE_APPEND;
	return rewrites * t->append_debt;
}

void msc_score(const struct region_view *r, const struct msc_tunables *t, struct msc *out)
{
	double fast = region_fast_blocks(r);
	double cost;

	*out = (struct msc){ .score = MSC_SKIP, .mode = MOVE_APPEND };
	if (fast <= 0 || r->pinned_blocks >= region_fast_blocks(r))
		return;
	cost = rewrites_per_block(r, t, r->pinned_blocks / fast, &out->mode) + t->wear_price * r->dirty_blocks / fast;
	cost *= r->dirty_blocks > 0;
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
