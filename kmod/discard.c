// SPDX-License-Identifier: GPL-2.0
/*
 * Discard and write-zeroes. Both take the blocks' places away; from then on
 * they read as zeros.
 *
 * Regions in memory, and the ends of a range that cover a region in part, are
 * emptied at once. For whole regions that are not in memory one range record
 * is written and the range remembered; a region that is loaded later empties
 * itself, and a worker loads them all, one by one, to give their places back.
 * So a discard of the whole volume is acknowledged without reading its map.
 *
 * Crash: the range record lies in the journal until its regions are emptied.
 * A checkpoint that wants to move the tail past it writes the ranges that are
 * still open once more, with the number of the record they stand for: newer
 * writes to those regions stay newer.
 *
 * At most TR_OPEN_RANGES are open, so that they are found quickly and always
 * fit what the ring keeps for the checkpoint: beyond that a discard empties
 * its regions itself. A range that a newer one covers is dropped. Recovery may
 * find more in the journal; the first checkpoint closes those (settle.c).
 *
 * A region whose page is damaged cannot be emptied. Crash scenario: the range is
 * acknowledged, the worker passes that region by, the range ends. At the next
 * activation the page can be read (a mirror is back, or it was a bad read), and what
 * was discarded is there again. So a range of that one region stays open for as long
 * as the volume is, and is written again by each checkpoint.
 */
#include <linux/slab.h>

#include "io.h"

#define FEW_REGIONS	16	/* this many are emptied one by one, loaded or not */

struct open_range {
	struct list_head list;
	u64 first, end;		/* regions */
	u64 seq;		/* record it stands for */
	bool walked;		/* the regions that were loaded are empty */
	bool busy;		/* the worker is at it: only it takes the range away */
	bool closing;		/* the checkpoint ends it */
	bool stuck;		/* of one region whose page is damaged: it stays */
};

/* Counted until it has run, so that nobody hears meanwhile that there is no room. */
void tr_discard_work(struct terrace *tr)
{
	atomic_inc(&tr->discards_at_work);
	if (!queue_work(tr->meta_wq, &tr->discard_work))
		atomic_dec(&tr->discards_at_work);
}

static u64 regions_block(u64 region)
{
	return region << TERRACE_REGION_SHIFT;
}

u64 tr_discard_pending__f(struct terrace *tr, u64 region)
{
	struct open_range *range;
	u64 seq = 0;

	lockdep_assert_held(&tr->discard_lock);
	list_for_each_entry(range, &tr->discards, list)
		if (region >= range->first && region < range->end)
			seq = max(seq, range->seq);
	return seq;
}

u64 tr_discard_pending(struct terrace *tr, u64 region)
{
	u64 seq;

	if (list_empty_careful(&tr->discards))
		return 0;
	spin_lock(&tr->discard_lock);
	seq = tr_discard_pending__f(tr, region);
	spin_unlock(&tr->discard_lock);
	return seq;
}

static struct open_range *range_create(u64 first, u64 end, gfp_t gfp)
{
	struct open_range *range = kzalloc(sizeof(*range), gfp);

	if (range) {
		range->first = first;
		range->end = end;
	}
	return range;
}

static void drop_range__f(struct terrace *tr, struct open_range *range)
{
	lockdep_assert_held(&tr->discard_lock);
	range->first = range->end;
	if (range->busy)
		return;
	list_del(&range->list);
	tr->nr_discards--;
	kfree(range);
}

/* Every region of an older range within @range is empty anyway. */
static void drop_older__f(struct terrace *tr, const struct open_range *range)
{
	struct open_range *old, *next;

	list_for_each_entry_safe(old, next, &tr->discards, list)
		if (old != range && old->walked && old->seq < range->seq &&
		    old->first >= range->first && old->end <= range->end)
			drop_range__f(tr, old);
}

void tr_discard_add(struct terrace *tr, u64 first, u64 end, u64 seq)
{
	struct open_range *range = range_create(first, end, GFP_KERNEL | __GFP_NOFAIL);

	range->seq = seq;
	range->walked = true;		/* nothing is loaded yet */
	spin_lock(&tr->discard_lock);
	list_add_tail(&range->list, &tr->discards);
	tr->nr_discards++;
	spin_unlock(&tr->discard_lock);
}

