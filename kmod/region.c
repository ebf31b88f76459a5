// SPDX-License-Identifier: GPL-2.0
/*
 * Regions in memory: looked up without a lock, grown as blocks arrive,
 * evicted when clean.
 *
 * The table is two levels of pointers, the first 4 KiB per TiB. An entry is
 * NULL (nothing known), &tr->empty (known to have no page) or the region. An
 * object leaves the table only when it is clean, unpinned and without
 * promises; it is marked DEAD under its lock first, so that whoever still
 * holds the pointer looks again. Arrays, objects and empty pages of the table
 * are freed by RCU.
 *
 * Loading is load.c's business.
 */
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "packs.h"
#include "region.h"

#define TR_TABLE_PAGE	(1u << TR_DIR_SHIFT)

static struct tr_array *array_of(const struct tr_leaf *leaf)
{
	return leaf->low ? container_of(leaf->low, struct tr_array, low[0]) : NULL;
}

/* --- packs ------------------------------------------------------------------ */

struct tr_packs *tr_region_packs(const struct tr_region *region)
{
	u32 *low = READ_ONCE(region->leaf.low);
	struct tr_packs_memory *memory;

	memory = low ? READ_ONCE(container_of(low, struct tr_array, low[0])->packs) : NULL;
	return memory ? &memory->packs : NULL;
}

static void packs_free_rcu(struct rcu_head *rcu)
{
	struct tr_packs_memory *memory = container_of(rcu, struct tr_packs_memory, rcu);

	tr_map_free(memory, memory->pool);
}

static void packs_free(struct terrace *tr, struct tr_packs_memory *memory)
{
	if (!memory)
		return;
	atomic64_sub(tr_map_bytes(memory, memory->pool), &tr->memory);
	call_rcu(&memory->rcu, packs_free_rcu);
}

void tr_region_packs_grow(struct terrace *tr, struct tr_region *region, u32 cap)
{
	struct tr_packs_memory *fresh, *old = NULL;
	struct tr_packs *packs;
	unsigned long flags;
	mempool_t *pool;

	if (!region->leaf.low)
		tr_region_grow(tr, region, 1, false);	/* something to hang them on */
	fresh = tr_map_alloc(tr, NULL, offsetof(struct tr_packs_memory, packs) + tr_packs_bytes(cap),
			     &pool);
	fresh->pool = pool;
	tr_packs_init(&fresh->packs, cap);
	atomic64_add(tr_map_bytes(fresh, pool), &tr->memory);
	spin_lock_irqsave(&region->lock, flags);
	packs = tr_region_packs(region);
	if (packs && packs->cap >= cap) {
		old = fresh;
	} else {
		if (packs) {
			tr_packs_copy(&fresh->packs, packs);
			old = container_of(packs, struct tr_packs_memory, packs);
		}
		write_seqcount_begin(&region->seq);
		/* pairs with the dependent loads in tr_region_packs() */
		smp_store_release(&array_of(&region->leaf)->packs, fresh);
		write_seqcount_end(&region->seq);
	}
	spin_unlock_irqrestore(&region->lock, flags);
	packs_free(tr, old);
}

static void region_init(struct tr_region *region, u64 number)
{
	memset(region, 0, sizeof(*region));
	tr_leaf_init(&region->leaf);
	seqcount_init(&region->seq);
	spin_lock_init(&region->lock);
	INIT_LIST_HEAD(&region->dirty);
	region->number = number;
}

struct tr_region *tr_region_alloc(struct terrace *tr, u64 number)
{
	struct tr_region *region = tr_reserve_region(tr);

	region_init(region, number);
	region->age = READ_ONCE(tr->tick);
	atomic64_add(sizeof(*region), &tr->memory);
	return region;
}

static void region_free_rcu(struct rcu_head *rcu)
{
	struct tr_region *region = container_of(rcu, struct tr_region, rcu);

	mempool_free(region, region->pool);
}

void tr_region_free(struct terrace *tr, struct tr_region *region)
{
	if (region->leaf.low)
		packs_free(tr, array_of(&region->leaf)->packs);
	tr_array_free(tr, array_of(&region->leaf));
	atomic64_sub(sizeof(*region), &tr->memory);
	region->pool = &tr->region_pool;
	call_rcu(&region->rcu, region_free_rcu);
}

