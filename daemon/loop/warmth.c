// SPDX-License-Identifier: GPL-2.0-or-later
/* The heat sources with their memory; see warmth.h. */
#include "loop/warmth.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FORGET_BLOCKS	262144	/* at a time, by clock and list: a few ms */
#define QUARTILES_WORK	8	/* calls of warmth_work() for which quartiles are believed */
#define MERGE_RECORDS	16384	/* merged per call of warmth_work(): a few ms */

static void *take(struct warmth *w, int n, size_t bytes)
{
	w->memory[n] = malloc(bytes);
	return w->memory[n];
}

static int open_ralt(struct warmth *w, const struct warmth_config *c)
{
	struct ralt_config rc = {
		.directory = c->directory, .volume = c->volume, .nonce = c->nonce,
		.fast_blocks = c->fast_blocks, .tunables = c->tuning->ralt,
		.report = c->report, .report_ctx = c->report_ctx, .passed_on = c->passed_on,
	};

	return ralt_open(&w->ralt, &rc);
}

/*
 * What is pinned is a share of what is tracked: with more tracked than fits, the pinned
 * alone could fill the fast tier and leave no region anything to demote.
 */
static uint64_t clock_limit(const struct warmth_config *c)
{
	uint64_t limit = tracker_limit(&c->tuning->tracker, c->blocks);

	if (c->most_tracked && limit > c->most_tracked)
		limit = c->most_tracked;
	return limit < c->fast_blocks ? limit : c->fast_blocks;
}

static int open_clock(struct warmth *w, const struct warmth_config *c, struct prng *prng)
{
	uint64_t limit = clock_limit(c);
	uint64_t regions = (c->blocks + REGION_BLOCKS - 1) / REGION_BLOCKS;
	size_t n = tracker_bytes(limit);
	int err = tracker_init(&w->tracker, &c->tuning->tracker, limit, take(w, 0, n), n);

	if (err)
		return err;
	n = buckets_bytes(regions);
	err = buckets_init(&w->buckets, regions, take(w, 1, n), n);
	if (err)
		return err;
	tracker_watch(&w->tracker, buckets_watch, &w->buckets);
	mapper_refresh(&w->mapper, &c->tuning->mapper, &w->tracker, prng);
	return 0;
}

static int open_lru(struct warmth *w, const struct warmth_config *c)
{
	uint64_t most = c->fast_blocks * 9 / 10;
	uint32_t limit = (uint32_t)(most < RECENCY_LIMIT_MAX ? most : RECENCY_LIMIT_MAX);
	size_t n = recency_bytes(limit ? limit : 1);

	return recency_init(&w->recency, limit ? limit : 1, take(w, 2, n), n);
}

int warmth_open(struct warmth *w, const struct warmth_config *c, struct prng *prng)
{
	int err;

	memset(w, 0, sizeof(*w));
	w->kind = c->kind;
	w->tuning = c->tuning;
	if (c->kind == HEAT_RALT)
		err = open_ralt(w, c);
	else if (c->kind == HEAT_CLOCK)
		err = open_clock(w, c, prng);
	else
		err = open_lru(w, c);
	if (err)
		warmth_close(w);
	return err;
}

void warmth_close(struct warmth *w)
{
	if (w->ralt)
		ralt_close(w->ralt);
	w->ralt = NULL;
	for (int i = 0; i < 3; i++) {
		free(w->memory[i]);
		w->memory[i] = NULL;
	}
}

static void touch_ralt(struct warmth *w, uint64_t block)
{
	int err = ralt_insert(w->ralt, block, ralt_generation(w->ralt));

	if (err) {
		w->errors++;
		w->last_error = err;
	}
}

void warmth_touch(struct warmth *w, uint64_t block)
{
	if (w->kind == HEAT_CLOCK)
		tracker_touch(&w->tracker, block, 0);
	else if (w->kind == HEAT_LRU)
		recency_touch(&w->recency, block);
	else
		touch_ralt(w, block);
}

