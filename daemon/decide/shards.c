// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The SHARDS sample: hash table for look-up, heap for eviction by hash, Fenwick
 * tree for distances.
 *
 * Each access takes the next time; the tree holds a 1 at the last access of every
 * sample, so the distance is the count of ones after a block's previous time.
 * Times run out after `span` accesses; then the samples are renumbered in order.
 * With span = 4 * limit that costs O(1) amortised.
 */
#include "decide/shards.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "decide/admit.h"
#include "decide/prng.h"

/* No tunables: a period is over when as many of its accesses were repeats as in a uniform load's of one for each block, 1 / e; and has so many. */
#define FIRSTS		0.632
#define PERIOD_LEAST	1024

static const struct tunable rows[] = {
	TUNABLE(TUNABLE_U32, shards_tunables, samples, 16384, 16, 1 << 20,
		"blocks in the sample; its noise falls with the root (FAST'15 uses 8 K)"),
	TUNABLE(TUNABLE_U32, shards_tunables, buckets, 1024, 16, 65536,
		"resolution of the predicted curve"),
};
TUNABLE_TABLE(shards_tunable_table, "shards", rows);

static uint32_t table_size(uint32_t limit)
{
	uint32_t size = 16;

	while (size < 2 * limit)
		size *= 2;
	return size;
}

size_t shards_bytes(const struct shards_tunables *t)
{
	size_t n = t->samples, span = 4 * n + 1;

	return n * sizeof(struct shards_sample) + 2 * t->buckets * sizeof(double) +
	       (table_size(t->samples) + n + 2 * span) * sizeof(uint32_t) + 2 * n;
}

int shards_init(struct shards *s, const struct shards_tunables *t, uint64_t max_blocks,
		void *mem, size_t bytes)
{
	if (tunable_check(&shards_tunable_table, t, NULL) || !max_blocks)
		return -EINVAL;
	if (bytes < shards_bytes(t))
		return -ENOMEM;
	memset(mem, 0, shards_bytes(t));
	memset(s, 0, sizeof(*s));
	s->limit = t->samples;
	s->span = 4 * t->samples;
	s->buckets = t->buckets;
	s->bucket_blocks = (max_blocks + t->buckets - 1) / t->buckets;
	s->threshold = UINT64_MAX;
	s->mask = table_size(t->samples) - 1;
	s->samples = mem;
	s->access.histogram = (double *)(s->samples + s->limit);
	s->touch.histogram = s->access.histogram + s->buckets;
	s->slots = (uint32_t *)(s->touch.histogram + s->buckets);
	s->heap = s->slots + s->mask + 1;
	s->tree = s->heap + s->limit;
	s->at_time = s->tree + s->span + 1;
	s->uses[0] = (uint8_t *)(s->at_time + s->span + 1);
	s->uses[1] = s->uses[0] + s->limit;
	return 0;
}

double shards_rate(const struct shards *s)
{
	return (double)s->threshold * 0x1p-64;
}

/* --- Fenwick tree over times 1..span --- */

static void tree_add(struct shards *s, uint32_t time, int32_t by)
{
	for (; time <= s->span; time += time & -time)
		s->tree[time] += (uint32_t)by;
}

static uint32_t tree_upto(const struct shards *s, uint32_t time)
{
	uint32_t sum = 0;

	for (; time; time -= time & -time)
		sum += s->tree[time];
	return sum;
}

static void mark(struct shards *s, uint32_t n, uint32_t time)
{
	s->samples[n].time = time;
	s->at_time[time] = n + 1;
	tree_add(s, time, 1);
}

static void unmark(struct shards *s, uint32_t n)
{
	s->at_time[s->samples[n].time] = 0;
	tree_add(s, s->samples[n].time, -1);
}

/* Times are used up: number the samples 1.. in the order of their last access. */
static void renumber(struct shards *s)
{
	uint32_t next = 0;

	memset(s->tree, 0, (s->span + 1) * sizeof(*s->tree));
	for (uint32_t time = 1; time <= s->span; time++) {
		uint32_t n = s->at_time[time];

		if (!n)
			continue;
		s->at_time[time] = 0;
		mark(s, n - 1, ++next);
	}
	s->now = next;
}

