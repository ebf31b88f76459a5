// SPDX-License-Identifier: GPL-2.0
/*
 * Free space of a tier, in chunks of 64 MiB with a bitmap each.
 *
 * Writers never search: they take blocks from their CPU's run, and runs from
 * a ready list that a worker fills. A chunk carries two bitmaps. `used` says
 * what may not be handed out; `committed` follows the durable records and is
 * what a checkpoint writes, so that blocks which were handed out but never
 * recorded are free again after a crash, and nothing leaks.
 *
 * A block's way back: the record that frees it is durable -> `committed`
 * cleared -> grace period -> `used` cleared -> handed out again.
 */
#include <linux/slab.h>

#include "terrace.h"

#define ALL_TIERS	(~0u)

static u32 chunk_memory(const struct tr_chunk *chunk)
{
	return tr_map_bytes(chunk->used, chunk->pool) + ksize(chunk) + ksize(chunk->stale);
}

/* The array of chunks is replaced when the tier grows (tr_space_grow): it is
 * looked at under tier->lock, load_mutex or RCU.
 */
static u32 nr_chunks(const struct tr_tier *tier)
{
	return smp_load_acquire(&tier->nr_chunks);	/* … and chunks is as long */
}

static u32 chunk_used(const struct tr_tier *tier, u32 number)
{
	u32 used;

	rcu_read_lock();
	used = READ_ONCE(READ_ONCE(tier->chunks)[number].used);
	rcu_read_unlock();
	return used;
}

static bool chunk_loaded(const struct tr_tier *tier, u32 number)
{
	bool loaded;

	rcu_read_lock();
	loaded = READ_ONCE(READ_ONCE(tier->chunks)[number].chunk);
	rcu_read_unlock();
	return loaded;
}

static u32 chunk_blocks(const struct tr_tier *tier, u32 number)
{
	return min_t(u64, TERRACE_CHUNK_BLOCKS,
		     tier->data_blocks - ((u64)number << TERRACE_CHUNK_SHIFT));
}

/* --- chunks --------------------------------------------------------------- */

static void chunk_apply_delta(struct tr_chunk *chunk, const struct tr_chunk_delta *delta)
{
	u32 w;

	for (w = 0; w < TR_CHUNK_WORDS; w++)
		chunk->committed[w] = (chunk->committed[w] & ~delta->touched[w]) |
				      (delta->used[w] & delta->touched[w]);
}

static void chunk_mark_dirty__f(struct tr_tier *tier, struct tr_chunk *chunk)
{
	lockdep_assert_held(&tier->lock);
	if (chunk->is_dirty)
		return;
	chunk->is_dirty = true;
	list_add_tail(&chunk->dirty, &tier->dirty_chunks);
}

static struct tr_chunk *chunk_create(struct terrace *tr, struct tr_tier *tier, u32 number)
{
	/* Bounded as the bitmaps are, see reserve.c. */
	struct tr_chunk *chunk = kzalloc(sizeof(*chunk), TR_GFP_MUST);

	BUILD_BUG_ON(2 * TR_CHUNK_WORDS * sizeof(u64) > PAGE_SIZE);
	chunk->used = tr_map_alloc(tr, NULL, PAGE_SIZE, &chunk->pool);
	memset(chunk->used, 0, PAGE_SIZE);
	chunk->committed = chunk->used + TR_CHUNK_WORDS;
	if (tier->kind == TERRACE_KIND_SLOTS && tr_trimmable(tier))	/* or without */
		chunk->stale = kcalloc(TR_CHUNK_WORDS, sizeof(u64), GFP_NOIO | __GFP_NOWARN);
	INIT_LIST_HEAD(&chunk->dirty);
	chunk->tier = tier;
	chunk->number = number;
	return chunk;
}

static void chunk_free(struct tr_chunk *chunk)
{
	if (!chunk)
		return;
	tr_map_free(chunk->used, chunk->pool);
	kfree(chunk->stale);
	kfree(chunk);
}

