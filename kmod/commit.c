// SPDX-License-Identifier: GPL-2.0
/*
 * Commits: making records durable, in rounds, one round at a time.
 *
 *   1  take the open blocks and the bios that wait
 *   2  owner blocks of the shelves that the records point into
 *   3  flush the tiers that the records point to; all written ones if a flush
 *      waits
 *   4  write the blocks into the ring, FUA, on both copies
 *   5  durable_record moves up, the bios end
 *   6  apply the records to the chunks' committed bitmaps (between rounds)
 *   7  grace period, then the old places are free (free_work)
 *
 * Crash arguments:
 *   3 before 4: a durable record must not point to data that are not. One
 *     copy on tier t: the journal write is PREFLUSH|FUA, which flushes t
 *     first, the other tiers are flushed and awaited before. Two copies:
 *     every tier is, because otherwise the mirror's journal block could be
 *     durable while the primary's PREFLUSH still runs, and recovery believes
 *     the longer copy. If the blocks fall into two ranges (end of the ring)
 *     the first, with the PREFLUSH, is awaited before the second is sent.
 *   4 before 5: what is acknowledged is on every copy in use.
 *   5 before 7: a place may be written again only when its freeing is
 *     durable, and when nobody who looked it up before still writes there.
 *
 * A flush covers the writes that ended before it was sent. Their ends set
 * tier->unflushed before the layer above saw them; it is taken away (xchg)
 * before the flush is sent and set again if that fails. A bio that comes
 * while a round runs waits for the next.
 *
 * No round for a flush that has nothing to do: no record is open or on its
 * way, and no tier that was written has a volatile cache. Why nothing is lost:
 *
 *   - W is a write that ended before flush F came. Did W make a mapping, its
 *     record was appended (journal.lock) before W ended. F looks under that
 *     lock: the record is in an open block, or `committing` stands and a round
 *     has it (both set in round_take() in one step; a round that fails puts
 *     its blocks back before it ends), or it is durable. Only the last is idle.
 *   - W went in place, to a tier without a volatile cache: what that drive has
 *     acknowledged is durable. The block layer would end a flush of it at once.
 *   - W went to a tier with one: the mark is there, or a direct flush that came
 *     after W is under way; F makes a round, or goes to the drive itself.
 *   - The cache is switched on in sysfs (write_cache) after W: the mark still
 *     stands, for only a flush that was sent takes it away; the next F flushes.
 *     Switched off with W unflushed: that is the user's word that no flush is
 *     needed, and the block layer would not pass one on either.
 *   - A FUA write that waits here for a commit (its mapping was not durable) is
 *     idle only when all records are, and every tier is flushed: data in a fresh
 *     place were written without FUA, and their record may have become durable
 *     without them (hold_back()).
 *
 * Direct: a flush that finds no record open or on its way, and one tier only that
 * it could mean, is sent there from map(). It takes the mark away and counts in
 * tier->flushing until it has ended: whoever needs that tier flushed meanwhile, a
 * later flush or a round whose records point there, sends one of his own. Mark
 * and count change in one step, under journal.lock; one that failed sets the
 * mark again.
 */
#include <linux/slab.h>

#include "io.h"
#include "meta.h"
#include "sense.h"

#define FLUSH_TRIES	3	/* rounds that wait for a tier which does not flush */

struct tr_commit {
	struct bio *bio[TERRACE_MAX_TIERS];	/* flushes of the tiers */
	u8 failures[TERRACE_MAX_TIERS];		/* in a row */
	atomic_t pending;
	struct completion done;
};

struct round {
	struct list_head blocks;
	struct bio_list flushes, fuas;
	struct tr_journal_link link;	/* behind the last block */
	u64 last;			/* its last record */
	u32 tiers;
	bool unsealed;			/* not writable: there are records beyond */
};

/* --- 1: what the round is about -------------------------------------------- */

