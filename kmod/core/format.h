/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Labels, superblocks and pages: from bytes to structs and back.
 *
 * Decoders take untrusted bytes. They return 0, or
 *   -ENODATA   the magic is not there: nothing of ours
 *   -EBADMSG   the CRC does not match: damaged
 *   -EPROTONOSUPPORT  a newer version or an unknown incompat feature
 *   -EUCLEAN   well-formed but impossible (a number out of its range)
 * and never read outside their buffer, whatever the bytes say. Encoders fill
 * the whole buffer, CRC included. Buffers are aligned to 8 bytes.
 */
#ifndef TERRACE_CORE_FORMAT_H
#define TERRACE_CORE_FORMAT_H

#include "pack_list.h"

/* CRC32C, seed ~0, of @bytes with the four bytes at @crc_at read as zero. */
u32 tr_block_crc(const void *buf, u32 bytes, u32 crc_at);

#define TR_STALE_NOTES	3

struct tr_label {
	u32 version;
	u8 volume_uuid[TERRACE_UUID_BYTES];
	u8 tier_uuid[TERRACE_UUID_BYTES];
	u64 generation;
	u32 tier_index;		/* TERRACE_META_DEVICE for a metadata device */
	u32 class;
	u32 kind;
	u32 flags;
	u32 atomic_bytes;
	u32 align_blocks;
	u64 device_blocks;
	u64 data_start;
	u64 data_blocks;
	u64 meta_start;
	u64 meta_blocks;
	char name[TERRACE_NAME_BYTES];
	/* Of the primary metadata, its synchronous and its lazy mirror, generations up
	 * to this are not to be believed: the volume went on without them.
	 */
	u64 stale_until[TR_STALE_NOTES];
};

void tr_label_encode(void *block, const struct tr_label *label);
int tr_label_decode(struct tr_label *label, const void *block);

/* A parent's entry. block 0 means "no child". */
struct tr_entry {
	u64 block;
	u32 blocks;
	u8 age;
	u32 crc;
	u32 count;
	u64 seq;
};

void tr_entry_encode(struct terrace_entry_disk *to, const struct tr_entry *from);
void tr_entry_decode(struct tr_entry *to, const struct terrace_entry_disk *from);

struct tr_super_tier {
	u8 uuid[TERRACE_UUID_BYTES];
	u32 class;
	u32 kind;
	u64 data_blocks;
	u64 reserve_blocks;
	struct tr_entry space_root;
};

struct tr_super {
	u8 volume_uuid[TERRACE_UUID_BYTES];
	u64 generation;
	u64 compat, compat_ro, incompat;
	u32 flags;
	u32 nr_tiers;
	u32 region_shift, chunk_shift;
	u64 virtual_blocks;
	u64 meta_blocks;
	u64 journal_start, journal_blocks;
	u64 bitmap_start[2], bitmap_blocks;
	u64 tail_block_seq, tail_nonce;
	u32 tail_prev_crc;
	u32 map_depth;
	u64 tail_record_seq;
	u64 next_id;
	u64 activations;
	u64 overcommit_blocks;
	struct tr_entry map_root;
	struct tr_super_tier tier[TERRACE_MAX_TIERS];
};

void tr_super_encode(void *block, const struct tr_super *super);

/*
 * Checks every number against the others: ranges inside the metadata area
 * and not overlapping, known kinds and classes, depth that fits the size.
 * Unknown compat_ro bits are no error here: the caller then opens read-only.
 * Whether the copy's parity fits its generation only the caller can tell.
 */
int tr_super_decode(struct tr_super *super, const void *block);

/* Of two decoded copies (either may be NULL) the one to use: the newer. */
const struct tr_super *tr_super_newest(const struct tr_super *a, const struct tr_super *b);

/* First meta block of the pages area. */
u64 tr_first_page(const struct tr_super *super);

/* No child, or a page of possible length in the part that pages may use. */
bool tr_entry_ok(const struct tr_super *super, const struct tr_entry *entry);

/*
 * Trees. The entry in the superblock names the root: with depth 0 the only
 * leaf, else a directory of level = depth; level 1 stands above the leaves.
 * All numbers are those of leaves, a directory's the first it can reach.
 */
#define TR_MAX_DEPTH	8

/* Directory levels needed so that one root entry reaches @leaves leaves. */
u32 tr_dir_depth(u64 leaves);
/* Index (page header) of the directory of @level on the way to @leaf. */
u64 tr_dir_index(u64 leaf, u32 level);
/* Which of its entries leads on to @leaf. */
u32 tr_dir_slot(u64 leaf, u32 level);