/* Bits past the end of the device are never free. */
static void chunk_close_end(const struct tr_tier *tier, struct tr_chunk *chunk)
{
	u32 i;

	for (i = chunk_blocks(tier, chunk->number); i < TERRACE_CHUNK_BLOCKS; i++)
		chunk->used[i / 64] |= 1ull << (i % 64);
}

static struct tr_chunk *chunk_read(struct terrace *tr, struct tr_tier *tier, u32 number)
{
	struct tr_chunk_delta *delta;
	struct tr_entry entry;
	struct tr_chunk *chunk;
	void *page;
	u32 used;
	int err;

	chunk = chunk_create(tr, tier, number);
	page = tr_page_get(tr);
	err = tr_page_read(tr, TERRACE_TREE_SPACE, tier->number, number, page, &entry);
	if (!err)
		err = tr_space_decode(page, chunk->committed, &used);
	else if (err == -ENOENT)
		err = 0;
	tr_page_put(tr, page);
	if (err) {
		chunk_free(chunk);
		return ERR_PTR(err);
	}
	delta = xa_load(&tier->deltas, number);
	if (delta)
		chunk_apply_delta(chunk, delta);
	memcpy(chunk->used, chunk->committed, TR_CHUNK_WORDS * sizeof(u64));
	chunk_close_end(tier, chunk);
	if (delta) {
		spin_lock_irq(&tier->lock);
		chunk_mark_dirty__f(tier, chunk);
		spin_unlock_irq(&tier->lock);
		/* Only now: a checkpoint finds one of the two. */
		xa_erase(&tier->deltas, number);
		atomic64_sub(sizeof(*delta), &tr->memory);
		kfree(delta);
	}
	atomic64_add(chunk_memory(chunk), &tr->memory);
	return chunk;
}

static void chunk_pin__f(struct terrace *tr, struct tr_chunk *chunk)
{
	lockdep_assert_held(&chunk->tier->lock);
	chunk->pins++;
	chunk->age = READ_ONCE(tr->tick);
}

static struct tr_chunk *chunk_pin(struct terrace *tr, struct tr_tier *tier, u32 number)
{
	struct tr_chunk *chunk;

	spin_lock_irq(&tier->lock);
	chunk = tier->chunks[number].chunk;
	if (chunk)
		chunk_pin__f(tr, chunk);
	spin_unlock_irq(&tier->lock);
	return chunk;
}

struct tr_chunk *tr_chunk_get(struct terrace *tr, struct tr_tier *tier, u32 number)
{
	struct tr_chunk *chunk;

	if (number >= nr_chunks(tier))
		return ERR_PTR(-EUCLEAN);
	chunk = chunk_pin(tr, tier, number);
	if (chunk)
		return chunk;
	mutex_lock(&tier->load_mutex);
	chunk = chunk_pin(tr, tier, number);
	if (!chunk) {
		chunk = chunk_read(tr, tier, number);
		if (IS_ERR(chunk)) {
			tr_mode_lower(tr, TR_MODE_READ_ONLY, PTR_ERR(chunk) == -EUCLEAN ?
				      "space page is damaged" : "space page cannot be read",
				      PTR_ERR(chunk));
		} else {
			spin_lock_irq(&tier->lock);
			chunk_pin__f(tr, chunk);	/* eviction finds it pinned */
			tier->chunks[number].chunk = chunk;
			spin_unlock_irq(&tier->lock);
		}
	}
	mutex_unlock(&tier->load_mutex);
	tr_memory_check(tr);
	return chunk;
}

void tr_chunk_put(struct tr_chunk *chunk)
{
	spin_lock_irq(&chunk->tier->lock);
	chunk->pins--;
	spin_unlock_irq(&chunk->tier->lock);
}

/* --- eviction ---------------------------------------------------------------- */

