// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The model behind image.c: what a module would have done, as maps of places
 * and the records that it would have left.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image.h"

struct tr_label label[TERRACE_MAX_TIERS];
struct tr_super super;
int fd[TERRACE_MAX_TIERS];
u32 primary, mirror = ~0u;

u64 *map, *old_map;	/* place of each block now, and when the tail was set */
bool *pending;		/* discarded by a range record, not yet unmapped */
u64 *pending_seq;	/* per region: newest range discard not yet resolved */
u8 *used[TERRACE_MAX_TIERS];
u64 *owner_of[TERRACE_MAX_TIERS];	/* who wrote a place last; NO_BLOCK: nobody */
u64 *written_at[TERRACE_MAX_TIERS];	/* … by which record */
u64 regions;

struct tr_packs **packs, **old_packs;
u64 *value_of;
u32 packing;

struct tr_record *records;
u64 nr_records;		/* record n is records[n - 1] */

const char *broken = "";
u64 random_state = 1;

void die(const char *what)
{
	perror(what);
	exit(1);
}

bool breaks(const char *what)
{
	return !strcmp(broken, what);
}

u64 rnd(u64 below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % below;
}

/* ---- the model: operations and the records they leave ------------------------ */

void record(u8 type, u64 block, u32 nr, u64 new, u64 old)
{
	if (nr_records == MAX_RECORDS) {
		fputs("too many records\n", stderr);
		exit(1);
	}
	records[nr_records++] = (struct tr_record){
		.type = type, .nr = nr, .block = block, .new = new, .old = old,
	};
}

static u32 pack_of(u64 block)
{
	return tr_packs_find(packs[block / TERRACE_REGION_BLOCKS], block % TERRACE_REGION_BLOCKS);
}

bool somewhere(u64 block)
{
	return map[block] != TR_NO_PLACE || pack_of(block) != TR_NO_PACK;
}

void set_run(u64 place, u32 nr, bool is)
{
	for (u32 i = 0; i < nr; i++)
		set_used(tr_place_add(place, i), is);
}

/* Blocks from @block on, at most @max, that are all nowhere or in one run. */
u32 run_of(u64 block, u32 max)
{
	u32 n = 1;

	while (n < max && map[block + n] == tr_place_add(map[block], n) &&
	       (pack_of(block + n) == TR_NO_PACK) == (pack_of(block) == TR_NO_PACK))
		n++;
	return n;
}

void set_used(u64 place, bool is)
{
	if (place != TR_NO_PLACE)
		used[tr_place_tier(place)][tr_place_index(place)] = is;
}

void set_owner(u64 place, u64 block)
{
	if (place == TR_NO_PLACE)
		return;
	owner_of[tr_place_tier(place)][tr_place_index(place)] = block;
	written_at[tr_place_tier(place)][tr_place_index(place)] = nr_records;
}

void put(u64 block, u32 nr, u64 new)
{
	for (u32 i = 0, n; i < nr; i += n) {
		u64 old = map[block + i];

		n = run_of(block + i, nr - i);
		if (new != TR_NO_PLACE)
			record(TERRACE_RECORD_MAP, block + i, n, tr_place_add(new, i), old);
		else if (somewhere(block + i))
			record(TERRACE_RECORD_UNMAP, block + i, n, TR_NO_PLACE, old);
		for (u32 k = i; k < i + n; k++) {
			set_used(map[block + k], false);
			map[block + k] = tr_place_add(new, k);
			set_used(map[block + k], true);
			set_owner(map[block + k], block + k);
			value_of[block + k] = nr_records;
			pending[block + k] = false;
		}
		tr_packs_clear(packs[block / TERRACE_REGION_BLOCKS],
			       (block + i) % TERRACE_REGION_BLOCKS, n);
	}
}

/* A region is loaded: what a range discard left is unmapped for good. */
void load(u64 region)
{
	u64 first = region * TERRACE_REGION_BLOCKS;

	for (u64 b = first; b < first + TERRACE_REGION_BLOCKS; b++)
		if (pending[b])
			put(b, 1, TR_NO_PLACE);
	pending_seq[region] = 0;
}

/* The owner table and, in front of it, the owner blocks: in a volume they stand
 * among the data, here all at the end, the oldest first.
 */

bool is_table(u32 tier, u64 at)
{
	return super.tier[tier].kind == TERRACE_KIND_SHELVES &&
	       at % TERRACE_CHUNK_BLOCKS >= OWNERS_AT;
}

u64 allocate(u32 tier, u32 nr)
{
	u64 size = super.tier[tier].data_blocks, at = rnd(size), free_run = 0;

	for (u64 tries = 0; tries < 2 * size; tries++, at++) {
		if (at >= size) {
			at = 0;
			free_run = 0;
		}
		free_run = used[tier][at] || is_table(tier, at) ? 0 : free_run + 1;
		if (free_run == nr)
			return tr_place(tier, at + 1 - nr);
	}
	return TR_NO_PLACE;
}

void operate(void)
{
	u64 region = rnd(3) ? rnd(4) : rnd(regions);
	u32 first = rnd(TERRACE_REGION_BLOCKS), nr = 1 + rnd(rnd(4) ? 16 : 500), what = rnd(100);

	if (nr > TERRACE_REGION_BLOCKS - first)
		nr = TERRACE_REGION_BLOCKS - first;
	if (what < 2) {
		u64 count = 1 + rnd(3);

		if (count > regions - region)
			count = regions - region;
		record(TERRACE_RECORD_DISCARD, region, 0, count, 0);
		for (u64 r = region; r < region + count; r++) {
			pending_seq[r] = nr_records;
			for (u64 b = 0; b < TERRACE_REGION_BLOCKS; b++)
				pending[r * TERRACE_REGION_BLOCKS + b] =
					somewhere(r * TERRACE_REGION_BLOCKS + b);
		}
		return;
	}
	load(region);
	if (packing && rnd(100) < packing)
		operate_pack(region);
	else if (what < 20)
		put(region * TERRACE_REGION_BLOCKS + first, nr, TR_NO_PLACE);
	else
		put(region * TERRACE_REGION_BLOCKS + first, nr,
		    allocate(rnd(super.nr_tiers), nr));
}
