// SPDX-License-Identifier: GPL-2.0-or-later
/* The resident sample as an open-addressing table; see sample.h. */
#include "ralt/sample.h"

#include <string.h>

#include "decide/prng.h"

static uint32_t table_size(uint32_t limit)
{
	uint32_t size = 64;

	while (size < limit + limit / 3 + 1)
		size *= 2;
	return size;
}

size_t sample_bytes(uint32_t limit)
{
	return table_size(limit) * sizeof(struct sample_slot) + table_size(limit) / 8;
}

void sample_init(struct sample *s, uint32_t limit, uint32_t shift, void *mem)
{
	memset(mem, 0, sample_bytes(limit));
	*s = (struct sample){
		.slots = mem, .mask = table_size(limit) - 1, .limit = limit, .shift = shift,
	};
	s->taken = (uint64_t *)(s->slots + table_size(limit));
}

uint32_t sample_shift_for(uint32_t limit, uint64_t records)
{
	uint32_t shift = 0;

	while (shift < 40 && records >> shift > limit / 4 * 3)
		shift++;
	return shift;
}

/* The upper bits choose the sample, the lower ones the slot. */
static uint64_t hash_of(uint64_t block)
{
	return mix64(block * 0x9e3779b97f4a7c15ull + 0x2545f4914f6cdd1dull);
}

static bool hash_wanted(const struct sample *s, uint64_t hash)
{
	return !s->shift || hash >> (64 - s->shift) == 0;
}

bool sample_wants(const struct sample *s, uint64_t block)
{
	return hash_wanted(s, hash_of(block));
}

static bool used(const struct sample *s, uint32_t i)
{
	return s->slots[i].record.score > 0;
}

/* The first slot from @i on that has been taken; beyond the mask: none. */
static uint32_t taken(const struct sample *s, uint32_t i)
{
	uint64_t word;

	if (i > s->mask)
		return i;
	for (word = s->taken[i / 64] >> i % 64; !word; word = s->taken[i / 64]) {
		i = (i | 63) + 1;
		if (i > s->mask)
			return i;
	}
	return i + (uint32_t)__builtin_ctzll(word);
}

/* Walks through the sample cost as much as there is in it: most of a small tier's table is empty. */
#define for_each_taken(s, i)	for (uint32_t i = taken(s, 0); i <= (s)->mask; i = taken(s, i + 1))

static uint32_t find(const struct sample *s, uint64_t block)
{
	uint32_t i = (uint32_t)hash_of(block) & s->mask;

	while (used(s, i) && s->slots[i].record.block != block)
		i = (i + 1) & s->mask;
	return i;
}

static void remove_at(struct sample *s, uint32_t i)
{
	for (uint32_t j = (i + 1) & s->mask; used(s, j); j = (j + 1) & s->mask) {
		uint32_t home = (uint32_t)hash_of(s->slots[j].record.block) & s->mask;

		if (((j - home) & s->mask) >= ((j - i) & s->mask)) {
			s->slots[i] = s->slots[j];
			i = j;
		}
	}
	memset(&s->slots[i], 0, sizeof(s->slots[i]));
	s->taken[i / 64] &= ~(1ull << i % 64);
	s->count--;
}

/* A removal may move another entry into slot i: look at it again. */
static void halve(struct sample *s)
{
	s->shift++;
	for_each_taken(s, i)
		while (used(s, i) && !sample_wants(s, s->slots[i].record.block))
			remove_at(s, i);
}

/* The slot for @block, making room first; false when it is not sampled (any more). */
static bool make_room(struct sample *s, uint64_t block)
{
	while (s->count >= s->limit) {
		halve(s);
		if (!sample_wants(s, block))
			return false;
	}
	return true;
}

static void put_new(struct sample *s, const struct ralt_record *r)
{
	uint32_t i;

	if (!make_room(s, r->block))
		return;
	i = find(s, r->block);
	s->slots[i] = (struct sample_slot){ .record = *r };
	s->taken[i / 64] |= 1ull << i % 64;
	s->count++;
}

