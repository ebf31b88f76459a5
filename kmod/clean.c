// SPDX-License-Identifier: GPL-2.0
/*
 * Cleaning a shelf: what lives on it is written to the end of the moves' open
 * shelf; it is free when the last of it has gone.
 *
 * Whose blocks lie there? Loose ones (sweep.c) are named by the shelf's owner
 * table or owner blocks, packs say it themselves. Both are hints from an earlier
 * time: what counts is the map, at which each region's move looks.
 */
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "order.h"
#include "packs.h"

#define SCAN_BLOCKS	32		/* read at once in search of packs */

/* --- packs ---------------------------------------------------------------- */

struct found {
	u64 region;
	struct tr_pack_head head;	/* of the first of its packs */
};

static bool is_used(struct tr_tier *tier, const struct tr_chunk *chunk, u32 at)
{
	bool used;

	spin_lock_irq(&tier->lock);
	used = chunk->used[at / 64] >> (at % 64) & 1;
	spin_unlock_irq(&tier->lock);
	return used;
}

/* Is there the header of a pack at @at of the shelf? @buf holds @left blocks. */
static bool header_at(struct terrace *tr, struct tr_tier *tier, u32 chunk, u32 at,
		      const void *buf, u32 left, struct tr_pack_head *head)
{
	struct tr_pack_id id = {
		.volume_uuid = tr->super.volume_uuid,
		.place = tr_place(tier->number, ((u64)chunk << TERRACE_CHUNK_SHIFT) + at),
	};

	return !tr_pack_parse(buf, left * TERRACE_BLOCK_BYTES, &id, head);
}

/* No pack begins with this block, as far as can be seen. But is that sure? It could not be
 * read, or was a header of ours.
 */
static bool may_be_header(struct terrace *tr, const void *buf, bool unread)
{
	const struct terrace_pack_disk *disk = buf;

	return unread || (le32_to_cpu(disk->magic) == TERRACE_PACK_MAGIC &&
			  !memcmp(disk->volume_uuid, tr->super.volume_uuid, TERRACE_UUID_BYTES));
}

static void note(struct found *found, u32 *nr, const struct tr_pack_head *head)
{
	u32 k;

	for (k = 0; k < *nr; k++)
		if (found[k].region == head->region)
			return;
	found[(*nr)++] = (struct found){ .region = head->region, .head = *head };
}

/* The regions that have packs on the shelf from *@next on, which is where it ends, elsewhere than
 * at the @loose blocks. -ENOMEM, or an error of the drive: what could be read was looked at all the
 * same. A bad block may be a dead one, and must not keep what lives around it there; but who
 * asks hears of a block in use that may be a header, and says nothing of whose it is.
 */
static int find_packs(struct terrace *tr, struct tr_tier *tier, u32 chunk, const u64 *loose,
		      struct found *found, u32 max, u32 *nr, u32 *next, struct tr_order *order)
{
	u64 first = (u64)chunk << TERRACE_CHUNK_SHIFT;
	u32 at = *next, from = 0, have = 0;
	struct tr_unread bad = {};
	u32 end = TERRACE_CHUNK_BLOCKS - TERRACE_TABLE_BLOCKS;
	struct tr_chunk *bits = tr_chunk_get(tr, tier, chunk);
	struct tr_pack_head head;
	void *buf;
	int err = 0, r;

