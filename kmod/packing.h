/* SPDX-License-Identifier: GPL-2.0 */
/* Inside of pack_cache.c and unpack.c. */
#ifndef DM_TERRACE_PACKING_H
#define DM_TERRACE_PACKING_H

#include "packs.h"

struct tr_packing {
	spinlock_t lock;		/* all of these; never taken with interrupts off */
	struct xarray indexes;		/* pack id -> tr_index */
	struct list_head lru;		/* of them */
	u64 bytes;
	struct list_head idle;		/* unpackers */
	u32 nr_unpackers, max_unpackers;
	wait_queue_head_t wait;
	struct tr_promotion *promotion;
};

#endif