void sample_add_newer(struct sample *s, const struct ralt_judge *j, const struct ralt_record *r)
{
	struct ralt_record merged = *r;
	struct ralt_record *old;

	if (!sample_wants(s, r->block))
		return;
	old = &s->slots[find(s, r->block)].record;
	if (old->score <= 0) {
		put_new(s, r);
		return;
	}
	ralt_record_merge(j, &merged, old);
	*old = merged;
}

void sample_add_older(struct sample *s, const struct ralt_judge *j, const struct ralt_record *r)
{
	struct ralt_record *newer;

	if (!sample_wants(s, r->block))
		return;
	newer = &s->slots[find(s, r->block)].record;
	if (newer->score <= 0)
		put_new(s, r);
	else
		ralt_record_merge(j, newer, r);
}

void sample_forget(struct sample *s, const struct forget *f)
{
	for_each_taken(s, i)
		while (used(s, i) && forget_generation(f, s->slots[i].record.block) >
					     s->slots[i].record.generation)
			remove_at(s, i);
}

void sample_drop(struct sample *s, uint64_t block)
{
	uint32_t i = find(s, block);

	if (used(s, i))
		remove_at(s, i);
}

const struct ralt_record *sample_find(const struct sample *s, uint64_t block)
{
	uint32_t i = find(s, block);

	return used(s, i) ? &s->slots[i].record : NULL;
}

void sample_mark_hot(struct sample *s, const struct ralt_judge *j)
{
	const struct ralt_cuts cuts = ralt_cuts_of(j);

	for_each_taken(s, i)
		s->slots[i].was_hot = used(s, i) && ralt_verdict(&cuts, &s->slots[i].record).hot;
}

/* One walk for all that is wanted of it: @others as in sample_census(), @settle as sample_settle() says. */
static struct sample_census walk(const struct sample *s, const struct ralt_judge *j, double *others, bool settle)
{
	const struct ralt_cuts cuts = ralt_cuts_of(j);
	uint64_t tracked = 0, members = 0, stable = 0, fill = 0, passed = 0, stale = 0;
	double weight = (double)(1ull << s->shift);
	struct sample_census c = { 0 };

	for (uint32_t w = 0; w <= s->mask / 64; w++) {
		for (uint64_t left = s->taken[w]; left; left &= left - 1) {
			struct sample_slot *slot = &s->slots[w * 64 + (uint32_t)__builtin_ctzll(left)];
			struct ralt_verdict v;

			if (slot->record.score <= 0)
				continue;
			v = ralt_verdict(&cuts, &slot->record);
			tracked++;
			stale += slot->was_hot && !v.hot;
			if (settle && !v.above)
				ralt_record_fall(&slot->record);
			if (!ralt_counts(j, &slot->record)) {
				passed += v.member;
				continue;
			}
			members += v.above;
			stable += v.member;
			fill += v.hot && !v.member;
			if (others && !v.member)
				others[c.nr_others++] = v.score;
		}
	}
	c.tracked = (double)tracked * weight;
	c.members = (double)members * weight;
	c.stable = (double)stable * weight;
	c.fill = (double)fill * weight;
	c.passed = (double)passed * weight;
	c.stale = (double)stale * weight;
	return c;
}

struct sample_census sample_census(const struct sample *s, const struct ralt_judge *j, double *others)
{
	return walk(s, j, others, false);
}

/* What falls is below the threshold before and after. */
struct sample_census sample_settle(struct sample *s, const struct ralt_judge *j)
{
	return walk(s, j, NULL, true);
}

size_t sample_scratch_bytes(const struct sample *s)
{
	return (size_t)s->limit * sizeof(double);
}

