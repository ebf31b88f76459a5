// SPDX-License-Identifier: GPL-2.0
/*
 * One struct terrace_summary per region, for policies to map.
 *
 * The array is made by the first mmap() and lasts as long as the volume; it
 * counts as memory of the map. Whoever changes a region only sets its bit; a
 * worker counts anew what is marked, ten times a second at most, and an order
 * does so for its region before its result is there. What has been evicted and bears no mark
 * has been counted since it changed. What is gone before it was counted gets STALE: of it, `fast` is
 * known from its page, the rest as it was counted last. What is loaded needs to be counted only if it
 * is STALE, or not as its page had it.
 *
 * A mark is taken in the section of the mutex in which its region is looked at: a
 * count that another one has made there is then not taken for older than the mark.
 *
 * Under writes all over the volume every region is marked all the time. So the worker makes way for
 * whoever wants its CPU, and rests in proportion to what it took, for DELAY_MOST_MS at most. What hardly can
 * have changed anything, as an overwrite on shelves, is counted by another one, every LATER_MS.
 */
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "packs.h"
#include "sense.h"

#define DELAY_MS	100
#define DELAY_MOST_MS	5000
#define LATER_MS	5000
#define REST		20		/* times as long as it took */

struct tr_summary {
	struct terrace *tr;
	u64 nr;
	struct terrace_summary *entry;
	unsigned long *changed;
	unsigned long *later;		/* changed, a few seconds from now */
	struct mutex mutex;		/* who writes entries; nests inside alive */
	struct delayed_work work;
	struct delayed_work later_work;
	u32 delay_ms;			/* to the next turn of the worker */
	bool tick;			/* a tick has passed: ages */
	struct tr_summary *old;		/* of the volume before it grew: may be in use */
};

static u64 bytes_of(u64 nr)
{
	return PAGE_ALIGN(nr * sizeof(struct terrace_summary));
}

static u64 footprint(u64 nr)
{
	return bytes_of(nr) + 2 * BITS_TO_LONGS(nr) * sizeof(long);
}

/* --- one region ----------------------------------------------------------------------- */

static u32 weight(const u64 *mask, const u64 *without)
{
	u32 w, n = 0;

	for (w = 0; w < TR_LEAF_WORDS; w++)
		n += hweight64(mask[w] & ~without[w]);
	return n;
}

/* By whole words: block by block it is ten times as dear where blocks lie strewn. */
static void count_places__f(struct terrace *tr, struct tr_region *region, struct terrace_summary *s)
{
	u64 fast[TR_LEAF_WORDS] = {}, packed[TR_LEAF_WORDS] = {}, none[TR_LEAF_WORDS] = {};
	struct tr_packs *packs = tr_region_packs(region);

	tr_leaf_on_tiers(&region->leaf, tr_slots_tiers(tr), fast);
	if (packs)
		tr_packs_mask(packs, packed);
	s->fast = weight(fast, none);
	s->dirty = weight(fast, packed);
	s->loose = region->leaf.nr - s->fast;
	s->packed = weight(packed, none);
}

/* Counts the region; @id gets its packs'. */
static void count(struct terrace *tr, struct tr_region *region, struct terrace_summary *s, u64 *id)
{
	struct tr_packs *packs;
	u32 k;

	spin_lock_irq(&region->lock);
	count_places__f(tr, region, s);
	packs = tr_region_packs(region);
	s->packs = packs ? packs->nr : 0;
	for (k = 0; k < s->packs; k++) {
		id[k] = packs->pack[k].id;
		s->packed_blocks += packs->pack[k].blocks;
	}
	s->age = READ_ONCE(tr->tick) - READ_ONCE(region->age);
	if (region->flags & TR_REGION_MOVING)
		s->flags |= TERRACE_SUMMARY_MOVING;
	if (region->flags & TR_REGION_LOST)
		s->flags |= TERRACE_SUMMARY_LOST;
	spin_unlock_irq(&region->lock);
}

