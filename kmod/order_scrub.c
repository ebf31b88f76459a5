// SPDX-License-Identifier: GPL-2.0
/*
 * SCRUB: is all of a region that lies on slow tiers still readable? What lives in
 * packs is read, its checksums verified, and decoded; so are the packs' headers, and the
 * copies of these. Blocks loose on shelves, or at home, have no checksum: for them it is
 * whether the drive can read them.
 *
 * And of a shelf: is its owner table, which says whose the loose blocks on it are if the
 * map is lost, as it was written? A shelf that is open, or was when the power went, has
 * none, or only parts of one: no damage, its owner blocks serve (shelf.c). So these are looked
 * for, once it is closed, and it is told of those that are not as they were written.
 *
 * Nothing is changed. A block that is moved or written meanwhile is read where it
 * was, which tells as much of the drive. So it can be stopped between two pieces: when it is
 * cancelled; when the volume is about to be suspended, and then begins anew after that; when
 * too many reads have failed, each of which may have taken its drive half a minute.
 *
 * The limit (tunable scrub_mb): a scrub begins when all that those before it have read has had its
 * time, one at a time; until then it waits among the orders that no worker has taken (submit.c). So
 * they are faster than that by a region.
 */
#include <linux/slab.h>

#include "order_state.h"
#include "sense.h"

#define SCAN_BLOCKS	32	/* read at once in search of owner blocks */

struct scrub {
	struct terrace *tr;
	struct tr_order *order;
	struct tr_order_state *s;
	struct tr_order_area *area;
	bool damaged;		/* a pack is, even if each block can be read */
};

static bool goes_on(const struct scrub *scrub)
{
	return !tr_order_stops(scrub->tr, scrub->order) &&
	       !tr_order_gave_up(scrub->tr, scrub->s->failed);
}

u64 tr_scrub_until(struct terrace *tr)
{
	u64 until = READ_ONCE(tr->scrub_until);

	return tr_tune(tr, TR_TUNE_SCRUB_MB) && until > ktime_get_ns() ? until : 0;
}

void tr_scrub_limit_changed(struct terrace *tr)
{
	u32 mb = tr_tune(tr, TR_TUNE_SCRUB_MB);
	u64 now = ktime_get_ns();

	spin_lock(&tr->flight_lock);
	if (mb && tr->scrub_until > now)
		tr->scrub_until = now + mul_u64_u32_div(tr->scrub_until - now, tr->scrub_mb, mb);
	else
		tr->scrub_until = 0;
	tr->scrub_mb = mb;
	spin_unlock(&tr->flight_lock);
	tr_scrubs_may(tr);
}

/* Scrubs may go on when all that they have read has had its time. */
static void spent(struct terrace *tr, const struct terrace_result *result)
{
	u64 bytes = 0;
	u32 t;

	for (t = 0; t < tr->nr_tiers; t++)
		bytes += result->read_bytes[t];
	spin_lock(&tr->flight_lock);
	tr->scrub_mb = tr_tune(tr, TR_TUNE_SCRUB_MB);
	if (tr->scrub_mb)
		WRITE_ONCE(tr->scrub_until, max(tr->scrub_until, ktime_get_ns()) +
					    div_u64(bytes * 1000, tr->scrub_mb));
	spin_unlock(&tr->flight_lock);
}

static void bad_header(struct scrub *scrub, const struct tr_pack_ref *ref, u64 place, int err)
{
	scrub->damaged = true;
	scrub->s->failed += err != -EBADMSG;
	tr_event(scrub->tr, TERRACE_EVENT_BAD_PACK, tr_place_tier(place), ref->region, ref->id);
	DMERR_LIMIT("%s: header of pack %llu of region %llu at tier %u block %llu is bad (%d)",
		    scrub->tr->name, ref->id, ref->region, tr_place_tier(place), tr_place_index(place), err);
}

/* One of the two is enough for reads, if it is not in memory: so each is looked at by itself. */
static void scrub_headers(struct scrub *scrub, const struct tr_pack_ref *ref)
{
	u64 *read = scrub->order->result.read_bytes;
	int err = tr_index_verify(scrub->tr, ref, false);

	read[tr_place_tier(ref->place)] += min_t(u32, ref->blocks, TERRACE_PACK_HEADER_BLOCKS) * TERRACE_BLOCK_BYTES;
	if (err && tr_order_has_pack(scrub->s, ref->id))
		bad_header(scrub, ref, ref->place, err);
	if (ref->index_place == TR_NO_PLACE)
		return;
	err = tr_index_verify(scrub->tr, ref, true);
	read[tr_place_tier(ref->index_place)] += ref->index_blocks * TERRACE_BLOCK_BYTES;
	if (err && tr_order_has_pack(scrub->s, ref->id))
		bad_header(scrub, ref, ref->index_place, err);
}