/* --- the table ------------------------------------------------------------ */

struct tr_region *tr_region_find(struct terrace *tr, u64 number)
{
	struct tr_region ***table = READ_ONCE(tr->table);
	struct tr_region **page = READ_ONCE(table[number >> TR_DIR_SHIFT]);

	return page ? READ_ONCE(page[number & (TR_TABLE_PAGE - 1)]) : NULL;
}

struct tr_region **tr_table_slot__f(struct terrace *tr, u64 number)
{
	struct tr_region **page;
	unsigned long flags;

	lockdep_assert_held(&tr->discard_lock);		/* the page stays */
	spin_lock_irqsave(&tr->table_lock, flags);	/* the table, too */
	page = tr->table[number >> TR_DIR_SHIFT];
	spin_unlock_irqrestore(&tr->table_lock, flags);
	return page ? &page[number & (TR_TABLE_PAGE - 1)] : NULL;
}

void tr_table_page_make(struct terrace *tr, u64 number)
{
	/* Bounded: a page, once for each 2 GiB of the volume that are used, and
	 * evicted with them.
	 */
	struct tr_region **fresh = kcalloc(TR_TABLE_PAGE, sizeof(*fresh), TR_GFP_MUST);
	unsigned long flags;

	spin_lock_irqsave(&tr->table_lock, flags);
	if (!tr->table[number >> TR_DIR_SHIFT]) {
		/* pairs with the dependent loads in tr_region_find() */
		smp_store_release(&tr->table[number >> TR_DIR_SHIFT], fresh);
		atomic64_add(TR_TABLE_PAGE * sizeof(*fresh), &tr->memory);
		fresh = NULL;
	}
	spin_unlock_irqrestore(&tr->table_lock, flags);
	kfree(fresh);
}

bool tr_region_pin(struct tr_region *region)
{
	unsigned long flags;
	bool alive;

	spin_lock_irqsave(&region->lock, flags);
	alive = !(region->flags & TR_REGION_DEAD);
	if (alive)
		region->pins++;
	spin_unlock_irqrestore(&region->lock, flags);
	return alive;
}

void tr_region_put(struct tr_region *region)
{
	unsigned long flags;

	spin_lock_irqsave(&region->lock, flags);
	WARN_ON_ONCE(!region->pins);
	region->pins--;
	spin_unlock_irqrestore(&region->lock, flags);
}

/* --- room in the leaf ------------------------------------------------------- */

bool tr_region_reserve__f(struct tr_region *region, u32 n, bool high)
{
	struct tr_leaf *leaf = &region->leaf;

	lockdep_assert_held(&region->lock);
	if (high && !leaf->high)
		return false;
	if (leaf->cap < TERRACE_REGION_BLOCKS && leaf->nr + region->reserved + n > leaf->cap)
		return false;
	region->reserved += n;
	return true;
}

void tr_region_grow(struct terrace *tr, struct tr_region *region, u32 n, bool high)
{
	struct tr_leaf *leaf = &region->leaf;
	struct tr_array *fresh, *old;
	unsigned long flags;
	u32 want;

	spin_lock_irqsave(&region->lock, flags);
	want = min_t(u32, leaf->nr + region->reserved + n, TERRACE_REGION_BLOCKS);
	want = max_t(u32, want, leaf->cap);
	high |= !!leaf->high;
	spin_unlock_irqrestore(&region->lock, flags);

	fresh = tr_array_alloc(tr, want, high);

	spin_lock_irqsave(&region->lock, flags);
	old = array_of(leaf);
	fresh->packs = old ? old->packs : NULL;
	write_seqcount_begin(&region->seq);
	/* Refused when somebody has put in a larger one that is in use; then
	 * there is room, and whoever still needs more asks again. Also when it has got
	 * high bytes meanwhile and this one has none: a tier grew beyond what short
	 * places reach, and a writer may have been promised that one with them has room.
	 */
	if (leaf->cap > fresh->cap || (leaf->high && !high) ||
	    tr_leaf_replace(leaf, fresh->low, tr_array_high(fresh, high), fresh->cap))
		old = fresh;
	write_seqcount_end(&region->seq);
	spin_unlock_irqrestore(&region->lock, flags);
	tr_array_free(tr, old);
}

