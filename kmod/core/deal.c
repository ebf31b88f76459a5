// SPDX-License-Identifier: GPL-2.0
/*
 * Dealing a unit of the journal out to shards. See deal.h.
 */
#include <linux/minmax.h>
#include <linux/string.h>
#include <asm/byteorder.h>
#include "deal.h"

#define PLACES	4	/* runs of places of a record, cut where parts of chunks end */
#define PART	(1u << TR_DEAL_PART_SHIFT)

static u16 new_slab(struct tr_deal_list *list, u16 *next, u16 *slabs)
{
	u16 slab = (*slabs)++;

	if (list->first == list->end)
		list->first = slab * TR_DEAL_SLAB;
	else
		next[list->end / TR_DEAL_SLAB - 1] = slab;
	return slab * TR_DEAL_SLAB;
}

/* Where the next entry of @list goes. */
static __always_inline u16 list_add(struct tr_deal_list *list, u16 *next, u16 *slabs)
{
	u16 at = list->end;

	if (at % TR_DEAL_SLAB == 0)
		at = new_slab(list, next, slabs);
	list->end = at + 1;
	return at;
}

static __always_inline void add_map(struct tr_deal *deal, u64 region, u64 what)
{
	u16 k = list_add(&deal->map_list[tr_deal_shard(region)], deal->map_next, &deal->map_slabs);

	deal->map[k].region = region;
	deal->map[k].what = what;
}

static __always_inline void add_place(struct tr_deal *deal, u64 place, u32 nr, u32 at, bool used)
{
	struct tr_deal_list *list = &deal->space_list[tr_deal_shard(tr_deal_part(place))];

	deal->space[list_add(list, deal->space_next, &deal->space_slabs)] =
		tr_deal_space(place, nr, at, used);
}

static void deal_map(struct tr_deal *deal, const struct tr_record *record, u32 at)
{
	u64 region;

	if (!tr_record_region(record, &region))
		return;
	switch (record->type) {
	case TERRACE_RECORD_MAP:
	case TERRACE_RECORD_UNMAP:
	case TERRACE_RECORD_CLEAN:
	case TERRACE_RECORD_PACKED:
		add_map(deal, region, tr_deal_what(at, true, record->block % TERRACE_REGION_BLOCKS,
						   record->nr));
		break;
	default:
		add_map(deal, region, tr_deal_what(at, false, 0, 0));
	}
}

struct places {
	u32 nr;
	struct {
		u64 place;
		u32 nr;
		bool used;
	} run[PLACES];
};

static void collect(u32 tier, u64 index, u32 n, bool used, void *context)
{
	struct places *places = context;
	u32 m;

	for (; n; index += m, n -= m) {
		m = min_t(u32, n, PART - index % PART);
		places->run[places->nr].place = tr_place(tier, index);
		places->run[places->nr].nr = m;
		places->run[places->nr++].used = used;
	}
}

/* The last word of a record first. */
static void deal_space(struct tr_deal *deal, const struct tr_record *record, u32 at)
{
	struct places places = {};

	tr_record_space(record, collect, &places);
	while (places.nr--)
		add_place(deal, places.run[places.nr].place, places.run[places.nr].nr, at,
			  places.run[places.nr].used);
}

static noinline void deal_any(struct tr_deal *deal, const void *block, u32 i, u32 at, bool space)
{
	struct tr_record record;

	tr_jblock_record(block, i, &record);
	deal_map(deal, &record, at);
	if (space)
		deal_space(deal, &record, at);
}

/* Most records by far: one block gets another place. */
static __always_inline void deal_one(struct tr_deal *deal,
				     const struct terrace_record_disk *record, u32 at, bool space)
{
	u64 block = le64_to_cpu(record->block), old = le64_to_cpu(record->old);

	add_map(deal, block >> TERRACE_REGION_SHIFT,
		tr_deal_what(at, true, block % TERRACE_REGION_BLOCKS, 1));
	if (!space)
		return;
	add_place(deal, le64_to_cpu(record->new), 1, at, true);
	if (old != TR_NO_PLACE)
		add_place(deal, old, 1, at, false);
}

void tr_deal(struct tr_deal *deal, const void *blocks, u32 nr, bool space)
{
	u32 b, i;

	deal->blocks = blocks;
	deal->map_slabs = 0;
	deal->space_slabs = 0;
	memset(deal->map_list, 0, sizeof(deal->map_list));
	memset(deal->space_list, 0, sizeof(deal->space_list));
	for (b = nr; b--;) {
		const struct terrace_journal_disk *block = &deal->blocks[b];

		deal->first_record[b] = tr_jblock_first_record(block);
		for (i = tr_jblock_nr(block); i--;) {
			const struct terrace_record_disk *record = &block->record[i];

			if (likely(record->type == TERRACE_RECORD_MAP &&
				   record->nr == cpu_to_le16(1)))
				deal_one(deal, record, b * 128 + i, space);
			else
				deal_any(deal, block, i, b * 128 + i, space);
		}
	}
}

void tr_deal_decide_run(u64 *touched, u64 *used, u32 first, u32 nr, bool in_use)
{
	u32 end = first + nr, to;
	u64 mask;

	for (; first < end; first = to) {
		to = min((first | 63) + 1, end);
		mask = (~0ull >> (64 - (to - first))) << (first % 64) & ~touched[first / 64];
		touched[first / 64] |= mask;
		if (in_use)
			used[first / 64] |= mask;
	}
}
