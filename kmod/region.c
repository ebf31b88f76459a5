// SPDX-License-Identifier: GPL-2.0
/*
 * Regions in memory: looked up without a lock, loaded from their page on
 * demand, grown as blocks arrive, evicted when clean.
 *
 * The table is two levels of pointers, the first 4 KiB per TiB. An entry is
 * NULL (nothing known), &tr->empty (known to have no page) or the region. An
 * object leaves the table only when it is clean, unpinned and without
 * promises; it is marked DEAD under its lock first, so that whoever still
 * holds the pointer looks again. Arrays and objects are freed by RCU.
 *
 * Loading lays three things over one another: the page, what recovery found
 * in the journal for this region, and a range discard that ran while the
 * region was not in memory. The last gives the places back with records of
 * its own.
 */
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "terrace.h"

#define TR_TABLE_PAGE	(1u << TR_DIR_SHIFT)

/* The arrays of a leaf, in one piece: low[cap], then high[cap] if needed. */
struct tr_array {
	struct rcu_head rcu;
	u32 bytes;
	u32 low[];
};

static struct tr_array *array_of(const struct tr_leaf *leaf)
{
	return leaf->low ? container_of(leaf->low, struct tr_array, low[0]) : NULL;
}

static struct tr_array *array_alloc(struct terrace *tr, u32 cap, bool high)
{
	u32 bytes = sizeof(struct tr_array) + cap * (sizeof(u32) + (high ? 1 : 0));
	struct tr_array *array;

	/* At most 5 KiB, in a worker: waiting for memory is the only way not
	 * to lose a write that has been accepted.
	 */
	array = kmalloc(bytes, GFP_NOIO | __GFP_NOFAIL);
	array->bytes = bytes;
	atomic64_add(bytes, &tr->memory);
	return array;
}

static void array_free(struct terrace *tr, struct tr_array *array)
{
	if (!array)
		return;
	atomic64_sub(array->bytes, &tr->memory);
	kfree_rcu(array, rcu);
}

