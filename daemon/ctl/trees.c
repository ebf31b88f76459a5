// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Walking the trees. Each entry is judged before it is followed: is its page
 * where pages may be, and has nobody claimed these blocks already?
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <asm/byteorder.h>

#include "trees.h"

void trees_init(struct trees *trees, const struct metadata *meta, struct findings *findings)
{
	memset(trees, 0, sizeof(*trees));
	trees->meta = meta;
	trees->super = meta->super;
	trees->findings = findings;
	trees->newest_record = ~0ull;
	trees->regions = (meta->super->virtual_blocks + TERRACE_REGION_BLOCKS - 1) /
			 TERRACE_REGION_BLOCKS;
	trees->claimed = ctl_alloc((meta->super->meta_blocks / 64 + 1) * sizeof(u64));
}

void trees_free(struct trees *trees)
{
	free(trees->claimed);
	trees->claimed = NULL;
}

const char *page_where(const struct metadata *meta, const struct tr_page_id *id, u64 block)
{
	const char *dev = meta->dev->path;

	if (id->magic == TERRACE_MAP_MAGIC)
		return where("%s: map page of region %llu (meta block %llu)", dev, id->index, block);
	if (id->magic == TERRACE_SPACE_MAGIC)
		return where("%s: space page of tier %u chunk %llu (meta block %llu)", dev,
			     id->tier, id->index, block);
	if (id->tree == TERRACE_TREE_MAP)
		return where("%s: map directory of level %u from region %llu (meta block %llu)",
			     dev, id->level, id->index, block);
	return where("%s: space directory of tier %u, level %u from chunk %llu (meta block %llu)",
		     dev, id->tier, id->level, id->index, block);
}

static void fill_id(struct tr_page_id *id, u32 tree, u32 tier, u32 level, u64 index)
{
	memset(id, 0, sizeof(*id));
	id->tree = tree;
	id->tier = tree == TERRACE_TREE_SPACE ? tier : 0;
	id->level = level;
	id->index = index;
	if (level)
		id->magic = TERRACE_DIR_MAGIC;
	else
		id->magic = tree == TERRACE_TREE_MAP ? TERRACE_MAP_MAGIC : TERRACE_SPACE_MAGIC;
}

static int read_copy(const struct trees *trees, const struct metadata *meta,
		     const struct tr_page_id *id, const struct tr_entry *entry, void *page)
{
	int r = metadata_read(meta, entry->block, entry->blocks, page);

	if (!r)
		r = tr_page_check(page, entry->blocks * TERRACE_BLOCK_BYTES, id, entry,
				  trees->super->volume_uuid);
	return r;
}

void *trees_read_page(struct trees *trees, const struct tr_page_id *id,
		      const struct tr_entry *entry)
{
	void *page = ctl_alloc_blocks(entry->blocks);
	int r = read_copy(trees, trees->meta, id, entry, page);

	if (!r || (trees->other && !read_copy(trees, trees->other, id, entry, page)))
		return page;
	problem(trees->findings, page_where(trees->meta, id, entry->block), "%s",
		decode_strerror(r));
	trees->broken = true;
	free(page);
	return NULL;
}

/* Is the entry possible, and the only one to name its blocks? */
static bool claim(struct trees *trees, const struct tr_page_id *id, const struct tr_entry *entry)
{
	const char *place = page_where(trees->meta, id, entry->block);
	bool single = id->magic != TERRACE_MAP_MAGIC;

	if (!tr_entry_ok(trees->super, entry) || entry->block < tr_first_page(trees->super) ||
	    (single && entry->blocks != 1)) {
		problem(trees->findings, place, "its entry names an impossible page: %u blocks at %llu",
			entry->blocks, entry->block);
		trees->broken = true;
		return false;
	}
	for (u64 i = entry->block; i < entry->block + entry->blocks; i++) {
		if (bit_test(trees->claimed, i))
			problem(trees->findings, place, "meta block %llu belongs to another page as well", i);
		bit_set(trees->claimed, i);
	}
	if (entry->seq > trees->newest_record)
		problem(trees->findings, place,
			"knows records up to %llu, but the journal ends at %llu: the end of the journal is lost",
			entry->seq, trees->newest_record);
	return true;
}

