// SPDX-License-Identifier: GPL-2.0-or-later
/* The packs of a region: a block is live in one at most, ids fall, nothing is lost on the way. */
#include "core_lib.h"

#define BLOCKS	TERRACE_REGION_BLOCKS

static u64 live[BLOCKS];	/* id, 0: none */

static void compare(const struct tr_packs *packs)
{
	u64 mask[TR_LEAF_WORDS];
	u32 i, k, n, pack, total = 0;

	tr_packs_mask(packs, mask);
	for (i = 0; i < BLOCKS; i++) {
		k = tr_packs_find(packs, i);
		assert_int_equal(k == TR_NO_PACK ? 0 : packs->pack[k].id, live[i]);
		assert_int_equal(mask[i / 64] >> i % 64 & 1, !!live[i]);
		total += !!live[i];
	}
	assert_int_equal(tr_packs_live(packs), total);
	for (i = 0; i < BLOCKS; i += n) {
		n = tr_packs_run(packs, i, BLOCKS - i, &pack);
		for (k = i; k < i + n; k++)
			assert_int_equal(live[k], live[i]);
		assert_int_equal(pack == TR_NO_PACK ? 0 : packs->pack[pack].id, live[i]);
		assert_true(i + n == BLOCKS || live[i + n] != live[i]);
	}
	for (k = 1; k < packs->nr; k++)
		assert_true(packs->pack[k].id < packs->pack[k - 1].id);
}

static u32 live_in(u64 id)
{
	u32 i, n = 0;

	for (i = 0; i < BLOCKS; i++)
		n += live[i] == id;
	return n;
}

static void random_changes_agree_with_a_plain_array(void **state)
{
	struct tr_packs *packs = room_for(tr_packs_bytes(6)), *copy = room_for(tr_packs_bytes(6));
	struct tr_pack pack = { .index_place = TR_NO_PLACE };
	u64 seed = 99, id;
	u32 step, i, k, n, end;

	(void)state;
	memset(live, 0, sizeof(live));
	tr_packs_init(packs, 6);
	for (step = 0; step < 3000; step++) {
		i = random_below(&seed, BLOCKS);
		n = random_below(&seed, BLOCKS - i + 1);
		id = 1 + random_below(&seed, 8);
		k = tr_packs_by_id(packs, id);
		switch (random_below(&seed, 4)) {
		case 0:
			pack.id = id;
			assert_int_equal(tr_packs_add(packs, &pack),
					 k != TR_NO_PACK ? -EEXIST : packs->nr == 6 ? -ENOSPC : 0);
			break;
		case 1:
			assert_int_equal(tr_packs_drop(packs, id),
					 k == TR_NO_PACK ? -ENOENT : live_in(id) ? -EBUSY : 0);
			break;
		case 2:
			assert_int_equal(tr_packs_put(packs, id, i, n), k == TR_NO_PACK ? -ENOENT : 0);
			for (; k != TR_NO_PACK && n; n--)
				live[i + n - 1] = id;
			break;
		default:
			for (k = 0, end = i + n; end > i; end--) {
				k += !!live[end - 1];
				live[end - 1] = 0;
			}
			assert_int_equal(tr_packs_clear(packs, i, n), k);
		}
		if (step % 10 == 0) {
			compare(packs);
			tr_packs_init(copy, 6);
			assert_int_equal(tr_packs_copy(copy, packs), 0);
			compare(copy);
			copy->cap = packs->nr - 1;
			if (packs->nr)
				assert_int_equal(tr_packs_copy(copy, packs), -ENOSPC);
		}
	}
	free(packs);
	free(copy);
}

static void no_list_is_an_empty_list(void **state)
{
	u32 pack;

	(void)state;
	assert_int_equal(tr_packs_find(NULL, 7), TR_NO_PACK);
	assert_int_equal(tr_packs_run(NULL, 7, 100, &pack), 100);
	assert_int_equal(pack, TR_NO_PACK);
	assert_int_equal(tr_packs_clear(NULL, 0, 1024), 0);
	assert_int_equal(tr_packs_live(NULL), 0);
	assert_int_equal(tr_packs_by_id(NULL, 1), TR_NO_PACK);
}

