// SPDX-License-Identifier: GPL-2.0
/*
 * Replay at activation, on all CPUs at once, newest record first, in windows
 * of a bounded number of units of the journal. In each window
 *
 *   1  the units are dealt out (core/deal.c): every record is decoded once,
 *      and goes into the lists of its region's and of its places' shards
 *   2  the shards are applied: the map into one delta per region, space into
 *      one delta per chunk, with exact counts of what is in use
 *
 * Workers take units, then shards, as they get done with the last: no locks,
 * no sharing. A record that newer ones have superseded is seen by a bit of its
 * region's delta, and is not looked at any further.
 *
 * Deltas stay until their region (chunk) is loaded, be it for an I/O, be it
 * by the next checkpoint, which needs them in pages before the tail can move.
 *
 * Range discards. The record stands at its place in the order of records; if
 * its `old` is set it was written again later, for a place before the tail
 * perhaps, and takes effect where the number says. They are collected first,
 * and a region's delta takes those newer than a record before it. Regions
 * without a delta learn of them from discard.c when they are loaded.
 */
#include <linux/cpumask.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/vmalloc.h>

#include "core/deal.h"
#include "meta.h"

#define MAX_WORKERS	64
#define COMPARED_RANGES	64
#define UNITS_PER_CPU	4	/* of a window: some take longer than others */
#define MIN_UNITS	8u
#define MAX_UNITS	64u	/* of 125 KiB each */
#define CACHE_SLOTS	256
#define PLACE_BYTES	(sizeof(u32) + sizeof(u16) + sizeof(u8))	/* low, arrival, high */

struct extent {			/* a range discard */
	u64 first, end;		/* regions */
	u64 seq;
};

/* Beside the xarrays, for they cost more than all the rest of a record. */
struct cache {
	struct {
		u64 key;
		void *object;
	} slot[CACHE_SLOTS];
};

struct shard {
	struct cache regions, chunks;
};

struct worker {
	struct work_struct work;
	struct replay *replay;
	int err;
};

struct replay {
	struct terrace *tr;
	struct shard *shard;		/* TR_DEAL_SHARDS */
	struct tr_deal **deal;		/* the window, newest unit first */
	u32 max_deals, nr_deals;
	u64 newest_unit;		/* of the window */
	atomic_t next;			/* unit or shard that nobody has taken yet */
	struct mutex chunk_mutex;	/* of making one: its parts are in several shards */
	struct extent *ranges;		/* newest first */
	u32 nr_ranges, max_ranges;
	u32 nr_workers;
	struct worker worker[];
};

/* --- region deltas ------------------------------------------------------- */

struct region_replay {
	struct tr_delta delta;		/* first: others know only this */
	u32 ranges_seen;		/* the newest ones, which the delta has */
};

void tr_recover_free_delta(struct terrace *tr, struct tr_delta *delta)
{
	if (!delta)
		return;
	atomic64_sub(sizeof(struct region_replay) + delta->leaf.cap * PLACE_BYTES +
		     delta->cap_packs * sizeof(*delta->packs), &tr->memory);
	kfree(delta->packs);
	kfree(delta->leaf.low);
	kfree(delta);
}

static int delta_grow(struct terrace *tr, struct tr_delta *delta, const struct tr_record *record)
{
	u32 *old = delta->leaf.low;
	u32 before = delta->leaf.cap, cap;
	u16 *arrival;
	bool high;
	u32 *low;
	int err;

	/* By half: a delta lives shortly, and copying it costs more than its room. */
	cap = tr_delta_room(delta, record, &high);
	cap = tr_leaf_room(min_t(u32, cap + cap / 2 + 16, TERRACE_REGION_BLOCKS));
	low = kmalloc(cap * PLACE_BYTES, GFP_KERNEL);
	if (!low)
		return -ENOMEM;
	arrival = (u16 *)&low[cap];
	err = tr_leaf_replace(&delta->leaf, low, high ? (u8 *)&arrival[cap] : NULL, cap);
	if (err) {
		kfree(low);
		return err;
	}
	if (delta->arrival)
		memcpy(arrival, delta->arrival, delta->leaf.nr * sizeof(*arrival));
	if (delta->arrival || !before)
		delta->arrival = arrival;
	kfree(old);
	atomic64_add((s64)(cap - before) * PLACE_BYTES, &tr->memory);
	return 0;
}