/* Empties blocks [@i, @i + @n) of one region that is loaded if need be. */
static int empty_blocks(struct terrace *tr, u64 number, u32 i, u32 n)
{
	struct tr_region *region = tr_region_get(tr, number, false);
	unsigned long flags;
	u32 used, k;
	int err;

	if (IS_ERR_OR_NULL(region))
		return PTR_ERR(region);
	err = tr_journal_reserve_wait(tr, n);
	if (!err) {
		spin_lock_irqsave(&region->lock, flags);
		if (region->flags & TR_REGION_MOVING)
			for (k = i; k < i + n; k++)
				region->move->raced[k / 64] |= 1ull << (k % 64);
		used = tr_region_unmap__f(tr, region, i, n);
		spin_unlock_irqrestore(&region->lock, flags);
		tr_journal_unreserve(tr, n - used);
	}
	tr_region_put(region);
	return err;
}

/* A region that is lost stops nobody: the record covers the others as well, so
 * they must be empty when it does.
 */
static int empty_regions(struct terrace *tr, u64 first, u64 end, bool only_loaded)
{
	int err = 0, r;

	for (; first < end; first++) {
		if (only_loaded) {
			struct tr_region *region;

			rcu_read_lock();
			region = tr_region_find(tr, first);
			rcu_read_unlock();
			if (!region || region == &tr->empty)
				continue;
		}
		if (!only_loaded)
			tr_reserve_wait(tr);
		r = empty_blocks(tr, first, 0, TERRACE_REGION_BLOCKS);
		if (r == -EROFS)
			return r;		/* nothing is written any more */
		err = err ?: r;
		cond_resched();
	}
	return err;
}

/* One more range? Otherwise its regions are emptied one by one, loaded or not. */
static bool may_open(struct terrace *tr)
{
	bool may;

	spin_lock(&tr->discard_lock);
	may = tr->nr_discards < TR_OPEN_RANGES;
	tr->nr_discards += may;
	spin_unlock(&tr->discard_lock);
	return may;
}

static int empty_range(struct terrace *tr, u64 first, u64 end)
{
	struct tr_record record = {
		.type = TERRACE_RECORD_DISCARD,
		.nr = 1,
		.block = first,
		.new = end - first,
	};
	struct open_range *range;
	int err;

	if (end - first <= FEW_REGIONS)
		return empty_regions(tr, first, end, false);
	range = range_create(first, end, TR_GFP_MAY);
	if (!range || !may_open(tr)) {
		kfree(range);
		return empty_regions(tr, first, end, false);
	}
	err = tr_journal_reserve_wait(tr, 1);
	if (err) {
		kfree(range);
		spin_lock(&tr->discard_lock);
		tr->nr_discards--;
		spin_unlock(&tr->discard_lock);
		return err;
	}
	/* No eviction while the walk goes on. A region that was loaded before
	 * and left now would come back with its old places: its page may even
	 * be newer than the record, from a move.
	 */
	atomic_inc(&tr->discard_walks);
	smp_mb__after_atomic();		/* before the record: pairs with region->lock in evict_one() */
	/* Number and list in one step: a checkpoint that sees the record behind
	 * its tail must see the range as open.
	 */
	spin_lock(&tr->discard_lock);
	range->seq = tr_journal_append(tr, &record);
	list_add_tail(&range->list, &tr->discards);
	drop_older__f(tr, range);
	spin_unlock(&tr->discard_lock);
	/* Whoever is loaded from now on sees the range; these are loaded. */
	err = empty_regions(tr, first, end, true);
	atomic_dec(&tr->discard_walks);
	spin_lock(&tr->discard_lock);
	range->walked = true;
	spin_unlock(&tr->discard_lock);
	tr_discard_work(tr);
	return err;
}

