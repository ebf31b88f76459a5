// SPDX-License-Identifier: GPL-2.0
/*
 * What is free is given back to the drive: discards of slots and of whole
 * shelves, in the background: trim_ms after it became free, for neighbours come soon
 * after each other (0: never), or when the message `trim` asks.
 *
 * A place comes here after it has become free, not before: so its freeing
 * record is durable, and every bio that was mapped to it has ended (apply.c).
 * The worker then takes it, like a writer would, sends the discard, and gives
 * it back when that has ended. Crash and race arguments:
 *
 *   - Crash at any time: what the durable records map is `used`, and nothing
 *     that is used is taken. A place that recovery maps was never trimmed.
 *   - Nobody gets a place while its discard is under way: it is used (slots)
 *     or its shelf is not to be opened (TR_CHUNK_TRIMMING). A write that comes
 *     after the discard has ended is ordered behind it by the drive.
 *   - What is taken is not there for writers. So nothing is taken while they
 *     are short of it, and never more than a quarter of what there is; a bio
 *     that finds no room meanwhile waits (tr_space_tight) until it is back.
 *   - What is not trimmed before the volume stops, or its chunk leaves memory,
 *     keeps its contents until the message `trim`. That costs nobody anything
 *     but the drive.
 *
 * Slots are discarded in whole granules of the drive, neighbours in one go; a
 * granule that is free only in part waits until the rest is.
 */
#include <linux/slab.h>

#include "terrace.h"

#define BATCH		16		/* runs under way at a time */
#define RUN_BLOCKS	4096		/* of one, at most */
#define SPARE_SHELVES	2		/* free ones left to writers */

struct trim_run {
	u32 i, n;			/* in the chunk */
};

/* --- discards (home.c as well) ----------------------------------------------------- */

/* Trims go out together, and are waited for together. A drive that cannot trim keeps
 * what it has; that costs room, nothing else.
 */
void tr_trim(const struct tr_tier *tier, u64 index, u32 n, struct tr_burst *burst)
{
	if (!tier->missing && bdev_max_discard_sectors(tier->bdev))
		tr_burst_discard(burst, tier->bdev,
				 tier->data_sector + index * TERRACE_BLOCK_SECTORS,
				 n * TERRACE_BLOCK_BYTES);
}

/* --- what may be trimmed --------------------------------------------------------------- */

bool tr_trimmable(const struct tr_tier *tier)
{
	return !tier->missing && !READ_ONCE(tier->no_trim) && tier->kind != TERRACE_KIND_HOME &&
	       bdev_max_discard_sectors(tier->bdev);
}

/* Is there anything to do on @tier? */
static bool wanted(struct terrace *tr, const struct tr_tier *tier)
{
	return tr_trimmable(tier) &&
	       (READ_ONCE(tier->trim_from) < READ_ONCE(tier->nr_chunks) ||
		(tr_tune(tr, TR_TUNE_TRIM_MS) && READ_ONCE(tier->stale)));
}

static bool may_go_on(const struct terrace *tr)
{
	return tr_writable(tr) && !READ_ONCE(tr->stopping);
}

static void failed(struct terrace *tr, struct tr_tier *tier, int err)
{
	WRITE_ONCE(tier->no_trim, true);
	DMWARN("%s: tier %u cannot trim what is free (%d): it is not asked again", tr->name,
	       tier->number, err);
}

static void trimmed(struct terrace *tr, struct tr_tier *tier, u64 blocks)
{
	tier->trimmed += blocks;
	/* A writer may have looked for room while it was not there. */
	if (tr_room_is_waited_for(tr))
		queue_work(tr->room_wq, &tr->refill_work);
}

/* --- slots ------------------------------------------------------------------------------ */

struct granules {
	u32 blocks;			/* of one; 0: slots cannot be trimmed in these */
	u32 skew;			/* the chunk begins so far behind a border */
};

static struct granules granules_of(const struct tr_tier *tier, u32 number)
{
	u64 bytes = max_t(u64, bdev_discard_granularity(tier->bdev), TERRACE_BLOCK_BYTES), first;
	struct granules g = {};

	if (bytes % TERRACE_BLOCK_BYTES || bytes > TERRACE_CHUNK_BLOCKS * TERRACE_BLOCK_BYTES)
		return g;
	g.blocks = bytes / TERRACE_BLOCK_BYTES;
	first = (get_start_sect(tier->bdev) + tier->data_sector) / TERRACE_BLOCK_SECTORS +
		((u64)number << TERRACE_CHUNK_SHIFT);
	div_u64_rem(first, g.blocks, &g.skew);
	return g;
}

/* The granule that @i is in begins at, or a chunk's end if it begins in another. */
static u32 granule_start(struct granules g, u32 i)
{
	u32 behind = (i + g.skew) % g.blocks;

	return behind > i ? TERRACE_CHUNK_BLOCKS : i - behind;
}

