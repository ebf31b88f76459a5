// SPDX-License-Identifier: GPL-2.0
/*
 * The volatile write cache, as an undo log.
 *
 * The medium always holds the newest data, so reads and flushes cost nothing
 * here. Every write leaves a record of what it replaced, block by block; the
 * record goes when the write is durable. At a power cut the log is played
 * back (cut.c).
 *
 *	    in flight  --completes-->  done  --flush-->  settled, forgotten
 *			   \--FUA, or no cache--------^
 *
 * Invariants:
 *  - a record is undoable iff no flush issued after its completion, no FUA of
 *    its own and no destaging made it durable: exactly what was promised to
 *    the host survives, and nothing else does by accident;
 *  - the pre-image of a durable write is gone, and the sectors it covers are
 *    taken out of older records of the same block (they are not undone to
 *    before it). Sector masks keep this exact for writes below 4 KiB.
 *
 * All of it runs under media_lock.
 */
#include <linux/hash.h>
#include <linux/highmem.h>
#include <linux/slab.h>

#include "drive.h"

/* the map path may not sleep, and has a worker to fall back on */
#define GFP_HASTY	(GFP_ATOMIC | __GFP_NOWARN)

/* how many records one command may have to clean up after earlier ones */
#define SETTLE_SOME	8
#define SETTLE_CHUNK	64

static struct kmem_cache *write_slab;
static struct kmem_cache *undo_slab;

static struct hlist_head *bucket_of(struct drive *d, u64 block)
{
	return &d->undo[hash_64(block, UNDO_BUCKETS_SHIFT)];
}

/* ---- forgetting what has become durable ---- */

static void forget_block(struct drive *d, struct drive_undo *u)
{
	struct drive_undo *older = u;

	hlist_for_each_entry_continue(older, bucket)
		if (older->block == u->block)
			older->mask &= ~u->mask;
	hlist_del(&u->bucket);
	list_del(&u->of_write);
	if (u->page)
		__free_page(u->page);
	kmem_cache_free(undo_slab, u);
	d->undo_blocks--;
}

static void forget_blocks(struct drive *d, struct drive_write *w)
{
	struct drive_undo *u, *next;

	list_for_each_entry_safe(u, next, &w->blocks, of_write)
		forget_block(d, u);
	/* not freed yet: its command may be in flight */
	list_move(&w->log, &d->destaged);
}

/* Move some completed and durable records from the queue's lists to @list. */
static void collect_settled(struct drive *d, struct list_head *list,
			    unsigned int budget)
{
	struct drive_write *w, *next;

	spin_lock_irq(&d->queue_lock);
	list_for_each_entry_safe(w, next, &d->settled, done) {
		if (!budget--)
			goto out;
		list_move_tail(&w->done, list);
	}
	list_for_each_entry_safe(w, next, &d->done, done) {
		if (w->done_seq > d->flushed_seq || !budget--)
			break;
		list_move_tail(&w->done, list);
	}
out:
	spin_unlock_irq(&d->queue_lock);
}

static bool settle(struct drive *d, unsigned int budget)
{
	struct drive_write *w, *next;
	LIST_HEAD(list);

	lockdep_assert_held(&d->media_lock);
	collect_settled(d, &list, budget);
	if (list_empty(&list))
		return false;
	list_for_each_entry_safe(w, next, &list, done) {
		forget_blocks(d, w);
		list_del(&w->log);
		kmem_cache_free(write_slab, w);
	}
	return true;
}

/**
 * drive_cache_settle() - forget everything that is durable
 * @d: the drive
 *
 * Commands do this bit by bit; a status report wants to see the end of it.
 *
 * Return: the bytes that a power cut could still take away.
 */
u64 drive_cache_settle(struct drive *d)
{
	lockdep_assert_held(&d->media_lock);
	while (settle(d, SETTLE_CHUNK))
		;
	return d->undo_blocks << BLOCK_SHIFT;
}

/* The log is full: destage from its old end, as a drive would. */
static void make_room(struct drive *d)
{
	struct drive_write *w;

	while (d->undo_blocks << BLOCK_SHIFT > d->config.cache_bytes) {
		if (settle(d, SETTLE_CHUNK))
			continue;
		w = list_first_entry(&d->log, struct drive_write, log);
		forget_blocks(d, w);
		d->counters.destaged++;
	}
}

