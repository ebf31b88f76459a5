/* SPDX-License-Identifier: GPL-2.0 */
/* Inside of pack_cache.c, unpack.c, cold.c and promotion.c. */
#ifndef DM_TERRACE_PACKING_H
#define DM_TERRACE_PACKING_H

#include <linux/shrinker.h>

#include "packs.h"

struct tr_packing {
	struct terrace *tr;
	spinlock_t lock;		/* all of these; never taken with interrupts off. Indexes are
					 * found without it, under RCU
					 */
	struct xarray indexes;		/* pack id -> tr_index */
	struct list_head lru;		/* of them: the oldest first, for eviction to look at */
	u64 bytes;
	struct list_head idle;		/* unpackers */
	u32 nr_unpackers, max_unpackers;
	wait_queue_head_t wait;
	struct tr_promotion *promotion;
#ifdef TR_SHRINKER_OWN
	struct shrinker own;
#endif
	struct shrinker *shrinker;	/* of the indexes */
};

void tr_indexes_init(struct tr_packing *packing);

/* A reader's work area. */
struct tr_unpacker {
	struct list_head list;
	struct tr_codec *codec;
	void *stored, *cluster;
	u32 from, to;			/* bytes of the run that are in stored */
	u64 read_bytes;
};

/* Keeps it in the promotion cache, unless the blocks have left the pack. Sleeps. */
void tr_unpack_keep(struct terrace *tr, const struct tr_pack_ref *ref, const u16 *block, u32 nr,
		    bool plain, const void *data, u32 bytes);
/* A block to the beginning of @bio. */
void tr_unpack_copy(struct bio *bio, const void *data);

#endif
