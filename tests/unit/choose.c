// SPDX-License-Identifier: GPL-2.0-or-later
/* Power-of-k: each rule picks what it says, k matters, nothing to demote is no choice. */
#include "policy_lib.h"

#include "decide/choose.h"

#define REGIONS	64

/* Region i: coldness i + 1, age REGIONS - i, hot fewer the higher; 63 is the best by MSC. */
static bool view(void *ctx, uint64_t i, struct region_view *v)
{
	(void)ctx;
	*v = (struct region_view){
		.region = i, .dirty_blocks = 100, .coldness = (double)i + 1,
		.age = REGIONS - i, .hot_blocks = i == 40 ? 0 : 90,
	};
	return true;
}

static bool all_pinned(void *ctx, uint64_t i, struct region_view *v)
{
	view(ctx, i, v);
	v->pinned_blocks = 100;
	return true;
}

static bool all_hot(void *ctx, uint64_t i, struct region_view *v)
{
	view(ctx, i, v);
	v->hot_blocks = 100;
	return true;
}

static bool all_gone(void *ctx, uint64_t i, struct region_view *v)
{
	(void)ctx;
	(void)i;
	(void)v;
	return false;
}

static uint64_t pick(enum choose_rule rule, uint32_t k, choose_view_fn fn)
{
	struct choose_tunables t = { k };
	struct msc_tunables m;
	struct prng p = { 11 };
	struct choice c;

	tunable_defaults(&msc_tunable_table, &m);
	assert_int_equal(choose_region(&c, rule, &t, &m, REGIONS, fn, NULL, &p), 0);
	assert_int_equal(c.looked_at, k);
	return c.view.region;
}

/* k = 1024 draws from 64 regions miss a given one with (63/64)^1024 < 1e-7. */
static void every_rule_finds_its_best(void **state)
{
	(void)state;
	assert_int_equal(pick(CHOOSE_PRECISE, 1024, view), 63);
	assert_int_equal(pick(CHOOSE_APPROX, 1024, view), 63);
	assert_int_equal(pick(CHOOSE_OLDEST, 1024, view), 0);
	assert_int_equal(pick(CHOOSE_HOTRAP, 1024, view), 40);
	assert_int_equal(pick(CHOOSE_RANDOM, 1024, view), pick(CHOOSE_RANDOM, 1, view));
}

static void hotrap_takes_the_oldest_without_benefits(void **state)
{
	(void)state;
	assert_int_equal(pick(CHOOSE_HOTRAP, 1024, all_hot), 0);
}

static void nothing_to_demote_is_no_choice(void **state)
{
	struct choose_tunables t;
	struct msc_tunables m;
	struct prng p = { 1 };
	struct choice c;

	(void)state;
	assert_table_is_sound(&choose_tunable_table, &t);
	tunable_defaults(&msc_tunable_table, &m);
	assert_int_equal(choose_region(&c, CHOOSE_PRECISE, &t, &m, REGIONS, all_pinned, NULL, &p),
			 -ENOENT);
	assert_int_equal(c.skipped, t.candidates);
	assert_int_equal(choose_region(&c, CHOOSE_RANDOM, &t, &m, REGIONS, all_pinned, NULL, &p),
			 -ENOENT);
	assert_int_equal(choose_region(&c, CHOOSE_PRECISE, &t, &m, REGIONS, all_gone, NULL, &p),
			 -ENOENT);
	assert_int_equal(choose_region(&c, CHOOSE_PRECISE, &t, &m, 0, view, NULL, &p), -ENOENT);
}

/* The mean of the best of k uniform draws is about k / (k + 1): 0.5, 0.89, 0.97 of 64. */
static void more_candidates_choose_better(void **state)
{
	double mean[3] = { 0 };
	const uint32_t ks[3] = { 1, 8, 32 };
	struct msc_tunables m;
	struct prng p = { 5 };

	(void)state;
	tunable_defaults(&msc_tunable_table, &m);
	for (int j = 0; j < 3; j++) {
		struct choose_tunables t = { ks[j] };
		struct choice c;

		for (int i = 0; i < 2000; i++) {
			choose_region(&c, CHOOSE_PRECISE, &t, &m, REGIONS, view, NULL, &p);
			mean[j] += (double)c.view.region / 2000 / (REGIONS - 1);
		}
	}
	assert_near(mean[0], 0.50, 0.03);
	assert_near(mean[1], 0.89, 0.02);
	assert_near(mean[2], 0.97, 0.02);
}

static void rules_have_names(void **state)
{
	(void)state;
	assert_string_equal(choose_rule_name(CHOOSE_APPROX), "approx");
	assert_string_equal(choose_rule_name(CHOOSE_HOTRAP), "hotrap");
	assert_null(choose_rule_name(CHOOSE_RULES));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rule_finds_its_best),
		cmocka_unit_test(hotrap_takes_the_oldest_without_benefits),
		cmocka_unit_test(nothing_to_demote_is_no_choice),
		cmocka_unit_test(more_candidates_choose_better),
		cmocka_unit_test(rules_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