static int delta_grow_packs(struct terrace *tr, struct tr_delta *delta,
			    const struct tr_record *record)
{
	u32 want = tr_delta_room_packs(delta, record);
	struct tr_delta_pack *packs;

	if (want <= delta->cap_packs)
		return 0;
	want = max(want, 4u);
	packs = krealloc_array(delta->packs, want, sizeof(*packs), GFP_KERNEL);
	if (!packs)
		return -ENOMEM;
	atomic64_add((want - delta->cap_packs) * sizeof(*packs), &tr->memory);
	delta->packs = packs;
	delta->cap_packs = want;
	return 0;
}

static int delta_apply(struct terrace *tr, struct tr_delta *delta, const struct tr_record *record,
		       u64 seq)
{
	int err = tr_delta_apply(delta, record, seq);

	if (err == -ENOSPC) {
		err = delta_grow_packs(tr, delta, record) ?: delta_grow(tr, delta, record);
		if (!err)
			err = tr_delta_apply(delta, record, seq);
	}
	return min(err, 0);
}

static void discard_region(struct tr_delta *delta, u64 region, u64 seq)
{
	struct tr_record record = {
		.type = TERRACE_RECORD_DISCARD, .nr = 1, .block = region, .new = 1,
	};

	tr_delta_apply(delta, &record, seq);
}

/* The range discards that are newer than record @seq of @region. */
static void discards_before(struct replay *replay, struct region_replay *found, u64 region, u64 seq)
{
	for (; found->ranges_seen < replay->nr_ranges; found->ranges_seen++) {
		const struct extent *range = &replay->ranges[found->ranges_seen];

		if (range->seq <= seq)
			break;
		if (region >= range->first && region < range->end)
			discard_region(&found->delta, region, range->seq);
	}
}

static struct region_replay *new_region(struct terrace *tr, struct xarray *regions, u64 region)
{
	struct region_replay *found;

	if (region >= tr->nr_regions)
		return ERR_PTR(-EUCLEAN);
	found = kzalloc(sizeof(*found), GFP_KERNEL);
	if (!found)
		return ERR_PTR(-ENOMEM);
	tr_leaf_init(&found->delta.leaf);
	if (xa_err(xa_store(regions, region, found, GFP_KERNEL))) {
		kfree(found);
		return ERR_PTR(-ENOMEM);
	}
	atomic64_add(sizeof(*found), &tr->memory);
	atomic64_inc(&tr->recovery->nr_deltas);
	return found;
}

static struct region_replay *region_of(struct replay *replay, u32 s, u64 region)
{
	u32 k = region / TR_DEAL_SHARDS % CACHE_SLOTS;
	struct cache *cache = &replay->shard[s].regions;
	struct region_replay *found;

	if (likely(cache->slot[k].object && cache->slot[k].key == region))
		return cache->slot[k].object;
	found = xa_load(&replay->tr->recovery->regions[s], region);
	if (!found)
		found = new_region(replay->tr, &replay->tr->recovery->regions[s], region);
	if (!IS_ERR(found)) {
		cache->slot[k].key = region;
		cache->slot[k].object = found;
	}
	return found;
}

/*
 * Whoever reads goes where the delta says. That what is in use exists (space_shard) says
 * little: space is not dealt out where nobody writes, nor is what a block has kept.
 */
static bool place_exists(const struct terrace *tr, const struct tr_record *record)
{
	u32 t = tr_place_tier(record->new);

	switch (record->type) {
	case TERRACE_RECORD_MAP:
	case TERRACE_RECORD_CLEAN:
	case TERRACE_RECORD_PACK_ADD:
	case TERRACE_RECORD_INDEX_ADD:
		return t < tr->nr_tiers && record->nr <= tr->tier[t].data_blocks &&
		       tr_place_index(record->new) <= tr->tier[t].data_blocks - record->nr;
	default:
		return true;
	}
}