/* Does memory say no more of the chunk than its page? */
static bool chunk_idle__f(struct terrace *tr, struct tr_tier *tier, struct tr_chunk *chunk,
			  u8 min_idle)
{
	u32 words = chunk_blocks(tier, chunk->number) / 64;

	lockdep_assert_held(&tier->lock);
	return !chunk->pins && !chunk->is_dirty && !chunk->is_writing &&
	       (u8)(READ_ONCE(tr->tick) - chunk->age) >= min_idle &&
	       words == TR_CHUNK_WORDS &&	/* the last one: its end is closed */
	       !memcmp(chunk->used, chunk->committed, TR_CHUNK_WORDS * sizeof(u64));
}

static u64 tier_evict(struct terrace *tr, struct tr_tier *tier, u64 bytes, u8 min_idle)
{
	struct tr_chunk *chunk;
	u64 freed = 0;
	u32 c;

	for (c = 0; c < nr_chunks(tier) && freed < bytes; c++) {
		if (!chunk_loaded(tier, c))
			continue;
		spin_lock_irq(&tier->lock);
		chunk = tier->chunks[c].chunk;
		if (chunk && !chunk_idle__f(tr, tier, chunk, min_idle))
			chunk = NULL;
		if (chunk)
			tier->chunks[c].chunk = NULL;
		spin_unlock_irq(&tier->lock);
		if (chunk) {
			atomic64_sub(chunk_memory(chunk), &tr->memory);
			freed += chunk_memory(chunk);
			chunk_free(chunk);
		}
		cond_resched();
	}
	return freed;
}

u64 tr_chunks_evict(struct terrace *tr, u64 bytes, u8 min_idle)
{
	u64 freed = 0;
	u32 t;

	for (t = 0; t < tr->nr_tiers && freed < bytes; t++)
		freed += tier_evict(tr, &tr->tier[t], bytes - freed, min_idle);
	return freed;
}

/* --- committed and used ------------------------------------------------------ */

static void bits_set(u64 *map, u32 i, u32 n, bool on)
{
	(on ? bitmap_set : bitmap_clear)((unsigned long *)map, i, n);
}

int tr_space_commit(struct terrace *tr, u32 t, u64 index, u32 n, bool used)
{
	struct tr_tier *tier = &tr->tier[t];
	struct tr_chunk *chunk = tr_chunk_get(tr, tier, index >> TERRACE_CHUNK_SHIFT);

	if (IS_ERR(chunk))
		return PTR_ERR(chunk);
	spin_lock_irq(&tier->lock);
	bits_set(chunk->committed, index % TERRACE_CHUNK_BLOCKS, n, used);
	chunk_mark_dirty__f(tier, chunk);
	chunk->pins--;
	spin_unlock_irq(&tier->lock);
	return 0;
}

/* Takes `used` off blocks of a loaded chunk. */
static void space_release__f(struct tr_tier *tier, struct tr_chunk *chunk, u32 i, u32 n)
{
	struct tr_chunk_info *info = &tier->chunks[chunk->number];

	lockdep_assert_held(&tier->lock);
	/* Freed twice: by now it may be somebody else's. */
	WARN_ON_ONCE(find_next_zero_bit((const unsigned long *)chunk->used, i + n, i) < i + n);
	bits_set(chunk->used, i, n, false);
	if (chunk->stale)
		bitmap_set((unsigned long *)chunk->stale, i, n);
	info->used -= n;
	info->dead = info->used ? info->dead - min_t(u32, n, info->dead) : 0;	/* they may have been these */
	info->flags &= ~(TR_CHUNK_VAIN | TR_CHUNK_UNREAD | TR_CHUNK_SHUT);
	if (!info->used)
		info->flags &= ~(TR_CHUNK_DENSE | TR_CHUNK_CLEANED);
	info->flags |= TR_CHUNK_STALE;
	WRITE_ONCE(tier->stale, true);
	tier->free_blocks += n;
	WRITE_ONCE(tier->releases, tier->releases + 1);
	if (!info->used && tier->kind == TERRACE_KIND_SHELVES && !tr_shelf_is_open__f(tier, chunk->number))
		tier->free_shelves++;
}

