// SPDX-License-Identifier: GPL-2.0
/*
 * Pages: the common header, directories, map pages, space pages and the meta
 * bitmap. A page is believed only if it is what its parent says it is: same
 * length, CRC and sequence, same number, tree and volume. So neither a lost
 * write (the older page is still there) nor a misdirected one (another page
 * is there) is taken for the real thing.
 */
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <asm/byteorder.h>
#include "format.h"

#define PAGE_CRC_AT	offsetof(struct terrace_page_disk, crc)
#define BITMAP_BYTES	(TERRACE_REGION_BLOCKS / 8)
#define PLACE_BYTES	5

/* --- directories ----------------------------------------------------------- */

u32 tr_dir_depth(u64 leaves)
{
	u32 depth = 0;

	for (; leaves > 1; depth++)
		leaves = (leaves + TERRACE_DIR_ENTRIES - 1) >> TERRACE_DIR_SHIFT;
	return depth;
}

u64 tr_dir_index(u64 leaf, u32 level)
{
	return leaf >> (level * TERRACE_DIR_SHIFT) << (level * TERRACE_DIR_SHIFT);
}

u32 tr_dir_slot(u64 leaf, u32 level)
{
	return leaf >> ((level - 1) * TERRACE_DIR_SHIFT) & (TERRACE_DIR_ENTRIES - 1);
}

/* --- the header ------------------------------------------------------------ */

void tr_page_start(void *page, const struct tr_page_id *id, u32 blocks, u64 seq,
		   u64 generation, const u8 *volume_uuid)
{
	struct terrace_page_disk *head = page;

	memset(page, 0, blocks * TERRACE_BLOCK_BYTES);
	head->magic = cpu_to_le32(id->magic);
	head->index = cpu_to_le64(id->index);
	head->seq = cpu_to_le64(seq);
	head->generation = cpu_to_le64(generation);
	head->blocks = cpu_to_le16(blocks);
	head->level = id->level;
	head->tier = id->tier;
	head->tree = id->tree;
	memcpy(head->volume_uuid, volume_uuid, TERRACE_UUID_BYTES);
}

static u32 page_bytes(const void *page)
{
	const struct terrace_page_disk *head = page;

	return le16_to_cpu(head->blocks) * TERRACE_BLOCK_BYTES;
}

u32 tr_page_seal(void *page)
{
	struct terrace_page_disk *head = page;
	u32 crc = tr_block_crc(page, page_bytes(page), PAGE_CRC_AT);

	head->crc = cpu_to_le32(crc);
	return crc;
}

static bool known_magic(u32 magic)
{
	return magic == TERRACE_DIR_MAGIC || magic == TERRACE_SPACE_MAGIC ||
	       magic == TERRACE_MAP_MAGIC || magic == TERRACE_MBIT_MAGIC;
}

/* Some page of ours, whole; which one is not the question yet. */
static int page_whole(const void *page, u32 bytes)
{
	const struct terrace_page_disk *head = page;
	u32 length;

	if (bytes < TERRACE_BLOCK_BYTES || !known_magic(le32_to_cpu(head->magic)))
		return -ENODATA;
	length = page_bytes(page);
	if (!length || length > bytes ||
	    le32_to_cpu(head->crc) != tr_block_crc(page, length, PAGE_CRC_AT))
		return -EBADMSG;
	return 0;
}

static bool page_is(const struct terrace_page_disk *head, const struct tr_page_id *id,
		    const u8 *volume_uuid)
{
	return le32_to_cpu(head->magic) == id->magic && le64_to_cpu(head->index) == id->index &&
	       head->level == id->level && head->tier == id->tier && head->tree == id->tree &&
	       !memcmp(head->volume_uuid, volume_uuid, TERRACE_UUID_BYTES);
}

int tr_page_check(const void *page, u32 bytes, const struct tr_page_id *id,
		  const struct tr_entry *entry, const u8 *volume_uuid)
{
	const struct terrace_page_disk *head = page;
	int err = page_whole(page, bytes);

	if (err)
		return err;
	if (!page_is(head, id, volume_uuid))
		return -ESTALE;
	if (!entry)
		return 0;
	if (le16_to_cpu(head->blocks) != entry->blocks || le64_to_cpu(head->seq) != entry->seq ||
	    le32_to_cpu(head->crc) != entry->crc)
		return -ESTALE;
	return 0;
}

