// SPDX-License-Identifier: GPL-2.0
/*
 * Packing what lies loose on a shelf, for a volume that is larger than its drives.
 *
 * Its writers overflow to the shelves as they are, and without a daemon nobody would ever
 * make that less: shelves full of loose blocks that all live are not worth cleaning. So the
 * janitor packs them, shelf by shelf: it is known beforehand that what the shelf holds finds
 * room, and what the packs have taken over leaves a shelf that is worth cleaning. Region by
 * region over the whole tier, packs could use up the last free shelf and leave a few dead
 * blocks in each of the others.
 *
 * Only blocks that were never packed are: no block twice, so there is an end to it.
 */
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/vmalloc.h>

#include "core/geometry.h"
#include "order.h"

#define LEAST		16	/* loose blocks of a region that are worth a pack's header */
#define GAIN_LEAST	128	/* blocks, for which the last free shelf is opened */

bool tr_overcommitted(const struct terrace *tr)
{
	return READ_ONCE(tr->virtual_blocks) > tr_room(&tr->super);
}

static int by_block(const void *a, const void *b)
{
	const struct tr_owner *x = a, *y = b;

	return x->block == y->block ? 0 : x->block < y->block ? -1 : 1;
}

static u64 region_of(const struct tr_owner *owner)
{
	return owner->block >> TERRACE_REGION_SHIFT;
}

/*
 * Owners are hints: blocks of region @number that do lie loose on the shelf, or an error.
 * *@merges: it has as many packs as can be, which go into the new one.
 */
static s32 loose_on(struct terrace *tr, u64 number, const struct tr_tier *tier, u32 chunk,
		    bool *merges)
{
	const struct tr_packs *packs;
	struct tr_region *region;
	unsigned long flags;
	u32 i, n, count = 0;
	u64 place;

	if (number >= tr_nr_regions(tr))
		return 0;
	tr_reserve_wait(tr);
	region = tr_region_get(tr, number, false);
	if (IS_ERR_OR_NULL(region))
		return region ? PTR_ERR(region) : 0;
	spin_lock_irqsave(&region->lock, flags);
	packs = tr_region_packs(region);
	*merges = packs && packs->nr >= TERRACE_MAX_PACKS;
	for (i = 0; i < TERRACE_REGION_BLOCKS; i += n) {
		n = tr_leaf_run(&region->leaf, i, TERRACE_REGION_BLOCKS - i, &place);
		if (place != TR_NO_PLACE && tr_place_tier(place) == tier->number &&
		    tr_place_index(place) >> TERRACE_CHUNK_SHIFT == chunk)
			count += n;
	}
	spin_unlock_irqrestore(&region->lock, flags);
	tr_region_put(region);
	return count;
}

struct packing {
	s64 moved;		/* blocks */
	u32 refused;		/* blocks of regions that do not compress */
	u32 alive, packed;	/* blocks on the shelf when it began, and of these in packs, at most */
	u32 packable;		/* blocks in regions that were not tried yet */
	bool must;		/* no shelf is worth cleaning: what is packed is the only room to come */
	int err;		/* the first of those that say nothing of what lies there */
};

/* What is left on the shelf. */
static u32 left_of(const struct packing *p)
{
	return p->alive - min_t(s64, p->alive, p->moved);
}

static u32 largest_pack(const struct tr_tier *tier)
{
	return TERRACE_REGION_BLOCKS + TERRACE_PACK_HEADER_BLOCKS + 2 * tier->unit;
}

/*
 * Is there room for one more pack, which takes @more blocks beside what it takes over, and then
 * to clean the shelf to its end? That is sure with a free shelf; so the last one is opened
 * only if what is left here fits into it. If it must be packed that is what will be left, should
 * packs halve what can be packed.
 */
static bool takes(struct tr_tier *tier, const struct packing *p, u32 more)
{
	u32 fresh = TERRACE_CHUNK_BLOCKS - TERRACE_TABLE_BLOCKS, left = left_of(p) + more;
	u32 room = tr_shelf_room(tier, TR_APPEND_MOVES), free = READ_ONCE(tier->free_shelves);

	fresh -= fresh / TERRACE_OWNERS_PER_BLOCK + tier->unit;
	if (free > 1)
		return true;
	if (p->must) {
		left -= min(left, p->packable / 2);
		return tr_shelf_fits(room, left, p->packed) ||
		       (free && (tr_shelf_fits(fresh, left + GAIN_LEAST, p->packed) ||
				 room >= largest_pack(tier)));
	}
	return tr_shelf_fits(room, left, left) ||
	       (free && (tr_shelf_fits(fresh, left, left) || room >= largest_pack(tier)));
}

static int pack_region(struct terrace *tr, struct tr_tier *tier, u32 chunk, u64 number,
		       struct tr_order *order)
{
	struct tr_order *one[1] = { order };

	memset(order, 0, sizeof(*order));
	order->chunk = chunk;
	order->loose = true;
	order->ask = (struct terrace_move){
		.region = number, .cookie = 1, .mode = TERRACE_MOVE_MERGE,
		.tier_down = tier->number, .codec = TERRACE_CODEC_LZ4,
	};
	memset(order->ask.up, 0xff, sizeof(order->ask.up));
	tr_orders_run(tr, one, 1);
	return order->result.error;
}

