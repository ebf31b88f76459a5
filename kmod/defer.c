// SPDX-License-Identifier: GPL-2.0
/*
 * The path of a bio that must sleep: for a region's page, for a larger leaf,
 * for a commit. A worker walks through the bio and cuts it into pieces, each
 * with one verdict of tr_route(); the bio ends when its last piece has, or,
 * where it is FUA and its mapping new, with the next commit.
 *
 * The worker waits for nothing that another bio's worker must do. When there
 * is no room it parks the bio, with what it has got through already, and
 * returns; tr_room_made() brings all parked bios back.
 */
#include "io.h"
#include "sense.h"

struct tr_piece {
	struct tr_io io;
	struct bio bio;		/* last: bio_set front pad */
};

static struct bio *bio_of(struct tr_io *io)
{
	return dm_bio_from_per_bio_data(io, sizeof(*io));
}

/* The last of parent's pieces, or the walk itself, is through. */
static void parent_put(struct tr_io *parent)
{
	struct bio *bio = bio_of(parent);

	if (!atomic_dec_and_test(&parent->pending))
		return;
	if (unlikely(parent->status) && tr_rescuable(parent, bio, parent->status)) {
		tr_rescue(parent->tr, bio);
		return;
	}
	if (unlikely(parent->rescue) && !parent->status)
		tr_rescued(parent);
	bio->bi_status = parent->status;
	if (parent->commit && !parent->status)
		tr_commit_fua(parent->tr, bio);
	else
		bio_endio(bio);
}

static void piece_end(struct bio *bio)
{
	struct tr_piece *piece = container_of(bio, struct tr_piece, bio);
	struct tr_io *parent = piece->io.parent;

	tr_io_end(&piece->io, bio->bi_status);
	if (bio->bi_status) {
		WRITE_ONCE(parent->status, bio->bi_status);
		tr_bio_failed(bio);
	}
	bio_put(bio);
	parent_put(parent);
}

/* Sends the next @nr blocks of @bio where @io says. */
static void send_piece(struct terrace *tr, struct bio *bio, const struct tr_io *io, u32 nr)
{
	struct tr_io *parent = tr_io_of(bio);
	struct tr_piece *piece;
	struct bio *clone;

	clone = bio_alloc_clone(tr->tier[io->tier].bdev, bio, GFP_NOIO, &tr->pieces);
	piece = container_of(clone, struct tr_piece, bio);
	piece->io = *io;
	piece->io.parent = parent;
	clone->bi_iter.bi_size = nr * TERRACE_BLOCK_BYTES;
	clone->bi_iter.bi_sector = tr_io_sector(tr, io);
	clone->bi_opf &= ~(REQ_NOWAIT | REQ_POLLED);
	if (io->kind == TR_IO_NEW)
		clone->bi_opf &= ~REQ_FUA;	/* the commit flushes the tier */
	clone->bi_end_io = piece_end;
	atomic_inc(&parent->pending);
	if (io->commit || (io->kind == TR_IO_NEW && (bio->bi_opf & REQ_FUA)))
		parent->commit = true;
	bio_advance(bio, nr * TERRACE_BLOCK_BYTES);
	submit_bio_noacct(clone);
}

static void zero_piece(struct bio *bio, u32 nr)
{
	u32 bytes = bio->bi_iter.bi_size;

	bio->bi_iter.bi_size = nr * TERRACE_BLOCK_BYTES;
	zero_fill_bio(bio);
	bio->bi_iter.bi_size = bytes;
	bio_advance(bio, nr * TERRACE_BLOCK_BYTES);
}

static int unpack_piece(struct terrace *tr, struct bio *bio, struct tr_io *io,
			const struct tr_pack_ref *ref, u32 nr)
{
	u64 block = bio->bi_iter.bi_sector / TERRACE_BLOCK_SECTORS;
	u32 i = block & (TERRACE_REGION_BLOCKS - 1), ahead = tr_io_of(bio)->ahead;
	int err;

	if (tr_io_of(bio)->bulk)
		err = tr_unpack_bulk(tr, bio, ref, i, nr, ahead);
	else
		err = tr_unpack_bio(tr, bio, ref, i, nr,
				    bio->bi_iter.bi_size == nr * TERRACE_BLOCK_BYTES ? ahead : 0);
	tr_io_end(io, errno_to_blk_status(err));
	if (!err)
		bio_advance(bio, nr * TERRACE_BLOCK_BYTES);
	return err;
}

/* Loads, creates or enlarges what the next block needs. */
static int prepare(struct terrace *tr, struct bio *bio, enum tr_verdict verdict, u32 nr)
{
	u64 block = bio->bi_iter.bi_sector / TERRACE_BLOCK_SECTORS;
	struct tr_region *region;

	if (bio_op(bio) == REQ_OP_WRITE && !tr_writable(tr))
		return -EIO;
	tr_reserve_wait(tr);		/* here: nothing is held yet */
	region = tr_region_get(tr, block >> TERRACE_REGION_SHIFT, bio_op(bio) == REQ_OP_WRITE);
	if (IS_ERR_OR_NULL(region))
		return PTR_ERR(region);
	if (verdict == TR_GROW)
		tr_region_grow(tr, region, nr, tr->high_places);
	tr_region_put(region);
	return 0;
}

