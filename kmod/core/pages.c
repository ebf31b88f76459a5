// SPDX-License-Identifier: GPL-2.0
/*
 * Pages: the common header, directories, space pages and the meta bitmap (map
 * pages: map_page.c). A page is believed only if it is what its parent says it is: same
 * length, CRC and sequence, same number, tree and volume. So neither a lost
 * write (the older page is still there) nor a misdirected one (another page
 * is there) is taken for the real thing.
 */
#include <linux/errno.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <asm/byteorder.h>
#include "format.h"

#define PAGE_CRC_AT	offsetof(struct terrace_page_disk, crc)

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
