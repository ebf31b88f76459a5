// SPDX-License-Identifier: GPL-2.0
/*
 * Replay of one region's records, newest first, into a delta; laying the
 * delta over the region's page; and what records do to space. See replay.h.
 */
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include "replay.h"

/* What @record says of its blocks. */
struct decision {
	u64 pack_id;	/* live in this one; 0: in none */
	u64 place;	/* of the first block, TR_NO_PLACE: none */
	u64 mask;	/* PACKED_MASK: which of its blocks */
	bool decides;
};

static struct decision decision_of(const struct tr_record *record)
{
	struct decision d = { .place = TR_NO_PLACE, .decides = true };

	switch (record->type) {
	case TERRACE_RECORD_MAP:
		d.place = record->new;
		break;
	case TERRACE_RECORD_UNMAP:
		break;
	case TERRACE_RECORD_CLEAN:
		d.place = record->new;
		d.pack_id = record->old;
		break;
	case TERRACE_RECORD_PACKED_MASK:
		d.mask = record->old;
		d.pack_id = record->new;
		break;
	case TERRACE_RECORD_PACKED:
		d.pack_id = record->new;
		break;
	default:
		d.decides = false;
	}
	return d;
}

/* The pack that @record names, 0: none. */
static u64 named_pack(const struct tr_record *record)
{
	switch (record->type) {
	case TERRACE_RECORD_PACK_ADD:
	case TERRACE_RECORD_PACK_DROP:
	case TERRACE_RECORD_INDEX_ADD:
	case TERRACE_RECORD_INDEX_DROP:
		return record->old;
	}
	return decision_of(record).pack_id;
}

bool tr_record_region(const struct tr_record *record, u64 *region)
{
	switch (record->type) {
	case TERRACE_RECORD_DISCARD:
	case TERRACE_RECORD_RESIZE:
		return false;
	case TERRACE_RECORD_PACK_ADD:
	case TERRACE_RECORD_PACK_DROP:
	case TERRACE_RECORD_INDEX_ADD:
	case TERRACE_RECORD_INDEX_DROP:
		*region = record->block;
		return true;
	}
	*region = record->block >> TERRACE_REGION_SHIFT;
	return true;
}

static u32 first_block(const struct tr_record *record)
{
	return record->block % TERRACE_REGION_BLOCKS;
}

u32 tr_delta_room(const struct tr_delta *delta, const struct tr_record *record, bool *high)
{
	struct decision d = decision_of(record);
	u32 missing = 0;

	*high = delta->leaf.high;
	if (d.decides && delta->arrival)
		missing = !tr_leaf_has(&delta->leaf, first_block(record));
	else if (d.decides)
		missing = tr_leaf_missing(&delta->leaf, first_block(record), record->nr);
	if (missing && tr_place_is_high(tr_place_add(d.place, record->nr - 1)))
		*high = true;
	return delta->leaf.nr + missing;
}

static struct tr_delta_pack *find_pack(const struct tr_delta *delta, u64 id)
{
	u32 k;

	for (k = 0; k < delta->nr_packs; k++)
		if (delta->packs[k].pack.id == id)
			return &delta->packs[k];
	return NULL;
}

u32 tr_delta_room_packs(const struct tr_delta *delta, const struct tr_record *record)
{
	u64 id = named_pack(record);

	return delta->nr_packs + (id && !find_pack(delta, id));
}

/* The entry of pack @id; there is room for a new one. */
static struct tr_delta_pack *get_pack(struct tr_delta *delta, u64 id)
{
	struct tr_delta_pack *found = find_pack(delta, id);

	if (found)
		return found;
	found = &delta->packs[delta->nr_packs++];
	memset(found, 0, sizeof(*found));
	found->pack.id = id;
	found->pack.index_place = TR_NO_PLACE;
	return found;
}

static void set_bits(u64 *bits, u32 i, u32 n)
{
	for (; n; i++, n--)
		bits[i / 64] |= 1ull << (i % 64);
}

/* How many blocks from @i on, up to @max, are present (or absent) alike. */
static u32 alike(const u64 *bits, u32 i, u32 max)
{
	u64 flip = bits[i / 64] >> (i % 64) & 1 ? ~0ull : 0;
	u32 end = i + max, at = i;
	u64 differ;

	for (; at < end; at = (at | 63) + 1) {
		differ = (bits[at / 64] ^ flip) >> (at % 64);
		if (differ)
			return min_t(u32, at + __ffs64(differ), end) - i;
	}
	return max;
}