/* One step of the walk. A verdict: to be parked, with it; <0: error. */
static int step(struct terrace *tr, struct bio *bio)
{
	u64 block = bio->bi_iter.bi_sector / TERRACE_BLOCK_SECTORS;
	u32 nr = bio->bi_iter.bi_size / TERRACE_BLOCK_BYTES;
	u32 how = TR_HOW_DEFERRED;
	struct tr_io io = { .tr = tr };
	enum tr_verdict verdict;
	struct tr_pack_ref ref;

	nr = min_t(u32, nr, TERRACE_REGION_BLOCKS - (block & (TERRACE_REGION_BLOCKS - 1)));
	if (bio_op(bio) == REQ_OP_WRITE)
		how |= TR_HOW_WRITE | (bio->bi_opf & REQ_FUA ? TR_HOW_FUA : 0) |
		       (tr_io_of(bio)->stream || tr_is_cold(tr, block) ? TR_HOW_STREAM : 0);
	else if (tr_io_of(bio)->rescue)
		how |= TR_HOW_PACK;

	if (how & TR_HOW_WRITE) {
		tr_io_of(bio)->looked = tr_credits_looked(tr);
		tr_io_of(bio)->index = tr_releases(tr);
	}
	rcu_read_lock();
	verdict = tr_route(tr, &io, block, &nr, how, &ref);
	rcu_read_unlock();
	switch (verdict) {
	case TR_GO:
		tr_sense(tr, bio, block, nr, how & TR_HOW_WRITE ? TERRACE_OP_WRITE : TERRACE_OP_READ,
			 tr_where(tr, io.tier));
		if (how & TR_HOW_WRITE)
			tr_io_of(bio)->asked = 0;	/* the next region is another question */
		send_piece(tr, bio, &io, nr);
		return 0;
	case TR_ZERO:
		tr_sense(tr, bio, block, nr, TERRACE_OP_READ, TERRACE_WHERE_NOWHERE);
		zero_piece(bio, nr);
		return 0;
	case TR_PACKED:
		if (tr_io_of(bio)->bulk)
			nr = min(nr, TR_BULK_MOST);
		tr_count_packed(tr, &io);
		tr_sense(tr, bio, block, nr, TERRACE_OP_READ,
			 tr_where(tr, io.tier) | TERRACE_WHERE_PACKED | TERRACE_WHERE_SLOW);
		return unpack_piece(tr, bio, &io, &ref, nr);
	case TR_LOAD:
	case TR_GROW:
		return prepare(tr, bio, verdict, nr);
	case TR_ROOM:
	case TR_BUSY:
		tr_io_of(bio)->asked = 0;	/* writers only; what it was told then has aged */
		return verdict;
	case TR_PAGES:
		return verdict;
	default:
		return -EIO;
	}
}

static void walk_fn(struct work_struct *work)
{
	struct tr_io *parent = container_of(work, struct tr_io, work);
	struct bio *bio = bio_of(parent);
	struct terrace *tr = parent->tr;
	int r = 0;

	if (bio_op(bio) == REQ_OP_DISCARD || bio_op(bio) == REQ_OP_WRITE_ZEROES) {
		tr_sense(tr, bio, bio->bi_iter.bi_sector / TERRACE_BLOCK_SECTORS,
			 bio->bi_iter.bi_size / TERRACE_BLOCK_BYTES, TERRACE_OP_DISCARD,
			 TERRACE_WHERE_NOWHERE);
		tr_discard(tr, bio);
		return;
	}
	while (!r && bio->bi_iter.bi_size)
		r = step(tr, bio);
	if (r > 0) {
		if (r == TR_PAGES)
			tr_credits_wait(tr, bio);
		else
			tr_defer_room(tr, bio, r == TR_ROOM);
		return;
	}
	if (r)
		WRITE_ONCE(parent->status, errno_to_blk_status(r));
	parent_put(parent);
}

static void walk_later(struct terrace *tr, struct bio *bio)
{
	struct tr_io *io = tr_io_of(bio);

	io->tr = tr;
	io->commit = false;
	io->status = BLK_STS_OK;
	atomic_set(&io->pending, 1);
	INIT_WORK(&io->work, walk_fn);
	queue_work(tr->io_wq, &io->work);
}

void tr_defer(struct terrace *tr, struct bio *bio)
{
	struct tr_io *io = tr_io_of(bio);

	io->rescue = false;
	if (bio_op(bio) == REQ_OP_READ)
		io->iter = bio->bi_iter;
	else
		io->asked = 0;
	walk_later(tr, bio);
}

void tr_rescue(struct terrace *tr, struct bio *bio)
{
	struct tr_io *io = tr_io_of(bio);

	io->rescue = true;
	io->ahead = 0;
	io->bulk = false;
	bio->bi_iter = io->iter;
	bio->bi_status = BLK_STS_OK;
	walk_later(tr, bio);
}

