// SPDX-License-Identifier: GPL-2.0
/*
 * The layout of every structure on disk, held against the offsets that stand
 * in the comments of uapi/terrace_format.h. Nothing runs; it compiles or not.
 * tests/unit/selfcheck.c holds the comments themselves against this.
 */
#include <linux/build_bug.h>
#include <linux/stddef.h>
#include <linux/types.h>
#include <terrace_format.h>

#define AT(type, field, offset) static_assert(offsetof(struct type, field) == (offset))
#define SIZE(type, bytes) static_assert(sizeof(struct type) == (bytes))

AT(terrace_label_disk, magic, 0);
AT(terrace_label_disk, version, 8);
AT(terrace_label_disk, crc, 12);
AT(terrace_label_disk, volume_uuid, 16);
AT(terrace_label_disk, tier_uuid, 32);
AT(terrace_label_disk, generation, 48);
AT(terrace_label_disk, tier_index, 56);
AT(terrace_label_disk, class, 60);
AT(terrace_label_disk, kind, 64);
AT(terrace_label_disk, flags, 68);
AT(terrace_label_disk, atomic_bytes, 72);
AT(terrace_label_disk, align_blocks, 76);
AT(terrace_label_disk, device_blocks, 80);
AT(terrace_label_disk, data_start, 88);
AT(terrace_label_disk, data_blocks, 96);
AT(terrace_label_disk, meta_start, 104);
AT(terrace_label_disk, meta_blocks, 112);
AT(terrace_label_disk, name, 120);
AT(terrace_label_disk, stale_until, 184);
AT(terrace_label_disk, unused, 208);
SIZE(terrace_label_disk, 4096);

AT(terrace_entry_disk, addr, 0);
AT(terrace_entry_disk, crc, 8);
AT(terrace_entry_disk, count, 12);
AT(terrace_entry_disk, seq, 16);
SIZE(terrace_entry_disk, 24);

AT(terrace_super_tier_disk, tier_uuid, 0);
AT(terrace_super_tier_disk, class, 16);
AT(terrace_super_tier_disk, kind, 20);
AT(terrace_super_tier_disk, data_blocks, 24);
AT(terrace_super_tier_disk, reserve_blocks, 32);
AT(terrace_super_tier_disk, space_root, 40);
AT(terrace_super_tier_disk, unused, 64);
SIZE(terrace_super_tier_disk, 128);

AT(terrace_super_disk, magic, 0);
AT(terrace_super_disk, version, 8);
AT(terrace_super_disk, crc, 12);
AT(terrace_super_disk, volume_uuid, 16);
AT(terrace_super_disk, generation, 32);
AT(terrace_super_disk, compat, 40);
AT(terrace_super_disk, compat_ro, 48);
AT(terrace_super_disk, incompat, 56);
AT(terrace_super_disk, flags, 64);
AT(terrace_super_disk, nr_tiers, 68);
AT(terrace_super_disk, region_shift, 72);
AT(terrace_super_disk, chunk_shift, 76);
AT(terrace_super_disk, virtual_blocks, 80);
AT(terrace_super_disk, meta_blocks, 88);
AT(terrace_super_disk, journal_start, 96);
AT(terrace_super_disk, journal_blocks, 104);
AT(terrace_super_disk, bitmap_start, 112);
AT(terrace_super_disk, bitmap_blocks, 128);
AT(terrace_super_disk, tail_block_seq, 136);
AT(terrace_super_disk, tail_nonce, 144);
AT(terrace_super_disk, tail_prev_crc, 152);
AT(terrace_super_disk, map_depth, 156);
AT(terrace_super_disk, tail_record_seq, 160);
AT(terrace_super_disk, next_id, 168);
AT(terrace_super_disk, activations, 176);
AT(terrace_super_disk, map_root, 184);
AT(terrace_super_disk, overcommit_blocks, 208);
AT(terrace_super_disk, unused0, 216);
AT(terrace_super_disk, tiers, 256);
AT(terrace_super_disk, unused1, 1280);
SIZE(terrace_super_disk, 4096);

