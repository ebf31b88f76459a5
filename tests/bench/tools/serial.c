// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * serial: replay of one overwritten journal, both ways, with kmod/core
 *
 *	serial [REGIONS [RECORDS [CPUS [DEVICE]]]]
 *
 * Makes a journal of RECORDS single-block overwrites (out of place, at random)
 * of a volume of REGIONS regions. Then, on a clock that starts after the
 * blocks are in memory and before the first is decoded:
 *
 *	serial	oldest first, one thread: each record goes into the map (leaf of
 *		its region, bitmap of old and new place), one after the other
 *	newest	newest first, as kmod/replay.c does: windows of units are dealt
 *		out to shards, then the shards applied. Workers take units, then
 *		shards, one after the other and share nothing, so one CPU can
 *		measure any number of them: each unit and shard is timed, and
 *		given to the worker that is the first to be free
 *
 * Both must come to the same map and the same bitmap. With DEVICE (a drive, or
 * a model of one) both also load the map's pages from there, past the page cache:
 *
 *	serial	each when a record needs it, and again when it had to make room;
 *		it may hold as much as newest first used (deltas and window).
 *		Pages that make room are not written back, which flatters it
 *	newest	each region's once, when its records are known, CPUS at a time
 *
 * One line of name=value, nanoseconds in all: serial, newest (one worker), all
 * (CPUS workers), serial_io, all_io, and how many loads each made.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "deal.h"

#define BLOCKS	TERRACE_REGION_BLOCKS
#define FEWEST_PLACES (64u * TERRACE_CHUNK_BLOCKS)	/* 4 GiB: a small fast tier */
#define PAGE	(TERRACE_MAP_MAX_BLOCKS * TERRACE_BLOCK_BYTES)

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

static void bits(u64 *map, uint64_t i, uint32_t n, bool on)
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
	if (places < FEWEST_PLACES)
		places = FEWEST_PLACES;
	for (k = 0; k < regions * BLOCKS; k++)
		at[k] = TR_NO_PLACE;
	journal = aligned_alloc(TERRACE_BLOCK_BYTES,
				(size_t)(records / TERRACE_RECORDS_PER_BLOCK + 1) * TERRACE_BLOCK_BYTES);
	u64 *taken = zeroed(places / 64 + 1, 8);

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

static u32 *room(struct tr_leaf *leaf, uint32_t want)
{
	uint32_t *old = leaf->low, cap;

	if (want <= leaf->cap)
		return NULL;
	cap = tr_leaf_room(want + want / 2 + 16 < BLOCKS ? want + want / 2 + 16 : BLOCKS);
	if (tr_leaf_replace(leaf, malloc(cap * 7), NULL, cap))
		exit(1);
	return old;
}

/* --- pages ------------------------------------------------------------------------ */

static int device = -1;
static uint32_t nr_loads;

static void load(uint32_t region, void *page)
{
	if (pread(device, page, PAGE, (off_t)region * PAGE) != PAGE) {
		fprintf(stderr, "serial: page of region %u: %s\n", region, strerror(errno));
		exit(1);
	}
}

/* Pages in memory, in the order in which they came; second chance. */
static uint32_t *held, nr_held, max_held, hand;
static bool *is_held, *was_used;

static void hold_start(uint32_t max)
{
	max_held = max;
	nr_held = hand = nr_loads = 0;
	held = zeroed(max, sizeof(*held));
	is_held = zeroed(regions, sizeof(*is_held));
	was_used = zeroed(regions, sizeof(*was_used));
}

static void hold(uint32_t region)
{
	static void *page;

	was_used[region] = true;
	if (is_held[region])
		return;
	if (!page)
		page = aligned_alloc(PAGE, PAGE);
	load(region, page);
	nr_loads++;
	is_held[region] = true;
	if (nr_held < max_held) {
		held[nr_held++] = region;
		return;
	}
	while (was_used[held[hand]]) {
		was_used[held[hand]] = false;
		hand = (hand + 1) % max_held;
	}
	is_held[held[hand]] = false;
	held[hand] = region;
	hand = (hand + 1) % max_held;
}

/* --- oldest first ---------------------------------------------------------------- */

static struct tr_leaf *leaf;
static u64 *used;