/* --- map pages ------------------------------------------------------------- */

static u32 places_bytes(u32 nr)
{
	return BITMAP_BYTES + nr * PLACE_BYTES;
}

static u32 padded(u32 bytes)
{
	return (bytes + 7) & ~7u;
}

u32 tr_map_page_blocks(const struct tr_leaf *leaf)
{
	u32 bytes = sizeof(struct terrace_map_disk) + sizeof(struct terrace_section_disk) +
		    padded(places_bytes(leaf->nr));

	return (bytes + TERRACE_BLOCK_BYTES - 1) / TERRACE_BLOCK_BYTES;
}

static void put_place(u8 *at, u64 place)
{
	u32 k;

	for (k = 0; k < PLACE_BYTES; k++)
		at[k] = place >> (8 * k);
}

static u64 get_place(const u8 *at)
{
	return (u64)at[4] << 32 | (u32)at[3] << 24 | (u32)at[2] << 16 | (u32)at[1] << 8 | at[0];
}

void tr_map_encode(void *page, const struct tr_leaf *leaf, u8 age)
{
	struct terrace_map_disk *map = page;
	struct terrace_section_disk *section = (void *)map->payload;
	__le64 *present = (void *)(section + 1);
	u8 *places = (u8 *)present + BITMAP_BYTES;
	u32 w, rank;

	map->bytes = cpu_to_le32(sizeof(*section) + padded(places_bytes(leaf->nr)));
	map->sections = cpu_to_le16(1);
	map->age = age;
	section->type = cpu_to_le16(TERRACE_SECTION_PLACES);
	section->aux = cpu_to_le16(leaf->nr);
	section->bytes = cpu_to_le32(places_bytes(leaf->nr));
	for (w = 0; w < TR_LEAF_WORDS; w++)
		present[w] = cpu_to_le64(leaf->present[w]);
	for (rank = 0; rank < leaf->nr; rank++)
		put_place(places + rank * PLACE_BYTES, tr_leaf_at(leaf, rank));
}

/* The PLACES section of a map page. */
struct places {
	const __le64 *present;	/* NULL: there is none */
	const u8 *place;
	u32 nr;
};

static int read_places(const struct terrace_section_disk *section, u32 bytes,
		       struct places *places)
{
	u32 w, nr = 0;

	if (places->present || bytes < BITMAP_BYTES)
		return -EUCLEAN;
	places->present = (const void *)(section + 1);
	places->place = (const u8 *)places->present + BITMAP_BYTES;
	for (w = 0; w < TR_LEAF_WORDS; w++)
		nr += hweight64(le64_to_cpu(places->present[w]));
	places->nr = nr;
	return nr == le16_to_cpu(section->aux) && bytes == places_bytes(nr) ? 0 : -EUCLEAN;
}

/* Walks the sections; every offset is checked before it is used. */
static int find_places(const void *page, u32 bytes, struct places *places)
{
	const struct terrace_map_disk *map = page;
	const struct terrace_section_disk *section;
	u32 left, at = 0, i, length;
	int err;

	places->present = NULL;
	places->nr = 0;
	if (bytes < sizeof(*map) || le32_to_cpu(map->bytes) > bytes - sizeof(*map))
		return -EUCLEAN;
	left = le32_to_cpu(map->bytes);
	for (i = 0; i < le16_to_cpu(map->sections); i++) {
		if (left < sizeof(*section))
			return -EUCLEAN;
		section = (const void *)(map->payload + at);
		length = le32_to_cpu(section->bytes);
		left -= sizeof(*section);
		if (length > left || padded(length) > left)
			return -EUCLEAN;
		if (le16_to_cpu(section->type) != TERRACE_SECTION_PLACES)
			return -EPROTONOSUPPORT;
		err = read_places(section, length, places);
		if (err)
			return err;
		at += sizeof(*section) + padded(length);
		left -= padded(length);
	}
	return left ? -EUCLEAN : 0;
}

