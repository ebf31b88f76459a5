// SPDX-License-Identifier: GPL-2.0-or-later
/* The replay's loop; see policy.h. */
#include "policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STEP_OPERATIONS		64u
#define ATTEMPTS		64u

void policy_config_defaults(struct policy_config *c)
{
	*c = (struct policy_config){
		.heat = HEAT_RALT, .rule = CHOOSE_APPROX, .tracked_share = 0.1,
		.cache_blocks = 1024, .first_sight = true, .fill = 0.85, .flush = true, .appends = true,
		.seed = 1,
	};
	tunable_defaults(&ralt_tunable_table, &c->ralt);
}

static void defaults(struct policy *p)
{
	tunable_defaults(&tracker_tunable_table, &p->tracker_t);
	tunable_defaults(&mapper_tunable_table, &p->mapper_t);
	tunable_defaults(&bucket_tunable_table, &p->bucket_t);
	tunable_defaults(&msc_tunable_table, &p->msc_t);
	if (!p->c.appends)
		p->msc_t.append_debt = 0;	/* nothing has been paid before: the paper's cost */
	tunable_defaults(&choose_tunable_table, &p->choose_t);
	tunable_defaults(&flush_tunable_table, &p->flush_t);
	tunable_defaults(&watermark_tunable_table, &p->watermark_t);
	tunable_defaults(&epoch_tunable_table, &p->epoch_t);
	tunable_defaults(&admit_tunable_table, &p->admit_t);
	tunable_defaults(&shards_tunable_table, &p->shards_t);
	p->tracker_t.tracked_share = p->c.tracked_share;
	if (p->flush_t.run_blocks > p->c.cache_blocks / 2)
		p->flush_t.run_blocks = p->c.cache_blocks / 2;
}

static void *take(struct policy *p, int n, size_t bytes)
{
	p->memory[n] = malloc(bytes);
	return p->memory[n];
}

static bool make_trackers(struct policy *p)
{
	uint64_t limit = tracker_limit(&p->tracker_t, p->v->blocks);
	uint32_t recent = (uint32_t)(p->v->fast_total * 9 / 10);
	size_t n;

	n = tracker_bytes(limit);
	if (tracker_init(&p->tracker, &p->tracker_t, limit, take(p, 0, n), n))
		return false;
	n = buckets_bytes(p->v->regions);
	if (buckets_init(&p->buckets, p->v->regions, take(p, 1, n), n))
		return false;
	tracker_watch(&p->tracker, buckets_watch, &p->buckets);
	n = recency_bytes(recent);
	if (recency_init(&p->recency, recent, take(p, 2, n), n))
		return false;
	n = recency_bytes(p->c.cache_blocks);
	if (recency_init(&p->cache, p->c.cache_blocks, take(p, 3, n), n))
		return false;
	n = shards_bytes(&p->shards_t);
	return !shards_init(&p->shards, &p->shards_t, p->v->blocks, take(p, 4, n), n);
}

bool policy_init(struct policy *p, const struct policy_config *c, struct volume *v)
{
	struct ralt_config rc = {
		.directory = c->ralt_directory, .volume = 1, .nonce = c->seed,
		.fast_blocks = v->fast_total, .tunables = c->ralt,
	};

	memset(p, 0, sizeof(*p));
	p->c = *c;
	p->v = v;
	p->prng.state = c->seed;
	defaults(p);
	if (c->heat == HEAT_RALT && ralt_open(&p->ralt, &rc))
		return false;
	if (epoch_init(&p->epoch, &p->epoch_t, v->blocks))
		return false;
	if (!make_trackers(p))
		return false;
	mapper_refresh(&p->mapper, &p->mapper_t, &p->tracker, &p->prng);
	return true;
}

void policy_exit(struct policy *p)
{
	if (p->ralt)
		ralt_close(p->ralt);
	for (int i = 0; i < 6; i++)
		free(p->memory[i]);
}

static bool is_hot(const struct policy *p, uint64_t block)
{
	switch (p->c.heat) {
	case HEAT_CLOCK:
		return mapper_pins(&p->mapper, block, tracker_value(&p->tracker, block, 0));
	case HEAT_LRU:
		return recency_level(&p->recency, block) != RECENCY_NO_LEVEL;
	default:
		return ralt_is_hot(p->ralt, block);
	}
}