static bool round_take(struct terrace *tr, struct round *r)
{
	struct tr_journal *j = &tr->journal;
	bool some;

	INIT_LIST_HEAD(&r->blocks);
	if (!tr_journal_may_seal(j))
		tr_journal_apply(tr, true);	/* buffers come back */
	tr_journal_lock_sealed(tr);
	list_splice_init(&j->open, &r->blocks);
	r->unsealed = j->cur;
	if (j->cur)
		list_move(&j->cur->list, &j->open);
	r->tiers = j->tiers;
	j->tiers = 0;
	r->flushes = j->flushes;
	r->fuas = j->fuas;
	bio_list_init(&j->flushes);
	bio_list_init(&j->fuas);
	r->link = j->link;
	r->last = j->link.record_seq - 1;
	j->timer_armed = false;
	some = !list_empty(&r->blocks) || !bio_list_empty(&r->flushes) ||
	       !bio_list_empty(&r->fuas);
	j->committing = some;
	spin_unlock_irq(&j->lock);
	return some;
}

/* The blocks go back to the front; the next round tries again. */
static void round_return(struct terrace *tr, struct round *r)
{
	struct tr_journal *j = &tr->journal;

	spin_lock_irq(&j->lock);
	list_splice_init(&r->blocks, &j->open);
	j->tiers |= r->tiers;
	j->timer_armed = true;
	spin_unlock_irq(&j->lock);
	if (tr_writable(tr))	/* commit_ms may be a minute, and a stop waits for this */
		mod_delayed_work(tr->commit_wq, &j->timer_work,
				 min_t(unsigned long, tr_commit_delay(tr), HZ));
}

/* --- 3: flushing tiers ----------------------------------------------------- */

static void flush_end(struct bio *bio)
{
	struct tr_commit *commit = bio->bi_private;

	if (bio->bi_status)
		tr_bio_failed(bio);
	if (atomic_dec_and_test(&commit->pending))
		complete(&commit->done);
}

static void flush_send(struct terrace *tr, struct tr_tier *tier)
{
	struct tr_commit *commit = tr->journal.commit;
	struct bio *bio = commit->bio[tier->number];

	bio_init(bio, tier->bdev, NULL, 0, REQ_OP_WRITE | REQ_PREFLUSH | REQ_SYNC);
	bio->bi_end_io = flush_end;
	bio->bi_private = commit;
	atomic_inc(&commit->pending);
	submit_bio(bio);
}

/* Written since its last flush, or that has not ended, and the drive may have it in a
 * volatile cache only. Asked each time, for sysfs can change it.
 */
static bool needs_flush__f(const struct tr_tier *tier)
{
	return (READ_ONCE(tier->unflushed) || tier->flushing) && !tier->missing &&
	       bdev_write_cache(tier->bdev);
}

/* Whoever ends a write from here on sets the mark anew. What ended before is covered by
 * the flush that the caller sends next, if it was needed. (Partner: tr_io_end.)
 */
static bool take_unflushed(struct terrace *tr, struct tr_tier *tier)
{
	unsigned long flags;
	bool needed;

	spin_lock_irqsave(&tr->journal.lock, flags);
	needed = needs_flush__f(tier);
	if (needed)
		xchg(&tier->unflushed, false);
	spin_unlock_irqrestore(&tr->journal.lock, flags);
	return needed;
}

/* Flushes the tiers in @mask that were written. Mask of those that failed. */
static u32 flush_tiers(struct terrace *tr, u32 mask)
{
	struct tr_commit *commit = tr->journal.commit;
	u32 t, sent = 0, failed = 0;

	atomic_set(&commit->pending, 1);
	reinit_completion(&commit->done);
	for (t = 0; t < tr->nr_tiers; t++) {
		struct tr_tier *tier = &tr->tier[t];

		if (!(mask & BIT(t)) || !take_unflushed(tr, tier))
			continue;
		flush_send(tr, tier);
		sent |= BIT(t);
	}
	if (!atomic_dec_and_test(&commit->pending))
		wait_for_completion_io(&commit->done);
	for (t = 0; t < tr->nr_tiers; t++) {
		if (!(sent & BIT(t)))
			continue;
		if (commit->bio[t]->bi_status) {
			WRITE_ONCE(tr->tier[t].unflushed, true);
			DMERR_LIMIT("%s: flush of tier %u failed (%d)", tr->name, t,
				    blk_status_to_errno(commit->bio[t]->bi_status));
			failed |= BIT(t);
		}
		commit->failures[t] = failed & BIT(t) ? min(commit->failures[t] + 1, 255) : 0;
		bio_uninit(commit->bio[t]);
	}
	return failed;
}

