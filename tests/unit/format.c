// SPDX-License-Identifier: GPL-2.0-or-later
/* Labels and superblocks: what goes in comes out, damage and impossible numbers do not. */
#include "core_lib.h"

static const struct tr_label good_label = {
	.version = TERRACE_FORMAT_VERSION,
	.volume_uuid = "volume-uuid-0123",
	.tier_uuid = "tier-uuid-012345",
	.generation = 7,
	.tier_index = 3,
	.class = TERRACE_CLASS_QLC,
	.kind = TERRACE_KIND_SHELVES,
	.flags = TERRACE_LABEL_ATOMIC | TERRACE_LABEL_META_LAZY,
	.atomic_bytes = 4096,
	.align_blocks = 16,
	.device_blocks = 1 << 20,
	.data_start = 5000,
	.data_blocks = (1 << 20) - 5000,
	.meta_start = 2,
	.meta_blocks = 4998,
	.name = "a name",
	.stale_until = { 5, 1ull << 40, 77 },
};

static const struct tr_super good_super = {
	.volume_uuid = "volume-uuid-0123",
	.generation = 12,
	.compat = 0xf0,
	.compat_ro = 0x0f,
	.flags = TERRACE_SUPER_CLEAN,
	.nr_tiers = 2,
	.region_shift = TERRACE_REGION_SHIFT,
	.chunk_shift = TERRACE_CHUNK_SHIFT,
	.virtual_blocks = 129 << 10,
	.meta_blocks = 70000,
	.journal_start = 2,
	.journal_blocks = 1000,
	.bitmap_start = { 1002, 1005 },
	.bitmap_blocks = 3,
	.tail_block_seq = 1ull << 40,
	.tail_nonce = 0x1122334455667788,
	.tail_prev_crc = 0xcafe,
	.map_depth = 2,
	.tail_record_seq = 1ull << 50,
	.next_id = 99,
	.activations = 8,
	.overcommit_blocks = 10,
	.map_root = { .block = 69997, .blocks = 3, .age = 200, .crc = 1, .count = 2, .seq = 3 },
	.tier = {
		{ .uuid = "tier-0", .class = TERRACE_CLASS_NVME, .kind = TERRACE_KIND_SLOTS,
		  .data_blocks = 20000, .reserve_blocks = 100,
		  .space_root = { .block = 1008, .blocks = 1, .crc = 4, .count = 5, .seq = 6 } },
		{ .uuid = "tier-1", .class = TERRACE_CLASS_HDD, .kind = TERRACE_KIND_SHELVES,
		  .data_blocks = TERRACE_MAX_PLACE_INDEX + 1, .reserve_blocks = 32768 },
	},
};

static u8 block[TERRACE_BLOCK_BYTES] __aligned(8);

static int decode_label(const struct tr_label *label)
{
	struct tr_label out;

	memset(block, 0xee, sizeof(block));
	tr_label_encode(block, label);
	return tr_label_decode(&out, block);
}

static int decode_super(const struct tr_super *super)
{
	struct tr_super out;

	memset(block, 0xee, sizeof(block));
	tr_super_encode(block, super);
	return tr_super_decode(&out, block);
}

static void crc_reads_its_own_field_as_zero(void **state)
{
	u8 a[64] = "some bytes that differ only where the sum itself stands.......";
	u8 b[64];
	u32 whole;

	(void)state;
	memcpy(b, a, sizeof(a));
	b[8] ^= 1;
	b[11] ^= 0x80;
	assert_int_equal(tr_block_crc(a, 64, 8), tr_block_crc(b, 64, 8));
	assert_int_not_equal(tr_block_crc(a, 64, 8), tr_block_crc(b, 64, 12));
	memset(b, 0, 4);
	whole = tr_block_crc(b, 64, 0);
	memset(b, 1, 4);
	assert_int_equal(tr_block_crc(b, 64, 0), whole);
}

static void label_survives_the_round_trip(void **state)
{
	struct tr_label out;

	(void)state;
	memset(block, 0xee, sizeof(block));
	tr_label_encode(block, &good_label);
	memset(&out, 0, sizeof(out));
	assert_int_equal(tr_label_decode(&out, block), 0);
	assert_memory_equal(&out, &good_label, sizeof(out));
}

