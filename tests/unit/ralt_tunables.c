// SPDX-License-Identifier: GPL-2.0-or-later
/* What the store's tunables change; those of a record are in ralt_record.c, those of the hot set in ralt_tune.c. */
#include "ralt_lib.h"

#include "ralt/file_store.h"

/* A store of its own with one tunable changed, after a hotspot; false positives among cold blocks in @wrong. */
static struct ralt_stats store_with(const char *name, double value, int *wrong)
{
	struct bench b;
	struct prng p = { 8 };
	struct ralt_stats st;

	bench_small(&b);
	if (name)
		assert_int_equal(tunable_set(&ralt_tunable_table, &b.config.tunables, name, value), 0);
	bench_open(&b);
	load_hotspot(&b, &p, 20000, 500);
	ralt_flush(b.r);
	finish_work(&b);
	*wrong = 0;
	for (uint64_t i = 10000; i < 100000; i++)
		*wrong += ralt_is_hot(b.r, i);
	ralt_stats(b.r, &st);
	bench_exit(&b);
	return st;
}

/*
 * 3000 blocks: all of them are in a sample of 4096, one in 64 in one of 64 (47 of them, 7 give or take).  So are they when
 * they are counted anew after opening.
 */
static void sizes_are_found_from_so_many_samples(void **state)
{
	static const uint32_t samples[2] = { 4096, 64 };

	(void)state;
	for (int few = 0; few < 2; few++) {
		struct bench b;

		bench_small(&b);
		b.config.tunables.samples = samples[few];
		bench_open(&b);
		for (uint64_t i = 0; i < 3000; i++)
			touch(&b, i * 7);
		for (int again = 0; again < 2; again++) {
			assert_int_equal(b.r->sample.shift, few ? 6 : 0);
			assert_true(b.r->sample.count <= samples[few]);
			assert_near(sample_census(&b.r->sample, &b.r->judge, NULL).tracked, 3000, few ? 1350 : 0);
			assert_int_equal(ralt_close(b.r), 0);
			bench_open(&b);
			finish_work(&b);
		}
		bench_exit(&b);
	}
}

static void each_tunable_of_the_files_changes_the_outcome(void **state)
{
	int plain_wrong, wrong;
	struct ralt_stats plain = store_with(NULL, 0, &plain_wrong), st;

	(void)state;
	store_with("bloom_bits", 2, &wrong);
	assert_true(wrong > 10 * (plain_wrong + 10));
	st = store_with("buffer_records", 1024, &wrong);
	assert_true(st.merges < plain.merges);
	st = store_with("young_runs", 16, &wrong);
	assert_true(st.records_written < plain.records_written);
	st = store_with("tracked_share", 0.5, &wrong);
	assert_true(st.physical_limit < plain.physical_limit);
	st = store_with("physical_ratio", 100, &wrong);
	assert_true(st.physical_limit > plain.physical_limit);
}

/* After 6000 blocks: the deepest level, and pages for each record. */
static void files_of(const char *name, double value, uint32_t *level, uint32_t *pages)
{
	struct bench b;

	bench_small(&b);
	assert_int_equal(tunable_set(&ralt_tunable_table, &b.config.tunables, name, value), 0);
	b.config.tunables.physical_ratio = 1000;	/* nothing is evicted */
	bench_open(&b);
	for (uint64_t i = 0; i < 6000; i++)
		touch(&b, i * 7);
	assert_int_equal(ralt_flush(b.r), 0);
	finish_work(&b);
	*level = *pages = 0;
	for (uint32_t i = 0; i < b.r->run_count; i++) {
		*level = b.r->runs[i].level > *level ? b.r->runs[i].level : *level;
		*pages += b.r->runs[i].footer.pages;
	}
	bench_exit(&b);
}

/* A buffer of 256: with T = 10 level 1 holds 2560 and level 2 all of them; with T = 2 level 4 holds 4096, and level 5 is begun. */
static void a_small_fanout_makes_more_levels(void **state)
{
	uint32_t few, many, pages;

	(void)state;
	files_of("fanout", 10, &few, &pages);
	files_of("fanout", 2, &many, &pages);
	print_message("deepest level %u, with a fan-out of two %u\n", few, many);
	assert_int_equal(few, 2);
	assert_true(many >= 4);
}