/* --- no room --------------------------------------------------------------------------- */

/* Full for good for @block, as far as can be known: nothing is being freed either, no
 * discard is about to, and no order, nor a write under way, holds what the janitor would empty.
 */
static bool hopeless(struct terrace *tr, u64 block)
{
	/* First, with acquire: what a discard freed before it ended is seen by what follows. */
	return !atomic_read_acquire(&tr->discards_at_work) &&
	       !tr_tune(tr, TR_TUNE_QUEUE_IF_FULL) && tr_space_tight(tr) &&
	       tr_hidden_room_none(tr) && !tr_home_may_be_free(tr, block) &&
	       !tr_shelves_to_come(tr) && !tr_frees_pending(tr) &&
	       !atomic_read_acquire(&tr->orders_at_work) &&
	       tr_janitor_gave_up(tr);
}

/*
 * Who waits has the janitor look again. (Who begins to wait now asks for that himself.)
 * First the count, then, with release, that nobody is at work: hopeless(), which acquires
 * that, cannot take a verdict from before the orders' end for one from after it.
 */
void tr_orders_ended(struct terrace *tr)
{
	atomic64_inc(&tr->orders_ended);
	atomic_dec_return_release(&tr->orders_at_work);
	if (tr_room_is_waited_for(tr))
		queue_work(tr->room_wq, &tr->refill_work);
}

void tr_defer_end(struct terrace *tr, struct bio *bio, blk_status_t status)
{
	struct tr_io *io = tr_io_of(bio);

	WRITE_ONCE(io->status, status);
	parent_put(io);
}

void tr_defer_room(struct terrace *tr, struct bio *bio, bool full)
{
	u64 block = bio->bi_iter.bi_sector / TERRACE_BLOCK_SECTORS;
	blk_status_t status = full && hopeless(tr, block) ? BLK_STS_NOSPC : BLK_STS_OK;
	unsigned long flags;

	/* What the janitor's last look found may have come after this one's. */
	if (status && tr_io_of(bio)->index != READ_ONCE(tr->janitor_vain))
		status = BLK_STS_AGAIN;

	/* Under the lock: who ends the waiting (read-only, noflush) sets his
	 * mark first and empties the list then.
	 */
	spin_lock_irqsave(&tr->room_lock, flags);
	if (!tr_writable(tr))
		status = BLK_STS_IOERR;
	else if (READ_ONCE(tr->noflush))
		status = BLK_STS_DM_REQUEUE;
	if (!status)
		bio_list_add(&tr->room_waiters, bio);
	spin_unlock_irqrestore(&tr->room_lock, flags);
	if (status == BLK_STS_AGAIN)
		queue_work(tr->io_wq, &tr_io_of(bio)->work);
	else if (status)
		tr_defer_end(tr, bio, status);
	if (status)
		return;
	/* Room comes from a commit (journal blocks, freed places) and from the
	 * refill worker; both end in tr_room_made(). Kicked after the bio is on
	 * the list, so that it cannot miss them. Another writer's home may have been looked for
	 * instead of ours, or ours before we were on the list. The bio may have ended by now:
	 * tr_volume_quiesce() waits for this.
	 */
	tr_home_want(tr, block);
	tr_commit_kick(tr);
	queue_work(tr->room_wq, &tr->refill_work);
}

static struct bio_list take_waiters(struct terrace *tr)
{
	struct bio_list bios;
	unsigned long flags;

	spin_lock_irqsave(&tr->room_lock, flags);
	bios = tr->room_waiters;
	bio_list_init(&tr->room_waiters);
	spin_unlock_irqrestore(&tr->room_lock, flags);
	return bios;
}

void tr_room_made(struct terrace *tr)
{
	struct bio_list bios = take_waiters(tr);
	struct bio *bio;

	while ((bio = bio_list_pop(&bios)))
		queue_work(tr->io_wq, &tr_io_of(bio)->work);
}

bool tr_room_is_waited_for(struct terrace *tr)
{
	return READ_ONCE(tr->room_waiters.head);
}

/* A noflush suspend does not wait for room: dm keeps the bios and sends them
 * again after resume. What a bio wrote already is written again then.
 */
void tr_requeue_waiters(struct terrace *tr)
{
	struct bio_list bios = take_waiters(tr), pages = tr_credits_waiters(tr);
	struct bio *bio;

	bio_list_merge(&bios, &pages);
	while ((bio = bio_list_pop(&bios)))
		tr_defer_end(tr, bio, BLK_STS_DM_REQUEUE);
}

int tr_defer_init(struct terrace *tr)
{
	spin_lock_init(&tr->room_lock);
	bio_list_init(&tr->room_waiters);
	return bioset_init(&tr->pieces, 64, offsetof(struct tr_piece, bio), 0);
}

void tr_defer_exit(struct terrace *tr)
{
	bioset_exit(&tr->pieces);
}
