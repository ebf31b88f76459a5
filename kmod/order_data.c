// SPDX-License-Identifier: GPL-2.0
/*
 * What an order reads and writes before its commit: blocks at places and in
 * packs, the new pack with the copy of its index, fresh places further up.
 * Nothing here changes the map, so an error needs nothing undone but places.
 */
#include <linux/slab.h>

#include "order_state.h"

/* --- reading ------------------------------------------------------------------------ */

static void *data_of(const struct tr_order_area *area, u32 i)
{
	return area->data + i * TERRACE_BLOCK_BYTES;
}

/* Is it to be read from its place? */
static bool to_read(const struct tr_order_state *s, u32 i)
{
	return (tr_bit(s->into, i) || tr_bit(s->up, i)) && !tr_bit(s->had, i) && !s->pack[i] &&
	       s->place[i] != TR_NO_PLACE;
}

/* How many blocks from @i on lie one after the other, @most at most. */
static u32 read_run(const struct tr_order_state *s, u32 i, u32 most)
{
	u32 n = 1;

	while (n < most && i + n < BLOCKS && to_read(s, i + n) &&
	       s->place[i + n] == tr_place_add(s->place[i], n))
		n++;
	return n;
}

/* Blocks at places that are to be read, on slots or on all other tiers, in runs. */
static int read_tiers(struct terrace *tr, struct tr_order_state *s, struct tr_order_area *area,
		      bool slots, struct terrace_result *result)
{
	struct tr_burst burst;
	u32 i, n, nr = 0;
	int err = 0;

	tr_burst_begin(&burst);
	for (i = tr_order_next(s, 0); i < BLOCKS && !err; i = tr_order_next(s, i + n)) {
		struct tr_tier *tier;

		n = 1;
		if (!to_read(s, i))
			continue;
		tier = tier_of(tr, s->place[i]);
		if ((tier->kind == TERRACE_KIND_SLOTS) != slots)
			continue;
		n = read_run(s, i, slots ? TR_GENTLE_BLOCKS : BLOCKS);
		result->read_bytes[tier->number] += n * TERRACE_BLOCK_BYTES;
		tr_burst_rw(&burst, tier->bdev, tier->data_sector +
			    tr_place_index(s->place[i]) * TERRACE_BLOCK_SECTORS,
			    data_of(area, i), n * TERRACE_BLOCK_BYTES, REQ_OP_READ);
		nr += n;
		if (slots && nr >= TR_GENTLE_BLOCKS) {
			err = tr_burst_wait(&burst);
			tr_burst_begin(&burst);
			nr = 0;
		}
	}
	return tr_burst_wait(&burst) ?: err;
}

static void lose(struct tr_order_state *s, struct terrace_result *result, u32 i)
{
	if (!tr_bit(s->along, i) && !result->unreadable++)
		result->bad_block = (s->move.number << TERRACE_REGION_SHIFT) + i;
	tr_bit_clear(s->along, i);
	tr_bit_clear(s->into, i);
	tr_bit_clear(s->up, i);
	tr_bit_clear(s->unpack, i);
}

/* Some block at a place cannot be read: the others are. -EIO: too many cannot. */
static int read_singly(struct terrace *tr, struct tr_order_state *s, struct tr_order_area *area,
		       struct terrace_result *result)
{
	u32 i;

	for (i = 0; i < BLOCKS; i++) {
		struct tr_tier *tier;

		if (!to_read(s, i))
			continue;
		tier = tier_of(tr, s->place[i]);
		if (!tr_rw(tier->bdev, tier->data_sector +
			   tr_place_index(s->place[i]) * TERRACE_BLOCK_SECTORS, data_of(area, i),
			   TERRACE_BLOCK_BYTES, REQ_OP_READ))
			continue;
		DMERR_LIMIT("%s: block %llu at tier %u block %llu cannot be read", tr->name,
			    (s->move.number << TERRACE_REGION_SHIFT) + i, tier->number,
			    tr_place_index(s->place[i]));
		lose(s, result, i);
		if (tr_order_gave_up(tr, ++s->failed))
			return -EIO;
	}
	return 0;
}

