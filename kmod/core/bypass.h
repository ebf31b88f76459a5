/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which clusters of the promotion cache are so hot that their blocks are also
 * kept decoded (ZipCache's adaptive bypass): those whose hits exceed the mean
 * of all by more than k times the standard deviation.
 *
 * Hits are halved once per epoch. That costs nothing then: an entry is brought
 * up to date when it is next touched, the sums are halved at once.
 *
 * k starts at 3 and is tuned after each epoch in which the cache was full: what
 * a byte of decoded blocks saved (decoding) against what a byte of compressed
 * ones did (reading from the drive). When nothing comes out above the bar, the
 * decoded sub-tier is empty, and that is right.
 */
#ifndef TERRACE_CORE_BYPASS_H
#define TERRACE_CORE_BYPASS_H

#include <linux/types.h>

#define TR_BYPASS_K_START	12	/* quarters */
#define TR_BYPASS_K_MIN		4
#define TR_BYPASS_K_MAX		64

struct tr_heat {		/* of a cluster */
	u16 hits;		/* in sixteenths */
	u16 epoch;
};

struct tr_bypass {
	u64 sum, squares;	/* of all hits */
	u32 nr;			/* clusters */
	u32 looked;		/* hits in this epoch */
	u32 k;			/* in quarters */
	u16 epoch;
};

/* What the sub-tiers did in an epoch. */
struct tr_bypass_epoch {
	u64 plain_hits, plain_bytes, decode_ns;		/* ns: of one hit */
	u64 stored_hits, stored_bytes, read_ns;
	bool full;
};

void tr_bypass_init(struct tr_bypass *bypass);
void tr_bypass_add(struct tr_bypass *bypass, struct tr_heat *heat);
void tr_bypass_remove(struct tr_bypass *bypass, struct tr_heat *heat);
/* Counts a hit. Is the cluster hot? */
bool tr_bypass_hit(struct tr_bypass *bypass, struct tr_heat *heat);
/* Is the epoch over? If so, the next one begins. */
bool tr_bypass_turn(struct tr_bypass *bypass);
void tr_bypass_tune(struct tr_bypass *bypass, const struct tr_bypass_epoch *epoch);

#endif
