// SPDX-License-Identifier: GPL-2.0
/*
 * Loading regions. Three things are laid over one another: the page; what
 * recovery found in the journal for this region; and discards, by which
 * blocks lose their places although no record has freed these yet. Those are
 * freed now, by UNMAP records.
 *
 * The records need journal credits, at most one for each block. Nobody waits
 * for credits under a load mutex: journal room may need a checkpoint, which
 * needs the mutex for a region of its own. So building a region changes
 * nothing. Who finds at the end that it lacks credits throws it away, waits
 * without the mutex, and begins anew. Checkpoints do not load regions at all,
 * see settle.c.
 *
 * The last look at the open discards, the records and the insertion into the
 * table are one step under discard_lock. A discard that comes later finds the
 * region in the table.
 */
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "region.h"

/* --- building --------------------------------------------------------------- */

/* Gives the private @region what its page holds. */
static int load_page(struct terrace *tr, struct tr_region *region, const void *page, u32 bytes)
{
	u64 data_blocks[TERRACE_MAX_TIERS];
	struct tr_array *array;
	bool high;
	u32 nr, nr_packs, t;
	int err;

	err = tr_map_room(page, bytes, &nr, &high, &nr_packs);
	if (err)
		return err;
	for (t = 0; t < tr->nr_tiers; t++)
		data_blocks[t] = tr->tier[t].data_blocks;
	array = tr_array_alloc(tr, nr, high);
	tr_leaf_replace(&region->leaf, array->low, tr_array_high(array, high), array->cap);
	if (nr_packs)
		tr_region_packs_grow(tr, region, nr_packs);
	err = tr_map_decode(page, bytes, &region->leaf, tr_region_packs(region), &region->age,
			    data_blocks, tr->nr_tiers);
	/* Its tick may be another activation's. Whoever wants to use it touches it anyway. */
	region->age = READ_ONCE(tr->tick) - TR_AGE_MOST;
	return err;
}

/* Lays what recovery found over the loaded page. */
static int load_delta(struct terrace *tr, struct tr_region *region, const struct tr_delta *delta)
{
	bool high = false;
	u32 room = tr_delta_overlay_room(delta, &region->leaf, &high);
	int packs;

	if (room > region->leaf.nr || high)
		tr_region_grow(tr, region, max_t(s32, room - region->leaf.nr, 1), high);
	packs = tr_delta_overlay_packs(delta, tr_region_packs(region));
	if (packs > 0)
		tr_region_packs_grow(tr, region, packs);
	return packs < 0 ? packs : tr_delta_overlay(delta, &region->leaf, tr_region_packs(region));
}

/* Blocks that have a value: a place, or live in a pack. */
static void valued(const struct tr_region *region, u64 *mask)
{
	struct tr_packs *packs = tr_region_packs(region);
	u32 w;

	memset(mask, 0, TR_LEAF_WORDS * sizeof(*mask));
	if (packs)
		tr_packs_mask(packs, mask);
	for (w = 0; w < TR_LEAF_WORDS; w++)
		mask[w] |= region->leaf.present[w];
}

/*
 * A block that the page says is gone, and that a record newer than the page
 * names, was freed by that record. Records that the page contains do not
 * count; those of them that are newer than the discard cannot be about a gone
 * block. So only the newer ones, those in `kept`, have to be looked at.
 */
static void settle_gone(struct tr_build *build)
{
	u64 mask[TR_LEAF_WORDS];
	u32 w;

	valued(build->region, mask);
	for (w = 0; w < TR_LEAF_WORDS; w++) {
		build->gone[w] &= mask[w];
		if (build->delta)
			build->gone[w] &= ~build->delta->kept[w];
	}
}

static int build_from(struct terrace *tr, struct tr_build *build, const void *page, u32 bytes)
{
	int err;

	if (bytes) {
		err = load_page(tr, build->region, page, bytes);
		if (err)
			return err;
		tr_map_gone(page, bytes, build->gone);
	}
	err = build->delta ? load_delta(tr, build->region, build->delta) : 0;
	settle_gone(build);
	return err;
}

