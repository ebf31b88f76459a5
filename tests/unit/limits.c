// SPDX-License-Identifier: GPL-2.0-or-later
/* Limits on moves: bandwidth and orders in flight, the foreground brake, endurance, idle boost. */
#include "policy_lib.h"

#include "decide/brake.h"
#include "decide/budget.h"
#include "decide/endurance.h"
#include "decide/idle.h"
#include "decide/price.h"

#define SECOND	1000000000ull

/* 1000 bytes a second for 100 s, orders of 300: 100 s of rate plus the full bucket, within one order. */
static void the_rate_holds_on_average(void **state)
{
	struct budget_tunables t = { .bytes_per_second = 1000, .burst_seconds = 1, .in_flight = 4 };
	struct budget b;
	double taken = 0;

	(void)state;
	budget_init(&b, &t, 0);
	for (uint64_t i = 0; i <= 1000; i++) {
		budget_refill(&b, &t, i * SECOND / 10, 1);
		while (budget_take(&b, &t, 300)) {
			taken += 300;
			budget_settle(&b, &t, 300, 300);
		}
	}
	assert_in_range((uint64_t)taken, 101000, 101300);
}

static void an_order_larger_than_the_bucket_is_paid_off(void **state)
{
	struct budget_tunables t = { .bytes_per_second = 1000, .burst_seconds = 1, .in_flight = 4 };
	struct budget b;

	(void)state;
	budget_init(&b, &t, 0);
	assert_true(budget_take(&b, &t, 5000));
	assert_false(budget_take(&b, &t, 1));
	budget_refill(&b, &t, 4 * SECOND, 1);
	assert_false(budget_take(&b, &t, 1));
	budget_refill(&b, &t, 5 * SECOND, 1);
	assert_true(budget_take(&b, &t, 1));
	/* It came to less than was taken: the rest is given back. */
	budget_settle(&b, &t, 5000, 4500);
	assert_near(b.tokens, 1000 - 1, 1);
}

static void a_clock_that_jumps_gives_no_flood(void **state)
{
	struct budget_tunables t = { .bytes_per_second = 1000, .burst_seconds = 2, .in_flight = 4 };
	struct budget b;

	(void)state;
	budget_init(&b, &t, 100 * SECOND);
	assert_true(budget_take(&b, &t, 2000));
	budget_refill(&b, &t, 1 * SECOND, 1);		/* back */
	assert_near(b.tokens, 0, 0);
	budget_refill(&b, &t, 2 * SECOND, 1);
	assert_near(b.tokens, 1000, 0);
	budget_refill(&b, &t, 1000000 * SECOND, 1);	/* ahead */
	assert_near(b.tokens, 2000, 0);
}

static void budget_tunables_change_the_outcome(void **state)
{
	struct budget_tunables t;
	struct budget b;

	(void)state;
	assert_table_is_sound(&budget_tunable_table, &t);
	t = (struct budget_tunables){ .bytes_per_second = 0, .burst_seconds = 1, .in_flight = 2 };
	budget_init(&b, &t, 0);
	assert_true(budget_take(&b, &t, 1e12));		/* no limit on bytes ... */
	assert_true(budget_take(&b, &t, 1e12));
	assert_false(budget_take(&b, &t, 1));		/* ... but on orders */
	t.in_flight = 3;
	assert_true(budget_take(&b, &t, 1));
	t = (struct budget_tunables){ .bytes_per_second = 10, .burst_seconds = 1, .in_flight = 2 };
	budget_init(&b, &t, 0);
	assert_near(b.tokens, 10, 0);
	t.burst_seconds = 3;
	budget_init(&b, &t, 0);
	assert_near(b.tokens, 30, 0);
	budget_take(&b, &t, 30);
	budget_refill(&b, &t, SECOND, 0.5);
	assert_near(b.tokens, 5, 1e-9);
}

