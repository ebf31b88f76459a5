// SPDX-License-Identifier: GPL-2.0-or-later
/* MSC by hand: the formula, its exclusions, append or merge, wear, clean slots, buckets. */
#include "policy_lib.h"

#include "decide/buckets.h"
#include "decide/msc.h"
#include "decide/tracker.h"

static struct msc_tunables defaults(void)
{
	struct msc_tunables t;

	tunable_defaults(&msc_tunable_table, &t);
	return t;
}

static void coldness_divides_as_reals(void **state)
{
	(void)state;
	assert_near(coldness(TRACKER_NO_VALUE), 1, 0);
	assert_near(coldness(0), 1, 0);
	assert_near(coldness(1), 0.5, 0);
	assert_near(coldness(2), 1.0 / 3, 1e-15);
	assert_near(coldness(3), 0.25, 0);
}

/*
 * 4 fast blocks with clocks 0, 1, 3, 3: coldness 1 + 1/2 + 1/4 + 1/4 = 2.
 * Packed 8 blocks, 2 of them garbage: F = 8/4 = 2, o = 2/8 = 0.25.
 * 2 of 4 pinned: p = 0.5.  All four packs used, so only merge is possible:
 * cost = 2 * 1.75 / 0.5 + 1 = 8;  MSC = 2 / 8 = 0.25, where appends pay no debt.
 */
static struct region_view example(void)
{
	return (struct region_view){
		.region = 1, .dirty_blocks = 4, .packed_blocks = 8, .garbage_blocks = 2,
		.packs = 4, .pinned_blocks = 2,
		.coldness = coldness(0) + coldness(1) + coldness(3) + coldness(3),
	};
}

static struct msc_tunables no_debt(void)
{
	struct msc_tunables t = defaults();

	t.append_debt = 0;
	return t;
}

static void merge_by_hand(void **state)
{
	struct msc_tunables t = no_debt();
	struct region_view r = example();
	struct msc m;

	(void)state;
	assert_near(msc_merge_cost(2, 0.25, 0.5), 8, 1e-12);
	msc_score(&r, &t, &m);
	assert_near(m.benefit, 2, 1e-12);
	assert_near(m.cost, 8, 1e-12);
	assert_near(m.score, 0.25, 1e-12);
	assert_int_equal(m.mode, MOVE_MERGE);
}

/*
 * Same region with 2 of 4 packs: an append is charged 1 + 0.25 * 7 = 2.75, a merge now, after one such
 * append, 1 + 0.75 * 7 = 6.25.  With 4 packs three have been paid: 1 + 0.25 * 7.
 */
static void append_by_hand(void **state)
{
	struct msc_tunables t = defaults();
	struct region_view r = example();
	struct msc m;

	(void)state;
	r.packs = 2;
	msc_score(&r, &t, &m);
	assert_int_equal(m.mode, MOVE_APPEND);
	assert_near(m.cost, 2.75, 1e-12);
	assert_near(m.score, 2 / 2.75, 1e-12);
	/* Half of it an append: the merge, of which half is left, is no dearer. */
	t.append_debt = 0.5;
	msc_score(&r, &t, &m);
	assert_int_equal(m.mode, MOVE_MERGE);
	assert_near(m.cost, 4.5, 1e-12);
	t.append_debt = 0.25;
	r.packs = 4;
	msc_score(&r, &t, &m);
	assert_int_equal(m.mode, MOVE_MERGE);
	assert_near(m.cost, 2.75, 1e-12);
	/* However great the debt, a merge is never for nothing. */
	t.append_debt = 4;
	msc_score(&r, &t, &m);
	assert_near(m.cost, 2.75, 1e-12);
}

static void nothing_below_costs_just_the_write(void **state)
{
	struct msc_tunables t = defaults();
	struct region_view r = { .dirty_blocks = 10, .coldness = 10 };
	struct msc m;

	(void)state;
	msc_score(&r, &t, &m);
	assert_near(m.cost, 1, 1e-12);
	assert_near(m.score, 10, 1e-12);
}

static void p_of_1_and_no_fast_blocks_are_skipped(void **state)
{
	struct msc_tunables t = defaults();
	struct region_view r = example();
	struct msc m;

	(void)state;
	r.pinned_blocks = 4;
	msc_score(&r, &t, &m);
	assert_near(m.score, MSC_SKIP, 0);
	r = (struct region_view){ .packed_blocks = 100, .packs = 1 };
	msc_score(&r, &t, &m);
	assert_near(m.score, MSC_SKIP, 0);
	assert_near(hotrap_score(&r), MSC_SKIP, 0);
}

/* Half of the example's blocks clean: the packs are rewritten all the same, 7 + 2/4; all clean: the floor 0.05. */
static void clean_slots_cost_nothing(void **state)
{
	struct msc_tunables t = no_debt();
	struct region_view r = example();
	struct msc m;

	(void)state;
	r.dirty_blocks = 2;
	r.clean_blocks = 2;
	msc_score(&r, &t, &m);
	assert_near(m.cost, 7.5, 1e-12);
	assert_near(m.score, 2 / 7.5, 1e-12);
	r.dirty_blocks = 0;
	r.clean_blocks = 4;
	msc_score(&r, &t, &m);
	assert_near(m.cost, 0.05, 1e-12);
	t.min_cost = 0.5;
	msc_score(&r, &t, &m);
	assert_near(m.score, 4, 1e-12);
}

