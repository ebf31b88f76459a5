// SPDX-License-Identifier: GPL-2.0-or-later
/* Do no harm: moves that do not repay stop, say why, and are tried again ever more rarely. */
#include "policy_lib.h"

#include "decide/governor.h"
#include "decide/repay.h"

static const struct governor_epoch good = {
	.promoted = 1000, .saved_ns = 2e9, .spent_ns = 1e9, .demoted = 1000, .regretted = 10, .skewed = true,
};

static void good_moves_go_on(void **state)
{
	struct governor_tunables t;
	struct governor g;

	(void)state;
	tunable_defaults(&governor_tunable_table, &t);
	governor_init(&g);
	for (int i = 0; i < 100; i++)
		governor_judge(&g, &t, &good);
	assert_true(governor_allows_up(&g) && governor_allows_down(&g));
	assert_int_equal(g.up.stops + g.down.stops, 0);
}

/* Rests of 1, 2, 4, ... 64 epochs, a trial after each. */
static void unpaid_promotions_rest_ever_longer(void **state)
{
	struct governor_tunables t;
	struct governor_epoch bad = good;
	struct governor g;

	(void)state;
	tunable_defaults(&governor_tunable_table, &t);
	governor_init(&g);
	bad.saved_ns = 0.9e9;
	for (uint32_t rest = 1, round = 0; round < 9; round++) {
		governor_judge(&g, &t, &bad);
		assert_int_equal(g.up.reason, GOVERNOR_UNPAID);
		for (uint32_t i = 0; i < rest; i++) {
			assert_false(governor_allows_up(&g));
			assert_true(governor_allows_down(&g));
			governor_judge(&g, &t, &bad);
		}
		assert_true(governor_allows_up(&g));
		rest = rest * 2 < t.max_rest ? rest * 2 : t.max_rest;
	}
	/* One good trial, and the next failure is a first one again. */
	governor_judge(&g, &t, &good);
	governor_judge(&g, &t, &bad);
	assert_int_equal(g.up.rest, 1);
}

/* What room cost beyond plain appends must come back as hits, unless it is next to nothing. */
static void room_that_costs_more_than_it_gains_stops(void **state)
{
	struct governor_tunables t;
	struct governor_epoch e = good;
	struct governor g;

	(void)state;
	tunable_defaults(&governor_tunable_table, &t);
	governor_init(&g);
	e.user_ns = 10e9;
	e.overhead_ns = 0.19e9;
	e.gained_ns = -5e9;
	governor_judge(&g, &t, &e);
	assert_true(governor_allows_down(&g));
	e.overhead_ns = 0.21e9;
	e.gained_ns = 0.22e9;
	governor_judge(&g, &t, &e);
	assert_true(governor_allows_down(&g));
	e.gained_ns = 0.20e9;
	t.max_overhead = 0.03;
	governor_judge(&g, &t, &e);
	assert_true(governor_allows_down(&g));
	t.max_overhead = 0.02;
	governor_judge(&g, &t, &e);
	assert_int_equal(g.down.reason, GOVERNOR_COSTLY);
	assert_true(governor_allows_up(&g));
}

/* A tenth of the epoch has gone: lost is what ten times the gain could not make good. */
static void a_lost_epoch_ends_early(void **state)
{
	struct governor_epoch e = { .user_ns = 1e9, .overhead_ns = 1.1e9, .gained_ns = 0.1e9, .demoted = 1000 };
	struct governor_tunables t;
	struct governor g;

	(void)state;
	tunable_defaults(&governor_tunable_table, &t);
	governor_init(&g);
	assert_false(governor_step(&g, &t, t.epoch_ops / 20 - 1));
	assert_false(governor_lost(&g, &t, &e));
	governor_step(&g, &t, t.epoch_ops / 20 + 1);
	assert_true(governor_lost(&g, &t, &e));
	e.gained_ns = 0.12e9;
	assert_false(governor_lost(&g, &t, &e));
	e.gained_ns = -1e9;
	assert_true(governor_lost(&g, &t, &e));
	e.overhead_ns = 0.19e9;		/* 2 % of what the users' time will be */
	assert_false(governor_lost(&g, &t, &e));
	e.overhead_ns = 1.1e9;
	governor_judge(&g, &t, &e);
	assert_int_equal(g.down.reason, GOVERNOR_COSTLY);
	assert_int_equal(g.ops, 0);
	governor_step(&g, &t, t.epoch_ops / 2);
	assert_false(governor_lost(&g, &t, &e));	/* nothing moves any more */
}

/* What went down is read again, but so is all that lies there: another choice would have been read as well. */
static void a_scan_is_no_regret(void **state)
{
	struct governor_tunables t;
	struct governor_epoch e = good;
	struct governor g;

	(void)state;
	tunable_defaults(&governor_tunable_table, &t);
	governor_init(&g);
	e.regretted = e.demoted;
	e.chance = 1;
	governor_judge(&g, &t, &e);
	assert_int_equal(g.down.reason, GOVERNOR_FREE);
	/* a tenth of what lies there was read, but three of five of those that went down */
	e.regretted = 600;
	e.chance = 0.1;
	governor_judge(&g, &t, &e);
	assert_int_equal(g.down.reason, GOVERNOR_REGRET);
}

static void says_why(void **state)
{
	struct governor_tunables t;
	struct governor_epoch bad = good;
	struct governor g;

	(void)state;
	tunable_defaults(&governor_tunable_table, &t);
	governor_init(&g);
	bad.saved_ns = 0;
	bad.skewed = false;
	bad.regretted = 900;
	governor_judge(&g, &t, &bad);
	assert_int_equal(g.up.reason, GOVERNOR_NO_SKEW);
	assert_int_equal(g.down.reason, GOVERNOR_REGRET);
	assert_near(g.last.regretted, 900, 0);
	for (int i = 0; i < GOVERNOR_REASONS; i++)
		assert_non_null(governor_reason_text((enum governor_reason)i));
	assert_null(governor_reason_text(GOVERNOR_REASONS));
}