/* However full the bucket was: what is in it when a brake takes hold is no longer there to be spent. */
static void a_brake_holds_with_a_full_bucket(void **state)
{
	struct budget_tunables t = { .bytes_per_second = 1000, .burst_seconds = 2, .in_flight = 4 };
	struct budget b;
	double taken = 0;

	(void)state;
	budget_init(&b, &t, 0);
	for (uint64_t i = 1; i <= 100; i++) {
		budget_refill(&b, &t, i * SECOND / 10, 0.01);
		while (budget_take(&b, &t, 10)) {
			taken += 10;
			budget_settle(&b, &t, 10, 10);
		}
	}
	/* 10 s of 10 bytes, and 2 s saved up. */
	assert_in_range((uint64_t)taken, 110, 130);
	/* What is given back fills no more than that either. */
	budget_refill(&b, &t, 11 * SECOND, 0.01);
	assert_true(budget_take(&b, &t, 10000));
	budget_settle(&b, &t, 10000, 0);
	assert_true(b.tokens <= 20);
	budget_refill(&b, &t, 21 * SECOND, 1);
	assert_near(b.tokens, 2000, 0);
}

/* The example of brake.h. */
static void slower_user_io_slows_moves(void **state)
{
	struct brake_tunables t;
	struct brake b;

	(void)state;
	tunable_defaults(&brake_tunable_table, &t);
	brake_init(&b);
	assert_near(brake_step(&b, &t, 100, 100, false), 1, 0);
	assert_near(brake_step(&b, &t, 250, 100, true), 0.5, 1e-9);
	assert_near(brake_step(&b, &t, 250, 100, true), 0.25, 1e-9);
	assert_near(brake_step(&b, &t, 150, 100, true), 0.30, 1e-9);
	assert_near(b.base_us, 100, 0);
	for (int i = 0; i < 100; i++)
		brake_step(&b, &t, 1e6, 100, true);
	assert_near(b.share, t.min_share, 0);
	for (int i = 0; i < 100; i++)
		brake_step(&b, &t, 0, 0, true);
	assert_near(b.share, 1, 0);
}

/* There is always something to move: after learn_after intervals moves pause until one has been heard without. */
static void moves_pause_to_hear_what_is_normal(void **state)
{
	struct brake_tunables t;
	struct brake b;

	(void)state;
	tunable_defaults(&brake_tunable_table, &t);
	brake_init(&b);
	for (uint64_t i = 0; i < t.learn_after; i++) {
		assert_false(b.listens);
		brake_step(&b, &t, 500, t.min_ops - 1, true);	/* says nothing */
		assert_near(brake_step(&b, &t, 500, 100, true), 1, 0);
	}
	assert_true(b.listens);
	brake_step(&b, &t, 500, 100, true);		/* an order has not ended yet */
	assert_true(b.listens);
	brake_step(&b, &t, 100, t.min_ops - 1, false);	/* nobody is there: on with it, until somebody is */
	assert_false(b.listens);
	for (uint64_t i = 0; i < t.learn_after; i++)
		brake_step(&b, &t, 500, 100, true);
	assert_true(b.listens);
	brake_step(&b, &t, 100, 100, false);
	assert_false(b.listens);
	assert_near(b.base_us, 100, 0);
	for (uint64_t i = 0; i < t.relearn_after; i++) {
		assert_false(b.listens);
		brake_step(&b, &t, 100, 100, true);
	}
	assert_true(b.listens);
}

/* Without a limit on bytes: at a share of 1/4 every fourth interval, and then a quarter of the orders. */
static void the_share_holds_without_a_rate(void **state)
{
	struct budget_tunables t = { .bytes_per_second = 0, .burst_seconds = 1, .in_flight = 8 };
	struct budget b;
	uint32_t taken = 0, turns = 0;

	(void)state;
	budget_init(&b, &t, 0);
	for (uint64_t i = 1; i <= 400; i++) {
		uint32_t before = taken;

		budget_refill(&b, &t, i * SECOND / 10, 0.25);
		assert_true(budget_is_spent(&b, &t) == (b.turn < 1));
		while (budget_take(&b, &t, 1e9))
			taken++;
		for (uint32_t n = before; n < taken; n++)
			budget_settle(&b, &t, 1e9, 1e9);
		turns += taken > before;
	}
	assert_in_range(turns, 99, 102);
	assert_int_equal(taken, 2 * turns);
	/* Full again: each interval all, as before; idle time cannot save up more. */
	for (uint64_t i = 401; i <= 410; i++) {
		budget_refill(&b, &t, i * SECOND / 10, 4);
		for (uint32_t n = 0; n < 8; n++)
			assert_true(budget_take(&b, &t, 1e9));
		assert_false(budget_take(&b, &t, 1e9));
		for (uint32_t n = 0; n < 8; n++)
			budget_settle(&b, &t, 1e9, 1e9);
	}
}

