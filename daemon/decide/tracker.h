/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Clock tracker: which blocks were used lately, in bounded memory (PrismDB).
 *
 * A bounded share of the volume's blocks carries a clock value of a few bits.
 * A block enters with 0; its next access sets the maximum.  When the tracker is
 * full, a hand sweeps the table, lowering values, and the first block it meets
 * at 0 leaves.  One access is thus not enough to look popular: a scan enters
 * with 0 and leaves with 0.
 *
 * A block is tracked under its generation; an access under a newer generation
 * starts again at 0 (recycled space starts cold).
 *
 * Memory is given by the caller: tracker_bytes() says how much.  One entry is
 * eight bytes (block 40 bits, generation 18, value 4) in an open-addressing
 * table at most 3/4 full.
 */
#ifndef DECIDE_TRACKER_H
#define DECIDE_TRACKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decide/tunable.h"

#define TRACKER_MAX_BITS	4
#define TRACKER_VALUES		(1u << TRACKER_MAX_BITS)
#define TRACKER_BLOCK_LIMIT	(1ull << 40)
#define TRACKER_GENERATION_MASK	((1u << 18) - 1)

struct tracker_tunables {
	uint32_t clock_bits;
	double tracked_share;
};

extern const struct tunable_table tracker_tunable_table;

/* Told about each change of a block's value; NO_VALUE = not tracked. */
#define TRACKER_NO_VALUE	(-1)
typedef void (*tracker_watch_fn)(void *ctx, uint64_t block, int from, int to);

struct tracker {
	uint64_t *slots;
	uint64_t mask;			/* table size - 1 */
	uint64_t limit;			/* most blocks tracked at once */
	uint64_t count;
	uint64_t hand;
	uint32_t max_value;
	uint64_t population[TRACKER_VALUES];	/* blocks per clock value */
	tracker_watch_fn watch;
	void *watch_ctx;
};

/* Blocks tracked at most on a volume of @volume_blocks. */
uint64_t tracker_limit(const struct tracker_tunables *t, uint64_t volume_blocks);
size_t tracker_bytes(uint64_t limit);

/* @mem: at least tracker_bytes(@limit), 8-aligned, owned by the caller.  -EINVAL, -ENOMEM. */
int tracker_init(struct tracker *tr, const struct tracker_tunables *t,
		 uint64_t limit, void *mem, size_t bytes);

/* Keeps buckets or other summaries in step with the values. */
void tracker_watch(struct tracker *tr, tracker_watch_fn watch, void *ctx);

/* Records an access; returns the block's value afterwards, -ERANGE for a block beyond 2^40. */
int tracker_touch(struct tracker *tr, uint64_t block, uint32_t generation);

/* The block's value, or TRACKER_NO_VALUE when untracked or of another generation. */
int tracker_value(const struct tracker *tr, uint64_t block, uint32_t generation);

/* Drops one block, whatever its generation; true if it was tracked. */
bool tracker_forget(struct tracker *tr, uint64_t block);

#endif