/* The tier whose flush the journal write itself can carry, or nr_tiers. */
static u32 carried_tier(struct terrace *tr)
{
	u32 c = tr_meta_live(tr, 0) ? 0 : 1;

	if (tr_meta_nr_live(tr) != 1 || tr->meta[c].tier >= tr->nr_tiers)
		return tr->nr_tiers;
	return tr->meta[c].tier;
}

/* --- 4: the ring ----------------------------------------------------------- */

/* Sends the blocks from @first on that lie in one range; returns the next. */
static struct tr_journal_block *write_range(struct terrace *tr, struct tr_meta_io *io,
					    struct list_head *blocks,
					    struct tr_journal_block *first, blk_opf_t opf)
{
	u64 at = tr_ring_block(tr, first->block_seq);
	struct tr_journal_block *block = first;
	u32 n = 0, c, k;

	list_for_each_entry_from(block, blocks, list) {
		if (n == TR_JOURNAL_IN_FLIGHT || tr_ring_block(tr, block->block_seq) != at + n)
			break;
		n++;
	}
	for (c = 0; c < TR_COPIES; c++) {
		struct bio *bio;

		if (!tr_meta_live(tr, c))
			continue;
		bio = tr_meta_bio(tr, io, c, REQ_OP_WRITE | REQ_SYNC | opf, at, n);
		for (k = 0, block = first; k < n; k++, block = list_next_entry(block, list))
			tr_meta_add(bio, block->data);
		submit_bio(bio);
	}
	for (k = 0, block = first; k < n; k++)
		block = list_next_entry(block, list);
	return list_entry_is_head(block, blocks, list) ? NULL : block;
}

/*
 * One range after the other. Crash scenario: a round of 500 blocks is under way, the
 * power fails, block 3 did not arrive, 200 did. For activation the journal ends before
 * 3, and nobody was told of the rest. To the tools it looks like a journal damaged in
 * its middle: they would call a sound volume damaged, or its blocks doubtful.
 */
static int write_ring(struct terrace *tr, struct list_head *blocks, bool preflush)
{
	struct tr_journal_block *next = list_first_entry(blocks, struct tr_journal_block, list);
	blk_opf_t opf = REQ_FUA | (preflush ? REQ_PREFLUSH : 0);
	struct tr_meta_io io;
	int err = 0;

	BUILD_BUG_ON(TR_JOURNAL_IN_FLIGHT > BIO_MAX_VECS);
	for (; next && !err; opf = REQ_FUA) {
		tr_meta_io_start(&io);
		next = write_range(tr, &io, blocks, next, opf);
		err = tr_meta_written(tr, &io, "writing the journal");
	}
	return err;
}

/* --- 5: the bios ----------------------------------------------------------- */

static void end_bios(struct bio_list *bios, int err)
{
	struct bio *bio;

	while ((bio = bio_list_pop(bios))) {
		if (err && !bio->bi_status)
			bio->bi_status = errno_to_blk_status(err);
		bio_endio(bio);
	}
}

static void round_durable(struct terrace *tr, struct round *r)
{
	struct tr_journal *j = &tr->journal;

	spin_lock_irq(&j->lock);
	j->durable = r->link;
	spin_unlock_irq(&j->lock);
	list_splice_tail_init(&r->blocks, &j->written);
	/* Pairs with is_durable(); others only compare numbers. */
	smp_store_release(&j->durable_record, r->last);
}

/*
 * A tier that does not flush: the records pointing to it wait, a few rounds,
 * while those who asked for durability get errors. Then they are written all
 * the same, or a dead drive would stop the whole volume; what was written to
 * it since its last flush was never acknowledged as durable.
 */
static bool hold_back(struct terrace *tr, u32 failed)
{
	u32 t;

	for (t = 0; t < tr->nr_tiers; t++)
		if ((failed & BIT(t)) && tr->journal.commit->failures[t] < FLUSH_TRIES)
			return true;
	return false;
}