static void brake_tunables_change_the_outcome(void **state)
{
	struct brake_tunables t;
	struct brake b;

	(void)state;
	assert_table_is_sound(&brake_tunable_table, &t);
	brake_init(&b);
	brake_step(&b, &t, 100, 100, false);
	t.tolerance = 2;
	assert_near(brake_step(&b, &t, 250, 100, true), 1, 0);
	t.tolerance = 1;
	t.floor_us = 300;
	assert_near(brake_step(&b, &t, 250, 100, true), 1, 0);
	t.floor_us = 50;
	t.min_ops = 101;
	assert_near(brake_step(&b, &t, 250, 100, true), 1, 0);
	t.min_ops = 8;
	t.back_off = 0.1;
	assert_near(brake_step(&b, &t, 250, 100, true), 0.1, 1e-9);
	t.recover = 0.4;
	assert_near(brake_step(&b, &t, 100, 100, true), 0.5, 1e-9);
	t.min_share = 0.3;
	assert_near(brake_step(&b, &t, 250, 100, true), 0.3, 1e-9);
	t.smoothing = 0.5;
	brake_step(&b, &t, 200, 100, false);
	assert_near(b.base_us, 150, 1e-9);
	t.relearn_after = 1;
	brake_step(&b, &t, 100, 100, true);
	assert_true(b.listens);
	brake_init(&b);
	t.learn_after = 1;
	brake_step(&b, &t, 100, 100, true);
	assert_true(b.listens);
}

/* 1 TB rated for 0.1 drive writes per day: 100 GB saved up at first, then 1.157 MB a second. */
static void endurance_is_a_hard_limit(void **state)
{
	struct endurance_tunables t;
	struct endurance e;

	(void)state;
	tunable_defaults(&endurance_tunable_table, &t);
	t.drive_writes_per_day = 0.1;
	endurance_init(&e, &t, 1e12);
	assert_true(endurance_allows(&e, &t, 100e9));
	assert_false(endurance_allows(&e, &t, 100.1e9));
	endurance_step(&e, &t, 0, 100e9);
	assert_false(endurance_allows(&e, &t, 4096));
	endurance_step(&e, &t, 3600, 0);
	assert_true(endurance_allows(&e, &t, 4.1e9));
	assert_false(endurance_allows(&e, &t, 4.2e9));
	/* Users wrote two banks: one is forgiven, or moves would rest for ever. */
	endurance_step(&e, &t, 0, 500e9);
	assert_near(e.saved, -100e9, 1);
	/* A clock that goes back earns nothing. */
	endurance_step(&e, &t, -1e6, 0);
	assert_near(e.saved, -100e9, 1);
}

/*
 * The drive's own count: what it has beyond ours is charged, what it does not have yet is not charged twice, and a
 * count that goes back (another drive) starts anew.
 */
static void endurance_hears_the_drive(void **state)
{
	struct endurance_tunables t;
	struct endurance e;

	(void)state;
	tunable_defaults(&endurance_tunable_table, &t);
	t.drive_writes_per_day = 0.1;
	endurance_init(&e, &t, 1e12);
	endurance_step(&e, &t, 0, 10e9);
	endurance_hear(&e, &t, 5e12, 3);	/* the first: what was before is not ours */
	assert_near(e.saved, 90e9, 1);
	endurance_step(&e, &t, 0, 10e9);
	endurance_hear(&e, &t, 5e12 + 30e9, 3);	/* 20 GB by others */
	assert_near(e.saved, 60e9, 1);
	endurance_step(&e, &t, 0, 10e9);
	endurance_hear(&e, &t, 5e12 + 36e9, 3);	/* 4 of ours are not in it yet */
	assert_near(e.saved, 50e9, 1);
	endurance_hear(&e, &t, 5e12 + 36e9, 3);
	endurance_hear(&e, &t, 5e12 + 40e9, 3);
	assert_near(e.saved, 50e9, 1);
	endurance_hear(&e, &t, 5e12 + 95e9, 3);
	assert_near(e.saved, -5e9, 1);
	assert_false(endurance_allows(&e, &t, 4096));
	endurance_hear(&e, &t, 1e9, 3);
	assert_near(e.saved, -5e9, 1);
	endurance_hear(&e, &t, 2e9, 3);
	assert_near(e.saved, -6e9, 1);
	/* Past its rated life each write is dear, limit or not. */
	t.drive_writes_per_day = 0;
	assert_near(endurance_price(&e, &t), 1, 0);
	endurance_hear(&e, &t, 2e9, 100);
	assert_near(endurance_price(&e, &t), t.max_price, 0);
	t.worn_percent = 120;
	assert_near(endurance_price(&e, &t), 1, 0);
}