static int replay_map(struct replay *replay, struct region_replay *found, struct tr_deal *deal,
		      const struct tr_deal_map *entry)
{
	u32 at = tr_deal_map_record(entry->what);
	u64 seq = tr_deal_seq(deal, at);
	struct tr_record record;

	tr_deal_record(deal, at, &record);
	if (unlikely(!place_exists(replay->tr, &record)))
		return -EUCLEAN;
	if (unlikely(found->ranges_seen < replay->nr_ranges))
		discards_before(replay, found, entry->region, seq);
	return delta_apply(replay->tr, &found->delta, &record, seq);
}

static int map_shard(struct replay *replay, u32 s, struct tr_deal *deal)
{
	u16 at, end = deal->map_list[s].end;
	int err = 0;

	for (at = deal->map_list[s].first; at != end && !err;
	     at = tr_deal_next(deal->map_next, at, end)) {
		const struct tr_deal_map *entry = &deal->map[at];
		struct region_replay *found = region_of(replay, s, entry->region);

		if (IS_ERR(found))
			return PTR_ERR(found);
		if (!tr_deal_superseded(entry->what, &found->delta))
			err = replay_map(replay, found, deal, entry);
	}
	return err;
}

/* After the last record. Discards older than all of a region's are for what it
 * had before.
 */
static void finish_shard(struct replay *replay, u32 s)
{
	struct region_replay *found;
	unsigned long region;

	xa_for_each(&replay->tr->recovery->regions[s], region, found) {
		discards_before(replay, found, region, 0);
		tr_delta_sort(&found->delta);
	}
}

/* --- chunk deltas -------------------------------------------------------- */

struct chunk_replay {
	struct tr_chunk_delta delta;	/* first: space.c frees it by this */
	u64 page_seq;
	bool has_page;
	u32 blocks;			/* the tier may end in it */
	struct {			/* each belongs to one shard */
		u64 newest_seq;
		s32 change;		/* blocks more in use than the page says */
	} part[TR_DEAL_PARTS];
};

static struct chunk_replay *new_chunk(struct terrace *tr, struct tr_tier *tier, u32 number)
{
	struct chunk_replay *chunk;
	struct tr_entry entry;
	int err;

	err = tr_page_lookup(tr, TERRACE_TREE_SPACE, tier->number, number, &entry);
	if (err && err != -ENOENT)
		return ERR_PTR(err == -EUCLEAN ? -EBADMSG : err);
	chunk = kzalloc(sizeof(*chunk), GFP_KERNEL);
	if (!chunk)
		return ERR_PTR(-ENOMEM);
	chunk->page_seq = entry.seq;
	chunk->has_page = !err;
	chunk->blocks = min_t(u64, TERRACE_CHUNK_BLOCKS,
			      tier->data_blocks - ((u64)number << TERRACE_CHUNK_SHIFT));
	if (xa_err(xa_store(&tier->deltas, number, chunk, GFP_KERNEL))) {
		kfree(chunk);
		return ERR_PTR(-ENOMEM);
	}
	atomic64_add(sizeof(chunk->delta), &tr->memory);
	return chunk;
}

static noinline struct chunk_replay *find_chunk(struct replay *replay, u32 t, u32 number)
{
	struct terrace *tr = replay->tr;
	struct tr_tier *tier = &tr->tier[t];
	struct chunk_replay *chunk;

	if (t >= tr->nr_tiers || number >= tier->nr_chunks)
		return ERR_PTR(-EUCLEAN);
	chunk = xa_load(&tier->deltas, number);
	if (chunk)
		return chunk;
	mutex_lock(&replay->chunk_mutex);
	chunk = xa_load(&tier->deltas, number) ?: new_chunk(tr, tier, number);
	mutex_unlock(&replay->chunk_mutex);
	return chunk;
}

static struct chunk_replay *chunk_of(struct replay *replay, struct cache *cache, u64 place)
{
	u32 t = tr_place_tier(place), number = tr_deal_chunk(place);
	u32 k = (number + t * (CACHE_SLOTS / TERRACE_MAX_TIERS)) % CACHE_SLOTS;
	u64 key = (u64)number * TERRACE_MAX_TIERS + t;
	struct chunk_replay *chunk;