/* Decides those of blocks [@i, @end) that no newer record has touched. */
static u32 decide_run(struct tr_delta *delta, u32 i, u32 end, u64 place, u64 *live, u64 seq)
{
	u32 n, first = i, decided = 0;

	for (; i < end; i += n) {
		n = alike(delta->leaf.present, i, end - i);
		if (tr_leaf_has(&delta->leaf, i))
			continue;
		tr_leaf_set(&delta->leaf, i, n, tr_place_add(place, i - first));
		if (live)
			set_bits(live, i, n);
		if (seq > delta->discard_seq)
			set_bits(delta->kept, i, n);
		decided += n;
	}
	return decided;
}

/* A block at a time: few have bits of their own. */
static u32 decide_mask(struct tr_delta *delta, u32 first, u64 mask, u64 *live, u64 seq)
{
	u32 decided = 0, i;

	for (; mask; mask &= mask - 1) {
		i = first + __ffs64(mask);
		decided += decide_run(delta, i, i + 1, TR_NO_PLACE, live, seq);
	}
	return decided;
}

static int decide_blocks(struct tr_delta *delta, const struct tr_record *record, u64 seq)
{
	struct decision d = decision_of(record);
	u32 first = first_block(record), room, decided;
	struct tr_delta_pack *pack = NULL;
	bool high;

	room = tr_delta_room(delta, record, &high);
	if (room == delta->leaf.nr)
		return 0;	/* all touched: the pack need not be known either */
	if (room > delta->leaf.cap || (high && !delta->leaf.high))
		return -ENOSPC;
	if (d.pack_id)
		pack = get_pack(delta, d.pack_id);
	if (d.mask)
		decided = decide_mask(delta, first, d.mask, pack->pack.live, seq);
	else
		decided = decide_run(delta, first, first + record->nr, d.place,
				     pack ? pack->pack.live : NULL, seq);
	return decided && pack && pack->dropped ? -EUCLEAN : (int)decided;
}

/* --- packs that come and go --------------------------------------------------- */

static int add_pack(struct tr_delta *delta, const struct tr_record *record)
{
	struct tr_delta_pack *pack = get_pack(delta, record->old);

	if (pack->added)
		return -EUCLEAN;
	pack->added = true;
	pack->pack.place = record->new;
	pack->pack.blocks = record->nr;
	pack->pack.header_crc = record->aux;
	return 0;
}

/* What was seen is newer: no block may be live in a pack that is gone. */
static int drop_pack(struct tr_delta *delta, const struct tr_record *record)
{
	struct tr_delta_pack *pack = get_pack(delta, record->old);

	if (pack->added || pack->dropped || tr_pack_live(&pack->pack))
		return -EUCLEAN;
	pack->dropped = true;
	return 0;
}

static int set_index(struct tr_delta *delta, const struct tr_record *record)
{
	struct tr_delta_pack *pack = get_pack(delta, record->old);

	if (pack->indexed)
		return 0;
	pack->indexed = true;
	if (record->type == TERRACE_RECORD_INDEX_ADD) {
		pack->pack.index_place = record->new;
		pack->pack.index_blocks = record->nr;
	}
	return 0;
}

/* --- one block at a time ------------------------------------------------------ */

static u32 rank_of(const struct tr_leaf *leaf, u32 i)
{
	return leaf->rank[i / 64] + hweight64(leaf->present[i / 64] & ((1ull << (i % 64)) - 1));
}

static void swap_places(struct tr_delta *delta, u32 a, u32 b)
{
	swap(delta->leaf.low[a], delta->leaf.low[b]);
	if (delta->leaf.high)
		swap(delta->leaf.high[a], delta->leaf.high[b]);
	swap(delta->arrival[a], delta->arrival[b]);
}

void tr_delta_sort(struct tr_delta *delta)
{
	struct tr_leaf *leaf = &delta->leaf;
	u32 k, rank, sum = 0;

	if (!delta->arrival)
		return;
	for (k = 0; k < TR_LEAF_WORDS; k++) {
		leaf->rank[k] = sum;
		sum += hweight64(leaf->present[k]);
	}
	for (k = 0; k < leaf->nr; k++)
		while ((rank = rank_of(leaf, delta->arrival[k])) != k)
			swap_places(delta, k, rank);	/* one that is right now */
	delta->arrival = NULL;
}

static int arrive(struct tr_delta *delta, u32 i, u64 place)
{
	struct tr_leaf *leaf = &delta->leaf;

	if (leaf->nr == leaf->cap || (!leaf->high && tr_place_is_high(place)))
		return -ENOSPC;
	leaf->low[leaf->nr] = place;
	if (leaf->high)
		leaf->high[leaf->nr] = place >> 32;
	delta->arrival[leaf->nr++] = i;
	set_bits(leaf->present, i, 1);
	return 0;
}