/* 255 records, or 4095, to a page. */
static void pages_are_as_large_as_it_is_said(void **state)
{
	uint32_t level, small, large;

	(void)state;
	files_of("page_bytes", 4096, &level, &small);
	files_of("page_bytes", 65536, &level, &large);
	print_message("%u pages, or %u\n", small, large);
	assert_in_range(small, 6000 / 255 + 1, 6000 / 255 + 8);
	assert_in_range(large, 2, 8);
}

/* 12000 blocks once each, of which 4000 may be kept from now on. */
static double kept_after_eviction(double share)
{
	struct ralt_stats st;
	struct bench b;

	bench_small(&b);
	b.config.tunables.samples = 32768;	/* each of them is counted */
	b.config.tunables.evict_share = share;
	b.config.tunables.tracked_share = 100;
	bench_open(&b);
	for (uint64_t i = 0; i < 12000; i++)
		touch(&b, i * 7);
	/* three periods later their counters have run out, and scores alone decide */
	for (int i = 0; i < 4500; i++)
		touch(&b, 3);
	b.r->config.tunables.tracked_share = 2;
	assert_int_equal(ralt_flush(b.r), 0);
	finish_work(&b);
	ralt_stats(b.r, &st);
	bench_exit(&b);
	assert_int_equal(st.physical_limit, 4000);
	assert_int_equal(st.evictions, 1);
	return st.tracked;
}

static void an_eviction_leaves_all_but_a_share_of_what_may_be_kept(void **state)
{
	double tenth = kept_after_eviction(0.1), half = kept_after_eviction(0.5);

	(void)state;
	print_message("kept %.0f, with half of it evicted %.0f\n", tenth, half);
	/* those of a tick, 200, are alike */
	assert_near(tenth, 3600, 200);
	assert_near(half, 2000, 200);
}

static int copy_one(void *ctx, const struct ralt_heat *h)
{
	*(struct ralt_heat *)ctx = *h;
	return 0;
}

/* Three ticks of 200 accesses later one access is worth 0.5^3, or 0.999^3. */
static void a_score_decays_by_alpha_with_each_tick(void **state)
{
	(void)state;
	for (int half = 0; half < 2; half++) {
		struct ralt_heat heat = { 0 };
		struct bench b;

		bench_small(&b);
		b.config.tunables.alpha = half ? 0.5 : 0.999;
		bench_open(&b);
		touch(&b, 7);
		for (uint64_t i = 0; i < 650; i++)
			touch(&b, 1000 + i);
		assert_int_equal(ralt_scan(b.r, 7, 1, false, copy_one, &heat), 0);
		assert_near(heat.score, half ? 0.125 : 0.997, 0.002);
		bench_exit(&b);
	}
}

/* 40 accesses, one in 50: ten ticks of 200 accesses, twenty of 100, one of 2000. */
static void a_score_counts_each_tick_once(void **state)
{
	static const struct {
		double share, score;
	} want[] = { { 0.1, 10 }, { 0.05, 20 }, { 1, 1 } };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct ralt_heat heat = { 0 };
		struct bench b;

		bench_small(&b);
		b.config.tunables.alpha = 0.9999;
		b.config.tunables.tick_share = want[i].share;
		bench_open(&b);
		for (uint64_t n = 0; n < 1990; n++)
			touch(&b, n % 50 ? 1000 + n : 7);
		assert_int_equal(ralt_scan(b.r, 7, 1, false, copy_one, &heat), 0);
		assert_near(heat.score, want[i].score, 0.05);
		bench_exit(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_found_from_so_many_samples),
		cmocka_unit_test(each_tunable_of_the_files_changes_the_outcome),
		cmocka_unit_test(a_small_fanout_makes_more_levels),
		cmocka_unit_test(pages_are_as_large_as_it_is_said),
		cmocka_unit_test(an_eviction_leaves_all_but_a_share_of_what_may_be_kept),
		cmocka_unit_test(a_score_decays_by_alpha_with_each_tick),
		cmocka_unit_test(a_score_counts_each_tick_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