static void endurance_tunables_change_the_outcome(void **state)
{
	struct endurance_tunables t;
	struct endurance e;

	(void)state;
	assert_table_is_sound(&endurance_tunable_table, &t);
	endurance_init(&e, &t, 1e12);
	assert_true(endurance_allows(&e, &t, 1e15));	/* no limit by default */
	assert_near(endurance_price(&e, &t), 1, 0);
	t.drive_writes_per_day = 1;
	t.bank_days = 2;
	endurance_init(&e, &t, 1e12);
	assert_near(e.saved, 2e12, 1);
	assert_near(endurance_price(&e, &t), 1, 0);
	e.saved = 0.5e12;
	assert_near(endurance_price(&e, &t), 2.5, 1e-9);
	t.max_price = 10;
	assert_near(endurance_price(&e, &t), 5.5, 1e-9);
	e.saved = -1;
	assert_near(endurance_price(&e, &t), 10, 0);
}

static void quiet_volumes_get_a_boost(void **state)
{
	struct idle_tunables t;
	struct idle i = { 0 };

	(void)state;
	assert_table_is_sound(&idle_tunable_table, &t);
	assert_near(idle_step(&i, &t, 100, 5), 1, 0);
	assert_near(idle_step(&i, &t, 50, 5), 1, 0);
	assert_near(idle_step(&i, &t, 50, 5), 4, 0);
	assert_near(idle_step(&i, &t, 51, 5), 1, 0);
	t.idle_iops = 20;
	t.idle_seconds = 4;
	t.boost = 2;
	assert_near(idle_step(&i, &t, 51, 5), 2, 0);
	assert_near(idle_step(&i, &t, 1, 0), 2, 0);
}

/* By class, an unknown one as well, unless it is said; a head takes as long to move as a read takes. */
static void a_price_is_that_of_the_class_unless_it_is_said(void **state)
{
	struct price_tunables t;

	(void)state;
	assert_table_is_sound(&price_tunable_table, &t);
	assert_near(price_read_us(&t, "optane"), 6, 0);
	assert_near(price_read_us(&t, "hdd"), 6600, 0);
	assert_near(price_seek_us(&t, "hdd"), 6600, 0);
	assert_near(price_seek_us(&t, "nvme"), 0, 0);
	assert_near(price_bytes_per_us(&t, "net"), 100, 0);
	assert_near(price_bytes_per_us(&t, "tape"), 500, 0);
	t.read_us = 4000;
	assert_near(price_read_us(&t, "hdd"), 4000, 0);
	assert_near(price_seek_us(&t, "hdd"), 4000, 0);
	assert_near(price_seek_us(&t, "nvme"), 0, 0);
	assert_near(price_bytes_per_us(&t, "hdd"), 150, 0);
	t.bytes_per_us = 250;
	assert_near(price_bytes_per_us(&t, "hdd"), 250, 0);
	assert_near(price_bytes_per_us(&t, "tape"), 250, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rate_holds_on_average),
		cmocka_unit_test(an_order_larger_than_the_bucket_is_paid_off),
		cmocka_unit_test(a_clock_that_jumps_gives_no_flood),
		cmocka_unit_test(a_brake_holds_with_a_full_bucket),
		cmocka_unit_test(budget_tunables_change_the_outcome),
		cmocka_unit_test(slower_user_io_slows_moves),
		cmocka_unit_test(moves_pause_to_hear_what_is_normal),
		cmocka_unit_test(the_share_holds_without_a_rate),
		cmocka_unit_test(brake_tunables_change_the_outcome),
		cmocka_unit_test(endurance_is_a_hard_limit),
		cmocka_unit_test(endurance_hears_the_drive),
		cmocka_unit_test(endurance_tunables_change_the_outcome),
		cmocka_unit_test(quiet_volumes_get_a_boost),
		cmocka_unit_test(a_price_is_that_of_the_class_unless_it_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
