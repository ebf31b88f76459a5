// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * serial: replay of one overwritten journal, both ways, with kmod/core
 *
 *	serial [REGIONS [RECORDS [CPUS]]]
 *
 * Makes a journal of RECORDS single-block overwrites (out of place, at random)
 * of a volume of REGIONS regions. Then, on a clock that starts after the
 * blocks are in memory and before the first is decoded:
 *
 *	serial	oldest first: each record goes into the map as the volume
 *		does it at run time (leaf of its region, bitmap of old and new
 *		place), one after the other
 *	newest	newest first, as kmod/replay.c does: each of CPUS workers
 *		walks the journal for its own regions, then for its own chunks.
 *		Workers share nothing, so the time of all is that of the slowest,
 *		and one CPU can measure it by running them one by one
 *
 * Both must come to the same map and the same bitmap. One line of name=value:
 * nanoseconds per record each, and for 1 and CPUS workers.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "replay.h"

#define BLOCKS	TERRACE_REGION_BLOCKS

static uint32_t regions = 64, records = 1000000, cpus = 8;
static uint32_t nr_blocks, places;
static uint8_t *journal;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void *zeroed(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		exit(1);
	return p;
}

static void bits(uint64_t *map, uint64_t i, uint32_t n, bool on)
{
	for (; n; i++, n--) {
		if (on)
			map[i / 64] |= 1ull << (i % 64);
		else
			map[i / 64] &= ~(1ull << (i % 64));
	}
}

/* --- the journal ---------------------------------------------------------------- */

static void make_journal(void)
{
	static const uint8_t uuid[TERRACE_UUID_BYTES] = "serial";
	struct tr_journal_link link = { .block_seq = 1, .record_seq = 1, .nonce = 7 };
	uint64_t *at = zeroed((size_t)regions * BLOCKS, sizeof(*at)), state = 1, hand = 0;
	uint32_t k, left = 0;
	uint8_t *block = NULL;

	places = 2 * regions * BLOCKS;	/* as many again, for places to come back late */
	for (k = 0; k < regions * BLOCKS; k++)
		at[k] = TR_NO_PLACE;
	journal = aligned_alloc(TERRACE_BLOCK_BYTES,
				(size_t)(records / TERRACE_RECORDS_PER_BLOCK + 1) * TERRACE_BLOCK_BYTES);
	uint64_t *taken = zeroed(places / 64 + 1, 8);

	for (k = 0; k < records; k++) {
		uint32_t b;

		state = state * 6364136223846793005ULL + 1442695040888963407ULL;
		b = (state >> 20) % ((uint64_t)regions * BLOCKS);
		while (taken[hand / 64] >> (hand % 64) & 1)
			hand = (hand + 1) % places;
		struct tr_record record = {
			.type = TERRACE_RECORD_MAP, .nr = 1, .block = b, .new = tr_place(0, hand), .old = at[b],
		};

		if (at[b] != TR_NO_PLACE)
			bits(taken, tr_place_index(at[b]), 1, false);
		bits(taken, hand, 1, true);
		at[b] = record.new;
		hand = (hand + 1) % places;
		if (!left) {
			block = journal + (size_t)nr_blocks++ * TERRACE_BLOCK_BYTES;
			tr_jblock_start(block, &link, 7, uuid);
			left = TERRACE_RECORDS_PER_BLOCK;
		}
		tr_jblock_append(block, &record);
		if (!--left || k + 1 == records)
			tr_jblock_seal(block, &link);
	}
	free(at);
	free(taken);
}

static void *block_at(uint32_t b)
{
	return journal + (size_t)b * TERRACE_BLOCK_BYTES;
}

static void room(struct tr_leaf *leaf, uint32_t want)
{
	uint32_t *old = leaf->low, cap;

	if (want <= leaf->cap)
		return;
	cap = tr_leaf_room(want + want / 2 + 16 < BLOCKS ? want + want / 2 + 16 : BLOCKS);
	if (tr_leaf_replace(leaf, malloc(cap * 5), NULL, cap))
		exit(1);
	free(old);
}

/* --- oldest first ---------------------------------------------------------------- */

static struct tr_leaf *leaf;
static uint64_t *used;

static void space(u32 tier, u64 index, u32 n, bool on, void *context)
{
	(void)tier;
	bits(context, index, n, on);
}

