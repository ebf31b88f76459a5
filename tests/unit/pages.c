// SPDX-License-Identifier: GPL-2.0-or-later
/* Pages are believed only when they are what their parent says, and hold what was put in. */
#include "core_lib.h"

#define BLOCKS		TERRACE_REGION_BLOCKS
#define WORDS		(TERRACE_CHUNK_BLOCKS / 64)

static const u8 uuid[TERRACE_UUID_BYTES] = "volume-uuid-0123";
static const u8 other_uuid[TERRACE_UUID_BYTES] = "volume-uuid-0124";
static const u64 data_blocks[2] = { 1u << 20, TERRACE_MAX_PLACE_INDEX + 1 };
static const struct tr_page_id map_id = {
	.magic = TERRACE_MAP_MAGIC, .index = 77, .tree = TERRACE_TREE_MAP,
};

static u8 page[TERRACE_MAP_MAX_BLOCKS * TERRACE_BLOCK_BYTES] __aligned(8);

/* Every @step-th block, on tier 1, beyond 32 bits if @high. */
static void fill_leaf(struct tr_leaf *leaf, u32 step, bool high)
{
	u64 base = high ? 1ull << 36 : 1000;
	u32 i;

	tr_leaf_init(leaf);
	leaf_room(leaf, BLOCKS, high);
	for (i = 0; i < BLOCKS; i += step)
		assert_int_equal(tr_leaf_set(leaf, i, 1, tr_place(1, base + 3 * i)), 0);
}

static void entry_of(struct tr_entry *entry, u32 blocks, u64 seq, u32 crc)
{
	memset(entry, 0, sizeof(*entry));
	entry->block = 5000;
	entry->blocks = blocks;
	entry->seq = seq;
	entry->crc = crc;
}

static void write_map(const struct tr_leaf *leaf, struct tr_entry *entry)
{
	u32 blocks = tr_map_page_blocks(leaf, NULL);

	memset(page, 0xee, sizeof(page));
	tr_page_start(page, &map_id, blocks, 4321, 9, uuid);
	tr_map_encode(page, leaf, NULL, 42);
	entry_of(entry, blocks, 4321, tr_page_seal(page));
}

static void map_pages_hold_any_leaf(void **state)
{
	struct tr_leaf leaf, out;
	struct tr_entry entry;
	u32 step, i, nr;
	u32 nr_packs;
	bool high;
	u8 age;

	(void)state;
	for (step = 1; step <= BLOCKS; step = step < 40 ? step + 1 : step * 2) {
		fill_leaf(&leaf, step, step % 2);
		write_map(&leaf, &entry);
		assert_in_range(entry.blocks, 1, 2);
		assert_int_equal(tr_page_check(page, entry.blocks * 4096, &map_id, &entry, uuid), 0);
		assert_int_equal(tr_map_room(page, entry.blocks * 4096, &nr, &high, &nr_packs), 0);
		assert_int_equal(nr, leaf.nr);
		assert_int_equal(high, step % 2);
		tr_leaf_init(&out);
		leaf_room(&out, nr, high);
		assert_int_equal(tr_map_decode(page, entry.blocks * 4096, &out, NULL, &age, data_blocks, 2), 0);
		assert_int_equal(age, 42);
		assert_memory_equal(out.present, leaf.present, sizeof(leaf.present));
		assert_memory_equal(out.rank, leaf.rank, sizeof(leaf.rank));
		assert_int_equal(out.nr, leaf.nr);
		for (i = 0; i < BLOCKS; i++)
			assert_int_equal(tr_leaf_get(&out, i), tr_leaf_get(&leaf, i));
		leaf_free(&out);
		leaf_free(&leaf);
	}
}

