/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Did moves repay?  A sample of the blocks moved lately, and what became of them.
 *
 * A block that went up repays with every read it gets on the fast tier; one that went down
 * and is read again was moved in vain.  Both are counted over a sample: blocks whose hash is
 * below a threshold, in a table of fixed size, so the counts are scaled by the sampling rate.
 * A newer block takes the slot of an older one: an epoch's moves are what matters.
 */
#ifndef DECIDE_REPAY_H
#define DECIDE_REPAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum repay_way {
	REPAY_UP = 1,
	REPAY_DOWN,
};

struct repay_slot {
	uint64_t block : 48;
	uint64_t way : 2;
	uint64_t seen : 1;	/* read since it moved */
	uint64_t epoch : 13;	/* when it moved */
};

struct repay_counts {
	double up;		/* blocks moved */
	double up_hits;		/* reads of them since */
	double down;
	double down_reads;	/* blocks that were read again within some epochs, each counted once */
};

struct repay {
	struct repay_slot *slots;
	uint64_t mask;
	uint64_t threshold;	/* hashes below it are in the sample */
	struct repay_counts counts;
	uint32_t epoch;
};

size_t repay_bytes(uint32_t slots);

/* @slots: a power of two; @rate: share of the blocks in the sample, (0, 1].  -EINVAL, -ENOMEM. */
int repay_init(struct repay *r, uint32_t slots, double rate, void *mem, size_t bytes);

void repay_moved(struct repay *r, uint64_t block, enum repay_way way);
/*
 * @stands_for: reads of what went down, of which only a sample is told.  @lately: epochs after which they say nothing against a
 * move any more, 4096 at most.
 */
void repay_read(struct repay *r, uint64_t block, double stands_for, uint32_t lately);

/* What happened since the last call, which ends an epoch; what went up still repays in the next. */
struct repay_counts repay_take(struct repay *r);

#endif
