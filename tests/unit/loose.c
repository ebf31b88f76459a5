// SPDX-License-Identifier: GPL-2.0-or-later
/* Loose blocks are packed when that disturbs nobody, and only where they shrink. */
#include "decide/loose.h"
#include "policy_lib.h"
#include "sim_lib.h"

#define BLOCKS	(64 * 1024)
#define FAST	(8 * 1024)

static void ticks(struct sim *s, int n)
{
	while (n--)
		assert_int_equal(sim_tick(s), 0);
}

static struct sim *streamed(void)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	s->samples = true;
	for (int r = 10; r < 20; r++)
		s->loose[r] = 1000;
	return s;
}

static void it_is_time(void **state)
{
	struct loose_tunables t;

	(void)state;
	assert_table_is_sound(&loose_tunable_table, &t);
	assert_true(loose_turn(&t, true, 0, 100));
	assert_false(loose_turn(&t, false, 80, 100));
	assert_true(loose_turn(&t, false, 81, 100));
	t.full = 0.9;
	assert_false(loose_turn(&t, false, 81, 100));
}

static void a_region_is_worth_it(void **state)
{
	struct loose_tunables t;

	(void)state;
	tunable_defaults(&loose_tunable_table, &t);
	assert_true(loose_worth(&t, 128, 0, 10));
	assert_false(loose_worth(&t, 127, 0, 10));
	/* 900 of them were found not to shrink */
	assert_false(loose_worth(&t, 1000, 900, 10));
	assert_true(loose_worth(&t, 1024, 896, 10));
	assert_false(loose_worth(&t, 100, 900, 10));
	assert_false(loose_worth(&t, 128, 0, 9));
	t.quiet_seconds = 9;
	t.least = 64;
	assert_true(loose_worth(&t, 64, 0, 9));
}

/* The head of a disk: 6.6 ms to another place, 27 us to read a block, a region in 28 ms. */
static void a_region_is_scattered(void **state)
{
	struct loose_tunables t;

	(void)state;
	tunable_defaults(&loose_tunable_table, &t);
	assert_true(loose_scattered(&t, 1000, 4, 6600e3, 27e3));
	assert_false(loose_scattered(&t, 1000, 3, 6600e3, 27e3));
	assert_false(loose_scattered(&t, 1000, 1, 6600e3, 27e3));
	assert_false(loose_scattered(&t, 1000, 0, 6600e3, 27e3));	/* not told */
	assert_true(loose_scattered(&t, 4, 4, 6600e3, 27e3));
	assert_false(loose_scattered(&t, 1000, 1000, 0, 27e3));		/* no head */
	t.scattered = 1;
	assert_false(loose_scattered(&t, 1000, 4, 6600e3, 27e3));
	assert_true(loose_scattered(&t, 1000, 6, 6600e3, 27e3));
	t.scattered = 0;
	assert_false(loose_scattered(&t, 1000, 1000, 6600e3, 27e3));
}

/* Even regions shrink and are packed, odd ones are left, both once; what is fast stays. */
static void an_idle_volume_packs(void **state)
{
	struct sim *s = streamed();
	uint64_t fast;

	(void)state;
	sim_open(s);
	for (uint64_t b = 0; b < 200; b++)
		sim_access(s, 12 * REGION_BLOCKS + b, true);
	ticks(s, 40);
	fast = s->v.fast_used;
	assert_true(fast >= 200);
	assert_int_equal(s->e.stats.packed_loose, 0);
	ticks(s, 400);
	for (int r = 10; r < 20; r++)
		assert_int_equal(s->loose[r], r % 2 ? 1000 : 0);
	assert_int_equal(s->e.stats.packed_loose, 5 * 1000 - 200);
	assert_int_equal(s->e.stats.loose_left, 5);
	assert_int_equal(s->e.stats.orders[WHY_LOOSE], 5);
	assert_int_equal(sim_explained(s, WHY_LOOSE, "; 1000 loose, gain "), 4);
	assert_int_equal(sim_explained(s, WHY_LOOSE, "; 800 loose, gain "), 1);
	assert_int_equal(s->e.stats.demoted, 0);
	assert_int_equal(s->v.fast_used, fast);
	/* As many again, written anew: they are looked into once more. */
	s->loose[11] = 500;
	ticks(s, 100);
	s->loose[11] = 1000;
	ticks(s, 400);
	assert_int_equal(s->e.stats.loose_left, 6);
	assert_int_equal(s->e.stats.orders[WHY_LOOSE], 5);
	sim_remove(s);
}

/* Others keep the CPUs busy, and nothing has shrunk so far: each region is looked into all the same, or it would be left for good. */
static void a_busy_machine_looks_into_each(void **state)
{
	struct sim *s = streamed();

	(void)state;
	s->solid = true;
	sim_open(s);
	ticks(s, 200);
	assert_int_equal(s->e.stats.loose_left, 10);
	s->solid = false;
	for (int r = 30; r < 44; r++)
		s->loose[r] = 1000;
	for (int i = 0; i < 600; i++) {
		s->cpu_all += 10;
		ticks(s, 1);
	}
	assert_true(s->e.cpu.full);
	for (int r = 30; r < 44; r++)
		assert_int_equal(s->loose[r], r % 2 ? 1000 : 0);
	sim_remove(s);
}

