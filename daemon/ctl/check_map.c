// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Regions, one by one: the map page, the journal's newest word on each block
 * laid over it, and where that says the blocks live. A region that a range
 * discard emptied keeps its places until UNMAP records free them: its blocks
 * read as zeros, its places are still used.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

/* Places and packs of one region, with room for all of them. */
struct room {
	u32 low[TERRACE_REGION_BLOCKS];
	u8 high[TERRACE_REGION_BLOCKS];
	union {
		struct tr_packs packs;
		u8 bytes[sizeof(struct tr_packs) + TERRACE_PACK_SLOTS * sizeof(struct tr_pack)];
	};
};

static void leaf_with_room(struct tr_leaf *leaf, struct room *room)
{
	tr_leaf_init(leaf);
	leaf->low = room->low;
	leaf->high = room->high;
	leaf->cap = TERRACE_REGION_BLOCKS;
	tr_packs_init(&room->packs, TERRACE_PACK_SLOTS);
}

/* As many as a region's records name; the room stays for the next region. */
static void delta_pack_room(struct tr_delta *delta, const struct tr_record *record)
{
	static struct tr_delta_pack *packs;
	static u32 cap;

	if (tr_delta_room_packs(delta, record) > cap) {
		cap = 2 * cap + 16;
		packs = ctl_realloc(packs, cap * sizeof(*packs));
	}
	delta->packs = packs;
	delta->cap_packs = cap;
}

/* ---- the journal, sorted by region -------------------------------------------------- */

/* Activation refuses it. */
static void check_discard(struct check *c, const struct tr_record *record, u64 seq)
{
	u64 most = c->virtual_blocks > c->vol.super->virtual_blocks ? c->virtual_blocks :
								      c->vol.super->virtual_blocks;
	u64 regions = (most + TERRACE_REGION_BLOCKS - 1) / TERRACE_REGION_BLOCKS;

	if (record->block > regions || record->new > regions - record->block)
		problem(&c->findings, where("%s: journal record %llu", c->vol.meta->dev->path, seq),
			"discards regions %llu-%llu, the volume has %llu", record->block,
			record->block + record->new - 1, regions);
}

static void sort_record(void *ctx, const struct tr_record *record, u64 seq, u64 block, u32 i)
{
	struct check *c = ctx;
	u64 region;

	switch (record->type) {
	case TERRACE_RECORD_RESIZE:
		return;
	case TERRACE_RECORD_DISCARD:
		check_discard(c, record, seq);
		c->discards[c->nr_discards++] = (struct check_discard){
			.record = *record, .seq = seq,
		};
		return;
	default:
		tr_record_region(record, &region);
		c->records[c->nr_records++] = (struct region_record){
			.region = region, .seq = seq, .block = block, .i = i,
		};
	}
}

/* By region, the newest first. */
static int compare_records(const void *a, const void *b)
{
	const struct region_record *x = a, *y = b;

	if (x->region != y->region)
		return x->region < y->region ? -1 : 1;
	return x->seq == y->seq ? 0 : x->seq > y->seq ? -1 : 1;
}

void check_map_init(struct check *c)
{
	u64 nr = c->journal.nr_records;

	c->records = ctl_alloc(nr * sizeof(*c->records));
	c->discards = ctl_alloc(nr * sizeof(*c->discards));
	journal_each(&c->journal, sort_record, c);
	qsort(c->records, c->nr_records, sizeof(*c->records), compare_records);
	for (u64 i = 0; i < c->nr_discards / 2; i++) {
		struct check_discard swap = c->discards[i];

		c->discards[i] = c->discards[c->nr_discards - 1 - i];
		c->discards[c->nr_discards - 1 - i] = swap;
	}
}

void check_map_free(struct check *c)
{
	free(c->records);
	free(c->discards);
	free(c->suspects);
}