/* What a range discard took stands beside the places, in two blocks at most. */
static void discarded_blocks_are_marked(void **state)
{
	u64 gone[TR_LEAF_WORDS] = {}, out_gone[TR_LEAF_WORDS];
	struct tr_leaf leaf, out;
	struct tr_entry entry;
	bool high;
	u32 nr, nr_packs;
	u8 age;

	(void)state;
	fill_leaf(&leaf, 1, true);
	write_map(&leaf, &entry);
	tr_map_gone(page, entry.blocks * 4096, out_gone);
	assert_memory_equal(out_gone, gone, sizeof(gone));	/* none */

	assert_int_equal(tr_map_gone_blocks(&leaf, NULL), 2);
	gone[0] = 5;
	gone[15] = 1ull << 63;
	memset(page, 0xee, sizeof(page));
	tr_page_start(page, &map_id, 2, 4321, 9, uuid);
	tr_map_encode(page, &leaf, NULL, 42);
	tr_map_add_gone(page, gone);
	entry_of(&entry, 2, 4321, tr_page_seal(page));
	assert_int_equal(tr_page_check(page, 8192, &map_id, &entry, uuid), 0);
	assert_int_equal(tr_map_room(page, 8192, &nr, &high, &nr_packs), 0);
	assert_int_equal(nr, BLOCKS);
	tr_leaf_init(&out);
	leaf_room(&out, nr, high);
	assert_int_equal(tr_map_decode(page, 8192, &out, NULL, &age, data_blocks, 2), 0);
	assert_int_equal(out.nr, BLOCKS);
	tr_map_gone(page, 8192, out_gone);
	assert_memory_equal(out_gone, gone, sizeof(gone));
	leaf_free(&out);
	leaf_free(&leaf);

	/* one without a place cannot be gone */
	fill_leaf(&leaf, 2, false);
	tr_page_start(page, &map_id, 2, 4321, 9, uuid);
	tr_map_encode(page, &leaf, NULL, 42);
	gone[0] = 2;
	tr_map_add_gone(page, gone);
	assert_int_equal(tr_map_room(page, 8192, &nr, &high, &nr_packs), -EUCLEAN);
	leaf_free(&leaf);
}

static void an_empty_region_has_a_page_too(void **state)
{
	struct tr_leaf leaf, out;
	struct tr_entry entry;
	u32 nr_packs;
	bool high;
	u32 nr;
	u8 age;

	(void)state;
	tr_leaf_init(&leaf);
	tr_leaf_init(&out);
	write_map(&leaf, &entry);
	assert_int_equal(entry.blocks, 1);
	assert_int_equal(tr_map_room(page, 4096, &nr, &high, &nr_packs), 0);
	assert_int_equal(nr, 0);
	assert_int_equal(tr_map_decode(page, 4096, &out, NULL, &age, data_blocks, 2), 0);
	assert_int_equal(out.nr, 0);
	tr_page_start(page, &map_id, 1, 1, 1, uuid); /* no section at all */
	assert_int_equal(tr_map_room(page, 4096, &nr, &high, &nr_packs), 0);
	assert_int_equal(nr, 0);
	assert_int_equal(tr_map_decode(page, 4096, &out, NULL, &age, data_blocks, 2), 0);
	assert_int_equal(out.nr, 0);
}

static void every_flipped_byte_of_a_page_is_seen(void **state)
{
	struct tr_entry entry;
	struct tr_leaf leaf;
	u32 i, bytes;
	int err;

	(void)state;
	fill_leaf(&leaf, 1, true);
	write_map(&leaf, &entry);
	bytes = entry.blocks * TERRACE_BLOCK_BYTES;
	assert_int_equal(bytes, 8192);
	for (i = 0; i < bytes; i++) {
		page[i] ^= 1 << i % 8;
		err = tr_page_check(page, bytes, &map_id, &entry, uuid);
		assert_int_equal(err, i < 4 ? -ENODATA : -EBADMSG);
		page[i] ^= 1 << i % 8;
	}
	assert_int_equal(tr_page_check(page, bytes, &map_id, &entry, uuid), 0);
	leaf_free(&leaf);
}

#define CHECK(err, change)								\
	do {										\
		struct tr_page_id id = map_id;						\
		struct tr_entry e = entry;						\
		const u8 *volume = uuid;						\
		u32 bytes = sizeof(page);						\
		change;									\
		assert_int_equal(tr_page_check(page, bytes, &id, &e, volume), err);	\
	} while (0)