/* Tiers whose flushes fail: records of what is in their caches may be durable already. */
static u32 not_flushing(struct terrace *tr)
{
	u32 t, mask = 0;

	for (t = 0; t < tr->nr_tiers; t++)
		if (tr->journal.commit->failures[t])
			mask |= BIT(t);
	return mask;
}

static int round_write(struct terrace *tr, struct round *r)
{
	u32 carried = tr->nr_tiers, failed, mask = r->tiers;
	bool preflush = false;
	int err = 0;

	if (!bio_list_empty(&r->flushes))
		mask = ~0u;
	else if (!bio_list_empty(&r->fuas))
		mask |= not_flushing(tr);
	if ((!list_empty(&r->blocks) || r->unsealed) && !tr_writable(tr)) {
		round_return(tr, r);
		return -EIO;
	}
	if (!list_empty(&r->blocks)) {
		/* Without owner blocks the shelf cannot be read back alone; its
		 * data are as good as ever, so an error stops nobody.
		 */
		tr_shelves_write_owners(tr, r->last);
		carried = carried_tier(tr);
	}
	failed = flush_tiers(tr, mask & ~(carried < tr->nr_tiers ? BIT(carried) : 0));
	if (failed)
		err = -EIO;
	if (list_empty(&r->blocks))
		return err;
	if (hold_back(tr, failed & r->tiers)) {
		round_return(tr, r);
		return err;
	}
	if (carried < tr->nr_tiers && (mask & BIT(carried)))
		preflush = take_unflushed(tr, &tr->tier[carried]);
	if (write_ring(tr, &r->blocks, preflush)) {
		if (preflush)
			WRITE_ONCE(tr->tier[carried].unflushed, true);
		round_return(tr, r);
		return -EIO;
	}
	round_durable(tr, r);
	return err;
}

/* --- the worker ------------------------------------------------------------ */

static bool commit_round(struct terrace *tr)
{
	struct tr_journal *j = &tr->journal;
	struct round r;
	bool records;
	int err;

	if (!round_take(tr, &r))
		return false;
	records = !list_empty(&r.blocks);
	if (records)
		tr_lazy_unclean(tr);
	if (records && (!bio_list_empty(&r.flushes) || !bio_list_empty(&r.fuas)))
		tr_appends_see(tr, &r.blocks);
	err = round_write(tr, &r);
	spin_lock_irq(&j->lock);
	j->committing = false;
	spin_unlock_irq(&j->lock);
	end_bios(&r.flushes, err);
	end_bios(&r.fuas, err);
	wake_up_all(&j->wait);
	if (records && tr_writable(tr)) {
		tr_checkpoint_poke(tr);
		/* Who took the last blocks could not tell that they would be used. */
		tr_janitor_kick(tr);
	}
	return true;
}

static void commit_fn(struct work_struct *work)
{
	struct tr_journal *j = container_of(work, struct tr_journal, commit_work);
	struct terrace *tr = container_of(j, struct terrace, journal);
	u64 began;

	do {
		began = ktime_get_ns();
		commit_round(tr);
		trace_terrace_commit(tr_dev(tr), READ_ONCE(j->durable_record), ktime_get_ns() - began);
		tr_journal_apply(tr, false);
	} while (tr_commit_wanted(j) || !list_empty(&j->written));
}

static void timer_fn(struct work_struct *work)
{
	struct tr_journal *j = container_of(work, struct tr_journal, timer_work.work);

	tr_commit_kick(container_of(j, struct terrace, journal));
}

/* --- from outside ---------------------------------------------------------- */

void tr_commit_kick(struct terrace *tr)
{
	queue_work(tr->commit_wq, &tr->journal.commit_work);
}

/* No record is open or on its way. */
static bool all_durable__f(const struct tr_journal *j)
{
	lockdep_assert_held(&j->lock);
	return !j->cur && !j->committing && list_empty(&j->open);
}

/* Tiers that a flush would have to bring down. Inline: each flush asks. */
static __always_inline u32 to_flush__f(struct terrace *tr)
{
	u32 t, mask = 0;

	for (t = 0; t < tr->nr_tiers; t++)
		if (needs_flush__f(&tr->tier[t]))
			mask |= BIT(t);
	return mask;
}

