// SPDX-License-Identifier: GPL-2.0-or-later
/* Geometry: plans fit their devices, describe themselves soundly, and are refused with the reason. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/geometry.h"

#define MIB	256ull		/* in blocks */
#define GIB	(1024 * MIB)

static struct tr_plan plan;
static struct tr_plan_fault fault;

static struct tr_plan_device device(u32 class, u32 kind, u64 blocks)
{
	struct tr_plan_device dev = {
		.blocks = blocks, .class = class, .kind = kind, .align_blocks = 1,
		.atomic_bytes = 512,
	};

	memset(dev.uuid, (int)(class * 8 + kind), sizeof(dev.uuid));
	return dev;
}

static struct tr_plan_args two_tiers(u64 fast, u64 slow)
{
	struct tr_plan_args args = { .nr_tiers = 2, .first_nonce = 77, .name = "v" };

	args.tier[0] = device(TERRACE_CLASS_NVME, TERRACE_KIND_SLOTS, fast);
	args.tier[1] = device(TERRACE_CLASS_HDD, TERRACE_KIND_SHELVES, slow);
	memset(args.uuid, 9, sizeof(args.uuid));
	return args;
}

static void expect_fault(const struct tr_plan_args *args, enum tr_plan_error error, u32 dev)
{
	assert_int_not_equal(tr_plan_make(&plan, args, &fault), 0);
	assert_int_equal(fault.error, error);
	assert_int_equal(fault.device, dev);
}

/* Areas lie apart and on the device, and both structures survive their codec. */
static void expect_sound(const struct tr_plan_args *args)
{
	const struct tr_super *super = &plan.super;
	static struct tr_super read_super;	/* padding stays zero */
	static struct tr_label label;
	static u64 block[512];

	assert_int_equal(tr_plan_make(&plan, args, &fault), 0);
	assert_int_equal(fault.error, TR_PLAN_OK);
	tr_super_encode(block, super);
	assert_int_equal(tr_super_decode(&read_super, block), 0);
	assert_memory_equal(&read_super, super, sizeof(*super));
	assert_true(tr_first_page(super) < super->meta_blocks);
	assert_true(super->bitmap_blocks * TERRACE_MBIT_BITS >= super->meta_blocks);
	assert_true(super->virtual_blocks <= plan.room_blocks + super->overcommit_blocks);
	for (u32 i = 0; i < plan.nr_devices; i++) {
		tr_label_encode(block, &plan.label[i]);
		assert_int_equal(tr_label_decode(&label, block), 0);
		assert_memory_equal(&label, &plan.label[i], sizeof(label));
		if (label.meta_blocks) {
			assert_true(label.meta_start >= TR_META_START);
			assert_true(label.meta_start % label.align_blocks == 0);
			assert_true(label.kind == TERRACE_KIND_NONE ||
				    label.meta_start + label.meta_blocks <= label.data_start);
			assert_true(label.meta_start + label.meta_blocks <= label.device_blocks);
		}
		if (label.kind == TERRACE_KIND_NONE)
			continue;
		assert_true(label.data_start % TR_DATA_ALIGN == 0);
		assert_true(label.data_start % label.align_blocks == 0);
		assert_true(label.data_start + label.data_blocks <= label.device_blocks);
		assert_true(super->tier[i].reserve_blocks < label.data_blocks);
		if (label.kind == TERRACE_KIND_SHELVES)
			assert_true(label.data_blocks % TERRACE_CHUNK_BLOCKS == 0);
	}
}

static void sizes_from_tiny_to_huge(void **state)
{
	static const u64 size[] = {
		20 * MIB, 64 * MIB, 256 * MIB, GIB, 100 * GIB, 1024 * GIB, 16 * 1024 * GIB,
		400 * 1024 * GIB,
	};
	const u32 nr = sizeof(size) / sizeof(size[0]);

	(void)state;
	for (u32 fast = 0; fast < nr; fast++) {
		for (u32 slow = fast; slow < nr; slow++) {
			struct tr_plan_args args = two_tiers(size[fast], size[slow]);

			if (size[slow] < 256 * MIB || size[slow] / size[fast] > 250)
				continue;
			expect_sound(&args);
		}
	}
}

/* Pages enough for every mapped region at its largest, its space, and a quarter more. */
static void metadata_holds_a_full_volume(void **state)
{
	struct tr_plan_args args = two_tiers(100 * GIB, 1024 * GIB);
	u64 regions, pages;

	(void)state;
	expect_sound(&args);
	regions = plan.super.virtual_blocks / TERRACE_REGION_BLOCKS;
	pages = 2 * regions + regions / TERRACE_DIR_ENTRIES +
		tr_chunks(plan.super.tier[0].data_blocks) + tr_chunks(plan.super.tier[1].data_blocks);
	assert_true(plan.super.meta_blocks - tr_first_page(&plan.super) >= pages + pages / 4);
	assert_true(plan.super.meta_blocks < args.tier[0].blocks / 10);
}

