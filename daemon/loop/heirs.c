// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A compaction's outputs take over the heat of its inputs (decide/inherit.h), before anyone has read them;
 * and those of their blocks that are hot by that, but lie below, are raised at once.
 *
 * Tails of tables (decide/tails.h) are kept here as well: they go up at once, too, and demote.c leaves them there.
 *
 * Passing on happens when an output is written: it reads what RALT has on disk about the inputs' blocks that it is made of.
 */
#include <stdlib.h>
#include <string.h>

#include "loop/engine.h"

/* No tunables: memory, and how long is waited for deaths that may never be heard of. */
#define MOST_BLOCKS	(1u << 20)	/* of all outputs, or of an input: 12 MiB of memory each */
#define PASSED_NS	600000000000ull	/* inputs that are not dead by then, or by twice that, count again */
#define SETTLE_BLOCKS	1024u		/* heirs that are worth a run of their own in RALT's files */

static uint64_t blocks_of(const struct engine_file *f)
{
	return (f->size + INHERIT_BLOCK - 1) / INHERIT_BLOCK;
}

/* The part of a range that lies within the first @most blocks of its file. */
static uint64_t within(const struct engine_range *r, uint64_t most)
{
	uint64_t first = r->offset / INHERIT_BLOCK;

	if (first >= most)
		return 0;
	return r->nr < most - first ? r->nr : most - first;
}

/* Blocks of an input that became the outputs' bytes from @at on: [*first, *end). */
static void made_from(const struct engine_file *in, uint64_t at, uint64_t *first, uint64_t *end)
{
	uint64_t from = 0, to = 0;

	for (uint32_t k = 0; k < in->nr_steps; k++) {
		if (in->step[k].at <= at)
			from = in->step[k].read;
		to = in->step[k].read;
	}
	*first = from / INHERIT_BLOCK;
	*end = (to + INHERIT_BLOCK - 1) / INHERIT_BLOCK;
}

/* Until they are dead, which may be read to the end, they and their heirs are hot; the heirs stand for both. */
static void passed_on(struct engine *e, uint64_t block, uint64_t nr)
{
	tails_cut(e->passed_on, block, nr);
	tails_add(e->passed_on, block, nr, UINT64_MAX);
}

/* What the input passes on to the outputs' bytes from @at on. */
static void lay(struct engine *e, const struct engine_file *in, uint64_t at, struct inherit_heat *out, uint64_t nr_out)
{
	uint64_t nr = blocks_of(in), first, end;
	struct inherit_heat *heat;

	made_from(in, at, &first, &end);
	if (nr && first >= end)
		return;
	heat = nr && nr <= MOST_BLOCKS ? calloc(nr, sizeof(*heat)) : NULL;
	if (!heat) {
		e->stats.bequests_cut++;
		return;
	}
	for (uint32_t i = 0; i < in->nr; i++) {
		const struct engine_range *r = &in->range[i];
		uint64_t n = within(r, nr), lo = r->offset / INHERIT_BLOCK, hi = lo + n, skip;

		hi = hi < end ? hi : end;
		skip = first > lo ? first - lo : 0;
		if (lo + skip >= hi || r->block + n > e->shape.blocks)
			continue;
		warmth_worth(&e->warmth, r->block + skip, hi - lo - skip, &heat[lo + skip]);
		passed_on(e, r->block + skip, hi - lo - skip);
	}
	inherit_lay(in->step, in->nr_steps, heat, nr, out, nr_out);
	free(heat);
}

static void inherits(struct engine *e, uint64_t block, const struct inherit_heat *heat)
{
	bool hot = false;

	if (!warmth_inherit(&e->warmth, block, heat, &hot))
		return;
	e->stats.heirs++;
	e->stats.hot_heirs += hot;
	if (hot && !promote_soon(e, block))
		e->stats.heirs_left++;
}

/* Those go that were there the last time already. */
void heirs_tick(struct engine *e)
{
	if (e->now_ns - e->passed_ns < PASSED_NS)
		return;
	tails_older(e->passed_on, e->passed_serial);
	e->passed_serial = e->passed_on->serial;
	e->passed_ns = e->now_ns;
}