void tr_discard(struct terrace *tr, struct bio *bio)
{
	u64 block = bio->bi_iter.bi_sector / TERRACE_BLOCK_SECTORS;
	u64 end = block + bio->bi_iter.bi_size / TERRACE_BLOCK_BYTES;
	u64 first_whole, end_whole;
	u32 n, i;
	int err = 0;

	if (!tr_writable(tr))
		err = -EIO;
	else
		tr_reserve_wait(tr);
	i = block & (TERRACE_REGION_BLOCKS - 1);
	if (!err && i) {
		n = min_t(u64, end - block, TERRACE_REGION_BLOCKS - i);
		err = empty_blocks(tr, block >> TERRACE_REGION_SHIFT, i, n);
		block += n;
	}
	first_whole = block >> TERRACE_REGION_SHIFT;
	end_whole = end >> TERRACE_REGION_SHIFT;
	if (!err && block < end && first_whole < end_whole) {
		err = empty_range(tr, first_whole, end_whole);
		block = regions_block(end_whole);
	}
	if (!err && block < end)
		err = empty_blocks(tr, block >> TERRACE_REGION_SHIFT, 0, end - block);

	bio->bi_status = errno_to_blk_status(err);
	if (!err && (bio->bi_opf & REQ_FUA))
		tr_commit_fua(tr, bio);
	else
		bio_endio(bio);
}

static struct open_range *first_to_walk__f(struct terrace *tr)
{
	struct open_range *range;

	lockdep_assert_held(&tr->discard_lock);
	list_for_each_entry(range, &tr->discards, list)
		if (!range->stuck)
			return range;
	return NULL;
}

bool tr_discards_walked__f(struct terrace *tr)
{
	return !first_to_walk__f(tr);
}

/* The range to work on next; NULL: none, or its walk brings us back. */
static struct open_range *begin_range(struct terrace *tr)
{
	struct open_range *range;

	spin_lock(&tr->discard_lock);
	range = first_to_walk__f(tr);
	if (range && !range->walked)
		range = NULL;
	if (range)
		range->busy = true;
	spin_unlock(&tr->discard_lock);
	return range;
}

static void end_range(struct terrace *tr, struct open_range *range)
{
	spin_lock(&tr->discard_lock);
	range->busy = false;
	if (range->first >= range->end)
		drop_range__f(tr, range);
	spin_unlock(&tr->discard_lock);
}

/* Region @number of @range, whose page is damaged, gets a range of its own, before
 * @range lets go of it: a checkpoint must find one of them. false: they are too many.
 */
static bool leave_open(struct terrace *tr, const struct open_range *range, u64 number)
{
	struct open_range *rest = range_create(number, number + 1, TR_GFP_MUST);
	bool room, still;

	rest->walked = true;
	rest->stuck = true;
	spin_lock(&tr->discard_lock);
	rest->seq = range->seq;
	still = range->first == number;		/* else it was closed meanwhile */
	room = tr->nr_discards < TR_OPEN_RANGES;
	if (still && room) {
		list_add_tail(&rest->list, &tr->discards);
		tr->nr_discards++;
	}
	spin_unlock(&tr->discard_lock);
	if (!still || !room)
		kfree(rest);
	if (still && !room)
		tr_mode_lower(tr, TR_MODE_READ_ONLY,
			      "map pages of too many discarded regions are damaged", -EUCLEAN);
	return !still || room;
}

/* Loads every region of @range; loading empties it. false: not now. */
static bool load_range(struct terrace *tr, struct open_range *range)
{
	struct tr_region *region;
	u64 number;

	while ((number = READ_ONCE(range->first)) < range->end) {
		if (READ_ONCE(tr->stopping) || !tr_writable(tr))
			return false;
		tr_reserve_wait(tr);
		region = tr_region_get(tr, number, false);
		if (!IS_ERR_OR_NULL(region))
			tr_region_put(region);
		else if (region && (PTR_ERR(region) != -EUCLEAN ||
				    !leave_open(tr, range, number)))
			return false;		/* cannot be read now, say */
		spin_lock(&tr->discard_lock);
		if (range->first == number)	/* else it was closed meanwhile */
			range->first++;
		spin_unlock(&tr->discard_lock);
		cond_resched();
	}
	return true;
}

static void discard_fn(struct work_struct *work)
{
	struct terrace *tr = container_of(work, struct terrace, discard_work);
	struct open_range *range;
	bool go_on = true;

	while (go_on && (range = begin_range(tr))) {
		go_on = load_range(tr, range);
		end_range(tr, range);	/* what is left of it stays open */
	}
	atomic_dec_return_release(&tr->discards_at_work);	/* pairs with hopeless() */
	tr_room_made(tr);	/* who waited for it looks again, or learns that there is none */
}

