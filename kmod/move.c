// SPDX-License-Identifier: GPL-2.0
/*
 * Moving blocks of a region to an append stream, while they are in use.
 *
 *   1. begin     pin the regions, set MOVING; one grace period for the batch:
 *                after it every writer sees the flag, and marks what it
 *                writes before it submits
 *   2. snapshot  note which blocks lie where
 *   3. read      all of them
 *   4. write     to fresh places at the end of the target's open shelf
 *   5. commit    under the region's lock, publish those that nobody marked and
 *                that still lie where they were read; give the others' fresh
 *                places back
 *   6. end       clear MOVING
 *
 * A crash or an error before 5 leaves the old places, the next commit after 5
 * makes the new ones durable; until that commit and a grace period have
 * passed the old ones are not reused. A write that ended before 1 is in what
 * 3 reads; one that was mapped before 1 ended in the grace period; one mapped
 * after 1 is marked. So no write is lost.
 *
 * 2 and 5 take the lock for a slice of blocks at a time, which is a piece or
 * some: a whole region would keep interrupts off, and whoever wants this CPU
 * waiting, for a millisecond. Each block is compared and published under one
 * lock; each piece takes its places, and is published, as a whole, which is
 * what the shelf keeps room for owner blocks by.
 */
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "packs.h"
#include "sense.h"

#define SLICE	32		/* blocks looked at under one lock */
#define GENTLE	8		/* blocks of a piece; blocks read from slots at once */
#define WRITTEN	4		/* blocks in one bio to the target */
#define PLACES_AT_ONCE 16	/* taken without a pause */

struct piece {			/* blocks that lie together, before and after */
	u16 i, n;
	u64 old;		/* place */
	u64 index;		/* at the target; n blocks */
	u32 at;			/* in the buffer, blocks */
	bool got;
};

struct work_area {
	struct piece piece[TERRACE_REGION_BLOCKS];
	u32 nr_pieces, nr_blocks;
	void *data;
};

int tr_move_begin(struct terrace *tr, struct tr_move *move)
{
	struct tr_region *region = tr_region_get(tr, move->number, false);
	unsigned long flags;

	move->region = NULL;
	move->moved = 0;
	move->left_out = 0;
	memset(move->raced, 0, sizeof(move->raced));
	tr_ranges_mask(tr, move->number, BIT(TERRACE_RANGE_PIN_FAST), move->stay);
	if (IS_ERR_OR_NULL(region))
		return region ? PTR_ERR(region) : -ENOENT;
	spin_lock_irqsave(&region->lock, flags);
	if (region->flags & TR_REGION_MOVING) {
		spin_unlock_irqrestore(&region->lock, flags);
		tr_region_put(region);
		return -EBUSY;
	}
	region->flags |= TR_REGION_MOVING;
	region->move = move;
	spin_unlock_irqrestore(&region->lock, flags);
	move->region = region;
	return 0;
}

void tr_move_end(struct terrace *tr, struct tr_move *move)
{
	struct tr_region *region = move->region;
	unsigned long flags;

	if (!region)
		return;
	spin_lock_irqsave(&region->lock, flags);
	region->flags &= ~TR_REGION_MOVING;
	region->move = NULL;
	tr_summary_touch(tr, region->number);
	spin_unlock_irqrestore(&region->lock, flags);
	tr_region_put(region);
	move->region = NULL;
}

static bool wanted(const struct tr_move *move, u64 place)
{
	return place != TR_NO_PLACE && tr_place_tier(place) == move->from;
}

/* Is block @i pinned where it is? Lowers *@n to those that share its answer. */
static bool stays(const struct tr_move *move, u32 i, u32 *n)
{
	bool stay = move->stay[i / 64] >> (i % 64) & 1;
	u32 k = 1;

	while (k < *n && (move->stay[(i + k) / 64] >> ((i + k) % 64) & 1) == stay)
		k++;
	*n = k;
	return stay;
}

/* Notes what lies from block @i on, up to @end; how far it got. */
static u32 snapshot_run__f(struct tr_move *move, struct work_area *area, u32 i, u32 end)
{
	u64 place;
	u32 n;

	for (; i < end; i += n) {
		n = tr_leaf_run(&move->region->leaf, i, min_t(u32, end - i, GENTLE), &place);
		if (stays(move, i, &n) || !wanted(move, place))
			continue;
		area->piece[area->nr_pieces++] = (struct piece){
			.i = i, .n = n, .old = place, .at = area->nr_blocks,
		};
		area->nr_blocks += n;
	}
	return i;
}

