// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Metadata, bottom-up. See area.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "area.h"

#define CHUNK_WORDS (TERRACE_CHUNK_BLOCKS / 64)

/* ---- blocks --------------------------------------------------------------------- */

static void write_blocks(struct area *area, u64 block, u64 nr, const void *data)
{
	for (u32 i = 0; i < area->nr_devices && !area->error; i++)
		area->error = device_write(area->dev[i], area->start[i] + block, nr, data);
}

static void flush(struct area *area)
{
	for (u32 i = 0; i < area->nr_devices && !area->error; i++)
		area->error = device_flush(area->dev[i]);
}

static bool is_free(const struct area *area, u64 block)
{
	return !bit_test(area->used, block) && !bit_test(area->rb->avoid, block);
}

/* @nr free blocks in a row; 0 when there are none. */
static u64 take(struct area *area, u32 nr)
{
	u64 run = 0;

	for (; area->next < area->super.meta_blocks; area->next++) {
		run = is_free(area, area->next) ? run + 1 : 0;
		if (run < nr)
			continue;
		for (u64 b = area->next + 1 - nr; b <= area->next; b++)
			bit_set(area->used, b);
		return ++area->next - nr;
	}
	if (!area->error)
		area->error = -ENOSPC;
	return 0;
}

static struct tr_entry write_page(struct area *area, void *page, u32 nr, u32 count, u8 age)
{
	struct tr_entry entry = {
		.blocks = nr, .age = age, .count = count, .seq = area->super.tail_record_seq,
	};

	entry.crc = tr_page_seal(page);
	entry.block = take(area, nr);
	if (entry.block)
		write_blocks(area, entry.block, nr, page);
	area->pages++;
	return entry;
}

static void start_page(const struct area *area, void *page, const struct tr_page_id *id, u32 nr)
{
	tr_page_start(page, id, nr, area->super.tail_record_seq, area->super.generation,
		      area->super.volume_uuid);
}

/* ---- trees ------------------------------------------------------------------------- */

/* One level of directories above @nr entries, in place; returns how many. */
static u64 write_level(struct area *area, struct tr_entry *entry, u64 nr, u32 level, u32 tier,
		       u32 tree)
{
	struct terrace_dir_disk *dir = ctl_alloc_blocks(1);
	u64 to = 0;

	for (u64 first = 0; first < nr; first += TERRACE_DIR_ENTRIES) {
		struct tr_page_id id = {
			.magic = TERRACE_DIR_MAGIC, .level = level, .tier = tier, .tree = tree,
			.index = first << ((level - 1) * TERRACE_DIR_SHIFT),
		};
		struct tr_entry up = { 0 };
		u32 sum = 0, children = 0;

		start_page(area, dir, &id, 1);
		for (u32 i = 0; i < TERRACE_DIR_ENTRIES && first + i < nr; i++) {
			tr_entry_encode(&dir->entry[i], &entry[first + i]);
			children += entry[first + i].block != 0;
			sum += entry[first + i].count;
		}
		if (children)
			up = write_page(area, dir, 1, sum, 0);
		entry[to++] = up;
	}
	free(dir);
	return to;
}

static struct tr_entry write_tree(struct area *area, struct tr_entry *entry, u64 nr, u32 depth,
				  u32 tier, u32 tree)
{
	for (u32 level = 1; level <= depth; level++)
		nr = write_level(area, entry, nr, level, tier, tree);
	return entry[0];
}

static bool keeps(const struct area *area, u64 at)
{
	return rb_somewhere(at) && rb_state(at) != RB_LOST && area->keep(area->ctx, at);
}

static void fill_leaf(struct area *area, struct tr_leaf *leaf, const struct rb_region *region,
		      u32 *slots)
{
	*slots = 0;
	for (u32 i = 0; i < TERRACE_REGION_BLOCKS; i++) {
		u64 place = rb_place(region->at[i]);

		if (!keeps(area, region->at[i]))
			continue;
		area->mapped++;
		if (place == TR_NO_PLACE)
			continue;
		tr_leaf_set(leaf, i, 1, place);
		*slots += area->super.tier[tr_place_tier(place)].kind == TERRACE_KIND_SLOTS;
	}
}

