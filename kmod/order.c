// SPDX-License-Identifier: GPL-2.0
/*
 * The one order: in a region, these blocks up, the others down.
 *
 *   begin      the region's flag, one grace period for the whole batch
 *   snapshot   of every block: its place, and the pack it is live in
 *   classify   into = goes into the new pack; up = gets a place on tier_up;
 *              drop = a clean slot that is given back
 *   read       places and packs; compress; write the pack's run and the slots
 *   flush      each tier that was written, once for the batch
 *   commit     under the region's lock: what is still as in the snapshot
 *
 * What a crash in between leaves is in Documentation/decisions/0003-packs.md:
 * until the records are durable the old placement, which is not reused before.
 *
 * Raced blocks. A block at a place that was written since `begin` (its bit is
 * in move->raced) stays where it is: what was read may be half of it. A packed
 * block cannot be half written: its pack never changes, and a write takes its
 * live bit away when it ends. So packed blocks are judged by their live bit
 * alone, and a write under way ends in a MAP record behind ours.
 */
#include <linux/bitmap.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/vmalloc.h>

#include "order.h"
#include "packs.h"

#define BLOCKS		TERRACE_REGION_BLOCKS

/* What is known of an order while it runs; kept until its commit. */
struct state {
	struct tr_move move;
	u64 place[BLOCKS];
	u64 pack[BLOCKS];		/* id it was live in, 0: none */
	u64 fresh[BLOCKS];		/* place on tier_up, of blocks in up */
	u64 into[TR_LEAF_WORDS], up[TR_LEAF_WORDS], drop[TR_LEAF_WORDS];
	struct tr_pack_ref ref[TERRACE_PACK_SLOTS];
	u32 nr_refs;
	struct tr_pack made;		/* id 0: no pack was written */
	u64 index;			/* of its run */
	u64 index_place;		/* of its index copy, TR_NO_PLACE: none */
	void *header;
	u32 header_bytes, header_blocks;
	bool merge;
	bool began;
};

/* Memory for one order at a time. */
struct area {
	struct tr_pack_build build;
	struct tr_codec *codec;
	void *data;			/* a region, by block */
	void *image;
	u32 image_bytes;
	void *cluster;
};

static bool bit(const u64 *map, u32 i)
{
	return map[i / 64] >> (i % 64) & 1;
}

static void set(u64 *map, u32 i)
{
	map[i / 64] |= 1ull << (i % 64);
}

static u32 count(const u64 *map)
{
	return bitmap_weight((const unsigned long *)map, BLOCKS);
}

static struct tr_tier *tier_of(struct terrace *tr, u64 place)
{
	return &tr->tier[tr_place_tier(place)];
}

/* --- is it possible? ----------------------------------------------------------- */

static bool mode_packs(u32 mode)
{
	return mode == TERRACE_MOVE_APPEND || mode == TERRACE_MOVE_MERGE;
}

static bool is_zero(const u64 *map)
{
	return bitmap_empty((const unsigned long *)map, BLOCKS);
}

int tr_order_check(const struct terrace_move *ask)
{
	bool packs = mode_packs(ask->mode);

	if (!ask->cookie || ask->reserved0 || ask->reserved1 ||
	    ask->flags & ~TERRACE_MOVE_FLAGS)
		return -EINVAL;
	if (ask->mode < TERRACE_MOVE_APPEND || ask->mode > TERRACE_MOVE_SCRUB)
		return -EINVAL;
	if (!packs && (ask->codec || ask->level || ask->shift || !is_zero(ask->warm)))
		return -EINVAL;
	if (packs && (ask->codec > TERRACE_CODEC_ZSTD || ask->shift > TERRACE_PACK_MAX_SHIFT ||
		      ask->shift & 1))
		return -EINVAL;
	if (ask->mode == TERRACE_MOVE_CLEAN && (!is_zero(ask->up) || ask->tier_up))
		return -EINVAL;
	if ((ask->mode == TERRACE_MOVE_DROP || ask->mode == TERRACE_MOVE_SCRUB) &&
	    (ask->tier_up || ask->tier_down))
		return -EINVAL;
	if (ask->mode == TERRACE_MOVE_RAISE && ask->tier_down)
		return -EINVAL;
	return 0;
}