#define PAGE(err, change)									\
	do {											\
		tr_page_start(page, &id, 1, 1, 1, (const u8 *)"0123456789abcdef");		\
		tr_map_encode(page, &leaf, packs, 0);						\
		change;										\
		assert_int_equal(tr_map_decode(page, 4096, &leaf, out, &age, data_blocks, 2), err); \
	} while (0)

static void hostile_pack_sections_are_refused(void **state)
{
	static u8 page[4096] __aligned(8);
	const struct tr_page_id id = { .magic = TERRACE_MAP_MAGIC };
	const u64 data_blocks[2] = { 100, 50 };
	struct tr_packs *packs = room_for(tr_packs_bytes(2)), *out = room_for(tr_packs_bytes(2));
	struct tr_pack pack = { .id = 9, .place = tr_place(1, 40), .blocks = 10,
				.index_place = tr_place(0, 98), .index_blocks = 2, .live = { 1 } };
	struct terrace_section_disk *section = (void *)(page + 72 + 8 + 128);
	struct terrace_pack_ref_disk *ref = (void *)(section + 1);
	struct tr_leaf leaf;
	u8 age;

	(void)state;
	tr_leaf_init(&leaf);
	tr_packs_init(packs, 2);
	tr_packs_init(out, 2);
	assert_int_equal(tr_packs_add(packs, &pack), 0);
	pack.id = 8;
	pack.live[0] = 2;
	assert_int_equal(tr_packs_add(packs, &pack), 0);
	PAGE(0, (void)0);
	assert_memory_equal(out->pack, packs->pack, 2 * sizeof(pack));
	out->cap = 1;
	PAGE(-ENOSPC, (void)0);
	out->cap = 2;
	assert_int_equal(tr_map_decode(page, 4096, &leaf, NULL, &age, data_blocks, 2), -ENOSPC);
	PAGE(-EUCLEAN, section->aux = cpu_to_le16(1));
	PAGE(-EUCLEAN, section->aux = cpu_to_le16(9));
	PAGE(-EUCLEAN, section->bytes = cpu_to_le32(160));
	PAGE(-EUCLEAN, section->type = cpu_to_le16(TERRACE_SECTION_PLACES));
	PAGE(-EPROTONOSUPPORT, section->type = cpu_to_le16(TERRACE_SECTION_HOME));
	PAGE(-EUCLEAN, ref[0].id = 0);
	PAGE(-EUCLEAN, ref[1].id = cpu_to_le64(9));
	PAGE(-EUCLEAN, ref[1].id = cpu_to_le64(10));
	PAGE(-EUCLEAN, ref[0].place = cpu_to_le64(tr_place(1, 41)));
	PAGE(-EUCLEAN, ref[0].place = cpu_to_le64(tr_place(2, 0)));
	PAGE(-EUCLEAN, ref[0].place = cpu_to_le64(TERRACE_NO_PLACE));
	PAGE(-EUCLEAN, ref[0].blocks = 0);
	PAGE(-EUCLEAN, ref[0].blocks = cpu_to_le16(0xffff));
	PAGE(-EUCLEAN, ref[0].index_blocks = 0);
	PAGE(-EUCLEAN, ref[0].index_blocks = cpu_to_le16(3));
	PAGE(-EUCLEAN, ref[0].index_place = cpu_to_le64(tr_place(0, 99)));
	PAGE(-EUCLEAN, ref[0].index_place = cpu_to_le64(~0ull));
	PAGE(-EUCLEAN, ref[1].live[0] |= cpu_to_le64(1)); /* live in two */
	free(packs);
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_changes_agree_with_a_plain_array),
		cmocka_unit_test(no_list_is_an_empty_list),
		cmocka_unit_test(hostile_pack_sections_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
