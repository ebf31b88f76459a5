// SPDX-License-Identifier: GPL-2.0
/*
 * Replay of one region's records, newest first, into a delta; laying the
 * delta over the region's page; and what records do to space. See replay.h.
 */
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include "replay.h"

/* The place that @record gives its first block. */
static u64 decided_place(const struct tr_record *record)
{
	return record->type == TERRACE_RECORD_MAP ? record->new : TR_NO_PLACE;
}

static bool decides_blocks(const struct tr_record *record)
{
	return record->type == TERRACE_RECORD_MAP || record->type == TERRACE_RECORD_UNMAP;
}

static u32 first_block(const struct tr_record *record)
{
	return record->block % TERRACE_REGION_BLOCKS;
}

u32 tr_delta_room(const struct tr_delta *delta, const struct tr_record *record, bool *high)
{
	u32 missing = 0;

	*high = delta->leaf.high;
	if (decides_blocks(record))
		missing = tr_leaf_missing(&delta->leaf, first_block(record), record->nr);
	if (missing && tr_place_is_high(tr_place_add(decided_place(record), record->nr - 1)))
		*high = true;
	return delta->leaf.nr + missing;
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

/* Decides those of the record's blocks that no newer record has touched. */
static int decide_blocks(struct tr_delta *delta, const struct tr_record *record, u64 seq)
{
	u32 first = first_block(record), end = first + record->nr;
	u32 i, n, room, decided = 0;
	bool high;

	room = tr_delta_room(delta, record, &high);
	if (room == delta->leaf.nr)
		return 0;
	if (room > delta->leaf.cap || (high && !delta->leaf.high))
		return -ENOSPC;
	for (i = first; i < end; i += n) {
		n = alike(delta->leaf.present, i, end - i);
		if (tr_leaf_has(&delta->leaf, i))
			continue;
		tr_leaf_set(&delta->leaf, i, n, tr_place_add(decided_place(record), i - first));
		if (seq > delta->discard_seq)
			set_bits(delta->kept, i, n);
		decided += n;
	}
	return decided;
}

int tr_delta_apply(struct tr_delta *delta, const struct tr_record *record, u64 seq)
{
	int decided = 0;

	switch (record->type) {
	case TERRACE_RECORD_MAP:
	case TERRACE_RECORD_UNMAP:
		decided = decide_blocks(delta, record, seq);
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

int tr_delta_overlay(const struct tr_delta *delta, struct tr_leaf *leaf)
{
	bool high;

	if (tr_delta_overlay_room(delta, leaf, &high) > leaf->cap || (high && !leaf->high))
		return -ENOSPC;
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
	case TERRACE_RECORD_HOME_SET:
		space_range(record->old, record->nr, false, set, ctx);
		break;
	case TERRACE_RECORD_PACK_DROP:
		space_range(record->new, record->nr, false, set, ctx);
		break;
	case TERRACE_RECORD_PACK_ADD:
	case TERRACE_RECORD_CLEAN:
		space_range(record->new, record->nr, true, set, ctx);
		break;
	}
}