static void journal_follows_the_fast_tier(void **state)
{
	struct tr_plan_args args = two_tiers(GIB, 10 * GIB);

	(void)state;
	expect_sound(&args);
	assert_int_equal(plan.super.journal_blocks, GIB / TR_JOURNAL_SHARE);
	args = two_tiers(64 * MIB, GIB);
	expect_sound(&args);
	assert_int_equal(plan.super.journal_blocks, TR_JOURNAL_MIN);
	args = two_tiers(1024 * GIB, 1024 * GIB);
	expect_sound(&args);
	assert_int_equal(plan.super.journal_blocks, TR_JOURNAL_MAX);
	args.journal_blocks = 300;
	expect_sound(&args);
	assert_int_equal(plan.super.journal_blocks, 300);
	args.journal_blocks = TR_JOURNAL_MIN - 1;
	expect_fault(&args, TR_PLAN_JOURNAL, TR_NO_DEVICE);
	args.journal_blocks = TR_JOURNAL_MAX + 1;
	expect_fault(&args, TR_PLAN_JOURNAL, TR_NO_DEVICE);
}

static void mirror_is_synchronous_only_where_it_can_keep_up(void **state)
{
	struct tr_plan_args args = two_tiers(10 * GIB, 100 * GIB);

	(void)state;
	expect_sound(&args);
	assert_int_equal(plan.primary, 0);
	assert_int_equal(plan.mirror, 1);
	assert_true(plan.mirror_lazy);
	assert_int_equal(plan.label[1].flags, TERRACE_LABEL_META_LAZY);

	args.tier[1].class = TERRACE_CLASS_NVME;
	args.tier[0].class = TERRACE_CLASS_OPTANE;
	expect_sound(&args);
	assert_false(plan.mirror_lazy);
	assert_int_equal(plan.label[0].flags, TERRACE_LABEL_META);
	assert_int_equal(plan.label[1].flags, TERRACE_LABEL_META_SYNC);
	assert_int_equal(plan.label[1].meta_blocks, plan.label[0].meta_blocks);

	args.mirror = TR_MIRROR_LAZY;
	expect_sound(&args);
	assert_true(plan.mirror_lazy);
	args.mirror = TR_MIRROR_NONE;
	expect_sound(&args);
	assert_int_equal(plan.mirror, TR_NO_DEVICE);
	assert_int_equal(plan.label[1].meta_blocks, 0);
	args.tier[1].class = TERRACE_CLASS_HDD;
	args.mirror = TR_MIRROR_SYNC;
	expect_sound(&args);
	assert_int_equal(plan.mirror, 1);
	assert_false(plan.mirror_lazy);
}

static void metadata_on_a_device_of_its_own(void **state)
{
	struct tr_plan_args args = two_tiers(10 * GIB, 100 * GIB);

	(void)state;
	args.has_meta = true;
	args.meta = device(0, 0, GIB);
	expect_sound(&args);
	assert_int_equal(plan.nr_devices, 3);
	assert_int_equal(plan.primary, 2);
	assert_int_equal(plan.label[2].tier_index, TERRACE_META_DEVICE);
	assert_int_equal(plan.mirror, 0);
	assert_false(plan.mirror_lazy);
	assert_int_equal(plan.label[1].meta_blocks, 0);

	args.meta.blocks = 64;
	expect_fault(&args, TR_PLAN_TOO_SMALL, 2);
	assert_int_equal(fault.have, 64);
	args.meta.blocks = fault.need;
	expect_sound(&args);

	args.tier[0].class = TERRACE_CLASS_QLC;
	expect_sound(&args);
	assert_true(plan.mirror_lazy);
}

static void reserves_are_kept(void **state)
{
	(void)state;
	assert_int_equal(tr_reserve(TERRACE_KIND_SLOTS, 1000, 20), 64);
	assert_int_equal(tr_reserve(TERRACE_KIND_SLOTS, 100000, 20), 2000);
	assert_int_equal(tr_reserve(TERRACE_KIND_SLOTS, 100000, 50), 5000);
	/* a shelf: 33 table blocks, 66 owner blocks, 16285 of data */
	assert_int_equal(tr_reserve(TERRACE_KIND_SHELVES, 100 * TERRACE_CHUNK_BLOCKS, 20),
			 2 * TERRACE_CHUNK_BLOCKS + 2 * TERRACE_CHUNK_BLOCKS + 100 * (33 + 66));
	assert_int_equal(tr_reserve(TERRACE_KIND_HOME, 100000, 20), 0);
}

