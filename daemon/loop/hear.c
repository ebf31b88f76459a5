// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the sense tells, into heat, ghost cache and promotion cache.
 *
 * The ghost cache and the heat see every access that the sense gives; the promotion cache
 * sees reads that a slow tier served.
 *
 * Heat of what is discarded, or a dead file's, is forgotten once a second, all ranges together; by a clock or list, so many
 * blocks each tick.  So accesses that come after it, but before that, go with it.  What is inherited there meanwhile does not.
 * Small files die by the thousand, and few of them were hot: where many ranges wait only those are taken that have heat.
 *
 * What is written once, tables and logs of databases, is heard of, but neither heats nor lets time go by for what is hot.
 */
#include <errno.h>
#include <string.h>

#include "loop/engine.h"

/* No tunables: they bound the work of a tick. */
#define DRAIN_MOST	65536	/* accesses a tick */
#define FORGET_NS	1000000000ull	/* between two times, each of which is made durable */
#define LARGE_BLOCKS	1024	/* to look into more takes longer than to remember them */
#define LOOKS_MOST	65536	/* into single blocks, a tick: some ms */

static uint32_t slow_sampling(const struct engine *e)
{
	return e->port->slow_sampling ? e->port->slow_sampling : 1;
}

static void slow_read(struct engine *e, uint64_t block)
{
	e->stats.slow_reads += slow_sampling(e);
	if (recency_touch(&e->cache, block))
		e->again++;
	else
		e->fresh++;
}

/*
 * Heat and ghost cache want all accesses at one rate: those that are sampled less are
 * thinned to the rate of the others.
 */
static bool thinned(struct engine *e, const struct port_access *a)
{
	return a->always && prng_unit(&e->prng) >= e->port->sampling * slow_sampling(e);
}

static void hear_block(struct engine *e, const struct port_access *a, uint64_t block, bool heats)
{
	enum port_where where = a->where;

	if (heats && !thinned(e, a)) {
		warmth_touch(&e->warmth, block);
		/* What moves can gain or lose are reads. */
		(a->op == PORT_READ ? shards_access : shards_touch)(&e->shards, block);
		whatif_access(&e->whatif, block, a->op != PORT_READ);
		e->stats.accesses++;
	}
	book_used(&e->book, block);
	if (a->op != PORT_READ)
		return;
	repay_read(&e->repay, block, a->always ? slow_sampling(e) : 1, e->c.tuning.governor.regret_epochs);
	if (where == PORT_UNKNOWN)
		where = book_where(&e->book, e->port, block);
	if (where == PORT_SLOW)
		slow_read(e, block);
}

/* What there is no time to look at may have some. */
static bool has_heat(struct engine *e, uint64_t block, uint64_t nr)
{
	if (nr > LARGE_BLOCKS)
		return true;
	for (uint64_t i = 0; i < nr; i++) {
		if (!e->cold_looks)
			return true;
		e->cold_looks--;
		if (warmth_used(&e->warmth, block + i))
			return true;
	}
	return false;
}

/* @known: it has heat; else that is found out where there is little room. */
static void forget_range(struct engine *e, uint64_t block, uint64_t nr, bool known)
{
	struct ralt_range *last = e->nr_cold ? &e->cold[e->nr_cold - 1] : NULL;

	promote_not(e, block, nr);
	if (!e->senses)
		return;		/* then there is no heat, and without a fast tier nothing to ask for it */
	whatif_forget(&e->whatif, block, nr);
	/* A large discard comes in pieces. */
	if (last && block <= last->first + last->count && last->first <= block) {
		if (block + nr > last->first + last->count)
			last->count = block + nr - last->first;
		return;
	}
	if (e->nr_cold >= warmth_forget_spare(&e->warmth) && !known && !has_heat(e, block, nr)) {
		tails_cut(e->passed_on, block, nr);
		return;
	}
	if (e->nr_cold == ENGINE_COLD) {
		e->stats.heat_left += nr;
		return;
	}
	e->cold[e->nr_cold++] = (struct ralt_range){ block, nr };
}

void engine_forget(struct engine *e, uint64_t block, uint64_t nr)
{
	forget_range(e, block, nr, false);
}