/* --- changes, each with its record ------------------------------------------ */

void tr_region_mark_dirty__f(struct terrace *tr, struct tr_region *region, u64 first_seq)
{
	lockdep_assert_held(&region->lock);
	if (region->flags & TR_REGION_DIRTY)
		return;
	region->flags |= TR_REGION_DIRTY;
	region->first_dirty_seq = first_seq;
	spin_lock(&tr->dirty_lock);
	list_add_tail(&region->dirty, &tr->dirty_regions);
	tr->nr_dirty_regions++;
	spin_unlock(&tr->dirty_lock);
}

static void note_record__f(struct terrace *tr, struct tr_region *region, const struct tr_record *record)
{
	bool was_dirty = region->flags & TR_REGION_DIRTY;

	/* First: a checkpoint that finds the record behind its tail must find
	 * the region on the list; it captures under the lock that we hold.
	 */
	tr_region_mark_dirty__f(tr, region, 0);
	region->last_seq = tr_journal_append(tr, record);
	if (!was_dirty)
		region->first_dirty_seq = region->last_seq;
}

static void touch_summary(struct terrace *tr, struct tr_region *region)
{
	if (unlikely(READ_ONCE(tr->summary)))
		tr_summary_touch(tr, region->number);
}

void tr_region_record__f(struct terrace *tr, struct tr_region *region,
			 const struct tr_record *record)
{
	note_record__f(tr, region, record);
	touch_summary(tr, region);
}

static void blocks_record__f(struct terrace *tr, struct tr_region *region, u8 type,
			     u32 i, u32 n, u64 new, u64 old)
{
	struct tr_record record = {
		.type = type,
		.nr = n,
		.block = (region->number << TERRACE_REGION_SHIFT) + i,
		.new = new,
		.old = old,
	};

	note_record__f(tr, region, &record);
}

/* What goes to another place of its tier, as each overwrite on shelves does, leaves the counts of the summary as they are. */
u32 tr_region_map__f(struct terrace *tr, struct tr_region *region, u32 i, u32 n, u64 place)
{
	struct tr_packs *packs = tr_region_packs(region);
	u32 credits = 0, done = 0, m, died = 0;
	bool counts = false;
	u64 old;
	int err;

	lockdep_assert_held(&region->lock);
	for (; done < n; done += m, credits++) {
		m = tr_leaf_run(&region->leaf, i + done, n - done, &old);
		blocks_record__f(tr, region, TERRACE_RECORD_MAP, i + done, m,
				 tr_place_add(place, done), old);
		counts |= old == TR_NO_PLACE || tr_place_tier(old) != tr_place_tier(place);
	}
	write_seqcount_begin(&region->seq);
	err = tr_leaf_set(&region->leaf, i, n, place);
	if (packs)
		died = tr_packs_clear(packs, i, n);
	write_seqcount_end(&region->seq);
	if (packs)
		tr_packs_forgotten__f(tr, region, i, n);
	if (died)
		this_cpu_add(tr->stats->hidden, died);
	if (counts || died)
		touch_summary(tr, region);
	else if (unlikely(READ_ONCE(tr->summary)))
		tr_summary_touch_later(tr, region->number);
	WARN_ON_ONCE(err);
	return credits;
}

/* The run at @i that is at one place, or live in one pack, or neither. */
static u32 old_run__f(struct tr_region *region, struct tr_packs *packs, u32 i, u32 n,
		      u64 *place, u32 *pack)
{
	n = tr_leaf_run(&region->leaf, i, n, place);
	*pack = TR_NO_PACK;
	return packs ? tr_packs_run(packs, i, n, pack) : n;
}

