/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Dealing the journal's records out to those who replay them. A region belongs
 * to one shard, and so does a part of a chunk (the places that are taken in a
 * row lie in few chunks); shards share nothing, so any number of CPUs may work
 * at once, each on a shard of its own.
 *
 * One unit of the journal (a few blocks) is dealt in one pass, newest record
 * first: per shard a list of what happens to its regions, and one of what
 * happens to its parts of chunks. An entry is 8 or 16 bytes, enough to see that a newer
 * record has decided the same blocks; only who is not superseded decodes the
 * record itself (@at). The lists are made of slabs of the unit's own arrays,
 * which have room for the worst case: nothing is allocated for a record.
 *
 * Range discards and changes of size belong to no shard and are left out.
 */
#ifndef TERRACE_CORE_DEAL_H
#define TERRACE_CORE_DEAL_H

#include "replay.h"

#define TR_DEAL_SHARDS	64u		/* a power of two */
#define TR_DEAL_BLOCKS	16u		/* of a unit, at most */
#define TR_DEAL_SLAB	16u		/* entries; a power of two */
#define TR_DEAL_RECORDS	(TR_DEAL_BLOCKS * TERRACE_RECORDS_PER_BLOCK)
#define TR_DEAL_PART_SHIFT 11		/* of a chunk: places */
#define TR_DEAL_PARTS	(TERRACE_CHUNK_BLOCKS >> TR_DEAL_PART_SHIFT)
/* Each list may leave one slab unfinished. A record names at most two runs of
 * places of a region's length, each of which may cross a border, or one of a
 * pack's, which may cross two.
 */
#define TR_DEAL_MAP_SLABS	(TR_DEAL_RECORDS / TR_DEAL_SLAB + TR_DEAL_SHARDS)
#define TR_DEAL_SPACE_SLABS	(4 * TR_DEAL_RECORDS / TR_DEAL_SLAB + TR_DEAL_SHARDS)

struct tr_deal_map {
	u64 region;
	u64 what;		/* see tr_deal_map_first() and its neighbours */
};

/* Where a list begins and ends; positions count entries from slab 0 on. */
struct tr_deal_list {
	u16 first, end;		/* equal: it is empty */
};

struct tr_deal {
	const struct terrace_journal_disk *blocks;
	u64 first_record[TR_DEAL_BLOCKS];
	u16 map_slabs, space_slabs;	/* in use */
	struct tr_deal_list map_list[TR_DEAL_SHARDS], space_list[TR_DEAL_SHARDS];
	u16 map_next[TR_DEAL_MAP_SLABS], space_next[TR_DEAL_SPACE_SLABS];
	struct tr_deal_map map[TR_DEAL_MAP_SLABS * TR_DEAL_SLAB];
	u64 space[TR_DEAL_SPACE_SLABS * TR_DEAL_SLAB]; /* see tr_deal_place() and its neighbours */
};

/* Neighbours are in different shards, and so are regions at a power of two from
 * each other, where filesystems like to put what they often write.
 */
static inline u32 tr_deal_shard(u64 number)
{
	return (number ^ number >> 6 ^ number >> 12) & (TR_DEAL_SHARDS - 1);
}

/* Deals the unit of @nr journal blocks at @blocks; chunks only if @space. */
void tr_deal(struct tr_deal *deal, const void *blocks, u32 nr, bool space);

/* --- reading the lists, newest first ---------------------------------------- */

/* The position behind @at, unless @at was the last before @end. */
static inline u16 tr_deal_next(const u16 *next, u16 at, u16 end)
{
	if (++at % TR_DEAL_SLAB == 0 && at != end)
		at = next[at / TR_DEAL_SLAB - 1] * TR_DEAL_SLAB;
	return at;
}

/* Its record: block of the unit * 128 + number in the block. */
static inline u64 tr_deal_seq(const struct tr_deal *deal, u32 at)
{
	return deal->first_record[at / 128] + at % 128;
}

static inline void tr_deal_record(const struct tr_deal *deal, u32 at, struct tr_record *record)
{
	tr_jblock_record(&deal->blocks[at / 128], at % 128, record);
}

/* An entry of a region: its record, whether that decides blocks first .. first+nr-1,
 * all of them and no others, and which these are.
 */
static inline u64 tr_deal_what(u32 at, bool plain, u32 first, u32 nr)
{
	return at | (u64)plain << 16 | (u64)first << 32 | (u64)nr << 48;
}

static inline u32 tr_deal_map_record(u64 what)
{
	return (u16)what;
}

static inline bool tr_deal_map_plain(u64 what)
{
	return what >> 16 & 1;
}

static inline u32 tr_deal_map_first(u64 what)
{
	return (u16)(what >> 32);
}

static inline u32 tr_deal_map_nr(u64 what)
{
	return what >> 48;
}

/* Have newer records decided all blocks of the entry? Then it says nothing. */
static inline bool tr_deal_superseded(u64 what, const struct tr_delta *delta)
{
	u32 first = tr_deal_map_first(what), nr = tr_deal_map_nr(what);

	if (!tr_deal_map_plain(what))
		return false;
	if (nr == 1)
		return tr_leaf_has(&delta->leaf, first);
	return !delta->arrival && !tr_leaf_missing(&delta->leaf, first, nr);
}

/* An entry of a chunk: a run of places (40 bits, 12), its record, taken or freed. */
static inline u64 tr_deal_space(u64 place, u32 nr, u32 at, bool used)
{
	return place << 24 | nr << 12 | at << 1 | used;
}

static inline u64 tr_deal_place(u64 entry)
{
	return entry >> 24;
}

static inline u32 tr_deal_space_nr(u64 entry)
{
	return entry >> 12 & 0xfff;
}

static inline u32 tr_deal_space_record(u64 entry)
{
	return entry >> 1 & 0x7ff;
}

static inline bool tr_deal_space_used(u64 entry)
{
	return entry & 1;
}

/* Its shard follows from this. */
static inline u64 tr_deal_part(u64 place)
{
	return place >> (TERRACE_PLACE_TIER_BITS + TR_DEAL_PART_SHIFT);
}

static inline u32 tr_deal_chunk(u64 place)
{
	return place >> (TERRACE_PLACE_TIER_BITS + TERRACE_CHUNK_SHIFT);
}

/* The newest record of a place decides: what is touched stays as it is. Both
 * bitmaps are a chunk's; @used is meaningful within @touched.
 */
void tr_deal_decide_run(u64 *touched, u64 *used, u32 first, u32 nr, bool in_use);

static inline void tr_deal_decide(u64 *touched, u64 *used, u32 first, u32 nr, bool in_use)
{
	u64 bit = 1ull << (first % 64);

	if (nr > 1) {
		tr_deal_decide_run(touched, used, first, nr, in_use);
	} else if (!(touched[first / 64] & bit)) {
		touched[first / 64] |= bit;
		used[first / 64] |= in_use ? bit : 0;
	}
}

#endif