/* Reads what lives in the pack. */
static void scrub_pack(struct scrub *scrub, const struct tr_pack_ref *ref)
{
	struct terrace_result *result = &scrub->order->result;
	u64 mask[TR_LEAF_WORDS] = {}, lost[TR_LEAF_WORDS] = {};
	u32 i;
	int err;

	for (i = 0; i < BLOCKS; i++)
		if (scrub->s->pack[i] == ref->id)
			tr_bit_set(mask, i);
	if (tr_bits_none(mask))
		return;
	if (!scrub->tr->tier[tr_place_tier(ref->place)].missing)
		scrub_headers(scrub, ref);
	err = tr_order_read_pack(scrub->tr, scrub->s, ref, true, scrub->area, mask, lost, result);
	scrub->damaged |= err;
	if (err == -EINTR)
		scrub->s->failed = ~0u;	/* that is too many */
	if (tr_bits_none(lost))
		return;
	if (result->bad_block == ~0ull)
		result->bad_block = (scrub->order->ask.region << TERRACE_REGION_SHIFT) +
				    find_first_bit((const unsigned long *)lost, BLOCKS);
	result->unreadable += tr_bits_count(lost);
}

/* Blocks [@i, +@n) lie together at @place. */
static void scrub_run(struct scrub *scrub, u64 place, u32 i, u32 n)
{
	struct terrace *tr = scrub->tr;
	struct terrace_result *result = &scrub->order->result;
	u64 first = (scrub->order->ask.region << TERRACE_REGION_SHIFT) + i;
	struct tr_tier *tier = tier_of(tr, place);
	sector_t sector = tier->data_sector + tr_place_index(place) * TERRACE_BLOCK_SECTORS;
	void *buf = scrub->area->data;
	u32 k;

	if (!tier->missing && !tr_rw(tier->bdev, sector, buf, n * TERRACE_BLOCK_BYTES, REQ_OP_READ)) {
		result->read_bytes[tier->number] += n * TERRACE_BLOCK_BYTES;
		return;
	}
	for (k = 0; k < n && goes_on(scrub); k++) {
		if (!tier->missing && !tr_rw(tier->bdev, sector + k * TERRACE_BLOCK_SECTORS, buf,
					     TERRACE_BLOCK_BYTES, REQ_OP_READ)) {
			result->read_bytes[tier->number] += TERRACE_BLOCK_BYTES;
			continue;
		}
		if (result->bad_block == ~0ull)
			result->bad_block = first + k;
		result->unreadable++;
		scrub->s->failed++;
		DMERR_LIMIT("%s: block %llu at tier %u block %llu cannot be read", tr->name, first + k,
			    tier->number, tr_place_index(place) + k);
	}
}

static bool is_slow(struct terrace *tr, u64 place)
{
	return place != TR_NO_PLACE && tier_of(tr, place)->kind != TERRACE_KIND_SLOTS;
}

static void scrub_places(struct scrub *scrub)
{
	const struct tr_order_state *s = scrub->s;
	u32 i, n;

	for (i = 0; i < BLOCKS && goes_on(scrub); i += n) {
		n = 1;
		if (!is_slow(scrub->tr, s->place[i]))
			continue;
		while (i + n < BLOCKS && s->place[i + n] == tr_place_add(s->place[i], n))
			n++;
		scrub_run(scrub, s->place[i], i, n);
	}
}

static u32 tiers_of(struct terrace *tr, const struct tr_order_state *s)
{
	u32 i, k, tiers = 0;

	for (k = 0; k < s->nr_refs; k++)
		tiers |= BIT(tr_place_tier(s->ref[k].place));
	for (i = 0; i < BLOCKS; i++)
		if (is_slow(tr, s->place[i]))
			tiers |= BIT(tr_place_tier(s->place[i]));
	return tiers;
}