	*nr = 0;
	if (IS_ERR(bits))
		return PTR_ERR(bits);
	buf = kvmalloc(SCAN_BLOCKS * TERRACE_BLOCK_BYTES, GFP_NOIO);
	if (!buf) {
		err = -ENOMEM;
		tr_order_leaves(order, err);
	}
	while (buf && at < end && *nr < max && !tr_gave_up_reading(tr, &bad) &&
	       !(order && tr_order_stops(tr, order))) {
		if (loose[at / 64] >> (at % 64) & 1 || !is_used(tier, bits, at)) {
			at++;
			continue;
		}
		if (at < from || at + min(TERRACE_PACK_HEADER_BLOCKS, end - at) > from + have) {
			from = at;
			have = min_t(u32, SCAN_BLOCKS, end - at);
			r = tr_read_each(tr, tier->bdev, tier->data_sector +
					 (first + from) * TERRACE_BLOCK_SECTORS, buf, have, &bad);
			err = err ?: r;
		}
		if (header_at(tr, tier, chunk, at, buf + (at - from) * TERRACE_BLOCK_BYTES,
			      from + have - at, &head)) {
			note(found, nr, &head);
			at += head.blocks;
			continue;
		}
		if (may_be_header(tr, buf + (at - from) * TERRACE_BLOCK_BYTES,
				  bad.which >> (at - from) & 1 || (order && order->unsure)))
			tr_order_leaves(order, -EIO);
		at++;
	}
	if (buf && at < end && *nr < max)	/* what is behind that is not looked at */
		tr_order_leaves(order, -EIO);
	*next = *nr < max ? end : at;
	kvfree(buf);
	tr_chunk_put(bits);
	return err;
}

/* What @one could not read, it could not clean away. */
static void note_bad(struct tr_order *order, const struct tr_order *one)
{
	if (!order || !one->result.unreadable)
		return;
	order->result.unreadable += one->result.unreadable;
	if (order->result.bad_block == ~0ull)
		order->result.bad_block = one->result.bad_block;
}

static bool may_go_on(struct terrace *tr, const struct tr_order *order,
		      const struct tr_unread *bad)
{
	return tr_writable(tr) && !tr_gave_up_reading(tr, bad) && !(order && tr_order_stops(tr, order));
}

static int move_packs_of(struct terrace *tr, struct tr_tier *tier, u32 chunk,
			 const struct found *found, struct tr_order *one)
{
	struct tr_order *batch[1] = { one };

	memset(one, 0, sizeof(*one));
	one->chunk = chunk;
	one->ask = (struct terrace_move){
		.region = found->region, .cookie = 1, .mode = TERRACE_MOVE_MERGE,
		.tier_down = tier->number, .codec = found->head.codec,
		.level = found->head.codec == TERRACE_CODEC_ZSTD ? found->head.level : 0,
		.shift = found->head.shift,
	};
	memset(one->ask.up, 0xff, sizeof(one->ask.up));
	tr_orders_run(tr, batch, 1);
	return one->result.error;
}

/* What lives in these regions' packs on the shelf goes into new ones. */
static s64 move_packs(struct terrace *tr, struct tr_tier *tier, u32 chunk,
		      const struct found *found, u32 nr, struct tr_order *order)
{
	struct tr_order *one = kvmalloc(sizeof(*one), GFP_NOIO);
	int err = 0, r = 0;
	struct tr_unread bad = {};
	u32 k;
	s64 moved = 0;

	if (!one) {
		tr_order_leaves(order, -ENOMEM);
		return -ENOMEM;
	}
	for (k = 0; k < nr && r != -ENOSPC && may_go_on(tr, order, &bad); k++) {
		if (order)
			tr_order_idle(tr, order);
		r = move_packs_of(tr, tier, chunk, &found[k], one);
		note_bad(order, one);
		if (order)
			order->result.raced += one->result.raced;
		if (r == -EIO)
			tr_unread_note(&bad);
		if (r && (!err || err == -ENOENT))
			err = r;
		/* What could not be read it has counted. */
		if (r != -ENOENT && (r != -EIO || !one->result.unreadable))
			tr_order_leaves(order, r);
		if (!r)			/* nothing written: dead packs were dropped */
			moved += one->result.packed_bytes / TERRACE_BLOCK_BYTES ?: 1;
	}
	kvfree(one);
	return moved ?: err;
}

static s64 clean_packs(struct terrace *tr, struct tr_tier *tier, u32 chunk, const u64 *loose,
		       struct tr_order *order)
{
	u32 max = 512, nr, next = 0;
	struct found *found = kvmalloc_array(max, sizeof(*found), GFP_NOIO);
	s64 moved = 0, more = 0;
	int err = 0, r;

