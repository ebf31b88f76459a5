// SPDX-License-Identifier: GPL-2.0
/*
 * Credits for map pages. A region that gets its first block will need a page,
 * and directories above it. Whether the pages area has room for them is asked
 * before the block is written: the checkpoint that comes for the page can
 * refuse nobody. See Documentation/decisions/0024-room-for-map-pages.md.
 *
 * At all times, in blocks of the area (where there can be more regions than
 * it has room for):
 *
 *	durable + new + directories above new + kept <= area
 *
 *   durable   what the last durable superblock refers to
 *   new       regions that this superblock has no page of and that have a
 *             block, or a write on its way: each has taken a credit. Those
 *             whose page the tree in memory names already are `named` as well
 *   kept      what the checkpoint itself must always find (core/geometry.c)
 *
 * A region with blocks, or with promises to writers (reserved), is PAGED (the
 * tree in memory names its page) or has a CREDIT. Both change under its lock:
 * CREDIT where promises are made and kept, PAGED where a checkpoint learns that
 * its page is, or is no longer, in the tree. Regions that lie in recovery's
 * deltas count as new.
 *
 * Who gets no credit waits here, for a checkpoint that began after him.
 */
#include "io.h"
#include "meta.h"
#include "sense.h"

#define LOOK_AGAIN	HZ

/* --- taken and given back ---------------------------------------------------- */

static u64 all_new__f(const struct terrace *tr)
{
	lockdep_assert_held(&tr->credits.lock);
	return tr->credits.taken + atomic64_read(&tr->recovery->nr_deltas);
}

static bool fits__f(const struct terrace *tr)
{
	const struct tr_credits *c = &tr->credits;

	return !c->scarce ||
	       c->durable + tr_pages_of_new(all_new__f(tr) + 1, c->regions) + c->kept <= c->area;
}

static void take__f(struct terrace *tr, struct tr_region *region)
{
	lockdep_assert_held(&region->lock);
	lockdep_assert_held(&tr->credits.lock);
	region->flags |= TR_REGION_CREDIT;
	tr->credits.taken++;
}

bool tr_credit_take__f(struct terrace *tr, struct tr_region *region)
{
	unsigned long flags;
	bool fits;

	lockdep_assert_held(&region->lock);
	spin_lock_irqsave(&tr->credits.lock, flags);
	fits = fits__f(tr);
	if (fits)
		take__f(tr, region);
	spin_unlock_irqrestore(&tr->credits.lock, flags);
	return fits;
}

void tr_credit_force__f(struct terrace *tr, struct tr_region *region)
{
	unsigned long flags;

	lockdep_assert_held(&region->lock);
	if (region->flags & (TR_REGION_PAGED | TR_REGION_CREDIT))
		return;
	spin_lock_irqsave(&tr->credits.lock, flags);
	take__f(tr, region);
	spin_unlock_irqrestore(&tr->credits.lock, flags);
}

/* It has blocks, or packs, or will have. */
static bool needs_page__f(const struct tr_region *region)
{
	const struct tr_packs *packs = tr_region_packs(region);

	return region->reserved || region->leaf.nr || (packs && packs->nr);
}

/* If it is dirty a checkpoint comes, and asks again. */
void tr_credit_settle__f(struct terrace *tr, struct tr_region *region)
{
	unsigned long flags;

	lockdep_assert_held(&region->lock);
	if (likely(!(region->flags & TR_REGION_CREDIT)) || needs_page__f(region) ||
	    region->flags & (TR_REGION_DIRTY | TR_REGION_WRITING))
		return;
	region->flags &= ~TR_REGION_CREDIT;
	spin_lock_irqsave(&tr->credits.lock, flags);
	tr->credits.taken--;
	spin_unlock_irqrestore(&tr->credits.lock, flags);
}

/* --- what the checkpoint has done ---------------------------------------------- */

void tr_credit_named__f(struct terrace *tr, struct tr_region *region, bool page)
{
	unsigned long flags;

	lockdep_assert_held(&region->lock);
	lockdep_assert_held(&tr->checkpoint_mutex);
	if (!page) {
		region->flags &= ~TR_REGION_PAGED;
		/* Blocks came meanwhile, or will, for which its page was the promise. */
		if (needs_page__f(region))
			tr_credit_force__f(tr, region);
		else
			tr_credit_settle__f(tr, region);
		return;
	}
	if (region->flags & TR_REGION_CREDIT) {
		spin_lock_irqsave(&tr->credits.lock, flags);
		tr->credits.named++;
		spin_unlock_irqrestore(&tr->credits.lock, flags);
	}
	region->flags &= ~TR_REGION_CREDIT;
	region->flags |= TR_REGION_PAGED;
}

void tr_credit_settled(struct terrace *tr)
{
	lockdep_assert_held(&tr->checkpoint_mutex);
	spin_lock_irq(&tr->credits.lock);
	tr->credits.taken++;
	tr->credits.named++;
	spin_unlock_irq(&tr->credits.lock);
}

