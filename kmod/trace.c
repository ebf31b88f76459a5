// SPDX-License-Identifier: GPL-2.0
/* The tracepoints themselves, made once; and which accesses are told. */
#include <linux/blkdev.h>

#include "io.h"
#include "sense.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/* Hits: how long they take is asked of one in so many, and of no more than one in four that are told. */
#define TIME_SAMPLE	16
/* Of what is rare, as many a jiffy: of disks each, of flash, which serves dozens in one, those tell enough. */
#define TIMED_SLOW	4

/* By its first part, if it is in parts. */
static void time_it(struct tr_io *io, u32 where)
{
	if (io->timed || !trace_terrace_end_enabled())
		return;
	io->timed = true;
	io->told_tier = where & TERRACE_WHERE_TIER;
	io->since = ktime_get_ns();
}

/* Nobody's: who drives looks at blocks, but does not use them. Not a thread's number. */
#define NOBODY		(~0u)

u32 tr_sense_who(struct terrace *tr)
{
	return tr_drives(tr, current->tgid) ? NOBODY : current->pid;
}

static u32 who_of(struct terrace *tr, struct bio *bio)
{
	return tr_io_of(bio)->thread ?: tr_sense_who(tr);
}

/* Not what heats nothing. A discard always is: behind it the block's heat means nothing any more. */
static bool is_told(struct terrace *tr, u32 who, u64 block, u32 op)
{
	if (op == TERRACE_OP_DISCARD)
		return true;
	if (who == NOBODY)
		return false;
	return likely(!READ_ONCE(tr->ranges)) || !(tr_ranges_marks(tr, block) & BIT(TERRACE_RANGE_HINT_NOHEAT));
}

void tr_sense_hit(struct terrace *tr, struct bio *bio, u64 block, u32 count, u32 op, u32 where)
{
	u32 n = this_cpu_read(tr->stats->accesses), rate = tr_tune(tr, TR_TUNE_HEAT_SAMPLE), who = who_of(tr, bio);

	if (!is_told(tr, who, block, op))
		return;
	if (!(where & TERRACE_WHERE_NOWHERE) && !(n % max_t(u32, TIME_SAMPLE, 4 * rate)))
		time_it(tr_io_of(bio), where);
	trace_terrace_access(bio_dev(bio), block, count, op, where, who);
}

static bool few_timed(struct terrace *tr)
{
	unsigned long now = jiffies;

	if (this_cpu_read(tr->stats->slow_jiffy) != now) {
		this_cpu_write(tr->stats->slow_jiffy, now);
		this_cpu_write(tr->stats->slow_timed, 0);
	}
	return this_cpu_inc_return(tr->stats->slow_timed) <= TIMED_SLOW;
}

/* Told each, unless slow_sample says otherwise, is what is rare and tells most: a read that a slow tier had to serve. */
void tr_sense_rare(struct terrace *tr, struct bio *bio, u64 block, u32 count, u32 op, u32 where)
{
	u32 who;

	if (op != TERRACE_OP_DISCARD && this_cpu_inc_return(tr->stats->slow_accesses) % tr_tune(tr, TR_TUNE_SLOW_SAMPLE))
		return;
	who = who_of(tr, bio);
	if (!is_told(tr, who, block, op))
		return;
	if (op != TERRACE_OP_DISCARD && !(where & TERRACE_WHERE_NOWHERE) && few_timed(tr))
		time_it(tr_io_of(bio), where);
	trace_terrace_access(bio_dev(bio), block, count, op, where, who);
}

void tr_sense_end(struct tr_io *io, const struct bio *bio)
{
	trace_terrace_end(tr_dev(io->tr), io->told_tier,
			  op_is_write(bio_op(bio)) ? TERRACE_OP_WRITE : TERRACE_OP_READ,
			  ktime_get_ns() - io->since);
}
