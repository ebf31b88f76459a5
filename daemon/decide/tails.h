/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tails: the ends of tables, where their index, filter and footer are.  They are small, and every query of a cold table
 * reads them before it reads one block of data; so they stay fast, as many as a bounded share of the fast tier
 * holds.  Beyond it the oldest goes.
 *
 * Ranges of blocks that do not overlap, sorted; bounded in number, too.
 */
#ifndef DECIDE_TAILS_H
#define DECIDE_TAILS_H

#include <stdbool.h>
#include <stdint.h>

#include "decide/upmask.h"

#define TAILS_MAX	8192u

struct tail {
	uint64_t first, end;
	uint64_t serial;
};

struct tails {
	uint32_t nr;
	uint64_t blocks;
	uint64_t serial;
	uint64_t left;		/* blocks that had to make room, ever */
	struct tail tail[TAILS_MAX];
};

/* What overlaps goes first: the space is used anew. */
void tails_add(struct tails *t, uint64_t first, uint64_t nr, uint64_t limit);
/* Takes back every tail that has a block in the range. */
void tails_drop(struct tails *t, uint64_t first, uint64_t nr);
/* Takes back just this range: what is left of those that it cuts stays. */
void tails_cut(struct tails *t, uint64_t first, uint64_t nr);
/* Those go that were added when `serial` was @serial, or before. */
void tails_older(struct tails *t, uint64_t serial);
/* The oldest go until @limit blocks are left. */
void tails_limit(struct tails *t, uint64_t limit);

bool tails_have(const struct tails *t, uint64_t block);
/* Has any a block in the range? */
bool tails_meet(const struct tails *t, uint64_t first, uint64_t nr);
void tails_mask(const struct tails *t, uint64_t region, struct upmask *out);

/* Where the tail of a file of @size begins, by its share of it; in whole blocks. */
uint64_t tails_begin(uint64_t size, double share);

#endif