static int tier_usable(struct terrace *tr, u32 t, u32 kind)
{
	if (t >= tr->nr_tiers)
		return -EINVAL;
	if (tr->tier[t].missing)
		return -ENODEV;
	return tr->tier[t].kind == kind ? 0 : -EOPNOTSUPP;
}

static int possible(struct terrace *tr, const struct tr_order *order)
{
	const struct terrace_move *ask = &order->ask;
	bool packs = mode_packs(ask->mode);
	bool promotes = order->chunk == TR_ANY_CHUNK &&
			(packs || ask->mode == TERRACE_MOVE_RAISE);
	int err = 0;

	if (!tr_writable(tr))
		return -EROFS;
	if (ask->mode == TERRACE_MOVE_CLEAN) {
		err = tier_usable(tr, ask->tier_down, TERRACE_KIND_SHELVES);
		if (!err && ask->region >= tr->tier[ask->tier_down].nr_chunks)
			err = -ERANGE;
		return err;
	}
	if (ask->region >= tr_nr_regions(tr))
		return -ERANGE;
	if (packs)
		err = tier_usable(tr, ask->tier_down, TERRACE_KIND_SHELVES);
	if (!err && promotes && !is_zero(ask->up))
		err = tier_usable(tr, ask->tier_up, TERRACE_KIND_SLOTS);
	if (!err && packs && ask->tier_up > ask->tier_down)
		err = -EXDEV;
	return err;
}

/* --- snapshot and classes ---------------------------------------------------------- */

static void snapshot(struct state *s)
{
	struct tr_region *region = s->move.region;
	struct tr_packs *packs;
	unsigned long flags;
	u32 i, k;

	spin_lock_irqsave(&region->lock, flags);
	packs = tr_region_packs(region);
	s->nr_refs = packs ? packs->nr : 0;
	for (k = 0; k < s->nr_refs; k++)
		s->ref[k] = (struct tr_pack_ref){
			.id = packs->pack[k].id, .region = region->number,
			.place = packs->pack[k].place, .index_place = packs->pack[k].index_place,
			.header_crc = packs->pack[k].header_crc, .blocks = packs->pack[k].blocks,
			.index_blocks = packs->pack[k].index_blocks,
		};
	for (i = 0; i < BLOCKS; i++) {
		s->place[i] = tr_leaf_get(&region->leaf, i);
		k = packs ? tr_packs_find(packs, i) : TR_NO_PACK;
		s->pack[i] = k == TR_NO_PACK ? 0 : packs->pack[k].id;
	}
	spin_unlock_irqrestore(&region->lock, flags);
}

static void classify_block(struct state *s, const struct terrace_move *ask, u32 i)
{
	bool wanted = bit(ask->up, i), live = s->pack[i], placed = s->place[i] != TR_NO_PLACE;
	u32 t = placed ? tr_place_tier(s->place[i]) : 0;

	if (wanted && ask->mode != TERRACE_MOVE_DROP) {
		if ((live && !placed) || (placed && !live && t > ask->tier_up))
			set(s->up, i);
		if (s->merge && live)
			set(s->into, i);
		return;
	}
	switch (ask->mode) {
	case TERRACE_MOVE_APPEND:
	case TERRACE_MOVE_MERGE:
		if ((placed && !live && t <= ask->tier_down) || (s->merge && live))
			set(s->into, i);
		else if (placed && live)
			set(s->drop, i);
		break;
	case TERRACE_MOVE_DROP:
		if (!wanted && placed && live)
			set(s->drop, i);
		break;
	}
}

/* Cleaning: what is live in packs of one shelf, and nothing else. */
static void classify_shelf(struct state *s, u32 chunk)
{
	u32 i, k;

	for (k = 0; k < s->nr_refs; k++) {
		if (tr_place_tier(s->ref[k].place) != s->move.from ||
		    tr_place_index(s->ref[k].place) >> TERRACE_CHUNK_SHIFT != chunk)
			continue;
		for (i = 0; i < BLOCKS; i++)
			if (s->pack[i] == s->ref[k].id)
				set(s->into, i);
	}
}