void hear_nowhere(struct engine *e, uint64_t block, uint64_t nr)
{
	forget_range(e, block, nr, true);
}

/* @nr of @cold, from the first on, have no heat any more: they stand for nobody else either. */
static void forgotten(struct engine *e, const struct ralt_range *cold, uint32_t nr)
{
	for (uint32_t i = 0; i < nr && e->passed_on->nr; i++)
		tails_cut(e->passed_on, cold[i].first, cold[i].count);
}

/* By a clock or list: of ranges that may be huge, what meets it.  The rest waits as before. */
static void forget_part(struct engine *e, uint64_t block, uint64_t nr)
{
	for (uint32_t i = e->nr_cold; i-- > 0;) {
		struct ralt_range *r = &e->cold[i];
		uint64_t end = r->first + r->count;
		uint64_t from = r->first > block ? r->first : block, to = end < block + nr ? end : block + nr;

		if (from >= to)
			continue;
		warmth_forget_blocks(&e->warmth, from, to - from);
		r->count = from - r->first;
		if (!r->count)
			*r = (struct ralt_range){ to, end - to };
		else if (to < end && e->nr_cold < ENGINE_COLD)
			e->cold[e->nr_cold++] = (struct ralt_range){ to, end - to };
		else
			e->stats.heat_left += end - to;
		if (!r->count)
			*r = e->cold[--e->nr_cold];
	}
}

void engine_forget_now(struct engine *e, uint64_t block, uint64_t nr)
{
	uint32_t keep = 0, done;

	if (e->warmth.kind != HEAT_RALT) {
		forget_part(e, block, nr);
		return;
	}
	/* Those that meet it come last: each call of forgetting is a commit of RALT's. */
	for (uint32_t i = 0; i < e->nr_cold; i++) {
		const struct ralt_range r = e->cold[i];

		if (r.first < block + nr && r.first + r.count > block)
			continue;
		e->cold[i] = e->cold[keep];
		e->cold[keep++] = r;
	}
	if (keep == e->nr_cold)
		return;
	done = warmth_forget_some(&e->warmth, e->cold + keep, e->nr_cold - keep);
	forgotten(e, e->cold + keep, done);
	e->nr_cold -= done;
	memmove(e->cold + keep, e->cold + keep + done, (e->nr_cold - keep) * sizeof(e->cold[0]));
}

/* What does not fit into RALT's list of forgotten ranges waits until merges have emptied it. */
static void forget(struct engine *e)
{
	uint32_t done;

	if (!e->nr_cold)
		return;
	if (e->warmth.kind == HEAT_RALT && e->forgot_ns && e->now_ns - e->forgot_ns < FORGET_NS)
		return;
	e->forgot_ns = e->now_ns;
	done = warmth_forget_some(&e->warmth, e->cold, e->nr_cold);
	forgotten(e, e->cold, done);
	e->nr_cold -= done;
	memmove(e->cold, e->cold + done, e->nr_cold * sizeof(e->cold[0]));
}

void engine_placed(struct engine *e, uint64_t block, uint64_t nr, bool yes)
{
	tails_cut(e->placed[0], block, nr);
	tails_cut(e->placed[1], block, nr);
	if (yes)
		tails_add(e->placed[0], block, nr, UINT64_MAX);
}

/* Discards are heard of two ticks late at most. */
void placed_by(struct engine *e)
{
	struct tails *t = e->placed[1];

	e->placed[1] = e->placed[0];
	e->placed[0] = t;
	t->nr = 0;
	t->blocks = 0;
}

static void is_no_more(struct engine *e, uint64_t from, uint64_t end)
{
	if (from >= end)
		return;
	engine_dead(e, from, end - from, false);
	engine_once(e, from, end - from, false);
	engine_forget(e, from, end - from);
}

/* But for what somebody else has been placed in meanwhile. */
static void hear_discard(struct engine *e, uint64_t block, uint64_t end)
{
	uint64_t from = block;

	if (tails_meet(e->placed[0], block, end - block) || tails_meet(e->placed[1], block, end - block))
		for (; block < end; block++)
			if (tails_have(e->placed[0], block) || tails_have(e->placed[1], block)) {
				is_no_more(e, from, block);
				from = block + 1;
			}
	is_no_more(e, from, end);
}