bool tr_commit_flush(struct terrace *tr, struct tr_io *io, struct bio *bio)
{
	struct tr_journal *j = &tr->journal;
	bool durable, direct = false;
	unsigned long flags;
	u32 mask;

	spin_lock_irqsave(&j->lock, flags);
	durable = all_durable__f(j);
	mask = durable ? to_flush__f(tr) : 0;
	if (is_power_of_2(mask)) {
		io->tier = __ffs(mask);
		io->kind = TR_IO_FLUSH;
		tr->tier[io->tier].flushing++;
		xchg(&tr->tier[io->tier].unflushed, false);
		direct = true;
	} else if (!durable || mask) {
		bio_list_add(&j->flushes, bio);
	}
	spin_unlock_irqrestore(&j->lock, flags);
	if (direct)
		bio_set_dev(bio, tr->tier[io->tier].bdev);
	else if (!durable || mask)
		tr_commit_kick(tr);
	else
		bio_endio(bio);
	return direct;
}

void tr_commit_flushed(struct tr_io *io, blk_status_t status)
{
	struct tr_tier *tier = &io->tr->tier[io->tier];
	struct tr_journal *j = &io->tr->journal;
	unsigned long flags;

	if (status)
		DMERR_LIMIT("%s: flush of tier %u failed (%d)", io->tr->name, io->tier,
			    blk_status_to_errno(status));
	spin_lock_irqsave(&j->lock, flags);
	if (status)
		WRITE_ONCE(tier->unflushed, true);
	tier->flushing--;
	spin_unlock_irqrestore(&j->lock, flags);
}

void tr_commit_fua(struct terrace *tr, struct bio *bio)
{
	struct tr_journal *j = &tr->journal;
	unsigned long flags;
	bool idle;

	spin_lock_irqsave(&j->lock, flags);
	idle = all_durable__f(j) && !to_flush__f(tr);
	if (!idle) {
		bio_list_add(&j->fuas, bio);
		/* Under the lock: no round ends the bio before, and with the last one the volume. */
		tr_commit_kick(tr);
	}
	spin_unlock_irqrestore(&j->lock, flags);
	if (idle)
		bio_endio(bio);
}

static bool is_durable(const struct tr_journal *j, u64 record)
{
	/* Pairs with the release in round_durable(). */
	return smp_load_acquire(&j->durable_record) >= record;
}

int tr_commit(struct terrace *tr)
{
	struct tr_journal *j = &tr->journal;
	u64 last;

	spin_lock_irq(&j->lock);
	last = j->next_record - 1;
	spin_unlock_irq(&j->lock);
	if (is_durable(j, last))
		return 0;
	tr_commit_kick(tr);
	wait_event(j->wait, is_durable(j, last) || !tr_writable(tr));
	return is_durable(j, last) ? 0 : -EIO;
}

int tr_commit_init(struct terrace *tr)
{
	struct tr_journal *j = &tr->journal;
	u32 t;

	INIT_WORK(&j->commit_work, commit_fn);
	INIT_DELAYED_WORK(&j->timer_work, timer_fn);
	j->commit = kzalloc(sizeof(*j->commit), GFP_KERNEL);
	if (!j->commit)
		return -ENOMEM;
	init_completion(&j->commit->done);
	for (t = 0; t < tr->nr_tiers; t++) {
		j->commit->bio[t] = bio_kmalloc(0, GFP_KERNEL);
		if (!j->commit->bio[t])
			return -ENOMEM;
	}
	return tr_apply_init(tr);
}

void tr_commit_exit(struct terrace *tr)
{
	struct tr_journal *j = &tr->journal;
	u32 t;

	if (!j->commit)
		return;
	cancel_delayed_work_sync(&j->timer_work);
	cancel_work_sync(&j->commit_work);
	tr_apply_exit(tr);
	for (t = 0; t < TERRACE_MAX_TIERS; t++)
		kfree(j->commit->bio[t]);
	kfree(j->commit);
	j->commit = NULL;
}