/* First record of @region or of a later one. */
static u64 find_records(const struct check *c, u64 region)
{
	u64 from = 0, to = c->nr_records;

	while (from < to) {
		u64 middle = from + (to - from) / 2;

		if (c->records[middle].region < region)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static void apply_record(struct check *c, struct tr_delta *delta, const struct region_record *at)
{
	struct tr_record record;
	u64 seq;
	int r;

	journal_record(&c->journal, at->block, at->i, &record, &seq);
	delta_pack_room(delta, &record);
	r = tr_delta_apply(delta, &record, seq);
	if (r < 0 && c->walk == CHECK_MAP)
		problem(&c->findings, where("%s: journal record %llu", c->vol.meta->dev->path, seq),
			r == -EUCLEAN ? "a %s record of region %llu contradicts newer ones" :
			"a %s record of region %llu cannot be replayed by this version",
			record_name(record.type), at->region);
}

/* Records and range discards of one region, merged, newest first. */
static void build_delta(struct check *c, u64 region, struct tr_delta *delta, struct room *room)
{
	const struct region_record *record = c->records + find_records(c, region);
	const struct region_record *end = c->records + c->nr_records;

	memset(delta, 0, sizeof(*delta));
	leaf_with_room(&delta->leaf, room);
	for (u64 i = 0; i < c->nr_discards; i++) {
		const struct check_discard *d = &c->discards[i];

		if (region < d->record.block || region - d->record.block >= d->record.new)
			continue;
		for (; record < end && record->region == region && record->seq > d->seq; record++)
			apply_record(c, delta, record);
		tr_delta_apply(delta, &d->record, d->seq);
	}
	for (; record < end && record->region == region; record++)
		apply_record(c, delta, record);
}

/* ---- one region -------------------------------------------------------------------------- */

static const char *block_where(const struct check *c, u64 block)
{
	return where("volume '%s': block %llu (region %llu)", c->vol.name, block,
		     block / TERRACE_REGION_BLOCKS);
}

static bool place_exists(const struct check *c, u64 place)
{
	u32 tier = tr_place_tier(place);

	return tier < c->vol.super->nr_tiers &&
	       tr_place_index(place) < c->vol.super->tier[tier].data_blocks;
}

static void check_place(struct check *c, u64 block, u64 place, bool live)
{
	if (c->walk == CHECK_SUSPECTS)
		check_suspects_user(c, block, place);
	if (c->walk == CHECK_OWNERS)
		check_owners_user(c, block, place);
	if (c->walk != CHECK_MAP)
		return;
	if (!place_exists(c, place)) {
		problem(&c->findings, block_where(c, block),
			"is said to be at place %llu of tier %u, which does not exist",
			tr_place_index(place), tr_place_tier(place));
		return;
	}
	if (c->vol.super->tier[tr_place_tier(place)].kind == TERRACE_KIND_HOME &&
	    tr_place_index(place) != block)
		problem(&c->findings, block_where(c, block),
			"is said to be at home %llu of tier %u, which is another block's",
			tr_place_index(place), tr_place_tier(place));
	if (live && block >= c->virtual_blocks)
		problem(&c->findings, block_where(c, block),
			"has a place, but the volume ends at block %llu", c->virtual_blocks);
	if (!check_space_reference(c, place))
		check_suspect(c, place, true);
	if (live)
		c->mapped_blocks++;
	else
		c->discarded_blocks++;
}

/* Blocks that a range discard took, before the page was written (@gone) or
 * since, and that no newer record brought back, are not live.
 */
static void check_region(struct check *c, u64 region, struct tr_leaf *leaf,
			 struct tr_packs *packs, u64 page_seq, const u64 *gone)
{
	static struct tr_delta delta;
	static struct room room;
	bool discarded, taken;
	u32 i, rank = 0;

	build_delta(c, region, &delta, &room);
	if (tr_delta_overlay(&delta, leaf, packs) && c->walk == CHECK_MAP)
		problem(&c->findings, where("volume '%s': region %llu", c->vol.name, region),
			"its map page and the journal contradict each other on its packs");
	discarded = delta.discard_seq > page_seq;
	for (i = tr_leaf_next(leaf, 0); i < TERRACE_REGION_BLOCKS; i = tr_leaf_next(leaf, i + 1)) {
		taken = discarded || bit_test(gone, i);
		check_place(c, region * TERRACE_REGION_BLOCKS + i, tr_leaf_at(leaf, rank++),
			    !taken || bit_test(delta.kept, i));
	}
	check_packs(c, region, packs, discarded ? delta.kept : NULL);
	if (c->walk == CHECK_MAP)
		c->regions++;
}

/* ---- map pages ------------------------------------------------------------------------------ */

static u32 count_slots(const struct check *c, const struct tr_leaf *leaf)
{
	u32 nr = 0;

	for (u32 rank = 0; rank < leaf->nr; rank++) {
		u32 tier = tr_place_tier(tr_leaf_at(leaf, rank));

		nr += c->vol.super->tier[tier].kind == TERRACE_KIND_SLOTS;
	}
	return nr;
}

static int decode_page(const struct check *c, const void *page, const struct tr_entry *entry,
		       struct tr_leaf *leaf, struct tr_packs *packs, u8 *age)
{
	u64 data_blocks[TERRACE_MAX_TIERS];

	for (u32 i = 0; i < TERRACE_MAX_TIERS; i++)
		data_blocks[i] = c->vol.super->tier[i].data_blocks;
	return tr_map_decode(page, entry->blocks * TERRACE_BLOCK_BYTES, leaf, packs, age,
			     data_blocks, c->vol.super->nr_tiers);
}

/* Ids are never given out twice; in the superblock is the last one, or the next. */
static void check_ids(struct check *c, const struct tr_packs *packs, const struct tr_page_id *id,
		      u64 block)
{
	for (u32 k = 0; k < packs->nr && c->walk == CHECK_MAP; k++)
		if (packs->pack[k].id > c->vol.super->next_id)
			problem(&c->findings, page_where(c->trees.meta, id, block),
				"names pack %llu, the superblock says that %llu comes next",
				packs->pack[k].id, c->vol.super->next_id);
}

u32 check_map_page(struct check *c, u64 region, const struct tr_entry *entry)
{
	const struct tr_page_id id = {
		.magic = TERRACE_MAP_MAGIC, .index = region, .tree = TERRACE_TREE_MAP,
	};
	void *page = trees_read_page(&c->trees, &id, entry);
	static struct room room;
	u64 gone[TR_LEAF_WORDS];
	struct tr_leaf leaf;
	u32 count;
	u8 age;
	int r;

	if (!page) {
		c->map_unknown = true;
		return entry->count;
	}
	leaf_with_room(&leaf, &room);
	r = decode_page(c, page, entry, &leaf, &room.packs, &age);
	if (!r)
		tr_map_gone(page, entry->blocks * TERRACE_BLOCK_BYTES, gone);
	free(page);
	if (r) {
		problem(c->trees.findings, page_where(c->trees.meta, &id, entry->block), "%s",
			r == -EPROTONOSUPPORT ? "has a section that this version does not know" :
			"its sections or places are impossible");
		c->map_unknown = true;
		return entry->count;
	}
	if (age != entry->age && c->walk == CHECK_MAP)
		problem(&c->findings, page_where(c->trees.meta, &id, entry->block),
			"has age %u, its entry says %u", age, entry->age);
	check_ids(c, &room.packs, &id, entry->block);
	count = count_slots(c, &leaf);
	check_region(c, region, &leaf, &room.packs, entry->seq, gone);
	return count;
}

static u32 remember_page(struct trees *trees, u32 tree, u32 tier, u64 number,
			 const struct tr_entry *entry)
{
	u64 *has_page = trees->ctx;

	(void)tree;
	(void)tier;
	bit_set(has_page, number);
	return entry->count;
}

/* Regions in the journal whose page is still to be written for the first
 * time. Which have one is asked of the directories, quietly.
 */
void check_map_rest(struct check *c)
{
	u64 *has_page = ctl_alloc((c->trees.regions / 64 + 1) * sizeof(u64));
	struct findings quiet = { .limit = 1, .printed = 1 };
	static const u64 none[TR_LEAF_WORDS];
	static struct room room;
	struct trees trees;
	struct tr_leaf leaf;
	u64 region = ~0ull;

	trees_init(&trees, c->vol.meta, &quiet);
	trees.regions = c->trees.regions;
	trees.leaf = remember_page;
	trees.ctx = has_page;
	trees_walk_map(&trees);
	trees_free(&trees);
	for (u64 i = 0; i < c->nr_records; i++) {
		if (c->records[i].region == region)
			continue;
		region = c->records[i].region;
		if (region >= c->trees.regions) {
			if (c->walk == CHECK_MAP)
				problem(&c->findings,
					where("%s: journal record %llu", c->vol.meta->dev->path,
					      c->records[i].seq),
					"is about region %llu, the volume has %llu", region,
					c->trees.regions);
			continue;
		}
		if (bit_test(has_page, region))
			continue;
		leaf_with_room(&leaf, &room);
		check_region(c, region, &leaf, &room.packs, 0, none);
	}
	free(has_page);
}

void check_map_again(struct check *c, enum check_walk walk)
{
	struct findings quiet = { .limit = 1, .printed = 1 };
	u64 map_pages = c->trees.map_pages, directories = c->trees.directories;

	c->walk = walk;
	c->trees.findings = &quiet;
	trees_walk_map(&c->trees);
	check_map_rest(c);
	c->trees.findings = &c->findings;
	c->trees.map_pages = map_pages;
	c->trees.directories = directories;
	c->walk = CHECK_MAP;
}
