// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which fields each structure has. See shape_table.h.
 */
#include <stddef.h>

#include "shape_table.h"

#define F(type, member) \
	{ #member, offsetof(struct type, member), sizeof(((struct type *)0)->member), NUMBER }
#define U(type, member) { #member, offsetof(struct type, member), TERRACE_UUID_BYTES, UUID }
#define H(member) F(terrace_page_disk, member)
#define END { NULL, 0, 0, NUMBER }

static const struct field label_fields[] = {
	F(terrace_label_disk, version), U(terrace_label_disk, volume_uuid),
	U(terrace_label_disk, tier_uuid), F(terrace_label_disk, generation),
	F(terrace_label_disk, tier_index), F(terrace_label_disk, class),
	F(terrace_label_disk, kind), F(terrace_label_disk, flags),
	F(terrace_label_disk, atomic_bytes), F(terrace_label_disk, align_blocks),
	F(terrace_label_disk, device_blocks), F(terrace_label_disk, data_start),
	F(terrace_label_disk, data_blocks), F(terrace_label_disk, meta_start),
	F(terrace_label_disk, meta_blocks),
	{ "name", offsetof(struct terrace_label_disk, name), TERRACE_NAME_BYTES, TEXT },
	{ "stale_until0", 184, 8, NUMBER }, { "stale_until1", 192, 8, NUMBER }, END,
};

#define E(type, name, member) \
	{ name "_addr", offsetof(struct type, member), 8, NUMBER }, \
	{ name "_crc", offsetof(struct type, member) + 8, 4, NUMBER }, \
	{ name "_count", offsetof(struct type, member) + 12, 4, NUMBER }, \
	{ name "_seq", offsetof(struct type, member) + 16, 8, NUMBER }

static const struct field super_fields[] = {
	F(terrace_super_disk, version), U(terrace_super_disk, volume_uuid),
	F(terrace_super_disk, generation), F(terrace_super_disk, compat),
	F(terrace_super_disk, compat_ro), F(terrace_super_disk, incompat),
	F(terrace_super_disk, flags), F(terrace_super_disk, nr_tiers),
	F(terrace_super_disk, region_shift), F(terrace_super_disk, chunk_shift),
	F(terrace_super_disk, virtual_blocks), F(terrace_super_disk, meta_blocks),
	F(terrace_super_disk, journal_start), F(terrace_super_disk, journal_blocks),
	{ "bitmap0_start", 112, 8, NUMBER }, { "bitmap1_start", 120, 8, NUMBER },
	F(terrace_super_disk, bitmap_blocks), F(terrace_super_disk, tail_block_seq),
	F(terrace_super_disk, tail_nonce), F(terrace_super_disk, tail_prev_crc),
	F(terrace_super_disk, map_depth), F(terrace_super_disk, tail_record_seq),
	F(terrace_super_disk, next_id), F(terrace_super_disk, activations),
	E(terrace_super_disk, "map_root", map_root), F(terrace_super_disk, overcommit_blocks), END,
};

static const struct field super_tier_fields[] = {
	U(terrace_super_tier_disk, tier_uuid), F(terrace_super_tier_disk, class),
	F(terrace_super_tier_disk, kind), F(terrace_super_tier_disk, data_blocks),
	F(terrace_super_tier_disk, reserve_blocks),
	E(terrace_super_tier_disk, "space_root", space_root), END,
};

static const struct field journal_fields[] = {
	F(terrace_journal_disk, block_seq), F(terrace_journal_disk, first_record_seq),
	F(terrace_journal_disk, nonce), F(terrace_journal_disk, prev_nonce),
	F(terrace_journal_disk, prev_crc), F(terrace_journal_disk, nr_records),
	F(terrace_journal_disk, flags), U(terrace_journal_disk, volume_uuid), END,
};

static const struct field record_fields[] = {
	F(terrace_record_disk, type), F(terrace_record_disk, flags), F(terrace_record_disk, nr),
	F(terrace_record_disk, aux), F(terrace_record_disk, block), F(terrace_record_disk, new),
	F(terrace_record_disk, old), END,
};

static const struct field page_fields[] = {
	H(index), H(seq), H(generation), H(blocks), H(level), H(tier), H(tree),
	U(terrace_page_disk, volume_uuid), END,
};

static const struct field space_fields[] = {
	H(index), H(seq), H(generation), H(blocks), H(level), H(tier), H(tree),
	U(terrace_page_disk, volume_uuid), F(terrace_space_disk, used), END,
};

static const struct field map_fields[] = {
	H(index), H(seq), H(generation), H(blocks), H(level), H(tier), H(tree),
	U(terrace_page_disk, volume_uuid), F(terrace_map_disk, bytes),
	F(terrace_map_disk, sections), F(terrace_map_disk, age),
	{ "section_type", 72, 2, NUMBER }, { "section_items", 74, 2, NUMBER },
	{ "section_bytes", 76, 4, NUMBER }, END,
};

static const struct field entry_fields[] = {
	{ "addr", 0, 8, NUMBER }, { "crc", 8, 4, NUMBER }, { "count", 12, 4, NUMBER },
	{ "seq", 16, 8, NUMBER }, END,
};

#define PAGE_CRC offsetof(struct terrace_page_disk, crc)
#define PAGE_UUID offsetof(struct terrace_page_disk, volume_uuid)

const struct shape shapes[NR_SHAPES] = {
	{ "label", TERRACE_LABEL_MAGIC, 8, 12, 16, label_fields, .list = { 0 } },
	{ "superblock", TERRACE_SUPER_MAGIC, 8, 12, 16, super_fields,
	  { "tiers", offsetof(struct terrace_super_disk, tiers), 128, TERRACE_MAX_TIERS,
	    super_tier_fields }, .bits = { 0 } },
	{ "journal", "TJNL", 4, 4, 48, journal_fields,
	  { "record", 64, 32, TERRACE_RECORDS_PER_BLOCK, record_fields }, .bits = { 0 } },
	{ "directory", "TDIR", 4, PAGE_CRC, PAGE_UUID, page_fields,
	  { "entry", 64, 24, TERRACE_DIR_ENTRIES, entry_fields }, .bits = { 0 } },
	{ "space-page", "TSPC", 4, PAGE_CRC, PAGE_UUID, space_fields, .bits = {
	  "places", offsetof(struct terrace_space_disk, bitmap), TERRACE_CHUNK_BLOCKS } },
	{ "meta-bitmap", "TBIT", 4, PAGE_CRC, PAGE_UUID, page_fields, .bits = {
	  "blocks_used", offsetof(struct terrace_mbit_disk, bitmap), TERRACE_MBIT_BITS } },
	{ "map-page", "TMAP", 4, PAGE_CRC, PAGE_UUID, map_fields, .places = true },
};

bool shape_is_page(const struct shape *shape)
{
	return shape->uuid_at == PAGE_UUID && shape->field != journal_fields;
}