/* --- heap by hash, the largest on top --- */

static void heap_place(struct shards *s, uint32_t at, uint32_t n)
{
	s->heap[at] = n;
	s->samples[n].heap_at = at;
}

static void heap_up(struct shards *s, uint32_t at)
{
	uint32_t n = s->heap[at];

	while (at && s->samples[s->heap[(at - 1) / 2]].hash < s->samples[n].hash) {
		heap_place(s, at, s->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	heap_place(s, at, n);
}

static void heap_down(struct shards *s, uint32_t at, uint32_t count)
{
	uint32_t n = s->heap[at];

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child >= count)
			break;
		if (child + 1 < count &&
		    s->samples[s->heap[child + 1]].hash > s->samples[s->heap[child]].hash)
			child++;
		if (s->samples[s->heap[child]].hash <= s->samples[n].hash)
			break;
		heap_place(s, at, s->heap[child]);
		at = child;
	}
	heap_place(s, at, n);
}

/* --- hash table --- */

static uint32_t find_slot(const struct shards *s, uint64_t block, uint64_t hash)
{
	uint32_t i = (uint32_t)hash & s->mask;

	while (s->slots[i] && s->samples[s->slots[i] - 1].block != block)
		i = (i + 1) & s->mask;
	return i;
}

static void clear_slot(struct shards *s, uint32_t i)
{
	for (uint32_t j = (i + 1) & s->mask; s->slots[j]; j = (j + 1) & s->mask) {
		uint32_t home = (uint32_t)s->samples[s->slots[j] - 1].hash & s->mask;

		if (((j - home) & s->mask) >= ((j - i) & s->mask)) {
			s->slots[i] = s->slots[j];
			i = j;
		}
	}
	s->slots[i] = 0;
}

/* --- two periods --- */

/* Blocks of a uniform load of @uses accesses that met @distinct ones. */
static double live_blocks(double distinct, double uses)
{
	double repeats = 1 - distinct / uses, low = 0, high = 64;

	/* accesses for each, found by halving */
	for (int i = 0; i < 40; i++) {
		double middle = (low + high) / 2;

		*(admit_uniform_reuse(middle) < repeats ? &low : &high) = middle;
	}
	return uses / high;
}

/*
 * Of a uniform load each block's accesses in one period say nothing of those in the next, so the products of the two sum up
 * to n1 n2 / L, whatever chance has done in each.  L are the blocks that are accessed at all, as the distinct ones tell.
 */
static double compare(const struct shards *s)
{
	double before = 0, now = 0, both = 0, distinct = 0;

	for (uint32_t i = 0; i < s->count; i++) {
		double a = s->uses[1][i], b = s->uses[0][i];

		before += a;
		now += b;
		both += a * b;
		distinct += a + b > 0;
	}
	if (before < PERIOD_LEAST / 2.0 || now <= 0)
		return 0;
	return both * live_blocks(distinct, before + now) / (before * now) - 1;
}

static void end_period(struct shards *s)
{
	uint8_t *before = s->uses[1];

	s->lasting = compare(s);
	s->uses[1] = s->uses[0];
	s->uses[0] = before;
	memset(before, 0, s->limit);
	s->used = s->distinct = 0;
}

static void count_use(struct shards *s, uint32_t n)
{
	if (s->uses[0][n] == UINT8_MAX)
		return;
	s->distinct += !s->uses[0][n]++;
	if (++s->used >= PERIOD_LEAST && s->distinct <= FIRSTS * (double)s->used)
		end_period(s);
}

static void forget_uses(struct shards *s, uint32_t n)
{
	s->distinct -= s->uses[0][n] > 0;
	s->used -= s->uses[0][n];
	s->uses[0][n] = s->uses[1][n] = 0;
}

double shards_lasting(const struct shards *s)
{
	return s->lasting;
}

/* --- the sample --- */

static void scale(struct shards_curve *c, uint32_t buckets, double factor)
{
	for (uint32_t i = 0; i < buckets; i++)
		c->histogram[i] *= factor;
	c->cold *= factor;
	c->far *= factor;
}

/* What a use of a sampled block stands for: at a lower rate for more. So nothing counted changes with the rate. */
static double weight(const struct shards *s)
{
	return 1 / shards_rate(s);
}