/* What changes meanwhile is marked, or lies elsewhere when it is published. */
static void snapshot(struct tr_move *move, struct work_area *area)
{
	struct tr_region *region = move->region;
	unsigned long flags;
	u32 i;

	area->nr_pieces = 0;
	area->nr_blocks = 0;
	for (i = 0; i < TERRACE_REGION_BLOCKS;) {
		spin_lock_irqsave(&region->lock, flags);
		i = snapshot_run__f(move, area, i, i + SLICE);
		spin_unlock_irqrestore(&region->lock, flags);
		tr_give_way();
	}
}

static void *buffer_of(const struct work_area *area, const struct piece *piece)
{
	return area->data + piece->at * TERRACE_BLOCK_BYTES;
}

/* Reads pieces from @k on, of @max blocks in all; *@next: the first that is not. */
static int read_some(const struct tr_tier *tier, struct work_area *area, u32 k, u32 max, u32 *next)
{
	struct tr_burst burst;
	u32 nr = 0;

	tr_burst_begin(&burst);
	for (; k < area->nr_pieces && nr < max; k = *next) {
		u64 old = area->piece[k].old;
		u32 n = 0;

		for (*next = k; *next < area->nr_pieces && nr + n < max &&
				area->piece[*next].old == tr_place_add(old, n); ++*next)
			n += area->piece[*next].n;
		tr_burst_rw(&burst, tier->bdev,
			    tier->data_sector + tr_place_index(old) * TERRACE_BLOCK_SECTORS,
			    buffer_of(area, &area->piece[k]), n * TERRACE_BLOCK_BYTES, REQ_OP_READ);
		nr += n;
	}
	return tr_burst_wait(&burst);
}

/*
 * A tier of slots is read little by little: what is hot is read there at the
 * same time, and would wait for a whole region to pass. A disk is asked for
 * all at once, so that it can sort.
 */
static int read_pieces(struct terrace *tr, const struct tr_move *move, struct work_area *area)
{
	const struct tr_tier *tier = &tr->tier[move->from];
	u32 max = tier->kind == TERRACE_KIND_SLOTS ? GENTLE : TERRACE_REGION_BLOCKS;
	u32 k, next;
	int err = 0;

	for (k = 0; k < area->nr_pieces && !err; k = next)
		err = read_some(tier, area, k, max, &next);
	return err;
}

/* Splits piece @k behind its first @n blocks. */
static void split_piece(struct work_area *area, u32 k, u32 n)
{
	struct piece *piece = &area->piece[k];

	memmove(piece + 2, piece + 1, (area->nr_pieces - k - 1) * sizeof(*piece));
	area->nr_pieces++;
	piece[1] = (struct piece){
		.i = piece->i + n, .n = piece->n - n,
		.old = tr_place_add(piece->old, n), .at = piece->at + n,
	};
	piece->n = n;
}

/* Fresh places, one after the other. */
static int get_places(struct terrace *tr, const struct tr_move *move, struct work_area *area)
{
	struct tr_tier *tier = &tr->tier[move->to];
	u32 k, got, tries;
	int err = 0;

	for (k = 0; k < area->nr_pieces; k++) {
		struct piece *piece = &area->piece[k];

		for (got = 0, tries = 0; !got && !err && tries < 2; tries++) {
			got = tr_shelf_get(tr, tier, move->who, piece->n, &piece->index);
			err = got ? 0 : tr_shelf_open_for(tr, tier, move->who);
		}
		if (!got)
			return err ?: -ENOSPC;
		if (got < piece->n)
			split_piece(area, k, got);
		piece->got = true;
		if (k % PLACES_AT_ONCE == PLACES_AT_ONCE - 1)
			tr_give_way();
	}
	return 0;
}