void tr_discards_kick(struct terrace *tr)
{
	if (!list_empty_careful(&tr->discards) && tr_writable(tr) && !READ_ONCE(tr->stopping))
		tr_discard_work(tr);
}

/* --- for the checkpoint ------------------------------------------------------ */

/* May a checkpoint write it again, and must it? */
static bool to_relog(const struct open_range *range, u64 last)
{
	return range->seq <= last && range->first < range->end && !range->closing;
}

/* Are there any? More than TR_OPEN_RANGES (recovery may find any number) are closed
 * by the checkpoint instead, the oldest first.
 */
static bool some_to_relog(struct terrace *tr, u64 last)
{
	struct open_range *range;
	u32 nr = 0;

	spin_lock(&tr->discard_lock);
	list_for_each_entry(range, &tr->discards, list)
		nr += to_relog(range, last);
	list_for_each_entry(range, &tr->discards, list) {
		if (nr <= TR_OPEN_RANGES)
			break;
		if (!to_relog(range, last) || !range->walked)
			continue;
		range->closing = true;
		nr--;
	}
	spin_unlock(&tr->discard_lock);
	return nr;
}

/*
 * Room for all that may be open, not for those that are: who waits for it holds no
 * lock. Crash scenario: one range is open, and there is room for one record. Meanwhile
 * the worker meets a damaged page below it, and the region gets a range of its own
 * (leave_open()), older than the tail as well. Without a record it ends with the power,
 * and what was discarded is back when the page can be read. The ring always has that
 * room for the checkpoint (journal.c), and leave_open() makes no more of them.
 */
int tr_discards_relog(struct terrace *tr)
{
	/* Ranges that come meanwhile are younger than the tail anyway. */
	u64 last = READ_ONCE(tr->journal.durable_record);
	struct open_range *range;
	u32 left = TR_OPEN_RANGES;
	bool none;
	int err;

	/* The lock also awaits who appended a record and is about to list it. */
	spin_lock(&tr->discard_lock);
	none = list_empty(&tr->discards);
	spin_unlock(&tr->discard_lock);
	if (none || !some_to_relog(tr, last))
		return 0;
	err = tr_journal_reserve_wait(tr, left);
	if (err)
		return err;
	spin_lock(&tr->discard_lock);
	list_for_each_entry(range, &tr->discards, list) {
		struct tr_record record = {
			.type = TERRACE_RECORD_DISCARD,
			.nr = 1,
			.block = range->first,
			.new = range->end - range->first,
			.old = range->seq,
		};

		if (!to_relog(range, last))
			continue;
		if (WARN_ON_ONCE(!left)) {
			err = -EUCLEAN;		/* the tail must not pass its record */
			break;
		}
		tr_journal_append(tr, &record);
		left--;
	}
	spin_unlock(&tr->discard_lock);
	tr_journal_unreserve(tr, left);
	return err;
}

bool tr_discard_closing(struct terrace *tr, u64 *first, u64 *end, u64 *seq)
{
	struct open_range *range;
	bool found = false;

	spin_lock(&tr->discard_lock);
	list_for_each_entry(range, &tr->discards, list) {
		if (!range->closing || range->first >= range->end)
			continue;
		*first = range->first;
		*end = range->end;
		*seq = range->seq;
		found = true;
		break;
	}
	spin_unlock(&tr->discard_lock);
	return found;
}

/*
 * A number may have several ranges: leave_open() takes one out of another, and recovery finds
 * what was written again beside it. One that reaches beyond what was emptied stays.
 */
void tr_discard_close(struct terrace *tr, u64 first, u64 end, u64 seq)
{
	struct open_range *range, *next;

	spin_lock(&tr->discard_lock);
	list_for_each_entry_safe(range, next, &tr->discards, list)
		if (range->seq == seq && range->first >= first && range->end <= end)
			drop_range__f(tr, range);
	spin_unlock(&tr->discard_lock);
}

void tr_discards_init(struct terrace *tr)
{
	spin_lock_init(&tr->discard_lock);
	INIT_LIST_HEAD(&tr->discards);
	INIT_WORK(&tr->discard_work, discard_fn);
}

void tr_discards_exit(struct terrace *tr)
{
	struct open_range *range, *next;

	list_for_each_entry_safe(range, next, &tr->discards, list)
		kfree(range);
}