void warmth_forget_blocks(struct warmth *w, uint64_t first, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		if (w->kind == HEAT_CLOCK)
			tracker_forget(&w->tracker, first + i);
		else
			recency_forget(&w->recency, first + i);
	}
}

/* Block by block: of a huge range so much now, and its rest is what the caller has left. */
static uint32_t forget_some_blocks(struct warmth *w, struct ralt_range *range, uint32_t nr)
{
	uint64_t left = FORGET_BLOCKS;

	for (uint32_t i = 0; i < nr; i++) {
		uint64_t now = range[i].count < left ? range[i].count : left;

		warmth_forget_blocks(w, range[i].first, now);
		range[i].first += now;
		range[i].count -= now;
		left -= now;
		if (range[i].count)
			return i;
	}
	return nr;
}

uint32_t warmth_forget_some(struct warmth *w, struct ralt_range *range, uint32_t nr)
{
	if (w->kind != HEAT_RALT)
		return forget_some_blocks(w, range, nr);
	if (nr > ralt_forget_room(w->ralt))
		nr = ralt_forget_room(w->ralt);
	if (!nr)
		return 0;
	w->last_error = ralt_forget(w->ralt, range, nr);
	w->errors += w->last_error != 0;
	return nr;
}

uint32_t warmth_forget_spare(const struct warmth *w)
{
	return w->kind == HEAT_RALT ? ralt_forget_spare(w->ralt) : UINT32_MAX;
}

bool warmth_used(const struct warmth *w, uint64_t block)
{
	if (w->kind == HEAT_CLOCK)
		return tracker_value(&w->tracker, block, 0) != TRACKER_NO_VALUE;
	if (w->kind == HEAT_LRU)
		return recency_level(&w->recency, block) != RECENCY_NO_LEVEL;
	return ralt_is_used(w->ralt, block);
}

bool warmth_hot(const struct warmth *w, uint64_t block)
{
	if (w->kind == HEAT_CLOCK)
		return mapper_pins(&w->mapper, block, tracker_value(&w->tracker, block, 0));
	if (w->kind == HEAT_LRU)
		return recency_level(&w->recency, block) != RECENCY_NO_LEVEL;
	return ralt_is_hot(w->ralt, block);
}

struct look {
	struct warmth_region *out;
	uint64_t first;
	double quartiles[3];
};

static int see(void *ctx, const struct ralt_heat *heat)
{
	struct look *look = ctx;
	uint32_t n = (uint32_t)(heat->block - look->first);

	look->out->level[n] = (int8_t)heat_quantile(heat->score, look->quartiles);
	if (heat->hot)
		upmask_set(&look->out->hot, n);
	return 0;
}

/*
 * They cost a walk through RALT's sample, and change slowly: one walk in so many calls of warmth_work(). Those of an empty sample,
 * as after the start, are 0, and nobody's heat.
 */
static void take_quartiles(struct warmth *w, double *out)
{
	if (!w->knows_quartiles)
		ralt_quartiles(w->ralt, w->quartiles);
	w->knows_quartiles = w->quartiles[2] > 0;
	memcpy(out, w->quartiles, sizeof(w->quartiles));
}

int warmth_look(struct warmth *w, uint64_t region, bool levels, struct warmth_region *out)
{
	struct look look = { .out = out, .first = region * REGION_BLOCKS };
	const struct heat heat = {
		.kind = w->kind, .tracker = &w->tracker, .mapper = &w->mapper, .recency = &w->recency,
	};

	memset(out->level, -1, sizeof(out->level));
	memset(&out->hot, 0, sizeof(out->hot));
	if (w->kind == HEAT_RALT) {
		if (levels)
			take_quartiles(w, look.quartiles);
		return ralt_scan(w->ralt, look.first, REGION_BLOCKS, !levels, see, &look);
	}
	for (uint32_t i = 0; i < REGION_BLOCKS; i++) {
		out->level[i] = (int8_t)heat_level(&heat, look.first + i, 0);
		if (heat_hot(&heat, look.first + i, 0))
			upmask_set(&out->hot, i);
	}
	return 0;
}