int tr_region_build(struct terrace *tr, u64 number, bool create, struct tr_build *build)
{
	struct tr_entry entry = {};
	void *page;
	int err;

	memset(build, 0, sizeof(*build));
	build->delta = tr_recover_find_delta(tr, number);
	page = tr_page_get(tr);
	err = tr_page_read(tr, TERRACE_TREE_MAP, 0, number, page, &entry);
	if (err && err != -ENOENT)
		goto out;
	if (err && !build->delta && !create) {
		err = 0;
		goto out;
	}
	build->region = tr_region_alloc(tr, number);
	build->region->last_seq = entry.seq;
	build->page_seq = entry.seq;
	if (!err)
		build->region->flags |= TR_REGION_PAGED;
	err = build_from(tr, build, page, err ? 0 : entry.blocks * TERRACE_BLOCK_BYTES);
	if (err) {
		tr_region_free(tr, build->region);
		build->region = NULL;
	}
out:
	tr_page_put(tr, page);
	return err;
}

bool tr_build_discard(struct tr_build *build, u64 seq)
{
	const struct tr_delta *delta = build->delta;
	const u64 *kept = NULL;
	u64 mask[TR_LEAF_WORDS], gone = 0;
	u32 w;

	if (delta && delta->discard_seq >= seq) {
		seq = delta->discard_seq;
		kept = delta->kept;
	}
	valued(build->region, mask);
	for (w = 0; w < TR_LEAF_WORDS; w++) {
		if (seq > build->page_seq)
			build->gone[w] = mask[w] & ~(kept ? kept[w] : 0);
		gone |= build->gone[w];
	}
	return gone;
}

/* --- into the table ----------------------------------------------------------- */

/* Takes the places of the blocks that are gone away, with records if somebody
 * may write them. Credits used.
 */
static u32 free_gone(struct terrace *tr, struct tr_build *build, bool records)
{
	const unsigned long *gone = (const unsigned long *)build->gone;
	struct tr_region *region = build->region;
	unsigned long flags;
	u32 used = 0;
	u32 i, end;

	spin_lock_irqsave(&region->lock, flags);
	for (i = 0; (i = find_next_bit(gone, TERRACE_REGION_BLOCKS, i)) < TERRACE_REGION_BLOCKS;
	     i = end) {
		end = find_next_zero_bit(gone, TERRACE_REGION_BLOCKS, i);
		if (records)
			used += tr_region_unmap__f(tr, region, i, end - i);
		else
			tr_region_forget__f(region, i, end - i);
	}
	spin_unlock_irqrestore(&region->lock, flags);
	return used;
}

/* From here on a checkpoint writes the page that @delta asks for; not before a
 * discard has been applied, for the page will claim to contain it.
 */
static void own_delta(struct terrace *tr, struct tr_region *region, const struct tr_delta *delta)
{
	unsigned long flags;

	spin_lock_irqsave(&region->lock, flags);
	region->last_seq = max(region->last_seq, delta->newest_seq);
	tr_region_mark_dirty__f(tr, region, delta->newest_seq);
	tr_credit_force__f(tr, region);		/* the delta counted as one */
	spin_unlock_irqrestore(&region->lock, flags);
}

/* Without its page nothing can be said about the region, not even with what
 * the journal adds. It stays in memory, so that it stays lost.
 */
static void lose(struct terrace *tr, struct tr_build *build, u64 number, int err)
{
	DMERR("%s: map page of region %llu is damaged (%d); its blocks read as errors",
	      tr->name, number, err);
	build->region = tr_region_alloc(tr, number);
	build->region->flags |= TR_REGION_LOST;
	build->region->pins = 1;
	/* What the journal knows of it must not be forgotten: should the page be
	 * readable next time, it would be believed alone.
	 */
	if (build->delta)
		tr_mode_lower(tr, TR_MODE_READ_ONLY,
			      "map page of a region that the journal changes is damaged", -EIO);
}