/*
 * What users have just read from a disk. Should the place have got another block since the
 * snapshot, so has the map: then this one counts as raced, whatever was read for it.
 */
static void take_had(struct terrace *tr, struct tr_order_state *s, struct tr_order_area *area)
{
	struct tr_cached *entry;
	u32 i;

	memset(s->had, 0, sizeof(s->had));
	for (i = tr_order_next(s, 0); i < BLOCKS; i = tr_order_next(s, i + 1)) {
		entry = to_read(s, i) && tier_of(tr, s->place[i])->kind == TERRACE_KIND_SHELVES ?
			tr_promotion_loose_find(tr, s->place[i]) : NULL;
		if (!entry)
			continue;
		memcpy(data_of(area, i), tr_cached_data(entry), TERRACE_BLOCK_BYTES);
		tr_cached_put(tr, entry);
		tr_bit_set(s->had, i);
		this_cpu_inc(tr->stats->cache_hits);
	}
}

/*
 * Slots are read little by little: what is hot is read there at the same time, and would
 * wait for a whole region to pass. A disk is asked for all at once, so that it can sort.
 */
static int read_places(struct terrace *tr, struct tr_order_state *s, struct tr_order_area *area,
		       struct terrace_result *result)
{
	take_had(tr, s, area);
	if (read_tiers(tr, s, area, true, result) || read_tiers(tr, s, area, false, result))
		return read_singly(tr, s, area, result);
	return 0;
}

struct reading {			/* of a pack */
	struct tr_order_area *area;
	u64 *mask;			/* blocks that are still to come */
};

static void keep_block(void *context, u32 i, const void *data)
{
	struct reading *r = context;

	memcpy(data_of(r->area, i), data, TERRACE_BLOCK_BYTES);
	tr_bit_clear(r->mask, i);
}

bool tr_order_has_pack(const struct tr_order_state *s, u64 id)
{
	struct tr_region *region = s->move.region;
	struct tr_packs *packs;
	unsigned long flags;
	bool has = false;
	u32 k;

	spin_lock_irqsave(&region->lock, flags);
	packs = tr_region_packs(region);
	for (k = 0; packs && k < packs->nr; k++)
		has |= packs->pack[k].id == id;
	spin_unlock_irqrestore(&region->lock, flags);
	return has;
}

bool tr_order_drops_pack(const struct tr_order_state *s)
{
	struct tr_region *region = s->move.region;
	struct tr_packs *packs;
	unsigned long flags;
	bool drops = false;
	u32 k;

	spin_lock_irqsave(&region->lock, flags);
	packs = tr_region_packs(region);
	for (k = 0; packs && k < packs->nr; k++)
		drops |= !tr_pack_live(&packs->pack[k]) || tr_avoids(s, packs->pack[k].index_place);
	spin_unlock_irqrestore(&region->lock, flags);
	return drops;
}

/* The pack does not give block @i: a clean slot has the same value. It stays there, or the
 * block leaves the pack as well, while the region is MOVING. The other way is rescue.c.
 */
static bool read_clean(struct terrace *tr, const struct tr_order_state *s,
		       struct tr_order_area *area, u32 i)
{
	u64 place = s->place[i];
	struct tr_tier *tier = tier_of(tr, place == TR_NO_PLACE ? 0 : place);

	if (place == TR_NO_PLACE || tier->missing ||
	    tr_rw(tier->bdev, tier->data_sector + tr_place_index(place) * TERRACE_BLOCK_SECTORS,
		  data_of(area, i), TERRACE_BLOCK_BYTES, REQ_OP_READ))
		return false;
	this_cpu_inc(tr->stats->rescued);
	DMWARN_LIMIT("%s: block %llu was read from its clean copy at tier %u block %llu: its pack is bad",
		     tr->name, (s->move.number << TERRACE_REGION_SHIFT) + i, tier->number,
		     tr_place_index(place));
	return true;
}

