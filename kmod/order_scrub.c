// SPDX-License-Identifier: GPL-2.0
/*
 * SCRUB: is all of a region that lies on slow tiers still readable? What lives in
 * packs is read, its checksums verified, and decoded. Blocks loose on shelves, or at
 * home, have no checksum: for them it is whether the drive can read them.
 *
 * And of a shelf: is its owner table, which says whose the loose blocks on it are if the
 * map is lost, as it was written? A shelf that is open, or was when the power went, has
 * none, or only parts of one: no damage, its owner blocks serve (shelf.c).
 *
 * Nothing is changed. A block that is moved or written meanwhile is read where it
 * was, which tells as much of the drive.
 */
#include <linux/slab.h>

#include "order_state.h"

static void forget_block(void *context, u32 i, const void *data)
{
}

/* Reads what lives in the pack; how many blocks of it cannot be read. */
static u32 scrub_pack(struct terrace *tr, struct tr_order *order, struct tr_order_state *s,
		      const struct tr_pack_ref *ref, struct tr_unpacker *unpacker)
{
	struct terrace_result *result = &order->result;
	u64 mask[TR_LEAF_WORDS] = {};
	u32 i, bad, nr = 0;
	int err;

	for (i = 0; i < BLOCKS; i++)
		if (s->pack[i] == ref->id)
			tr_bit_set(mask, i);
	/* Again and again behind each bad block. */
	while (!tr_bits_none(mask)) {
		err = tr_unpack_drive(tr, ref, mask, unpacker, forget_block, NULL, &bad);
		if (!err)
			break;
		if (err != -ESTALE && !nr++ && !result->unreadable)
			result->bad_block = (s->move.number << TERRACE_REGION_SHIFT) + bad;
		bitmap_clear((unsigned long *)mask, 0, bad + 1);
	}
	result->read_bytes[tr_place_tier(ref->place)] += ref->blocks * TERRACE_BLOCK_BYTES;
	return nr;
}

/* Blocks [@i, +@n) lie together at @place. How many of them cannot be read. */
static u32 scrub_run(struct terrace *tr, struct tr_order *order, u64 place, u32 i, u32 n, void *buf)
{
	struct terrace_result *result = &order->result;
	struct tr_tier *tier = tier_of(tr, place);
	sector_t sector = tier->data_sector + tr_place_index(place) * TERRACE_BLOCK_SECTORS;
	u32 k, bad = 0;

	result->read_bytes[tier->number] += n * TERRACE_BLOCK_BYTES;
	if (!tier->missing && !tr_rw(tier->bdev, sector, buf, n * TERRACE_BLOCK_BYTES, REQ_OP_READ))
		return 0;
	for (k = 0; k < n; k++) {
		if (!tier->missing && !tr_rw(tier->bdev, sector + k * TERRACE_BLOCK_SECTORS, buf,
					     TERRACE_BLOCK_BYTES, REQ_OP_READ))
			continue;
		if (result->bad_block == ~0ull)
			result->bad_block = (order->ask.region << TERRACE_REGION_SHIFT) + i + k;
		DMERR_LIMIT("%s: block %llu at tier %u block %llu cannot be read", tr->name,
			    (order->ask.region << TERRACE_REGION_SHIFT) + i + k, tier->number,
			    tr_place_index(place) + k);
		bad++;
	}
	return bad;
}

static bool is_slow(struct terrace *tr, u64 place)
{
	return place != TR_NO_PLACE && tier_of(tr, place)->kind != TERRACE_KIND_SLOTS;
}

static u32 scrub_places(struct terrace *tr, struct tr_order *order, struct tr_order_state *s)
{
	struct tr_order_area *area;
	u32 i, n, tiers = 0, bad = 0;

	for (i = 0; i < BLOCKS; i++)
		if (is_slow(tr, s->place[i]))
			tiers |= BIT(tr_place_tier(s->place[i]));
	if (!tiers)
		return 0;
	tr_flight_enter(tr, tiers);
	area = tr_order_area_get(tr);
	for (i = 0; area && i < BLOCKS; i += n) {
		n = 1;
		if (!is_slow(tr, s->place[i]))
			continue;
		while (i + n < BLOCKS && s->place[i + n] == tr_place_add(s->place[i], n))
			n++;
		bad += scrub_run(tr, order, s->place[i], i, n, area->data);
	}
	tr_order_area_put(tr, area);
	tr_flight_leave(tr, tiers);
	return bad;
}

int tr_order_scrub(struct terrace *tr, struct tr_order *order, struct tr_order_state *s)
{
	struct terrace_result *result = &order->result;
	struct tr_unpacker *unpacker;
	u32 k, tiers;

	tr_order_snapshot(s);
	result->packs = s->nr_refs;
	for (k = 0; k < s->nr_refs; k++) {
		tiers = BIT(tr_place_tier(s->ref[k].place));
		tr_flight_enter(tr, tiers);
		unpacker = tr_unpacker_get(tr);
		result->unreadable += scrub_pack(tr, order, s, &s->ref[k], unpacker);
		tr_unpacker_put(tr, unpacker);
		tr_flight_leave(tr, tiers);
	}
	result->unreadable += scrub_places(tr, order, s);
	return result->unreadable ? -EIO : 0;
}

/* --- shelves ------------------------------------------------------------------------ */

/* 0: good; -ENOENT: no part of a table; -EIO. */
static int scrub_table_block(struct terrace *tr, struct tr_tier *tier, u64 index, void *buf,
			     u64 *owner)
{
	struct tr_table head;
	int err = tr_rw(tier->bdev, tier->data_sector + index * TERRACE_BLOCK_SECTORS, buf,
			TERRACE_BLOCK_BYTES, REQ_OP_READ);

	if (!err)
		err = tr_table_decode(buf, &head, owner, tr_place(tier->number, index),
				      tr->super.volume_uuid);
	if (err == -ENODATA || err == -ESTALE)
		return -ENOENT;
	return err ? -EIO : 0;
}

int tr_order_scrub_shelf(struct terrace *tr, struct tr_order *order)
{
	struct tr_tier *tier = &tr->tier[order->ask.tier_down];
	u64 first = ((order->ask.region + 1) << TERRACE_CHUNK_SHIFT) - TERRACE_TABLE_BLOCKS;
	struct terrace_result *result = &order->result;
	void *buf = kvmalloc(2 * TERRACE_BLOCK_BYTES, GFP_NOIO);
	u32 k, absent = 0;

	static_assert(TERRACE_TABLE_OWNERS * sizeof(u64) <= TERRACE_BLOCK_BYTES);
	if (!buf)
		return -ENOMEM;
	tr_flight_enter(tr, BIT(tier->number));
	for (k = 0; k < TERRACE_TABLE_BLOCKS; k++) {
		int err = scrub_table_block(tr, tier, first + k, buf, buf + TERRACE_BLOCK_BYTES);

		absent += err == -ENOENT;
		if (err == -EIO && !result->unreadable++)
			result->bad_block = first + k;
	}
	tr_flight_leave(tr, BIT(tier->number));
	kvfree(buf);
	result->read_bytes[tier->number] = TERRACE_TABLE_BLOCKS * TERRACE_BLOCK_BYTES;
	if (!result->unreadable)
		return absent ? -ENOENT : 0;
	DMERR_LIMIT("%s: owner table of shelf %llu of tier %u: %u blocks are bad, the first is block %llu",
		    tr->name, order->ask.region, tier->number, result->unreadable, result->bad_block);
	return -EIO;
}