static uint64_t oldest_first(void)
{
	uint64_t began = now();

	leaf = zeroed(regions, sizeof(*leaf));
	used = zeroed(places / 64 + 1, 8);
	for (uint32_t b = 0; b < nr_blocks; b++) {
		for (uint32_t i = 0; i < tr_jblock_nr(block_at(b)); i++) {
			struct tr_record record;
			struct tr_leaf *l;
			uint32_t at;

			tr_jblock_record(block_at(b), i, &record);
			l = &leaf[record.block / BLOCKS];
			at = record.block % BLOCKS;
			room(l, l->nr + tr_leaf_missing(l, at, record.nr));
			if (tr_leaf_set(l, at, record.nr, record.new))
				exit(1);
			tr_record_space(&record, space, used);
		}
	}
	return now() - began;
}

/* --- newest first ------------------------------------------------------------------ */

static struct tr_delta **delta;
static uint64_t *touched, *found;
static uint32_t worker, workers;

static void own_space(u32 tier, u64 index, u32 n, bool on, void *context)
{
	(void)tier;
	(void)context;
	if ((index >> TERRACE_CHUNK_SHIFT) % workers != worker)
		return;
	bits(touched, index, n, true);
	bits(found, index, n, on);
}

static uint64_t map_pass(void)
{
	uint64_t began = now();

	for (uint32_t b = nr_blocks; b--;) {
		uint64_t first = tr_jblock_first_record(block_at(b));

		for (uint32_t i = tr_jblock_nr(block_at(b)); i--;) {
			struct tr_record record;
			struct tr_delta **d;
			bool high;

			tr_jblock_record(block_at(b), i, &record);
			if (record.block / BLOCKS % workers != worker)
				continue;
			d = &delta[record.block / BLOCKS];
			if (!*d)
				*d = zeroed(1, sizeof(**d));
			if (tr_delta_apply(*d, &record, first + i) != -ENOSPC)
				continue;
			room(&(*d)->leaf, tr_delta_room(*d, &record, &high));
			if (tr_delta_apply(*d, &record, first + i) < 0)
				exit(1);
		}
	}
	return now() - began;
}

static uint64_t space_pass(void)
{
	uint64_t began = now();

	for (uint32_t b = 0; b < nr_blocks; b++) {
		for (uint32_t i = 0; i < tr_jblock_nr(block_at(b)); i++) {
			struct tr_record record;

			tr_jblock_record(block_at(b), i, &record);
			tr_record_space(&record, own_space, NULL);
		}
	}
	return now() - began;
}

/* The slowest worker's time; kmod/replay.c has a barrier between the passes. */
static uint64_t newest_first(uint32_t n)
{
	uint64_t map = 0, took, sp = 0;

	workers = n;
	delta = zeroed(regions, sizeof(*delta));
	touched = zeroed(places / 64 + 1, 8);
	found = zeroed(places / 64 + 1, 8);
	for (worker = 0; worker < n; worker++) {
		took = map_pass();
		map = took > map ? took : map;
	}
	for (worker = 0; worker < n; worker++) {
		took = space_pass();
		sp = took > sp ? took : sp;
	}
	return map + sp;
}

static void compare(void)
{
	for (uint32_t r = 0; r < regions; r++)
		for (uint32_t i = 0; i < BLOCKS; i++)
			if (tr_leaf_get(&leaf[r], i) != (delta[r] ? tr_leaf_get(&delta[r]->leaf, i) : TR_NO_PLACE)) {
				fprintf(stderr, "serial: block %u differs\n", r * BLOCKS + i);
				exit(1);
			}
	if (memcmp(used, found, places / 8)) {
		fprintf(stderr, "serial: bitmaps differ\n");
		exit(1);
	}
}

int main(int argc, char **argv)
{
	uint64_t serial, one, many;

	if (argc > 1)
		regions = strtoul(argv[1], NULL, 0);
	if (argc > 2)
		records = strtoul(argv[2], NULL, 0);
	if (argc > 3)
		cpus = strtoul(argv[3], NULL, 0);
	make_journal();
	oldest_first();		/* the memory's first use */
	serial = oldest_first();
	newest_first(1);
	one = newest_first(1);
	compare();
	many = newest_first(cpus);
	compare();
	printf("records=%u serial=%lu newest=%lu cpus=%u all=%lu\n", records, serial, one, cpus, many);
	return 0;
}
