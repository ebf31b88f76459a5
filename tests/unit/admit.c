// SPDX-License-Identifier: GPL-2.0-or-later
/* Admission at first sight: uniform loads are told from skewed ones early. */
#include "policy_lib.h"

#include "decide/admit.h"

static void uniform_reuse_by_formula(void **state)
{
	(void)state;
	for (double x = 1e-6; x < 100; x *= 1.7)
		assert_near(admit_uniform_reuse(x), 1 - (1 - exp(-x)) / x, 1e-6);
	assert_near(admit_uniform_reuse(1), 0.36787944, 1e-8);	/* 1 / e */
}

/*
 * 95 % of the accesses to 5 % of 1 M blocks, after half a pass over the hot set (25,000): x = 0.475
 * for the hot, reuse 0.95 * u(0.475) = 0.95 * 0.2041 = 0.194; uniform would be u(0.025) = 0.0124.
 */
static void a_hotspot_shows_after_half_a_pass(void **state)
{
	struct admit_room empty = { 0 };
	struct admit_tunables t;

	(void)state;
	tunable_defaults(&admit_tunable_table, &t);
	assert_true(admit_first_sight(&t, &empty, 25000, 1000000, 0.194));
	assert_false(admit_first_sight(&t, &empty, 25000, 1000000, 0.0124));
	assert_false(admit_first_sight(&t, &empty, 25000, 1000000, 0));
	assert_false(admit_first_sight(&t, &empty, 25000, 0, 0.5));
}

static bool filled_below(struct admit_room *r, double emptied, double fill, uint64_t used, uint64_t blocks)
{
	struct admit_tunables t;

	tunable_defaults(&admit_tunable_table, &t);
	t.emptied = emptied;
	admit_watch_room(r, &t, fill, used, blocks);
	return admit_first_sight(&t, r, 25000, 1000000, 0.194);
}

static bool filled_at(struct admit_room *r, double fill, uint64_t used, uint64_t blocks)
{
	return filled_below(r, 0.25, fill, used, blocks);
}

/* Up to nine tenths; then no more, though room is made, until next to nothing is left or the tier has grown. */
static void only_what_was_never_full_is_filled(void **state)
{
	struct admit_room r = { 0 };

	(void)state;
	assert_true(filled_at(&r, 0.9, 0, 100000));
	assert_true(filled_at(&r, 0.9, 89999, 100000));
	assert_false(filled_at(&r, 0.9, 90000, 100000));
	assert_false(filled_at(&r, 0.9, 80000, 100000));
	assert_false(filled_at(&r, 0.9, 22500, 100000));
	assert_true(filled_at(&r, 0.9, 22499, 100000));
	assert_true(filled_at(&r, 0.9, 80000, 100000));
	assert_false(filled_at(&r, 0.9, 90000, 100000));
	assert_false(filled_at(&r, 0.9, 80000, 90000));	/* it shrinks */
	assert_false(filled_at(&r, 0.9, 90000, 100000));
	assert_true(filled_at(&r, 0.9, 90000, 100001));
}

/* ... or until it is half empty. */
static void what_counts_as_emptied_changes_the_outcome(void **state)
{
	struct admit_room r = { 0 };

	(void)state;
	assert_false(filled_below(&r, 0.5, 0.9, 90000, 100000));
	assert_false(filled_below(&r, 0.5, 0.9, 45000, 100000));
	assert_false(filled_below(&r, 0.25, 0.9, 44999, 100000));
	assert_true(filled_below(&r, 0.5, 0.9, 44999, 100000));
}

/* 10 % fast: 20 % of hits are twice a uniform load's. 50 % fast: 25 % of misses are half of one's. */
static void skew_shows_in_hits_or_in_misses(void **state)
{
	struct admit_tunables t;

	(void)state;
	tunable_defaults(&admit_tunable_table, &t);
	assert_true(admit_skewed(&t, 100000000, 1000000, 0.20, 0, 100000));
	assert_false(admit_skewed(&t, 100000000, 1000000, 0.19, 0, 100000));
	assert_true(admit_skewed(&t, 100000000, 1000000, 0.76, 0, 500000));
	assert_false(admit_skewed(&t, 100000000, 1000000, 0.74, 0, 500000));
	assert_false(admit_skewed(&t, 100000000, 1000000, 0.5, 0, 500000));
	assert_false(admit_skewed(&t, 999, 1000000, 1, 0, 100000));
	/* Or the same blocks come again, for longer than an LRU remembers; not where all are fast. */
	assert_true(admit_skewed(&t, 100000000, 1000000, 0.1, 0.2, 100000));
	assert_false(admit_skewed(&t, 100000000, 1000000, 0.1, 0.19, 100000));
	assert_false(admit_skewed(&t, 999, 1000000, 0.1, 0.5, 100000));
	assert_false(admit_skewed(&t, 100000000, 1000000, 0.5, 0.5, 1000000));
	t.lasting = 0.4;
	assert_false(admit_skewed(&t, 100000000, 1000000, 0.1, 0.39, 100000));
	t.lasting = 0;
	assert_false(admit_skewed(&t, 100000000, 1000000, 0.1, 9, 100000));
	t.skew = 1.5;
	assert_true(admit_skewed(&t, 100000000, 1000000, 0.16, 0, 100000));
}