/* How much was in the packs, as far as their indexes are in memory. */
static void count_garbage(struct terrace *tr, struct terrace_summary *s, const u64 *id)
{
	u32 all = 0, k, nr;
	u8 codec;

	for (k = 0; k < s->packs; k++) {
		if (!tr_index_peek(tr, id[k], &nr, &codec))
			return;
		all += nr;
	}
	s->garbage = all > s->packed ? all - s->packed : 0;
	s->overwritten = all ? s->garbage * 255 / all : 0;
}

static struct tr_region *find_pinned(struct terrace *tr, u64 number)
{
	struct tr_region *region;

	rcu_read_lock();
	region = tr_region_find(tr, number);
	if (region && (region == &tr->empty || !tr_region_pin(region)))
		region = NULL;
	rcu_read_unlock();
	return region;
}

/* Of a region that is not loaded. @s: as it was counted last. True: its directory may be read the next time. */
static bool look_up(struct terrace *tr, u64 number, struct terrace_summary *s)
{
	/* First: who settles it puts the page into the tree, then drops this. */
	bool recovered = tr_recover_find_delta(tr, number);
	struct tr_entry page;
	int err;
	u8 age;

	/* Who loads a region waits for pages_mutex, too. */
	tr_work_normally();
	err = tr_page_lookup(tr, TERRACE_TREE_MAP, 0, number, &page);
	tr_work_gently(tr);
	tr_memory_check(tr);		/* a directory may have come */
	if (err == -ENOENT && !recovered) {
		*s = (struct terrace_summary){ .age = 255 };	/* nothing there */
		return false;
	}
	s->flags |= TERRACE_SUMMARY_STALE;
	if (err)
		return err == -EIO || err == -ENOMEM;	/* as in load.c */
	s->fast = page.count;
	/*
	 * It may have been read since its page was written. Ages wrap, which the janitor accepts as well. Another
	 * activation's tick tells which of two is older, if nothing else is known.
	 */
	age = READ_ONCE(tr->tick) - page.age;
	if (s->age == 255 || (page.seq >= tr->journal.first_record && age < s->age))
		s->age = age;
	return false;
}

/* @may_read: directories. Else what is not loaded stays marked, and STALE until the worker has its turn. */
static void refresh(struct tr_summary *summary, u64 number, bool may_read)
{
	struct terrace *tr = summary->tr;
	struct terrace_summary s = {}, *entry = &summary->entry[number];
	u64 id[TERRACE_PACK_SLOTS], mask[TR_LEAF_WORDS];
	struct tr_region *region;
	bool changed;

	lockdep_assert_held(&summary->mutex);
	clear_bit(number, summary->later);	/* it is counted now, or evicted: then there is nothing to count */
	/* Fully ordered: what changes from here on, or is loaded and not found, sets either again. */
	changed = test_and_clear_bit(number, summary->changed);
	region = find_pinned(tr, number);
	if (!region && changed) {
		WRITE_ONCE(entry->flags, entry->flags | TERRACE_SUMMARY_STALE);
		/* Pairs with region_insert(): it is found here, or whoever loads it finds this, and marks it. */
		smp_mb();
		region = find_pinned(tr, number);
	}
	if (region) {
		count(tr, region, &s, id);
		tr_region_put(region);
		count_garbage(tr, &s, id);
	} else {
		s = *entry;
		s.flags &= TERRACE_SUMMARY_LOST | TERRACE_SUMMARY_STALE;
		if (changed && (!may_read || look_up(tr, number, &s)))
			set_bit(number, summary->changed);	/* tr_summary_tick() looks again at the latest */
	}
	if (READ_ONCE(tr->ranges) &&
	    tr_ranges_mask(tr, number, BIT(TERRACE_RANGE_PIN_FAST) | BIT(TERRACE_RANGE_PIN_SLOW), mask))
		s.flags |= TERRACE_SUMMARY_PINNED;
	*entry = s;
}