static u32 walk(struct trees *trees, u32 tree, u32 tier, u32 level, u64 index, u64 leaves,
		const struct tr_entry *entry);

static u32 walk_children(struct trees *trees, u32 tree, u32 tier, u32 level, u64 index,
			 u64 leaves, const struct terrace_dir_disk *dir, u64 self)
{
	u64 span = 1ull << ((level - 1) * TERRACE_DIR_SHIFT);
	struct tr_entry child;
	u32 sum = 0;

	for (u32 i = 0; i < TERRACE_DIR_ENTRIES; i++) {
		tr_entry_decode(&child, &dir->entry[i]);
		if (child.block && child.seq > __le64_to_cpu(dir->head.seq))
			problem(trees->findings, where("%s: child %u of the directory at meta block %llu",
						       trees->meta->dev->path, i, self),
				"knows records up to %llu, the directory only those up to %llu",
				child.seq, (u64)__le64_to_cpu(dir->head.seq));
		if (child.block)
			sum += walk(trees, tree, tier, level - 1, index + i * span, leaves, &child);
	}
	return sum;
}

static u32 walk_directory(struct trees *trees, const struct tr_page_id *id, u32 tier, u64 leaves,
			  const struct tr_entry *entry)
{
	void *dir = trees_read_page(trees, id, entry);
	bool broken = trees->broken;
	u32 sum;

	if (!dir && trees->lost)
		trees->lost(trees, id->tree, tier, id->level, id->index, entry);
	if (!dir)
		return entry->count;
	trees->directories++;
	if (trees->directory)
		trees->directory(trees, id->tree, tier, id->level, id->index, entry);
	trees->broken = false;
	sum = walk_children(trees, id->tree, tier, id->level, id->index, leaves, dir,
			    entry->block);
	if (sum != entry->count && !trees->broken)
		problem(trees->findings, page_where(trees->meta, id, entry->block),
			"counts %u blocks below it, there are %u", entry->count, sum);
	trees->broken |= broken;
	free(dir);
	return entry->count;
}

static u32 walk_leaf(struct trees *trees, const struct tr_page_id *id, u32 tier, u64 leaves,
		     const struct tr_entry *entry)
{
	u32 count = entry->count;

	if (id->index >= leaves) {
		problem(trees->findings, page_where(trees->meta, id, entry->block),
			"is beyond the end: there are %llu", leaves);
		return count;
	}
	if (id->tree == TERRACE_TREE_MAP)
		trees->map_pages++;
	else
		trees->space_pages++;
	if (trees->leaf)
		count = trees->leaf(trees, id->tree, tier, id->index, entry);
	if (count != entry->count)
		problem(trees->findings, page_where(trees->meta, id, entry->block),
			"its entry counts %u blocks, the page has %u", entry->count, count);
	return entry->count;
}

static u32 walk(struct trees *trees, u32 tree, u32 tier, u32 level, u64 index, u64 leaves,
		const struct tr_entry *entry)
{
	struct tr_page_id id;

	fill_id(&id, tree, tier, level, index);
	if (!claim(trees, &id, entry)) {
		if (trees->lost)
			trees->lost(trees, tree, tier, level, index, entry);
		return entry->count;
	}
	if (level)
		return walk_directory(trees, &id, tier, leaves, entry);
	return walk_leaf(trees, &id, tier, leaves, entry);
}

void trees_walk_map(struct trees *trees)
{
	const struct tr_super *super = trees->super;

	if (super->map_root.block)
		walk(trees, TERRACE_TREE_MAP, 0, super->map_depth, 0, trees->regions,
		     &super->map_root);
}

void trees_walk_space(struct trees *trees, u32 tier)
{
	const struct tr_super_tier *t = &trees->super->tier[tier];
	u64 chunks = tr_chunks(t->data_blocks);

	if (t->space_root.block)
		walk(trees, TERRACE_TREE_SPACE, tier, tr_dir_depth(chunks), 0, chunks,
		     &t->space_root);
}