static void classify(struct state *s, const struct terrace_move *ask)
{
	u32 i;

	if (s->move.chunk != TR_ANY_CHUNK) {
		classify_shelf(s, s->move.chunk);
		return;
	}
	s->merge = ask->mode == TERRACE_MOVE_MERGE ||
		   (ask->mode == TERRACE_MOVE_APPEND && s->nr_refs >= TERRACE_MAX_PACKS);
	for (i = 0; i < BLOCKS; i++)
		classify_block(s, ask, i);
}

/* --- reading ------------------------------------------------------------------------ */

static void *data_of(const struct area *area, u32 i)
{
	return area->data + i * TERRACE_BLOCK_BYTES;
}

static bool to_read(const struct state *s, u32 i)
{
	return bit(s->into, i) || bit(s->up, i);
}

/* Blocks at places that are to be read, in runs. */
static int read_places(struct terrace *tr, struct state *s, struct area *area,
		       struct terrace_result *result)
{
	struct tr_burst burst;
	u32 i, n;

	tr_burst_begin(&burst);
	for (i = 0; i < BLOCKS; i += n) {
		n = 1;
		if (!to_read(s, i) || s->pack[i] || s->place[i] == TR_NO_PLACE)
			continue;
		while (i + n < BLOCKS && to_read(s, i + n) && !s->pack[i + n] &&
		       s->place[i + n] == tr_place_add(s->place[i], n))
			n++;
		result->read_bytes[tr_place_tier(s->place[i])] += n * TERRACE_BLOCK_BYTES;
		tr_burst_rw(&burst, tier_of(tr, s->place[i])->bdev,
			    tier_of(tr, s->place[i])->data_sector +
			    tr_place_index(s->place[i]) * TERRACE_BLOCK_SECTORS,
			    data_of(area, i), n * TERRACE_BLOCK_BYTES, REQ_OP_READ);
	}
	return tr_burst_wait(&burst);
}

static void keep_block(void *context, u32 i, const void *data)
{
	memcpy(data_of(context, i), data, TERRACE_BLOCK_BYTES);
}

static int read_packs(struct terrace *tr, struct state *s, struct area *area,
		      struct terrace_result *result)
{
	struct tr_unpacker *unpacker = tr_unpacker_get(tr);
	u32 k, i, bad = 0;
	int err = 0;

	for (k = 0; k < s->nr_refs && !err; k++) {
		u64 mask[TR_LEAF_WORDS] = {};

		for (i = 0; i < BLOCKS; i++)
			if (to_read(s, i) && s->pack[i] == s->ref[k].id)
				set(mask, i);
		if (is_zero(mask))
			continue;
		result->read_bytes[tr_place_tier(s->ref[k].place)] +=
			s->ref[k].blocks * TERRACE_BLOCK_BYTES;
		err = tr_unpack(tr, &s->ref[k], mask, unpacker, keep_block, area, &bad);
		if (err)
			result->bad_block = (s->move.number << TERRACE_REGION_SHIFT) + bad;
	}
	tr_unpacker_put(tr, unpacker);
	return err ? -EIO : 0;
}

/* --- the new pack ------------------------------------------------------------------- */

/* The next blocks of a cluster: @nr of the blocks in into from *@at on, the
 * warm ones first.
 */
static u32 gather(const struct state *s, const struct terrace_move *ask, u32 *at, u32 nr,
		  u16 *block)
{
	u16 cold[1 << TERRACE_PACK_MAX_SHIFT];
	u32 warm = 0, colds = 0, k;

	for (; *at < BLOCKS && warm + colds < nr; ++*at) {
		if (!bit(s->into, *at))
			continue;
		if (bit(ask->warm, *at))
			block[warm++] = *at;
		else
			cold[colds++] = *at;
	}
	for (k = 0; k < colds; k++)
		block[warm + k] = cold[k];
	return warm + colds;
}

static int build_pack(struct terrace *tr, struct state *s, const struct terrace_move *ask,
		      struct area *area, struct terrace_result *result)
{
	struct tr_pack_build *build = &area->build;
	u64 cpu = ktime_get_ns();
	u16 block[1 << TERRACE_PACK_MAX_SHIFT];
	u32 at = 0, nr, k, crc;
	int err;