static void wear_price_lowers_the_score(void **state)
{
	struct msc_tunables t = no_debt();
	struct region_view r = example();
	struct msc m;

	(void)state;
	/* read 2 / 0.5, written 2 * 0.75 / 0.5 and the block itself */
	t.wear_price = 2;
	msc_score(&r, &t, &m);
	assert_near(m.cost, 4 + 2 * (3 + 1), 1e-12);
	assert_near(m.score, 2.0 / 12, 1e-12);
	assert_table_is_sound(&msc_tunable_table, &t);
}

/*
 * 10 cold fast blocks above 40 blocks of packs of which half is garbage, or above 25 all alive: 4 + 2 + 1 = 7 or
 * 2.5 + 2.5 + 1 = 6 a block; writing at four times the price 4 + 4 * (2 + 1) = 16 or 2.5 + 4 * (2.5 + 1) = 16.5.
 */
static void dear_writes_prefer_garbage(void **state)
{
	struct msc_tunables t = no_debt();
	struct region_view garbage = { .dirty_blocks = 10, .coldness = 10, .packed_blocks = 40, .garbage_blocks = 20, .packs = 4 };
	struct region_view alive = { .dirty_blocks = 10, .coldness = 10, .packed_blocks = 25, .packs = 4 };
	struct msc g, a;

	(void)state;
	msc_score(&garbage, &t, &g);
	msc_score(&alive, &t, &a);
	assert_near(g.cost, 7, 1e-12);
	assert_near(a.cost, 6, 1e-12);
	t.wear_price = 4;
	msc_score(&garbage, &t, &g);
	msc_score(&alive, &t, &a);
	assert_near(g.cost, 16, 1e-12);
	assert_near(a.cost, 16.5, 1e-12);
	assert_true(g.score > a.score);
}

/* (fast - hot) / (fast + packed) = (10 - 4) / (10 + 20) = 0.2 */
static void hotrap_by_hand(void **state)
{
	struct region_view r = { .dirty_blocks = 6, .clean_blocks = 4, .hot_blocks = 4,
				 .packed_blocks = 20 };

	(void)state;
	assert_near(hotrap_score(&r), 0.2, 1e-12);
}

/*
 * Region 1 gets popular blocks 1024 and 1025 (touched twice); 1026 is touched once and
 * stays unpopular.  Of 4 fast blocks 2 are popular: coldness 2 + 2 * 1/4 = 2.5.
 */
static void buckets_count_popular_blocks(void **state)
{
	struct tracker_tunables tt;
	struct bucket_tunables bt;
	struct region_view r = { .region = 1, .dirty_blocks = 4 };
	struct tracker tr;
	struct buckets b;
	uint64_t mem[64];
	uint16_t bucket_mem[2];

	(void)state;
	assert_table_is_sound(&bucket_tunable_table, &bt);
	tunable_defaults(&tracker_tunable_table, &tt);
	assert_int_equal(tracker_init(&tr, &tt, 8, mem, sizeof(mem)), 0);
	assert_int_equal(buckets_init(&b, 3, bucket_mem, sizeof(bucket_mem)), -ENOMEM);
	assert_int_equal(buckets_init(&b, 2, bucket_mem, sizeof(bucket_mem)), 0);
	tracker_watch(&tr, buckets_watch, &b);
	for (uint64_t block = 1024; block < 1027; block++)
		tracker_touch(&tr, block, 0);
	tracker_touch(&tr, 1024, 0);
	tracker_touch(&tr, 1025, 0);
	tracker_touch(&tr, 1025, 0);
	tracker_touch(&tr, 1024 * 5, 0);
	assert_int_equal(buckets_popular(&b, 0), 0);
	assert_int_equal(buckets_popular(&b, 1), 2);
	assert_int_equal(buckets_popular(&b, 5), 0);
	approximate_view(&r, &bt, buckets_popular(&b, 1));
	assert_int_equal(r.pinned_blocks, 2);
	assert_near(r.coldness, 2.5, 1e-12);
	bt.popular_coldness = 1;
	approximate_view(&r, &bt, 2);
	assert_near(r.coldness, 4, 1e-12);
	tracker_forget(&tr, 1024);
	assert_int_equal(buckets_popular(&b, 1), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(coldness_divides_as_reals),
		cmocka_unit_test(merge_by_hand),
		cmocka_unit_test(append_by_hand),
		cmocka_unit_test(nothing_below_costs_just_the_write),
		cmocka_unit_test(p_of_1_and_no_fast_blocks_are_skipped),
		cmocka_unit_test(clean_slots_cost_nothing),
		cmocka_unit_test(wear_price_lowers_the_score),
		cmocka_unit_test(dear_writes_prefer_garbage),
		cmocka_unit_test(hotrap_by_hand),
		cmocka_unit_test(buckets_count_popular_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