static void touch(struct policy *p, uint64_t block)
{
	switch (p->c.heat) {
	case HEAT_CLOCK:
		tracker_touch(&p->tracker, block, 0);
		break;
	case HEAT_LRU:
		recency_touch(&p->recency, block);
		break;
	default:
		if (ralt_insert(p->ralt, block, 0))
			abort();
		break;
	}
}

/* What precise MSC knows of a region: every block's level and whether it is hot. */
struct region_heat {
	uint64_t first;
	double quartiles[3];
	int8_t level[REGION_BLOCKS];
	struct upmask hot;
};

static int see_block(void *ctx, const struct ralt_heat *heat)
{
	struct region_heat *h = ctx;
	uint32_t n = (uint32_t)(heat->block - h->first);

	h->level[n] = (int8_t)heat_quantile(heat->score, h->quartiles);
	if (heat->hot)
		upmask_set(&h->hot, n);
	return 0;
}

static void look_closely(struct policy *p, uint64_t region, struct region_heat *h)
{
	memset(h, 0, sizeof(*h));
	memset(h->level, -1, sizeof(h->level));
	h->first = region * REGION_BLOCKS;
	if (p->c.heat == HEAT_RALT) {
		ralt_quartiles(p->ralt, h->quartiles);
		if (ralt_scan(p->ralt, h->first, REGION_BLOCKS, false, see_block, h) < 0)
			abort();
		return;
	}
	for (uint32_t i = 0; i < REGION_BLOCKS; i++) {
		if (is_hot(p, h->first + i))
			upmask_set(&h->hot, i);
		h->level[i] = (int8_t)(p->c.heat == HEAT_CLOCK ?
				       tracker_value(&p->tracker, h->first + i, 0) :
				       recency_level(&p->recency, h->first + i));
	}
}

static void precise_view(struct policy *p, struct region_view *view)
{
	struct region_heat h;

	look_closely(p, view->region, &h);
	for (uint32_t i = 0; i < REGION_BLOCKS; i++) {
		if (p->v->place[h.first + i] == PLACE_PACKED)
			continue;
		view->coldness += coldness(h.level[i]);
		view->pinned_blocks += upmask_test(&h.hot, i);
		view->hot_blocks += upmask_test(&h.hot, i);
	}
}

