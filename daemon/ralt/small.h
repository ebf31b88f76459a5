/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RALT without files: so few blocks that the sample holds them all.  Scores, counters, Algorithm 1 and filling are those of
 * the store, sizes too; but an access is seen at once, not when a merge has met it.
 *
 * For miniatures of a volume (loop/whatif.h).  Pure; memory is the caller's.
 */
#ifndef RALT_SMALL_H
#define RALT_SMALL_H

#include "ralt/sample.h"
#include "ralt/tune.h"

struct ralt_small {
	struct ralt_tunables tunables;
	struct ralt_sizes sizes;
	struct ralt_decay decay;
	struct ralt_judge judge;
	struct tune tune;
	struct sample sample;
	double *scratch;
	uint64_t accesses;
	uint64_t next_tuning;
	uint32_t shift;
};

size_t ralt_small_bytes(uint32_t blocks);

/*
 * @blocks, @fast_blocks: each stands for 2^@shift.  The struct must stay where it is.  @mem: ralt_small_bytes(@blocks), 8-aligned.
 * -ERANGE, -EINVAL, -ENOMEM.
 */
int ralt_small_init(struct ralt_small *r, const struct ralt_tunables *t, uint64_t fast_blocks, uint32_t blocks,
		    uint32_t shift, void *mem, size_t bytes);

/* The limits of the hot set are those of such a fast tier from now on; time goes on as it did. */
void ralt_small_resize(struct ralt_small *r, uint64_t fast_blocks);

void ralt_small_touch(struct ralt_small *r, uint64_t block);
void ralt_small_forget(struct ralt_small *r, uint64_t block);
/* As ralt_fill(). */
void ralt_small_fill(struct ralt_small *r, double share);

bool ralt_small_is_hot(const struct ralt_small *r, uint64_t block);
/* Negative when untracked. */
double ralt_small_score(const struct ralt_small *r, uint64_t block);
void ralt_small_quartiles(struct ralt_small *r, double out[3]);

#endif
