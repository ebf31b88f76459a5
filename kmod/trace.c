// SPDX-License-Identifier: GPL-2.0
/* The tracepoints themselves, made once; and which accesses are told. */
#include <linux/blkdev.h>

#include "sense.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/*
 * Hits are sampled, one in heat_sample of this CPU's bios. Never left out is
 * what is rare and tells most: a read that a slow tier had to serve, and a
 * discard, behind which the block's heat means nothing any more.
 */
void tr_sense_access(struct terrace *tr, const struct bio *bio, u64 block, u32 count, u32 op,
		     u32 where)
{
	u32 sample = tr_tune(tr, TR_TUNE_HEAT_SAMPLE);

	bool hit = op == TERRACE_OP_WRITE ||
		   (op == TERRACE_OP_READ && !(where & (TERRACE_WHERE_SLOW | TERRACE_WHERE_NOWHERE)));

	if (hit && this_cpu_inc_return(tr->stats->accesses) % sample)
		return;
	if (unlikely(READ_ONCE(tr->ranges)) &&
	    tr_ranges_marks(tr, block) & BIT(TERRACE_RANGE_HINT_NOHEAT))
		return;
	trace_terrace_access(bio_dev(bio), block, count, op, where);
}