static void a_good_page_in_the_wrong_place_is_stale(void **state)
{
	struct tr_entry entry;
	struct tr_leaf leaf;

	(void)state;
	fill_leaf(&leaf, 1, false);
	write_map(&leaf, &entry);
	CHECK(0, bytes = 8192);
	CHECK(-ESTALE, id.index++); /* misdirected */
	CHECK(-ESTALE, id.level++);
	CHECK(-ESTALE, id.tier++);
	CHECK(-ESTALE, id.tree = TERRACE_TREE_SPACE);
	CHECK(-ESTALE, id.magic = TERRACE_DIR_MAGIC);
	CHECK(-ESTALE, volume = other_uuid);
	CHECK(-ESTALE, e.seq++); /* a lost write: the older page is still there */
	CHECK(-ESTALE, e.crc++);
	CHECK(-ESTALE, e.blocks = 1);
	CHECK(-EBADMSG, bytes = 4096);
	CHECK(-ENODATA, bytes = 0);
	assert_int_equal(tr_page_check(page, sizeof(page), &map_id, NULL, uuid), 0);
	memset(page, 0, sizeof(page));
	CHECK(-ENODATA, bytes = 8192);
	leaf_free(&leaf);
}

static struct terrace_map_disk *map = (void *)page;
static struct terrace_section_disk *section = (void *)(page + 72);

#define MAP(err, change)								\
	do {										\
		write_map(&leaf, &entry);						\
		change;									\
		assert_int_equal(tr_map_decode(page, 8192, &out, NULL, &age, data_blocks, 2), err); \
		(void)tr_map_room(page, 8192, &nr, &high, &nr_packs);				\
	} while (0)

static void hostile_map_pages_are_refused(void **state)
{
	struct tr_leaf leaf, out;
	struct tr_entry entry;
	u32 nr_packs;
	bool high;
	u32 nr;
	u8 age;

	(void)state;
	fill_leaf(&leaf, 3, false);
	tr_leaf_init(&out);
	leaf_room(&out, leaf.nr, false);
	MAP(0, (void)0);
	MAP(-EUCLEAN, map->bytes = cpu_to_le32(8192));
	MAP(-EUCLEAN, map->bytes = cpu_to_le32(~0u));
	MAP(-EUCLEAN, map->bytes = 0);
	MAP(-EUCLEAN, map->sections = 0);
	MAP(-EUCLEAN, map->sections = cpu_to_le16(2));
	MAP(-EUCLEAN, map->sections = cpu_to_le16(0xffff));
	MAP(-EPROTONOSUPPORT, section->type = cpu_to_le16(TERRACE_SECTION_HOME));
	MAP(-EPROTONOSUPPORT, section->type = cpu_to_le16(99));
	MAP(-EUCLEAN, section->aux = 0);
	MAP(-EUCLEAN, section->aux = cpu_to_le16(leaf.nr + 1));
	MAP(-EUCLEAN, section->bytes = 0);
	MAP(-EUCLEAN, section->bytes = cpu_to_le32(127));
	MAP(-EUCLEAN, section->bytes = cpu_to_le32(~0u));
	MAP(-EUCLEAN, section->bytes = cpu_to_le32(~0u - 6)); /* padding wraps to nothing */
	MAP(-EUCLEAN, page[80] ^= 1); /* the bitmap's population */
	MAP(-EUCLEAN, page[80] = page[80] << 1 | page[80] >> 7; page[208] = 7); /* tier 7 of 2 */
	MAP(-EUCLEAN, memset(page + 208, 0, 5); page[211] = 0xff); /* past the end of tier 0 */
	MAP(-EUCLEAN, memset(page + 208, 0xff, 5)); /* TERRACE_NO_PLACE */
	MAP(-ENOSPC, memset(page + 208, 0, 5); page[208] = 1; page[212] = 1); /* high */
	leaf_room(&out, leaf.nr - 1, false);
	MAP(-ENOSPC, (void)0);
	leaf_free(&out);
	leaf_free(&leaf);
}

static void two_places_sections_are_refused(void **state)
{
	u8 *second;
	struct tr_leaf leaf, out;
	struct tr_entry entry;
	u32 bytes;
	u8 age;

	(void)state;
	fill_leaf(&leaf, 100, false);
	tr_leaf_init(&out);
	leaf_room(&out, BLOCKS, false);
	write_map(&leaf, &entry);
	bytes = le32_to_cpu(map->bytes);
	second = page + 72 + bytes;
	memcpy(second, section, bytes);
	map->bytes = cpu_to_le32(2 * bytes);
	map->sections = cpu_to_le16(2);
	assert_int_equal(tr_map_decode(page, 4096, &out, NULL, &age, data_blocks, 2), -EUCLEAN);
	leaf_free(&out);
	leaf_free(&leaf);
}