	if (!found) {
		tr_order_leaves(order, -ENOMEM);
		return -ENOMEM;
	}
	do {
		r = find_packs(tr, tier, chunk, loose, found, max, &nr, &next, order);
		err = err ?: r;
		if (!nr)
			break;
		more = move_packs(tr, tier, chunk, found, nr, order);
		moved += max_t(s64, more, 0);
		err = min_t(s64, more, 0) ?: err;
	} while (nr == max && more > 0);
	kvfree(found);
	return moved ?: err;
}

static s64 clean_shelf(struct terrace *tr, struct tr_tier *tier, u32 chunk, struct tr_order *order)
{
	s64 moved, packs;
	u64 *loose;
	bool open;
	u32 used;

	spin_lock_irq(&tier->lock);
	open = tr_shelf_is_open__f(tier, chunk);
	used = tier->chunks[chunk].used;
	spin_unlock_irq(&tier->lock);
	if (open)
		return -ETXTBSY;	/* not what passes while one waits: -EBUSY */
	if (!used)
		return -ENOENT;
	loose = kcalloc(TR_CHUNK_WORDS, sizeof(*loose), GFP_NOIO);
	if (!loose)
		return -ENOMEM;
	moved = tr_sweep_shelf(tr, tier, chunk, loose, order);
	packs = clean_packs(tr, tier, chunk, loose, order);
	kfree(loose);
	if (moved > 0 || packs > 0)
		return max_t(s64, moved, 0) + max_t(s64, packs, 0);
	return moved ?: packs;
}

/* Of what lives on the shelf, what its owners name: the rest may be in packs. */
static u32 count_loose(struct terrace *tr, struct tr_tier *tier, u32 chunk)
{
	struct tr_owner *owner = kvmalloc_array(TERRACE_CHUNK_BLOCKS, sizeof(*owner), GFP_NOIO);
	u64 *seen = kcalloc(TR_CHUNK_WORDS, sizeof(*seen), GFP_NOIO);
	struct tr_chunk *bits = tr_chunk_get(tr, tier, chunk);
	u32 loose = 0;
	bool bad;
	int nr = 0, k;

	if (owner && seen && !IS_ERR(bits))
		nr = tr_shelf_owners(tr, tier, chunk, owner, &bad);
	for (k = 0; k < nr; k++) {
		u32 at = owner[k].offset;

		if (at < TERRACE_CHUNK_BLOCKS && is_used(tier, bits, at) &&
		    !(seen[at / 64] >> (at % 64) & 1)) {
			seen[at / 64] |= 1ull << (at % 64);
			loose++;
		}
	}
	if (!IS_ERR(bits))
		tr_chunk_put(bits);
	kfree(seen);
	kvfree(owner);
	return loose;
}

/* What is loose fits to the last block, so it may yet fit. Asked when nothing else is left. */
static bool fits_loose(struct terrace *tr, struct tr_tier *tier, u32 chunk, u32 alive)
{
	u32 room = tr_shelf_room(tier, TR_APPEND_MOVES);

	return tr_shelf_fits(room, alive, 0) &&
	       tr_shelf_fits(room, alive, alive - min(alive, count_loose(tr, tier, chunk)));
}

/*
 * There is always a shelf that can be emptied, if there was one at the start: others
 * than cleaning leave the last free shelf alone, cleaning goes one by one, and begins
 * with none that does not fit the room there is. If it is stopped midway (an order is at
 * work on a region), what is left of that shelf still fits. Over a stop or a crash the open
 * shelf is given up; should no other be free, it is opened again (reopen.c).
 */
s64 tr_clean_shelf(struct terrace *tr, struct tr_tier *tier, u32 chunk, struct tr_order *order)
{
	s64 moved = -ENOSPC;
	u32 alive;

	mutex_lock(&tier->clean_mutex);
	spin_lock_irq(&tier->lock);
	alive = tr_chunk_alive(&tier->chunks[chunk]);
	spin_unlock_irq(&tier->lock);
	if (!tr_shelf_takes(tier, alive))
		tr_shelf_reopen(tr, tier);
	if (tr_shelf_takes(tier, alive) || fits_loose(tr, tier, chunk, alive))
		moved = clean_shelf(tr, tier, chunk, order);
	mutex_unlock(&tier->clean_mutex);
	return moved;
}
