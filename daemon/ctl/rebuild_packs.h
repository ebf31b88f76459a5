/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The packs of a region in the table of blocks, and one pack from its shelf.
 * Numbers count from 1, as in rb_pack().
 */
#ifndef TERRACE_CTL_REBUILD_PACKS_H
#define TERRACE_CTL_REBUILD_PACKS_H

#include "core/pack.h"
#include "rebuild.h"

/* The number of the pack with ref->id, which is added if it is not there. What
 * was known of it stays; what was not is taken from @ref. 0: too many packs.
 */
u32 rb_pack_number(struct rebuild *rb, struct rb_region *region, const struct tr_pack *ref);
u32 rb_pack_by_id(const struct rb_region *region, u64 id);

/* Of the surest block that is live in it; RB_LOST: none is. */
enum rb_state rb_pack_state(const struct rb_region *region, u32 number);

/* It is gone: its blocks are lost, for that reason, but for clean slots. */
void rb_pack_lose(struct rb_region *region, u32 number, enum rb_source source);
void rb_pack_lose_block(u64 *at, enum rb_source source);
void rb_pack_forget_index(struct tr_pack *ref);

/* ---- from the shelf ------------------------------------------------------------------ */

struct rb_run {
	u8 *bytes;		/* as long as the run; what cannot be read is zero */
	u8 *header;		/* proven */
	bool from_copy;		/* … and the one in the run is damaged */
};

/* 0; -errno: neither header nor copy of it is that pack's. Then too, end with
 * rb_run_close().
 */
int rb_run_open(const struct rebuild *rb, u64 region, const struct tr_pack *ref, struct rb_run *run);
void rb_run_close(struct rb_run *run);

/* Have the bytes that block @i of the region needs their CRCs? */
bool rb_run_block_good(const struct rb_run *run, u32 i);

/*
 * Reads every pack that a block is live in. What has not its CRCs is lost, and
 * at last what is more than a region's page can name. @mend: a header that is
 * damaged will be written again from its copy.
 */
void rb_prove_packs(struct rebuild *rb, bool mend);

/* Writes those headers. 0 or -errno. */
int rb_mend_packs(struct rebuild *rb);

#endif