void tr_credits_durable(struct terrace *tr, const struct tr_super *super, u64 blocks)
{
	u64 regions = tr_nr_regions(tr), kept = tr_pages_kept(super, regions);
	bool scarce = tr_pages_scarce(super, regions);
	struct tr_credits *c = &tr->credits;
	bool room;

	/* In one step: who takes one must not see the sum without what has been named. */
	spin_lock_irq(&c->lock);
	c->area = super->meta_blocks;
	c->regions = regions;
	c->kept = kept;
	c->scarce = scarce;
	c->durable = blocks;
	c->taken -= c->named;
	c->named = 0;
	room = c->told && blocks + kept < c->area / 16 * 15;
	c->told &= !room;
	spin_unlock_irq(&c->lock);
	if (room)
		tr_event(tr, TERRACE_EVENT_ROOM, TR_NO_TIER, TR_NO_REGION, 0);
}

/* --- without one ------------------------------------------------------------------ */

u64 tr_credits_looked(struct terrace *tr)
{
	return READ_ONCE(tr->credits.ended);
}

static void again_fn(struct work_struct *work)
{
	tr_checkpoint_kick(container_of(work, struct terrace, credits.again.work));
}

/* What becomes of a bio that has found no room: OK: it waits. */
static blk_status_t verdict__f(struct terrace *tr, struct tr_io *io)
{
	struct tr_credits *c = &tr->credits;

	lockdep_assert_held(&c->lock);
	/* Who ends the waiting (read-only, noflush) sets his mark first. */
	if (!tr_writable(tr))
		return BLK_STS_IOERR;
	if (READ_ONCE(tr->noflush))
		return BLK_STS_DM_REQUEUE;
	if (!io->asked || c->ended < io->asked)
		return BLK_STS_OK;
	if (io->looked < io->asked)
		return BLK_STS_AGAIN;	/* that checkpoint has ended since it looked */
	return tr_tune(tr, TR_TUNE_QUEUE_IF_FULL) ? BLK_STS_OK : BLK_STS_NOSPC;
}

static void tell(struct terrace *tr)
{
	struct tr_credits *c = &tr->credits;

	DMWARN("%s: no room for the map pages of more regions: of %llu blocks %llu are in use, %llu kept for checkpoints",
	       tr->name, READ_ONCE(c->area), READ_ONCE(c->durable), READ_ONCE(c->kept));
	tr_event(tr, TERRACE_EVENT_ROOM, TR_NO_TIER, TR_NO_REGION, 1);
}

/*
 * Waits for the next checkpoint to begin, which is asked for at once; if it has done so already
 * to no avail, for one in a second.
 */
void tr_credits_wait(struct terrace *tr, struct bio *bio)
{
	struct tr_credits *c = &tr->credits;
	struct tr_io *io = tr_io_of(bio);
	bool first = !io->asked, proven = false, news;
	blk_status_t status;
	unsigned long flags;

	spin_lock_irqsave(&c->lock, flags);
	status = verdict__f(tr, io);
	if (!status) {
		proven = !first && c->ended >= io->asked;
		if (first || proven)
			io->asked = c->begun + 1;
		bio_list_add(&c->waiters, bio);
		/* Under the lock: nobody ends the bio before, and with the last one the volume. */
		if (first)
			tr_checkpoint_kick(tr);
		else
			queue_delayed_work(tr->checkpoint_wq, &c->again, LOOK_AGAIN);
	}
	news = !c->told && (status == BLK_STS_NOSPC || proven);
	c->told |= news;
	spin_unlock_irqrestore(&c->lock, flags);
	if (status == BLK_STS_AGAIN)
		queue_work(tr->io_wq, &io->work);
	else if (status)
		tr_defer_end(tr, bio, status);
	if (news)
		tell(tr);
}

struct bio_list tr_credits_waiters(struct terrace *tr)
{
	struct tr_credits *c = &tr->credits;
	struct bio_list bios;
	unsigned long flags;

	spin_lock_irqsave(&c->lock, flags);
	bios = c->waiters;
	bio_list_init(&c->waiters);
	spin_unlock_irqrestore(&c->lock, flags);
	return bios;
}

void tr_credits_wake(struct terrace *tr)
{
	struct bio_list bios = tr_credits_waiters(tr);
	struct bio *bio;

	while ((bio = bio_list_pop(&bios)))
		queue_work(tr->io_wq, &tr_io_of(bio)->work);
}

/* Regions below a range that is open may yet lose their pages: then it proves nothing. */
void tr_credits_begin(struct terrace *tr)
{
	bool proves;

	lockdep_assert_held(&tr->checkpoint_mutex);
	spin_lock(&tr->discard_lock);
	proves = tr_discards_walked__f(tr);
	spin_unlock(&tr->discard_lock);
	spin_lock_irq(&tr->credits.lock);
	tr->credits.begun++;
	tr->credits.proves = proves;
	spin_unlock_irq(&tr->credits.lock);
}

void tr_credits_end(struct terrace *tr, int err)
{
	struct tr_credits *c = &tr->credits;

	lockdep_assert_held(&tr->checkpoint_mutex);
	if (err)
		return;
	spin_lock_irq(&c->lock);
	if (c->proves)
		WRITE_ONCE(c->ended, c->begun);
	spin_unlock_irq(&c->lock);
	tr_credits_wake(tr);
}

void tr_credits_init(struct terrace *tr)
{
	spin_lock_init(&tr->credits.lock);
	bio_list_init(&tr->credits.waiters);
	INIT_DELAYED_WORK(&tr->credits.again, again_fn);
}

void tr_credits_exit(struct terrace *tr)
{
	cancel_delayed_work_sync(&tr->credits.again);
}
