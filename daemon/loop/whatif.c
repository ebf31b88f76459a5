// SPDX-License-Identifier: GPL-2.0-or-later
/* Miniatures with the memory of their heat sources; see whatif.h. */
#include "loop/whatif.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_MISSES	64	/* reads of the sample before they say anything */

const struct whatif_one whatif_settings[WHATIF_SETTINGS] = {
	{ .name = "ralt", .kind = HEAT_RALT, .times = 1 },
	{ .name = "clock", .kind = HEAT_CLOCK, .times = 1 },
	{ .name = "lru", .kind = HEAT_LRU, .times = 1 },
	{ .name = "clock_pins_less", .kind = HEAT_CLOCK, .times = 1, .pins = -0.5 },
	{ .name = "clock_pins_more", .kind = HEAT_CLOCK, .times = 1, .pins = 0.9 },
	{ .name = "fast_half", .kind = HEAT_KINDS, .times = 0.5 },
	{ .name = "fast_double", .kind = HEAT_KINDS, .times = 2 },
	{ .name = "fast_fourfold", .kind = HEAT_KINDS, .times = 4 },
};

/* ---- one setting ------------------------------------------------------------------------- */

static bool is_hot(void *ctx, uint64_t block)
{
	return ralt_small_is_hot(ctx, block);
}

static double score(void *ctx, uint64_t block)
{
	return ralt_small_score(ctx, block);
}

static void *take(struct whatif_one *o, int n, size_t bytes)
{
	o->memory[n] = malloc(bytes);
	return o->memory[n];
}

static uint32_t at_least_1(double n)
{
	return n < 1 ? 1 : (uint32_t)n;
}

/* As warmth_open() sizes them. */
static int open_heat(struct whatif_one *o, const struct tuning *t, uint32_t blocks, uint32_t fast, uint32_t shift)
{
	uint64_t tracked = tracker_limit(&t->tracker, blocks);
	uint32_t recent = at_least_1(fast * 0.9);
	size_t n;

	o->heat = (struct heat){
		.kind = o->kind, .ralt = &o->face, .tracker = &o->tracker, .mapper = &o->mapper, .recency = &o->recency,
	};
	o->face = (struct heat_ralt){ .ctx = &o->ralt, .is_hot = is_hot, .score = score };
	if (o->kind == HEAT_RALT) {
		n = ralt_small_bytes(blocks);
		return ralt_small_init(&o->ralt, &t->ralt, fast, blocks, shift, take(o, 1, n), n);
	}
	if (o->kind == HEAT_LRU) {
		n = recency_bytes(recent);
		return recency_init(&o->recency, recent, take(o, 1, n), n);
	}
	if (tracked > fast)
		tracked = fast;
	n = tracker_bytes(tracked);
	return tracker_init(&o->tracker, &t->tracker, tracked, take(o, 1, n), n);
}

static int open_one(struct whatif *w, struct whatif_one *o, const struct whatif_one *setting)
{
	uint32_t blocks = (uint32_t)((w->c.blocks - 1) >> w->shift) + 1;
	uint32_t fast = at_least_1((double)w->c.fast_blocks * setting->times / (double)(1ull << w->shift));
	size_t n = miniature_bytes(blocks, w->shift);
	int err;

	*o = *setting;
	if (o->kind == HEAT_KINDS)
		o->kind = w->c.heat;
	err = miniature_init(&o->miniature, blocks, fast, w->shift, take(o, 0, n), n);
	return err ? err : open_heat(o, w->tuning, blocks, fast, w->shift);
}

static void touch(struct whatif_one *o, uint32_t block)
{
	if (o->kind == HEAT_CLOCK)
		tracker_touch(&o->tracker, block, 0);
	else if (o->kind == HEAT_LRU)
		recency_touch(&o->recency, block);
	else
		ralt_small_touch(&o->ralt, block);
}

static void forget(struct whatif_one *o, uint32_t block)
{
	miniature_forget(&o->miniature, block);
	if (o->kind == HEAT_CLOCK)
		tracker_forget(&o->tracker, block);
	else if (o->kind == HEAT_LRU)
		recency_forget(&o->recency, block);
	else
		ralt_small_forget(&o->ralt, block);
}

static void work(struct whatif *w, struct whatif_one *o, bool skewed)
{
	struct mapper_tunables t = w->tuning->mapper;

	if (o->pins)
		t.pinning_threshold = o->pins > 0 ? o->pins : t.pinning_threshold * -o->pins;
	if (o->kind == HEAT_CLOCK)
		mapper_refresh(&o->mapper, &t, &o->tracker, &w->prng);
	if (o->kind != HEAT_RALT)
		return;
	ralt_small_fill(&o->ralt, skewed ? w->c.fill : 0);
	if (w->c.rule == CHOOSE_PRECISE)
		ralt_small_quartiles(&o->ralt, o->face.quartiles);
}

/* ---- all of them ------------------------------------------------------------------------- */

static int open_heads(struct whatif *w)
{
	uint32_t wide = miniature_counted_shift(&w->tuning->miniature, w->c.blocks);
	size_t n = headcount_bytes(w->c.blocks, wide, w->shift);

	if (wide >= w->shift)
		return 0;
	w->counts = malloc(n);
	return headcount_init(&w->heads, w->c.blocks, wide, w->shift, w->counts, n);
}