/* In bios of moderate size, for they are prepared with nobody else on this CPU. */
static int write_pieces(struct terrace *tr, const struct tr_move *move, struct work_area *area)
{
	struct tr_tier *tier = &tr->tier[move->to];
	struct tr_burst burst;
	struct blk_plug plug;
	u32 k, next, n;
	u64 pad;
	int err;

	tr_burst_begin(&burst);
	blk_start_plug(&plug);		/* a drive with a queue puts them together again */
	for (k = 0; k < area->nr_pieces; k = next) {
		u64 index = area->piece[k].index;

		for (next = k, n = 0; next < area->nr_pieces && n < WRITTEN &&
			       area->piece[next].index == index + n; next++)
			n += area->piece[next].n;
		tr_burst_rw(&burst, tier->bdev, tier->data_sector + index * TERRACE_BLOCK_SECTORS,
			    buffer_of(area, &area->piece[k]), n * TERRACE_BLOCK_BYTES, REQ_OP_WRITE);
		tr_give_way();
	}
	n = tr_shelf_pad(tier, move->who, &pad);	/* a flush comes next */
	if (n)
		tr_burst_rw(&burst, tier->bdev, tier->data_sector + pad * TERRACE_BLOCK_SECTORS,
			    tr->zeros, n * TERRACE_BLOCK_BYTES, REQ_OP_WRITE);
	blk_finish_plug(&plug);
	err = tr_burst_wait(&burst);
	WRITE_ONCE(tier->unflushed, true);	/* before the records are published */
	return err;
}

/* Of @n blocks from @i on: how many of the first may (or may not) be published. */
static u32 same_fate(const struct tr_move *move, u32 i, u32 n, u64 old, bool *keep)
{
	u32 k;

	for (k = 0; k < n; k++) {
		bool ok = !(move->raced[(i + k) / 64] >> ((i + k) % 64) & 1) &&
			  tr_leaf_get(&move->region->leaf, i + k) == tr_place_add(old, k);

		if (!k)
			*keep = ok;
		else if (ok != *keep)
			break;
	}
	return k;
}

u32 tr_move_publish__f(struct terrace *tr, struct tr_move *move, u32 i, u32 n, u64 old, u64 index)
{
	struct tr_tier *tier = &tr->tier[move->to];
	struct tr_region *region = move->region;
	u32 k, m, used = 0;
	bool keep = false;

	lockdep_assert_held(&region->lock);
	for (k = 0; k < n; k += m) {
		bool last;

		m = same_fate(move, i + k, n - k, tr_place_add(old, k), &keep);
		last = k + m == n;
		if (!keep) {
			tr_shelf_abandoned(tr, tier, index + k, m, last);
			move->left_out += m;
			continue;
		}
		tr_shelf_published(tr, tier, index + k,
				   (region->number << TERRACE_REGION_SHIFT) + i + k, m, last);
		used += tr_region_map__f(tr, region, i + k, m, tr_place(move->to, index + k));
		move->moved += m;
	}
	return used;
}

static u32 publish_pieces(struct terrace *tr, struct tr_move *move, struct work_area *area)
{
	struct tr_region *region = move->region;
	unsigned long flags;
	u32 k, used = 0;

	for (k = 0; k < area->nr_pieces; k++) {
		spin_lock_irqsave(&region->lock, flags);
		used += tr_move_publish__f(tr, move, area->piece[k].i, area->piece[k].n,
					   area->piece[k].old, area->piece[k].index);
		spin_unlock_irqrestore(&region->lock, flags);
		tr_give_way();
	}
	return used;
}

static int commit_pieces(struct terrace *tr, struct tr_move *move, struct work_area *area)
{
	u32 credits = area->nr_blocks, used;
	int err;

	if (tr->high_places)
		tr_region_grow(tr, move->region, 0, true);
	err = tr_journal_reserve_wait(tr, credits);
	if (err)
		return err;
	used = publish_pieces(tr, move, area);
	tr_journal_unreserve(tr, credits - used);
	return 0;
}

static void give_places_back(struct terrace *tr, const struct tr_move *move, struct work_area *area)
{
	u32 k;

	for (k = 0; k < area->nr_pieces; k++)
		if (area->piece[k].got)
			tr_shelf_abandoned(tr, &tr->tier[move->to], area->piece[k].index,
					   area->piece[k].n, true);
}

static bool droppable(const struct tr_move *move, u64 place)
{
	return move->drop_only ? place != TR_NO_PLACE : wanted(move, place);
}

/* Packs in which nothing lives, and copies of indexes: the packs have the originals. Credits used. */
static u32 drop_packs__f(struct terrace *tr, struct tr_move *move)
{
	struct tr_packs *packs = tr_region_packs(move->region);
	u32 k, nr = packs->nr, used = tr_packs_drop_dead__f(tr, move->region);

	move->moved += nr - packs->nr;
	for (k = 0; k < packs->nr; k++) {
		if (packs->pack[k].index_place == TR_NO_PLACE)
			continue;
		move->moved += packs->pack[k].index_blocks;
		used += tr_pack_drop_copy__f(tr, move->region, &packs->pack[k]);
	}
	return used;
}