/* ---- writing ---- */

static struct drive_write *new_write(struct drive *d)
{
	struct drive_write *w = kmem_cache_alloc(write_slab, GFP_HASTY);

	if (!w)
		return NULL;
	w->id = ++d->next_id;
	w->done_seq = 0;
	INIT_LIST_HEAD(&w->blocks);
	INIT_LIST_HEAD(&w->done);
	list_add_tail(&w->log, &d->log);
	return w;
}

static void log_block(struct drive *d, struct drive_write *w,
		      struct drive_undo *u, u64 block, struct page *old, u8 mask)
{
	u->block = block;
	u->page = old;
	u->mask = mask;
	hlist_add_head(&u->bucket, bucket_of(d, block));
	list_add_tail(&u->of_write, &w->blocks);
	d->undo_blocks++;
}

static void fill(void *to, struct drive_op *op, struct bvec_iter *iter,
		 unsigned int bytes)
{
	if (op->cmd.kind == DRIVE_WRITE) {
		drive_media_take(to, op->bio, iter, bytes);
		return;
	}
	memset(to, 0, bytes);
	bio_advance_iter(op->bio, iter, bytes);
}

/* A whole block: the old page leaves the tree and is its own pre-image. */
static int write_whole(struct drive *d, struct drive_op *op, u64 block)
{
	struct bvec_iter iter = op->iter;
	struct drive_undo *u = NULL;
	struct page *page = NULL;
	int r;

	if (op->write) {
		u = kmem_cache_alloc(undo_slab, GFP_HASTY);
		if (!u)
			return -ENOMEM;
	}
	if (op->cmd.kind == DRIVE_WRITE) {
		page = alloc_page(GFP_HASTY);
		if (!page)
			goto no_memory;
		fill(page_address(page), op, &iter, BLOCK_BYTES);
	} else {
		bio_advance_iter(op->bio, &iter, BLOCK_BYTES);
	}
	r = drive_media_swap(d, block, &page, GFP_HASTY);
	if (r)
		goto no_memory;
	if (u)
		log_block(d, op->write, u, block, page, ALL_SECTORS);
	else if (page)
		__free_page(page);
	op->iter = iter;
	return 0;

no_memory:
	if (page)
		__free_page(page);
	if (u)
		kmem_cache_free(undo_slab, u);
	return -ENOMEM;
}

static u8 sector_mask(unsigned int offset, unsigned int bytes)
{
	unsigned int first = offset >> SECTOR_SHIFT;
	unsigned int count = bytes >> SECTOR_SHIFT;

	return ((1U << count) - 1) << first;
}

/* In place: part of a block, whose pre-image is a copy, or one without any. */
static int write_part(struct drive *d, struct drive_op *op, u64 block,
		      unsigned int offset, unsigned int bytes)
{
	struct page *page = drive_media_page(d, block);
	struct page *old = NULL, *fresh = NULL;
	struct drive_undo *u = NULL;

	if (op->write) {
		u = kmem_cache_alloc(undo_slab, GFP_HASTY);
		old = alloc_page(GFP_HASTY | (page ? 0 : __GFP_ZERO));
		if (!u || !old)
			goto no_memory;
		if (page)
			copy_highpage(old, page);
	}
	if (!page) {
		page = alloc_page(GFP_HASTY | __GFP_ZERO);
		fresh = page;
		if (!page || drive_media_swap(d, block, &fresh, GFP_HASTY))
			goto no_memory;
	}
	fill(page_address(page) + offset, op, &op->iter, bytes);
	if (u)
		log_block(d, op->write, u, block, old, sector_mask(offset, bytes));
	return 0;

no_memory:
	if (fresh)
		__free_page(fresh);
	if (old)
		__free_page(old);
	if (u)
		kmem_cache_free(undo_slab, u);
	return -ENOMEM;
}