/* Not before most of the shelf is: what compresses may be what comes last, by region. */
static bool is_noise(const struct packing *p)
{
	return p->refused > p->alive / 2;
}

/* -ENOSPC: no room for more. */
static int pack_next(struct terrace *tr, struct tr_tier *tier, u32 chunk, u64 number,
		     struct tr_order *order, struct packing *p)
{
	bool merges = false;
	s32 loose = loose_on(tr, number, tier, chunk, &merges);
	int err = 0;

	if (loose >= LEAST && !takes(tier, p, merges ? largest_pack(tier) : 0))
		err = -ENOSPC;
	else if (loose >= LEAST)
		err = pack_region(tr, tier, chunk, number, order);
	else if (loose < 0)
		err = loose;
	if (err == -E2BIG)
		p->refused += loose;
	else if (err && err != -ENOENT && err != -ENOSPC)
		p->err = p->err ?: err;
	else if (!err && loose >= LEAST)
		p->moved += min_t(u32, order->result.down, loose);
	return err;
}

/* The blocks of the region that begins at @owner. */
static u32 of_region(const struct tr_owner *owner, u32 nr)
{
	u32 k;

	for (k = 1; k < nr && region_of(&owner[k]) == region_of(owner); k++)
		;
	return k;
}

static u32 packable(const struct tr_owner *owner, u32 nr)
{
	u32 k, n, sum = 0;

	for (k = 0; k < nr; k += n) {
		n = of_region(&owner[k], nr - k);
		sum += n >= LEAST ? n : 0;
	}
	return sum;
}

/* By region. 0: there is nothing that could be packed; -EAGAIN: not now. */
static s64 pack_regions(struct terrace *tr, struct tr_tier *tier, u32 chunk,
			const struct tr_owner *owner, u32 nr, struct packing *p)
{
	struct tr_order *order = kvmalloc(sizeof(*order), GFP_NOIO);
	bool begin;
	int err = 0;
	u32 k, n;

	p->packed = p->alive - min(p->alive, nr);
	p->packable = packable(owner, nr);
	begin = order && (!p->packable || takes(tier, p, 0));
	if (!begin)
		p->err = order ? -EAGAIN : -ENOMEM;	/* another may have more to pack */
	for (k = 0; begin && k < nr && !is_noise(p) && err != -ENOSPC; k += n) {
		if (!tr_writable(tr) || READ_ONCE(tr->stopping)) {
			p->err = p->err ?: -EINTR;
			break;
		}
		n = of_region(&owner[k], nr - k);
		if (n < LEAST)
			continue;
		err = pack_next(tr, tier, chunk, region_of(&owner[k]), order, p);
		p->packable -= n;
	}
	kvfree(order);
	if (err == -ENOSPC)
		p->err = p->err ?: err;
	return p->moved ?: p->err;
}

/* Leaves the owners of what is used. */
static u32 sift(const struct tr_chunk *bits, struct tr_owner *owner, u32 nr)
{
	u32 k, out = 0;

	for (k = 0; k < nr; k++)
		if (owner[k].offset < TERRACE_CHUNK_BLOCKS &&
		    READ_ONCE(bits->used[owner[k].offset / 64]) >> (owner[k].offset % 64) & 1)
			owner[out++] = owner[k];
	return out;
}

static s64 pack_shelf(struct terrace *tr, struct tr_tier *tier, u32 chunk, struct packing *p)
{
	struct tr_owner *owner = kvmalloc_array(TERRACE_CHUNK_BLOCKS, sizeof(*owner), GFP_NOIO);
	struct tr_chunk *bits = owner ? tr_chunk_get(tr, tier, chunk) : ERR_PTR(-ENOMEM);
	s64 moved = PTR_ERR_OR_ZERO(bits);
	bool bad = false;
	int nr;

	if (!moved) {
		nr = tr_shelf_owners(tr, tier, chunk, owner, &bad);
		if (nr > 0)
			nr = sift(bits, owner, nr);
		tr_chunk_put(bits);
		if (nr > 0)
			sort(owner, nr, sizeof(*owner), by_block, NULL);
		moved = nr > 0 ? pack_regions(tr, tier, chunk, owner, nr, p) : nr;
		/* Whom the rest belongs to may be read another time. */
		if (!moved && bad)
			moved = -EIO;
	}
	kvfree(owner);
	return moved;
}

s64 tr_pack_shelf(struct terrace *tr, struct tr_tier *tier, u32 chunk, bool must)
{
	struct packing p = { .must = must };
	s64 moved = -ENOSPC;
	bool open;

	mutex_lock(&tier->clean_mutex);
	spin_lock_irq(&tier->lock);
	open = tr_shelf_is_open__f(tier, chunk);
	p.alive = tr_chunk_alive(&tier->chunks[chunk]);
	spin_unlock_irq(&tier->lock);
	p.packable = p.alive;
	if (open)
		moved = -ETXTBSY;
	else if (takes(tier, &p, 0))
		moved = pack_shelf(tr, tier, chunk, &p);
	mutex_unlock(&tier->clean_mutex);
	return moved;
}