int tr_space_free(struct terrace *tr, u32 t, u64 index, u32 n)
{
	struct tr_tier *tier = &tr->tier[t];
	struct tr_chunk *chunk = tr_chunk_get(tr, tier, index >> TERRACE_CHUNK_SHIFT);

	if (IS_ERR(chunk))
		return PTR_ERR(chunk);
	spin_lock_irq(&tier->lock);
	space_release__f(tier, chunk, index % TERRACE_CHUNK_BLOCKS, n);
	chunk->pins--;
	spin_unlock_irq(&tier->lock);
	return 0;
}

void tr_space_put(struct terrace *tr, struct tr_tier *tier, u64 index, u32 n)
{
	struct tr_chunk *chunk;
	unsigned long flags;

	spin_lock_irqsave(&tier->lock, flags);
	/* Loaded: blocks that are handed out keep their chunk in memory. */
	chunk = tier->chunks[index >> TERRACE_CHUNK_SHIFT].chunk;
	space_release__f(tier, chunk, index % TERRACE_CHUNK_BLOCKS, n);
	spin_unlock_irqrestore(&tier->lock, flags);
}

void tr_space_trimmed(struct tr_tier *tier, struct tr_chunk *chunk, u32 i, u32 n)
{
	spin_lock_irq(&tier->lock);
	space_release__f(tier, chunk, i, n);
	bitmap_clear((unsigned long *)chunk->stale, i, n);
	WRITE_ONCE(tier->trimming, tier->trimming - n);
	spin_unlock_irq(&tier->lock);
}

static u64 in_cpu_runs(const struct tr_tier *tier)
{
	u64 blocks = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		blocks += READ_ONCE(per_cpu_ptr(tier->cpu_run, cpu)->nr);
	return blocks;
}

u64 tr_space_used(const struct tr_tier *tier)
{
	u64 used = tier->data_blocks - READ_ONCE(tier->free_blocks) -
		   READ_ONCE(tier->ready_blocks) - READ_ONCE(tier->trimming) - in_cpu_runs(tier);

	return min(used, tier->data_blocks);	/* the sum is no snapshot */
}

/* --- runs ----------------------------------------------------------------------- */

/* All CPUs together hold no more than the reserve, which stands in for what they hold. */
static u32 run_blocks(const struct tr_tier *tier)
{
	return clamp_t(u64, div_u64(tier->reserve_blocks, num_possible_cpus()), 1, TR_RUN_BLOCKS);
}

/*
 * The next free run at or behind the hand, up to run_blocks(), marked used.
 * false: this chunk has none behind the hand.
 */
static bool take_run__f(struct tr_tier *tier, struct tr_chunk *chunk, u32 *hand, struct tr_run *run)
{
	const unsigned long *used = (const unsigned long *)chunk->used;
	u32 start, end;

	lockdep_assert_held(&tier->lock);
	start = find_next_zero_bit(used, TERRACE_CHUNK_BLOCKS, *hand);
	if (start >= TERRACE_CHUNK_BLOCKS)
		return false;
	end = find_next_bit(used, min_t(u32, TERRACE_CHUNK_BLOCKS, start + run_blocks(tier)), start);
	run->index = ((u64)chunk->number << TERRACE_CHUNK_SHIFT) + start;
	run->nr = end - start;
	bits_set(chunk->used, start, run->nr, true);
	tier->chunks[chunk->number].used += run->nr;
	tier->free_blocks -= run->nr;
	*hand = end;
	return true;
}

/* What CPUs have taken is out of the others' reach: the reserve stands in for it, to its end. */
static bool refill_wanted(const struct tr_tier *tier)
{
	u64 free = READ_ONCE(tier->free_blocks);

	return tr_ready_below(tier, 1) && free &&
	       (free > tier->reserve_blocks || free + in_cpu_runs(tier) > tier->reserve_blocks);
}