/* Takes the sample with the largest hash out; returns its number for reuse. */
static uint32_t drop_largest(struct shards *s)
{
	uint32_t n = s->heap[0];
	struct shards_sample *out = &s->samples[n];

	s->threshold = out->hash;
	clear_slot(s, find_slot(s, out->block, out->hash));
	unmark(s, n);
	forget_uses(s, n);
	s->count--;
	if (s->count) {
		heap_place(s, 0, s->heap[s->count]);
		heap_down(s, 0, s->count);
	}
	return n;
}

/* -1: it is none. */
static int64_t add_sample(struct shards *s, uint64_t block, uint64_t hash)
{
	uint32_t n = s->count;

	if (s->count == s->limit) {
		/* The newcomer itself may have the largest hash. */
		if (hash >= s->samples[s->heap[0]].hash) {
			s->threshold = hash;
			return -1;
		}
		n = drop_largest(s);
	}
	s->samples[n].block = block;
	s->samples[n].hash = hash;
	s->slots[find_slot(s, block, hash)] = n + 1;
	heap_place(s, s->count, n);
	heap_up(s, s->count++);
	mark(s, n, ++s->now);
	return n;
}

static void count_distance(const struct shards *s, struct shards_curve *c, uint32_t n)
{
	uint32_t newer = s->count - tree_upto(s, s->samples[n].time);
	double distance = (double)newer * weight(s);
	uint64_t bucket = (uint64_t)(distance / (double)s->bucket_blocks);

	if (bucket < s->buckets)
		c->histogram[bucket] += weight(s);
	else
		c->far += weight(s);
}

/* Its number in the sample, or -1. */
static int64_t use(struct shards *s, struct shards_curve *c, uint64_t block)
{
	uint64_t hash = mix64(block + 0x9e3779b97f4a7c15ull);
	uint32_t i;

	c->all += 1;
	if (hash >= s->threshold)
		return -1;
	if (s->now == s->span)
		renumber(s);
	i = find_slot(s, block, hash);
	if (!s->slots[i]) {
		c->cold += weight(s);
		return add_sample(s, block, hash);
	}
	i = s->slots[i] - 1;
	count_distance(s, c, i);
	unmark(s, i);
	mark(s, i, ++s->now);
	return i;
}

void shards_access(struct shards *s, uint64_t block)
{
	int64_t n = use(s, &s->access, block);

	if (n >= 0)
		count_use(s, (uint32_t)n);
}

void shards_touch(struct shards *s, uint64_t block)
{
	use(s, &s->touch, block);
}

static double hit_rate(const struct shards *s, const struct shards_curve *c, uint64_t blocks)
{
	double want = (double)blocks / (double)s->bucket_blocks;
	double hits = 0, counted = c->cold + c->far, rate;

	if (c->all <= 0)
		return 0;
	for (uint32_t i = 0; i < s->buckets; i++) {
		double part = want - i;

		counted += c->histogram[i];
		if (part > 0)
			hits += c->histogram[i] * (part < 1 ? part : 1);
	}
	/* What the sample should have counted but did not belongs to hot blocks: distance 0. */
	hits += c->all - counted;
	rate = hits / c->all;
	return rate < 0 ? 0 : rate > 1 ? 1 : rate;
}

double shards_hit_rate(const struct shards *s, uint64_t blocks)
{
	return hit_rate(s, &s->access, blocks);
}

double shards_touch_rate(const struct shards *s, uint64_t blocks)
{
	return hit_rate(s, &s->touch, blocks);
}

double shards_reuse(const struct shards *s)
{
	double reuse = s->access.all > 0 ? 1.0 - s->access.cold / s->access.all : 0;

	return reuse < 0 ? 0 : reuse;
}

/* A curve of few samples is noise: it keeps them until they are many, as a large volume's are late. */
void shards_age(struct shards *s)
{
	if ((s->access.all + s->touch.all) * shards_rate(s) < s->limit)
		return;
	scale(&s->access, s->buckets, 0.5);
	scale(&s->touch, s->buckets, 0.5);
	s->access.all /= 2;
	s->touch.all /= 2;
}