/* Has the pack no index any more, or no drive? Then none of its blocks needs to be tried. */
static bool has_no_index(struct terrace *tr, const struct tr_order_state *s,
			 const struct tr_pack_ref *ref)
{
	struct tr_index *index;

	if (tier_of(tr, ref->place)->missing)
		return true;
	index = tr_index_get(tr, ref);
	if (IS_ERR(index))
		return tr_order_has_pack(s, ref->id);
	/* Not kept: it may be one of few (pack_cache.c), and unpacking asks for it. */
	tr_index_put(tr, index);
	return false;
}

static void read_clean_all(struct terrace *tr, const struct tr_order_state *s,
			   struct tr_order_area *area, const u64 *mask, u64 *lost)
{
	u32 i;

	for (i = 0; i < BLOCKS; i++)
		if (tr_bit(mask, i) && !read_clean(tr, s, area, i))
			tr_bit_set(lost, i);
}

int tr_order_read_pack(struct terrace *tr, struct tr_order_state *s,
		       const struct tr_pack_ref *ref, bool drive, struct tr_order_area *area,
		       u64 *mask, u64 *lost, struct terrace_result *result)
{
	struct tr_unpacker *unpacker = tr_unpacker_get(tr);
	struct reading r = { .area = area, .mask = mask };
	u32 bad;
	int err, said = 0;

	while (!tr_bits_none(mask)) {
		err = drive ? tr_unpack_drive(tr, ref, mask, unpacker, keep_block, &r, &bad) :
			      tr_unpack(tr, ref, mask, unpacker, keep_block, &r, &bad);
		if (!err)
			break;
		/* What left the pack meanwhile is left out, by tr_order_read_ended(). */
		if (err == -ESTALE) {
			memset(data_of(area, bad), 0, TERRACE_BLOCK_BYTES);
			tr_bit_clear(mask, bad);
			continue;
		}
		if (!said && has_no_index(tr, s, ref)) {
			read_clean_all(tr, s, area, mask, lost);
			said = -EIO;
			break;
		}
		said = -EIO;
		tr_bit_clear(mask, bad);
		if (!read_clean(tr, s, area, bad))
			tr_bit_set(lost, bad);
		/* Read twice, with others and alone; a wrong checksum is no timeout of a dead drive. */
		s->failed += err != -EBADMSG ? 2 : 0;
		if (!tr_order_gave_up(tr, s->failed))
			continue;
		said = -EINTR;
		break;
	}
	result->read_bytes[tr_place_tier(ref->place)] += tr_unpacker_read_bytes(unpacker);
	result->cpu_nanoseconds += tr_unpacker_decode_ns(unpacker);
	tr_unpacker_put(tr, unpacker);
	return said;
}

static int read_packs(struct terrace *tr, struct tr_order_state *s, struct tr_order_area *area,
		      struct terrace_result *result)
{
	u32 k, i;
	int err = 0;

	for (k = 0; k < s->nr_refs && err != -EINTR; k++) {
		u64 mask[TR_LEAF_WORDS] = {}, lost[TR_LEAF_WORDS] = {};

		for (i = tr_order_next(s, 0); i < BLOCKS; i = tr_order_next(s, i + 1))
			if (s->pack[i] == s->ref[k].id)
				tr_bit_set(mask, i);
		if (tr_bits_none(mask))
			continue;
		err = tr_order_read_pack(tr, s, &s->ref[k], false, area, mask, lost, result);
		for (i = tr_order_next(s, 0); i < BLOCKS; i = tr_order_next(s, i + 1))
			if (tr_bit(lost, i))
				lose(s, result, i);
	}
	return err == -EINTR ? -EIO : 0;
}

int tr_order_read(struct terrace *tr, struct tr_order_state *s, struct tr_order_area *area,
		  struct terrace_result *result)
{
	int err = read_places(tr, s, area, result) ?: read_packs(tr, s, area, result);

	/* What can be read goes on; if that is nothing, there is nothing to be done. */
	if (!err && result->unreadable && tr_bits_none(s->into) && tr_bits_none(s->up) &&
	    tr_bits_none(s->drop))
		err = -EIO;
	return err;
}