/* Fills the ready list from the chunk under the hand. */
static void refill_chunk(struct tr_tier *tier, struct tr_chunk *chunk)
{
	struct tr_run run;

	while (refill_wanted(tier)) {
		spin_lock_irq(&tier->lock);
		if (!tr_ready_below(tier, 1) ||
		    !take_run__f(tier, chunk, &tier->hand_block, &run)) {
			spin_unlock_irq(&tier->lock);
			return;
		}
		/* oldest first out, so that runs are used in ascending order */
		tier->ready[(tier->ready_head + tier->nr_ready++) % TR_READY_RUNS] = run;
		tier->ready_blocks += run.nr;
		spin_unlock_irq(&tier->lock);
	}
}

static void refill_slots(struct terrace *tr, struct tr_tier *tier)
{
	struct tr_chunk *chunk;
	u32 looked;

	for (looked = 0; looked <= nr_chunks(tier) && refill_wanted(tier); looked++) {
		u32 number = tier->hand;

		if (chunk_used(tier, number) < chunk_blocks(tier, number)) {
			chunk = tr_chunk_get(tr, tier, number);
			if (IS_ERR(chunk))
				return;
			refill_chunk(tier, chunk);
			tr_chunk_put(chunk);
			if (!refill_wanted(tier))
				return;
		}
		tier->hand = (number + 1) % nr_chunks(tier);
		tier->hand_block = 0;
	}
}

/* Takes a whole free chunk of a shelves tier. */
struct tr_chunk *tr_space_take_shelf(struct terrace *tr, struct tr_tier *tier)
{
	struct tr_chunk *chunk = NULL;
	u32 looked;

	for (looked = 0; looked < nr_chunks(tier) && !chunk; looked++) {
		u32 number = tier->hand;

		tier->hand = (number + 1) % nr_chunks(tier);
		if (chunk_used(tier, number) ||
		    chunk_blocks(tier, number) < TERRACE_CHUNK_BLOCKS)
			continue;
		spin_lock_irq(&tier->lock);
		if (tr_shelf_is_open__f(tier, number) ||
		    tier->chunks[number].flags & (TR_CHUNK_TRIMMING | TR_CHUNK_ASIDE)) {
			spin_unlock_irq(&tier->lock);
			continue;
		}
		spin_unlock_irq(&tier->lock);
		chunk = tr_chunk_get(tr, tier, number);
		if (IS_ERR(chunk))
			return chunk;
	}
	return chunk;
}

static bool room_is_there(struct terrace *tr)
{
	u32 t, open;

	if (READ_ONCE(tr->journal.starved))
		return false;	/* the journal says when */
	open = tr_space_open(tr);
	for (t = 0; t < tr->nr_tiers; t++)
		if (open >> t & 1 && (READ_ONCE(tr->tier[t].nr_ready) ||
				      READ_ONCE(tr->tier[t].shelf[TR_APPEND_WRITES])))
			return true;
	return false;
}

static void refill_fn(struct work_struct *work)
{
	struct terrace *tr = container_of(work, struct terrace, refill_work);
	bool homes = false;
	u32 t;

	for (t = 0; t < tr->nr_tiers; t++) {
		struct tr_tier *tier = &tr->tier[t];

		if (tier->missing)
			continue;
		if (tier->kind == TERRACE_KIND_SLOTS)
			refill_slots(tr, tier);
		else if (tier->kind == TERRACE_KIND_SHELVES)
			tr_shelf_refill(tr, tier);
		else
			homes |= tr_home_refill(tr, tier);
	}
	tr_throttle_update(tr);
	tr_janitor_kick(tr);
	/* Only when there is some: a bio that is woken in vain comes straight
	 * back here.
	 */
	if (homes || room_is_there(tr))
		tr_room_made(tr);
}