/* Most records by far: one block has got a place. */
static int map_one(struct tr_delta *delta, u32 i, u64 place, u64 seq)
{
	bool decides = !tr_leaf_has(&delta->leaf, i);

	if (decides && (delta->arrival ? arrive(delta, i, place) :
					 tr_leaf_set(&delta->leaf, i, 1, place)))
		return -ENOSPC;
	if (decides && seq > delta->discard_seq)
		set_bits(delta->kept, i, 1);
	delta->newest_seq = max(delta->newest_seq, seq);
	return decides;
}

int tr_delta_apply(struct tr_delta *delta, const struct tr_record *record, u64 seq)
{
	int decided = 0;

	if (record->type == TERRACE_RECORD_MAP && record->nr == 1)
		return map_one(delta, first_block(record), record->new, seq);
	if (record->type != TERRACE_RECORD_DISCARD)
		tr_delta_sort(delta);
	if (tr_delta_room_packs(delta, record) > delta->cap_packs)
		return -ENOSPC;
	switch (record->type) {
	case TERRACE_RECORD_MAP:
	case TERRACE_RECORD_UNMAP:
	case TERRACE_RECORD_CLEAN:
	case TERRACE_RECORD_PACKED:
	case TERRACE_RECORD_PACKED_MASK:
		decided = decide_blocks(delta, record, seq);
		break;
	case TERRACE_RECORD_PACK_ADD:
		decided = add_pack(delta, record);
		break;
	case TERRACE_RECORD_PACK_DROP:
		decided = drop_pack(delta, record);
		break;
	case TERRACE_RECORD_INDEX_ADD:
	case TERRACE_RECORD_INDEX_DROP:
		decided = set_index(delta, record);
		break;
	case TERRACE_RECORD_DISCARD:
		/* One that was written again stands for an older record. */
		delta->discard_seq = max(delta->discard_seq, record->old ?: seq);
		break;
	case TERRACE_RECORD_RESIZE:
		return 0;
	default:
		return -EOPNOTSUPP;
	}
	if (decided >= 0)
		delta->newest_seq = max(delta->newest_seq, seq);
	return decided;
}

/* --- overlay --------------------------------------------------------------- */

u32 tr_delta_overlay_room(const struct tr_delta *delta, const struct tr_leaf *leaf, bool *high)
{
	const struct tr_leaf *touched = &delta->leaf;
	u32 i, rank = 0, nr = leaf->nr;
	u64 place;

	*high = leaf->high || tr_leaf_needs_high(touched);
	for (i = tr_leaf_next(touched, 0); i < TERRACE_REGION_BLOCKS;
	     i = tr_leaf_next(touched, i + 1)) {
		place = tr_leaf_at(touched, rank++);
		if (tr_leaf_has(leaf, i))
			nr -= place == TR_NO_PLACE;
		else
			nr += place != TR_NO_PLACE;
	}
	return nr;
}

/* Lays the unmapped (or the mapped) blocks of @touched over @leaf. */
static int overlay_pass(const struct tr_leaf *touched, struct tr_leaf *leaf, bool mapped)
{
	u32 i, n, present;
	bool unmapped;
	u64 place;
	int err;

	for (i = tr_leaf_next(touched, 0); i < TERRACE_REGION_BLOCKS;
	     i = tr_leaf_next(touched, i + n)) {
		present = alike(touched->present, i, TERRACE_REGION_BLOCKS - i);
		n = tr_leaf_run(touched, i, present, &place);
		unmapped = place == TR_NO_PLACE;
		if (unmapped == mapped)
			continue;
		if (unmapped) {
			tr_leaf_clear(leaf, i, n);
			continue;
		}
		err = tr_leaf_set(leaf, i, n, place);
		if (err)
			return err;
	}
	return 0;
}

/* The page's entry of a pack of the delta, NULL: it has none. */
static const struct tr_pack *on_page(const struct tr_packs *packs, u64 id)
{
	u32 k = tr_packs_by_id(packs, id);

	return k == TR_NO_PACK ? NULL : &packs->pack[k];
}

/* No block that is live on the page in a pack since gone was left behind. */
static bool emptied(const struct tr_delta *delta, const struct tr_pack *pack)
{
	u32 w;

	for (w = 0; w < TR_LEAF_WORDS; w++)
		if (pack->live[w] & ~delta->leaf.present[w])
			return false;
	return true;
}