	if (likely(cache->slot[k].object && cache->slot[k].key == key))
		return cache->slot[k].object;
	chunk = find_chunk(replay, t, number);
	if (!IS_ERR(chunk)) {
		cache->slot[k].key = key;
		cache->slot[k].object = chunk;
	}
	return chunk;
}

static int space_shard(struct replay *replay, u32 s, struct tr_deal *deal)
{
	u16 at, end = deal->space_list[s].end;

	for (at = deal->space_list[s].first; at != end;
	     at = tr_deal_next(deal->space_next, at, end)) {
		u64 entry = deal->space[at], place = tr_deal_place(entry);
		u64 seq = tr_deal_seq(deal, tr_deal_space_record(entry));
		u32 first = tr_place_index(place) % TERRACE_CHUNK_BLOCKS, part;
		struct chunk_replay *chunk = chunk_of(replay, &replay->shard[s].chunks, place);
		s32 nr = tr_deal_space_nr(entry);

		if (IS_ERR(chunk))
			return PTR_ERR(chunk);
		if (unlikely(first + nr > chunk->blocks))
			return -EUCLEAN;
		if (seq <= chunk->page_seq)
			continue;	/* the page has it */
		tr_deal_decide(chunk->delta.touched, chunk->delta.used, first, nr,
			       tr_deal_space_used(entry));
		part = first >> TR_DEAL_PART_SHIFT;
		chunk->part[part].change += tr_deal_space_used(entry) ? nr : -nr;
		if (seq > chunk->part[part].newest_seq)
			chunk->part[part].newest_seq = seq;
	}
	return 0;
}

/* Counts of chunks with a delta; a delta that says nothing goes away. */
static void settle_chunks(struct terrace *tr, struct tr_tier *tier)
{
	struct chunk_replay *chunk;
	unsigned long number;

	xa_for_each(&tier->deltas, number, chunk) {
		u16 *used = &tier->chunks[number].used;
		u32 w, nr = 0;
		s32 change = 0;

		for (w = 0; w < TR_DEAL_PARTS; w++) {
			change += chunk->part[w].change;
			chunk->delta.newest_seq = max(chunk->delta.newest_seq,
						      chunk->part[w].newest_seq);
		}
		if (!chunk->delta.newest_seq) {
			xa_erase(&tier->deltas, number);
			atomic64_sub(sizeof(chunk->delta), &tr->memory);
			kfree(chunk);
			continue;
		}
		for (w = 0; w < ARRAY_SIZE(chunk->delta.used); w++)
			nr += hweight64(chunk->delta.used[w]);
		/* Without a page the delta is all there is. With one, every
		 * record since it took or freed exactly its blocks.
		 */
		*used = chunk->has_page ?
			clamp_t(s32, *used + change, 0, TERRACE_CHUNK_BLOCKS) : nr;
	}
}

/* --- windows ------------------------------------------------------------- */

static void deal_fn(struct work_struct *work)
{
	struct replay *replay = container_of(work, struct worker, work)->replay;
	struct tr_scan *scan = &replay->tr->recovery->scan;
	u32 k;

	BUILD_BUG_ON(TR_PIECE_BLOCKS % TR_DEAL_BLOCKS);
	while ((k = atomic_inc_return(&replay->next) - 1) < replay->nr_deals) {
		u64 first = (replay->newest_unit - k) * TR_DEAL_BLOCKS;
		u32 nr = min_t(u64, TR_DEAL_BLOCKS, scan->nr_blocks - first);

		tr_deal(replay->deal[k], tr_scan_block(scan, first), nr,
			tr_writable(replay->tr));
		cond_resched();
	}
}

static void apply_fn(struct work_struct *work)
{
	struct worker *w = container_of(work, struct worker, work);
	struct replay *replay = w->replay;
	u32 k, u;

	while ((k = atomic_inc_return(&replay->next) - 1) < 2 * TR_DEAL_SHARDS) {
		for (u = 0; u < replay->nr_deals && !w->err; u++)
			w->err = (k % 2 ? space_shard : map_shard)(replay, k / 2, replay->deal[u]);
		cond_resched();
	}
}

