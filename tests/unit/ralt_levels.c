// SPDX-License-Identifier: GPL-2.0-or-later
/* Planning merges, merging sources, and prefix sums of one run. */
#include "policy_lib.h"

#include "decide/prng.h"
#include "ralt/levels.h"
#include "ralt/merge.h"
#include "ralt/run.h"

/* Buffers of 100, T = 10: level 1 holds 1000, level 2 10000. */
static struct ralt_tunables tunables(void)
{
	struct ralt_tunables t;

	tunable_defaults(&ralt_tunable_table, &t);
	t.buffer_records = 100;
	return t;
}

static void merges_are_planned_by_size(void **state)
{
	struct ralt_tunables t = tunables();
	struct level_run runs[8] = { { 2, 9000 }, { 1, 900 }, { 0, 100 }, { 0, 100 }, { 0, 100 } };
	struct merge_plan p;

	(void)state;
	plan_merge(&p, &t, runs, 5);		/* three young runs: wait for the fourth */
	assert_int_equal(p.inputs, 0);
	runs[5] = (struct level_run){ 0, 100 };
	plan_merge(&p, &t, runs, 6);
	assert_int_equal(p.inputs, 5);		/* level 1 and the four */
	assert_int_equal(p.input[0], 1);
	assert_int_equal(p.level, 1);
	runs[1].records = 1001;			/* over its capacity: down first */
	plan_merge(&p, &t, runs, 6);
	assert_int_equal(p.inputs, 2);
	assert_int_equal(p.input[0], 0);
	assert_int_equal(p.level, 2);
	runs[1].records = 900;
	t.young_runs = 5;
	plan_merge(&p, &t, runs, 6);
	assert_int_equal(p.inputs, 0);
	t.young_runs = 4;
	t.fanout = 8;				/* level 1 holds 800 now */
	plan_merge(&p, &t, runs, 6);
	assert_int_equal(p.level, 3);		/* and level 2 6400: the deepest goes first */
	plan_complete_merge(&p, &t, runs, 6);
	assert_int_equal(p.inputs, 6);
	assert_int_equal(p.level, 3);		/* 10300 records need 51200 */
	assert_true(p.complete);
}

struct list {
	struct ralt_record records[64];
	uint32_t count;
	uint32_t at;
	int fail_at;
};

static int list_next(void *ctx, struct ralt_record *r)
{
	struct list *l = ctx;

	if (l->fail_at && (int)l->at == l->fail_at)
		return -EBADMSG;
	if (l->at == l->count)
		return 0;
	*r = l->records[l->at++];
	return 1;
}

static void merging_yields_each_block_once_in_order(void **state)
{
	struct ralt_tunables t = tunables();
	struct ralt_sizes s;
	struct ralt_decay d;
	struct ralt_judge j;
	static struct list lists[5];
	struct merge_source sources[5];
	struct forget_range mem[4];
	struct forget f;
	static struct merge m;
	struct ralt_record r;
	struct prng p = { 1 };
	bool want[300] = { false };
	int got, seen = 0, expected = 0;
	uint64_t last = 0;

	(void)state;
	ralt_sizes_of(&s, &t, 1000);
	ralt_decay_init(&d, t.alpha);
	ralt_judge_init(&j, &t, &s, &d);
	forget_init(&f, mem, 4);
	assert_int_equal(forget_add(&f, 100, 120, 1), 0);
	for (int i = 0; i < 5; i++) {
		uint64_t block = 1;

		lists[i] = (struct list){ .count = 64 };
		for (int n = 0; n < 64; n++, block += 1 + prng_below(&p, 4)) {
			/* The newest source saw its accesses after the discard. */
			lists[i].records[n] = (struct ralt_record){
				.block = block, .generation = i == 4, .score = 1, .tick = (uint32_t)i,
			};
			want[block] |= i == 4 || block < 100 || block >= 120;
		}
		sources[i] = (struct merge_source){ list_next, &lists[i] };
	}
	assert_int_equal(merge_begin(&m, &j, &f, sources, 5), 0);
	while ((got = merge_next(&m, &r)) > 0) {
		assert_true(r.block > last || !seen);
		assert_true(want[r.block]);
		last = r.block;
		seen++;
	}
	assert_int_equal(got, 0);
	for (int i = 0; i < 300; i++)
		expected += want[i];
	assert_int_equal(seen, expected);
	assert_int_equal(m.consumed, 5 * 64);
	/* An error names its source. */
	for (int i = 0; i < 5; i++)
		lists[i].at = 0;
	lists[3].fail_at = 10;
	got = merge_begin(&m, &j, &f, sources, 5);
	while (!got || got == 1)
		got = merge_next(&m, &r);
	assert_int_equal(got, -EBADMSG);
	assert_int_equal(m.failed, 3);
}

/* Pages start at blocks 0, 100, 300 with 10, 20, 5 hot blocks: sums are exact at page borders. */
static void prefix_sums_by_hand(void **state)
{
	struct run_index_entry pages[3] = { { 0, 0, 0 }, { 100, 10, 0 }, { 300, 30, 0 } };
	struct run_index r = { .pages = pages, .page_count = 3, .hot = 35 };

	(void)state;
	assert_int_equal(run_page_of(&r, 0), 0);
	assert_int_equal(run_page_of(&r, 299), 1);
	assert_int_equal(run_page_of(&r, 9999), 2);
	assert_near(run_hot_estimate(&r, 0, 100), 10, 1e-9);
	assert_near(run_hot_estimate(&r, 100, 300), 20, 1e-9);
	assert_near(run_hot_estimate(&r, 0, 10000), 35, 1e-9);
	assert_near(run_hot_estimate(&r, 150, 250), 10, 1e-9);	/* half of page 1's span */
	assert_near(run_hot_estimate(&r, 250, 150), 0, 0);
	pages[0].first_block = 50;
	assert_int_equal(run_page_of(&r, 49), 3);
	assert_false(run_maybe_hot(&r, 49));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(merges_are_planned_by_size),
		cmocka_unit_test(merging_yields_each_block_once_in_order),
		cmocka_unit_test(prefix_sums_by_hand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