int tr_order_scrub(struct terrace *tr, struct tr_order *order, struct tr_order_state *s)
{
	struct terrace_result *result = &order->result;
	struct scrub scrub = { .tr = tr, .order = order, .s = s };
	u32 k, tiers;

	tr_order_snapshot(s);
	result->packs = s->nr_refs;
	tiers = tiers_of(tr, s);
	if (!tiers)
		return 0;
	tr_flight_enter(tr, tiers);
	scrub.area = tr_order_area_get(tr);
	for (k = 0; scrub.area && k < s->nr_refs && goes_on(&scrub); k++) {
		tr_order_idle(tr, order);
		scrub_pack(&scrub, &s->ref[k]);
	}
	if (scrub.area)
		scrub_places(&scrub);
	tr_order_area_put(tr, scrub.area);
	tr_flight_leave(tr, tiers);
	spent(tr, result);
	if (!scrub.area)
		return -ENOMEM;
	if (tr_order_stops(tr, order))
		return tr_order_stopped(order);
	if (result->unreadable)
		DMERR_LIMIT("%s: %u blocks of region %llu cannot be read, the first is %llu", tr->name,
			    result->unreadable, order->ask.region, result->bad_block);
	if (tr_order_gave_up(tr, s->failed))
		return -EINTR;
	return result->unreadable || scrub.damaged ? -EIO : 0;
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

static bool is_closed(struct tr_tier *tier, u32 chunk)
{
	bool closed;

	spin_lock_irq(&tier->lock);
	closed = tier->chunks[chunk].used && !tr_shelf_is_open__f(tier, chunk);
	spin_unlock_irq(&tier->lock);
	return closed;
}

/* Written here, as an owner block? Beside these lie users' data, which may look like one: a copy of
 * another place's, or volume's.
 */
static bool is_ours(struct terrace *tr, const struct terrace_owners_disk *disk, u64 place)
{
	return le64_to_cpu(disk->place) == place &&
	       !memcmp(disk->volume_uuid, tr->super.volume_uuid, TERRACE_UUID_BYTES);
}

static void scrub_owners(struct terrace *tr, struct tr_order *order, struct tr_tier *tier, void *buf)
{
	u64 first = order->ask.region << TERRACE_CHUNK_SHIFT, place;
	u32 at, k, n, end = TERRACE_CHUNK_BLOCKS - TERRACE_TABLE_BLOCKS;
	struct terrace_result *result = &order->result;
	struct tr_unread bad = { };
	struct tr_owners head;

	for (at = 0; at < end && !tr_order_stops(tr, order) && !tr_gave_up_reading(tr, &bad); at += n) {
		n = min_t(u32, SCAN_BLOCKS, end - at);
		tr_order_idle(tr, order);
		tr_flight_enter(tr, BIT(tier->number));
		/* Data that cannot be read are their region's. */
		tr_read_each(tr, tier->bdev, tier->data_sector + (first + at) * TERRACE_BLOCK_SECTORS,
			     buf, n, &bad);
		tr_flight_leave(tr, BIT(tier->number));
		result->read_bytes[tier->number] += n * TERRACE_BLOCK_BYTES;
		for (k = 0; k < n; k++) {
			void *block = buf + k * TERRACE_BLOCK_BYTES;

			place = tr_place(tier->number, first + at + k);
			if (tr_owners_decode(block, &head, place, tr->super.volume_uuid) == -EBADMSG &&
			    is_ours(tr, block, place) && !result->unreadable++)
				result->bad_block = first + at + k;
		}
		tr_give_way();
	}
}

int tr_order_scrub_shelf(struct terrace *tr, struct tr_order *order)
{
	struct tr_tier *tier = &tr->tier[order->ask.tier_down];
	u64 first = ((order->ask.region + 1) << TERRACE_CHUNK_SHIFT) - TERRACE_TABLE_BLOCKS;
	struct terrace_result *result = &order->result;
	void *buf = kvmalloc(SCAN_BLOCKS * TERRACE_BLOCK_BYTES, GFP_NOIO);
	u32 k, absent = 0;

	static_assert(TERRACE_TABLE_OWNERS * sizeof(u64) <= TERRACE_BLOCK_BYTES);
	if (!buf)
		return -ENOMEM;
	tr_flight_enter(tr, BIT(tier->number));
	for (k = 0; k < TERRACE_TABLE_BLOCKS && !tr_order_stops(tr, order); k++) {
		int err = scrub_table_block(tr, tier, first + k, buf, buf + TERRACE_BLOCK_BYTES);

		absent += err == -ENOENT;
		if (err == -EIO && !result->unreadable++)
			result->bad_block = first + k;
	}
	tr_flight_leave(tr, BIT(tier->number));
	result->read_bytes[tier->number] = k * TERRACE_BLOCK_BYTES;
	if (absent && !result->unreadable && is_closed(tier, order->ask.region))
		scrub_owners(tr, order, tier, buf);
	kvfree(buf);
	spent(tr, result);
	if (tr_order_stops(tr, order))
		return tr_order_stopped(order);
	if (!result->unreadable)
		return absent ? -ENOENT : 0;
	DMERR_LIMIT("%s: owner %s of shelf %llu of tier %u: %u blocks are bad, the first is block %llu",
		    tr->name, result->bad_block < first ? "blocks" : "table", order->ask.region,
		    tier->number, result->unreadable, result->bad_block);
	return -EIO;
}
