/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A volume without drives: where each block is, what moves cost.
 *
 * Every block is fast and dirty, fast and clean (its packed original still counts), or packed.
 * Packs are counted in blocks, compressed by a fixed ratio.  Moves follow the rules of the
 * module: `append` writes the newly cold blocks as one more pack, `merge` rewrites the region's packs,
 * clean slots are dropped for free, a write to a clean or packed block leaves garbage.
 */
#ifndef REPLAY_VOLUME_H
#define REPLAY_VOLUME_H

#include <stdbool.h>
#include <stdint.h>

#include "decide/msc.h"
#include "decide/region.h"
#include "decide/upmask.h"

enum place {
	PLACE_PACKED,
	PLACE_DIRTY,
	PLACE_CLEAN,
};

struct volume_region {
	uint32_t dirty;
	uint32_t clean;
	uint32_t packs;
	double packed;		/* shelf room in blocks, garbage included */
	double garbage;
	uint64_t changed;	/* operation count at its last move or write */
	uint32_t listed_at;	/* in fast_regions, + 1 */
};

struct volume {
	uint64_t blocks;
	uint64_t regions;
	uint64_t fast_total;
	uint64_t fast_used;
	double ratio;		/* compressed / plain */
	uint8_t *place;
	struct volume_region *region;
	uint32_t *fast_regions;	/* those with fast blocks, in no order */
	uint32_t fast_region_count;
	uint64_t operations;
	/* what it cost, in blocks */
	uint64_t fast_hits;
	uint64_t reads;
	uint64_t promoted;
	uint64_t demoted;
	uint64_t dropped;	/* clean slots */
	double slow_written;
	double slow_read;
	uint64_t overflowed;	/* writes that found no slot */
};

/* Everything packed, the fast tier empty. */
bool volume_init(struct volume *v, uint64_t blocks, uint64_t fast, double ratio);
void volume_exit(struct volume *v);

/* True when served by the fast tier. */
bool volume_read(struct volume *v, uint64_t block);
bool volume_write(struct volume *v, uint64_t block);

/* A promotion as a clean slot; false without room. */
bool volume_raise(struct volume *v, uint64_t block);

void volume_view(const struct volume *v, uint64_t region, struct region_view *view);
void volume_masks(const struct volume *v, uint64_t region, struct upmask_input *in);

/* Makes it so: fast blocks outside @up go down, packed ones inside come up (merge only). */
void volume_move(struct volume *v, uint64_t region, const struct upmask *up, enum move_mode mode);

#endif