static void governor_tunables_change_the_outcome(void **state)
{
	struct governor_tunables t;
	struct governor_epoch e = good;
	struct governor g;

	(void)state;
	assert_table_is_sound(&governor_tunable_table, &t);
	governor_init(&g);
	assert_false(governor_step(&g, &t, 99999));
	assert_true(governor_step(&g, &t, 1));
	t.epoch_ops = 10;
	governor_init(&g);
	assert_true(governor_step(&g, &t, 10));
	t.min_return = 3;
	t.rest_epochs = 5;
	governor_judge(&g, &t, &e);
	assert_int_equal(g.up.reason, GOVERNOR_UNPAID);
	assert_int_equal(g.up.rest, 5);
	governor_init(&g);
	t.min_moved = 1001;
	t.max_regret = 0.001;
	governor_judge(&g, &t, &e);
	assert_true(governor_allows_up(&g) && governor_allows_down(&g));
	t.min_moved = 1;
	t.max_rest = 3;
	governor_judge(&g, &t, &e);
	assert_int_equal(g.down.reason, GOVERNOR_REGRET);
	assert_int_equal(g.down.rest, 3);
	tunable_defaults(&governor_tunable_table, &t);
	e = (struct governor_epoch){ .user_ns = 1e9, .overhead_ns = 5e9, .demoted = 1000 };
	governor_init(&g);
	governor_step(&g, &t, t.epoch_ops / 4);
	assert_true(governor_lost(&g, &t, &e));
	t.lost_after = 0.3;
	assert_false(governor_lost(&g, &t, &e));
	governor_step(&g, &t, t.epoch_ops / 10);
	assert_true(governor_lost(&g, &t, &e));
}

static void counts_hits_and_regrets(void **state)
{
	struct repay r;
	struct repay_counts c;
	size_t n = repay_bytes(1024);
	void *mem = malloc(n);

	(void)state;
	assert_int_equal(repay_init(&r, 1000, 1, mem, n), -EINVAL);
	assert_int_equal(repay_init(&r, 1024, 0, mem, n), -EINVAL);
	assert_int_equal(repay_init(&r, 1024, 1, mem, n - 1), -ENOMEM);
	assert_int_equal(repay_init(&r, 1024, 1, mem, n), 0);
	repay_moved(&r, 5, REPAY_UP);
	repay_moved(&r, 6, REPAY_DOWN);
	for (int i = 0; i < 3; i++) {
		repay_read(&r, 5, 1, 8);
		repay_read(&r, 6, 1, 8);
		repay_read(&r, 7, 1, 8);
	}
	c = repay_take(&r);
	assert_near(c.up, 1, 1e-6);
	assert_near(c.up_hits, 3, 1e-6);
	assert_near(c.down, 1, 1e-6);
	assert_near(c.down_reads, 1, 1e-6);
	repay_read(&r, 5, 1, 8);	/* it still repays in the next epoch */
	repay_moved(&r, 8, REPAY_DOWN);
	c = repay_take(&r);
	assert_near(c.up, 0, 0);
	assert_near(c.up_hits, 1, 1e-6);
	assert_near(c.down, 1, 1e-6);
	repay_moved(&r, 9, REPAY_DOWN);
	for (int i = 0; i < 6; i++)
		repay_take(&r);
	repay_read(&r, 9, 1, 8);
	c = repay_take(&r);
	assert_near(c.down_reads, 1, 1e-6);
	repay_moved(&r, 10, REPAY_DOWN);
	repay_moved(&r, 11, REPAY_UP);
	repay_read(&r, 10, 16, 8);	/* one in sixteen is told of what lies below */
	repay_read(&r, 11, 16, 8);
	c = repay_take(&r);
	assert_near(c.down_reads, 16, 1e-6);
	assert_near(c.up_hits, 1, 1e-6);
	repay_read(&r, 8, 1, 8);	/* but this is no regret: it has been down there for long */
	c = repay_take(&r);
	assert_near(c.down_reads, 0, 0);
	free(mem);
}

/* 100,000 blocks moved, each read twice, a sample of 1 in 16: within 5 %. */
static void a_sample_is_scaled(void **state)
{
	struct repay r;
	struct repay_counts c;
	size_t n = repay_bytes(65536);
	void *mem = malloc(n);

	(void)state;
	assert_int_equal(repay_init(&r, 65536, 1.0 / 16, mem, n), 0);
	for (uint64_t b = 0; b < 100000; b++) {
		repay_moved(&r, b, REPAY_UP);
		repay_read(&r, b, 1, 8);
		repay_read(&r, b, 1, 8);
	}
	c = repay_take(&r);
	assert_near(c.up, 100000, 5000);
	assert_near(c.up_hits, 200000, 10000);
	free(mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_moves_go_on),
		cmocka_unit_test(unpaid_promotions_rest_ever_longer),
		cmocka_unit_test(room_that_costs_more_than_it_gains_stops),
		cmocka_unit_test(a_lost_epoch_ends_early),
		cmocka_unit_test(a_scan_is_no_regret),
		cmocka_unit_test(says_why),
		cmocka_unit_test(governor_tunables_change_the_outcome),
		cmocka_unit_test(counts_hits_and_regrets),
		cmocka_unit_test(a_sample_is_scaled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