	build->head = (struct tr_pack_head){
		.id = atomic64_inc_return(&tr->next_pack), .region = s->move.number,
		.record_seq = READ_ONCE(tr->journal.next_record), .nr_blocks = count(s->into),
		.codec = ask->codec, .level = ask->level, .shift = ask->shift,
	};
	err = tr_codec_level(area->codec, ask->codec, ask->level);
	if (!err)
		err = tr_pack_start(build, area->image, area->image_bytes, tr->super.volume_uuid);
	while (!err && (nr = gather(s, ask, &at, 1u << ask->shift, block))) {
		for (k = 0; k < nr; k++)
			memcpy(area->cluster + k * TERRACE_BLOCK_BYTES, data_of(area, block[k]),
			       TERRACE_BLOCK_BYTES);
		err = tr_pack_add(build, block, nr, area->cluster, tr_codec_ops(ask->codec),
				  area->codec);
		cond_resched();
	}
	if (!err)
		err = tr_pack_finish(build, 1, &crc);
	result->cpu_nanoseconds += ktime_get_ns() - cpu;
	result->raw = build->nr_raw << ask->shift;
	return err;
}

/* The index once more, where it is read fast; without it packs work as well. */
static void copy_index(struct terrace *tr, struct state *s)
{
	struct tr_tier *tier = &tr->tier[0];
	u32 got, n = s->header_blocks;
	u64 index;

	s->index_place = TR_NO_PLACE;
	if (tier->kind != TERRACE_KIND_SLOTS || tier->missing)
		return;
	got = tr_space_get(tr, tier, n, &index);
	if (got && got < n) {
		tr_space_put(tr, tier, index, got);
		return;
	}
	if (!got)
		return;
	if (tr_rw(tier->bdev, tier->data_sector + index * TERRACE_BLOCK_SECTORS, s->header,
		  n * TERRACE_BLOCK_BYTES, REQ_OP_WRITE)) {
		tr_space_put(tr, tier, index, n);
		return;
	}
	WRITE_ONCE(tier->unflushed, true);
	s->index_place = tr_place(0, index);
}

static int write_pack(struct terrace *tr, struct state *s, const struct terrace_move *ask,
		      struct area *area, struct terrace_result *result)
{
	struct tr_tier *tier = &tr->tier[ask->tier_down];
	struct tr_pack_build *build = &area->build;
	u32 n = build->head.blocks, tries, crc;
	int err = -ENOSPC;

	for (tries = 0; tries < 2 && err; tries++) {
		if (tr_shelf_open_for_moves(tr, tier))
			return -ENOSPC;
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
	result->packed_bytes = n * TERRACE_BLOCK_BYTES;
	result->written_bytes[tier->number] += n * TERRACE_BLOCK_BYTES;
	return 0;
}

/* --- upwards ------------------------------------------------------------------------ */

static void give_back_fresh(struct terrace *tr, struct state *s, u32 i)
{
	if (s->fresh[i] == TR_NO_PLACE)
		return;
	tr_space_put(tr, tier_of(tr, s->fresh[i]), tr_place_index(s->fresh[i]), 1);
	s->fresh[i] = TR_NO_PLACE;
}

static int write_up(struct terrace *tr, struct state *s, const struct terrace_move *ask,
		    struct area *area, struct terrace_result *result)
{
	struct tr_tier *tier = &tr->tier[ask->tier_up];
	struct tr_burst burst;
	u32 i, n, k, got = 0;
	u64 index;
	int err;

