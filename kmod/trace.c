// SPDX-License-Identifier: GPL-2.0
/* The tracepoints themselves, made once; and which accesses are told. */
#include <linux/blkdev.h>

#include "io.h"
#include "sense.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/* Hits: how long they take is asked of one in so many, and of no more than one in four that are told. */
#define TIME_SAMPLE	16

/* By its first part, if it is in parts. */
static void time_it(struct tr_io *io, u8 tier)
{
	if (io->timed)
		return;
	io->timed = true;
	io->told_tier = tier;
	io->since = ktime_get_ns();
}

/*
 * Hits are sampled, one in heat_sample of this CPU's bios. Told each, unless slow_sample says otherwise, is
 * what is rare and tells most: a read that a slow tier had to serve. Never left out is a
 * discard, behind which the block's heat means nothing any more.
 */
static bool is_left_out(struct terrace *tr, u32 op, u32 where, bool *timed)
{
	bool hit = op == TERRACE_OP_WRITE || !(where & (TERRACE_WHERE_SLOW | TERRACE_WHERE_NOWHERE));
	u32 n, rate;

	*timed = op != TERRACE_OP_DISCARD && !(where & TERRACE_WHERE_NOWHERE);
	if (op == TERRACE_OP_DISCARD)
		return false;
	if (!hit)
		return this_cpu_inc_return(tr->stats->slow_accesses) % tr_tune(tr, TR_TUNE_SLOW_SAMPLE);
	n = this_cpu_inc_return(tr->stats->accesses);
	rate = tr_tune(tr, TR_TUNE_HEAT_SAMPLE);
	if (n % rate)
		return true;
	*timed &= !(n % max_t(u32, TIME_SAMPLE, 4 * rate));
	return false;
}

/* On its own, for most accesses are left out and need none of its registers saved. */
static noinline void tell(struct terrace *tr, struct bio *bio, u64 block, u32 count, u32 op, u32 where, bool timed)
{
	if (op != TERRACE_OP_DISCARD && unlikely(READ_ONCE(tr->ranges)) &&
	    tr_ranges_marks(tr, block) & BIT(TERRACE_RANGE_HINT_NOHEAT))
		return;
	if (timed && trace_terrace_end_enabled())
		time_it(tr_io_of(bio), where & TERRACE_WHERE_TIER);
	trace_terrace_access(bio_dev(bio), block, count, op, where, tr_io_of(bio)->thread ?: current->pid);
}

void tr_sense_access(struct terrace *tr, struct bio *bio, u64 block, u32 count, u32 op, u32 where)
{
	bool timed;

	if (!is_left_out(tr, op, where, &timed))
		tell(tr, bio, block, count, op, where, timed);
}

void tr_sense_end(struct tr_io *io, const struct bio *bio)
{
	trace_terrace_end(tr_dev(io->tr), io->told_tier,
			  op_is_write(bio_op(bio)) ? TERRACE_OP_WRITE : TERRACE_OP_READ,
			  ktime_get_ns() - io->since);
}