AT(terrace_page_disk, magic, 0);
AT(terrace_page_disk, crc, 4);
AT(terrace_page_disk, index, 8);
AT(terrace_page_disk, seq, 16);
AT(terrace_page_disk, generation, 24);
AT(terrace_page_disk, blocks, 32);
AT(terrace_page_disk, level, 34);
AT(terrace_page_disk, tier, 35);
AT(terrace_page_disk, tree, 36);
AT(terrace_page_disk, unused, 37);
AT(terrace_page_disk, volume_uuid, 48);
SIZE(terrace_page_disk, 64);

AT(terrace_dir_disk, head, 0);
AT(terrace_dir_disk, entry, 64);
AT(terrace_dir_disk, unused, 3136);
SIZE(terrace_dir_disk, 4096);

AT(terrace_space_disk, head, 0);
AT(terrace_space_disk, used, 64);
AT(terrace_space_disk, unused0, 68);
AT(terrace_space_disk, bitmap, 128);
AT(terrace_space_disk, unused1, 2176);
SIZE(terrace_space_disk, 4096);

AT(terrace_section_disk, type, 0);
AT(terrace_section_disk, aux, 2);
AT(terrace_section_disk, bytes, 4);
SIZE(terrace_section_disk, 8);

AT(terrace_pack_ref_disk, id, 0);
AT(terrace_pack_ref_disk, place, 8);
AT(terrace_pack_ref_disk, index_place, 16);
AT(terrace_pack_ref_disk, blocks, 24);
AT(terrace_pack_ref_disk, index_blocks, 26);
AT(terrace_pack_ref_disk, header_crc, 28);
AT(terrace_pack_ref_disk, live, 32);
SIZE(terrace_pack_ref_disk, 160);

AT(terrace_map_disk, head, 0);
AT(terrace_map_disk, bytes, 64);
AT(terrace_map_disk, sections, 68);
AT(terrace_map_disk, age, 70);
AT(terrace_map_disk, unused, 71);
AT(terrace_map_disk, payload, 72);

AT(terrace_mbit_disk, head, 0);
AT(terrace_mbit_disk, bitmap, 64);
SIZE(terrace_mbit_disk, 4096);

AT(terrace_record_disk, type, 0);
AT(terrace_record_disk, flags, 1);
AT(terrace_record_disk, nr, 2);
AT(terrace_record_disk, aux, 4);
AT(terrace_record_disk, block, 8);
AT(terrace_record_disk, new, 16);
AT(terrace_record_disk, old, 24);
SIZE(terrace_record_disk, 32);

AT(terrace_journal_disk, magic, 0);
AT(terrace_journal_disk, crc, 4);
AT(terrace_journal_disk, block_seq, 8);
AT(terrace_journal_disk, first_record_seq, 16);
AT(terrace_journal_disk, nonce, 24);
AT(terrace_journal_disk, prev_nonce, 32);
AT(terrace_journal_disk, prev_crc, 40);
AT(terrace_journal_disk, nr_records, 44);
AT(terrace_journal_disk, flags, 46);
AT(terrace_journal_disk, lag, 47);
AT(terrace_journal_disk, volume_uuid, 48);
AT(terrace_journal_disk, record, 64);
SIZE(terrace_journal_disk, 4096);

AT(terrace_owner_disk, block, 0);
AT(terrace_owner_disk, offset, 8);
AT(terrace_owner_disk, crc, 12);
SIZE(terrace_owner_disk, 16);

AT(terrace_owners_disk, magic, 0);
AT(terrace_owners_disk, crc, 4);
AT(terrace_owners_disk, volume_uuid, 8);
AT(terrace_owners_disk, place, 24);
AT(terrace_owners_disk, record_seq, 32);
AT(terrace_owners_disk, shelf_id, 40);
AT(terrace_owners_disk, nr, 48);
AT(terrace_owners_disk, flags, 50);
AT(terrace_owners_disk, prev_offset, 52);
AT(terrace_owners_disk, unused, 56);
AT(terrace_owners_disk, owner, 96);
SIZE(terrace_owners_disk, 4096);

