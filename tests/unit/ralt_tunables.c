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
	st = store_with("fanout", 2, &wrong);
	assert_true(st.records_written != plain.records_written);
	st = store_with("page_bytes", 65536, &wrong);
	assert_true(st.bytes_on_disk != plain.bytes_on_disk);
	st = store_with("tracked_share", 0.5, &wrong);
	assert_true(st.physical_limit < plain.physical_limit);
	st = store_with("physical_ratio", 100, &wrong);
	assert_true(st.physical_limit > plain.physical_limit);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_found_from_so_many_samples),
		cmocka_unit_test(each_tunable_of_the_files_changes_the_outcome),
		cmocka_unit_test(a_score_decays_by_alpha_with_each_tick),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
