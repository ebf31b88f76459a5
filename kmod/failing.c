// SPDX-License-Identifier: GPL-2.0
/*
 * A tier that begins to fail, told once: by the first error of a drive after a while
 * without any. Whoever ends a bio that failed comes by here, in whatever context, so
 * it is the drive's own word; a wrong checksum, no room, or an error that we make of these
 * is none. What it means for the blocks that were asked for is told elsewhere.
 *
 * Bursts (rw.c) do not know whose bios they are: the drive tells, by the list of volumes
 * that live.
 */
#include <linux/blkdev.h>
#include <linux/rculist.h>

#include "sense.h"
#include "terrace.h"

#define QUIET	(30 * HZ)	/* without an error: the next is news again */

static LIST_HEAD(watched);
static DEFINE_SPINLOCK(watched_lock);

/* Errors of drives and of the way to them. */
static bool is_failure(blk_status_t status)
{
	return status == BLK_STS_IOERR || status == BLK_STS_MEDIUM || status == BLK_STS_TARGET ||
	       status == BLK_STS_TRANSPORT || status == BLK_STS_OFFLINE || status == BLK_STS_TIMEOUT ||
	       status == BLK_STS_PROTECTION;
}

void tr_tier_failed(struct terrace *tr, struct tr_tier *tier, int err)
{
	unsigned long last = xchg(&tier->failed_at, jiffies | 1);
	u64 errors = atomic64_inc_return(&tier->io_errors);

	if (last && time_before(jiffies, last + QUIET))
		return;
	DMERR("%s: tier %u begins to fail (%d): %llu errors of its drive so far", tr->name,
	      tier->number, err, errors);
	tr_event(tr, TERRACE_EVENT_FAILING, tier->number, TR_NO_REGION, errors);
}

static bool failed_in(struct terrace *tr, const struct bio *bio)
{
	u32 t;

	for (t = 0; t < tr->nr_tiers; t++)
		if (tr->tier[t].bdev == bio->bi_bdev) {
			tr_tier_failed(tr, &tr->tier[t], blk_status_to_errno(bio->bi_status));
			return true;
		}
	return false;
}

bool tr_bio_failed(const struct bio *bio)
{
	struct terrace *tr;

	if (!bio->bi_bdev || op_is_discard(bio_op(bio)) || !is_failure(bio->bi_status))
		return false;
	rcu_read_lock();	/* tr_failing_unwatch() waits for it */
	list_for_each_entry_rcu(tr, &watched, watched)
		if (failed_in(tr, bio))
			break;
	rcu_read_unlock();
	return true;
}

int tr_tier_flush(struct terrace *tr, struct tr_tier *tier)
{
	int err = blkdev_issue_flush(tier->bdev);

	if (is_failure(errno_to_blk_status(err)))
		tr_tier_failed(tr, tier, err);
	return err;
}

void tr_failing_watch(struct terrace *tr)
{
	spin_lock(&watched_lock);
	list_add_rcu(&tr->watched, &watched);
	spin_unlock(&watched_lock);
}

void tr_failing_unwatch(struct terrace *tr)
{
	if (list_empty(&tr->watched))
		return;
	spin_lock(&watched_lock);
	list_del_rcu(&tr->watched);
	spin_unlock(&watched_lock);
	synchronize_rcu();
	INIT_LIST_HEAD(&tr->watched);
}