/* A block has the same home on every home tier, so the largest counts. */
static void homes_count_once(void **state)
{
	struct tr_plan_args args = two_tiers(GIB, 10 * GIB);
	u64 slots;

	(void)state;
	args.tier[1] = device(TERRACE_CLASS_CSD, TERRACE_KIND_HOME, 10 * GIB);
	expect_sound(&args);
	slots = plan.super.tier[0].data_blocks - plan.super.tier[0].reserve_blocks;
	assert_int_equal(plan.room_blocks, slots + plan.super.tier[1].data_blocks);
	args.tier[2] = device(TERRACE_CLASS_CSD, TERRACE_KIND_HOME, 5 * GIB);
	args.nr_tiers = 3;
	expect_sound(&args);
	slots = plan.super.tier[0].data_blocks - plan.super.tier[0].reserve_blocks;
	assert_int_equal(plan.room_blocks, slots + plan.super.tier[1].data_blocks);
}

static void overcommit_is_opt_in(void **state)
{
	struct tr_plan_args args = two_tiers(GIB, 10 * GIB);
	u64 room;

	(void)state;
	expect_sound(&args);
	room = plan.room_blocks;
	assert_true(plan.super.virtual_blocks <= room);
	assert_true(plan.super.virtual_blocks > room - TERRACE_REGION_BLOCKS);
	assert_int_equal(plan.super.overcommit_blocks, 0);

	args.virtual_blocks = room;
	expect_sound(&args);
	args.virtual_blocks = room + 1;
	expect_fault(&args, TR_PLAN_VIRTUAL, TR_NO_DEVICE);
	assert_int_equal(fault.have, room + 1);
	assert_int_equal(fault.need, room);
	args.overcommit_blocks = GIB;
	expect_sound(&args);
	assert_int_equal(plan.super.overcommit_blocks, 1);
	args.virtual_blocks = 0;
	expect_sound(&args);
	assert_true(plan.super.virtual_blocks > plan.room_blocks + GIB - TERRACE_REGION_BLOCKS);

	args.virtual_blocks = 64 * 1024 * GIB;
	args.overcommit_blocks = 64 * 1024 * GIB;
	expect_sound(&args);
	assert_int_equal(plan.super.map_depth, 4);
	assert_true(plan.super.meta_blocks < 200 * MIB);
	args.virtual_blocks = TR_MAX_VIRTUAL_BLOCKS + 1;
	expect_fault(&args, TR_PLAN_VIRTUAL_MAX, TR_NO_DEVICE);
}

static void alignment_is_kept(void **state)
{
	struct tr_plan_args args = two_tiers(10 * GIB, 100 * GIB);

	(void)state;
	for (u32 align = 1; align <= TERRACE_CHUNK_BLOCKS; align *= 2) {
		args.tier[0].align_blocks = align;
		args.tier[1].align_blocks = align;
		expect_sound(&args);
	}
	args.tier[1].align_blocks = 3;
	expect_fault(&args, TR_PLAN_ALIGN, 1);
	args.tier[1].align_blocks = 2 * TERRACE_CHUNK_BLOCKS;
	expect_fault(&args, TR_PLAN_ALIGN, 1);
	args.tier[1].align_blocks = 0;
	expect_fault(&args, TR_PLAN_ALIGN, 1);
}

static void bad_tiers_are_named(void **state)
{
	struct tr_plan_args args = two_tiers(GIB, 10 * GIB), bad = args;

	(void)state;
	bad.nr_tiers = 1;
	expect_fault(&bad, TR_PLAN_TIERS, TR_NO_DEVICE);
	bad.nr_tiers = TERRACE_MAX_TIERS + 1;
	expect_fault(&bad, TR_PLAN_TIERS, TR_NO_DEVICE);
	bad = args;
	bad.tier[1].class = TERRACE_CLASS_META;
	expect_fault(&bad, TR_PLAN_CLASS, 1);
	bad = args;
	bad.tier[1].kind = TERRACE_KIND_NONE;
	expect_fault(&bad, TR_PLAN_KIND, 1);
	bad = args;
	bad.tier[1].class = TERRACE_CLASS_OPTANE;
	expect_fault(&bad, TR_PLAN_ORDER, 1);
	bad = args;
	bad.tier[0].kind = TERRACE_KIND_SHELVES;
	expect_fault(&bad, TR_PLAN_NO_SLOTS, TR_NO_DEVICE);
	bad = args;
	bad.tier[1].blocks = 1ull << 40;
	expect_fault(&bad, TR_PLAN_TOO_BIG, 1);
	bad = args;
	bad.reserve_permille = TR_RESERVE_MAX_PERMILLE + 1;
	expect_fault(&bad, TR_PLAN_RESERVE, TR_NO_DEVICE);
}