/* Those that a block is live in. rebuild_packs.c has seen to it that there is room. */
static void fill_packs(const struct area *area, struct tr_packs *packs, const struct rb_region *region)
{
	for (u32 k = 0; k < region->nr_packs; k++) {
		struct tr_pack pack = region->pack[k].ref;

		memset(pack.live, 0, sizeof(pack.live));
		for (u32 i = 0; i < TERRACE_REGION_BLOCKS; i++)
			if (rb_pack(region->at[i]) == k + 1 && keeps(area, region->at[i]))
				bit_set(pack.live, i);
		if (tr_pack_live(&pack))
			tr_packs_add(packs, &pack);
	}
}

static struct tr_entry write_map_page(struct area *area, u64 number, void *page)
{
	const struct tr_page_id id = {
		.magic = TERRACE_MAP_MAGIC, .index = number, .tree = TERRACE_TREE_MAP,
	};
	static u32 low[TERRACE_REGION_BLOCKS];
	static u8 high[TERRACE_REGION_BLOCKS];
	struct tr_entry entry = { 0 };
	struct tr_packs *packs;
	struct tr_leaf leaf;
	u32 slots, nr;

	tr_leaf_init(&leaf);
	leaf.low = low;
	leaf.high = high;
	leaf.cap = TERRACE_REGION_BLOCKS;
	fill_leaf(area, &leaf, area->rb->region[number], &slots);
	packs = ctl_alloc(tr_packs_bytes(TERRACE_PACK_SLOTS));
	tr_packs_init(packs, TERRACE_PACK_SLOTS);
	fill_packs(area, packs, area->rb->region[number]);
	if (leaf.nr || packs->nr) {
		nr = tr_map_page_blocks(&leaf, packs);
		start_page(area, page, &id, nr);
		tr_map_encode(page, &leaf, packs, 0);
		entry = write_page(area, page, nr, slots, 0);
	}
	free(packs);
	return entry;
}

static void write_map(struct area *area)
{
	u64 nr = area->rb->nr_regions;
	struct tr_entry *entry = ctl_alloc(nr * sizeof(*entry));
	void *page = ctl_alloc_blocks(TERRACE_MAP_MAX_BLOCKS);

	for (u64 r = 0; r < nr && !area->error; r++)
		if (area->rb->region[r])
			entry[r] = write_map_page(area, r, page);
	area->super.map_root = write_tree(area, entry, nr, area->super.map_depth, 0, TERRACE_TREE_MAP);
	free(page);
	free(entry);
}

static void mark(u64 ***bits, u64 place, u32 nr)
{
	u64 index = tr_place_index(place);

	for (; nr && place != TR_NO_PLACE; nr--, index++) {
		u64 **chunk = &bits[tr_place_tier(place)][index / TERRACE_CHUNK_BLOCKS];

		if (!*chunk)
			*chunk = ctl_alloc(CHUNK_WORDS * sizeof(u64));
		bit_set(*chunk, index % TERRACE_CHUNK_BLOCKS);
	}
}

static void mark_packs(const struct area *area, u64 ***bits, const struct rb_region *region)
{
	struct tr_packs *packs = ctl_alloc(tr_packs_bytes(TERRACE_PACK_SLOTS));

	tr_packs_init(packs, TERRACE_PACK_SLOTS);
	fill_packs(area, packs, region);
	for (u32 k = 0; k < packs->nr; k++) {
		mark(bits, packs->pack[k].place, packs->pack[k].blocks);
		mark(bits, packs->pack[k].index_place, packs->pack[k].index_blocks);
	}
	free(packs);
}

