// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the sense tells, into heat, ghost cache and promotion cache.
 *
 * The ghost cache and the heat see every access that the sense gives; the promotion cache
 * sees reads that a slow tier served.
 */
#include <errno.h>

#include "loop/engine.h"

#define DRAIN_MOST	65536	/* accesses a tick */
#define DISCARD_BLOCKS	1024	/* shorter ones are not worth a durable generation */

static uint32_t slow_sampling(const struct engine *e)
{
	return e->port->slow_sampling ? e->port->slow_sampling : 1;
}

static void slow_read(struct engine *e, uint64_t block)
{
	e->stats.slow_reads += slow_sampling(e);
	if (!recency_touch(&e->cache, block))
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

static void hear_block(struct engine *e, const struct port_access *a, uint64_t block)
{
	enum port_where where = a->where;

	if (!thinned(e, a)) {
		warmth_touch(&e->warmth, block);
		/* What moves can gain or lose are reads. */
		(a->op == PORT_READ ? shards_access : shards_touch)(&e->shards, block);
		e->stats.accesses++;
	}
	book_used(&e->book, block);
	if (a->op != PORT_READ)
		return;
	repay_read(&e->repay, block);
	if (where == PORT_UNKNOWN)
		where = book_where(&e->book, e->port, block);
	if (where == PORT_SLOW)
		slow_read(e, block);
}

static void hear_one(void *ctx, const struct port_access *a)
{
	struct engine *e = ctx;
	uint64_t end = a->block + a->count;

	if (end > e->shape.blocks || end < a->block)
		return;
	if (a->op == PORT_DISCARD) {
		engine_dead(e, a->block, a->count, false);
		if (a->count >= DISCARD_BLOCKS)
			warmth_forget(&e->warmth, a->block, a->count);
		return;
	}
	if (a->op == PORT_WRITE && (e->dead->nr || e->banned->nr))
		engine_dead(e, a->block, a->count, false);
	for (uint64_t block = a->block; block < end; block++)
		hear_block(e, a, block);
}

int hear(struct engine *e)
{
	uint64_t errors = e->warmth.errors;
	int got;

	if (!e->senses)
		return 0;
	got = e->port->ops->drain(e->port, DRAIN_MOST, hear_one, e);
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

static bool is_known(const struct engine *e, const struct shards_curve *c)
{
	return c->all * shards_rate(&e->shards) >= (double)e->c.tuning.admit.min_accesses;
}

static bool is_uniform(const struct engine *e, double hit)
{
	return admit_uniform(&e->c.tuning.admit, e->stats.accesses, hear_mapped(e), hit, e->fast_blocks, e->rests);
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
	return (!reads || is_uniform(e, shards_hit_rate(s, e->fast_blocks))) &&
	       (!writes || is_uniform(e, shards_touch_rate(s, e->fast_blocks)));
}

bool hear_skewed(const struct engine *e)
{
	/* All accesses, not the aged count: the ghost cache remembers blocks from before its last ageing. */
	return admit_skewed(&e->c.tuning.admit, e->stats.accesses, hear_mapped(e),
			    shards_hit_rate(&e->shards, e->fast_blocks), e->fast_blocks);
}
