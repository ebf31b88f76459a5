// SPDX-License-Identifier: GPL-2.0-or-later
/* Hill climbing: finds a peak, holds it under noise, notices that it moved. */
#include "policy_lib.h"

#include "decide/climb.h"
#include "decide/prng.h"

/* A hill of height 1 with its top at @top, sides of slope 1. */
static double hill(double x, double top)
{
	return 1 - fabs(x - top);
}

static double climb_for(struct climb *c, const struct climb_tunables *t, double top, int periods,
			double noise, struct prng *p)
{
	double sum = 0;

	for (int i = 0; i < periods; i++) {
		climb_step(c, t, hill(c->value, top) + noise * (prng_unit(p) - 0.5));
		if (i >= periods / 2)
			sum += fabs(c->value - top) / (periods - periods / 2);
	}
	return sum;
}

static void finds_the_top_from_either_side(void **state)
{
	struct climb_tunables t;
	struct climb c;
	struct prng p = { 1 };

	(void)state;
	tunable_defaults(&climb_tunable_table, &t);
	for (double start = 0.1; start < 0.95; start += 0.1) {
		assert_int_equal(climb_init(&c, &t, start), 0);
		assert_true(climb_for(&c, &t, 0.55, 60, 0, &p) < 0.06);
	}
}

static void stays_near_the_top_under_noise(void **state)
{
	struct climb_tunables t;
	struct climb c;
	struct prng p = { 2 };

	(void)state;
	tunable_defaults(&climb_tunable_table, &t);
	t.noise = 0.02;
	climb_init(&c, &t, 0.7);
	assert_true(climb_for(&c, &t, 0.4, 400, 0.02, &p) < 0.1);
}

static void follows_a_top_that_moves(void **state)
{
	struct climb_tunables t;
	struct climb c;
	struct prng p = { 3 };

	(void)state;
	tunable_defaults(&climb_tunable_table, &t);
	climb_init(&c, &t, 0.7);
	climb_for(&c, &t, 0.3, 100, 0, &p);
	assert_true(climb_for(&c, &t, 0.8, 200, 0, &p) < 0.1);
}

/* On a flat hill the value rests instead of wandering to an end. */
static void a_flat_hill_leaves_it_near_the_start(void **state)
{
	struct climb_tunables t;
	struct climb c;

	(void)state;
	tunable_defaults(&climb_tunable_table, &t);
	climb_init(&c, &t, 0.7);
	for (int i = 0; i < 400; i++) {
		climb_step(&c, &t, 0.5);
		assert_near(c.value, 0.7, t.first_step + 1e-9);
	}
}

static double value_towards(double top, const struct climb_tunables *t, int periods)
{
	struct climb c;

	assert_int_equal(climb_init(&c, t, 0.5), 0);
	for (int i = 0; i < periods; i++)
		climb_step(&c, t, hill(c.value, top) * 0.5);
	return c.value;
}

static double value_after(const struct climb_tunables *t, int periods)
{
	return value_towards(0.9, t, periods);
}

static void each_tunable_changes_the_outcome(void **state)
{
	struct climb_tunables t;
	struct climb c;

	(void)state;
	tunable_defaults(&climb_tunable_table, &t);
	assert_near(value_after(&t, 3), 0.8, 1e-9);	/* 0.5 + 3 * 0.1 */
	t.first_step = 0.05;
	assert_near(value_after(&t, 3), 0.65, 1e-9);
	tunable_defaults(&climb_tunable_table, &t);
	t.max = 0.6;			/* 0.6, then the wall: back down */
	assert_near(value_after(&t, 2), 0.5, 1e-9);
	tunable_defaults(&climb_tunable_table, &t);
	t.noise = 1;			/* every slope looks flat: + 0.1, - 0.05, + 0.025 */
	assert_near(value_after(&t, 3), 0.525, 1e-9);
	t.last_step = 0.06;		/* the second step is already below it: where it began */
	assert_near(value_after(&t, 3), 0.5, 1e-9);
	t.quiet_periods = 1;		/* ... and the third starts a fresh search */
	assert_near(value_after(&t, 3), 0.4, 1e-9);
	tunable_defaults(&climb_tunable_table, &t);
	assert_near(value_towards(0.1, &t, 3), 0.4, 1e-9);	/* 0.6 is worse, 0.45 is better */
	t.min = 0.42;			/* the wall comes before 0.4: back up from 0.45 */
	assert_near(value_towards(0.1, &t, 3), 0.5, 1e-9);
	t.min = 0.6;
	assert_int_equal(climb_init(&c, &t, 0.5), -EINVAL);
	t.min = 0.95;
	assert_int_equal(climb_init(&c, &t, 0.95), -EINVAL);
	for (size_t i = 0; i < climb_tunable_table.count; i++)
		assert_true(climb_tunable_table.rows[i].what[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_top_from_either_side),
		cmocka_unit_test(stays_near_the_top_under_noise),
		cmocka_unit_test(follows_a_top_that_moves),
		cmocka_unit_test(a_flat_hill_leaves_it_near_the_start),
		cmocka_unit_test(each_tunable_changes_the_outcome),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
