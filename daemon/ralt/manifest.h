/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The manifest: the one file that says which runs make up the store.
 *
 * Every change of that set (flush, merge, eviction) and every forgotten range is
 * one new manifest, written beside the old one, synced and renamed over it.  A
 * crash leaves the old or the new set; runs it does not name are leftovers.
 *
 *	0	8	magic		8	4	version		12	4	bytes in all
 *	16	8	store nonce	24	8	volume id	32	8	accesses
 *	40	8	next run id	48	8	hot limit	56	8	tuned period
 *	64	8	threshold score	72	4	threshold tick	76	4	0 not set, else 1 + rank
 *	80	4	generation	84	4	runs		88	4	ranges
 *	92	4	0		96	8	fast blocks	104	8	accesses of a tick, 0: not told
 *	112	...	runs: id 8, level 4, 0 4
 *		...	ranges: first 8, end 8, generation 4, 0 4
 *	end - 8	8	checksum
 */
#ifndef RALT_MANIFEST_H
#define RALT_MANIFEST_H

#include <stddef.h>
#include <stdint.h>

#include "ralt/forget.h"
#include "ralt/record.h"

#define RALT_MANIFEST_MAGIC	0x314d544c41525254ull	/* "TRRALTM1" */
#define RALT_MANIFEST_VERSION	1u
#define RALT_RUNS_MAX		96u
#define RALT_LEVELS_MAX		16u

struct manifest_run {
	uint64_t id;
	uint32_t level;
};

struct manifest {
	uint64_t store;
	uint64_t volume;
	uint64_t accesses;
	uint64_t next_run;
	uint64_t hot_limit;
	uint64_t tuned_period;
	uint64_t fast_blocks;
	uint64_t tick_accesses;
	struct ralt_threshold hot;
	uint32_t generation;
	uint32_t runs;
	struct manifest_run run[RALT_RUNS_MAX];
};

size_t manifest_bytes(uint32_t runs, size_t ranges);

/* @to: manifest_bytes() of them. */
void manifest_encode(const struct manifest *m, const struct forget *f, uint8_t *to);

/*
 * -EBADMSG: damaged; -EPROTONOSUPPORT: a version this code does not know; -ENOSPC: more
 * ranges than @f has room for.
 */
int manifest_decode(struct manifest *m, struct forget *f, const uint8_t *from, size_t bytes);

#endif
