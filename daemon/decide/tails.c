// SPDX-License-Identifier: GPL-2.0-or-later
/* Tails that stay fast; see tails.h. */
#include "decide/tails.h"

#include <string.h>

#define BLOCK_BYTES	4096u
#define LEAST_BYTES	65536u	/* of a tail: footer and properties of the smallest table */

/* The first tail that ends behind @block. */
static uint32_t find(const struct tails *t, uint64_t block)
{
	uint32_t lo = 0, hi = t->nr;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (t->tail[mid].end <= block)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void take_out(struct tails *t, uint32_t i)
{
	t->blocks -= t->tail[i].end - t->tail[i].first;
	memmove(&t->tail[i], &t->tail[i + 1], (--t->nr - i) * sizeof(t->tail[0]));
}

void tails_drop(struct tails *t, uint64_t first, uint64_t nr)
{
	uint32_t i = find(t, first);

	while (i < t->nr && t->tail[i].first < first + nr)
		take_out(t, i);
}

static void put(struct tails *t, uint32_t i, const struct tail *one)
{
	memmove(&t->tail[i + 1], &t->tail[i], (t->nr++ - i) * sizeof(t->tail[0]));
	t->tail[i] = *one;
	t->blocks += one->end - one->first;
}

void tails_cut(struct tails *t, uint64_t first, uint64_t nr)
{
	uint64_t end = first + nr;
	uint32_t i = find(t, first);

	while (i < t->nr && t->tail[i].first < end) {
		struct tail low = t->tail[i], high = low;

		take_out(t, i);
		low.end = first;
		high.first = end;
		if (low.first < first)
			put(t, i++, &low);
		if (end < high.end && t->nr < TAILS_MAX)
			put(t, i++, &high);
	}
}

static void drop_oldest(struct tails *t)
{
	uint32_t oldest = 0;

	for (uint32_t i = 1; i < t->nr; i++)
		if (t->tail[i].serial < t->tail[oldest].serial)
			oldest = i;
	t->left += t->tail[oldest].end - t->tail[oldest].first;
	take_out(t, oldest);
}

void tails_older(struct tails *t, uint64_t serial)
{
	uint32_t kept = 0;

	t->blocks = 0;
	for (uint32_t i = 0; i < t->nr; i++)
		if (t->tail[i].serial > serial) {
			t->blocks += t->tail[i].end - t->tail[i].first;
			t->tail[kept++] = t->tail[i];
		}
	t->nr = kept;
}

void tails_limit(struct tails *t, uint64_t limit)
{
	while (t->blocks > limit)
		drop_oldest(t);
}

void tails_add(struct tails *t, uint64_t first, uint64_t nr, uint64_t limit)
{
	uint32_t i;

	tails_drop(t, first, nr);
	if (!nr || nr > limit) {
		t->left += nr;
		return;
	}
	tails_limit(t, limit - nr);
	if (t->nr == TAILS_MAX)
		drop_oldest(t);
	i = find(t, first);
	put(t, i, &(struct tail){ .first = first, .end = first + nr, .serial = ++t->serial });
}

bool tails_have(const struct tails *t, uint64_t block)
{
	uint32_t i = find(t, block);

	return i < t->nr && t->tail[i].first <= block;
}

bool tails_meet(const struct tails *t, uint64_t first, uint64_t nr)
{
	uint32_t i = find(t, first);

	return i < t->nr && t->tail[i].first < first + nr;
}

void tails_mask(const struct tails *t, uint64_t region, struct upmask *out)
{
	uint64_t from = region * REGION_BLOCKS, end = from + REGION_BLOCKS;

	memset(out, 0, sizeof(*out));
	for (uint32_t i = find(t, from); i < t->nr && t->tail[i].first < end; i++) {
		uint64_t first = t->tail[i].first > from ? t->tail[i].first : from;

		for (uint64_t b = first; b < t->tail[i].end && b < end; b++)
			upmask_set(out, (uint32_t)(b - from));
	}
}

uint64_t tails_begin(uint64_t size, double share)
{
	double bytes = (double)size * share;

	if (bytes < LEAST_BYTES)
		bytes = LEAST_BYTES;
	if (bytes >= (double)size)
		return 0;
	return (size - (uint64_t)bytes) / BLOCK_BYTES * BLOCK_BYTES;
}
