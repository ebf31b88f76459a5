// SPDX-License-Identifier: GPL-2.0-or-later
/* Drawing blocks; see workload.h. */
#include "workload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is(const struct workload *w, const char *kind)
{
	return !strcmp(w->kind, kind);
}

static bool zipf_table(struct workload *w)
{
	double total = 0;

	w->sums = malloc(w->blocks * sizeof(*w->sums));
	if (!w->sums)
		return false;
	for (uint64_t i = 0; i < w->blocks; i++)
		w->sums[i] = total += pow((double)i + 1, -w->theta);
	for (uint64_t i = 0; i < w->blocks; i++)
		w->sums[i] /= total;
	return true;
}

static bool lap_table(struct workload *w)
{
	uint64_t hot = workload_hot_blocks(w);

	w->lap = malloc(hot * sizeof(*w->lap));
	for (uint64_t i = 0; w->lap && i < hot; i++)
		w->lap[i] = i;
	w->lap_at = hot;
	return w->lap;
}

bool workload_init(struct workload *w, const char *kind, uint64_t blocks, bool hashed,
		   double hot_share, uint64_t seed)
{
	memset(w, 0, sizeof(*w));
	strncpy(w->kind, kind, sizeof(w->kind) - 1);
	w->blocks = blocks;
	w->hashed = hashed;
	w->theta = 0.99;
	w->hot_share = hot_share;
	w->hot_probability = 0.95;
	w->prng.state = seed;
	if (is(w, "zipf"))
		return zipf_table(w);
	if (is(w, "laps"))
		return lap_table(w);
	return is(w, "hotspot") || is(w, "uniform") || is(w, "shift") || is(w, "grow") ||
	       is(w, "shrink");
}

void workload_exit(struct workload *w)
{
	free(w->sums);
	free(w->lap);
}

void workload_stage(struct workload *w, uint64_t stage)
{
	w->stage = stage;
}

static double share_now(const struct workload *w)
{
	double share = w->hot_share;

	if (is(w, "grow"))
		share *= (double)(1ull << w->stage);
	if (is(w, "shrink"))
		share /= (double)(1ull << w->stage);
	return share < 1 ? share : 1;
}

uint64_t workload_hot_blocks(const struct workload *w)
{
	if (is(w, "zipf") || is(w, "uniform"))
		return w->blocks / 10;
	return (uint64_t)((double)w->blocks * share_now(w));
}

static uint64_t zipf_rank(struct workload *w)
{
	double u = prng_unit(&w->prng);
	uint64_t lo = 0, hi = w->blocks - 1;

	while (lo < hi) {
		uint64_t mid = (lo + hi) / 2;

		if (w->sums[mid] < u)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static uint64_t next_of_lap(struct workload *w)
{
	uint64_t hot = workload_hot_blocks(w);

	if (w->lap_at == hot) {
		for (uint64_t i = hot - 1; i; i--) {
			uint64_t k = prng_below(&w->prng, i + 1), swap = w->lap[i];

			w->lap[i] = w->lap[k];
			w->lap[k] = swap;
		}
		w->lap_at = 0;
	}
	return w->lap[w->lap_at++];
}

static uint64_t draw(struct workload *w)
{
	uint64_t first = 0;

	if (is(w, "zipf"))
		return zipf_rank(w);
	if (is(w, "uniform") || prng_unit(&w->prng) >= w->hot_probability)
		return prng_below(&w->prng, w->blocks);
	if (is(w, "laps"))
		return next_of_lap(w);
	if (is(w, "shift"))
		first = w->stage * workload_hot_blocks(w) * 3;
	return (first + prng_below(&w->prng, workload_hot_blocks(w))) % w->blocks;
}

/* A bijection of 0..blocks-1: mixing steps on the next power of two, again while outside. */
static uint64_t scatter(const struct workload *w, uint64_t n)
{
	uint32_t bits = 1;

	while (1ull << bits < w->blocks)
		bits++;
	uint64_t mask = (1ull << bits) - 1;

	do {
		n = (n * 0x9e3779b97f4a7c15ull) & mask;
		n ^= n >> (bits / 2 + 1);
		n = (n * 0xd1b54a32d192ed03ull) & mask;
		n ^= n >> (bits / 2 + 1);
	} while (n >= w->blocks);
	return n;
}

uint64_t workload_next(struct workload *w)
{
	uint64_t n = draw(w);

	return w->hashed ? scatter(w, n) : n;
}