	tr_burst_begin(&burst);
	for (i = 0; i < BLOCKS; i += got) {
		got = 1;
		if (!bit(s->up, i))
			continue;
		for (n = 1; i + n < BLOCKS && bit(s->up, i + n);)
			n++;
		got = tr_space_get(tr, tier, n, &index);
		if (!got)
			break;
		for (k = 0; k < got; k++)
			s->fresh[i + k] = tr_place(tier->number, index + k);
		result->written_bytes[tier->number] += got * TERRACE_BLOCK_BYTES;
		tr_burst_rw(&burst, tier->bdev, tier->data_sector + index * TERRACE_BLOCK_SECTORS,
			    data_of(area, i), got * TERRACE_BLOCK_BYTES, REQ_OP_WRITE);
	}
	err = tr_burst_wait(&burst);
	WRITE_ONCE(tier->unflushed, true);
	return err ?: got ? 0 : -ENOSPC;
}

/* --- commit -------------------------------------------------------------------------- */

/* Is block @i as the snapshot says, so that what was read is its value? */
static bool unchanged__f(const struct state *s, const struct tr_packs *packs, u32 i)
{
	const struct tr_region *region = s->move.region;
	u32 k = packs ? tr_packs_find(packs, i) : TR_NO_PACK;

	if (s->pack[i])
		return k != TR_NO_PACK && packs->pack[k].id == s->pack[i];
	return k == TR_NO_PACK && s->place[i] != TR_NO_PLACE && !bit(s->move.raced, i) &&
	       tr_leaf_get(&region->leaf, i) == s->place[i];
}

/* Runs of blocks in @map, all with the same answer of tr_leaf_get() being there. */
static u32 run_in(const u64 *map, u32 i)
{
	u32 n = 1;

	while (i + n < BLOCKS && bit(map, i + n))
		n++;
	return n;
}

/* The new pack: who is in it lives there now. Credits used. */
static u32 commit_pack__f(struct terrace *tr, struct state *s, const struct terrace_move *ask,
			  struct terrace_result *result)
{
	struct tr_region *region = s->move.region;
	u64 gone[TR_LEAF_WORDS] = {}, masked[TR_LEAF_WORDS] = {}, kept[TR_LEAF_WORDS] = {};
	u32 i, n, used = 0, ok = 0;
	u64 place;

	for (i = 0; i < BLOCKS; i++) {
		if (!bit(s->into, i))
			continue;
		if (!unchanged__f(s, tr_region_packs(region), i)) {
			result->raced++;
			continue;
		}
		ok++;
		if (tr_leaf_get(&region->leaf, i) == TR_NO_PLACE)
			set(masked, i);
		else if (s->pack[i] && bit(ask->up, i))
			set(kept, i);
		else
			set(gone, i);
	}
	if (!ok)
		return 0;
	used += tr_pack_add__f(tr, region, &s->made);
	if (s->index_place != TR_NO_PLACE) {
		struct tr_record record = {
			.type = TERRACE_RECORD_INDEX_ADD, .nr = s->header_blocks,
			.block = region->number, .new = s->index_place, .old = s->made.id,
		};

		tr_region_record__f(tr, region, &record);
		write_seqcount_begin(&region->seq);
		tr_packs_index(tr_region_packs(region), s->made.id, s->index_place,
			       s->header_blocks);
		write_seqcount_end(&region->seq);
		used++;
	}
	for (i = 0; i < BLOCKS; i += n) {
		n = 1;
		if (bit(gone, i)) {
			n = run_in(gone, i);
			used += tr_packed__f(tr, region, s->made.id, i, n);
			result->down += n;
		} else if (bit(kept, i)) {
			n = tr_leaf_run(&region->leaf, i, run_in(kept, i), &place);
			used += tr_clean__f(tr, region, s->made.id, i, n, place, true);
		}
	}
	return used + tr_packed_mask__f(tr, region, s->made.id, masked);
}

static u32 commit_up__f(struct terrace *tr, struct state *s, struct terrace_result *result)
{
	struct tr_region *region = s->move.region;
	struct tr_packs *packs = tr_region_packs(region);
	u32 i, k, used = 0;

	for (i = 0; i < BLOCKS; i++) {
		if (s->fresh[i] == TR_NO_PLACE)
			continue;
		k = packs ? tr_packs_find(packs, i) : TR_NO_PACK;
		/* A packed block may by now live in the pack that this order made. */
		if (s->pack[i] ? k == TR_NO_PACK || (packs->pack[k].id != s->pack[i] &&
						     packs->pack[k].id != s->made.id) ||
				 tr_leaf_has(&region->leaf, i)
			       : !unchanged__f(s, packs, i)) {
			result->raced++;
			continue;
		}
		if (s->pack[i])
			used += tr_clean__f(tr, region, packs->pack[k].id, i, 1, s->fresh[i], false);
		else
			used += tr_region_map__f(tr, region, i, 1, s->fresh[i]);
		s->fresh[i] = TR_NO_PLACE;
		result->up++;
	}
	return used;
}

static u32 commit_drop__f(struct terrace *tr, struct state *s, struct terrace_result *result)
{
	struct tr_region *region = s->move.region;
	u32 i, n, used = 0;

	for (i = 0; i < BLOCKS; i += n) {
		n = 1;
		if (!bit(s->drop, i) || !unchanged__f(s, tr_region_packs(region), i) ||
		    !tr_leaf_has(&region->leaf, i))
			continue;
		while (i + n < BLOCKS && bit(s->drop, i + n) && s->pack[i + n] == s->pack[i] &&
		       unchanged__f(s, tr_region_packs(region), i + n) &&
		       tr_leaf_has(&region->leaf, i + n))
			n++;
		used += tr_packed__f(tr, region, s->pack[i], i, n);
		result->dropped += n;
	}
	return used;
}

static u32 nr_fresh(const struct state *s)
{
	u32 i, n = 0;

	for (i = 0; i < BLOCKS; i++)
		n += s->fresh[i] != TR_NO_PLACE;
	return n;
}

/* Room in the leaf for what goes up. */
static void reserve_leaf(struct terrace *tr, struct tr_region *region, u32 n)
{
	unsigned long flags;
	bool ok;

	do {
		spin_lock_irqsave(&region->lock, flags);
		ok = tr_region_reserve__f(region, n, tr->high_places);
		spin_unlock_irqrestore(&region->lock, flags);
		if (!ok)
			tr_region_grow(tr, region, n, tr->high_places);
	} while (!ok);
}

static int commit(struct terrace *tr, struct state *s, const struct terrace_move *ask,
		  struct terrace_result *result)
{
	struct tr_region *region = s->move.region;
	u32 credits = count(s->into) + count(s->drop) + nr_fresh(s) + 16 + 2 +
		      2 * TERRACE_PACK_SLOTS, used = 0, fresh = nr_fresh(s);
	struct tr_packs *packs;
	unsigned long flags;
	int err;

