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

/* Owners are hints: blocks of region @number that do lie loose on the shelf, or an error. */
static s32 loose_on(struct terrace *tr, u64 number, const struct tr_tier *tier, u32 chunk)
{
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

/*
 * Is there room for one more pack, and then to clean the shelf, with @left blocks in it, to its
 * end? That is sure with a free shelf; so the last one is opened only if what is left here fits
 * into it. @must: no shelf is worth cleaning, and what is packed here is the only room to come.
 */
static bool takes(struct tr_tier *tier, u32 left, bool must)
{
	u32 fresh = TERRACE_CHUNK_BLOCKS - TERRACE_TABLE_BLOCKS;
	u32 room = tr_shelf_room(tier, TR_APPEND_MOVES), free = READ_ONCE(tier->free_shelves);

	fresh -= fresh / TERRACE_OWNERS_PER_BLOCK + tier->unit;
	if (must)
		return free || room > left + left / TERRACE_OWNERS_PER_BLOCK;
	return free > 1 || tr_shelf_fits(room, left) ||
	       (free && (tr_shelf_fits(fresh, left) ||
			 room >= TERRACE_REGION_BLOCKS + TERRACE_PACK_HEADER_BLOCKS + 2 * tier->unit));
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

struct packing {
	s64 moved;		/* blocks */
	u32 refused;		/* blocks of regions that do not compress */
	int err;		/* the first of those that say nothing of what lies there */
};

/* Not before most of the shelf is: what compresses may be what comes last, by region. */
static bool is_noise(const struct packing *p, u32 alive)
{
	return p->refused > alive / 2;
}

/* -ENOSPC: no room for more. */
static int pack_next(struct terrace *tr, struct tr_tier *tier, u32 chunk, u64 number,
		     struct tr_order *order, struct packing *p)
{
	s32 loose = loose_on(tr, number, tier, chunk);
	int err = 0;

	if (loose >= LEAST)
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

/* By region; @alive blocks live on the shelf. 0: there is nothing that could be packed. */
static s64 pack_regions(struct terrace *tr, struct tr_tier *tier, u32 chunk,
			const struct tr_owner *owner, u32 nr, u32 alive, bool must)
{
	struct tr_order *order = kvmalloc(sizeof(*order), GFP_NOIO);
	struct packing p = { .err = order ? 0 : -ENOMEM };
	int err = 0;
	u32 k, end;

	for (k = 0; order && k < nr && !is_noise(&p, alive) && err != -ENOSPC; k = end) {
		if (!tr_writable(tr) || READ_ONCE(tr->stopping)) {
			p.err = p.err ?: -EINTR;
			break;
		}
		for (end = k + 1; end < nr && region_of(&owner[end]) == region_of(&owner[k]); end++)
			;
		if (end - k < LEAST)
			continue;
		err = -ENOSPC;
		if (takes(tier, alive - min_t(s64, alive, p.moved), must))
			err = pack_next(tr, tier, chunk, region_of(&owner[k]), order, &p);
	}
	kvfree(order);
	if (err == -ENOSPC)
		p.err = p.err ?: err;
	return p.moved ?: p.err;
}

static s64 pack_shelf(struct terrace *tr, struct tr_tier *tier, u32 chunk, u32 alive, bool must)
{
	struct tr_owner *owner = kvmalloc_array(TERRACE_CHUNK_BLOCKS, sizeof(*owner), GFP_NOIO);
	s64 moved = -ENOMEM;
	bool bad;
	int nr;

	if (!owner)
		return moved;
	nr = tr_shelf_owners(tr, tier, chunk, owner, &bad);
	if (nr > 0)
		sort(owner, nr, sizeof(*owner), by_block, NULL);
	moved = nr > 0 ? pack_regions(tr, tier, chunk, owner, nr, alive, must) : nr;
	/* Whom the rest belongs to may be read another time. */
	if (!moved && bad)
		moved = -EIO;
	kvfree(owner);
	return moved;
}

s64 tr_pack_shelf(struct terrace *tr, struct tr_tier *tier, u32 chunk, bool must)
{
	s64 moved = -ENOSPC;
	u32 alive;
	bool open;

	mutex_lock(&tier->clean_mutex);
	spin_lock_irq(&tier->lock);
	open = tr_shelf_is_open__f(tier, chunk);
	alive = tr_chunk_alive(&tier->chunks[chunk]);
	spin_unlock_irq(&tier->lock);
	if (open)
		moved = -ETXTBSY;
	else if (takes(tier, alive, must))
		moved = pack_shelf(tr, tier, chunk, alive, must);
	mutex_unlock(&tier->clean_mutex);
	return moved;
}