/* Granules from @start on that are free and have something stale in them, in blocks. */
static u32 run_from__f(const struct tr_chunk *chunk, struct granules g, u32 start, u32 most)
{
	const unsigned long *stale = (const unsigned long *)chunk->stale;
	u32 end = min_t(u32, TERRACE_CHUNK_BLOCKS, start + most), n;

	end = find_next_bit((const unsigned long *)chunk->used, end, start);
	if (g.blocks == 1)
		return find_next_zero_bit(stale, end, start) - start;
	for (n = 0; start + n + g.blocks <= end; n += g.blocks)
		if (find_next_bit(stale, end, start + n) >= start + n + g.blocks)
			break;
	return n;
}

/* The next run of such granules from *@at on, 0: none. */
static u32 find_run__f(const struct tr_chunk *chunk, struct granules g, u32 *at, u32 most)
{
	const unsigned long *stale = (const unsigned long *)chunk->stale;
	const unsigned long *used = (const unsigned long *)chunk->used;
	u32 i = *at, start, n;

	while (most && (i = find_next_bit(stale, TERRACE_CHUNK_BLOCKS, i)) < TERRACE_CHUNK_BLOCKS) {
		start = granule_start(g, i);
		if (start == TERRACE_CHUNK_BLOCKS) {
			i++;
			continue;
		}
		n = run_from__f(chunk, g, start, most);
		if (n) {
			*at = start;
			return n;
		}
		/* behind this granule, and behind what is in use there */
		i = find_next_bit(used, TERRACE_CHUNK_BLOCKS, start);
		i = max_t(u32, start + g.blocks, find_next_zero_bit(used, TERRACE_CHUNK_BLOCKS, i));
	}
	return 0;
}

/* Slots that may be taken now, writers being left enough. */
static u32 spare_slots__f(const struct tr_tier *tier)
{
	u64 keep = tier->reserve_blocks + tier->ready_most;

	return tier->free_blocks > keep ? min_t(u64, (tier->free_blocks - keep) / 4, RUN_BLOCKS) : 0;
}

static void take__f(struct tr_tier *tier, struct tr_chunk *chunk, u32 i, u32 n)
{
	bitmap_set((unsigned long *)chunk->used, i, n);
	bitmap_clear((unsigned long *)chunk->stale, i, n);
	tier->chunks[chunk->number].used += n;
	tier->free_blocks -= n;
	WRITE_ONCE(tier->trimming, tier->trimming + n);
}

/* One under each lock: a chunk's bitmaps are long. */
static u32 take_runs(struct tr_tier *tier, struct tr_chunk *chunk, struct granules g, u32 *at,
		     struct trim_run *run)
{
	u32 k;

	for (k = 0; k < BATCH; k++) {
		spin_lock_irq(&tier->lock);
		run[k].n = find_run__f(chunk, g, at, spare_slots__f(tier));
		run[k].i = *at;
		if (run[k].n)
			take__f(tier, chunk, run[k].i, run[k].n);
		spin_unlock_irq(&tier->lock);
		if (!run[k].n)
			break;
		*at += run[k].n;
	}
	return k;
}

static void give_back(struct terrace *tr, struct tr_tier *tier, struct tr_chunk *chunk,
		      const struct trim_run *run, u32 nr)
{
	u64 blocks = 0;
	u32 k;

	for (k = 0; k < nr; k++) {
		tr_space_trimmed(tier, chunk, run[k].i, run[k].n);
		blocks += run[k].n;
	}
	trimmed(tr, tier, blocks);
}

static void trim_slots(struct terrace *tr, struct tr_tier *tier, struct tr_chunk *chunk)
{
	struct granules g = granules_of(tier, chunk->number);
	struct trim_run run[BATCH];
	u32 at = 0, nr = 1, k;
	int err = 0;

	while (g.blocks && nr && !err && may_go_on(tr)) {
		u64 first = (u64)chunk->number << TERRACE_CHUNK_SHIFT;
		struct tr_burst burst;

		nr = take_runs(tier, chunk, g, &at, run);
		tr_burst_begin(&burst);
		for (k = 0; k < nr; k++)
			tr_trim(tier, first + run[k].i, run[k].n, &burst);
		err = tr_burst_wait(&burst);
		if (err)
			failed(tr, tier, err);
		give_back(tr, tier, chunk, run, nr);
		cond_resched();
	}
}

/* All that is free in it is to go: after a start nobody knows what was trimmed. */
static void mark_all(struct tr_tier *tier, struct tr_chunk *chunk)
{
	spin_lock_irq(&tier->lock);
	bitmap_complement((unsigned long *)chunk->stale, (unsigned long *)chunk->used,
			  TERRACE_CHUNK_BLOCKS);
	spin_unlock_irq(&tier->lock);
}