	if (s->made.id)
		tr_region_packs_grow(tr, region, min(s->nr_refs + 1, (u32)TERRACE_PACK_SLOTS));
	reserve_leaf(tr, region, fresh);
	err = tr_journal_reserve_wait(tr, credits);
	spin_lock_irqsave(&region->lock, flags);
	packs = tr_region_packs(region);
	if (!err && s->made.id && packs->nr == packs->cap)
		err = -EBUSY;		/* a crash left too many: a merge is due */
	if (!err) {
		if (s->made.id)
			used += commit_pack__f(tr, s, ask, result);
		used += commit_up__f(tr, s, result);
		used += commit_drop__f(tr, s, result);
		used += tr_packs_drop_dead__f(tr, region);
		packs = tr_region_packs(region);
		result->packs = packs ? packs->nr : 0;
	}
	region->reserved -= fresh;
	spin_unlock_irqrestore(&region->lock, flags);
	if (err != -EROFS)
		tr_journal_unreserve(tr, credits - used);
	return err;
}

/* --- one order ------------------------------------------------------------------------- */

/* Is the made pack part of the region now? */
static bool pack_taken(const struct state *s)
{
	struct tr_region *region = s->move.region;
	unsigned long flags;
	bool taken;

	spin_lock_irqsave(&region->lock, flags);
	taken = tr_region_packs(region) &&
		tr_packs_by_id(tr_region_packs(region), s->made.id) != TR_NO_PACK;
	spin_unlock_irqrestore(&region->lock, flags);
	return taken;
}

static void settle_pack(struct terrace *tr, struct state *s)
{
	struct tr_tier *tier = tier_of(tr, s->made.place);

	if (pack_taken(s)) {
		tr_shelf_sealed(tier, s->index, s->made.blocks);
		tr_index_store(tr, s->made.id, s->header, s->header_bytes);
		return;
	}
	tr_shelf_abandoned(tr, tier, s->index, s->made.blocks, true);
	if (s->index_place != TR_NO_PLACE)
		tr_space_put(tr, &tr->tier[0], tr_place_index(s->index_place), s->header_blocks);
}

/* Everything before the commit. */
static int prepare(struct terrace *tr, struct tr_order *order, struct state *s, struct area *area)
{
	const struct terrace_move *ask = &order->ask;
	struct terrace_result *result = &order->result;
	int err, up;

	snapshot(s);
	classify(s, ask);
	if (is_zero(s->into) && is_zero(s->up) && is_zero(s->drop))
		return -ENOENT;
	if (ask->flags & TERRACE_MOVE_ADVISE) {
		result->down = count(s->into);
		result->up = count(s->up);
		result->dropped = count(s->drop);
		return 0;
	}
	err = read_places(tr, s, area, result);
	if (!err)
		err = read_packs(tr, s, area, result);
	if (!err && !is_zero(s->into)) {
		err = build_pack(tr, s, ask, area, result);
		if (!err)
			err = write_pack(tr, s, ask, area, result);
	}
	if (err || is_zero(s->up))
		return err;
	up = write_up(tr, s, ask, area, result);
	return up == -ENOSPC && nr_fresh(s) ? 0 : up;
}

static void finish(struct terrace *tr, struct tr_order *order, struct state *s, int err)
{
	struct terrace_result *result = &order->result;
	u32 i;

	if (!err && !(order->ask.flags & TERRACE_MOVE_ADVISE))
		err = commit(tr, s, &order->ask, result);
	if (s->made.id)
		settle_pack(tr, s);
	for (i = 0; i < BLOCKS; i++)
		give_back_fresh(tr, s, i);
	kfree(s->header);
	result->error = err;
	result->status = err == -ENOSPC ? TERRACE_RESULT_NO_ROOM : err ? TERRACE_RESULT_FAILED :
			 result->raced ? TERRACE_RESULT_PARTLY : TERRACE_RESULT_DONE;
}

/* --- SCRUB -------------------------------------------------------------------------------- */

static void forget_block(void *context, u32 i, const void *data)
{
}

static int scrub(struct terrace *tr, struct tr_order *order, struct state *s)
{
	struct tr_unpacker *unpacker = tr_unpacker_get(tr);
	struct terrace_result *result = &order->result;
	u32 k, i, bad;
	int err, first = 0;

	snapshot(s);
	result->packs = s->nr_refs;
	for (k = 0; k < s->nr_refs; k++) {
		u64 mask[TR_LEAF_WORDS] = {};

		for (i = 0; i < BLOCKS; i++)
			if (s->pack[i] == s->ref[k].id)
				set(mask, i);
		/* Again and again behind each bad block. */
		while (!is_zero(mask)) {
			err = tr_unpack(tr, &s->ref[k], mask, unpacker, forget_block, NULL, &bad);
			if (!err)
				break;
			if (!result->unreadable++)
				result->bad_block = (s->move.number << TERRACE_REGION_SHIFT) + bad;
			first = first ?: -EIO;
			bitmap_clear((unsigned long *)mask, 0, bad + 1);
		}
		result->read_bytes[tr_place_tier(s->ref[k].place)] +=
			s->ref[k].blocks * TERRACE_BLOCK_BYTES;
	}
	tr_unpacker_put(tr, unpacker);
	return first;
}

/* --- batches ------------------------------------------------------------------------------- */

static void area_free(struct area *area)
{
	if (!area)
		return;
	tr_codec_destroy(area->codec);
	kvfree(area->data);
	kvfree(area->image);
	kvfree(area->cluster);
	kvfree(area);
}

static struct area *area_new(void)
{
	struct area *area = kvzalloc(sizeof(*area), GFP_KERNEL);