u32 tr_space_get(struct terrace *tr, struct tr_tier *tier, u32 n, u64 *index)
{
	struct tr_run *run = get_cpu_ptr(tier->cpu_run);
	unsigned long flags;
	bool low = false;

	if (!run->nr) {
		spin_lock_irqsave(&tier->lock, flags);
		if (tier->nr_ready) {
			*run = tier->ready[tier->ready_head];
			tier->ready_head = (tier->ready_head + 1) % TR_READY_RUNS;
			tier->nr_ready--;
			tier->ready_blocks -= run->nr;
		}
		low = tr_ready_below(tier, 2);
		spin_unlock_irqrestore(&tier->lock, flags);
	}
	n = min(n, run->nr);
	*index = run->index;
	run->index += n;
	run->nr -= n;
	put_cpu_ptr(tier->cpu_run);
	if (low) {
		if (refill_wanted(tier))
			queue_work(tr->room_wq, &tr->refill_work);
		tr_janitor_kick(tr);
	}
	return n;
}

/* Is there no room on any of @tiers (bits)? */
static bool tiers_tight(struct terrace *tr, u32 tiers)
{
	u32 t;

	for (t = 0; t < tr->nr_tiers; t++) {
		struct tr_tier *tier = &tr->tier[t];

		if (tier->missing || !(tiers >> t & 1))
			continue;
		/* What is being trimmed comes back (trim.c). */
		if (READ_ONCE(tier->trimming) || READ_ONCE(tier->trimming_shelf))
			return false;
		if (tier->kind == TERRACE_KIND_SLOTS &&
		    (READ_ONCE(tier->nr_ready) || refill_wanted(tier)))
			return false;
		/* A home that is being swept is free. (tr_home_may_be_free() says of one.) */
		if (tier->kind == TERRACE_KIND_HOME && READ_ONCE(tier->sweep) < tier->nr_chunks)
			return false;
		if (tier->kind == TERRACE_KIND_SHELVES &&
		    (READ_ONCE(tier->shelf[TR_APPEND_WRITES]) ||
		     (tr_shelf_may_open(tier, TR_APPEND_WRITES) && !tr_shelves_refused(tier))))
			return false;
	}
	return true;
}

bool tr_space_tight(struct terrace *tr)
{
	return tiers_tight(tr, ALL_TIERS);
}

/* Homes do not count: whether a block finds its own free says nothing of the others. */
u32 tr_space_open(struct terrace *tr)
{
	u32 avoid = tr_tune(tr, TR_TUNE_AVOID_TIERS), t, others = 0;

	if (likely(!avoid))
		return ALL_TIERS;
	for (t = 0; t < tr->nr_tiers; t++)
		if (!(avoid >> t & 1) && tr->tier[t].kind != TERRACE_KIND_HOME)
			others |= BIT(t);
	return tiers_tight(tr, others) ? ALL_TIERS : ~avoid;
}

u64 tr_space_mark(struct terrace *tr, const struct tr_tier *tier, enum tr_tune_id mark)
{
	u32 high = tr_tune(tr, TR_TUNE_JANITOR_HIGH);
	u64 start = div_u64(tier->data_blocks * high, 1000), most = tr_space_most(tier), lower = 0;

	if (high < 1000 && start > most)
		lower = start - most;
	start = div_u64(tier->data_blocks * tr_tune(tr, mark), 1000);
	return start - min(start, lower);
}

/* --- set-up ------------------------------------------------------------------------ */

void tr_space_start(struct terrace *tr)
{
	INIT_WORK(&tr->refill_work, refill_fn);
}

/* What lies ready is out of everybody else's reach. */
static u64 ready_most(const struct tr_tier *tier)
{
	return clamp_t(u64, tier->data_blocks / 32, 4 * TR_RUN_BLOCKS, TR_READY_RUNS * TR_RUN_BLOCKS);
}