/* --- the new pack ------------------------------------------------------------------- */

/* The next blocks of a cluster: @nr of the blocks in into from *@at on, the
 * warm ones first.
 */
static u32 gather(const struct tr_order_state *s, const struct terrace_move *ask, u32 *at, u32 nr,
		  u16 *block)
{
	u16 cold[1 << TERRACE_PACK_MAX_SHIFT];
	u32 warm = 0, colds = 0, k;

	for (; *at < BLOCKS && warm + colds < nr; ++*at) {
		if (!tr_bit(s->into, *at))
			continue;
		if (tr_bit(ask->warm, *at))
			block[warm++] = *at;
		else
			cold[colds++] = *at;
	}
	for (k = 0; k < colds; k++)
		block[warm + k] = cold[k];
	return warm + colds;
}

/* A cluster's contents in one piece: those that follow each other are. */
static const void *contents(struct tr_order_area *area, const u16 *block, u32 nr)
{
	u32 k;

	for (k = 1; k < nr && block[k] == block[0] + k; k++)
		;
	if (k == nr)
		return data_of(area, block[0]);
	for (k = 0; k < nr; k++)
		memcpy(area->cluster + k * TERRACE_BLOCK_BYTES, data_of(area, block[k]),
		       TERRACE_BLOCK_BYTES);
	return area->cluster;
}

static int build_pack(struct terrace *tr, struct tr_order_state *s, const struct terrace_move *ask,
		      struct tr_order_area *area, struct terrace_result *result)
{
	struct tr_pack_build *build = &area->build;
	u64 began;
	u16 block[1 << TERRACE_PACK_MAX_SHIFT];
	u32 at = 0, nr, crc;
	int err;

	build->head = (struct tr_pack_head){
		.id = atomic64_inc_return(&tr->next_pack), .region = s->move.number,
		.record_seq = READ_ONCE(tr->journal.next_record), .nr_blocks = tr_bits_count(s->into),
		.codec = ask->codec, .level = ask->level, .shift = ask->shift,
	};
	err = tr_pack_start(build, area->image, area->image_bytes, tr->super.volume_uuid);
	while (!err && (nr = gather(s, ask, &at, 1u << ask->shift, block))) {
		began = ktime_get_ns();
		err = tr_pack_add(build, block, nr, contents(area, block, nr),
				  tr_codec_ops(ask->codec), area->codec);
		result->cpu_nanoseconds += ktime_get_ns() - began;
		tr_work_gently(tr);	/* by now somebody may wait */
		tr_give_way();
	}
	if (!err)
		err = tr_pack_finish(build, tr_shelf_unit(&tr->tier[ask->tier_down]), &crc);
	result->cpu_nanoseconds -= min(result->cpu_nanoseconds, tr_codec_away_ns(area->codec));
	result->raw = build->nr_raw << ask->shift;
	return err;
}

#define INDEX_TRIES	4

/* The index once more, where it is read fast; without it packs work as well. */
static void copy_index(struct terrace *tr, struct tr_order_state *s)
{
	struct tr_tier *tier = &tr->tier[0];
	u32 got, n = s->header_blocks, tries;
	u64 index;

	s->index_place = TR_NO_PLACE;
	if (tier->kind != TERRACE_KIND_SLOTS || tier->missing || s->avoid & 1)
		return;
	got = tr_space_get(tr, tier, n, &index);
	/* The end of a run; the next one is longer, as a rule. */
	for (tries = 0; got && got < n && tries < INDEX_TRIES; tries++) {
		tr_space_put(tr, tier, index, got);
		got = tr_space_get(tr, tier, n, &index);
	}
	if (got < n) {
		if (got)
			tr_space_put(tr, tier, index, got);
		return;
	}
	if (tr_rw(tier->bdev, tier->data_sector + index * TERRACE_BLOCK_SECTORS, s->header,
		  n * TERRACE_BLOCK_BYTES, REQ_OP_WRITE)) {
		tr_space_put(tr, tier, index, n);
		return;
	}
	WRITE_ONCE(tier->unflushed, true);
	s->index_place = tr_place(0, index);
}