static int count_stable(void *ctx, const struct ralt_heat *heat)
{
	*(uint64_t *)ctx += heat->stable;
	return 0;
}

uint64_t warmth_hot_set(struct warmth *w, uint64_t first, uint64_t count)
{
	uint64_t hot = 0;

	if (w->kind == HEAT_RALT) {
		ralt_scan(w->ralt, first, count, true, count_stable, &hot);
		return hot;
	}
	for (uint64_t i = 0; i < count; i++)
		hot += warmth_hot(w, first + i);
	return hot;
}

/* ---- heat that is passed on ------------------------------------------------------------ */

struct worth {
	struct inherit_heat *out;
	uint64_t first;
};

static int see_worth(void *ctx, const struct ralt_heat *heat)
{
	struct worth *w = ctx;

	w->out[heat->block - w->first] = (struct inherit_heat){
		.score = (float)heat->score, .stable = heat->stable ? (float)heat->score : 0,
		.counter = (float)(heat->score * heat->counter),
	};
	return 0;
}

int warmth_worth(struct warmth *w, uint64_t first, uint64_t count, struct inherit_heat *out)
{
	const struct heat heat = {
		.kind = w->kind, .tracker = &w->tracker, .mapper = &w->mapper, .recency = &w->recency,
	};
	struct worth ctx = { out, first };

	if (w->kind == HEAT_RALT) {
		int err = ralt_scan(w->ralt, first, count, false, see_worth, &ctx);

		return err < 0 ? err : 0;
	}
	for (uint64_t i = 0; i < count; i++) {
		int level = heat_level(&heat, first + i, 0);

		out[i].score = level > 0 ? (float)level : 0;
		out[i].stable = out[i].score;
	}
	return 0;
}

bool warmth_inherit(struct warmth *w, uint64_t block, const struct inherit_heat *heat, bool *hot)
{
	struct ralt_heat start = { .block = block };

	if (!inherit_start(heat, &start.score, &start.counter, &start.stable))
		return false;
	if (w->kind == HEAT_RALT) {
		int err = ralt_inherit(w->ralt, &start);

		w->errors += err != 0;
		w->last_error = err ? err : w->last_error;
		*hot = start.hot;
		return true;
	}
	/* A clock's second touch sets its highest value; levels of 1 to 3 are all there is to pass on. */
	warmth_touch(w, block);
	if (w->kind == HEAT_CLOCK && start.score >= 1)
		warmth_touch(w, block);
	*hot = warmth_hot(w, block);
	return true;
}

void warmth_settle(struct warmth *w)
{
	if (w->kind == HEAT_RALT)
		w->errors += ralt_flush(w->ralt) != 0;
}

double warmth_hot_estimate(const struct warmth *w, uint64_t region)
{
	double hot = 0;

	if (w->kind == HEAT_CLOCK)
		return buckets_popular(&w->buckets, region);
	if (w->kind == HEAT_RALT)
		return ralt_hot_estimate(w->ralt, region * REGION_BLOCKS, REGION_BLOCKS);
	for (uint64_t i = 0; i < REGION_BLOCKS; i++)
		hot += warmth_hot(w, region * REGION_BLOCKS + i);
	return hot;
}

void warmth_estimate(struct warmth *w, struct region_view *view, uint32_t below)
{
	uint32_t popular = (uint32_t)(warmth_hot_estimate(w, view->region) + 0.5);

	approximate_view(view, &w->tuning->buckets, popular > below ? popular - below : 0);
}

void warmth_work(struct warmth *w, double fill, struct prng *prng)
{
	if (w->kind == HEAT_CLOCK)
		mapper_refresh(&w->mapper, &w->tuning->mapper, &w->tracker, prng);
	if (w->kind != HEAT_RALT)
		return;
	if (w->work++ % QUARTILES_WORK == 0)
		w->knows_quartiles = false;
	ralt_fill(w->ralt, fill);
	if (ralt_work(w->ralt, MERGE_RECORDS) < 0)
		w->errors++;
}
