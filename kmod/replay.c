// SPDX-License-Identifier: GPL-2.0
/*
 * Replay at activation, on all CPUs at once. Each worker walks the whole
 * journal and takes the records of its own regions, those whose number is
 * its own modulo the number of workers: no lock, no sharing, and skipping a
 * record costs next to nothing. First the map, newest record first, into one
 * delta per region; then space, oldest first, into one delta per chunk, with
 * exact counts of what is in use.
 *
 * Deltas stay until their region (chunk) is loaded, be it for an I/O, be it
 * by the next checkpoint, which needs them in pages before the tail can move.
 *
 * Range discards. The record stands at its place in the order of records; if
 * its `old` is set it was written again later, for a place before the tail
 * perhaps, and takes effect where the number says. Regions without a delta
 * learn of it from discard.c when they are loaded.
 */
#include <linux/cpumask.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/vmalloc.h>

#include "meta.h"

#define MAX_WORKERS	64
#define COMPARED_RANGES	64

struct extent {			/* a range discard */
	u64 first, end;		/* regions */
	u64 seq;
};

struct chunk_replay;

struct worker {
	struct work_struct work;
	struct replay *replay;
	u32 nr;
	u64 seq;		/* of the record at hand */
	int err;
	u64 last_region;
	struct tr_delta *last;
	u32 last_tier, last_number;
	struct chunk_replay *last_chunk;
};

struct replay {
	struct terrace *tr;
	u32 nr_workers;
	struct extent *ranges;	/* newest first */
	u32 nr_ranges, max_ranges;
	struct worker worker[];
};

/* --- region deltas ------------------------------------------------------- */

void tr_recover_free_delta(struct terrace *tr, struct tr_delta *delta)
{
	if (!delta)
		return;
	atomic64_sub(sizeof(*delta) + delta->leaf.cap * 5 +
		     delta->cap_packs * sizeof(*delta->packs), &tr->memory);
	kfree(delta->packs);
	kfree(delta->leaf.low);
	kfree(delta);
}