static int region_insert(struct terrace *tr, u64 number, bool create, u32 *credits)
{
	struct tr_region **slot;
	bool lost = false, discarded = false, records = *credits;
	struct tr_build build;
	u64 discard;
	int err;

	err = tr_region_build(tr, number, create, &build);
	if (err == -EIO || err == -ENOMEM)
		return err;		/* may go well the next time */
	if (err) {
		lose(tr, &build, number, err);
		lost = true;
	}
	spin_lock(&tr->discard_lock);
	while (!(slot = tr_table_slot__f(tr, number))) {
		spin_unlock(&tr->discard_lock);
		tr_table_page_make(tr, number);
		spin_lock(&tr->discard_lock);
	}
	discard = tr_discard_pending__f(tr, number);
	if (build.region && !lost)
		discarded = tr_build_discard(&build, discard);
	if (discarded) {
		if (!records && tr_writable(tr)) {
			spin_unlock(&tr->discard_lock);
			tr_region_free(tr, build.region);
			return -EAGAIN;
		}
		*credits -= free_gone(tr, &build, records);
	}
	if (build.delta && !lost)
		own_delta(tr, build.region, build.delta);
	/* pairs with the dependent loads in tr_region_find() */
	smp_store_release(slot, build.region ?: &tr->empty);
	spin_unlock(&tr->discard_lock);
	/* Only now: a checkpoint that does not find the region dirty must find
	 * the delta, or it would move the tail past both.
	 */
	tr_recover_drop_delta(tr, number, build.delta);
	/* Pairs with refresh(): the region is in the table before it is asked whether there are summaries, and
	 * whether its own is STALE; there that is said before the table is looked at. Else both could miss.
	 */
	smp_mb();
	if (unlikely(READ_ONCE(tr->summary)))
		tr_summary_loaded(tr, number, lost || build.delta || discarded);
	return 0;
}

/* One attempt. -EAGAIN: with credits for a discard, once more. */
static struct tr_region *region_try(struct terrace *tr, u64 number, bool create, u32 *credits)
{
	struct mutex *load = &tr->load_mutex[number % TR_LOAD_MUTEXES];
	struct tr_region *region;
	bool pinned;
	int err;

	for (;;) {
		rcu_read_lock();
		region = tr_region_find(tr, number);
		if (region == &tr->empty && !create) {
			rcu_read_unlock();
			return NULL;
		}
		pinned = region && region != &tr->empty && tr_region_pin(region);
		rcu_read_unlock();
		if (pinned)
			return region;

		mutex_lock(load);
		rcu_read_lock();
		region = tr_region_find(tr, number);
		rcu_read_unlock();
		err = !region || (region == &tr->empty && create) ?
		      region_insert(tr, number, create, credits) : 0;
		mutex_unlock(load);
		if (err)
			return ERR_PTR(err);
		tr_memory_check(tr);
	}
}

static struct tr_region *unless_lost(struct tr_region *region)
{
	if (IS_ERR_OR_NULL(region) || !(region->flags & TR_REGION_LOST))
		return region;
	tr_region_put(region);
	return ERR_PTR(-EUCLEAN);
}

struct tr_region *tr_region_get(struct terrace *tr, u64 number, bool create)
{
	struct tr_region *region;
	u32 credits = 0;

	while (PTR_ERR(region = region_try(tr, number, create, &credits)) == -EAGAIN)
		if (!tr_journal_reserve_wait(tr, TERRACE_REGION_BLOCKS))
			credits = TERRACE_REGION_BLOCKS;
	tr_journal_unreserve(tr, credits);
	return unless_lost(region);
}

struct tr_region *tr_region_get_loaded(struct terrace *tr, u64 number)
{
	struct tr_region *region;

	rcu_read_lock();
	region = tr_region_find(tr, number);
	if (region == &tr->empty)
		region = NULL;
	else if (!region || !tr_region_pin(region))
		region = ERR_PTR(-EBUSY);
	rcu_read_unlock();
	return unless_lost(region);
}
