/* SPDX-License-Identifier: GPL-2.0 */
/* Inside of pack_cache.c, stretch.c, unpack.c, cold.c and promotion.c. */
#ifndef DM_TERRACE_PACKING_H
#define DM_TERRACE_PACKING_H

#include <linux/hashtable.h>
#include <linux/shrinker.h>

#include "packs.h"

#define TR_STRETCH_BYTES	(128u << 10)
#define TR_STRETCHES_HELD	10		/* 1 MiB that does not shrink, anywhere */
#define TR_STRETCH_HASH_BITS	6

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
	DECLARE_HASHTABLE(stretch_table, TR_STRETCH_HASH_BITS);
	struct list_head stretches, idle_stretches;
	u32 nr_stretches, nr_idle_stretches;
	struct tr_promotion *promotion;
#ifdef TR_SHRINKER_OWN
	struct shrinker own;
#endif
	struct shrinker *shrinker;	/* of the indexes */
};

void tr_indexes_init(struct tr_packing *packing);

/* --- stretch.c: large reads of packs, piece by aligned piece ------------------------- */

struct tr_stretch;

struct tr_stretches {			/* that a reader uses */
	u32 first, nr;
	struct tr_stretch *at[TR_STRETCHES_HELD];
};

/*
 * Asks the drive for bytes [@from, @to) of @ref's run, and @ahead more: for what is not there
 * and not asked for by others. The caller counts in the epoch of the pack's tier. @held gets
 * those that could be had; wait, and put, when done. Sleeps for memory only.
 */
void tr_stretches_get(struct terrace *tr, const struct tr_pack_ref *ref, u32 from, u32 to,
		      u32 ahead, struct tr_stretches *held);
void tr_stretches_wait(const struct tr_stretches *held);
/* These bytes of the run, if they were read: where they lie, or put together in @aside. */
const void *tr_stretches_data(const struct tr_stretches *held, u32 offset, u32 length, void *aside);
/* @passed: who reads in order needs nothing in front of this byte any more. */
void tr_stretches_put(struct terrace *tr, struct tr_stretches *held, u32 passed);
u64 tr_stretches_bytes(const struct tr_packing *packing);
void tr_stretches_init(struct tr_packing *packing);

/* A reader's work area. */
struct tr_unpacker {
	struct list_head list;
	struct tr_codec *codec;
	void *stored, *cluster;
	u32 from, to;			/* bytes of the run that are in stored */
	u64 read_bytes, decode_ns;
};

/* Keeps it in the promotion cache, unless the blocks have left the pack. In a softirq as well. */
void tr_unpack_keep(struct terrace *tr, const struct tr_pack_ref *ref, const u16 *block, u32 nr,
		    bool plain, const void *data, u32 bytes);
/* A block to the beginning of @bio. */
void tr_unpack_copy(struct bio *bio, const void *data);

#endif