static int write_pack(struct terrace *tr, struct tr_order_state *s, const struct terrace_move *ask,
		      struct tr_order_area *area, struct terrace_result *result)
{
	struct tr_tier *tier = &tr->tier[ask->tier_down];
	struct tr_pack_build *build = &area->build;
	u32 n = build->head.blocks, tries, crc;
	int err = -ENOSPC;

	for (tries = 0; tries < 2 && err; tries++) {
		/* The last free shelves are for cleaning, or nothing would ever be free again. */
		if (s->move.chunk == TR_ANY_CHUNK && !tr_shelf_spares(tier, n))
			return -ENOSPC;
		err = tr_shelf_open_for(tr, tier, TR_APPEND_MOVES);
		if (err)
			return err;
		err = -ENOSPC;
		if (tr_shelf_get_run(tr, tier, n, &s->index))
			err = 0;
	}
	if (err)
		return err;
	tr_pack_place(build, tr_place(tier->number, s->index), &crc);
	err = tr_rw(tier->bdev, tier->data_sector + s->index * TERRACE_BLOCK_SECTORS, build->image,
		    n * TERRACE_BLOCK_BYTES, REQ_OP_WRITE);
	WRITE_ONCE(tier->unflushed, true);
	if (err) {
		tr_shelf_abandoned(tr, tier, s->index, n, true);
		return err;
	}
	s->header_bytes = build->head.bytes;
	s->header_blocks = tr_pack_header_blocks(s->header_bytes);
	s->header = kmemdup(build->image, s->header_blocks * TERRACE_BLOCK_BYTES,
			    GFP_NOIO | __GFP_NOFAIL);
	copy_index(tr, s);
	s->made = (struct tr_pack){
		.id = build->head.id, .place = tr_place(tier->number, s->index),
		.index_place = TR_NO_PLACE, .blocks = n, .header_crc = crc,
	};
	tr_shelf_padded(tier, n - DIV_ROUND_UP(build->payload_at + build->head.payload_bytes,
					       TERRACE_BLOCK_BYTES));
	result->packed_bytes = n * TERRACE_BLOCK_BYTES;
	result->written_bytes[tier->number] += n * TERRACE_BLOCK_BYTES;
	return 0;
}

int tr_order_pack(struct terrace *tr, struct tr_order_state *s, const struct terrace_move *ask,
		  struct tr_order_area *area, struct terrace_result *result)
{
	/* Cleaning is waited for, and others may wait for its room with a turn of their own. */
	bool turns = s->move.chunk == TR_ANY_CHUNK && ask->codec != TERRACE_CODEC_NONE;
	int err = tr_codec_level(area->codec, ask->codec, ask->level);	/* may wait for memory */

	if (err)
		return err;
	if (turns)
		down(&tr->packing_turns);
	err = build_pack(tr, s, ask, area, result);
	if (turns)
		up(&tr->packing_turns);
	/* What lies loose on a shelf is packed for room: it stays there when that gains little. */
	if (!err && s->loose && result->raw * 2 > area->build.head.nr_blocks)
		err = -E2BIG;
	return err ?: write_pack(tr, s, ask, area, result);
}

/* --- homes -------------------------------------------------------------------------- */

/* Homes of the blocks in `into` that have none yet; how many have none then. */
static u32 get_homes(struct terrace *tr, struct tr_order_state *s)
{
	u64 first = s->move.number << TERRACE_REGION_SHIFT;
	u32 i, n, k, got, missed = 0;

	for (i = 0; i < BLOCKS; i += n) {
		n = 1;
		if (!tr_bit(s->into, i) || s->fresh[i] != TR_NO_PLACE)
			continue;
		while (i + n < BLOCKS && tr_bit(s->into, i + n) && s->fresh[i + n] == TR_NO_PLACE)
			n++;
		got = tr_home_get_wait(tr, s->home, first + i, n);
		for (k = 0; k < got; k++)
			s->fresh[i + k] = tr_place(s->home->number, first + i + k);
		missed += !got;
		n = got ?: 1;
	}
	return missed;
}