	if (!area)
		return NULL;
	area->image_bytes = (BLOCKS + TERRACE_PACK_HEADER_BLOCKS + 1) * TERRACE_BLOCK_BYTES;
	area->codec = tr_codec_create(true);
	area->data = kvmalloc(BLOCKS * TERRACE_BLOCK_BYTES, GFP_KERNEL);
	area->image = kvmalloc(area->image_bytes, GFP_KERNEL);
	area->cluster = kvmalloc(TERRACE_BLOCK_BYTES << TERRACE_PACK_MAX_SHIFT, GFP_KERNEL);
	if (area->codec && area->data && area->image && area->cluster)
		return area;
	area_free(area);
	return NULL;
}

static void result_begin(struct tr_order *order)
{
	order->result = (struct terrace_result){
		.cookie = order->ask.cookie, .region = order->ask.region, .mode = order->ask.mode,
		.bad_block = ~0ull, .status = TERRACE_RESULT_FAILED,
	};
}

static struct state *begin(struct terrace *tr, struct tr_order *order)
{
	struct state *s;
	u32 i;
	int err;

	result_begin(order);
	err = possible(tr, order);
	s = err ? NULL : kvzalloc(sizeof(*s), GFP_KERNEL);
	if (!err && !s)
		err = -ENOMEM;
	if (!err) {
		for (i = 0; i < BLOCKS; i++)
			s->fresh[i] = TR_NO_PLACE;
		s->move.number = order->ask.region;
		s->move.from = order->ask.tier_down;
		s->move.chunk = order->chunk;
		err = tr_move_begin(tr, &s->move);
	}
	if (err) {
		kvfree(s);
		order->result.error = err;
		return NULL;
	}
	return s;
}

static bool is_clean(const struct tr_order *order)
{
	return order->ask.mode == TERRACE_MOVE_CLEAN;
}

/* A shelf's order is many of regions: clean.c gives them. */
static void clean(struct terrace *tr, struct tr_order *order)
{
	struct terrace_result *result = &order->result;
	s64 moved;
	int err;

	result_begin(order);
	err = possible(tr, order);
	moved = err ? 0 : tr_clean_shelf(tr, &tr->tier[order->ask.tier_down], order->ask.region);
	if (!err && moved < 0)
		err = moved;
	result->down = max_t(s64, moved, 0);
	result->error = err;
	result->status = err == -ENOSPC ? TERRACE_RESULT_NO_ROOM :
			 err ? TERRACE_RESULT_FAILED : TERRACE_RESULT_DONE;
}

static int flush_written(struct terrace *tr, struct tr_order **order, u32 nr)
{
	int err = 0;
	u32 t, k;

	for (t = 0; t < tr->nr_tiers; t++) {
		bool written = false;

		for (k = 0; k < nr; k++)
			written |= order[k]->result.written_bytes[t];
		if (written)
			err = err ?: blkdev_issue_flush(tr->tier[t].bdev);
	}
	return err;
}

void tr_orders_run(struct terrace *tr, struct tr_order **order, u32 nr)
{
	struct state *state[TR_ORDER_BATCH] = {};
	struct area *area = area_new();
	int err[TR_ORDER_BATCH], flushed;
	u32 k;

	for (k = 0; k < nr; k++)
		state[k] = is_clean(order[k]) ? NULL : begin(tr, order[k]);
	tr_epoch_wait(tr, BIT(tr->nr_tiers) - 1);
	for (k = 0; k < nr; k++) {
		if (!state[k])
			continue;
		if (order[k]->ask.mode == TERRACE_MOVE_SCRUB)
			err[k] = scrub(tr, order[k], state[k]);
		else
			err[k] = !area ? -ENOMEM : READ_ONCE(order[k]->cancelled) ? -ECANCELED :
				 prepare(tr, order[k], state[k], area);
	}
	area_free(area);
	/* What was moved was durable: so it must be before its old place goes,
	 * even if the drive should fail its next flushes.
	 */
	flushed = flush_written(tr, order, nr);
	for (k = 0; k < nr; k++) {
		if (!state[k])
			continue;
		if (order[k]->ask.mode == TERRACE_MOVE_SCRUB) {
			order[k]->result.error = err[k];
			order[k]->result.status = err[k] ? TERRACE_RESULT_PARTLY : TERRACE_RESULT_DONE;
		} else {
			finish(tr, order[k], state[k], err[k] ?: flushed);
		}
		if (err[k] == -ECANCELED)
			order[k]->result.status = TERRACE_RESULT_CANCELLED;
		tr_move_end(&state[k]->move);
		kvfree(state[k]);
	}
	for (k = 0; k < nr; k++) {
		if (is_clean(order[k]))
			clean(tr, order[k]);
		order[k]->result.nanoseconds = ktime_get_ns() - order[k]->submitted;
	}
}
