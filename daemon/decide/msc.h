/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * MSC, the multi-tiered storage compaction score (PrismDB): is demoting from
 * this region worth its I/O?
 *
 *                     sum over fast blocks j of coldness_j
 *	MSC = --------------------------------------------------
 *	              F * (2 - o) / (1 - p)  +  1
 *
 * coldness_j = 1 / (clock_j + 1), so 1 for the untracked and 1/4 at clock 3;
 * F = packed / fast size, o = overwritten share of the packed part, p = share
 * of the fast blocks that is pinned.  The denominator is I/O per demoted byte:
 * read the packs (F), write them back less the garbage (F * (1 - o)), spread over
 * the 1 - p that really leaves, plus writing the byte itself.
 *
 * A region with p = 1 or without fast blocks is not a candidate (score < 0).
 *
 * Terrace's additions; with append_debt 0 and a wear price of 1 the formula above holds:
 *  - append: a demotion may add a pack instead of rewriting them.  It costs the
 *    byte itself plus a debt: its share of the merge it brings nearer.  That merge
 *    costs what is left of it.  The cheaper of the two counts; with all packs used
 *    only merge remains.  A debt of 0 is the formula above.
 *  - wear price: of what is written, not of what is read: F + price * (F (1 - o) + 1), p left out.
 *    The dearer writing to the tier below, the more a region with much garbage is worth against one
 *    with fewer packs that are all alive.
 *  - clean slots: only the dirty ones are written; with none, nothing is.
 */
#ifndef DECIDE_MSC_H
#define DECIDE_MSC_H

#include <stdbool.h>
#include <stdint.h>

#include "decide/region.h"
#include "decide/tunable.h"

struct msc_tunables {
	double append_debt;
	double wear_price;
	double min_cost;
};

extern const struct tunable_table msc_tunable_table;

enum move_mode {
	MOVE_APPEND,
	MOVE_MERGE,
	MOVE_RAISE,
	MOVE_CLEAN,
};

struct msc {
	double benefit;
	double cost;
	double score;		/* MSC_SKIP when not a candidate */
	enum move_mode mode;	/* which of append and merge the cost is of */
};

#define MSC_SKIP	(-1.0)

/* coldness_j of one block; @clock < 0 (untracked) is as cold as it gets. */
static inline double coldness(int clock)
{
	return clock < 0 ? 1.0 : 1.0 / ((double)clock + 1.0);
}

/* The paper's cost of a merge, per demoted block.  @p must be below 1. */
double msc_merge_cost(double fanout, double overwritten, double pinned);

/* Fills in @out; @out->score is MSC_SKIP for a region without anything to demote. */
void msc_score(const struct region_view *r, const struct msc_tunables *t,
	       struct msc *out);

/*
 * HotRAP's benefit of compacting a file, with counts for sizes:
 * (fast - hot) / (fast + packed).  Negative (skip) without fast blocks.
 */
double hotrap_score(const struct region_view *r);

#endif