int tr_delta_overlay_packs(const struct tr_delta *delta, const struct tr_packs *packs)
{
	u32 k, nr = packs ? packs->nr : 0;

	for (k = 0; k < delta->nr_packs; k++) {
		const struct tr_delta_pack *touched = &delta->packs[k];
		const struct tr_pack *pack = on_page(packs, touched->pack.id);

		if (touched->dropped) {
			if (pack && !emptied(delta, pack))
				return -EUCLEAN;
			nr -= !!pack;
		} else if (!pack) {
			if (!touched->added)
				return -EUCLEAN;
			nr++;
		}
	}
	return nr <= TERRACE_PACK_SLOTS ? (int)nr : -EUCLEAN;
}

/* Touched blocks are live where the delta says, and nowhere else. */
static void overlay_live(const struct tr_delta *delta, struct tr_packs *packs)
{
	u32 k, w;

	for (k = 0; k < packs->nr; k++)
		for (w = 0; w < TR_LEAF_WORDS; w++)
			packs->pack[k].live[w] &= ~delta->leaf.present[w];
}

static void overlay_pack(const struct tr_delta_pack *touched, struct tr_packs *packs)
{
	u32 k = tr_packs_by_id(packs, touched->pack.id), w;
	struct tr_pack *pack;

	if (k == TR_NO_PACK) {
		tr_packs_add(packs, &touched->pack);
		return;
	}
	pack = &packs->pack[k];
	for (w = 0; w < TR_LEAF_WORDS; w++)
		pack->live[w] |= touched->pack.live[w];
	if (touched->indexed) {
		pack->index_place = touched->pack.index_place;
		pack->index_blocks = touched->pack.index_blocks;
	}
}

static void overlay_packs(const struct tr_delta *delta, struct tr_packs *packs)
{
	u32 k;

	overlay_live(delta, packs);
	for (k = 0; k < delta->nr_packs; k++) /* first: their room is counted on */
		if (delta->packs[k].dropped)
			tr_packs_drop(packs, delta->packs[k].pack.id);
	for (k = 0; k < delta->nr_packs; k++)
		if (!delta->packs[k].dropped)
			overlay_pack(&delta->packs[k], packs);
}

int tr_delta_overlay(const struct tr_delta *delta, struct tr_leaf *leaf, struct tr_packs *packs)
{
	int nr_packs = tr_delta_overlay_packs(delta, packs);
	bool high;

	if (nr_packs < 0)
		return nr_packs;
	if (nr_packs > (packs ? packs->cap : 0))
		return -ENOSPC;
	if (tr_delta_overlay_room(delta, leaf, &high) > leaf->cap || (high && !leaf->high))
		return -ENOSPC;
	if (packs)
		overlay_packs(delta, packs);
	overlay_pass(&delta->leaf, leaf, false); /* first: its room is counted on */
	return overlay_pass(&delta->leaf, leaf, true);
}

/* --- space ----------------------------------------------------------------- */

static void space_range(u64 place, u32 nr, bool used, tr_space_fn set, void *ctx)
{
	u64 index = tr_place_index(place);
	u32 n, tier = tr_place_tier(place);

	if (place == TR_NO_PLACE)
		return;
	for (; nr; index += n, nr -= n) {
		n = min_t(u32, nr, TERRACE_CHUNK_BLOCKS - (index & (TERRACE_CHUNK_BLOCKS - 1)));
		set(tier, index, n, used, ctx);
	}
}

void tr_record_space(const struct tr_record *record, tr_space_fn set, void *ctx)
{
	switch (record->type) {
	case TERRACE_RECORD_MAP:
		space_range(record->old, record->nr, false, set, ctx);
		space_range(record->new, record->nr, true, set, ctx);
		break;
	case TERRACE_RECORD_UNMAP:
	case TERRACE_RECORD_PACKED:
	case TERRACE_RECORD_HOME_SET:
		space_range(record->old, record->nr, false, set, ctx);
		break;
	case TERRACE_RECORD_PACK_DROP:
	case TERRACE_RECORD_INDEX_DROP:
		space_range(record->new, record->nr, false, set, ctx);
		break;
	case TERRACE_RECORD_CLEAN:
		if (record->aux & TERRACE_CLEAN_KEPT)
			break;
		fallthrough;
	case TERRACE_RECORD_PACK_ADD:
	case TERRACE_RECORD_INDEX_ADD:
		space_range(record->new, record->nr, true, set, ctx);
		break;
	}
}