AT(terrace_table_disk, magic, 0);
AT(terrace_table_disk, crc, 4);
AT(terrace_table_disk, volume_uuid, 8);
AT(terrace_table_disk, place, 24);
AT(terrace_table_disk, record_seq, 32);
AT(terrace_table_disk, shelf_id, 40);
AT(terrace_table_disk, first_offset, 48);
AT(terrace_table_disk, nr, 52);
AT(terrace_table_disk, unused, 54);
AT(terrace_table_disk, owner, 64);
SIZE(terrace_table_disk, 4096);

AT(terrace_pack_disk, magic, 0);
AT(terrace_pack_disk, crc, 4);
AT(terrace_pack_disk, volume_uuid, 8);
AT(terrace_pack_disk, id, 24);
AT(terrace_pack_disk, place, 32);
AT(terrace_pack_disk, region, 40);
AT(terrace_pack_disk, record_seq, 48);
AT(terrace_pack_disk, bytes, 56);
AT(terrace_pack_disk, payload_bytes, 60);
AT(terrace_pack_disk, blocks, 64);
AT(terrace_pack_disk, nr_blocks, 66);
AT(terrace_pack_disk, nr_clusters, 68);
AT(terrace_pack_disk, version, 70);
AT(terrace_pack_disk, codec, 72);
AT(terrace_pack_disk, level, 73);
AT(terrace_pack_disk, shift, 74);
AT(terrace_pack_disk, unused, 75);
AT(terrace_pack_disk, bitmap, 128);
AT(terrace_pack_disk, tables, 256);

/* Numbers that hang together. */
static_assert(TERRACE_BLOCK_BYTES == 1u << TERRACE_BLOCK_SHIFT);
static_assert(TERRACE_BLOCK_BYTES / 512 == TERRACE_BLOCK_SECTORS);
static_assert(TERRACE_REGION_BLOCKS == 1u << TERRACE_REGION_SHIFT);
static_assert(TERRACE_CHUNK_BLOCKS == 1u << TERRACE_CHUNK_SHIFT);
static_assert(TERRACE_DIR_ENTRIES == 1u << TERRACE_DIR_SHIFT);
static_assert(TERRACE_MAX_TIERS == 1u << TERRACE_PLACE_TIER_BITS);
static_assert(TERRACE_MBIT_WORDS * 64 == TERRACE_MBIT_BITS);
static_assert(TERRACE_TABLE_BLOCKS * TERRACE_TABLE_OWNERS >= TERRACE_CHUNK_BLOCKS);
static_assert((TERRACE_TABLE_BLOCKS - 1) * TERRACE_TABLE_OWNERS < TERRACE_CHUNK_BLOCKS);
static_assert(TERRACE_MAP_MAX_BLOCKS <= TERRACE_ENTRY_LEN_MASK);

/* The largest place of the last tier is still not TERRACE_NO_PLACE. */
static_assert((TERRACE_MAX_PLACE_INDEX << TERRACE_PLACE_TIER_BITS | (TERRACE_MAX_TIERS - 1)) <
	      TERRACE_NO_PLACE);

/* The largest header of a pack: one segment for each block, no slots. */
static_assert(sizeof(struct terrace_pack_disk) +
	      TERRACE_REGION_BLOCKS / TERRACE_PACK_GROUP * 4 + TERRACE_REGION_BLOCKS * (4 + 2) <=
	      TERRACE_PACK_HEADER_BLOCKS * TERRACE_BLOCK_BYTES);
/* The largest run: nothing shrinks. What is left is for alignment. */
static_assert((TERRACE_PACK_HEADER_BLOCKS + TERRACE_REGION_BLOCKS) / TERRACE_PACK_MAX_BLOCKS == 0);
static_assert(TERRACE_PACK_MAX_SHIFT / 2 + 1 == TERRACE_PACK_MAX_SEGMENTS);

/* The largest map page: places, a home bitmap for each tier, packs. */
static_assert(sizeof(struct terrace_map_disk) +
	      sizeof(struct terrace_section_disk) + 128 + 5 * TERRACE_REGION_BLOCKS +
	      TERRACE_MAX_TIERS * (sizeof(struct terrace_section_disk) + 128) +
	      sizeof(struct terrace_section_disk) +
	      TERRACE_PACK_SLOTS * sizeof(struct terrace_pack_ref_disk) <=
	      TERRACE_MAP_MAX_BLOCKS * TERRACE_BLOCK_BYTES);