/* What a sample reads disturbs nobody: one after the other they are packed, ten a second. */
static void samples_are_no_users(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	s->samples = true;
	for (int r = 10; r < 60; r++)
		s->loose[r] = 1000;
	sim_open(s);
	ticks(s, 300);
	assert_int_equal(s->e.stats.orders[WHY_LOOSE], 25);
	assert_int_equal(s->e.stats.loose_left, 25);
	sim_remove(s);
}

/* On a disk what lies scattered is gathered, whether it shrinks or is little; what lies in one piece is left. */
static void a_disk_is_tidied_up(void **state)
{
	struct sim *s = streamed();

	(void)state;
	s->slow_class = "hdd";
	s->runs[11] = 20;
	s->runs[13] = 1;
	s->loose[21] = s->loose[23] = 60;
	s->runs[21] = 30;
	s->runs[23] = 2;
	sim_open(s);
	ticks(s, 600);
	assert_int_equal(s->loose[11], 0);
	assert_int_equal(s->loose[13], 1000);
	assert_int_equal(s->loose[21], 0);
	assert_int_equal(s->loose[23], 60);
	assert_int_equal(s->e.stats.gathered, 2);
	assert_int_equal(sim_explained(s, WHY_LOOSE, " loose, scattered over "), 2);
	assert_int_equal(s->plain_odd, 2);
	assert_int_equal(s->e.stats.loose_left, 4);
	assert_int_equal(s->e.stats.orders[WHY_LOOSE], 7);
	sim_remove(s);
}

/* Neighbours come to lie side by side: one order at a time, region after region. */
static void a_disk_is_tidied_up_in_order(void **state)
{
	struct sim *s = streamed();
	uint64_t last = 0;

	(void)state;
	s->slow_class = "hdd";
	s->delay = 3;
	for (int r = 10; r < 20; r++)
		s->runs[r] = 20;
	sim_open(s);
	for (int i = 0; i < 600; i++) {
		ticks(s, 1);
		assert_true(s->queued <= 1);
		if (!s->queued || s->queue[0].region == last)
			continue;
		assert_true(s->queue[0].region == last + 1 || !last);
		last = s->queue[0].region;
	}
	assert_int_equal(last, 19);
	assert_int_equal(s->e.stats.gathered, 10);
	sim_remove(s);
}

/* ... but not on flash, and not under load. */
static void who_has_no_head_is_not(void **state)
{
	struct sim *s = streamed();

	(void)state;
	s->slow_class = "qlc";
	s->runs[11] = 20;
	s->loose[21] = 60;
	s->runs[21] = 30;
	sim_open(s);
	ticks(s, 600);
	assert_int_equal(s->loose[11], 1000);
	assert_int_equal(s->loose[21], 60);
	assert_int_equal(s->e.stats.gathered, 0);
	sim_remove(s);

	s = streamed();
	s->slow_class = "hdd";
	s->runs[11] = 20;
	s->slow_fill = 0.85;
	sim_open(s);
	for (int i = 0; i < 400; i++) {
		for (int k = 0; k < 8; k++)
			sim_access(s, prng_below(&s->prng, 1024), false);
		assert_int_equal(sim_tick(s), 0);
	}
	assert_int_equal(s->loose[11], 1000);
	assert_int_equal(s->e.stats.gathered, 0);
	sim_remove(s);
}

/* Under load nothing is packed, until the slow tier is filling up. */
static void a_busy_volume_waits_until_it_is_full(void **state)
{
	struct sim *s = streamed();

	(void)state;
	sim_open(s);
	for (int i = 0; i < 400; i++) {
		for (int k = 0; k < 8; k++)
			sim_access(s, prng_below(&s->prng, 1024), false);
		assert_int_equal(sim_tick(s), 0);
	}
	assert_int_equal(s->e.stats.orders[WHY_LOOSE], 0);
	s->slow_fill = 0.85;
	for (int i = 0; i < 400; i++) {
		for (int k = 0; k < 8; k++)
			sim_access(s, prng_below(&s->prng, 1024), false);
		assert_int_equal(sim_tick(s), 0);
	}
	assert_int_equal(s->e.stats.orders[WHY_LOOSE], 5);
	assert_true(s->e.stats.packed_loose > 4900);
	sim_remove(s);
}

/* Where limits hold it back it goes on when they do no longer. */
static void limits_hold_it_back(void **state)
{
	struct sim *s = streamed();

	(void)state;
	sim_open(s);
	s->c.budget[1].bytes_per_second = 100 * 1024;
	engine_retune(&s->e, &s->c);
	ticks(s, 200);
	assert_true(s->e.stats.orders[WHY_LOOSE] < 5);
	assert_true(s->e.stats.held_by_budget > 0);
	s->c.budget[1].bytes_per_second = 0;
	engine_retune(&s->e, &s->c);
	ticks(s, 400);
	assert_int_equal(s->e.stats.orders[WHY_LOOSE], 5);
	sim_remove(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_time),
		cmocka_unit_test(a_region_is_worth_it),
		cmocka_unit_test(a_region_is_scattered),
		cmocka_unit_test(an_idle_volume_packs),
		cmocka_unit_test(a_busy_machine_looks_into_each),
		cmocka_unit_test(samples_are_no_users),
		cmocka_unit_test(a_disk_is_tidied_up),
		cmocka_unit_test(a_disk_is_tidied_up_in_order),
		cmocka_unit_test(who_has_no_head_is_not),
		cmocka_unit_test(a_busy_volume_waits_until_it_is_full),
		cmocka_unit_test(limits_hold_it_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
