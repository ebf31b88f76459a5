// SPDX-License-Identifier: GPL-2.0-or-later
/* The mapper: pinning threshold and sampling at the boundary clock value. */
#include "policy_lib.h"

#include "decide/mapper.h"

static void with_population(struct tracker *tr, uint64_t v0, uint64_t v1, uint64_t v2, uint64_t v3)
{
	memset(tr, 0, sizeof(*tr));
	tr->population[0] = v0;
	tr->population[1] = v1;
	tr->population[2] = v2;
	tr->population[3] = v3;
	tr->count = v0 + v1 + v2 + v3;
}

/* 40 tracked, 10 per value; 70 % = 28: values 3, 2 whole (20), then (28 - 20) / 10 = 0.8. */
static void boundary_value_is_sampled(void **state)
{
	struct mapper_tunables t;
	struct tracker tr;
	struct mapper m;
	struct prng p = { 3 };
	int pinned = 0;

	(void)state;
	tunable_defaults(&mapper_tunable_table, &t);
	with_population(&tr, 10, 10, 10, 10);
	mapper_refresh(&m, &t, &tr, &p);
	assert_near(m.probability[3], 1, 0);
	assert_near(m.probability[2], 1, 0);
	assert_near(m.probability[1], 0.8, 1e-12);
	assert_near(m.probability[0], 0, 0);
	for (uint64_t b = 0; b < 100000; b++)
		pinned += mapper_pins(&m, b, 1);
	assert_near(pinned / 100000.0, 0.8, 0.01);
	assert_true(mapper_pins(&m, 5, 3));
	assert_false(mapper_pins(&m, 5, 0));
	assert_false(mapper_pins(&m, 5, TRACKER_NO_VALUE));
}

/* 100 at value 3 and 70 % of 100: the boundary is the top value itself. */
static void top_value_alone_can_be_the_boundary(void **state)
{
	struct mapper_tunables t;
	struct tracker tr;
	struct mapper m;
	struct prng p = { 3 };

	(void)state;
	tunable_defaults(&mapper_tunable_table, &t);
	with_population(&tr, 0, 0, 0, 100);
	mapper_refresh(&m, &t, &tr, &p);
	assert_near(m.probability[3], 0.7, 1e-12);
}

static void answers_hold_within_a_refresh_and_change_with_it(void **state)
{
	struct mapper_tunables t;
	struct tracker tr;
	struct mapper a, b;
	struct prng p = { 3 };
	int changed = 0;

	(void)state;
	tunable_defaults(&mapper_tunable_table, &t);
	with_population(&tr, 10, 10, 10, 10);
	mapper_refresh(&a, &t, &tr, &p);
	mapper_refresh(&b, &t, &tr, &p);
	for (uint64_t block = 0; block < 1000; block++) {
		assert_int_equal(mapper_pins(&a, block, 1), mapper_pins(&a, block, 1));
		changed += mapper_pins(&a, block, 1) != mapper_pins(&b, block, 1);
	}
	/* Two independent draws at 0.8 differ with 2 * 0.8 * 0.2 = 0.32. */
	assert_near(changed / 1000.0, 0.32, 0.06);
}

/* 40 at 10 per value: 0.3 pins 12 = value 3 and a fifth of value 2; 1.0 pins all tracked. */
static void threshold_changes_the_outcome(void **state)
{
	struct mapper_tunables t;
	struct tracker tr;
	struct mapper m;
	struct prng p = { 3 };

	(void)state;
	assert_table_is_sound(&mapper_tunable_table, &t);
	with_population(&tr, 10, 10, 10, 10);
	t.pinning_threshold = 0.3;
	mapper_refresh(&m, &t, &tr, &p);
	assert_near(m.probability[2], 0.2, 1e-12);
	assert_near(m.probability[1], 0, 0);
	t.pinning_threshold = 1;
	mapper_refresh(&m, &t, &tr, &p);
	assert_true(mapper_pins(&m, 1, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(boundary_value_is_sampled),
		cmocka_unit_test(top_value_alone_can_be_the_boundary),
		cmocka_unit_test(answers_hold_within_a_refresh_and_change_with_it),
		cmocka_unit_test(threshold_changes_the_outcome),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