/* 10 % fast: up to 12.5 % of hits are a uniform load's; what has been called one is until hits are 16.25 %. */
static void a_uniform_load_is_known_after_two_passes(void **state)
{
	const struct admit_sample few = { 0 };
	struct admit_tunables t;

	(void)state;
	tunable_defaults(&admit_tunable_table, &t);
	assert_true(admit_uniform(&t, 100000000, few, 1000000, 0.124, 100000, false));
	assert_false(admit_uniform(&t, 100000000, few, 1000000, 0.126, 100000, false));
	assert_true(admit_uniform(&t, 100000000, few, 1000000, 0.16, 100000, true));
	assert_false(admit_uniform(&t, 100000000, few, 1000000, 0.165, 100000, true));
	/* A stream has no hits at all. */
	assert_true(admit_uniform(&t, 100000000, few, 1000000, 0, 100000, false));
	assert_false(admit_uniform(&t, 199999, few, 1000000, 0.1, 100000, false));
	/* Half of it is fast: 60 % of hits are 1.25 times as few misses. */
	assert_true(admit_uniform(&t, 100000000, few, 1000000, 0.59, 500000, false));
	assert_false(admit_uniform(&t, 100000000, few, 1000000, 0.61, 500000, false));
	assert_false(admit_uniform(&t, 100000000, few, 1000000, 0.1, 1000000, false));
	t.uniform = 0;
	assert_false(admit_uniform(&t, 100000000, few, 1000000, 0.1, 100000, false));
	t.uniform = 1.5;
	assert_true(admit_uniform(&t, 100000000, few, 1000000, 0.149, 100000, false));
}

static bool told(const struct admit_tunables *t, double sampled, bool all, double hit, bool before)
{
	const struct admit_sample of = { .sampled = sampled, .all = all };

	return admit_uniform(t, 40000, of, 1000000, hit, 100000, before);
}

/*
 * Of 40,000 accesses to a million blocks 2 % meet one seen before, if the load is uniform: of 4,000 that were sampled 79.
 * Those are enough to tell 1.25 times as many from; 59 of 3,000 are not.
 */
static void a_uniform_load_is_known_by_the_hits_it_would_have(void **state)
{
	struct admit_tunables t;

	(void)state;
	tunable_defaults(&admit_tunable_table, &t);
	assert_near(admit_uniform_reuse(0.04), 0.0197, 1e-4);
	assert_true(told(&t, 4000, true, 0.0245, false));
	assert_false(told(&t, 4000, true, 0.0248, false));
	assert_true(told(&t, 4000, true, 0, false));
	assert_false(told(&t, 3000, true, 0.0197, false));
	assert_true(told(&t, 3000, true, 0.0318, true));
	assert_false(told(&t, 3000, true, 0.0322, true));
	assert_true(told(&t, 1600, true, 0.0197, true));	/* known before */
	/* 259 hits are twice as exact. */
	assert_true(told(&t, 13100, true, 0.0282, true));
	assert_false(told(&t, 13100, true, 0.0286, true));
	/* Of a sample of blocks the hits are known to a 128th of all accesses: not of 2 %, but of 10 %. */
	assert_false(told(&t, 16384, false, 0.0197, false));
	assert_true(told(&t, 16384, false, 0.0197, true));
	assert_true(told(&t, 165000, false, 0.0197, false));
	t.uniform_hits = 59;
	assert_true(told(&t, 3000, true, 0.0197, false));
	t.min_accesses = 40001;
	assert_false(told(&t, 3000, true, 0.0197, false));
}

static void each_tunable_changes_the_outcome(void **state)
{
	const struct admit_room empty = { 0 };
	struct admit_room r = empty;
	struct admit_tunables t;

	(void)state;
	assert_table_is_sound(&admit_tunable_table, &t);
	assert_near(t.fill, 0.9, 1e-9);		/* what only_what_was_never_full_is_filled() goes by */
	assert_false(filled_at(&r, t.fill, 90000, 100000));
	r = empty;
	assert_true(filled_at(&r, 0.95, 90000, 100000));
	assert_true(admit_first_sight(&t, &empty, 25000, 1000000, 0.1));
	t.skew = 10;
	assert_false(admit_first_sight(&t, &empty, 25000, 1000000, 0.1));
	t.skew = 2;
	t.min_accesses = 30000;
	assert_false(admit_first_sight(&t, &empty, 25000, 1000000, 0.1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uniform_reuse_by_formula),
		cmocka_unit_test(a_hotspot_shows_after_half_a_pass),
		cmocka_unit_test(only_what_was_never_full_is_filled),
		cmocka_unit_test(what_counts_as_emptied_changes_the_outcome),
		cmocka_unit_test(skew_shows_in_hits_or_in_misses),
		cmocka_unit_test(a_uniform_load_is_known_after_two_passes),
		cmocka_unit_test(a_uniform_load_is_known_by_the_hits_it_would_have),
		cmocka_unit_test(each_tunable_changes_the_outcome),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