/* A write over existing data that nothing will undo. */
static bool overwrites_for_good(struct drive *d, const struct drive_op *op,
				u64 block)
{
	return op->cmd.kind == DRIVE_WRITE && !op->write &&
	       drive_media_page(d, block);
}

static bool is_logged(struct drive *d, u64 block)
{
	struct drive_undo *u;

	hlist_for_each_entry(u, bucket_of(d, block), bucket)
		if (u->block == block)
			return true;
	return false;
}

/* Erasing what no cut can bring back, or what is erased for good, is final. */
static int erase_whole(struct drive *d, struct drive_op *op, u64 block)
{
	bool final = !op->write || (!drive_media_page(d, block) &&
				    !is_logged(d, block));

	if (!final)
		return write_whole(d, op, block);
	drive_media_forget(d, block);
	bio_advance_iter(op->bio, &op->iter, BLOCK_BYTES);
	return 0;
}

/* What was never written needs no erasing: go on at the next block that is. */
static bool skip_absent(struct drive *d, struct drive_op *op)
{
	u64 sector = op->iter.bi_sector;
	unsigned long block = sector / BLOCK_SECTORS;
	u64 end = sector + (op->iter.bi_size >> SECTOR_SHIFT);
	u64 next = end;

	if (xa_find(&d->pages, &block, (end - 1) / BLOCK_SECTORS, XA_PRESENT))
		next = max(sector, (u64)block * BLOCK_SECTORS);
	bio_advance_iter(op->bio, &op->iter, (next - sector) << SECTOR_SHIFT);
	return op->iter.bi_size;
}

/**
 * drive_cache_write() - do a write, discard or write-zeroes
 * @d: the drive
 * @op: the command; goes on where an earlier call ran out of memory
 *
 * Return: 0, or -ENOMEM if part of it is still to do.
 */
int drive_cache_write(struct drive *d, struct drive_op *op)
{
	int r = 0;

	lockdep_assert_held(&d->media_lock);
	settle(d, SETTLE_SOME);
	if (d->config.powercut && !op->write) {
		op->write = new_write(d);
		if (!op->write)
			return -ENOMEM;
	}
	while (op->iter.bi_size && !r) {
		u64 block;
		unsigned int offset, n;

		if (op->cmd.kind != DRIVE_WRITE && !skip_absent(d, op))
			break;
		block = op->iter.bi_sector / BLOCK_SECTORS;
		offset = (op->iter.bi_sector % BLOCK_SECTORS) << SECTOR_SHIFT;
		n = min(op->iter.bi_size, BLOCK_BYTES - offset);
		if (n < BLOCK_BYTES || overwrites_for_good(d, op, block))
			r = write_part(d, op, block, offset, n);
		else if (op->cmd.kind == DRIVE_WRITE)
			r = write_whole(d, op, block);
		else
			r = erase_whole(d, op, block);
	}
	make_room(d);
	return r;
}

/**
 * drive_cache_forget_all() - what is on the medium is all there is now
 * @d: the drive; nothing is in flight, or nothing in flight matters
 */
void drive_cache_forget_all(struct drive *d)
{
	struct drive_write *w, *next;

	spin_lock_irq(&d->queue_lock);
	INIT_LIST_HEAD(&d->done);
	INIT_LIST_HEAD(&d->settled);
	d->flushed_seq = d->done_seq;
	d->flushed_bytes = d->done_bytes;
	spin_unlock_irq(&d->queue_lock);

	spin_lock(&d->media_lock);
	list_for_each_entry_safe(w, next, &d->log, log)
		forget_blocks(d, w);
	/* records in flight are freed too: their commands are of an old epoch */
	list_for_each_entry_safe(w, next, &d->destaged, log) {
		list_del(&w->log);
		kmem_cache_free(write_slab, w);
	}
	spin_unlock(&d->media_lock);
}

int drive_cache_init(void)
{
	write_slab = KMEM_CACHE(drive_write, 0);
	undo_slab = KMEM_CACHE(drive_undo, 0);
	if (write_slab && undo_slab)
		return 0;
	drive_cache_exit();
	return -ENOMEM;
}

void drive_cache_exit(void)
{
	kmem_cache_destroy(undo_slab);
	kmem_cache_destroy(write_slab);
}