/* Moves the @k largest of @v to its front, the smallest of them last (quickselect). */
static void select_largest(double *v, size_t n, size_t k)
{
	size_t lo = 0, hi = n;

	while (hi - lo > 1) {
		double pivot = v[lo + (hi - lo) / 2];
		size_t a = lo, b = lo, c = hi;

		/* [lo, a) > pivot, [a, b) == pivot, [c, hi) < pivot */
		while (b < c) {
			double x = v[b];

			if (x > pivot) {
				v[b++] = v[a];
				v[a++] = x;
			} else if (x < pivot) {
				v[b] = v[--c];
				v[c] = x;
			} else {
				b++;
			}
		}
		if (k <= a)
			hi = a;
		else if (k > c)
			lo = c;
		else
			return;
	}
}

static double kth_largest(double *v, size_t n, size_t k)
{
	double least;

	select_largest(v, n, k);
	least = v[0];
	for (size_t i = 1; i < k; i++)
		if (v[i] < least)
			least = v[i];
	return least;
}

/* The scores of each rank: stable ones from the front of @out on, candidates from its end backwards; the expired are counted. */
static void collect(const struct sample *s, const struct ralt_judge *j, double *out, size_t n[3])
{
	for_each_taken(s, i) {
		const struct ralt_record *r = &s->slots[i].record;
		uint8_t rank;

		if (!used(s, i) || !ralt_counts(j, r))
			continue;
		rank = ralt_rank(j, r);
		n[rank]++;
		if (rank == RALT_STABLE)
			out[n[rank] - 1] = ralt_score_now(j, r);
		else if (rank == RALT_CANDIDATE)
			out[s->limit - n[rank]] = ralt_score_now(j, r);
	}
}

static void collect_expired(const struct sample *s, const struct ralt_judge *j, double *out)
{
	size_t n = 0;

	for_each_taken(s, i)
		if (used(s, i) && ralt_counts(j, &s->slots[i].record) && ralt_rank(j, &s->slots[i].record) == RALT_EXPIRED)
			out[n++] = ralt_score_now(j, &s->slots[i].record);
}

struct ralt_threshold sample_kth(const struct sample *s, const struct ralt_judge *j, double keep,
				 double *scratch)
{
	struct ralt_threshold t = { .set = true, .rank = RALT_STABLE, .tick = j->now.tick, .since = j->now.tick };
	size_t k = (size_t)(keep / (double)(1ull << s->shift)), n[3] = { 0 };
	double *score = scratch;

	collect(s, j, scratch, n);
	if (k >= n[RALT_EXPIRED] + n[RALT_CANDIDATE] + n[RALT_STABLE])
		return (struct ralt_threshold){ .set = false };
	/* Whole ranks while they fit; the cut is in the first that does not. */
	while (k >= n[t.rank] && t.rank > RALT_EXPIRED)
		k -= n[t.rank--];
	if (t.rank == RALT_CANDIDATE)
		score = scratch + s->limit - n[RALT_CANDIDATE];
	else if (t.rank == RALT_EXPIRED)
		collect_expired(s, j, scratch);
	/* Nothing of this rank fits: just above its best. */
	if (n[t.rank])
		t.score = k ? kth_largest(score, n[t.rank], k) : kth_largest(score, n[t.rank], 1) * (1 + 1e-9);
	return t;
}

static size_t collect_all(const struct sample *s, const struct ralt_judge *j, double *out)
{
	size_t n = 0;

	for_each_taken(s, i)
		if (used(s, i))
			out[n++] = ralt_score_now(j, &s->slots[i].record);
	return n;
}

double sample_kth_other(const struct sample *s, const struct sample_census *c, double keep, double *others)
{
	double k = keep / (double)(1ull << s->shift);

	if (k < 1)
		return 1e30;
	return k > (double)c->nr_others ? 0 : kth_largest(others, c->nr_others, (size_t)k);
}

void sample_quartiles(const struct sample *s, const struct ralt_judge *j, double out[3],
		      double *scratch)
{
	size_t n = collect_all(s, j, scratch);

	for (size_t q = 0; q < 3; q++)
		out[q] = n ? kth_largest(scratch, n, n * (3 - q) / 4 + (n * (3 - q) / 4 == 0)) : 0;
}