static u8 *array_high(struct tr_array *array, u32 cap, bool high)
{
	return high ? (u8 *)&array->low[cap] : NULL;
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

static struct tr_region *region_alloc(struct terrace *tr, u64 number)
{
	struct tr_region *region = mempool_alloc(&tr->region_pool, GFP_NOIO);

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

static void region_free(struct terrace *tr, struct tr_region *region)
{
	array_free(tr, array_of(&region->leaf));
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

/* The slot of @number in the table; its page is made if need be. */
static struct tr_region **table_slot(struct terrace *tr, u64 number)
{
	struct tr_region **page, **fresh;
	unsigned long flags;

	rcu_read_lock();	/* the table, not its pages, is replaced when it grows */
	page = READ_ONCE(READ_ONCE(tr->table)[number >> TR_DIR_SHIFT]);
	rcu_read_unlock();
	if (!page) {
		fresh = kcalloc(TR_TABLE_PAGE, sizeof(*page), GFP_NOIO | __GFP_NOFAIL);
		spin_lock_irqsave(&tr->table_lock, flags);
		page = tr->table[number >> TR_DIR_SHIFT];
		if (!page) {
			page = fresh;
			fresh = NULL;
			/* pairs with the dependent loads in tr_region_find() */
			smp_store_release(&tr->table[number >> TR_DIR_SHIFT], page);
			atomic64_add(TR_TABLE_PAGE * sizeof(*page), &tr->memory);
		}
		spin_unlock_irqrestore(&tr->table_lock, flags);
		kfree(fresh);
	}
	return &page[number & (TR_TABLE_PAGE - 1)];
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
	u32 want, cap;

	spin_lock_irqsave(&region->lock, flags);
	want = min_t(u32, leaf->nr + region->reserved + n, TERRACE_REGION_BLOCKS);
	cap = max_t(u32, tr_leaf_room(want), leaf->cap);
	high |= !!leaf->high;
	spin_unlock_irqrestore(&region->lock, flags);

	fresh = array_alloc(tr, cap, high);

	spin_lock_irqsave(&region->lock, flags);
	old = array_of(leaf);
	write_seqcount_begin(&region->seq);
	/* Refused when somebody has put in a larger one that is in use; then
	 * there is room, and whoever still needs more asks again.
	 */
	if (leaf->cap > cap || tr_leaf_replace(leaf, fresh->low, array_high(fresh, cap, high), cap))
		old = fresh;
	write_seqcount_end(&region->seq);
	spin_unlock_irqrestore(&region->lock, flags);
	array_free(tr, old);
}

/* --- changes, each with its record ------------------------------------------ */

static void region_mark_dirty__f(struct terrace *tr, struct tr_region *region, u64 first_seq)
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

static u64 region_record__f(struct terrace *tr, struct tr_region *region, u8 type,
			    u32 i, u32 n, u64 new, u64 old)
{
	struct tr_record record = {
		.type = type,
		.nr = n,
		.block = (region->number << TERRACE_REGION_SHIFT) + i,
		.new = new,
		.old = old,
	};

	region->last_seq = tr_journal_append(tr, &record);
	return region->last_seq;
}

u32 tr_region_map__f(struct terrace *tr, struct tr_region *region, u32 i, u32 n, u64 place)
{
	u32 credits = 0, done = 0, m;
	u64 first = 0, seq, old;
	int err;

	lockdep_assert_held(&region->lock);
	for (; done < n; done += m) {
		m = tr_leaf_run(&region->leaf, i + done, n - done, &old);
		seq = region_record__f(tr, region, TERRACE_RECORD_MAP, i + done, m,
				       tr_place_add(place, done), old);
		if (!credits++)
			first = seq;
	}
	write_seqcount_begin(&region->seq);
	err = tr_leaf_set(&region->leaf, i, n, place);
	write_seqcount_end(&region->seq);
	WARN_ON_ONCE(err);
	region_mark_dirty__f(tr, region, first);
	return credits;
}

u32 tr_region_unmap__f(struct terrace *tr, struct tr_region *region, u32 i, u32 n)
{
	u32 credits = 0, done = 0, m;
	u64 first = 0, seq, old;

	lockdep_assert_held(&region->lock);
	for (; done < n; done += m) {
		m = tr_leaf_run(&region->leaf, i + done, n - done, &old);
		if (old == TR_NO_PLACE)
			continue;
		seq = region_record__f(tr, region, TERRACE_RECORD_UNMAP, i + done, m,
				       TR_NO_PLACE, old);
		if (!credits++)
			first = seq;
	}
	if (!credits)
		return 0;
	write_seqcount_begin(&region->seq);
	tr_leaf_clear(&region->leaf, i, n);
	write_seqcount_end(&region->seq);
	region_mark_dirty__f(tr, region, first);
	return credits;
}

/* --- loading ----------------------------------------------------------------- */

/* Takes the blocks away that a range discard covers, @kept excepted. */
static void apply_discard(struct terrace *tr, struct tr_region *region, const u64 *kept,
			  u32 *credits)
{
	unsigned long flags;
	u32 i, n;

	if (!*credits && tr_writable(tr) && !tr_journal_reserve_wait(tr, TERRACE_REGION_BLOCKS))
		*credits = TERRACE_REGION_BLOCKS;
	if (!*credits) {
		/* Reads as zeros all the same; the places stay taken. */
		for (i = 0; i < TERRACE_REGION_BLOCKS; i++)
			if (!kept || !(kept[i / 64] >> (i % 64) & 1))
				tr_leaf_clear(&region->leaf, i, 1);
		return;
	}
	spin_lock_irqsave(&region->lock, flags);
	for (i = 0; i < TERRACE_REGION_BLOCKS; i += n) {
		bool keep = kept && kept[i / 64] >> (i % 64) & 1;

		for (n = 1; i + n < TERRACE_REGION_BLOCKS; n++)
			if ((kept && kept[(i + n) / 64] >> ((i + n) % 64) & 1) != keep)
				break;
		if (!keep)
			*credits -= tr_region_unmap__f(tr, region, i, n);
	}
	spin_unlock_irqrestore(&region->lock, flags);
	tr_journal_unreserve(tr, *credits);
	*credits = 0;
}

/* Gives the private @region what its page holds. */
static int load_page(struct terrace *tr, struct tr_region *region, const void *page, u32 bytes)
{
	u64 data_blocks[TERRACE_MAX_TIERS];
	struct tr_array *array;
	bool high;
	u32 nr, nr_packs, cap, t;
	int err;

	err = tr_map_room(page, bytes, &nr, &high, &nr_packs);
	if (err)
		return err;
	for (t = 0; t < tr->nr_tiers; t++)
		data_blocks[t] = tr->tier[t].data_blocks;
	cap = tr_leaf_room(nr);
	array = array_alloc(tr, cap, high);
	tr_leaf_replace(&region->leaf, array->low, array_high(array, cap, high), cap);
	return tr_map_decode(page, bytes, &region->leaf, NULL, &region->age, data_blocks,
			     tr->nr_tiers);
}

/* Lays what recovery found over the loaded page. */
static void load_delta(struct terrace *tr, struct tr_region *region, const struct tr_delta *delta)
{
	bool high = false;
	u32 room = tr_delta_overlay_room(delta, &region->leaf, &high);

	if (room > region->leaf.nr || high)
		tr_region_grow(tr, region, max_t(s32, room - region->leaf.nr, 1), high);
	tr_delta_overlay(delta, &region->leaf, NULL);
}

/* From here on a checkpoint writes the page that @delta asks for; not before a
 * discard has been applied, for the page will claim to contain it.
 */
static void own_delta(struct terrace *tr, struct tr_region *region, const struct tr_delta *delta)
{
	unsigned long flags;

	spin_lock_irqsave(&region->lock, flags);
	region->last_seq = max(region->last_seq, delta->newest_seq);
	region_mark_dirty__f(tr, region, delta->newest_seq);
	spin_unlock_irqrestore(&region->lock, flags);
}

/*
 * Builds the region outside the table. NULL: it has no page and nothing in
 * the journal, and @create is false.
 */
static struct tr_region *region_load(struct terrace *tr, u64 number, bool create,
				     u64 discard_seq, u32 *credits)
{
	struct tr_region *region = NULL;
	struct tr_delta *delta;
	struct tr_entry entry = {};
	void *page;
	int err;

	page = kvmalloc(TERRACE_MAP_MAX_BLOCKS * TERRACE_BLOCK_BYTES, GFP_NOIO | __GFP_NOFAIL);
	err = tr_page_read(tr, TERRACE_TREE_MAP, 0, number, page, &entry);
	if (err && err != -ENOENT && err != -EIO)
		goto out;
	delta = tr_recover_find_delta(tr, number);
	if (err == -ENOENT && !delta && !create) {
		err = 0;
		goto out;
	}
	region = region_alloc(tr, number);
	if (!err)
		err = load_page(tr, region, page, entry.blocks * TERRACE_BLOCK_BYTES);
	if (err && err != -ENOENT) {
		/* Without its page nothing can be said about the region, not
		 * even with what the journal adds.
		 */
		DMERR("%s: map page of region %llu is damaged (%d); its blocks read as errors",
		      tr->name, number, err);
		region->flags |= TR_REGION_LOST;
		region->pins = 1;		/* stays, so that it stays lost */
		/* What the journal knows of it must not be forgotten: should the
		 * page be readable next time, it would be believed alone.
		 */
		if (delta)
			tr_mode_lower(tr, TR_MODE_READ_ONLY,
				      "map page of a region that the journal changes is damaged",
				      -EIO);
		err = 0;
		goto out_delta;
	}
	err = 0;
	region->last_seq = entry.seq;
	if (delta)
		load_delta(tr, region, delta);
	if (discard_seq > entry.seq)
		apply_discard(tr, region, delta && delta->discard_seq == discard_seq ?
			      delta->kept : NULL, credits);
	if (delta)
		own_delta(tr, region, delta);
out_delta:
	/* Only now: a checkpoint that does not find the region dirty must find
	 * the delta, or it would move the tail past both.
	 */
	tr_recover_drop_delta(tr, number, delta);
out:
	kvfree(page);
	return err ? ERR_PTR(err) : region;
}

/*
 * Loads and puts into the table. A range discard may come between: those it
 * finds in the table it empties itself, so the last look at the open ranges
 * and the insertion are one step under discard_lock.
 */
static int region_insert(struct terrace *tr, u64 number, bool create, u32 *credits)
{
	struct tr_region **slot = table_slot(tr, number), *region;
	u64 seen = tr_discard_pending(tr, number), now;

	if (seen && !*credits && tr_writable(tr))
		return -EAGAIN;
	region = region_load(tr, number, create, seen, credits);
	if (IS_ERR(region))
		return PTR_ERR(region);
	for (;;) {
		spin_lock(&tr->discard_lock);
		now = tr_discard_pending__f(tr, number);
		if (now == seen || !region) {
			/* pairs with the dependent loads in tr_region_find() */
			smp_store_release(slot, region ?: &tr->empty);
			spin_unlock(&tr->discard_lock);
			return 0;
		}
		spin_unlock(&tr->discard_lock);
		if (now > seen)
			apply_discard(tr, region, NULL, credits);
		seen = now;
	}
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

struct tr_region *tr_region_get(struct terrace *tr, u64 number, bool create)
{
	struct tr_region *region;
	u32 credits = 0;

	/* Credits are waited for out here, without the mutex: journal room may
	 * need a checkpoint, which may need it to load a region of its own.
	 */
	while (PTR_ERR(region = region_try(tr, number, create, &credits)) == -EAGAIN)
		if (!tr_journal_reserve_wait(tr, TERRACE_REGION_BLOCKS))
			credits = TERRACE_REGION_BLOCKS;
	tr_journal_unreserve(tr, credits);
	if (!IS_ERR_OR_NULL(region) && region->flags & TR_REGION_LOST) {
		tr_region_put(region);
		return ERR_PTR(-EIO);
	}
	return region;
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
		region_free(tr, region);
	return evict;
}

static void evict_pass(struct terrace *tr, s64 target, u8 min_idle)
{
	u64 pages = DIV_ROUND_UP_ULL(tr_nr_regions(tr), TR_TABLE_PAGE), p;

	for (p = 0; p < pages && atomic64_read(&tr->memory) > target; p++) {
		struct tr_region **page;
		unsigned long flags;
		u32 i;

		rcu_read_lock();
		page = READ_ONCE(READ_ONCE(tr->table)[p]);
		rcu_read_unlock();
		if (!page)
			continue;
		spin_lock_irqsave(&tr->table_lock, flags);
		for (i = 0; i < TR_TABLE_PAGE; i++)
			evict_one(tr, &page[i], min_idle);
		spin_unlock_irqrestore(&tr->table_lock, flags);
		cond_resched();
	}
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
	int err;

	region_init(&tr->empty, ~0ull);
	spin_lock_init(&tr->table_lock);
	spin_lock_init(&tr->dirty_lock);
	INIT_LIST_HEAD(&tr->dirty_regions);
	for (k = 0; k < TR_LOAD_MUTEXES; k++)
		mutex_init(&tr->load_mutex[k]);
	err = mempool_init_kmalloc_pool(&tr->region_pool, 64, sizeof(struct tr_region));
	if (err)
		return err;
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
				region_free(tr, page[i]);
		kfree(page);
	}
	rcu_barrier();		/* the pool below is where they go */
	kvfree(tr->table);
	mempool_exit(&tr->region_pool);
}