/* One that is not free after this is about to be: a write has just left it. */
static int leave_out_homeless(struct tr_order_state *s, struct terrace_result *result)
{
	u32 i, left = 0;

	for (i = 0; i < BLOCKS; i++) {
		if (!tr_bit(s->into, i))
			continue;
		if (s->fresh[i] != TR_NO_PLACE) {
			left++;
			continue;
		}
		tr_bit_clear(s->into, i);
		result->raced++;
	}
	return left ? 0 : -ENOSPC;
}

int tr_order_home(struct terrace *tr, struct tr_order_state *s, struct tr_order_area *area,
		  struct terrace_result *result)
{
	struct tr_tier *tier = s->home;
	struct tr_burst burst;
	u32 i, n;
	int err;

	if (tr_home_full(tier))
		return -ENOSPC;
	/* Freed a moment ago: not free before the commit, the readers' end and the trim. */
	if (get_homes(tr, s)) {
		tr_frees_wait(tr);
		get_homes(tr, s);
	}
	err = leave_out_homeless(s, result);
	if (err)
		return err;
	tr_burst_begin(&burst);
	for (i = 0; i < BLOCKS; i += n) {
		n = 1;
		if (!tr_bit(s->into, i))
			continue;
		while (i + n < BLOCKS && tr_bit(s->into, i + n))
			n++;
		result->written_bytes[tier->number] += n * TERRACE_BLOCK_BYTES;
		tr_burst_rw(&burst, tier->bdev, tier->data_sector +
			    tr_place_index(s->fresh[i]) * TERRACE_BLOCK_SECTORS, data_of(area, i),
			    n * TERRACE_BLOCK_BYTES, REQ_OP_WRITE);
	}
	err = tr_burst_wait(&burst);
	WRITE_ONCE(tier->unflushed, true);
	return err;
}

/* --- upwards ------------------------------------------------------------------------ */

/* An order takes slots faster than they are made ready: then it waits for that. */
static u32 get_slots(struct terrace *tr, struct tr_tier *tier, u32 n, u64 *index)
{
	u32 got = tr_space_get(tr, tier, n, index), tries;

	/* More than once, for others take them as well; none at all come when the tier is full. */
	for (tries = 0; !got && tries < 8; tries++) {
		flush_work(&tr->refill_work);
		got = tr_space_get(tr, tier, n, index);
	}
	return got;
}

int tr_order_up(struct terrace *tr, struct tr_order_state *s, const struct terrace_move *ask,
		    struct tr_order_area *area, struct terrace_result *result)
{
	struct tr_tier *tier = &tr->tier[ask->tier_up];
	struct tr_burst burst;
	u32 i, n, k, got = 0, nr = 0;
	u64 index;
	int err = 0;

	tr_burst_begin(&burst);
	for (i = tr_order_next(s, 0); i < BLOCKS && !err; i = tr_order_next(s, i + got)) {
		got = 1;
		if (!tr_bit(s->up, i))
			continue;
		for (n = 1; n < TR_GENTLE_BLOCKS && i + n < BLOCKS && tr_bit(s->up, i + n);)
			n++;
		got = get_slots(tr, tier, n, &index);
		if (!got)
			break;
		for (k = 0; k < got; k++)
			s->fresh[i + k] = tr_place(tier->number, index + k);
		result->written_bytes[tier->number] += got * TERRACE_BLOCK_BYTES;
		tr_burst_rw(&burst, tier->bdev, tier->data_sector + index * TERRACE_BLOCK_SECTORS,
			    data_of(area, i), got * TERRACE_BLOCK_BYTES, REQ_OP_WRITE);
		nr += got;
		if (nr >= TR_GENTLE_BLOCKS) {
			err = tr_burst_wait(&burst);
			tr_burst_begin(&burst);
			nr = 0;
		}
	}
	err = tr_burst_wait(&burst) ?: err;
	WRITE_ONCE(tier->unflushed, true);
	return err ?: got ? 0 : -ENOSPC;
}
