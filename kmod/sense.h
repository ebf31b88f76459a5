/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a policy learns and may mark, beside orders: trace.c, ranges.c,
 * events.c, summary.c.
 */
#ifndef DM_TERRACE_SENSE_H
#define DM_TERRACE_SENSE_H

#include "../uapi/terrace.h"
#include "terrace.h"
#include "trace.h"

/* --- trace.c ------------------------------------------------------------------- */

struct tr_io;

/* Whose access is told, now: what a worker must know that goes on with it. */
u32 tr_sense_who(struct terrace *tr);
void tr_sense_hit(struct terrace *tr, struct bio *bio, u64 block, u32 count, u32 op, u32 where);
void tr_sense_rare(struct terrace *tr, struct bio *bio, u64 block, u32 count, u32 op, u32 where);
/* It ends, and was timed. */
void tr_sense_end(struct tr_io *io, const struct bio *bio);

/*
 * Of a bio of the volume itself. Any context. Costs a nop while nobody listens, and little for a hit or a write that is left
 * out, as most are: told is one in heat_sample of this CPU's.
 */
static inline void tr_sense(struct terrace *tr, struct bio *bio, u64 block, u32 count, u32 op,
			    u32 where)
{
	if (!trace_terrace_access_enabled())
		return;
	if (op == TERRACE_OP_DISCARD || (op == TERRACE_OP_READ && where & (TERRACE_WHERE_SLOW | TERRACE_WHERE_NOWHERE)))
		tr_sense_rare(tr, bio, block, count, op, where);
	else if (!(this_cpu_inc_return(tr->stats->accesses) % tr_tune(tr, TR_TUNE_HEAT_SAMPLE)))
		tr_sense_hit(tr, bio, block, count, op, where);
}

static inline u32 tr_where(const struct terrace *tr, u32 t)
{
	return t | (tr->tier[t].kind == TERRACE_KIND_SLOTS ? 0 : TERRACE_WHERE_SLOW);
}

static inline u32 tr_dev(const struct terrace *tr)
{
	return disk_devt(dm_disk(tr->md));
}

/* --- ranges.c: pins and hints ---------------------------------------------------- */

/* Marks (BIT(TERRACE_RANGE_*)) of a block; look at tr->ranges first. Any context. */
u32 tr_ranges_marks(struct terrace *tr, u64 block);
/* Which blocks of a region have one of @marks; none: false, and @mask is zero. */
bool tr_ranges_mask(struct terrace *tr, u64 region, u32 marks, u64 *mask);
/* They are: marked DEAD no longer, a little later. Look at tr->ranges first. Any context. */
void tr_ranges_written(struct terrace *tr, u64 block, u32 nr);
void tr_ranges_exit(struct terrace *tr);

/* New writes go past the fast tiers. */
#define TR_MARKS_COLD	(BIT(TERRACE_RANGE_HINT_COLD) | BIT(TERRACE_RANGE_PIN_SLOW))

/* --- events.c ---------------------------------------------------------------------- */

#define TR_NO_TIER	(~0u)
#define TR_NO_REGION	(~0ull)

/* To all that have the control device open. Any context. */
void tr_event(struct terrace *tr, enum terrace_event_type type, u32 tier, u64 region, u64 value);
/* Has a process claimed to drive? */
bool tr_is_driven(struct terrace *tr);
/* Is it this one? Any context. */
bool tr_drives(struct terrace *tr, u32 tgid);

/* --- failing.c --------------------------------------------------------------------- */

/* A tier that begins to fail is told. Any context. */
void tr_tier_failed(struct terrace *tr, struct tr_tier *tier, int err);
/* ... whosever it is; for bios that have ended with an error, and name the drive. True: it is one of
 * the drive, or of the way to it.
 */
bool tr_bio_failed(const struct bio *bio);
int tr_tier_flush(struct terrace *tr, struct tr_tier *tier);
void tr_failing_watch(struct terrace *tr);
void tr_failing_unwatch(struct terrace *tr);

/* --- summary.c ----------------------------------------------------------------------- */

struct vm_area_struct;
/* From @page of the array on, which is made if need be. Sleeps. */
int tr_summary_map(struct terrace *tr, struct vm_area_struct *vma, unsigned long page);
u64 tr_summary_bytes(struct terrace *tr);
void tr_summary_exit(struct terrace *tr);
void tr_summary_tick(struct terrace *tr);		/* ages */
void tr_summary_wake(struct terrace *tr);		/* looks at what is marked */
void tr_summary_now(struct terrace *tr, u64 region);	/* brings one up to date; sleeps */

#endif