int whatif_open(struct whatif *w, const struct whatif_config *c, const struct tuning *tuning)
{
	int err;

	*w = (struct whatif){ .tuning = tuning, .c = *c, .prng = { c->seed } };
	if (!c->blocks || !c->fast_blocks)
		return -EINVAL;
	w->shift = miniature_shift(&tuning->miniature, c->blocks);
	if (!miniature_worthwhile(&tuning->miniature, w->shift))
		return -E2BIG;
	w->one = calloc(WHATIF_SETTINGS, sizeof(*w->one));
	if (!w->one)
		return -ENOMEM;
	err = open_heads(w);
	for (uint32_t i = 0; i < WHATIF_SETTINGS && !err; i++)
		err = open_one(w, &w->one[i], &whatif_settings[i]);
	if (err)
		whatif_close(w);
	return err;
}

void whatif_close(struct whatif *w)
{
	for (uint32_t i = 0; w->one && i < WHATIF_SETTINGS; i++) {
		free(w->one[i].memory[0]);
		free(w->one[i].memory[1]);
	}
	free(w->counts);
	free(w->one);
	w->counts = NULL;
	w->one = NULL;
}

/* Room for as much heat as the volume's fast tier has room for. */
static void resize(struct whatif *w, const struct miniature_rules *rules)
{
	for (uint32_t i = 0; i < WHATIF_SETTINGS; i++) {
		struct whatif_one *o = &w->one[i];
		uint32_t fast = at_least_1(headcount_room(&w->heads, (double)w->c.fast_blocks * o->times));

		miniature_resize(&o->miniature, rules, &o->heat, fast, &w->prng);
		if (o->kind == HEAT_RALT)
			ralt_small_resize(&o->ralt, fast);
	}
}

/* So often that what is told is of lately, so rarely that it is no noise. */
static void age(struct whatif *w)
{
	w->heard = 0;
	w->reads /= 2;
	for (uint32_t i = 0; i < WHATIF_SETTINGS; i++)
		miniature_age(&w->one[i].miniature);
}

void whatif_access(struct whatif *w, uint64_t block, bool write)
{
	const struct tuning *t = w->tuning;
	const struct miniature_rules rules = {
		.rule = w->c.rule, .choose = &t->choose, .msc = &t->msc, .buckets = &t->buckets, .watermark = &t->watermark,
		.flush = &t->flush,
	};
	uint64_t n = block >> w->shift, sampled;

	if (!w->one)
		return;
	w->reads += !write;
	sampled = miniature_block(n, w->shift);
	if (w->counts && headcount_access(&w->heads, block, sampled))
		resize(w, &rules);
	if (block != sampled)
		return;
	for (uint32_t i = 0; i < WHATIF_SETTINGS; i++) {
		struct whatif_one *o = &w->one[i];

		touch(o, (uint32_t)n);
		(write ? miniature_write : miniature_read)(&o->miniature, &rules, &o->heat, (uint32_t)n, &w->prng);
	}
	if (2 * ++w->heard >= w->one->miniature.blocks)
		age(w);
}

void whatif_forget(struct whatif *w, uint64_t first, uint64_t count)
{
	uint64_t end = first + count;

	if (w->counts)
		headcount_forget(&w->heads, first, count);
	for (uint64_t n = first >> w->shift; w->one && n < w->one->miniature.blocks && n << w->shift < end; n++) {
		uint64_t block = miniature_block(n, w->shift);

		for (uint32_t i = 0; block >= first && block < end && i < WHATIF_SETTINGS; i++)
			forget(&w->one[i], (uint32_t)n);
	}
}

void whatif_work(struct whatif *w, const struct shards *ghost, uint64_t accesses, uint64_t mapped)
{
	const struct admit_tunables *t = &w->tuning->admit;

	for (uint32_t i = 0; w->one && i < WHATIF_SETTINGS; i++) {
		struct whatif_one *o = &w->one[i];
		uint64_t fast = (uint64_t)((double)w->c.fast_blocks * o->times);
		bool skewed = admit_skewed(t, accesses, mapped, shards_hit_rate(ghost, fast), shards_lasting(ghost), fast);

		admit_watch_room(&o->filled, t, t->fill, o->miniature.fast_used, o->miniature.fast_blocks);
		o->miniature.up = !skewed ? MINIATURE_NOTHING :
				  admit_first_sight(t, &o->filled, accesses, mapped, shards_reuse(ghost)) ? MINIATURE_ALL :
				  MINIATURE_HOT;
		work(w, o, skewed);
	}
}

double whatif_hit_rate(const struct whatif *w, uint32_t setting)
{
	if (!w->one || w->reads < (double)((uint64_t)LEAST_MISSES << w->shift))
		return -1;
	return miniature_hit_rate(&w->one[setting].miniature, w->reads);
}

bool whatif_is_now(const struct whatif *w, uint32_t setting)
{
	const struct whatif_one *o = &w->one[setting];

	return o->kind == w->c.heat && o->times == 1 && !o->pins;
}