static void space_pages_hold_a_bitmap_and_its_population(void **state)
{
	const struct tr_page_id id = { .magic = TERRACE_SPACE_MAGIC, .index = 3, .tier = 2,
				       .tree = TERRACE_TREE_SPACE };
	u64 in[WORDS], out[WORDS], rnd = 5;
	u32 w, used, sum = 0;

	(void)state;
	for (w = 0; w < WORDS; w++) {
		in[w] = random_bits(&rnd);
		sum += hweight64(in[w]);
	}
	tr_page_start(page, &id, 1, 1, 1, uuid);
	tr_space_encode(page, in);
	tr_page_seal(page);
	assert_int_equal(tr_page_check(page, 4096, &id, NULL, uuid), 0);
	assert_int_equal(tr_space_decode(page, out, &used), 0);
	assert_int_equal(used, sum);
	assert_memory_equal(in, out, sizeof(in));
	page[128] ^= 1;
	assert_int_equal(tr_space_decode(page, out, &used), -EUCLEAN);
}

static void meta_bitmaps_know_their_index_and_generation(void **state)
{
	u64 in[TERRACE_MBIT_WORDS], out[TERRACE_MBIT_WORDS], rnd = 6;
	u32 w, i;

	(void)state;
	for (w = 0; w < TERRACE_MBIT_WORDS; w++)
		in[w] = random_bits(&rnd);
	tr_mbit_encode(page, in, TERRACE_MBIT_BITS, 8, uuid);
	assert_int_equal(tr_mbit_decode(page, out, TERRACE_MBIT_BITS, 8, uuid), 0);
	assert_memory_equal(in, out, sizeof(in));
	assert_int_equal(tr_mbit_decode(page, out, TERRACE_MBIT_BITS, 9, uuid), 0);
	assert_int_equal(tr_mbit_decode(page, out, TERRACE_MBIT_BITS, 7, uuid), -ESTALE);
	assert_int_equal(tr_mbit_decode(page, out, 0, 8, uuid), -ESTALE);
	assert_int_equal(tr_mbit_decode(page, out, TERRACE_MBIT_BITS, 8, other_uuid), -ESTALE);
	for (i = 0; i < 4096; i++) {
		page[i] ^= 0x10;
		assert_int_equal(tr_mbit_decode(page, out, TERRACE_MBIT_BITS, 8, uuid),
				 i < 4 ? -ENODATA : -EBADMSG);
		page[i] ^= 0x10;
	}
}

static void directories_reach_every_leaf_once(void **state)
{
	u64 leaf = (3ull << 21) + (5 << 14) + (7 << 7) + 11;

	(void)state;
	assert_int_equal(tr_dir_depth(0), 0);
	assert_int_equal(tr_dir_depth(1), 0);
	assert_int_equal(tr_dir_depth(2), 1);
	assert_int_equal(tr_dir_depth(128), 1);
	assert_int_equal(tr_dir_depth(129), 2);
	assert_int_equal(tr_dir_depth(1 << 14), 2);
	assert_int_equal(tr_dir_depth((1 << 14) + 1), 3);
	assert_in_range(tr_dir_depth(TR_MAX_BLOCKS >> TERRACE_REGION_SHIFT), 6, TR_MAX_DEPTH);
	assert_int_equal(tr_dir_slot(leaf, 1), 11);
	assert_int_equal(tr_dir_slot(leaf, 2), 7);
	assert_int_equal(tr_dir_slot(leaf, 3), 5);
	assert_int_equal(tr_dir_slot(leaf, 4), 3);
	assert_int_equal(tr_dir_index(leaf, 1), leaf - 11);
	assert_int_equal(tr_dir_index(leaf, 3), 3ull << 21);
	assert_int_equal(tr_dir_index(leaf, 8), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(map_pages_hold_any_leaf),
		cmocka_unit_test(discarded_blocks_are_marked),
		cmocka_unit_test(an_empty_region_has_a_page_too),
		cmocka_unit_test(every_flipped_byte_of_a_page_is_seen),
		cmocka_unit_test(a_good_page_in_the_wrong_place_is_stale),
		cmocka_unit_test(hostile_map_pages_are_refused),
		cmocka_unit_test(two_places_sections_are_refused),
		cmocka_unit_test(space_pages_hold_a_bitmap_and_its_population),
		cmocka_unit_test(meta_bitmaps_know_their_index_and_generation),
		cmocka_unit_test(directories_reach_every_leaf_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
