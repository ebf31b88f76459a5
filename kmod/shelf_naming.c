// SPDX-License-Identifier: GPL-2.0
/*
 * What lies on open shelves gets its names: owner blocks, written by each commit into
 * the stream itself. Why, and when, is at the beginning of shelf.c.
 */
#include "shelf.h"

/* Owner blocks that stand one behind the other, written in one go: between two
 * I/Os the drive would have to turn back to whatever else is appended.
 */
struct naming {
	u32 offset, nr_blocks;		/* where they go */
	u32 padding;			/* blocks of zeros behind them */
	u32 prev;			/* owner block before them */
	u32 nr;				/* blocks named */
};

/* Takes blocks that are due from @shelf, and the places for their owner blocks. */
static int naming_begin(struct terrace *tr, struct tr_tier *tier, struct tr_shelf *shelf,
			struct naming *naming)
{
	int err = 0;

	spin_lock_irq(&tier->lock);
	naming->nr = min_t(u32, shelf->due,
			   TR_OWNER_BURST * TERRACE_OWNERS_PER_BLOCK);
	naming->nr_blocks = tr_shelf_owner_blocks(naming->nr);
	if (WARN_ON_ONCE(shelf->next + naming->nr_blocks > tr_shelf_end(tier))) {
		err = -ENOSPC;
		shelf->due = 0;
	} else if (naming->nr) {
		naming->offset = shelf->next;
		naming->prev = shelf->prev_owner;
		shelf->next += naming->nr_blocks;
		shelf->prev_owner = shelf->next - 1;
		shelf->nr_unnamed -= naming->nr;
		shelf->due -= naming->nr;
		naming->padding = shelf->due ? 0 : tr_shelf_skip__f(tier, shelf);
		memcpy(tr->owner_offset, shelf->unnamed, naming->nr * sizeof(u16));
		memmove(shelf->unnamed, shelf->unnamed + naming->nr,
			shelf->nr_unnamed * sizeof(u16));
	}
	spin_unlock_irq(&tier->lock);
	return err;
}

/* Encodes the @k-th of the owner blocks. What is published does not change. */
static void naming_encode(struct terrace *tr, struct tr_tier *tier, struct tr_shelf *shelf,
			  const struct naming *naming, u32 k, u64 record_seq)
{
	u32 first = k * TERRACE_OWNERS_PER_BLOCK, i;
	struct tr_owners head = {
		.record_seq = record_seq, .shelf_id = shelf->id,
		.nr = min_t(u32, naming->nr - first, TERRACE_OWNERS_PER_BLOCK),
		.prev_offset = k ? naming->offset + k - 1 : naming->prev,
		.place = tr_place(tier->number,
				  ((u64)shelf->chunk->number << TERRACE_CHUNK_SHIFT) +
				  naming->offset + k),
	};

	for (i = 0; i < head.nr; i++) {
		tr->owner_buf[i].offset = tr->owner_offset[first + i];
		tr->owner_buf[i].block = shelf->owner[tr->owner_buf[i].offset];
		tr->owner_buf[i].crc = 0;
	}
	tr_owners_encode(tr->owner_blocks + k * TERRACE_BLOCK_BYTES, &head, tr->owner_buf,
			 tr->super.volume_uuid);
}

static int shelf_write_owners(struct terrace *tr, struct tr_tier *tier, struct tr_shelf *shelf,
			      u64 record_seq)
{
	struct naming naming;
	int err;
	u32 k;

	while (!(err = naming_begin(tr, tier, shelf, &naming)) && naming.nr) {
		for (k = 0; k < naming.nr_blocks; k++) {
			naming_encode(tr, tier, shelf, &naming, k, record_seq);
			cond_resched();
		}
		memset(tr->owner_blocks + k * TERRACE_BLOCK_BYTES, 0,
		       naming.padding * TERRACE_BLOCK_BYTES);
		err = tr_rw(tier->bdev, tr_shelf_sector(tier, shelf->chunk->number, naming.offset),
			    tr->owner_blocks,
			    (naming.nr_blocks + naming.padding) * TERRACE_BLOCK_BYTES,
			    REQ_OP_WRITE | REQ_SYNC);
		/* before the flush that the commit issues next looks at it */
		WRITE_ONCE(tier->unflushed, true);
		if (err)
			break;
	}
	return err;
}

/*
 * Only the commit worker calls this. A shelf that it works on is marked, so
 * that nobody closes and frees it while its owner block is written.
 */
static struct tr_shelf *shelf_to_name(struct tr_tier *tier)
{
	struct tr_shelf *shelf = NULL, *s;
	u32 who;

	spin_lock_irq(&tier->lock);
	list_for_each_entry(s, &tier->full_shelves, list)
		if (s->due)
			shelf = s;
	for (who = 0; who < TR_NR_APPENDERS && !shelf; who++)
		if (tier->shelf[who] && tier->shelf[who]->due)
			shelf = tier->shelf[who];
	if (shelf)
		shelf->naming = true;
	spin_unlock_irq(&tier->lock);
	return shelf;
}

static void due_now(struct tr_tier *tier)
{
	struct tr_shelf *s;
	u32 who;

	spin_lock_irq(&tier->lock);
	list_for_each_entry(s, &tier->full_shelves, list)
		s->due = s->nr_unnamed;
	for (who = 0; who < TR_NR_APPENDERS; who++)
		if (tier->shelf[who])
			tier->shelf[who]->due = tier->shelf[who]->nr_unnamed;
	spin_unlock_irq(&tier->lock);
}

/*
 * An error leaves the others their owners, and this shelf the rest of its own: no later round
 * need come, and a full shelf is closed, so that it can be cleaned, when nothing on it is due.
 */
static int tier_write_owners(struct terrace *tr, struct tr_tier *tier, u64 record_seq)
{
	struct tr_shelf *shelf;
	bool full = false;
	int err = 0, r;

	due_now(tier);
	while ((shelf = shelf_to_name(tier))) {
		r = shelf_write_owners(tr, tier, shelf, record_seq);
		err = err ?: r;
		spin_lock_irq(&tier->lock);
		shelf->naming = false;
		full |= !list_empty(&tier->full_shelves);
		spin_unlock_irq(&tier->lock);
	}
	if (full)
		queue_work(tr->room_wq, &tr->refill_work);	/* it may be closed now */
	return err;
}

int tr_shelves_write_owners(struct terrace *tr, u64 record_seq)
{
	int err = 0, r;
	u32 t;

	for (t = 0; t < tr->nr_tiers; t++) {
		if (tr->tier[t].kind != TERRACE_KIND_SHELVES || tr->tier[t].missing)
			continue;
		r = tier_write_owners(tr, &tr->tier[t], record_seq);
		err = err ?: r;
	}
	return err;
}
