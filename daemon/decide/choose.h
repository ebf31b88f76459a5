/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Choosing the region to demote from: power-of-k.
 *
 * k regions are drawn at random among those with fast blocks and the best one
 * wins; k = 8 is close to scanning them all.  The rule that scores a candidate
 * can be changed for comparison:
 *
 *	precise, approx		MSC (the view is filled in differently)
 *	random			the first candidate drawn
 *	oldest			the greatest age
 *	hotrap			(fast - hot) / (fast + packed), and the
 *				oldest when no candidate has any benefit
 */
#ifndef DECIDE_CHOOSE_H
#define DECIDE_CHOOSE_H

#include <stdint.h>

#include "decide/msc.h"
#include "decide/prng.h"
#include "decide/region.h"
#include "decide/tunable.h"

enum choose_rule {
	CHOOSE_PRECISE,
	CHOOSE_APPROX,
	CHOOSE_RANDOM,
	CHOOSE_OLDEST,
	CHOOSE_HOTRAP,
	CHOOSE_RULES,
};

struct choose_tunables {
	uint32_t candidates;
};

extern const struct tunable_table choose_tunable_table;

/* Fills in the view of candidate @index in [0, count); false: gone meanwhile, not a candidate. */
typedef bool (*choose_view_fn)(void *ctx, uint64_t index, struct region_view *view);

struct choice {
	struct region_view view;
	struct msc msc;
	double score;
	enum choose_rule rule;	/* that the score is of */
	uint32_t looked_at;	/* candidates scored, for `explain` */
	uint32_t skipped;	/* of them without anything to demote */
};

/* Name of a rule as in the configuration file, NULL beyond the last. */
const char *choose_rule_name(enum choose_rule rule);

/*
 * Picks among @count regions.  0, or -ENOENT when no candidate drawn had anything to
 * demote.  Ties go to the candidate drawn first.
 */
int choose_region(struct choice *out, enum choose_rule rule,
		  const struct choose_tunables *t, const struct msc_tunables *msc,
		  uint64_t count, choose_view_fn view, void *ctx, struct prng *prng);

#endif