static void super_survives_the_round_trip(void **state)
{
	struct tr_super out;
	u32 i;

	(void)state;
	memset(block, 0xee, sizeof(block));
	tr_super_encode(block, &good_super);
	/* the gaps between its members, too: two that were read are compared as a whole */
	memset(&out, 0xee, sizeof(out));
	assert_int_equal(tr_super_decode(&out, block), 0);
	assert_memory_equal(&out, &good_super, sizeof(out));
	/* what has no name is zero */
	for (i = offsetof(struct terrace_super_disk, unused1); i < sizeof(block); i++)
		assert_int_equal(block[i], 0);
}

static void every_flipped_bit_of_a_label_or_superblock_is_seen(void **state)
{
	struct tr_label label;
	struct tr_super super;
	u32 i, bit;

	(void)state;
	for (i = 0; i < 2 * sizeof(block); i++) {
		bool is_label = i < sizeof(block);
		u32 at = i % sizeof(block);
		int err;

		if (!at && is_label)
			tr_label_encode(block, &good_label);
		else if (!at)
			tr_super_encode(block, &good_super);
		for (bit = 0; bit < 8; bit++) {
			block[at] ^= 1 << bit;
			err = is_label ? tr_label_decode(&label, block) : tr_super_decode(&super, block);
			assert_int_equal(err, at < 8 ? -ENODATA : -EBADMSG);
			block[at] ^= 1 << bit;
		}
	}
}

/* Sealed again after the change: the numbers themselves must be judged. */
#define LABEL(err, change)						\
	do {								\
		struct tr_label l = good_label;				\
		change;							\
		assert_int_equal(decode_label(&l), err);		\
	} while (0)

static void impossible_labels_are_refused(void **state)
{
	(void)state;
	LABEL(0, (void)0);
	LABEL(-EPROTONOSUPPORT, l.version = 2);
	LABEL(-EUCLEAN, l.version = 0);
	LABEL(-EUCLEAN, l.tier_index = 8);
	LABEL(-EUCLEAN, l.tier_index = TERRACE_META_DEVICE);
	LABEL(-EUCLEAN, l.class = 0);
	LABEL(-EUCLEAN, l.class = TERRACE_CLASS_META);
	LABEL(-EUCLEAN, l.kind = 0);
	LABEL(-EUCLEAN, l.kind = TERRACE_KIND_NONE);
	LABEL(-EUCLEAN, l.flags |= TERRACE_LABEL_META);
	LABEL(-EUCLEAN, l.meta_blocks = 0);
	LABEL(0, l.meta_blocks = 0; l.flags = 0);
	LABEL(-EUCLEAN, l.atomic_bytes = 0);
	LABEL(-EUCLEAN, l.atomic_bytes = 4095);
	LABEL(-EUCLEAN, l.align_blocks = 0);
	LABEL(-EUCLEAN, l.align_blocks = TERRACE_CHUNK_BLOCKS + 1);
	LABEL(-EUCLEAN, l.data_start = 4999); /* into the metadata */
	LABEL(-EUCLEAN, l.data_start = 1);
	LABEL(-EUCLEAN, l.data_start = 5001); /* past the end */
	LABEL(-EUCLEAN, l.data_start = ~0ull - 100);
	LABEL(-EUCLEAN, l.data_blocks = 0);
	LABEL(-EUCLEAN, l.data_blocks = ~0ull);
	LABEL(-EUCLEAN, l.meta_start = 1);
	LABEL(-EUCLEAN, l.meta_start = 3);
	LABEL(-EUCLEAN, l.meta_start = ~0ull);
	LABEL(-EUCLEAN, l.device_blocks = ~0ull);
	LABEL(-EUCLEAN, l.device_blocks = 0);
	LABEL(0, l.tier_index = TERRACE_META_DEVICE; l.class = TERRACE_CLASS_META;
	      l.kind = TERRACE_KIND_NONE; l.data_blocks = 0);
	LABEL(-EUCLEAN, l.tier_index = TERRACE_META_DEVICE; l.class = TERRACE_CLASS_META;
	      l.kind = TERRACE_KIND_NONE);
}

static void a_name_without_end_is_refused(void **state)
{
	struct terrace_label_disk *disk = (void *)block;
	struct tr_label label = good_label;

	(void)state;
	memset(label.name, 'x', sizeof(label.name));
	tr_label_encode(block, &label); /* cuts it */
	assert_int_equal(tr_label_decode(&label, block), 0);
	assert_int_equal(strlen(label.name), TERRACE_NAME_BYTES - 1);
	disk->name[TERRACE_NAME_BYTES - 1] = 'x';
	disk->crc = cpu_to_le32(tr_block_crc(block, sizeof(block), 12));
	assert_int_equal(tr_label_decode(&label, block), -EUCLEAN);
}