int tr_space_init(struct terrace *tr, struct tr_tier *tier)
{
	spin_lock_init(&tier->lock);
	mutex_init(&tier->load_mutex);
	mutex_init(&tier->clean_mutex);
	mutex_init(&tier->open_mutex);
	INIT_LIST_HEAD(&tier->dirty_chunks);
	INIT_LIST_HEAD(&tier->full_shelves);
	xa_init(&tier->deltas);
	tier->nr_chunks = DIV_ROUND_UP_ULL(tier->data_blocks, TERRACE_CHUNK_BLOCKS);
	tier->ready_most = ready_most(tier);
	tier->trim_from = tier->nr_chunks;
	tier->chunks = kvcalloc(tier->nr_chunks, sizeof(*tier->chunks), GFP_KERNEL);
	tier->cpu_run = alloc_percpu(struct tr_run);
	tier->epoch_cpu = alloc_percpu(struct tr_epoch_cpu);
	if (!tier->chunks || !tier->cpu_run || !tier->epoch_cpu)
		return -ENOMEM;
	return 0;
}

/* What was closed in a chunk that was the last one is free now. */
static void open_end__f(struct tr_tier *tier, struct tr_chunk_info *info, u32 number, u64 blocks)
{
	u32 old = chunk_blocks(tier, number);
	u32 new = min_t(u64, TERRACE_CHUNK_BLOCKS, blocks - ((u64)number << TERRACE_CHUNK_SHIFT));

	lockdep_assert_held(&tier->lock);
	if (info->chunk)
		bits_set(info->chunk->used, old, new - old, false);
}

void tr_space_grow(struct terrace *tr, struct tr_tier *tier, struct tr_chunk_info *chunks)
{
	u64 blocks = tier->next_blocks, c;
	struct tr_chunk_info *old;

	mutex_lock(&tier->load_mutex);		/* ->chunk stands still */
	spin_lock_irq(&tier->lock);		/* ->used as well */
	old = tier->chunks;
	memcpy(chunks, old, tier->nr_chunks * sizeof(*chunks));
	open_end__f(tier, &chunks[tier->nr_chunks - 1], tier->nr_chunks - 1, blocks);
	for (c = tier->data_blocks >> TERRACE_CHUNK_SHIFT; c < blocks >> TERRACE_CHUNK_SHIFT; c++)
		if (tier->kind == TERRACE_KIND_SHELVES && !chunks[c].used)
			tier->free_shelves++;
	if (tier->trim_from == tier->nr_chunks)
		tier->trim_from = DIV_ROUND_UP_ULL(blocks, TERRACE_CHUNK_BLOCKS);
	tier->free_blocks += blocks - tier->data_blocks;
	WRITE_ONCE(tier->releases, tier->releases + 1);
	tier->reserve_blocks = tier->next_reserve;
	WRITE_ONCE(tier->data_blocks, blocks);
	tier->ready_most = ready_most(tier);
	/* Pairs with the dependent loads in chunk_loaded() and chunk_used(). */
	smp_store_release(&tier->chunks, chunks);
	/* Pairs with nr_chunks(). */
	smp_store_release(&tier->nr_chunks, DIV_ROUND_UP_ULL(blocks, TERRACE_CHUNK_BLOCKS));
	spin_unlock_irq(&tier->lock);
	mutex_unlock(&tier->load_mutex);
	synchronize_rcu();
	kvfree(old);
	queue_work(tr->room_wq, &tr->refill_work);
	tr_homes_kick(tr);
}

void tr_space_exit(struct terrace *tr, struct tr_tier *tier)
{
	struct tr_chunk_delta *delta;
	unsigned long number;
	u32 c;

	tr_shelves_exit(tier);
	for (c = 0; tier->chunks && c < tier->nr_chunks; c++)
		chunk_free(tier->chunks[c].chunk);
	if (tier->chunks) {
		xa_for_each(&tier->deltas, number, delta)
			kfree(delta);
		xa_destroy(&tier->deltas);
	}
	kvfree(tier->chunks);
	free_percpu(tier->cpu_run);
	free_percpu(tier->epoch_cpu);
}
