/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One access record: what RALT knows about one block, and how two of them merge.
 *
 *	score	sum over ticks of a_i * alpha^(t - i), a_i = 1 if the block was
 *		accessed in tick i; valid as of `tick`, decayed when looked at
 *	counter	tenths; + delta c per access up to c max, - 1 per period
 *	tag	accessed again while the record was there
 *	span	ticks between its first and its last access, 255 = that or more.  When
 *		the first of a newer record is the last of an older one, both hold
 *		the same a_i, and merging must not count it twice.
 *
 * A record is stable while its tag is set and its counter above 0.  Stable records
 * rank above candidates (counter above 0, tag not set), those above expired ones (counter 0),
 * and by score among themselves.  That order decides who is evicted: unstable records go
 * first, and among them a block that was hot once, with the high score it still has,
 * does not keep new candidates out.
 *
 * On disk a record is 16 bytes, little-endian:
 *	0	8	block << 24 | 0 << 8 | span
 *	8	4	tick
 *	12	4	score as 14.9 fixed point << 9 | counter << 1 | tag
 * Its generation is that of its run: what is written was alive then (struct run_footer, `applied`).
 * A score is stored as of its last access, so it lies between 1 and
 * 1 / (1 - alpha) <= 10000 and the fixed point keeps three digits at worst. One that was inherited may be smaller.
 */
#ifndef RALT_RECORD_H
#define RALT_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "ralt/tunables.h"

#define RALT_RECORD_BYTES	16u
#define RALT_BLOCK_LIMIT	(1ull << 40)
#define RALT_SPAN_MAX		255u

struct ralt_record {
	uint64_t block;
	uint32_t generation;	/* not on disk */
	uint32_t tick;
	float score;
	uint8_t counter;
	uint8_t tag;
	uint8_t span;
};

void ralt_record_encode(const struct ralt_record *r, uint8_t *to);
void ralt_record_decode(struct ralt_record *r, const uint8_t *from);

/* alpha^n for any n, three multiplications. */
struct ralt_decay {
	double ones[256];
	double step256[256];
	double step65536;
};

void ralt_decay_init(struct ralt_decay *d, double alpha);
double ralt_decay_by(const struct ralt_decay *d, uint32_t ticks);

/* Now, as records see it. */
struct ralt_time {
	uint32_t tick;
	uint64_t period;
};

/* @accesses: sampled accesses since the store was made; that is RALT's only clock. */
struct ralt_time ralt_time_of(const struct ralt_sizes *s, uint64_t accesses);

/* A place in the ranking; records below it are out. */
struct ralt_threshold {
	bool set;		/* clear: everything is in */
	uint8_t rank;		/* the rank it cuts through; higher ones are all in */
	double score;		/* as of tick */
	uint32_t tick;
	uint32_t since;		/* tick of the eviction that set it: candidates that came later are in */
};

/* Everything that judging and merging records needs. */
struct ralt_judge {
	const struct ralt_sizes *sizes;
	const struct ralt_decay *decay;
	struct ralt_time now;
	struct ralt_threshold hot;
	struct ralt_threshold fill;	/* a plain score: the rank is not looked at */
	uint8_t counter_step;	/* tenths */
	uint8_t counter_max;
};

void ralt_judge_init(struct ralt_judge *j, const struct ralt_tunables *t,
		     const struct ralt_sizes *s, const struct ralt_decay *d);

/* A fresh record of one access now. */
struct ralt_record ralt_record_access(const struct ralt_judge *j, uint64_t block,
				      uint32_t generation);

double ralt_score_now(const struct ralt_judge *j, const struct ralt_record *r);
uint8_t ralt_counter_now(const struct ralt_judge *j, const struct ralt_record *r);
enum { RALT_EXPIRED, RALT_CANDIDATE, RALT_STABLE };
uint8_t ralt_rank(const struct ralt_judge *j, const struct ralt_record *r);

bool ralt_is_stable(const struct ralt_judge *j, const struct ralt_record *r);
bool ralt_is_above(const struct ralt_judge *j, const struct ralt_record *r,
		   const struct ralt_threshold *t);

/* In the hot set: stable and above its threshold. */
bool ralt_is_member(const struct ralt_judge *j, const struct ralt_record *r);

/* Hot: in the hot set, or above the fill threshold where one is set. */
bool ralt_is_hot_record(const struct ralt_judge *j, const struct ralt_record *r);

/* @newer takes over what @older knew; both are of the same block, neither is forgotten. */
void ralt_record_merge(const struct ralt_judge *j, struct ralt_record *newer,
		       const struct ralt_record *older);

/* A record that fell out of the hot set must earn its place anew. */
void ralt_record_settle(const struct ralt_judge *j, struct ralt_record *r);

#endif
