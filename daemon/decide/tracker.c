// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The clock tracker's table.
 *
 * Linear probing with backward-shift deletion: no tombstones, so the table never
 * needs a rebuild and a lookup stays short however long the daemon lives.  A
 * shift may move an entry across the hand; it is then met once more or once less
 * in that sweep, which the clock tolerates by nature.
 */
#include "decide/tracker.h"

#include <errno.h>
#include <string.h>

#include "decide/prng.h"

static const struct tunable rows[] = {
	TUNABLE(TUNABLE_U32, tracker_tunables, clock_bits, 2, 1, TRACKER_MAX_BITS,
		"bits of a clock value; the next access sets 2^bits - 1"),
	TUNABLE(TUNABLE_DOUBLE, tracker_tunables, tracked_share, 0.2, 0.001, 1.0,
		"share of the volume's blocks that is tracked (PrismDB: 10-20 %), at most as many as the fast tier has"),
};
TUNABLE_TABLE(tracker_tunable_table, "tracker", rows);

/* Entry: used 1 | value 4 | generation 18 | block 40.  0 is an empty slot. */
#define USED		(1ull << 63)
#define VALUE_SHIFT	58
#define GENERATION_SHIFT 40

static uint64_t entry_block(uint64_t e)
{
	return e & (TRACKER_BLOCK_LIMIT - 1);
}

static uint32_t entry_generation(uint64_t e)
{
	return (uint32_t)(e >> GENERATION_SHIFT) & TRACKER_GENERATION_MASK;
}

static uint32_t entry_value(uint64_t e)
{
	return (uint32_t)(e >> VALUE_SHIFT) & (TRACKER_VALUES - 1);
}

static uint64_t entry_make(uint64_t block, uint32_t generation, uint32_t value)
{
	return USED | (uint64_t)value << VALUE_SHIFT |
	       (uint64_t)(generation & TRACKER_GENERATION_MASK) << GENERATION_SHIFT |
	       block;
}

uint64_t tracker_limit(const struct tracker_tunables *t, uint64_t volume_blocks)
{
	uint64_t limit = (uint64_t)((double)volume_blocks * t->tracked_share);

	return limit ? limit : 1;
}

static uint64_t table_size(uint64_t limit)
{
	uint64_t size = 8;

	while (size / 4 * 3 < limit + 1)
		size *= 2;
	return size;
}

size_t tracker_bytes(uint64_t limit)
{
	return table_size(limit) * sizeof(uint64_t);
}

int tracker_init(struct tracker *tr, const struct tracker_tunables *t,
		 uint64_t limit, void *mem, size_t bytes)
{
	if (tunable_check(&tracker_tunable_table, t, NULL) || !limit || limit > TRACKER_BLOCK_LIMIT)
		return -EINVAL;
	if (bytes < tracker_bytes(limit))
		return -ENOMEM;
	memset(tr, 0, sizeof(*tr));
	tr->slots = mem;
	tr->mask = table_size(limit) - 1;
	tr->limit = limit;
	tr->max_value = (1u << t->clock_bits) - 1;
	memset(mem, 0, tracker_bytes(limit));
	return 0;
}

void tracker_watch(struct tracker *tr, tracker_watch_fn watch, void *ctx)
{
	tr->watch = watch;
	tr->watch_ctx = ctx;
}

static void tell(const struct tracker *tr, uint64_t block, int from, int to)
{
	if (tr->watch && from != to)
		tr->watch(tr->watch_ctx, block, from, to);
}

/* The block's slot, or the empty slot where it would go. */
static uint64_t find(const struct tracker *tr, uint64_t block)
{
	uint64_t i = mix64(block) & tr->mask;

	while (tr->slots[i] && entry_block(tr->slots[i]) != block)
		i = (i + 1) & tr->mask;
	return i;
}

static void set_value(struct tracker *tr, uint64_t i, uint32_t value)
{
	uint64_t e = tr->slots[i];

	tr->population[entry_value(e)]--;
	tr->population[value]++;
	tr->slots[i] = entry_make(entry_block(e), entry_generation(e), value);
	tell(tr, entry_block(e), (int)entry_value(e), (int)value);
}

/* Closes the hole at @i by moving back every entry whose probe path crosses it. */
static void close_hole(struct tracker *tr, uint64_t i)
{
	uint64_t j = i;

	for (;;) {
		j = (j + 1) & tr->mask;
		if (!tr->slots[j])
			break;
		uint64_t home = mix64(entry_block(tr->slots[j])) & tr->mask;

		if (((j - home) & tr->mask) >= ((j - i) & tr->mask)) {
			tr->slots[i] = tr->slots[j];
			i = j;
		}
	}
	tr->slots[i] = 0;
}

static void remove_at(struct tracker *tr, uint64_t i)
{
	uint64_t e = tr->slots[i];

	tr->population[entry_value(e)]--;
	tr->count--;
	close_hole(tr, i);
	tell(tr, entry_block(e), (int)entry_value(e), TRACKER_NO_VALUE);
}

/* Each full sweep lowers every value, so this ends within max_value + 1 sweeps. */
static void evict_one(struct tracker *tr)
{
	for (;; tr->hand = (tr->hand + 1) & tr->mask) {
		uint64_t e = tr->slots[tr->hand];

		if (!e)
			continue;
		if (!entry_value(e)) {
			remove_at(tr, tr->hand);
			return;
		}
		set_value(tr, tr->hand, entry_value(e) - 1);
	}
}

static void insert(struct tracker *tr, uint64_t block, uint32_t generation)
{
	if (tr->count == tr->limit)
		evict_one(tr);
	tr->slots[find(tr, block)] = entry_make(block, generation, 0);
	tr->population[0]++;
	tr->count++;
	tell(tr, block, TRACKER_NO_VALUE, 0);
}

int tracker_touch(struct tracker *tr, uint64_t block, uint32_t generation)
{
	if (block >= TRACKER_BLOCK_LIMIT)
		return -ERANGE;

	uint64_t i = find(tr, block);

	if (tr->slots[i] && entry_generation(tr->slots[i]) != (generation & TRACKER_GENERATION_MASK))
		remove_at(tr, i);
	else if (tr->slots[i]) {
		set_value(tr, i, tr->max_value);
		return (int)tr->max_value;
	}
	insert(tr, block, generation);
	return 0;
}

int tracker_value(const struct tracker *tr, uint64_t block, uint32_t generation)
{
	if (block >= TRACKER_BLOCK_LIMIT)
		return TRACKER_NO_VALUE;

	uint64_t e = tr->slots[find(tr, block)];

	if (!e || entry_generation(e) != (generation & TRACKER_GENERATION_MASK))
		return TRACKER_NO_VALUE;
	return (int)entry_value(e);
}

bool tracker_forget(struct tracker *tr, uint64_t block)
{
	uint64_t i;

	if (block >= TRACKER_BLOCK_LIMIT)
		return false;
	i = find(tr, block);
	if (!tr->slots[i])
		return false;
	remove_at(tr, i);
	return true;
}