/* --- all of them ---------------------------------------------------------------------- */

static void age_all(struct tr_summary *summary)
{
	struct terrace *tr = summary->tr;
	struct tr_region *region;
	u64 i;

	for (i = 0; i < summary->nr; i++) {
		struct terrace_summary *entry = &summary->entry[i];
		u8 age = entry->age;

		rcu_read_lock();
		region = tr_region_find(tr, i);
		if (region && region != &tr->empty)
			age = READ_ONCE(tr->tick) - READ_ONCE(region->age);
		else if (age < 255)
			age++;
		rcu_read_unlock();
		if (age != entry->age)
			WRITE_ONCE(entry->age, age);
		cond_resched();
	}
}

static void look_again(struct terrace *tr, struct tr_summary *summary)
{
	queue_delayed_work(tr->meta_wq, &summary->work, msecs_to_jiffies(READ_ONCE(summary->delay_ms)));
}

static void look_later(struct terrace *tr, struct tr_summary *summary)
{
	queue_delayed_work(tr->meta_wq, &summary->later_work, msecs_to_jiffies(LATER_MS));
}

static void refresh_marked(struct tr_summary *summary, const unsigned long *marked)
{
	u64 i;

	for_each_set_bit(i, marked, summary->nr) {
		if (READ_ONCE(summary->tr->stopping))
			break;		/* tr_summary_wake() goes on after it */
		mutex_lock(&summary->mutex);
		refresh(summary, i, true);
		mutex_unlock(&summary->mutex);
		tr_give_way();
	}
}

static void summary_fn(struct work_struct *work)
{
	struct tr_summary *summary = container_of(to_delayed_work(work), struct tr_summary, work);
	ktime_t begin = ktime_get();

	tr_work_gently(summary->tr);
	if (xchg(&summary->tick, false)) {
		mutex_lock(&summary->mutex);
		age_all(summary);
		mutex_unlock(&summary->mutex);
	}
	refresh_marked(summary, summary->changed);
	tr_work_normally();
	WRITE_ONCE(summary->delay_ms, clamp_t(s64, ktime_ms_delta(ktime_get(), begin) * REST, DELAY_MS, DELAY_MOST_MS));
}

static void later_fn(struct work_struct *work)
{
	struct tr_summary *summary = container_of(to_delayed_work(work), struct tr_summary, later_work);

	tr_work_gently(summary->tr);
	refresh_marked(summary, summary->later);
	tr_work_normally();
}

void tr_summary_touch(struct terrace *tr, u64 number)
{
	struct tr_summary *summary;

	rcu_read_lock();
	summary = READ_ONCE(tr->summary);
	if (summary && number < summary->nr && !test_bit(number, summary->changed)) {
		set_bit(number, summary->changed);
		look_again(tr, summary);
	}
	rcu_read_unlock();
}

void tr_summary_touch_later(struct terrace *tr, u64 number)
{
	struct tr_summary *summary;

	rcu_read_lock();
	summary = READ_ONCE(tr->summary);
	if (summary && number < summary->nr && !test_bit(number, summary->later)) {
		set_bit(number, summary->later);
		look_later(tr, summary);
	}
	rcu_read_unlock();
}

/* What its page did not tell can be counted now. */
void tr_summary_loaded(struct terrace *tr, u64 number, bool changed)
{
	struct tr_summary *summary;

	rcu_read_lock();
	summary = READ_ONCE(tr->summary);
	if (summary && number < summary->nr && READ_ONCE(summary->entry[number].flags) & TERRACE_SUMMARY_STALE)
		changed = true;
	rcu_read_unlock();
	if (changed)
		tr_summary_touch(tr, number);
}