static void finish_fn(struct work_struct *work)
{
	struct replay *replay = container_of(work, struct worker, work)->replay;
	u32 k;

	while ((k = atomic_inc_return(&replay->next) - 1) < TR_DEAL_SHARDS) {
		finish_shard(replay, k);
		cond_resched();
	}
}

/* @fn on all CPUs, this one included. */
static int run(struct replay *replay, void (*fn)(struct work_struct *work), s64 *us)
{
	ktime_t start = ktime_get();
	int err = 0;
	u32 k;

	atomic_set(&replay->next, 0);
	for (k = 0; k < replay->nr_workers; k++) {
		struct worker *w = &replay->worker[k];

		w->replay = replay;
		INIT_WORK(&w->work, fn);
		if (k)
			queue_work(system_unbound_wq, &w->work);
	}
	fn(&replay->worker[0].work);
	for (k = 0; k < replay->nr_workers; k++) {
		flush_work(&replay->worker[k].work);
		err = err ?: replay->worker[k].err;
	}
	*us += ktime_us_delta(ktime_get(), start);
	return err;
}

static int windows(struct replay *replay)
{
	struct tr_recovery *rec = replay->tr->recovery;
	u64 left = DIV_ROUND_UP_ULL(rec->scan.nr_blocks, TR_DEAL_BLOCKS);
	int err = 0;

	while (left && !err) {
		replay->newest_unit = left - 1;
		replay->nr_deals = min_t(u64, left, replay->max_deals);
		left -= replay->nr_deals;
		err = run(replay, deal_fn, &rec->deal_us) ?: run(replay, apply_fn, &rec->apply_us);
	}
	return err ?: run(replay, finish_fn, &rec->apply_us);
}

/* --- all together -------------------------------------------------------- */

static int add_discard(struct replay *replay, const struct tr_record *record, u64 seq)
{
	struct extent *range;

	if (record->block + record->new > replay->tr->nr_regions)
		return -EUCLEAN;
	if (replay->nr_ranges == replay->max_ranges) {
		u32 max = replay->max_ranges * 2 + 16;
		struct extent *more = kvmalloc_array(max, sizeof(*more), GFP_KERNEL);

		if (!more)
			return -ENOMEM;
		if (replay->nr_ranges)
			memcpy(more, replay->ranges, replay->nr_ranges * sizeof(*more));
		kvfree(replay->ranges);
		replay->ranges = more;
		replay->max_ranges = max;
	}
	range = &replay->ranges[replay->nr_ranges++];
	range->first = record->block;
	range->end = record->block + record->new;
	range->seq = record->old ?: seq;
	return 0;
}

static int newest_first(const void *a, const void *b)
{
	const struct extent *x = a, *y = b;

	return x->seq < y->seq ? 1 : x->seq > y->seq ? -1 : 0;
}

/*
 * Ranges become open again, unless a newer one covers them, or the same that
 * was written several times. It is a saving only, so a few are compared.
 */
static void open_ranges(struct replay *replay)
{
	const struct extent *range, *newer;
	u32 i, k;

	for (i = 0; i < replay->nr_ranges; i++) {
		range = &replay->ranges[i];
		for (k = i; k > 0 && i - k < COMPARED_RANGES; k--) {
			newer = &replay->ranges[k - 1];
			if (range->first >= newer->first && range->end <= newer->end)
				break;
		}
		if (!k || i - k >= COMPARED_RANGES)
			tr_discard_add(replay->tr, range->first, range->end, range->seq);
	}
}

/* Ids are never used twice, not even those of packs whose records were lost:
 * far fewer than this were under way.
 */
#define PACK_IDS_LOST	(1u << 20)

static void start_pack_ids(struct terrace *tr, u64 newest)
{
	atomic64_set(&tr->next_pack, max(tr->super.next_id, newest + 1) + PACK_IDS_LOST);
}

