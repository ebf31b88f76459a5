// SPDX-License-Identifier: GPL-2.0-or-later
/* LRU list in caller's memory, linked by entry numbers; see recency.h. */
#include "decide/recency.h"

#include <errno.h>
#include <string.h>

#include "decide/prng.h"

#define NIL	UINT32_MAX

static uint32_t hash_size(uint32_t limit)
{
	uint32_t size = 8;

	while (size < limit + limit / 2)
		size *= 2;
	return size;
}

size_t recency_bytes(uint32_t limit)
{
	return (size_t)limit * sizeof(struct recency_entry) +
	       (size_t)hash_size(limit) * sizeof(uint32_t);
}

int recency_init(struct recency *r, uint32_t limit, void *mem, size_t bytes)
{
	if (!limit || limit > RECENCY_LIMIT_MAX)
		return -EINVAL;
	if (bytes < recency_bytes(limit))
		return -ENOMEM;
	memset(mem, 0, recency_bytes(limit));
	*r = (struct recency){
		.entries = mem,
		.slots = (uint32_t *)((struct recency_entry *)mem + limit),
		.mask = hash_size(limit) - 1,
		.limit = limit,
		.newest = NIL,
		.oldest = NIL,
	};
	return 0;
}

static uint32_t home_of(const struct recency *r, uint64_t block)
{
	return (uint32_t)mix64(block) & r->mask;
}

static uint32_t find_slot(const struct recency *r, uint64_t block)
{
	uint32_t i = home_of(r, block);

	while (r->slots[i] && r->entries[r->slots[i] - 1].block != block)
		i = (i + 1) & r->mask;
	return i;
}

static void clear_slot(struct recency *r, uint32_t i)
{
	for (uint32_t j = (i + 1) & r->mask; r->slots[j]; j = (j + 1) & r->mask) {
		uint32_t home = home_of(r, r->entries[r->slots[j] - 1].block);

		if (((j - home) & r->mask) >= ((j - i) & r->mask)) {
			r->slots[i] = r->slots[j];
			i = j;
		}
	}
	r->slots[i] = 0;
}

static void unlink_entry(struct recency *r, uint32_t n)
{
	struct recency_entry *e = &r->entries[n];

	if (e->newer == NIL)
		r->newest = e->older;
	else
		r->entries[e->newer].older = e->older;
	if (e->older == NIL)
		r->oldest = e->newer;
	else
		r->entries[e->older].newer = e->newer;
}

static void link_newest(struct recency *r, uint32_t n)
{
	struct recency_entry *e = &r->entries[n];

	e->stamp = ++r->touches;
	e->newer = NIL;
	e->older = r->newest;
	if (r->newest == NIL)
		r->oldest = n;
	else
		r->entries[r->newest].newer = n;
	r->newest = n;
}

/* Entries stay dense: the last one moves into the place of the removed one. */
static void fill_gap(struct recency *r, uint32_t gap)
{
	uint32_t last = --r->count;
	struct recency_entry *e = &r->entries[last];

	if (gap == last)
		return;
	r->slots[find_slot(r, e->block)] = gap + 1;
	r->entries[gap] = *e;
	if (e->newer == NIL)
		r->newest = gap;
	else
		r->entries[e->newer].older = gap;
	if (e->older == NIL)
		r->oldest = gap;
	else
		r->entries[e->older].newer = gap;
}

bool recency_forget(struct recency *r, uint64_t block)
{
	uint32_t i = find_slot(r, block), n;

	if (!r->slots[i])
		return false;
	n = r->slots[i] - 1;
	clear_slot(r, i);
	unlink_entry(r, n);
	fill_gap(r, n);
	return true;
}

bool recency_touch(struct recency *r, uint64_t block)
{
	uint32_t i = find_slot(r, block);
	uint32_t n;

	if (r->slots[i]) {
		n = r->slots[i] - 1;
		unlink_entry(r, n);
		link_newest(r, n);
		return true;
	}
	if (r->count < r->limit) {
		n = r->count++;
	} else {
		n = r->oldest;
		clear_slot(r, find_slot(r, r->entries[n].block));
		unlink_entry(r, n);
		i = find_slot(r, block);
	}
	r->entries[n].block = block;
	r->slots[i] = n + 1;
	link_newest(r, n);
	return false;
}

void recency_empty(struct recency *r)
{
	memset(r->slots, 0, ((size_t)r->mask + 1) * sizeof(r->slots[0]));
	r->count = 0;
	r->newest = NIL;
	r->oldest = NIL;
}

int recency_level(const struct recency *r, uint64_t block)
{
	uint32_t i = find_slot(r, block);
	uint64_t age, span;

	if (!r->slots[i])
		return RECENCY_NO_LEVEL;
	age = r->touches - r->entries[r->slots[i] - 1].stamp;
	span = r->touches - r->entries[r->oldest].stamp + 1;
	return 3 - (int)(4 * age / span);
}