static int delta_grow(struct terrace *tr, struct tr_delta *delta, const struct tr_record *record)
{
	u32 *old = delta->leaf.low;
	u32 before = delta->leaf.cap, cap;
	bool high;
	u32 *low;
	int err;

	/* By half: a delta lives shortly, and copying it costs more than its room. */
	cap = tr_delta_room(delta, record, &high);
	cap = tr_leaf_room(min_t(u32, cap + cap / 2 + 16, TERRACE_REGION_BLOCKS));
	low = kmalloc(cap * 5, GFP_KERNEL);
	if (!low)
		return -ENOMEM;
	err = tr_leaf_replace(&delta->leaf, low, high ? (u8 *)&low[cap] : NULL, cap);
	if (err) {
		kfree(low);
		return err;
	}
	kfree(old);
	atomic64_add((s64)(cap - before) * 5, &tr->memory);
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

/* Discards newer than @seq: none of the records seen so far touched @region. */
static void discards_before(struct replay *replay, struct tr_delta *delta, u64 region, u64 seq)
{
	u32 k;

	for (k = 0; k < replay->nr_ranges && replay->ranges[k].seq > seq; k++)
		if (region >= replay->ranges[k].first && region < replay->ranges[k].end)
			discard_region(delta, region, replay->ranges[k].seq);
}

static struct tr_delta *delta_of(struct worker *w, u64 region)
{
	struct terrace *tr = w->replay->tr;
	struct xarray *regions = &tr->recovery->regions[w->nr];
	struct tr_delta *delta;

	if (w->last && w->last_region == region)
		return w->last;
	delta = xa_load(regions, region);
	if (!delta) {
		delta = kzalloc(sizeof(*delta), GFP_KERNEL);
		if (!delta)
			return NULL;
		tr_leaf_init(&delta->leaf);
		if (xa_err(xa_store(regions, region, delta, GFP_KERNEL))) {
			kfree(delta);
			return NULL;
		}
		atomic64_add(sizeof(*delta), &tr->memory);
		atomic64_inc(&tr->recovery->nr_deltas);
		discards_before(w->replay, delta, region, w->seq);
	}
	w->last = delta;
	w->last_region = region;
	return delta;
}

static void discard_range(struct worker *w, u64 first, u64 end, u64 seq)
{
	struct xarray *regions = &w->replay->tr->recovery->regions[w->nr];
	struct tr_delta *delta;
	unsigned long region;

	xa_for_each_range(regions, region, delta, first, end - 1)
		discard_region(delta, region, seq);
}

static int replay_record(struct worker *w, const struct tr_record *record)
{
	struct terrace *tr = w->replay->tr;
	struct tr_delta *delta;
	u64 region;

	if (record->type == TERRACE_RECORD_DISCARD && !record->old)
		discard_range(w, record->block, record->block + record->new, w->seq);
	if (!tr_record_region(record, &region))
		return 0;
	if (region % w->replay->nr_workers != w->nr)
		return 0;
	if (region >= tr->nr_regions)
		return -EUCLEAN;
	delta = delta_of(w, region);
	return delta ? delta_apply(tr, delta, record, w->seq) : -ENOMEM;
}

/* Discards whose own record is no longer in the journal: older than all of it. */
static void oldest_discards(struct worker *w)
{
	struct replay *replay = w->replay;
	u32 k;

	for (k = 0; k < replay->nr_ranges; k++)
		if (replay->ranges[k].seq <= replay->tr->super.tail_record_seq)
			discard_range(w, replay->ranges[k].first, replay->ranges[k].end,
				      replay->ranges[k].seq);
}

static void map_fn(struct work_struct *work)
{
	struct worker *w = container_of(work, struct worker, work);
	struct tr_scan *scan = &w->replay->tr->recovery->scan;
	struct tr_record record;
	u64 b, first;
	u32 i;

	for (b = scan->nr_blocks; b-- && !w->err;) {
		const void *block = tr_scan_block(scan, b);

		first = tr_jblock_first_record(block);
		for (i = tr_jblock_nr(block); i-- && !w->err;) {
			w->seq = first + i;
			tr_jblock_record(block, i, &record);
			w->err = replay_record(w, &record);
		}
		cond_resched();
	}
	oldest_discards(w);
}

/* --- chunk deltas -------------------------------------------------------- */

struct chunk_replay {
	struct tr_chunk_delta delta;	/* first: space.c frees it by this */
	u64 page_seq;
	bool has_page;
	s32 change;			/* blocks more in use than the page says */
};

static struct chunk_replay *chunk_of(struct worker *w, struct tr_tier *tier, u32 number)
{
	struct terrace *tr = w->replay->tr;
	struct chunk_replay *chunk = xa_load(&tier->deltas, number);
	struct tr_entry entry;
	int err;

	if (chunk)
		return chunk;
	err = tr_page_lookup(tr, TERRACE_TREE_SPACE, tier->number, number, &entry);
	if (err && err != -ENOENT)
		return ERR_PTR(err == -EUCLEAN ? -EBADMSG : err);
	chunk = kzalloc(sizeof(*chunk), GFP_KERNEL);
	if (!chunk)
		return ERR_PTR(-ENOMEM);
	chunk->page_seq = entry.seq;
	chunk->has_page = !err;
	if (xa_err(xa_store(&tier->deltas, number, chunk, GFP_KERNEL))) {
		kfree(chunk);
		return ERR_PTR(-ENOMEM);
	}
	atomic64_add(sizeof(chunk->delta), &tr->memory);
	return chunk;
}

static void set_bits(struct tr_chunk_delta *delta, u32 i, u32 n, bool used)
{
	for (; n; i++, n--) {
		u64 bit = 1ull << (i % 64);

		delta->touched[i / 64] |= bit;
		if (used)
			delta->used[i / 64] |= bit;
		else
			delta->used[i / 64] &= ~bit;
	}
}

/* What one record does to one chunk: a part of tr_record_space(). */
static void space_set(u32 t, u64 index, u32 n, bool used, void *context)
{
	struct worker *w = context;
	struct terrace *tr = w->replay->tr;
	u32 number = index >> TERRACE_CHUNK_SHIFT;
	struct chunk_replay *chunk;

	if (w->err || number % w->replay->nr_workers != w->nr)
		return;
	if (t >= tr->nr_tiers || index + n > tr->tier[t].data_blocks) {
		w->err = -EUCLEAN;
		return;
	}
	chunk = w->last_chunk;
	if (!chunk || w->last_number != number || w->last_tier != t) {
		chunk = chunk_of(w, &tr->tier[t], number);
		if (IS_ERR(chunk)) {
			w->err = PTR_ERR(chunk);
			return;
		}
		w->last_chunk = chunk;
		w->last_number = number;
		w->last_tier = t;
	}
	if (w->seq <= chunk->page_seq)
		return;			/* the page has it */
	set_bits(&chunk->delta, index % TERRACE_CHUNK_BLOCKS, n, used);
	chunk->delta.newest_seq = w->seq;
	chunk->change += used ? (s32)n : -(s32)n;
}

static void space_fn(struct work_struct *work)
{
	struct worker *w = container_of(work, struct worker, work);
	struct tr_scan *scan = &w->replay->tr->recovery->scan;
	struct tr_record record;
	u64 b, first;
	u32 i, nr;

	for (b = 0; b < scan->nr_blocks && !w->err; b++) {
		const void *block = tr_scan_block(scan, b);

		first = tr_jblock_first_record(block);
		nr = tr_jblock_nr(block);
		for (i = 0; i < nr && !w->err; i++) {
			w->seq = first + i;
			tr_jblock_record(block, i, &record);
			tr_record_space(&record, space_set, w);
		}
		cond_resched();
	}
}

/* Counts of chunks with a delta; a delta that says nothing goes away. */
static void settle_chunks(struct terrace *tr, struct tr_tier *tier)
{
	struct chunk_replay *chunk;
	unsigned long number;

	xa_for_each(&tier->deltas, number, chunk) {
		u16 *used = &tier->chunks[number].used;
		u32 w, nr = 0;

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
			clamp_t(s32, *used + chunk->change, 0, TERRACE_CHUNK_BLOCKS) : nr;
	}
}

/* --- all together -------------------------------------------------------- */

static int run(struct replay *replay, void (*fn)(struct work_struct *work), s64 *us)
{
	ktime_t start = ktime_get();
	int err = 0;
	u32 k;

	for (k = 0; k < replay->nr_workers; k++) {
		struct worker *w = &replay->worker[k];

		memset(w, 0, sizeof(*w));
		w->replay = replay;
		w->nr = k;
		INIT_WORK(&w->work, fn);
		queue_work(system_unbound_wq, &w->work);
	}
	for (k = 0; k < replay->nr_workers; k++) {
		flush_work(&replay->worker[k].work);
		err = err ?: replay->worker[k].err;
	}
	*us = ktime_us_delta(ktime_get(), start);
	return err;
}

static int add_discard(struct replay *replay, const struct tr_record *record, u64 seq)
{
	struct extent *range;

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
	err = survey(replay);
	if (!err)
		err = run(replay, map_fn, &tr->recovery->map_us);
	if (!err && tr_writable(tr))
		err = run(replay, space_fn, &tr->recovery->space_us);
	if (err == -EUCLEAN)
		*error = "Journal has a record of blocks that do not exist";
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

int tr_replay(struct terrace *tr, const char **error)
{
	u32 nr = min_t(u32, num_online_cpus(), MAX_WORKERS), k;
	struct tr_recovery *rec = tr->recovery;
	struct replay *replay;
	int err;

	replay = kzalloc(struct_size(replay, worker, nr), GFP_KERNEL);
	rec->regions = kcalloc(nr, sizeof(*rec->regions), GFP_KERNEL);
	if (!replay || !rec->regions) {
		kfree(replay);
		*error = "Out of memory while replaying the journal";
		return -ENOMEM;
	}
	rec->nr_cpus = nr;
	for (k = 0; k < nr; k++)
		xa_init(&rec->regions[k]);
	replay->tr = tr;
	replay->nr_workers = nr;
	err = replay_all(replay, error);
	kvfree(replay->ranges);
	kfree(replay);
	return err;
}