int tr_map_places(const void *page, u32 bytes, u32 *nr, bool *high)
{
	struct places places;
	int err = find_places(page, bytes, &places);
	u32 rank;

	if (err)
		return err;
	*nr = places.nr;
	*high = false;
	for (rank = 0; rank < places.nr && !*high; rank++)
		*high = tr_place_is_high(get_place(places.place + rank * PLACE_BYTES));
	return 0;
}

static bool place_ok(u64 place, const u64 *data_blocks, u32 nr_tiers)
{
	return tr_place_tier(place) < nr_tiers &&
	       tr_place_index(place) < data_blocks[tr_place_tier(place)];
}

int tr_map_decode(const void *page, u32 bytes, struct tr_leaf *leaf, u8 *age,
		  const u64 *data_blocks, u32 nr_tiers)
{
	struct places places;
	int err = find_places(page, bytes, &places);
	u32 w, rank, sum = 0;
	u64 place;

	if (err)
		return err;
	if (places.nr > leaf->cap)
		return -ENOSPC;
	leaf->nr = 0;
	for (rank = 0; rank < places.nr; rank++) {
		place = get_place(places.place + rank * PLACE_BYTES);
		if (!place_ok(place, data_blocks, nr_tiers))
			return -EUCLEAN;
		if (!leaf->high && tr_place_is_high(place))
			return -ENOSPC;
		leaf->low[rank] = place;
		if (leaf->high)
			leaf->high[rank] = place >> 32;
	}
	for (w = 0; w < TR_LEAF_WORDS; w++) {
		leaf->present[w] = places.present ? le64_to_cpu(places.present[w]) : 0;
		leaf->rank[w] = sum;
		sum += hweight64(leaf->present[w]);
	}
	leaf->nr = sum;
	*age = ((const struct terrace_map_disk *)page)->age;
	return 0;
}

/* --- space pages ----------------------------------------------------------- */

void tr_space_encode(void *page, const u64 *bitmap)
{
	struct terrace_space_disk *space = page;
	u32 w, used = 0;

	for (w = 0; w < TERRACE_CHUNK_BLOCKS / 64; w++) {
		space->bitmap[w] = cpu_to_le64(bitmap[w]);
		used += hweight64(bitmap[w]);
	}
	space->used = cpu_to_le32(used);
}

int tr_space_decode(const void *page, u64 *bitmap, u32 *used)
{
	const struct terrace_space_disk *space = page;
	u32 w, sum = 0;

	for (w = 0; w < TERRACE_CHUNK_BLOCKS / 64; w++) {
		bitmap[w] = le64_to_cpu(space->bitmap[w]);
		sum += hweight64(bitmap[w]);
	}
	*used = sum;
	return sum == le32_to_cpu(space->used) ? 0 : -EUCLEAN;
}

/* --- meta bitmap ----------------------------------------------------------- */

void tr_mbit_encode(void *block, const u64 *bitmap, u64 index, u64 generation, const u8 *uuid)
{
	const struct tr_page_id id = { .magic = TERRACE_MBIT_MAGIC, .index = index };
	struct terrace_mbit_disk *mbit = block;
	u32 w;

	tr_page_start(block, &id, 1, 0, generation, uuid);
	for (w = 0; w < TERRACE_MBIT_WORDS; w++)
		mbit->bitmap[w] = cpu_to_le64(bitmap[w]);
	tr_page_seal(block);
}

int tr_mbit_decode(const void *block, u64 *bitmap, u64 index, u64 generation, const u8 *uuid)
{
	const struct tr_page_id id = { .magic = TERRACE_MBIT_MAGIC, .index = index };
	const struct terrace_mbit_disk *mbit = block;
	int err = tr_page_check(block, TERRACE_BLOCK_BYTES, &id, NULL, uuid);
	u32 w;

	if (err)
		return err;
	if (le64_to_cpu(mbit->head.generation) > generation)
		return -ESTALE;
	for (w = 0; w < TERRACE_MBIT_WORDS; w++)
		bitmap[w] = le64_to_cpu(mbit->bitmap[w]);
	return 0;
}
