// SPDX-License-Identifier: GPL-2.0-or-later
/* Judges each epoch's moves; see governor.h. */
#include "decide/governor.h"

#include <string.h>

static const struct tunable rows[] = {
	TUNABLE(TUNABLE_U64, governor_tunables, epoch_ops, 100000, 1, 1e12,
		"user operations after which moves are judged"),
	TUNABLE(TUNABLE_DOUBLE, governor_tunables, min_return, 1.0, 0.0, 1000.0,
		"time that hits must save, as a multiple of the time that promotions take"),
	TUNABLE(TUNABLE_DOUBLE, governor_tunables, max_regret, 0.5, 0.0, 1.0,
		"share of demoted blocks that may be read again within an epoch"),
	TUNABLE(TUNABLE_DOUBLE, governor_tunables, max_overhead, 0.02, 0.0, 1.0,
		"share of the users' own I/O time that making room may always cost for keeping hot blocks"),
	TUNABLE(TUNABLE_DOUBLE, governor_tunables, min_moved, 256.0, 1.0, 1e12,
		"blocks moved below which an epoch is no evidence"),
	TUNABLE(TUNABLE_U32, governor_tunables, rest_epochs, 1, 1, 100000,
		"epochs without moves after the first failure"),
	TUNABLE(TUNABLE_U32, governor_tunables, max_rest, 64, 1, 1000000,
		"epochs without moves at most"),
	TUNABLE(TUNABLE_U32, governor_tunables, regret_epochs, 8, 1, 4096,
		"epochs after which a read of a block that went down says nothing against that"),
	TUNABLE(TUNABLE_DOUBLE, governor_tunables, lost_after, 0.05, 0.0, 1.0,
		"share of an epoch from which it may be given up early, where all of it cannot gain what making room has cost"),
};
TUNABLE_TABLE(governor_tunable_table, "governor", rows);

void governor_init(struct governor *g)
{
	memset(g, 0, sizeof(*g));
}

bool governor_step(struct governor *g, const struct governor_tunables *t, uint64_t ops)
{
	g->ops += ops;
	return g->ops >= t->epoch_ops;
}

/* @scale: how many times as much users' time and hits the epoch will have had at its end. */
static bool is_costly(const struct governor_tunables *t, const struct governor_epoch *e, double scale)
{
	return e->overhead_ns > t->max_overhead * e->user_ns * scale &&
	       e->overhead_ns * t->min_return > e->gained_ns * scale;
}

bool governor_lost(const struct governor *g, const struct governor_tunables *t,
		   const struct governor_epoch *so_far)
{
	if (g->down.reason != GOVERNOR_FREE || !g->ops || (double)g->ops < t->lost_after * (double)t->epoch_ops)
		return false;
	return is_costly(t, so_far, (double)t->epoch_ops / (double)g->ops);
}

static void stop(struct governor_side *side, const struct governor_tunables *t,
		 enum governor_reason reason)
{
	uint32_t doublings = side->failures < 31 ? side->failures : 31;
	uint64_t rest = (uint64_t)t->rest_epochs << doublings;

	side->reason = reason;
	side->rest = rest < t->max_rest ? (uint32_t)rest : t->max_rest;
	side->failures++;
	side->stops++;
}

/* One side at the end of an epoch; @reason: what spoke against it, @evidence: enough to judge by. */
static void judge(struct governor_side *side, const struct governor_tunables *t,
		  enum governor_reason reason, bool evidence)
{
	if (side->reason != GOVERNOR_FREE) {
		if (!--side->rest)
			side->reason = GOVERNOR_FREE;	/* a trial */
		return;
	}
	if (!evidence)
		return;
	if (reason != GOVERNOR_FREE)
		stop(side, t, reason);
	else
		side->failures = 0;
}

void governor_judge(struct governor *g, const struct governor_tunables *t,
		    const struct governor_epoch *e)
{
	bool paid = e->saved_ns >= t->min_return * e->spent_ns;
	bool regret = e->regretted > (e->chance + t->max_regret * (1 - e->chance)) * e->demoted;
	bool costly = is_costly(t, e, 1);

	g->epochs++;
	g->ops = 0;
	g->last = *e;
	judge(&g->up, t, paid ? GOVERNOR_FREE : e->skewed ? GOVERNOR_UNPAID : GOVERNOR_NO_SKEW,
	      e->promoted >= t->min_moved);
	judge(&g->down, t, regret ? GOVERNOR_REGRET : costly ? GOVERNOR_COSTLY : GOVERNOR_FREE, e->demoted >= t->min_moved);
}

const char *governor_reason_text(enum governor_reason reason)
{
	static const char *const text[GOVERNOR_REASONS] = {
		"moves repay",
		"promotions cost more than their hits saved",
		"blocks that went down were read again",
		"keeping hot blocks while making room cost more than their hits saved",
		"the load is uniform: no placement is better than another",
	};

	return reason < GOVERNOR_REASONS ? text[reason] : NULL;
}