/* What a page must be; compared in full when it is decoded. */
struct tr_page_id {
	u32 magic;
	u64 index;
	u8 level;
	u8 tier;
	u8 tree;
};

/* Zeroes @blocks blocks of @page and fills the header; the body follows, then
 * tr_page_seal() puts the CRC in and returns it.
 */
void tr_page_start(void *page, const struct tr_page_id *id, u32 blocks, u64 seq,
		   u64 generation, const u8 *volume_uuid);
u32 tr_page_seal(void *page);

/*
 * Is @page the one that @entry and @id name? Compares length, CRC (its own
 * and the entry's), sequence, identity and volume. -ESTALE: a good page, but
 * an older or other one than the entry says. @entry NULL: any that @id names
 * (salvage, which has lost the parent).
 */
int tr_page_check(const void *page, u32 bytes, const struct tr_page_id *id,
		  const struct tr_entry *entry, const u8 *volume_uuid);

/* Length of the map page for @leaf and @packs (NULL: none) in blocks (1 .. 2). */
u32 tr_map_page_blocks(const struct tr_leaf *leaf, const struct tr_packs *packs);
/* Body of a map page (after tr_page_start). No value may be TR_NO_PLACE. */
void tr_map_encode(void *page, const struct tr_leaf *leaf, const struct tr_packs *packs, u8 age);
/*
 * Reads the body back. First call tr_map_room() for the room needed (places,
 * whether high bytes are, packs), give @leaf and @packs that room, then
 * decode. Places are checked against the tiers' sizes @data_blocks[@nr_tiers],
 * packs against each other. -ENOSPC: too little room given (@packs may be NULL
 * where there are none); -EPROTONOSUPPORT: a section that this version does
 * not know. After an error @leaf and @packs are not to be used.
 */
int tr_map_room(const void *page, u32 bytes, u32 *nr, bool *high, u32 *packs);
int tr_map_decode(const void *page, u32 bytes, struct tr_leaf *leaf, struct tr_packs *packs,
		  u8 *age, const u64 *data_blocks, u32 nr_tiers);

/*
 * Blocks that a range discard took while their place, or what is live of them
 * in a pack, is not yet freed: section GONE. It is added behind the body, to a
 * page of tr_map_gone_blocks(), and read back from one that was decoded. @gone:
 * TR_LEAF_WORDS words, zero when the page has no such section.
 */
u32 tr_map_gone_blocks(const struct tr_leaf *leaf, const struct tr_packs *packs);
void tr_map_add_gone(void *page, const u64 *gone);
void tr_map_gone(const void *page, u32 bytes, u64 *gone);

/* Space pages: a chunk's bitmap, 256 words. Decode checks the population. */
void tr_space_encode(void *page, const u64 *bitmap);
int tr_space_decode(const void *page, u64 *bitmap, u32 *used);

/* Meta bitmap blocks stand at fixed places: no entry, checked by generation
 * (must be <= @generation) and index.
 */
void tr_mbit_encode(void *block, const u64 *bitmap, u64 index, u64 generation, const u8 *uuid);
int tr_mbit_decode(const void *block, u64 *bitmap, u64 index, u64 generation, const u8 *uuid);

/* Owner blocks and owner tables of shelves. Shelves are chunks: they start at
 * multiples of TERRACE_CHUNK_BLOCKS, and so do offsets in them.
 */
struct tr_owner {
	u64 block;
	u32 offset;
	u32 crc;
};

struct tr_owners {
	u64 place;
	u64 record_seq;
	u64 shelf_id;
	u32 prev_offset;
	u16 nr;
};

void tr_owners_encode(void *block, const struct tr_owners *head, const struct tr_owner *owner,
		      const u8 *uuid);
/* Decodes the head; the owners one by one with tr_owners_get(). @place is
 * where the block was read from: a copy of an owner block found elsewhere
 * (inside user data, say) is refused with -ESTALE.
 */
int tr_owners_decode(const void *block, struct tr_owners *head, u64 place, const u8 *uuid);
void tr_owners_get(const void *block, u32 i, struct tr_owner *owner);

struct tr_table {
	u64 place;
	u64 record_seq;
	u64 shelf_id;
	u32 first_offset;
	u16 nr;
};

void tr_table_encode(void *block, const struct tr_table *head, const u64 *owner, const u8 *uuid);
int tr_table_decode(const void *block, struct tr_table *head, u64 *owner, u64 place,
		    const u8 *uuid);

#endif
