/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replay, newest record first. The newest record of a block decides; older
 * ones are skipped without being looked at twice. Regions are independent,
 * so any number of CPUs may replay at once, each its own regions.
 *
 * The outcome for one region is a delta: for each touched block its place,
 * or TR_NO_PLACE for "unmapped since". It is laid over the region's map page
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

#include "leaf.h"
#include "journal_block.h"

struct tr_delta {
	struct tr_leaf leaf;	/* present = touched; value TR_NO_PLACE = unmapped */
	u64 newest_seq;		/* of the records seen; 0: none */
	u64 discard_seq;	/* newest range discard over the region; 0: none */
	u64 kept[TR_LEAF_WORDS]; /* touched by records newer than discard_seq */
};

/* Room (the whole, not what is missing) that delta->leaf needs before
 * tr_delta_apply(record); @high: whether it needs high bytes.
 */
u32 tr_delta_room(const struct tr_delta *delta, const struct tr_record *record, bool *high);

/*
 * Applies @record (number @seq), whose blocks lie in this region, coming
 * from the newest to the oldest. Blocks already touched are skipped. Returns
 * how many blocks it decided, -ENOSPC (no room, nothing changed), or
 * -EOPNOTSUPP for record types that a delta cannot hold yet (packs, homes,
 * clean copies). For a DISCARD record the caller has checked that the region
 * is in its range; one with `old` set was written again and stands for record
 * number `old`.
 */
int tr_delta_apply(struct tr_delta *delta, const struct tr_record *record, u64 seq);

/*
 * Lays @delta over @leaf, the region's map page as loaded, whose records up
 * to @page_seq it already contains. @leaf needs room for
 * tr_delta_overlay_room() places in all; -ENOSPC otherwise, and then nothing
 * has changed. Records of the delta that the page already contains do no
 * harm: the newest record of each block decides in both. Discards are not resolved here: when
 * delta->discard_seq > page_seq the caller then takes every present block that
 * is not in @kept away, with UNMAP records of its own.
 */
u32 tr_delta_overlay_room(const struct tr_delta *delta, const struct tr_leaf *leaf, bool *high);
int tr_delta_overlay(const struct tr_delta *delta, struct tr_leaf *leaf);

/* What a record does to one chunk of one tier: calls @set(index, n, used, ctx)
 * for `old` (used = false) and then `new` (used = true), cut at chunk borders.
 * Types that move no places call nothing.
 */
typedef void (*tr_space_fn)(u32 tier, u64 index, u32 n, bool used, void *ctx);
void tr_record_space(const struct tr_record *record, tr_space_fn set, void *ctx);

#endif