/* Finds the range discards and the newest pack, and counts. */
static int survey(struct replay *replay)
{
	u64 newest = 0;
	struct tr_recovery *rec = replay->tr->recovery;
	struct tr_record record;
	int err = 0;
	u64 b;
	u32 i;

	for (b = 0; b < rec->scan.nr_blocks && !err; b++) {
		const void *block = tr_scan_block(&rec->scan, b);
		u32 nr = tr_jblock_nr(block);

		for (i = 0; i < nr && !err; i++) {
			u8 type = tr_scan_type(block, i);

			if (type != TERRACE_RECORD_DISCARD && type != TERRACE_RECORD_PACK_ADD)
				continue;
			tr_jblock_record(block, i, &record);
			if (type == TERRACE_RECORD_PACK_ADD)
				newest = max(newest, record.old);
			else
				err = add_discard(replay, &record, tr_jblock_first_record(block) + i);
		}
		rec->nr_records += nr;
	}
	start_pack_ids(replay->tr, newest);
	if (replay->nr_ranges)
		sort(replay->ranges, replay->nr_ranges, sizeof(*replay->ranges), newest_first,
		     NULL);
	if (!err)
		open_ranges(replay);
	return err;
}

static int replay_all(struct replay *replay, const char **error)
{
	struct terrace *tr = replay->tr;
	u32 t;
	int err;

	*error = "Out of memory while replaying the journal";
	err = survey(replay) ?: windows(replay);
	if (err == -EUCLEAN)
		*error = "Journal has a record of blocks or places that do not exist";
	else if (err == -EOPNOTSUPP)
		*error = "Journal has records that this version cannot replay";
	else if (err == -EBADMSG)
		*error = "Directory of the space pages is damaged: the volume can be opened read-only";
	else if (err == -EIO)
		*error = "Directory of the space pages cannot be read";
	for (t = 0; t < tr->nr_tiers && !err; t++)
		settle_chunks(tr, &tr->tier[t]);
	return err;
}

static void replay_destroy(struct replay *replay)
{
	u32 k;

	if (!replay)
		return;
	for (k = 0; k < replay->max_deals; k++)
		kvfree(replay->deal[k]);
	kfree(replay->deal);
	kvfree(replay->shard);
	kvfree(replay->ranges);
	kfree(replay);
}

static struct replay *replay_create(struct terrace *tr)
{
	u32 nr = min_t(u32, num_online_cpus(), MAX_WORKERS);
	u64 units = DIV_ROUND_UP_ULL(tr->recovery->scan.nr_blocks, TR_DEAL_BLOCKS);
	u32 max = min_t(u64, clamp(nr * UNITS_PER_CPU, MIN_UNITS, MAX_UNITS), units);
	struct replay *replay = kzalloc(struct_size(replay, worker, nr), GFP_KERNEL);

	if (!replay)
		return NULL;
	replay->tr = tr;
	mutex_init(&replay->chunk_mutex);
	replay->nr_workers = nr;
	replay->shard = kvcalloc(TR_DEAL_SHARDS, sizeof(*replay->shard), GFP_KERNEL);
	replay->deal = kcalloc(max, sizeof(*replay->deal), GFP_KERNEL);
	for (; replay->deal && replay->max_deals < max; replay->max_deals++) {
		replay->deal[replay->max_deals] = kvmalloc(sizeof(struct tr_deal), GFP_KERNEL);
		if (!replay->deal[replay->max_deals])
			break;		/* a smaller window will do */
	}
	if (replay->shard && replay->deal && (replay->max_deals || !max))
		return replay;
	replay_destroy(replay);
	return NULL;
}

int tr_replay(struct terrace *tr, const char **error)
{
	struct tr_recovery *rec = tr->recovery;
	struct replay *replay;
	int err;
	u32 k;

	rec->regions = kcalloc(TR_DEAL_SHARDS, sizeof(*rec->regions), GFP_KERNEL);
	for (k = 0; rec->regions && k < TR_DEAL_SHARDS; k++)
		xa_init(&rec->regions[k]);
	replay = rec->regions ? replay_create(tr) : NULL;
	if (!replay) {
		*error = "Out of memory while replaying the journal";
		return -ENOMEM;
	}
	err = replay_all(replay, error);
	replay_destroy(replay);
	return err;
}