/* The room that a refusal asks for is enough, and one block less is not. */
static void too_small_says_how_much_is_needed(void **state)
{
	struct tr_plan_args args = two_tiers(GIB, 10 * GIB);

	(void)state;
	for (u64 blocks = 0; blocks < 300; blocks += 7) {
		args.tier[1].blocks = blocks;
		expect_fault(&args, TR_PLAN_TOO_SMALL, 1);
		assert_int_equal(fault.have, blocks);
	}
	args.tier[1].blocks = fault.need;
	if (tr_plan_make(&plan, &args, &fault))
		args.tier[1].blocks = fault.need;
	expect_sound(&args);
	args = two_tiers(0, 10 * GIB);
	expect_fault(&args, TR_PLAN_TOO_SMALL, 0);
	args.tier[0].blocks = 16 * MIB;	/* the metadata of 10 GiB alone is more */
	expect_fault(&args, TR_PLAN_TOO_SMALL, 0);
	args.tier[0].blocks = fault.need;
	expect_sound(&args);
	args.tier[0].blocks--;
	expect_fault(&args, TR_PLAN_TOO_SMALL, 0);
}

/* A tier that grows keeps its share, and never loses room. */
static void reserve_grows_with_the_tier(void **state)
{
	static const u32 kinds[] = { TERRACE_KIND_SLOTS, TERRACE_KIND_SHELVES };

	(void)state;
	for (u32 k = 0; k < 2; k++) {
		for (u32 permille = 0; permille <= TR_RESERVE_MAX_PERMILLE; permille += 25) {
			u64 old = GIB, data = 3 * GIB;
			u64 before = tr_reserve(kinds[k], old, permille);
			u64 after = tr_reserve_grown(kinds[k], old, before, data);

			assert_true(after >= before);
			assert_true(data - after >= old - before);
			assert_true(after <= tr_reserve(kinds[k], data, permille + 1));
			if (permille)
				assert_true(after >= tr_reserve(kinds[k], data, permille - 1));
		}
	}
	assert_int_equal(tr_reserve_grown(TERRACE_KIND_HOME, GIB, 0, 2 * GIB), 0);
}

/* What a format takes is enough, also for some growth, not for any. */
static void pages_are_enough_for_a_while(void **state)
{
	struct tr_plan_args args = two_tiers(GIB, 10 * GIB);
	u64 have;

	(void)state;
	expect_sound(&args);
	have = plan.super.meta_blocks - tr_first_page(&plan.super);
	assert_true(tr_pages_needed(&plan.super) <= have);
	plan.super.tier[1].data_blocks += GIB;
	plan.super.virtual_blocks += GIB;
	assert_true(tr_pages_needed(&plan.super) <= have);
	plan.super.tier[1].data_blocks += 10 * GIB;
	assert_true(tr_pages_needed(&plan.super) <= have);	/* a tier is little */
	plan.super.virtual_blocks += 10 * GIB;
	assert_true(tr_pages_needed(&plan.super) > have);
}

/* Credits are counted against a limit only where there can be too many regions; and there what the
 * area was made for, four times the drives' regions, strewn, fits beside what is kept.
 */
static void pages_are_scarce_where_there_are_too_many_regions(void **state)
{
	static const u64 over[] = { 0, GIB, 100 * GIB, 64 * 1024 * GIB, TR_MAX_VIRTUAL_BLOCKS / 2 };
	static const u64 fast[] = { GIB / 16, GIB / 4, GIB, 16 * GIB };

	(void)state;
	for (u32 k = 0; k < sizeof(over) / sizeof(*over); k++) {
		for (u32 i = 0; i < sizeof(fast) / sizeof(*fast); i++) {
			struct tr_plan_args args = two_tiers(fast[i], fast[i] / 4 * 5 + GIB / 4);
			u64 raw, regions, have;

			args.overcommit_blocks = over[k];
			expect_sound(&args);
			have = plan.super.meta_blocks - tr_first_page(&plan.super);
			regions = plan.super.virtual_blocks / TERRACE_REGION_BLOCKS;
			raw = (plan.super.tier[0].data_blocks + plan.super.tier[1].data_blocks) /
			      TERRACE_REGION_BLOCKS;
			assert_true(regions <= 4 * raw || regions > 6 * raw);	/* none in doubt */
			assert_int_equal(tr_pages_scarce(&plan.super, regions), regions > 6 * raw);
			if (regions > 6 * raw)
				assert_true(tr_pages_kept(&plan.super, regions) +
					    tr_pages_of_new(4 * raw, regions) <= have);
		}
	}
}