u32 tr_region_unmap__f(struct terrace *tr, struct tr_region *region, u32 i, u32 n)
{
	struct tr_packs *packs = tr_region_packs(region);
	u32 credits = 0, done = 0, m, pack;
	u64 old;

	lockdep_assert_held(&region->lock);
	for (; done < n; done += m) {
		m = old_run__f(region, packs, i + done, n - done, &old, &pack);
		if (old == TR_NO_PLACE && pack == TR_NO_PACK)
			continue;
		blocks_record__f(tr, region, TERRACE_RECORD_UNMAP, i + done, m, TR_NO_PLACE, old);
		credits++;
	}
	if (!credits)
		return 0;
	this_cpu_add(tr->stats->hidden, tr_region_forget__f(region, i, n));
	if (packs)
		tr_packs_forgotten__f(tr, region, i, n);
	touch_summary(tr, region);
	return credits;
}

u32 tr_region_forget__f(struct tr_region *region, u32 i, u32 n)
{
	u32 died;

	write_seqcount_begin(&region->seq);
	tr_leaf_clear(&region->leaf, i, n);
	died = tr_packs_clear(tr_region_packs(region), i, n);
	write_seqcount_end(&region->seq);
	return died;
}

/* --- eviction ------------------------------------------------------------------ */

static bool evict_one(struct terrace *tr, struct tr_region **slot, u8 min_idle)
{
	struct tr_region *region = READ_ONCE(*slot);
	bool evict;

	lockdep_assert_held(&tr->table_lock);
	if (!region)
		return false;
	if (region == &tr->empty) {
		cmpxchg(slot, &tr->empty, NULL);	/* or one is just being put there */
		return false;
	}
	spin_lock(&region->lock);
	tr_credit_settle__f(tr, region);
	evict = !atomic_read(&tr->discard_walks) &&
		!(region->flags & (TR_REGION_DIRTY | TR_REGION_WRITING | TR_REGION_MOVING)) &&
		!region->pins && !region->reserved &&
		(u8)(READ_ONCE(tr->tick) - region->age) >= min_idle;
	if (evict) {
		region->flags |= TR_REGION_DEAD;
		WRITE_ONCE(*slot, NULL);
	}
	spin_unlock(&region->lock);
	if (evict)
		tr_region_free(tr, region);
	return evict;
}

/* Pages of the table on their way out; readers may still be in them. */
struct old_pages {
	u32 nr;
	struct tr_region **page[64];
};

static void free_old_pages(struct terrace *tr, struct old_pages *old)
{
	if (!old->nr)
		return;
	synchronize_rcu();
	while (old->nr) {
		kfree(old->page[--old->nr]);
		atomic64_sub(TR_TABLE_PAGE * sizeof(struct tr_region *), &tr->memory);
	}
}

static void evict_page(struct terrace *tr, u64 p, u8 min_idle, struct old_pages *old)
{
	struct tr_region **page;
	unsigned long flags;
	u32 i;

	/* discard_lock: nobody is about to put a region into the page. */
	spin_lock(&tr->discard_lock);
	spin_lock_irqsave(&tr->table_lock, flags);
	page = tr->table[p];
	for (i = 0; page && i < TR_TABLE_PAGE; i++)
		evict_one(tr, &page[i], min_idle);
	if (page && !memchr_inv(page, 0, TR_TABLE_PAGE * sizeof(*page))) {
		WRITE_ONCE(tr->table[p], NULL);
		old->page[old->nr++] = page;
	}
	spin_unlock_irqrestore(&tr->table_lock, flags);
	spin_unlock(&tr->discard_lock);
}

static void evict_pass(struct terrace *tr, s64 target, u8 min_idle)
{
	u64 pages = DIV_ROUND_UP_ULL(tr_nr_regions(tr), TR_TABLE_PAGE), p;
	struct old_pages old = {};
	bool there;

	for (p = 0; p < pages; p++) {
		if (atomic64_read(&tr->memory) -
		    (s64)(old.nr * TR_TABLE_PAGE * sizeof(struct tr_region *)) <= target)
			break;
		rcu_read_lock();
		there = READ_ONCE(READ_ONCE(tr->table)[p]);
		rcu_read_unlock();
		if (!there)
			continue;
		evict_page(tr, p, min_idle, &old);
		if (old.nr == ARRAY_SIZE(old.page))
			free_old_pages(tr, &old);
		cond_resched();
	}
	free_old_pages(tr, &old);
}