static void space(u32 tier, u64 index, u32 n, bool on, void *context)
{
	(void)tier;
	bits(context, index, n, on);
}

static void apply_oldest(const void *block, uint32_t i)
{
	struct tr_record record;
	struct tr_leaf *l;
	uint32_t at;

	tr_jblock_record(block, i, &record);
	if (device >= 0)
		hold(record.block / BLOCKS);
	l = &leaf[record.block / BLOCKS];
	at = record.block % BLOCKS;
	free(room(l, l->nr + tr_leaf_missing(l, at, record.nr)));
	if (tr_leaf_set(l, at, record.nr, record.new))
		exit(1);
	tr_record_space(&record, space, used);
}

static uint64_t oldest_first(void)
{
	uint64_t began = now();

	leaf = zeroed(regions, sizeof(*leaf));
	used = zeroed(places / 64 + 1, 8);
	for (uint32_t b = 0; b < nr_blocks; b++)
		for (uint32_t i = 0; i < tr_jblock_nr(block_at(b)); i++)
			apply_oldest(block_at(b), i);
	return now() - began;
}

/* --- newest first ------------------------------------------------------------------ */

static struct tr_delta **delta;
static u64 (*touched)[TERRACE_CHUNK_BLOCKS / 64], (*found)[TERRACE_CHUNK_BLOCKS / 64];
static uint64_t busy[256];		/* nanoseconds, of each worker */

/* A job of @ns goes to who is the first to be free. */
static void give(uint32_t workers, uint64_t ns)
{
	uint32_t w, least = 0;

	for (w = 1; w < workers; w++)
		if (busy[w] < busy[least])
			least = w;
	busy[least] += ns;
}

/* All wait for the last one. */
static uint64_t meet(uint32_t workers)
{
	uint64_t most = 0;
	uint32_t w;

	for (w = 0; w < workers; w++) {
		most = busy[w] > most ? busy[w] : most;
		busy[w] = 0;
	}
	return most;
}

static void grow(struct tr_delta *d, const struct tr_record *record)
{
	bool high, first = !d->leaf.cap;
	u32 *old = room(&d->leaf, tr_delta_room(d, record, &high));
	u16 *arrival = (u16 *)&d->leaf.low[d->leaf.cap];

	if (d->arrival)
		memcpy(arrival, d->arrival, d->leaf.nr * sizeof(*arrival));
	if (d->arrival || first)
		d->arrival = arrival;
	free(old);
}

static void map_shard(struct tr_deal *deal, uint32_t s)
{
	u16 at, end = deal->map_list[s].end;

	for (at = deal->map_list[s].first; at != end; at = tr_deal_next(deal->map_next, at, end)) {
		const struct tr_deal_map *entry = &deal->map[at];
		u32 number = tr_deal_map_record(entry->what);
		struct tr_delta **d = &delta[entry->region];
		struct tr_record record;

		if (!*d)
			*d = zeroed(1, sizeof(**d));
		if (tr_deal_superseded(entry->what, *d))
			continue;
		tr_deal_record(deal, number, &record);
		if (tr_delta_apply(*d, &record, tr_deal_seq(deal, number)) != -ENOSPC)
			continue;
		grow(*d, &record);
		if (tr_delta_apply(*d, &record, tr_deal_seq(deal, number)) < 0)
			exit(1);
	}
}

static void space_shard(struct tr_deal *deal, uint32_t s)
{
	u16 at, end = deal->space_list[s].end;

	for (at = deal->space_list[s].first; at != end;
	     at = tr_deal_next(deal->space_next, at, end)) {
		u64 entry = deal->space[at];
		u64 index = tr_place_index(tr_deal_place(entry)), chunk = index / TERRACE_CHUNK_BLOCKS;

		tr_deal_decide(touched[chunk], found[chunk], index % TERRACE_CHUNK_BLOCKS,
			       tr_deal_space_nr(entry), tr_deal_space_used(entry));
	}
}

#define UNITS	32u	/* of a window, see kmod/replay.c */

