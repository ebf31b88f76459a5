/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Do no harm: moves that do not repay their I/O and wear within an epoch stop.
 *
 * An epoch is a number of user operations.  At its end
 *
 *	promotions	must have repaid: hits on promoted blocks * time saved by each
 *			>= min_return * time the moves kept the drives busy
 *	demotions	must not have been in vain: at most max_regret of the blocks that
 *			went down were read again.  When everything is hot, all of them are.  Where the load is skewed
 *			they may be read as much as all that lies there: a scan blames no choice.
 *	room		must not cost more than it gains: what making it took beyond what it would without keeping
 *			hot blocks, against the hits that an LRU of this size (the ghost cache) would not have had.
 *			Below max_overhead of the users' own time it is not looked at.
 *	the ghost cache	must show skew (see admit.h): else no placement is better than another
 *
 * What failed stops for rest_epochs, twice as long after each failure in a row up to max_rest, then
 * one epoch is allowed as a trial.  Too few moves are no evidence; nothing changes then.
 *
 * Demotion that is stopped for its price leaves room-making to the kernel's janitor, which asks no policy.  After regret it
 * would choose no better: then room waits for idle time.
 */
#ifndef DECIDE_GOVERNOR_H
#define DECIDE_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

#include "decide/tunable.h"

struct governor_tunables {
	uint64_t epoch_ops;
	double min_return;
	double max_regret;
	double max_overhead;
	double min_moved;
	uint32_t rest_epochs;
	uint32_t max_rest;
	uint32_t regret_epochs;
	double lost_after;
};

extern const struct tunable_table governor_tunable_table;

enum governor_reason {
	GOVERNOR_FREE,
	GOVERNOR_UNPAID,	/* promotions cost more than their hits saved */
	GOVERNOR_REGRET,	/* what went down was read again */
	GOVERNOR_COSTLY,	/* keeping the hot cost more than their hits saved */
	GOVERNOR_NO_SKEW,	/* the load is uniform: no placement is better than another */
	GOVERNOR_REASONS,
};

struct governor_epoch {
	double promoted;	/* blocks */
	double saved_ns;	/* by hits on them */
	double spent_ns;	/* drives busy with promotions */
	double demoted;
	double regretted;
	double chance;		/* of all that lies below, the share that was read under skew, at most 1 */
	double overhead_ns;	/* drives busy with demotions, beyond what they would be if nothing were kept */
	double gained_ns;	/* by hits that an LRU would not have had; below 0: it would have had more */
	double user_ns;		/* of the users' reads and writes */
	bool skewed;
};

struct governor_side {
	enum governor_reason reason;
	uint32_t rest;		/* epochs left before a trial */
	uint32_t failures;	/* in a row */
	uint64_t stops;
};

struct governor {
	uint64_t ops;		/* of this epoch */
	uint64_t epochs;
	struct governor_side up;
	struct governor_side down;
	struct governor_epoch last;	/* what the last judgement was about, for `explain` */
};

void governor_init(struct governor *g);

/* Counts operations; true when an epoch is over and governor_judge() is due. */
bool governor_step(struct governor *g, const struct governor_tunables *t, uint64_t ops);

/*
 * Whether an epoch, of which @so_far is known, is lost: room has cost more than all of it could gain at this
 * rate.  It is then judged at once.  Not before lost_after of it.
 */
bool governor_lost(const struct governor *g, const struct governor_tunables *t,
		   const struct governor_epoch *so_far);

void governor_judge(struct governor *g, const struct governor_tunables *t,
		    const struct governor_epoch *e);

static inline bool governor_allows_up(const struct governor *g)
{
	return g->up.reason == GOVERNOR_FREE;
}

static inline bool governor_allows_down(const struct governor *g)
{
	return g->down.reason == GOVERNOR_FREE;
}

/* A phrase for people, NULL beyond the last. */
const char *governor_reason_text(enum governor_reason reason);

#endif