#define SUPER(err, change)						\
	do {								\
		struct tr_super s = good_super;				\
		change;							\
		assert_int_equal(decode_super(&s), err);		\
	} while (0)

static void impossible_superblocks_are_refused(void **state)
{
	(void)state;
	SUPER(0, (void)0);
	SUPER(-EPROTONOSUPPORT, s.incompat = 1);
	SUPER(-EPROTONOSUPPORT, s.region_shift = 11);
	SUPER(-EPROTONOSUPPORT, s.chunk_shift = 13);
	SUPER(0, s.compat = ~0ull; s.compat_ro = ~0ull);
	SUPER(-EUCLEAN, s.nr_tiers = 0);
	SUPER(-EUCLEAN, s.nr_tiers = 3); /* the third is all zero */
	SUPER(-EUCLEAN, s.nr_tiers = 9);
	SUPER(-EUCLEAN, s.nr_tiers = ~0u);
	SUPER(-EUCLEAN, s.virtual_blocks = 0);
	SUPER(-EUCLEAN, s.virtual_blocks = ~0ull; s.map_depth = 8);
	SUPER(-EUCLEAN, s.overcommit_blocks = s.virtual_blocks + 1);
	SUPER(-EUCLEAN, s.meta_blocks = 0);
	SUPER(-EUCLEAN, s.meta_blocks = 1001);
	SUPER(-EUCLEAN, s.meta_blocks = ~0ull);
	SUPER(-EUCLEAN, s.journal_start = 1);
	SUPER(-EUCLEAN, s.journal_start = 3); /* into bitmap 0 */
	SUPER(-EUCLEAN, s.journal_start = ~0ull);
	SUPER(-EUCLEAN, s.journal_blocks = 0);
	SUPER(-EUCLEAN, s.journal_blocks = ~0ull);
	SUPER(-EUCLEAN, s.bitmap_start[0] = 1001);
	SUPER(-EUCLEAN, s.bitmap_start[0] = 1010); /* among the pages */
	SUPER(-EUCLEAN, s.bitmap_start[1] = 1002);
	SUPER(-EUCLEAN, s.bitmap_start[1] = 1010);
	SUPER(-EUCLEAN, s.bitmap_start[0] = 1004); /* into bitmap 1 */
	SUPER(-EUCLEAN, s.bitmap_start[1] = 69998);
	SUPER(-EUCLEAN, s.bitmap_start[1] = ~0ull - 1);
	SUPER(-EUCLEAN, s.bitmap_blocks = 2);
	SUPER(-EUCLEAN, s.bitmap_blocks = 4);
	SUPER(-EUCLEAN, s.bitmap_blocks = 0);
	SUPER(-EUCLEAN, s.map_depth = 1); /* 129 regions need 2 */
	SUPER(0, s.map_depth = 8);
	SUPER(-EUCLEAN, s.map_depth = 9);
	SUPER(-EUCLEAN, s.map_root.block = 69998);
	SUPER(-EUCLEAN, s.map_root.block = 1);
	SUPER(-EUCLEAN, s.map_root.block = 2); /* into the journal */
	SUPER(-EUCLEAN, s.map_root.block = 1003);
	SUPER(-EUCLEAN, s.map_root.block = 1007);
	SUPER(-EUCLEAN, s.map_root.blocks = 0);
	SUPER(-EUCLEAN, s.map_root.blocks = 4);
	SUPER(0, s.map_root.block = 0; s.map_root.blocks = 0);
	SUPER(-EUCLEAN, s.tier[0].class = 0);
	SUPER(-EUCLEAN, s.tier[0].class = TERRACE_CLASS_META);
	SUPER(-EUCLEAN, s.tier[1].kind = TERRACE_KIND_NONE);
	SUPER(-EUCLEAN, s.tier[1].kind = 0);
	SUPER(-EUCLEAN, s.tier[0].data_blocks = 0);
	SUPER(-EUCLEAN, s.tier[1].data_blocks++);
	SUPER(-EUCLEAN, s.tier[0].reserve_blocks = 20001);
	SUPER(-EUCLEAN, s.tier[0].space_root.block = 500);
	SUPER(-EUCLEAN, s.tier[0].space_root.block = 70000);
}

