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
 *	age	the same from the access that made it new: its first, or the first after it
 *		was found below the threshold
 *
 * A record is stable while its tag is set and its counter above 0.  Stable records
 * rank above candidates (counter above 0, tag not set), those above expired ones (counter 0),
 * and by score among themselves.  That order decides who is evicted: unstable records go
 * first, and among them a block that was hot once, with the high score it still has,
 * does not keep new candidates out.
 *
 * On disk a record is 16 bytes, little-endian:
 *	0	8	block << 24 | age << 8 | span
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

#include "decide/tails.h"
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
	uint8_t age;
};

void ralt_record_encode(const struct ralt_record *r, uint8_t *to);
void ralt_record_decode(struct ralt_record *r, const uint8_t *from);
uint64_t ralt_record_block(const uint8_t *from);

/* alpha^n for any n, three multiplications. */
struct ralt_decay {
	double ones[256];
	double step256[256];
	double step65536;
};

void ralt_decay_init(struct ralt_decay *d, double alpha);

static inline double ralt_decay_by(const struct ralt_decay *d, uint32_t ticks)
{
	double x = d->ones[ticks & 255] * d->step256[ticks >> 8 & 255];

	/* After 65536 ticks even alpha = 0.9999 leaves 0.1 %: the loop is short or ends at 0. */
	for (uint32_t n = ticks >> 16; n && x > 0; n--)
		x *= d->step65536;
	return x;
}

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
	const struct tails *passed_on;	/* others have these blocks' heat now and count for them; NULL: none */
	uint8_t counter_step;	/* tenths */
	uint8_t counter_max;
};

void ralt_judge_init(struct ralt_judge *j, const struct ralt_tunables *t,
		     const struct ralt_sizes *s, const struct ralt_decay *d);

/* A fresh record of one access now. */
struct ralt_record ralt_record_access(const struct ralt_judge *j, uint64_t block,
				      uint32_t generation);

/* Ticks between the two, 0 when @then is ahead (a store reopened with other sizes). */
static inline uint32_t ralt_ticks_since(uint32_t now, uint32_t then)
{
	return now > then ? now - then : 0;
}

static inline double ralt_score_now(const struct ralt_judge *j, const struct ralt_record *r)
{
	return (double)r->score * ralt_decay_by(j->decay, ralt_ticks_since(j->now.tick, r->tick));
}

/*
 * Counters are decremented when looked at, not by rewriting every record each
 * period: the period of a record follows from its tick.
 */
static inline uint8_t ralt_counter_at(const struct ralt_judge *j, const struct ralt_record *r, uint64_t period)
{
	uint64_t then = (uint64_t)r->tick * j->sizes->tick_accesses / j->sizes->period_accesses;
	uint64_t fall = period > then ? (period - then) * 10 : 0;

	return fall >= r->counter ? 0 : (uint8_t)(r->counter - fall);
}

static inline uint8_t ralt_counter_now(const struct ralt_judge *j, const struct ralt_record *r)
{
	return ralt_counter_at(j, r, j->now.period);
}

enum { RALT_EXPIRED, RALT_CANDIDATE, RALT_STABLE };

static inline uint8_t ralt_rank(const struct ralt_judge *j, const struct ralt_record *r)
{
	if (!ralt_counter_now(j, r))
		return RALT_EXPIRED;
	return r->tag ? RALT_STABLE : RALT_CANDIDATE;
}

bool ralt_is_stable(const struct ralt_judge *j, const struct ralt_record *r);
bool ralt_is_above(const struct ralt_judge *j, const struct ralt_record *r,
		   const struct ralt_threshold *t);

/* In the hot set: stable and above its threshold. */
bool ralt_is_member(const struct ralt_judge *j, const struct ralt_record *r);

/* Hot: in the hot set, or above the fill threshold where one is set. */
bool ralt_is_hot_record(const struct ralt_judge *j, const struct ralt_record *r);

/* For a walk through many records: the thresholds of now, and all that they say of one. */
struct ralt_cuts {
	const struct ralt_judge *judge;
	double hot, fill;
};
struct ralt_verdict {
	double score;
	bool above;	/* the threshold of the hot set, stable or not */
	bool member;	/* as ralt_is_member() */
	bool hot;	/* as ralt_is_hot_record() */
};
struct ralt_cuts ralt_cuts_of(const struct ralt_judge *j);

/* However hot, one that has passed its heat on takes none of the hot set's room. */
static inline bool ralt_counts(const struct ralt_judge *j, const struct ralt_record *r)
{
	return !j->passed_on || !j->passed_on->nr || !tails_have(j->passed_on, r->block);
}

enum ralt_by_rank { RALT_BELOW, RALT_ABOVE, RALT_BY_SCORE };

static inline enum ralt_by_rank ralt_by_rank(const struct ralt_threshold *t, const struct ralt_record *r, uint8_t rank)
{
	if (!t->set)
		return RALT_ABOVE;
	/*
	 * Nothing has judged it yet.  Without this a cut among the stable would keep all candidates out until
	 * the next one, which they alone can bring about: after a hotspot has moved there would be no hot set.
	 */
	if (rank == RALT_CANDIDATE && r->tick - r->age > t->since)
		return RALT_ABOVE;
	return rank == t->rank ? RALT_BY_SCORE : rank > t->rank ? RALT_ABOVE : RALT_BELOW;
}

static inline struct ralt_verdict ralt_verdict(const struct ralt_cuts *c, const struct ralt_record *r)
{
	const struct ralt_judge *j = c->judge;
	uint8_t rank = ralt_rank(j, r);
	enum ralt_by_rank above = ralt_by_rank(&j->hot, r, rank);
	struct ralt_verdict v = { .score = ralt_score_now(j, r) };

	v.above = above == RALT_BY_SCORE ? v.score >= c->hot : above == RALT_ABOVE;
	v.member = v.above && rank == RALT_STABLE;
	v.hot = v.member || (j->fill.set && v.score >= c->fill);
	return v;
}

/* @newer takes over what @older knew; both are of the same block, neither is forgotten. */
void ralt_record_merge(const struct ralt_judge *j, struct ralt_record *newer,
		       const struct ralt_record *older);

/* A record that fell out of the hot set must earn its place anew. */
static inline void ralt_record_fall(struct ralt_record *r)
{
	r->counter = 0;
	r->tag = 0;
}

/* ... which is asked here. */
void ralt_record_settle(const struct ralt_judge *j, struct ralt_record *r);

#endif
