/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How large a fast tier the sample of the miniatures (miniature.h) needs, to be filled by the same heat as the volume's.
 *
 * A sample of a few thousand blocks has some per cent more or fewer hot ones than its share, by chance.  Where a hot set just fits
 * the fast tier that many per cent of the accesses are wrongly foretold.  A count of uses costs far less than a miniature; so they are counted
 * in a sample many times as wide, and the few of the miniature get room for as many as are as hot as the volume's fast_blocks hottest:
 *
 *	uses	wide sample	few	a fast tier of 10,000 of 200,000 blocks (5 %)
 *	4 ...	4 %		5 %	all are hotter than the 5 % hottest
 *	1 - 3	2 %		3 %	half of the 2 % are: of the 3 % half as well
 *	0	94 %		92 %	6.5 % of the few
 *
 * Both hear of the same accesses and forget at the same time, so that the noise of small counts is the same in both.
 * Uses are of lately: they are halved each time the wide sample has been used as often as it has blocks.
 */
#ifndef DECIDE_HEADCOUNT_H
#define DECIDE_HEADCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEADCOUNT_LEVELS	256u

/* One block of every 2^shift: the few are those of miniature_block(), and each is in the wide sample. */
struct headcount_sample {
	uint8_t *uses;
	uint32_t blocks, shift;
	uint32_t used[HEADCOUNT_LEVELS];	/* blocks, by uses */
};

struct headcount {
	uint64_t volume_blocks, heard;
	struct headcount_sample wide, few;
};

size_t headcount_bytes(uint64_t volume_blocks, uint32_t wide_shift, uint32_t few_shift);

/* @mem: headcount_bytes(), the caller's.  -EINVAL: the wide sample is not the wider one; -ENOMEM. */
int headcount_init(struct headcount *h, uint64_t volume_blocks, uint32_t wide_shift, uint32_t few_shift, void *mem,
		   size_t bytes);

/* @few: miniature_block() of @block's group.  True: uses were halved, and it is time to ask anew. */
bool headcount_access(struct headcount *h, uint64_t block, uint64_t few);

/* It has been discarded. */
void headcount_forget(struct headcount *h, uint64_t first, uint64_t count);

/* Blocks of the few that are as hot as the @fast_blocks hottest of the volume. */
double headcount_room(const struct headcount *h, double fast_blocks);

#endif
