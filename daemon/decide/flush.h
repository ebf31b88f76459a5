/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Promotion by flush (HotRAP): what becomes of a batch of slow-read blocks when the
 * promotion cache is full.
 *
 * The hot ones are worth a promotion when they fill at least half a run; fewer go
 * back into the cache, to meet more of their kind, since many tiny promotions
 * cost more than they give.  The cold ones leave the cache either way.
 */
#ifndef DECIDE_FLUSH_H
#define DECIDE_FLUSH_H

#include <stdint.h>

#include "decide/tunable.h"

struct flush_tunables {
	uint32_t run_blocks;
	double hot_fraction;
	double neighbours;
	uint32_t lonely_batches;
};

extern const struct tunable_table flush_tunable_table;

enum flush_verdict {
	FLUSH_NOTHING,		/* none hot: drop the batch */
	FLUSH_KEEP,		/* hot ones back into the cache */
	FLUSH_PROMOTE,		/* hot ones go up */
};

/* Hot blocks from which on a batch of so many goes up. */
double flush_enough(const struct flush_tunables *t, uint32_t batch_blocks);

/* @batch_blocks: size of the batch; a batch shorter than a run is judged by its own size. */
enum flush_verdict flush_decide(const struct flush_tunables *t,
				uint32_t batch_blocks, uint32_t hot_blocks);

#endif
