// SPDX-License-Identifier: GPL-2.0-or-later
/* Scores, counters and merging of access records; see record.h. */
#include "ralt/record.h"

#include <string.h>

#include "ralt/bytes.h"

#define SCORE_ONE	512.0f
#define SCORE_MAX	((1u << 23) - 1)

void ralt_record_encode(const struct ralt_record *r, uint8_t *to)
{
	float scaled = r->score * SCORE_ONE + 0.5f;
	uint32_t score = scaled >= (float)SCORE_MAX ? SCORE_MAX : (uint32_t)scaled;

	put_le64(to, r->block << 24 | (uint64_t)r->age << 8 | r->span);
	put_le32(to + 8, r->tick);
	put_le32(to + 12, score << 9 | (uint32_t)r->counter << 1 | r->tag);
}

void ralt_record_decode(struct ralt_record *r, const uint8_t *from)
{
	uint64_t key = get_le64(from);
	uint32_t packed = get_le32(from + 12);

	r->block = key >> 24;
	r->generation = 0;
	r->span = (uint8_t)key;
	r->age = (uint8_t)(key >> 8);
	r->tick = get_le32(from + 8);
	r->score = (float)(packed >> 9) / SCORE_ONE;
	r->counter = (uint8_t)(packed >> 1);
	r->tag = packed & 1;
}

uint64_t ralt_record_block(const uint8_t *from)
{
	return get_le64(from) >> 24;
}

void ralt_decay_init(struct ralt_decay *d, double alpha)
{
	d->ones[0] = d->step256[0] = 1;
	for (int i = 1; i < 256; i++)
		d->ones[i] = d->ones[i - 1] * alpha;
	for (int i = 1; i < 256; i++)
		d->step256[i] = d->step256[i - 1] * d->ones[255] * alpha;
	d->step65536 = d->step256[255] * d->ones[255] * alpha;
}

struct ralt_time ralt_time_of(const struct ralt_sizes *s, uint64_t accesses)
{
	return (struct ralt_time){
		.tick = (uint32_t)(accesses / s->tick_accesses),
		.period = accesses / s->period_accesses,
	};
}

void ralt_judge_init(struct ralt_judge *j, const struct ralt_tunables *t,
		     const struct ralt_sizes *s, const struct ralt_decay *d)
{
	memset(j, 0, sizeof(*j));
	j->sizes = s;
	j->decay = d;
	j->counter_step = (uint8_t)(t->counter_step * 10 + 0.5);
	j->counter_max = (uint8_t)(t->counter_max * 10 + 0.5);
}

struct ralt_record ralt_record_access(const struct ralt_judge *j, uint64_t block,
				      uint32_t generation)
{
	return (struct ralt_record){
		.block = block,
		.generation = generation,
		.tick = j->now.tick,
		.score = 1,
		.counter = j->counter_step,
	};
}

bool ralt_is_stable(const struct ralt_judge *j, const struct ralt_record *r)
{
	return r->tag && ralt_counter_now(j, r);
}

static double threshold_now(const struct ralt_judge *j, const struct ralt_threshold *t)
{
	return t->score * ralt_decay_by(j->decay, ralt_ticks_since(j->now.tick, t->tick));
}

bool ralt_is_above(const struct ralt_judge *j, const struct ralt_record *r,
		   const struct ralt_threshold *t)
{
	enum ralt_by_rank above = ralt_by_rank(t, r, ralt_rank(j, r));

	return above == RALT_BY_SCORE ? ralt_score_now(j, r) >= threshold_now(j, t) : above == RALT_ABOVE;
}

bool ralt_is_member(const struct ralt_judge *j, const struct ralt_record *r)
{
	return ralt_is_stable(j, r) && ralt_is_above(j, r, &j->hot);
}

bool ralt_is_hot_record(const struct ralt_judge *j, const struct ralt_record *r)
{
	if (j->fill.set && ralt_score_now(j, r) >= threshold_now(j, &j->fill))
		return true;
	return ralt_is_member(j, r);
}

struct ralt_cuts ralt_cuts_of(const struct ralt_judge *j)
{
	return (struct ralt_cuts){ j, threshold_now(j, &j->hot), threshold_now(j, &j->fill) };
}

/* An access counts once per tick: both records hold the one of the tick they share. */
static bool share_a_tick(const struct ralt_record *newer, const struct ralt_record *older)
{
	return newer->span < RALT_SPAN_MAX && newer->tick - newer->span == older->tick;
}

/* Ticks from @span before the end of @older to the end of @newer. */
static uint8_t merged_span(const struct ralt_record *newer, const struct ralt_record *older, uint8_t span)
{
	uint32_t first = older->tick - span;
	uint32_t all = newer->tick > first ? newer->tick - first : 0;

	if (span == RALT_SPAN_MAX || all > RALT_SPAN_MAX)
		return RALT_SPAN_MAX;
	return (uint8_t)all;
}

static float merged_score(const struct ralt_judge *j, const struct ralt_record *newer,
			  const struct ralt_record *older)
{
	uint32_t apart = ralt_ticks_since(newer->tick, older->tick);
	double old = (double)older->score * ralt_decay_by(j->decay, apart);
	double sum = old + (double)newer->score;

	if (share_a_tick(newer, older))
		sum -= ralt_decay_by(j->decay, apart);
	return (float)sum;
}

/*
 * Was @older in when @newer's first access came?  Parts of a record meet long after the accesses
 * they tell of, so the question is asked as of then: with the counter and score of then, and the
 * threshold as far below its present as it is now.
 */
static bool was_above(const struct ralt_judge *j, const struct ralt_record *older,
		      const struct ralt_record *newer)
{
	struct ralt_judge then = *j;

	then.now.tick = newer->tick - newer->span;
	then.now.period = (uint64_t)then.now.tick * j->sizes->tick_accesses /
			  j->sizes->period_accesses;
	then.hot.score = threshold_now(j, &j->hot);
	then.hot.tick = then.now.tick;
	return ralt_is_above(&then, older, &then.hot);
}

void ralt_record_merge(const struct ralt_judge *j, struct ralt_record *newer,
		       const struct ralt_record *older)
{
	uint64_t period = (uint64_t)newer->tick * j->sizes->tick_accesses /
			  j->sizes->period_accesses;
	uint32_t sum = (uint32_t)ralt_counter_at(j, older, period) + newer->counter;
	bool in = !j->hot.set || was_above(j, older, newer);

	/*
	 * HotRAP would have evicted a record below the threshold and would see a new
	 * block now.  We keep it for its score and counter, but it is not tagged: otherwise
	 * every re-access, however late, would make a record stable.  Nor is it as old as it was, or none
	 * ever would: it has until the next eviction to prove itself, as any new one.
	 */
	newer->tag |= in;
	newer->counter = (uint8_t)(sum > j->counter_max ? j->counter_max : sum);
	newer->score = merged_score(j, newer, older);
	newer->span = merged_span(newer, older, older->span);
	if (in)
		newer->age = merged_span(newer, older, older->age);
	if (older->tick > newer->tick)
		newer->tick = older->tick;
}

void ralt_record_settle(const struct ralt_judge *j, struct ralt_record *r)
{
	if (!ralt_is_above(j, r, &j->hot))
		ralt_record_fall(r);
}