void tr_summary_now(struct terrace *tr, u64 number)
{
	struct tr_summary *summary = READ_ONCE(tr->summary);	/* its end waits for orders */

	if (!summary || number >= summary->nr)
		return;
	mutex_lock(&summary->mutex);
	refresh(summary, number, false);
	mutex_unlock(&summary->mutex);
	if (test_bit(number, summary->changed))
		look_again(tr, summary);
}

static void wake(struct terrace *tr, bool tick)
{
	struct tr_summary *summary;

	rcu_read_lock();
	summary = READ_ONCE(tr->summary);
	if (summary) {
		if (tick)
			WRITE_ONCE(summary->tick, true);
		look_again(tr, summary);
		look_later(tr, summary);
	}
	rcu_read_unlock();
}

void tr_summary_tick(struct terrace *tr) { wake(tr, true); }
void tr_summary_wake(struct terrace *tr) { wake(tr, false); }

/* --- lives ---------------------------------------------------------------------------- */

/* Who has it mapped keeps the pages. */
static void summary_free(struct tr_summary *summary)
{
	vfree(summary->entry);
	kvfree(summary->changed);
	kvfree(summary->later);
	kfree(summary);
}

static struct tr_summary *summary_new(struct terrace *tr, u64 nr)
{
	struct tr_summary *summary = kzalloc(sizeof(*summary), GFP_KERNEL);
	u64 i;

	if (!summary)
		return NULL;
	summary->tr = tr;
	summary->nr = nr;
	summary->delay_ms = DELAY_MS;
	summary->entry = vmalloc_user(bytes_of(nr));
	summary->changed = kvcalloc(BITS_TO_LONGS(nr), sizeof(long), GFP_KERNEL);
	summary->later = kvcalloc(BITS_TO_LONGS(nr), sizeof(long), GFP_KERNEL);
	if (!summary->entry || !summary->changed || !summary->later) {
		summary_free(summary);
		return NULL;
	}
	mutex_init(&summary->mutex);
	INIT_DELAYED_WORK(&summary->work, summary_fn);
	INIT_DELAYED_WORK(&summary->later_work, later_fn);
	for (i = 0; i < nr; i++)
		summary->entry[i] = (struct terrace_summary){ .flags = TERRACE_SUMMARY_STALE, .age = 255 };
	bitmap_fill(summary->changed, nr);
	return summary;
}

u64 tr_summary_bytes(struct terrace *tr)
{
	return bytes_of(tr_nr_regions(tr));
}

int tr_summary_map(struct terrace *tr, struct vm_area_struct *vma, unsigned long page)
{
	struct tr_summary *summary = tr->summary;
	u64 nr = tr_nr_regions(tr);

	if (!summary || summary->nr < nr) {
		if (footprint(nr) > tr_memory_limit(tr) / 2) {
			DMWARN("%s: summaries of %llu regions take %llu bytes, more than half of memory_mb",
			       tr->name, nr, footprint(nr));
			return -ENOMEM;
		}
		summary = summary_new(tr, nr);
		if (!summary)
			return -ENOMEM;
		summary->old = tr->summary;
		/* Pairs with the dependent loads of those who mark. */
		smp_store_release(&tr->summary, summary);
		atomic64_add(footprint(nr), &tr->memory);
		tr_memory_check(tr);
		mod_delayed_work(tr->meta_wq, &summary->work, 0);
	}
	return remap_vmalloc_range(vma, summary->entry, page);
}

/* No order runs any more, nobody maps it. */
void tr_summary_exit(struct terrace *tr)
{
	struct tr_summary *summary = tr->summary, *old;

	if (!summary)
		return;
	WRITE_ONCE(tr->summary, NULL);
	synchronize_rcu();
	for (; summary; summary = old) {
		old = summary->old;
		cancel_delayed_work_sync(&summary->later_work);
		cancel_delayed_work_sync(&summary->work);
		atomic64_sub(footprint(summary->nr), &tr->memory);
		summary_free(summary);
	}
}