static void hear_one(void *ctx, const struct port_access *a)
{
	struct engine *e = ctx;
	uint64_t end = a->block + a->count;
	bool heats = a->op != PORT_WRITE || !tails_meet(e->once, a->block, a->count);

	if (end > e->shape.blocks || end < a->block)
		return;
	if (a->op == PORT_DISCARD) {
		hear_discard(e, a->block, end);
		return;
	}
	if (a->op == PORT_WRITE && (e->dead->nr || e->banned->nr))
		engine_dead(e, a->block, a->count, false);
	e->stats.written_once += heats ? 0 : a->count;
	for (uint64_t block = a->block; block < end; block++)
		hear_block(e, a, block, heats);
}

/* Once, not with each attempt. */
static void tell_set_error(struct engine *e)
{
	int err = e->port->sense ? e->port->sense->set_error : 0;

	if (err == e->set_error)
		return;
	e->set_error = err;
	if (err)
		engine_log(e, ENGINE_WARNING, "how many accesses the kernel tells of cannot be set (%s): they are counted as it tells them, and it is tried again",
			   strerror(-err));
	else
		engine_log(e, ENGINE_NOTICE, "how many accesses the kernel tells of can be set again");
}

int hear(struct engine *e)
{
	uint64_t errors = e->warmth.errors;
	int got;

	if (!e->senses)
		return 0;
	e->cold_looks = LOOKS_MOST;
	got = e->port->ops->drain(e->port, DRAIN_MOST, hear_one, e);
	tell_set_error(e);
	nowhere_tick(e);
	forget(e);
	if (e->warmth.errors != errors && !errors)
		engine_log(e, ENGINE_WARNING, "the heat store cannot be written (error %d): heat of a restart may be lost, moves go on",
			   -e->warmth.last_error);
	return got < 0 ? got : 0;
}

uint64_t hear_mapped(const struct engine *e)
{
	return e->book.complete ? e->book.mapped : e->shape.blocks;
}

/* The volume itself says that there are hardly any reads: what is not heard of them is not hidden either. */
static bool hardly_read(const struct engine *e)
{
	uint64_t reads = e->state.reads - e->judged.reads, ops = reads + e->state.writes - e->judged.writes;

	return ops < e->c.tuning.governor.epoch_ops / 10 ? e->rests : reads * 50 <= ops;
}

static double sampled(const struct engine *e, const struct shards_curve *c)
{
	return c->all * shards_rate(&e->shards);
}

static bool is_known(const struct engine *e, const struct shards_curve *c)
{
	return sampled(e, c) >= (double)e->c.tuning.admit.min_accesses;
}

static bool is_uniform(const struct engine *e, const struct shards_curve *c, double hit)
{
	struct admit_sample of = { .sampled = sampled(e, c), .all = shards_rate(&e->shards) >= 1 };

	return admit_uniform(&e->c.tuning.admit, e->stats.accesses, of, hear_mapped(e), hit, e->fast_blocks, e->rests);
}

bool hear_knows_reads(const struct engine *e)
{
	return is_known(e, &e->shards.access);
}

/* Where next to nothing is used, what was found before holds. */
bool hear_uniform(const struct engine *e)
{
	const struct shards *s = &e->shards;
	bool reads = is_known(e, &s->access), writes = is_known(e, &s->touch);

	if (!reads && !writes)
		return e->rests;
	if (!reads && !hardly_read(e))
		return false;
	if (reads && hear_skewed(e))
		return false;
	return (!reads || is_uniform(e, &s->access, shards_hit_rate(s, e->fast_blocks))) &&
	       (!writes || is_uniform(e, &s->touch, shards_touch_rate(s, e->fast_blocks)));
}

bool hear_skewed(const struct engine *e)
{
	/* All accesses, not the aged count: the ghost cache remembers blocks from before its last ageing. */
	return admit_skewed(&e->c.tuning.admit, e->stats.accesses, hear_mapped(e),
			    shards_hit_rate(&e->shards, e->fast_blocks), shards_lasting(&e->shards), e->fast_blocks);
}
