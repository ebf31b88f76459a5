// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl dump map, dump space: directories and pages.
 */
#include <stdlib.h>

#include "dump.h"
#include "trees.h"

static void add_page(struct json_object *o, const struct tr_entry *entry)
{
	add_u64(o, "meta_block", entry->block);
	add_u64(o, "length", entry->blocks);
	add_u64(o, "seq", entry->seq);
	add_u64(o, "count", entry->count);
}

static void directory(struct trees *trees, u32 tree, u32 tier, u32 level, u64 index,
		      const struct tr_entry *entry)
{
	struct dump *d = trees->ctx;
	struct json_object *o;

	if (d->first || d->last != ~0ull)
		return;
	o = json_object_new_object();
	if (tree == TERRACE_TREE_SPACE)
		add_u64(o, "tier", tier);
	add_u64(o, "level", level);
	add_u64(o, "from", index);
	add_page(o, entry);
	dump_item(d, "directory", o);
}

/* ---- map ---------------------------------------------------------------------------- */

static struct json_object *place_list(const struct tr_leaf *leaf, u64 region)
{
	struct json_object *list = json_object_new_array();
	u32 i, n;
	u64 place;

	for (i = 0; i < TERRACE_REGION_BLOCKS; i += n) {
		struct json_object *o;

		n = tr_leaf_run(leaf, i, TERRACE_REGION_BLOCKS - i, &place);
		if (place == TR_NO_PLACE)
			continue;
		o = json_object_new_object();
		add_u64(o, "block", region * TERRACE_REGION_BLOCKS + i);
		add_u64(o, "blocks", n);
		add_place(o, "", place);
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *pack_list(const struct tr_packs *packs, u64 region)
{
	struct json_object *list = json_object_new_array();

	for (const struct tr_pack *pack = packs->pack; pack < packs->pack + packs->nr; pack++) {
		struct json_object *o = json_object_new_object();

		add_u64(o, "id", pack->id);
		add_place(o, "", pack->place);
		add_u64(o, "blocks", pack->blocks);
		add_hex(o, "header_crc", pack->header_crc);
		add_place(o, "index_", pack->index_place);
		add_u64(o, "live_blocks", tr_pack_live(pack));
		add_runs(o, "live", pack->live, TERRACE_REGION_BLOCKS,
			 region * TERRACE_REGION_BLOCKS);
		json_object_array_add(list, o);
	}
	return list;
}

static void dump_map_page(struct trees *trees, u64 region, const struct tr_entry *entry,
			  const void *page)
{
	const struct tr_page_id id = {
		.magic = TERRACE_MAP_MAGIC, .index = region, .tree = TERRACE_TREE_MAP,
	};
	const struct tr_super *super = trees->super;
	static u32 low[TERRACE_REGION_BLOCKS];
	static u8 high[TERRACE_REGION_BLOCKS];
	u64 data_blocks[TERRACE_MAX_TIERS];
	struct tr_packs *packs = ctl_alloc(tr_packs_bytes(TERRACE_PACK_SLOTS));
	struct tr_leaf leaf;
	struct json_object *o;
	u8 age;

	tr_leaf_init(&leaf);
	leaf.low = low;
	leaf.high = high;
	leaf.cap = TERRACE_REGION_BLOCKS;
	for (u32 i = 0; i < TERRACE_MAX_TIERS; i++)
		data_blocks[i] = super->tier[i].data_blocks;
	tr_packs_init(packs, TERRACE_PACK_SLOTS);
	if (tr_map_decode(page, entry->blocks * TERRACE_BLOCK_BYTES, &leaf, packs, &age, data_blocks,
			  super->nr_tiers)) {
		problem(trees->findings, page_where(trees->meta, &id, entry->block),
			"its sections or places are impossible");
		free(packs);
		return;
	}
	o = json_object_new_object();
	add_u64(o, "number", region);
	add_page(o, entry);
	add_u64(o, "age", age);
	add_u64(o, "mapped", leaf.nr);
	json_object_object_add(o, "run", place_list(&leaf, region));
	if (packs->nr)
		json_object_object_add(o, "pack", pack_list(packs, region));
	dump_item(trees->ctx, "region", o);
	free(packs);
}

/* ---- space ----------------------------------------------------------------------------- */

static void dump_space_page(struct trees *trees, u32 tier, u64 chunk, const struct tr_entry *entry,
			    const void *page)
{
	struct json_object *o = json_object_new_object();
	u64 bits[TERRACE_CHUNK_BLOCKS / 64];
	u32 used;

	tr_space_decode(page, bits, &used);
	add_u64(o, "tier", tier);
	add_u64(o, "number", chunk);
	add_page(o, entry);
	add_u64(o, "used", used);
	add_runs(o, "places", bits, TERRACE_CHUNK_BLOCKS, chunk * TERRACE_CHUNK_BLOCKS);
	dump_item(trees->ctx, "chunk", o);
}

/* ---- both -------------------------------------------------------------------------------- */

static u32 leaf_page(struct trees *trees, u32 tree, u32 tier, u64 number,
		     const struct tr_entry *entry)
{
	bool map = tree == TERRACE_TREE_MAP;
	const struct tr_page_id id = {
		.magic = map ? TERRACE_MAP_MAGIC : TERRACE_SPACE_MAGIC, .index = number,
		.tree = tree, .tier = map ? 0 : tier,
	};
	void *page;

	if (!dump_wanted(trees->ctx, number))
		return entry->count;
	page = trees_read_page(trees, &id, entry);
	if (page && map)
		dump_map_page(trees, number, entry, page);
	else if (page)
		dump_space_page(trees, tier, number, entry, page);
	free(page);
	return entry->count;
}

static void walk(struct dump *d, bool map)
{
	struct trees trees;

	trees_init(&trees, d->vol.meta, &d->findings);
	trees.leaf = leaf_page;
	trees.directory = directory;
	trees.ctx = d;
	if (map)
		trees_walk_map(&trees);
	for (u32 i = 0; !map && i < d->vol.super->nr_tiers; i++)
		trees_walk_space(&trees, i);
	trees_free(&trees);
}

void dump_map(struct dump *d)
{
	walk(d, true);
}

void dump_space(struct dump *d)
{
	walk(d, false);
}