static void give(struct engine *e, const struct engine_file *out, const struct inherit_heat *heat)
{
	for (uint32_t i = 0; i < out->nr; i++) {
		const struct engine_range *r = &out->range[i];
		uint64_t n = within(r, blocks_of(out));

		engine_forget_now(e, r->block, n);
		tails_cut(e->passed_on, r->block, n);
		for (uint64_t k = 0; k < n && r->block + k < e->shape.blocks; k++)
			inherits(e, r->block + k, &heat[r->offset / INHERIT_BLOCK + k]);
	}
}

void engine_inherit(struct engine *e, const struct engine_file *input, uint32_t nr_in,
		    const struct engine_file *output, uint32_t nr_out, uint32_t first, bool more)
{
	uint64_t heirs = e->stats.heirs, nr = 0, at = 0, before = 0;
	struct inherit_heat *heat;

	if (!e->senses)
		return;
	for (uint32_t i = 0; i < nr_out; i++) {
		before += i < first ? blocks_of(&output[i]) : 0;
		nr += blocks_of(&output[i]);
	}
	e->stats.bequests += !more;
	if (nr_out && first >= nr_out)
		return;
	heat = nr && nr <= MOST_BLOCKS ? calloc(nr, sizeof(*heat)) : NULL;
	if (!heat) {
		e->stats.bequests_cut++;
		return;
	}
	for (uint32_t i = 0; i < nr_in; i++)
		lay(e, &input[i], before * INHERIT_BLOCK, heat, nr);
	for (uint32_t i = 0; i < nr_out; at += blocks_of(&output[i++]))
		if (i >= first)
			give(e, &output[i], heat + at);
	e->unsettled += e->stats.heirs - heirs;
	if (e->unsettled >= SETTLE_BLOCKS) {
		warmth_settle(&e->warmth);
		e->unsettled = 0;
	}
	free(heat);
}

bool engine_crowded(const struct engine *e)
{
	return (double)e->fast_used >= engine_first_fill(e) * (double)e->fast_blocks;
}

uint64_t engine_hot_set(struct engine *e, uint64_t block, uint64_t nr)
{
	if (!e->senses || block >= e->shape.blocks || nr > e->shape.blocks - block)
		return 0;
	return warmth_hot_set(&e->warmth, block, nr);
}

/* ---- tails that stay fast ------------------------------------------------------------------ */

static uint64_t pin_limit(const struct engine *e)
{
	return (uint64_t)(e->c.pin_share * (double)e->fast_blocks);
}

void engine_pin(struct engine *e, uint64_t block, uint64_t nr)
{
	if (block >= e->shape.blocks || nr > e->shape.blocks - block || !pin_limit(e))
		return;
	tails_add(e->tails, block, nr, pin_limit(e));
	for (uint64_t i = 0; i < nr && tails_have(e->tails, block + i); i++)
		promote_soon(e, block + i);
}

void engine_unpin(struct engine *e, uint64_t block, uint64_t nr)
{
	tails_drop(e->tails, block, nr);
}

void engine_dead(struct engine *e, uint64_t block, uint64_t nr, bool yes)
{
	if (yes)
		tails_add(e->dead, block, nr, UINT64_MAX);
	else
		tails_cut(e->dead, block, nr);
	if (!yes)
		engine_ban(e, block, nr, false);
}

void engine_ban(struct engine *e, uint64_t block, uint64_t nr, bool yes)
{
	if (yes)
		tails_add(e->banned, block, nr, UINT64_MAX);
	else if (e->banned->nr)
		tails_cut(e->banned, block, nr);
}

void engine_hinted(struct engine *e, uint64_t block, uint64_t nr, bool yes)
{
	if (yes)
		tails_add(e->hinted, block, nr, UINT64_MAX);
	else
		tails_cut(e->hinted, block, nr);
}

void engine_once(struct engine *e, uint64_t block, uint64_t nr, bool yes)
{
	tails_cut(e->once, block, nr);
	if (yes)
		tails_add(e->once, block, nr, UINT64_MAX);
}
