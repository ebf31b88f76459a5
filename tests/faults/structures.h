/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The structures of a metadata area that is in memory, and how to make their checksums right
 * again after a change: of the structure, of its parents up to the superblock, and of the journal
 * behind it. For programs that damage volumes on purpose; one volume in a program.
 */
#ifndef TESTS_STRUCTURES_H
#define TESTS_STRUCTURES_H

#include <stdbool.h>
#include <string.h>
#include <linux/kernel.h>
#include <asm/byteorder.h>

#include "core/format.h"
#include "core/journal_block.h"

#define MAX_NODES	65536u

/* A page of the trees. The parent of a root is a superblock's entry. */
struct node {
	u64 block;
	u32 blocks, level;
	struct node *parent;
	struct terrace_entry_disk *entry;
};

static u8 *meta;		/* the area */
static struct tr_label label;	/* … and what it is like, before any damage */
static struct tr_super super;
static struct node node[MAX_NODES];
static u32 nr_nodes;

static inline void *at(u64 block) { return meta + block * TERRACE_BLOCK_BYTES; }

static inline struct terrace_super_disk *super_disk(void) { return at(super.generation & 1); }

static inline void take(struct terrace_entry_disk *disk, u32 level, struct node *parent)
{
	struct terrace_dir_disk *dir;
	struct node *n = &node[nr_nodes];
	struct tr_entry entry;

	tr_entry_decode(&entry, disk);
	if (!entry.block || entry.block + entry.blocks > label.meta_blocks || nr_nodes == MAX_NODES)
		return;
	nr_nodes++;
	*n = (struct node){ .block = entry.block, .blocks = entry.blocks, .level = level, .parent = parent, .entry = disk };
	dir = at(entry.block);
	for (u32 k = 0; level && k < TERRACE_DIR_ENTRIES; k++)
		take(&dir->entry[k], level - 1, n);
}

/* Finds the newest superblock and all pages; label and meta are set. false: there is no superblock. */
static inline bool find_structures(void)
{
	struct tr_super copy[2];
	bool good[2];

	for (u32 k = 0; k < 2; k++)
		good[k] = !tr_super_decode(&copy[k], at(k));
	if (!good[0] && !good[1])
		return false;
	super = *tr_super_newest(good[0] ? &copy[0] : NULL, good[1] ? &copy[1] : NULL);
	take(&super_disk()->map_root, super.map_depth, NULL);
	for (u32 t = 0; t < super.nr_tiers; t++)
		take(&super_disk()->tiers[t].space_root,
		     tr_dir_depth((super.tier[t].data_blocks + TERRACE_CHUNK_BLOCKS - 1) / TERRACE_CHUNK_BLOCKS), NULL);
	return true;
}

static inline struct terrace_journal_disk *ring(u64 seq) { return at(super.journal_start + seq % super.journal_blocks); }

static inline u64 journal_length(void)
{
	u64 nr = 0;

	while (nr < super.journal_blocks && __le64_to_cpu(ring(super.tail_block_seq + nr)->block_seq) == super.tail_block_seq + nr)
		nr++;
	return nr;
}

/* ---- right again ----------------------------------------------------------------- */

/* Of @bytes, and the checksum is at @crc_at. */
static inline u32 reseal(void *block, u32 bytes, u32 crc_at)
{
	u32 crc = tr_block_crc(block, bytes, crc_at);
	__le32 disk = __cpu_to_le32(crc);

	memcpy((u8 *)block + crc_at, &disk, sizeof(disk));
	return crc;
}

static inline void seal_super(void)
{
	reseal(super_disk(), TERRACE_BLOCK_BYTES, offsetof(struct terrace_super_disk, crc));
}

/* As long as its parent says: its own word for that may be the damage. */
static inline void seal_node(struct node *n)
{
	for (; n; n = n->parent)
		n->entry->crc = __cpu_to_le32(reseal(at(n->block), n->blocks * TERRACE_BLOCK_BYTES,
						   offsetof(struct terrace_page_disk, crc)));
	seal_super();
}

/* It, and those behind it, whose checksums begin with that of the one before. */
static inline void seal_journal(u64 seq)
{
	for (u32 crc; ; seq++) {
		crc = reseal(ring(seq), TERRACE_BLOCK_BYTES, offsetof(struct terrace_journal_disk, crc));
		if (__le64_to_cpu(ring(seq + 1)->block_seq) != seq + 1)
			return;
		ring(seq + 1)->prev_crc = __cpu_to_le32(crc);
	}
}

#endif