u64 tr_regions_evict(struct terrace *tr, u64 bytes)
{
	s64 before = atomic64_read(&tr->memory), target = before - (s64)bytes;
	static const u8 idle[] = { 64, 16, 4, 1, 0 };
	u32 k;

	for (k = 0; k < ARRAY_SIZE(idle) && atomic64_read(&tr->memory) > target; k++)
		evict_pass(tr, target, idle[k]);
	return max_t(s64, before - atomic64_read(&tr->memory), 0);
}

/* --- ages -------------------------------------------------------------------- */

#define AGE_WALK	32	/* ticks from one walk to the next: less than 256 with TR_AGE_MOST */

/* Who touches a region meanwhile may lose that; the next one says it again. */
static void age_page(struct terrace *tr, struct tr_region **page, u8 tick)
{
	struct tr_region *region;
	u32 i;

	for (i = 0; i < TR_TABLE_PAGE; i++) {
		region = READ_ONCE(page[i]);
		if (region && region != &tr->empty &&
		    (u8)(tick - READ_ONCE(region->age)) > TR_AGE_MOST)
			WRITE_ONCE(region->age, tick - TR_AGE_MOST);
	}
}

/*
 * An age is the tick of the last use, a byte. What nobody uses for 256 ticks would be
 * young again, and the janitor would take what is in use instead.
 */
void tr_regions_age(struct terrace *tr)
{
	u64 pages = DIV_ROUND_UP_ULL(tr_nr_regions(tr), TR_TABLE_PAGE), p;
	u8 tick = READ_ONCE(tr->tick);
	struct tr_region **page;

	if (tick % AGE_WALK)
		return;
	for (p = 0; p < pages; p++) {
		rcu_read_lock();
		page = READ_ONCE(READ_ONCE(tr->table)[p]);
		if (page)
			age_page(tr, page, tick);
		rcu_read_unlock();
		cond_resched();
	}
}

/*
 * The array at the top is replaced; what it points to stays. Pages are put
 * into it under table_lock, so none gets lost in the copy.
 */
int tr_regions_grow(struct terrace *tr, u64 regions)
{
	u64 have = DIV_ROUND_UP_ULL(tr->nr_regions, TR_TABLE_PAGE);
	u64 want = DIV_ROUND_UP_ULL(regions, TR_TABLE_PAGE);
	struct tr_region ***fresh, ***old;

	if (want > have) {
		fresh = kvcalloc(want, sizeof(*fresh), GFP_KERNEL);
		if (!fresh)
			return -ENOMEM;
		spin_lock_irq(&tr->table_lock);
		old = tr->table;
		memcpy(fresh, old, have * sizeof(*fresh));
		/* pairs with the dependent loads in tr_region_find() */
		smp_store_release(&tr->table, fresh);
		spin_unlock_irq(&tr->table_lock);
		synchronize_rcu();
		kvfree(old);
	}
	/* Pairs with tr_nr_regions(): who sees the number sees the array. */
	smp_store_release(&tr->nr_regions, max(regions, tr->nr_regions));
	return 0;
}

int tr_regions_init(struct terrace *tr)
{
	u32 k;

	region_init(&tr->empty, ~0ull);
	spin_lock_init(&tr->table_lock);
	spin_lock_init(&tr->dirty_lock);
	INIT_LIST_HEAD(&tr->dirty_regions);
	for (k = 0; k < TR_LOAD_MUTEXES; k++)
		mutex_init(&tr->load_mutex[k]);
	tr->table = kvcalloc(DIV_ROUND_UP_ULL(tr->nr_regions, TR_TABLE_PAGE),
			     sizeof(*tr->table), GFP_KERNEL);
	return tr->table ? 0 : -ENOMEM;
}

void tr_regions_exit(struct terrace *tr)
{
	u64 pages = DIV_ROUND_UP_ULL(tr->nr_regions, TR_TABLE_PAGE), p;
	u32 i;

	for (p = 0; tr->table && p < pages; p++) {
		struct tr_region **page = tr->table[p];

		for (i = 0; page && i < TR_TABLE_PAGE; i++)
			if (page[i] && page[i] != &tr->empty)
				tr_region_free(tr, page[i]);
		kfree(page);
	}
	rcu_barrier();		/* the pools are where they go */
	kvfree(tr->table);
}