/* Whatever passes can be used without a further look. */
static void random_numbers_pass_only_if_they_fit_together(void **state)
{
	struct terrace_super_disk *disk = (void *)block;
	struct tr_super s;
	u64 rnd = 3;
	u32 step, k, at, passed = 0;

	(void)state;
	for (step = 0; step < 100000; step++) {
		tr_super_encode(block, &good_super);
		for (k = random_below(&rnd, 4); k < 4; k++) {
			at = 16 + random_below(&rnd, 1280 - 16);
			block[at] ^= random_below(&rnd, 2) ? random_below(&rnd, 256) : 1u << random_below(&rnd, 8);
		}
		disk->crc = cpu_to_le32(tr_block_crc(block, sizeof(block), 12));
		if (tr_super_decode(&s, block))
			continue;
		passed++;
		assert_in_range(s.nr_tiers, 1, TERRACE_MAX_TIERS);
		assert_true(s.journal_start + s.journal_blocks <= s.meta_blocks);
		assert_true(s.bitmap_start[0] + s.bitmap_blocks <= s.meta_blocks);
		assert_true(s.bitmap_start[1] + s.bitmap_blocks <= s.meta_blocks);
		assert_true(s.map_root.block + s.map_root.blocks <= s.meta_blocks || !s.map_root.block);
		assert_true(s.journal_blocks && s.virtual_blocks);
	}
	assert_in_range(passed, 1000, 99000);
}

static void check_entry(const struct tr_entry *in)
{
	struct terrace_entry_disk disk;
	struct tr_entry out;

	tr_entry_encode(&disk, in);
	tr_entry_decode(&out, &disk);
	assert_int_equal(out.block, in->block);
	assert_int_equal(out.blocks, in->blocks);
	assert_int_equal(out.age, in->age);
	assert_int_equal(out.crc, in->crc);
	assert_int_equal(out.count, in->count);
	assert_int_equal(out.seq, in->seq);
	assert_int_equal(le64_to_cpu(disk.addr) >> 44 & 15, 0); /* bits without a name */
}

static void entries_pack_address_length_and_age(void **state)
{
	struct tr_entry entry = { 0 };

	(void)state;
	check_entry(&entry);
	entry.block = TERRACE_ENTRY_BLOCK_MASK;
	check_entry(&entry);
	entry.blocks = 15;
	check_entry(&entry);
	entry.age = 255;
	check_entry(&entry);
	entry.crc = ~0u;
	entry.count = ~0u;
	entry.seq = ~0ull;
	check_entry(&entry);
	entry.block = 0;
	check_entry(&entry);
}

static void the_newer_superblock_wins(void **state)
{
	struct tr_super a = good_super, b = good_super;

	(void)state;
	b.generation++;
	assert_ptr_equal(tr_super_newest(&a, &b), &b);
	assert_ptr_equal(tr_super_newest(&b, &a), &b);
	assert_ptr_equal(tr_super_newest(NULL, &a), &a);
	assert_ptr_equal(tr_super_newest(&a, NULL), &a);
	assert_null(tr_super_newest(NULL, NULL));
}

static void foreign_blocks_are_not_ours(void **state)
{
	struct tr_label label;
	struct tr_super super;

	(void)state;
	memset(block, 0, sizeof(block));
	assert_int_equal(tr_label_decode(&label, block), -ENODATA);
	assert_int_equal(tr_super_decode(&super, block), -ENODATA);
	tr_label_encode(block, &good_label);
	assert_int_equal(tr_super_decode(&super, block), -ENODATA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc_reads_its_own_field_as_zero),
		cmocka_unit_test(label_survives_the_round_trip),
		cmocka_unit_test(super_survives_the_round_trip),
		cmocka_unit_test(every_flipped_bit_of_a_label_or_superblock_is_seen),
		cmocka_unit_test(impossible_labels_are_refused),
		cmocka_unit_test(a_name_without_end_is_refused),
		cmocka_unit_test(impossible_superblocks_are_refused),
		cmocka_unit_test(random_numbers_pass_only_if_they_fit_together),
		cmocka_unit_test(entries_pack_address_length_and_age),
		cmocka_unit_test(the_newer_superblock_wins),
		cmocka_unit_test(foreign_blocks_are_not_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