static uint64_t window(struct tr_deal **deal, uint32_t newest, uint32_t nr, uint32_t workers)
{
	uint64_t began, took;
	uint32_t k, u, first;

	for (u = 0; u < nr; u++) {
		began = now();
		first = (newest - u) * TR_DEAL_BLOCKS;
		tr_deal(deal[u], block_at(first),
			nr_blocks - first < TR_DEAL_BLOCKS ? nr_blocks - first : TR_DEAL_BLOCKS, true);
		give(workers, now() - began);
	}
	took = meet(workers);
	for (k = 0; k < 2 * TR_DEAL_SHARDS; k++) {
		began = now();
		for (u = 0; u < nr; u++)
			(k % 2 ? space_shard : map_shard)(deal[u], k / 2);
		give(workers, now() - began);
	}
	return took + meet(workers);
}

static uint64_t newest_first(uint32_t workers)
{
	uint32_t left = (nr_blocks + TR_DEAL_BLOCKS - 1) / TR_DEAL_BLOCKS, nr, chunks, u;
	static struct tr_deal *deal[UNITS];
	uint64_t began = now(), took;

	delta = zeroed(regions, sizeof(*delta));
	chunks = places / TERRACE_CHUNK_BLOCKS + 1;
	touched = zeroed(chunks, TERRACE_CHUNK_BLOCKS / 8);
	found = zeroed(chunks, TERRACE_CHUNK_BLOCKS / 8);
	for (u = 0; u < UNITS; u++)
		deal[u] = deal[u] ? deal[u] : zeroed(1, sizeof(*deal[u]));
	took = now() - began;
	for (; left; left -= nr) {
		nr = left < UNITS ? left : UNITS;
		took += window(deal, left - 1, nr, workers);
	}
	for (u = 0; u < regions; u++) {
		began = now();
		if (delta[u])
			tr_delta_sort(delta[u]);
		give(workers, now() - began);
	}
	return took + meet(workers);
}

/* What newest first held at its end. */
static uint64_t memory_used(void)
{
	uint64_t bytes = UNITS * sizeof(struct tr_deal);

	for (uint32_t r = 0; r < regions; r++)
		if (delta[r])
			bytes += sizeof(**delta) + delta[r]->leaf.cap * 7;
	return bytes;
}

/* --- its loads ----------------------------------------------------------------------- */

static uint32_t next_region, loaded;

static void *loader(void *unused)
{
	void *page = aligned_alloc(PAGE, PAGE);
	uint32_t r;

	while ((r = __atomic_fetch_add(&next_region, 1, __ATOMIC_RELAXED)) < regions) {
		if (!delta[r])
			continue;
		load(r, page);
		__atomic_fetch_add(&loaded, 1, __ATOMIC_RELAXED);
	}
	free(page);
	return unused;
}

static uint64_t load_all(void)
{
	pthread_t thread[256];
	uint64_t began = now();

	for (uint32_t k = 0; k < cpus; k++)
		if (pthread_create(&thread[k], NULL, loader, NULL))
			exit(1);
	for (uint32_t k = 0; k < cpus; k++)
		pthread_join(thread[k], NULL);
	return now() - began;
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
	uint64_t serial, one, many, serial_io = 0, loads = 0;

	if (argc > 1)
		regions = strtoul(argv[1], NULL, 0);
	if (argc > 2)
		records = strtoul(argv[2], NULL, 0);
	if (argc > 3)
		cpus = strtoul(argv[3], NULL, 0);
	if (!cpus || cpus > 256)
		return 2;
	make_journal();
	oldest_first();		/* the memory's first use */
	serial = oldest_first();
	newest_first(1);
	one = newest_first(1);
	compare();
	many = newest_first(cpus);
	compare();
	if (argc > 4) {
		device = open(argv[4], O_RDONLY | O_DIRECT | O_CLOEXEC);
		if (device < 0) {
			fprintf(stderr, "serial: %s: %s\n", argv[4], strerror(errno));
			return 1;
		}
		hold_start(memory_used() / (PAGE + sizeof(*leaf)) + 1);
		loads = load_all();
		serial_io = oldest_first();
	}
	printf("records=%u serial=%lu newest=%lu cpus=%u all=%lu serial_io=%lu all_io=%lu serial_loads=%u all_loads=%u\n",
	       records, serial, one, cpus, many, serial_io, many + loads, nr_loads, loaded);
	return 0;
}