static bool view_region(void *ctx, uint64_t index, struct region_view *view)
{
	struct policy *p = ctx;
	uint64_t region = p->v->fast_regions[index];

	volume_view(p->v, region, view);
	if (!p->c.appends)
		view->packs = REGION_PACKS;
	if (p->c.rule == CHOOSE_RANDOM || p->c.rule == CHOOSE_OLDEST)
		return true;
	if (p->c.rule == CHOOSE_PRECISE || p->c.heat == HEAT_LRU)
		precise_view(p, view);
	else if (p->c.heat == HEAT_CLOCK)
		approximate_view(view, &p->bucket_t, buckets_popular(&p->buckets, region));
	else
		approximate_view(view, &p->bucket_t,
				 (uint32_t)(ralt_hot_estimate(p->ralt, region * REGION_BLOCKS,
							      REGION_BLOCKS) + 0.5));
	return true;
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint32_t room(struct policy *p)
{
	uint64_t high = (uint64_t)((double)p->v->fast_total * p->watermark_t.high);

	return p->v->fast_used < high ? (uint32_t)(high - p->v->fast_used) : 0;
}

/* Carries the choice out; returns the fast blocks it freed. */
static uint64_t carry_out(struct policy *p, const struct choice *c)
{
	struct upmask_input in;
	struct upmask_result up;
	struct region_heat h;
	uint64_t used = p->v->fast_used;
	bool merge = c->msc.mode == MOVE_MERGE || !p->c.appends;

	volume_masks(p->v, c->view.region, &in);
	if (p->c.heat == HEAT_RALT) {
		memset(&h, 0, sizeof(h));
		h.first = c->view.region * REGION_BLOCKS;
		if (ralt_scan(p->ralt, h.first, REGION_BLOCKS, true, see_block, &h) < 0)
			abort();
	} else {
		look_closely(p, c->view.region, &h);
	}
	in.hot = h.hot;
	upmask_build(&up, &in, merge ? room(p) : 0);
	p->retained += up.retained;
	if (!up.demoted)
		return 0;
	if (merge)
		p->compaction_promotions += up.promoted;
	volume_move(p->v, c->view.region, &up.up, merge ? MOVE_MERGE : MOVE_APPEND);
	return used > p->v->fast_used ? used - p->v->fast_used : 0;
}

/*
 * What no policy can know: of all regions, by the blocks themselves, the one that frees most for what it writes.
 * A bound for the eye, greedy and so no proof.
 */
static double frees_per_write(struct policy *p, const struct region_view *view, bool merge)
{
	double rewritten = view->packed_blocks - view->garbage_blocks, dirty = 0, leaves = 0;

	for (uint32_t i = 0; i < REGION_BLOCKS; i++) {
		uint64_t block = view->region * REGION_BLOCKS + i;

		if (p->v->place[block] == PLACE_PACKED || is_hot(p, block))
			continue;
		leaves++;
		dirty += p->v->place[block] == PLACE_DIRTY;
	}
	return dirty > 0 ? leaves / (dirty * p->v->ratio + rewritten * (merge ? 1 : 1.0 / REGION_PACKS)) : leaves;
}

static int choose_knowing_all(struct policy *p, struct choice *c)
{
	double best = 0;

	for (uint32_t i = 0; i < p->v->fast_region_count; i++) {
		struct region_view view;
		bool merge;
		double score;

		volume_view(p->v, p->v->fast_regions[i], &view);
		merge = !p->c.appends || view.packs >= REGION_PACKS;
		score = frees_per_write(p, &view, merge);
		if (score <= best)
			continue;
		best = score;
		*c = (struct choice){ .view = view, .score = score, .msc.mode = merge ? MOVE_MERGE : MOVE_APPEND };
	}
	return best > 0 ? 0 : -ENOENT;
}

static int choose(struct policy *p, struct choice *c)
{
	if (p->c.knows_all)
		return choose_knowing_all(p, c);
	return choose_region(c, p->c.rule, &p->choose_t, &p->msc_t, p->v->fast_region_count, view_region, p, &p->prng);
}

static void demote(struct policy *p, uint64_t blocks)
{
	uint64_t freed = 0;

	for (uint32_t i = 0; freed < blocks && i < ATTEMPTS; i++) {
		struct choice c;
		double start = now_ns();
		int err = choose(p, &c);

		p->choice_ns += now_ns() - start;
		p->choices++;
		if (err)
			return;
		freed += carry_out(p, &c);
	}
}

static bool is_skewed(const struct policy *p)
{
	return admit_skewed(&p->admit_t, (uint64_t)p->shards.access.all, p->v->blocks,
			    shards_hit_rate(&p->shards, p->v->fast_total), shards_lasting(&p->shards), p->v->fast_total);
}

/* The block, and where most around it are hot, those as well; how many went up. */
static uint32_t raise_up(struct policy *p, uint64_t block, bool seen)
{
	uint64_t region = block / REGION_BLOCKS;
	struct upmask_input in;
	struct upmask up = { 0 };
	struct region_heat h;
	uint32_t n = volume_raise(p->v, block);

	if (!n || p->flush_t.neighbours > 1)
		return n;
	look_closely(p, region, &h);
	for (uint32_t i = 0; seen && i < REGION_BLOCKS; i++)
		if (h.level[i] >= 0)
			upmask_set(&h.hot, i);
	volume_masks(p->v, region, &in);
	upmask_set(&up, (uint32_t)(block % REGION_BLOCKS));
	upmask_neighbours(&up, &h.hot, &in.fast, &in.packed, p->flush_t.neighbours, room(p));
	for (uint32_t i = 0; i < REGION_BLOCKS; i++)
		if (upmask_test(&up, i) && upmask_test(&in.packed, i))
			n += volume_raise(p->v, region * REGION_BLOCKS + i);
	return n;
}

/* The cache's entries are judged together; the hot ones go up or stay, the others leave. */
static void flush_cache(struct policy *p)
{
	uint64_t hot[4096];
	uint32_t n = 0, total = p->cache.count;
	enum flush_verdict verdict;

	for (uint32_t i = 0; i < total && n < 4096; i++)
		if (is_hot(p, p->cache.entries[i].block))
			hot[n++] = p->cache.entries[i].block;
	p->fresh_in_cache = 0;
	/* They wait, the oldest leaving, until skew shows. */
	if (!is_skewed(p))
		return;
	verdict = flush_decide(&p->flush_t, p->flush_t.run_blocks, n);
	if (verdict == FLUSH_PROMOTE) {
		uint32_t fits = room(p);

		for (uint32_t i = 0; i < n && i < fits; i++)
			p->flush_promotions += raise_up(p, hot[i], false);
		/* Those that found no room wait for the demotion this causes. */
		if (n > fits)
			p->watermark.demoting = true;
	}
	recency_empty(&p->cache);
	if (verdict == FLUSH_KEEP) {
		p->kept++;
		for (uint32_t i = 0; i < n; i++)
			recency_touch(&p->cache, hot[i]);
	}
}

static void slow_read(struct policy *p, uint64_t block)
{
	admit_watch_room(&p->filled, &p->admit_t, p->admit_t.fill, p->v->fast_used, p->v->fast_total);
	if (p->c.first_sight &&
	    admit_first_sight(&p->admit_t, &p->filled, (uint64_t)p->shards.access.all, p->v->blocks, shards_reuse(&p->shards))) {
		p->first_sight_promotions += raise_up(p, block, true);
		while (p->cache.count && room(p)) {
			uint64_t waited = p->cache.entries[0].block;

			recency_forget(&p->cache, waited);
			p->first_sight_promotions += raise_up(p, waited, true);
		}
		return;
	}
	if (!p->c.flush)
		return;
	if (!recency_touch(&p->cache, block))
		p->fresh_in_cache++;
	if (p->fresh_in_cache >= p->flush_t.run_blocks * 2 - p->flush_t.run_blocks / 2)
		flush_cache(p);
}

/* Read-triggered: raise what is hot in a random region, making room as needed. */
static void epoch_move(struct policy *p)
{
	uint64_t region = prng_below(&p->prng, p->v->regions);
	struct upmask_input in;
	struct upmask_result up;
	struct region_heat h;

	look_closely(p, region, &h);
	volume_masks(p->v, region, &in);
	in.hot = h.hot;
	upmask_build(&up, &in, room(p));
	if (up.refused)
		demote(p, up.refused);
	if (!up.promoted)
		return;
	for (uint32_t w = 0; w < UPMASK_WORDS; w++)
		up.up.bits[w] |= in.fast.bits[w];
	volume_move(p->v, region, &up.up, MOVE_RAISE);
	p->compaction_promotions += up.promoted;
}

static void step(struct policy *p)
{
	struct watermark_verdict w;
	uint64_t ops = p->v->operations - p->last_operations;

	epoch_step(&p->epoch, &p->epoch_t, ops, p->v->reads - p->last_reads,
		   p->v->fast_hits - p->last_hits);
	p->last_operations = p->v->operations;
	p->last_reads = p->v->reads;
	p->last_hits = p->v->fast_hits;
	if (p->c.heat == HEAT_CLOCK && p->v->operations % 4096 < STEP_OPERATIONS)
		mapper_refresh(&p->mapper, &p->mapper_t, &p->tracker, &p->prng);
	if (p->ralt && p->v->operations % 4096 < STEP_OPERATIONS)
		ralt_fill(p->ralt, is_skewed(p) ? p->c.fill : 0);
	w = watermark_step(&p->watermark, &p->watermark_t, p->v->fast_used, p->v->fast_total);
	if (w.demote_blocks)
		demote(p, w.demote_blocks);
	if (!p->c.flush && epoch_moves(&p->epoch) && p->v->operations % 1024 < STEP_OPERATIONS)
		epoch_move(p);
}

void policy_access(struct policy *p, uint64_t block, bool write)
{
	bool fast;

	touch(p, block);
	shards_access(&p->shards, block);
	fast = write ? volume_write(p->v, block) : volume_read(p->v, block);
	if (!fast && !write)
		slow_read(p, block);
	if (p->v->operations % STEP_OPERATIONS == 0)
		step(p);
}
