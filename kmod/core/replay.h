/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replay, newest record first. The newest record of a block decides; older
 * ones are skipped without being looked at twice. Regions are independent,
 * so any number of CPUs may replay at once, each its own regions.
 *
 * The outcome for one region is a delta: for each touched block its place,
 * or TR_NO_PLACE for "no place since", and the pack it is live in, if any; and
 * which packs came and went. It is laid over the region's map page
 * when that is loaded, which may be much later.
 *
 * A range discard names regions only; the places it frees are freed by UNMAP
 * records written when the region is next loaded. So what is older than a
 * range discard is still collected (it names places that must be freed), and
 * @kept remembers which blocks are newer than the discard and stay.
 *
 * Space is replayed apart, oldest first: every record frees `old` and takes
 * `new`, so the last word on a place is the last record that names it.
 */
#ifndef TERRACE_CORE_REPLAY_H
#define TERRACE_CORE_REPLAY_H

#include "pack_list.h"
#include "journal_block.h"

/* A pack that a record named. Its live blocks are touched ones. */
struct tr_delta_pack {
	struct tr_pack pack;
	bool added;		/* its PACK_ADD was seen: blocks, place, CRC are known */
	bool dropped;
	bool indexed;		/* the newest INDEX_ADD or INDEX_DROP was seen */
};

struct tr_delta {
	struct tr_leaf leaf;	/* present = touched; value TR_NO_PLACE = no place */
	u64 newest_seq;		/* of the records seen; 0: none */
	u64 discard_seq;	/* newest range discard over the region; 0: none */
	u64 kept[TR_LEAF_WORDS]; /* touched by records newer than discard_seq */
	struct tr_delta_pack *packs; /* the caller's array */
	u32 nr_packs, cap_packs;
	/* The caller's, with room for leaf.cap: as long as only single blocks have
	 * come, the leaf's places stand in the order in which they came, and this
	 * says whose they are. NULL: in the order of blocks. Putting them in order
	 * once is much less work than making room for each.
	 */
	u16 *arrival;
};

/* Room (the whole, not what is missing) that delta->leaf needs before
 * tr_delta_apply(record); @high: whether it needs high bytes.
 */
u32 tr_delta_room(const struct tr_delta *delta, const struct tr_record *record, bool *high);
/* Room (the whole) that delta->packs needs before it. */
u32 tr_delta_room_packs(const struct tr_delta *delta, const struct tr_record *record);
/* Puts the places in order, once all records are in: before anything else is
 * asked of the leaf. Forgets @arrival.
 */
void tr_delta_sort(struct tr_delta *delta);
/* The region that @record is for; false: none or several (DISCARD, RESIZE). */
bool tr_record_region(const struct tr_record *record, u64 *region);

/*
 * Applies @record (number @seq), whose blocks lie in this region, coming
 * from the newest to the oldest. Blocks already touched are skipped. Returns
 * how many blocks it decided, -ENOSPC (no room in leaf or packs, nothing
 * changed), -EUCLEAN (blocks live in a pack that is gone: no order of records
 * that was ever written), or -EOPNOTSUPP for record types that a delta cannot
 * hold yet (homes). For a DISCARD record the caller has checked that the region
 * is in its range; one with `old` set was written again and stands for record
 * number `old`.
 */
int tr_delta_apply(struct tr_delta *delta, const struct tr_record *record, u64 seq);

/*
 * Lays @delta over @leaf and @packs, the region's map page as loaded, whose
 * records up to @page_seq it already contains. @leaf needs room for
 * tr_delta_overlay_room() places in all, @packs (NULL: there are none) for
 * tr_delta_overlay_packs() packs; -ENOSPC otherwise, and then nothing has
 * changed. -EUCLEAN: page and journal contradict each other on packs. Records
 * of the delta that the page already contains do no harm: the newest record of
 * each block decides in both.
 *
 * Discards are not resolved here: when delta->discard_seq > page_seq the caller
 * then takes every block that is not in @kept away, be it at a place or live in
 * a pack, with UNMAP records of its own. Nor are packs that are left without
 * live blocks: the caller drops them, with PACK_DROP records.
 */
u32 tr_delta_overlay_room(const struct tr_delta *delta, const struct tr_leaf *leaf, bool *high);
int tr_delta_overlay_packs(const struct tr_delta *delta, const struct tr_packs *packs);
int tr_delta_overlay(const struct tr_delta *delta, struct tr_leaf *leaf, struct tr_packs *packs);

/* What a record does to one chunk of one tier: calls @set(index, n, used, ctx)
 * for `old` (used = false) and then `new` (used = true), cut at chunk borders.
 * Types that move no places call nothing.
 */
typedef void (*tr_space_fn)(u32 tier, u64 index, u32 n, bool used, void *ctx);
void tr_record_space(const struct tr_record *record, tr_space_fn set, void *ctx);

#endif
