/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Buckets for approximate MSC (PrismDB): one small counter per region instead of
 * a look-up per block.
 *
 * A block is popular or not: tracked with a clock value above 0.  The bucket
 * counts the popular blocks of its region; the tracker's watch keeps it exact,
 * at a few instructions per changed value.  A score then costs O(1) where the
 * precise one looks up every fast block.
 *
 * What is lost: which of the popular blocks are on the fast tier, and how
 * popular.  The caller takes off those that it knows to be below; the others are
 * taken as fast (promotion puts them there), each with the coldness of a middling
 * popular block; popular and pinned are one.
 */
#ifndef DECIDE_BUCKETS_H
#define DECIDE_BUCKETS_H

#include <stddef.h>
#include <stdint.h>

#include "decide/region.h"
#include "decide/tunable.h"

struct bucket_tunables {
	double popular_coldness;
};

extern const struct tunable_table bucket_tunable_table;

struct buckets {
	uint16_t *popular;
	uint64_t regions;
};

size_t buckets_bytes(uint64_t regions);

/* @mem as for tracker_init().  -ENOMEM. */
int buckets_init(struct buckets *b, uint64_t regions, void *mem, size_t bytes);

/* A tracker_watch_fn; @ctx is the struct buckets. */
void buckets_watch(void *ctx, uint64_t block, int from, int to);

/* Popular blocks of a region; 0 beyond the volume. */
uint32_t buckets_popular(const struct buckets *b, uint64_t region);

/*
 * Fills in the coldness and pinned_blocks of a summary from its popular count
 * (from a bucket, or from RALT's hot size of the region's range).
 */
void approximate_view(struct region_view *r, const struct bucket_tunables *t,
		      uint32_t popular);

#endif
