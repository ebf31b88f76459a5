// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The pinning threshold of the clock climbs hills by itself (decide/climb.h): once in an epoch of the
 * governor it hears how good the epoch was, and the mapper pins more or less.  RALT tunes its hot
 * set itself, the list has nothing to tune: with them nothing happens here.
 *
 *	score = share of reads served fast - time the moves took / time all reads would take if slow
 *
 * The configured value is where it starts; one outside climb.min..max is left as it is.  A reload that changes neither
 * that value nor the climb leaves it where it is.
 */
#include "loop/engine.h"

#include <string.h>

void threshold_init(struct engine *e)
{
	e->climb_from = e->c.tuning.mapper.pinning_threshold;
	e->climbs = e->warmth.kind == HEAT_CLOCK && e->senses &&
		    !climb_init(&e->climb, &e->c.tuning.climb, e->c.tuning.mapper.pinning_threshold);
	e->climb_reads = e->state.reads;
	e->climb_fast_reads = e->state.fast_reads;
	e->moved_ns = 0;
}

void threshold_retune(struct engine *e, const struct tuning *before)
{
	if (e->climbs && e->c.tuning.mapper.pinning_threshold == e->climb_from &&
	    !memcmp(&e->c.tuning.climb, &before->climb, sizeof(before->climb)))
		e->c.tuning.mapper.pinning_threshold = before->mapper.pinning_threshold;
	else
		threshold_init(e);
}

static double score(const struct engine *e, double reads, double fast)
{
	double slow_ns = limits_read_ns(e, e->down);

	return fast / reads - e->moved_ns / (reads * slow_ns);
}

void threshold_step(struct engine *e)
{
	double reads = (double)(e->state.reads - e->climb_reads);
	double fast = (double)(e->state.fast_reads - e->climb_fast_reads);

	/* Whatever read_share is: of no reads there is no share that was fast. */
	if (e->climbs && reads > 0 && reads >= e->c.tuning.climb.read_share * (double)e->c.tuning.governor.epoch_ops)
		e->c.tuning.mapper.pinning_threshold =
			climb_step(&e->climb, &e->c.tuning.climb, score(e, reads, fast));
	e->climb_reads = e->state.reads;
	e->climb_fast_reads = e->state.fast_reads;
	e->moved_ns = 0;
}