/* All that a batch may change, of whatever tree, and no more than there are. */
static void directories_above_pages(void **state)
{
	struct tr_plan_args args = two_tiers(GIB, 10 * GIB);
	u64 nr, before = 0;

	(void)state;
	expect_sound(&args);
	assert_int_equal(tr_dirs_above(&plan.super, 1 << 20, 0), 0);
	for (nr = 1; nr < 1 << 20; nr *= 2) {
		u64 dirs = tr_dirs_above(&plan.super, 1 << 20, nr);

		assert_true(dirs >= before && dirs >= (nr < 8192 ? nr : 8192));
		before = dirs;
	}
	assert_int_equal(tr_pages_of_new(1, 1 << 20), 1 + 3);
	assert_int_equal(tr_pages_of_new(1 << 20, 1 << 20), (1 << 20) + 8192 + 64 + 1);
}

static void a_tier_comes_behind_the_slowest(void **state)
{
	struct tr_plan_args args = two_tiers(GIB, 10 * GIB);
	static struct tr_super before, read_super;
	static u64 block[512];

	(void)state;
	expect_sound(&args);
	before = plan.super;
	args.tier[2] = device(TERRACE_CLASS_HDD, TERRACE_KIND_SHELVES, GIB);
	assert_int_equal(tr_plan_add(&plan, &args, &before, &fault), 0);
	assert_int_equal(plan.super.nr_tiers, 3);
	assert_int_equal(plan.super.generation, before.generation + 1);
	assert_int_equal(plan.super.virtual_blocks, before.virtual_blocks);
	assert_memory_equal(plan.super.tier, before.tier, 2 * sizeof(before.tier[0]));
	assert_true(tr_room(&plan.super) > tr_room(&before));
	assert_int_equal(plan.label[2].tier_index, 2);
	assert_int_equal(plan.label[2].meta_blocks, 0);
	tr_super_encode(block, &plan.super);
	assert_int_equal(tr_super_decode(&read_super, block), 0);
	assert_memory_equal(&read_super, &plan.super, sizeof(read_super));

	args.tier[2] = device(TERRACE_CLASS_NVME, TERRACE_KIND_SLOTS, GIB);
	assert_int_not_equal(tr_plan_add(&plan, &args, &before, &fault), 0);
	assert_int_equal(fault.error, TR_PLAN_ORDER);
	args.tier[2] = device(TERRACE_CLASS_HDD, TERRACE_KIND_SHELVES, 64 * MIB);
	assert_int_not_equal(tr_plan_add(&plan, &args, &before, &fault), 0);
	assert_int_equal(fault.error, TR_PLAN_TOO_SMALL);
	args.tier[2] = device(TERRACE_CLASS_HDD, TERRACE_KIND_SHELVES, 400 * 1024 * GIB);
	assert_int_not_equal(tr_plan_add(&plan, &args, &before, &fault), 0);
	assert_int_equal(fault.error, TR_PLAN_PAGES);
	before.nr_tiers = TERRACE_MAX_TIERS;
	assert_int_not_equal(tr_plan_add(&plan, &args, &before, &fault), 0);
	assert_int_equal(fault.error, TR_PLAN_TIERS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_from_tiny_to_huge),
		cmocka_unit_test(metadata_holds_a_full_volume),
		cmocka_unit_test(journal_follows_the_fast_tier),
		cmocka_unit_test(mirror_is_synchronous_only_where_it_can_keep_up),
		cmocka_unit_test(metadata_on_a_device_of_its_own),
		cmocka_unit_test(reserves_are_kept),
		cmocka_unit_test(homes_count_once),
		cmocka_unit_test(overcommit_is_opt_in),
		cmocka_unit_test(alignment_is_kept),
		cmocka_unit_test(bad_tiers_are_named),
		cmocka_unit_test(too_small_says_how_much_is_needed),
		cmocka_unit_test(reserve_grows_with_the_tier),
		cmocka_unit_test(pages_are_enough_for_a_while),
		cmocka_unit_test(pages_are_scarce_where_there_are_too_many_regions),
		cmocka_unit_test(directories_above_pages),
		cmocka_unit_test(a_tier_comes_behind_the_slowest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