/* A clean slot goes without being moved: its pack has the block. Unless the pack's
 * tier is missing: then it is the only copy that can be read, and is moved. A pin
 * keeps it, unless a writer would have to be refused for it.
 */
static void drop_clean(struct terrace *tr, struct tr_move *move)
{
	struct tr_region *region = move->region;
	u32 i, n, used = 0, credits = TERRACE_REGION_BLOCKS + 3 * TERRACE_PACK_SLOTS;
	struct tr_pack_ref ref;
	unsigned long flags;
	bool packs;
	u64 place;

	rcu_read_lock();
	packs = tr_region_packs(region);
	rcu_read_unlock();
	if (!packs || tr_journal_reserve_wait(tr, credits))
		return;
	spin_lock_irqsave(&region->lock, flags);
	for (i = 0; i < TERRACE_REGION_BLOCKS; i += n) {
		n = tr_leaf_run(&region->leaf, i, TERRACE_REGION_BLOCKS - i, &place);
		n = tr_region_find_pack(region, i, n, &ref);
		if ((!move->drop_only && stays(move, i, &n)) || !ref.id || !droppable(move, place) ||
		    tr->tier[tr_place_tier(ref.place)].missing)
			continue;
		used += tr_packed__f(tr, region, ref.id, i, n);
		move->moved += n;
	}
	if (move->drop_only)
		used += drop_packs__f(tr, move);
	spin_unlock_irqrestore(&region->lock, flags);
	tr_journal_unreserve(tr, credits - used);
}

static void move_one(struct terrace *tr, struct tr_move *move, struct work_area *area)
{
	drop_clean(tr, move);
	if (move->drop_only)
		return;
	snapshot(move, area);
	if (!area->nr_blocks)
		return;
	move->err = read_pieces(tr, move, area);
	if (!move->err) {
		move->err = get_places(tr, move, area);
		if (!move->err)
			move->err = write_pieces(tr, move, area);
		/* What is moved was durable, so it must be so at its new place,
		 * even if that drive should fail its next flushes.
		 */
		if (!move->err)
			move->err = tr_tier_flush(tr, &tr->tier[move->to]);
		if (!move->err)
			move->err = commit_pieces(tr, move, area);
		if (move->err)
			give_places_back(tr, move, area);
	}
	this_cpu_add(tr->stats->moved, move->moved);
	this_cpu_add(tr->stats->left_out, move->left_out);
}

static void area_free(struct work_area *area)
{
	if (!area)
		return;
	kvfree(area->data);
	kvfree(area);
}

/*
 * The last one is kept: a region's worth of memory, cleared by the allocator
 * (init_on_alloc) for each region, would cost more than what is done with it,
 * and half a millisecond in which nobody else gets this CPU.
 */
static struct work_area *area_get(struct terrace *tr)
{
	struct work_area *area = xchg(&tr->move_area, NULL);

	if (area)
		return area;
	area = kvzalloc(sizeof(*area), GFP_NOIO);
	if (area)
		area->data = __vmalloc(TERRACE_REGION_BLOCKS * TERRACE_BLOCK_BYTES, GFP_NOIO);
	if (area && area->data)
		return area;
	area_free(area);
	return NULL;
}

static void area_put(struct terrace *tr, struct work_area *area)
{
	area_free(xchg(&tr->move_area, area));
}

void tr_moves_forget(struct terrace *tr)
{
	area_free(xchg(&tr->move_area, NULL));
}

void tr_moves_run(struct terrace *tr, struct tr_move *move, u32 nr)
{
	bool copies = !move->drop_only;		/* all of a batch do the same */
	struct work_area *area = copies ? area_get(tr) : NULL;
	u32 k;

	tr_reserve_wait(tr);		/* while none of them is pinned */
	for (k = 0; k < nr; k++)
		move[k].err = area || !copies ? tr_move_begin(tr, &move[k]) : -ENOMEM;
	if (copies && !area)
		return;
	tr_epoch_wait(tr, BIT(tr->nr_tiers) - 1);
	for (k = 0; k < nr; k++) {
		tr_work_gently(tr);
		if (!move[k].err)
			move_one(tr, &move[k], area);
		trace_terrace_move(tr_dev(tr), move[k].number, 0, move[k].err, move[k].moved, 0, 0,
				   move[k].left_out);
		tr_move_end(tr, &move[k]);
	}
	if (area)
		area_put(tr, area);
}