static void trim_slots_of(struct terrace *tr, struct tr_tier *tier, u32 number, bool all)
{
	struct tr_chunk *chunk = tr_chunk_get(tr, tier, number);

	if (IS_ERR(chunk))
		return;
	if (chunk->stale && all)
		mark_all(tier, chunk);
	if (chunk->stale)
		trim_slots(tr, tier, chunk);
	tr_chunk_put(chunk);
}

/* --- shelves ----------------------------------------------------------------------------- */

/* Takes the shelf, if it is free and writers have others. */
static bool take_shelf(struct tr_tier *tier, u32 number)
{
	struct tr_chunk_info *info;
	bool took;

	mutex_lock(&tier->open_mutex);		/* nobody is about to open it */
	spin_lock_irq(&tier->lock);
	info = &tier->chunks[number];
	took = !info->used && !(info->flags & TR_CHUNK_ASIDE) && !tr_shelf_is_open__f(tier, number) &&
	       tier->free_shelves > tr_shelves_kept(tier) + SPARE_SHELVES &&
	       ((u64)number + 1) << TERRACE_CHUNK_SHIFT <= tier->data_blocks;
	if (took) {
		info->flags = (info->flags & ~TR_CHUNK_STALE) | TR_CHUNK_TRIMMING;
		tier->free_shelves--;
	}
	spin_unlock_irq(&tier->lock);
	mutex_unlock(&tier->open_mutex);
	return took;
}

static void trim_shelf(struct terrace *tr, struct tr_tier *tier, u32 number)
{
	struct tr_burst burst;
	int err;

	if (!take_shelf(tier, number))
		return;
	WRITE_ONCE(tier->trimming_shelf, true);
	tr_burst_begin(&burst);
	tr_trim(tier, (u64)number << TERRACE_CHUNK_SHIFT, TERRACE_CHUNK_BLOCKS, &burst);
	err = tr_burst_wait(&burst);
	if (err)
		failed(tr, tier, err);
	spin_lock_irq(&tier->lock);
	tier->chunks[number].flags &= ~TR_CHUNK_TRIMMING;
	tier->free_shelves++;
	spin_unlock_irq(&tier->lock);
	WRITE_ONCE(tier->trimming_shelf, false);
	trimmed(tr, tier, TERRACE_CHUNK_BLOCKS);
}

/* --- the worker -------------------------------------------------------------------------- */

/* Whether something there became free since it was last looked at. */
static bool take_stale(struct tr_tier *tier, u32 number)
{
	struct tr_chunk_info *info;
	bool stale;

	spin_lock_irq(&tier->lock);
	info = &tier->chunks[number];
	stale = info->flags & TR_CHUNK_STALE;
	if (stale && tier->kind == TERRACE_KIND_SLOTS)
		info->flags &= ~TR_CHUNK_STALE;
	spin_unlock_irq(&tier->lock);
	return stale;
}

static void trim_tier(struct terrace *tr, struct tr_tier *tier)
{
	u32 number;
	bool all;

	WRITE_ONCE(tier->stale, false);		/* what becomes free from here on has it anew */
	for (number = 0; number < tier->nr_chunks && may_go_on(tr) && tr_trimmable(tier); number++) {
		all = number >= READ_ONCE(tier->trim_from);
		if (all || take_stale(tier, number)) {
			if (tier->kind == TERRACE_KIND_SLOTS)
				trim_slots_of(tr, tier, number, all);
			else
				trim_shelf(tr, tier, number);
		}
		/* Unless the message began anew meanwhile. */
		if (all && may_go_on(tr))
			cmpxchg(&tier->trim_from, number, number + 1);
		cond_resched();
	}
	if (!may_go_on(tr))
		WRITE_ONCE(tier->stale, true);	/* goes on after the resume */
}

static void trim_fn(struct work_struct *work)
{
	struct terrace *tr = container_of(to_delayed_work(work), struct terrace, trim_work);
	u32 t;

	for (t = 0; t < tr->nr_tiers; t++)
		if (may_go_on(tr) && wanted(tr, &tr->tier[t]))
			trim_tier(tr, &tr->tier[t]);
}

void tr_trim_kick(struct terrace *tr)
{
	u32 t;

	for (t = 0; t < tr->nr_tiers; t++)
		if (may_go_on(tr) && wanted(tr, &tr->tier[t]))
			queue_delayed_work(tr->meta_wq, &tr->trim_work,
					   msecs_to_jiffies(tr_tune(tr, TR_TUNE_TRIM_MS)));
}

void tr_trim_all(struct terrace *tr)
{
	u32 t;

	for (t = 0; t < tr->nr_tiers; t++)
		WRITE_ONCE(tr->tier[t].trim_from, 0);
	tr_homes_sweep(tr);
	if (tr_writable(tr) && !READ_ONCE(tr->stopping))
		mod_delayed_work(tr->meta_wq, &tr->trim_work, 0);
}

void tr_trim_init(struct terrace *tr)
{
	INIT_DELAYED_WORK(&tr->trim_work, trim_fn);
}