static u64 ***space_bits(const struct area *area)
{
	const struct rebuild *rb = area->rb;
	u64 ***bits = ctl_alloc(TERRACE_MAX_TIERS * sizeof(*bits));

	for (u32 t = 0; t < area->super.nr_tiers; t++)
		bits[t] = ctl_alloc(tr_chunks(area->super.tier[t].data_blocks) * sizeof(u64 *));
	for (u64 r = 0; r < rb->nr_regions; r++) {
		for (u32 i = 0; rb->region[r] && i < TERRACE_REGION_BLOCKS; i++)
			if (keeps(area, rb->region[r]->at[i]))
				mark(bits, rb_place(rb->region[r]->at[i]), 1);
		if (rb->region[r])
			mark_packs(area, bits, rb->region[r]);
	}
	return bits;
}

static void write_space(struct area *area, u32 tier, u64 **bits, void *page)
{
	u64 chunks = tr_chunks(area->super.tier[tier].data_blocks);
	struct tr_entry *entry = ctl_alloc(chunks * sizeof(*entry));

	for (u64 c = 0; c < chunks && !area->error; c++) {
		const struct tr_page_id id = {
			.magic = TERRACE_SPACE_MAGIC, .index = c, .tier = tier,
			.tree = TERRACE_TREE_SPACE,
		};
		u32 count = 0;

		for (u32 w = 0; bits[c] && w < CHUNK_WORDS; w++)
			count += hweight64(bits[c][w]);
		if (!count)
			continue;
		start_page(area, page, &id, 1);
		tr_space_encode(page, bits[c]);
		entry[c] = write_page(area, page, 1, count, 0);
	}
	area->super.tier[tier].space_root = write_tree(area, entry, chunks, tr_dir_depth(chunks), tier,
						       TERRACE_TREE_SPACE);
	free(entry);
}

static void write_spaces(struct area *area)
{
	u64 ***bits = space_bits(area);
	void *page = ctl_alloc_blocks(1);

	for (u32 t = 0; t < area->super.nr_tiers; t++) {
		write_space(area, t, bits[t], page);
		for (u64 c = 0; c < tr_chunks(area->super.tier[t].data_blocks); c++)
			free(bits[t][c]);
		free(bits[t]);
	}
	free(bits);
	free(page);
}

/* ---- bitmaps and superblocks ------------------------------------------------------------ */

static void write_mbits(struct area *area, u64 generation)
{
	const struct tr_super *super = &area->super;
	void *block = ctl_alloc_blocks(1);
	u64 bits[TERRACE_MBIT_WORDS];

	for (u64 i = 0; i < super->bitmap_blocks; i++) {
		u64 first = i * TERRACE_MBIT_BITS;

		memset(bits, 0, sizeof(bits));
		for (u64 b = 0; b < TERRACE_MBIT_BITS && first + b < super->meta_blocks; b++)
			if (bit_test(area->used, first + b))
				bit_set(bits, b);
		tr_mbit_encode(block, bits, first, generation, super->volume_uuid);
		write_blocks(area, super->bitmap_start[generation & 1] + i, 1, block);
	}
	free(block);
}

static void write_super(struct area *area, u64 generation)
{
	struct tr_super super = area->super;
	void *block = ctl_alloc_blocks(1);

	super.generation = generation;
	tr_super_encode(block, &super);
	write_mbits(area, generation);
	flush(area);
	write_blocks(area, generation & 1, 1, block);
	flush(area);
	free(block);
}

int area_write(struct area *area)
{
	area->used = ctl_alloc((area->super.meta_blocks / 64 + 1) * sizeof(u64));
	area->next = tr_first_page(&area->super);
	for (u64 b = 0; b < area->next; b++)
		bit_set(area->used, b);
	write_map(area);
	write_spaces(area);
	if (!area->error && area->ready)
		area->error = area->ready(area->ctx);
	if (!area->error)
		write_super(area, area->super.generation);
	if (!area->error)
		write_super(area, area->super.generation + 1);
	free(area->used);
	area->used = NULL;
	return area->error;
}
