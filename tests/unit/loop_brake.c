// SPDX-License-Identifier: GPL-2.0-or-later
/* The daemon's loop on a simulated volume: users who are slowed down slow moves down, and nobody about speeds them up. */
#include "sim_lib.h"

#define BLOCKS	(64 * 1024)
#define FAST	(8 * 1024)

/*
 * Ticks until the fast tier is half empty, where users wait for @slow_ns whenever an order is under way, and read no more than
 * @reads times a tick then, else @quiet times.
 */
static uint64_t ticks_for_room(double slow_ns, int reads, int quiet, double rate, double *base, uint64_t *braked)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	uint64_t ticks = 0;

	s->delay = 1;
	s->slow_ns = slow_ns;
	s->c.tuning.governor.epoch_ops = 1000000000;
	s->c.tuning.admit.uniform = 0;		/* room is made all the same */
	s->c.tuning.idle.boost = 1;
	s->c.tuning.watermark.high = 0.5;
	s->c.tuning.watermark.low = 0.1;
	for (int t = 0; t < 2; t++)
		s->c.budget[t] = (struct budget_tunables){ .bytes_per_second = rate, .burst_seconds = 0.5, .in_flight = 4 };
	/* Full from the first tick on: there is always something to move. */
	for (uint64_t b = 0; s->v.fast_used < FAST; b++)
		volume_write(&s->v, b * 7 % BLOCKS);
	sim_open(s);
	for (; s->v.fast_used > FAST / 2 && ticks < 5000; ticks++) {
		for (int i = 0; i < (s->queued ? reads : quiet); i++)
			sim_access(s, prng_below(&s->prng, BLOCKS), false);
		assert_int_equal(sim_tick(s), 0);
	}
	*base = s->e.mean.brake.base_us;
	*braked = s->e.mean.brake.braked;
	sim_remove(s);
	return ticks;
}

/* Moves that slow the users down tenfold are slowed down themselves, whether bandwidth has a limit or not. */
static void the_brake_holds_moves_back(void **state)
{
	(void)state;
	for (int limited = 0; limited < 2; limited++) {
		double base, rate = limited ? 1e6 : 0;
		uint64_t braked, held, free = ticks_for_room(100e3, 64, 64, rate, &base, &braked);

		assert_int_equal(braked, 0);
		held = ticks_for_room(1e6, 64, 64, rate, &base, &braked);
		print_message("%s: %llu ticks, %llu under the brake (%llu times, base %.0f us)\n",
			      limited ? "1 MB a second" : "no limit", (unsigned long long)free, (unsigned long long)held,
			      (unsigned long long)braked, base);
		/* Learnt although there was always something to move. */
		assert_near(base, 100, 1);
		assert_true(braked > 5);
		assert_true(held > 2 * free);
		assert_true(held < 5000);
	}
}

/* Of a user who waits for each read before the next, few are heard in a tick, the fewer the more moves slow it down. */
static void who_is_slowed_down_most_is_heard(void **state)
{
	double base;
	uint64_t braked, held, free = ticks_for_room(100e3, 64, 64, 1e6, &base, &braked);

	(void)state;
	held = ticks_for_room(50e6, 2, 64, 1e6, &base, &braked);
	print_message("%llu ticks, %llu under the brake, %llu times\n", (unsigned long long)free, (unsigned long long)held,
		      (unsigned long long)braked);
	assert_true(braked > 5);
	assert_true(2 * held > 3 * free);
	assert_true(held < 5000);
}

/* Nor is more heard of one while moves pause, so a pause tells little: what it takes without moves is learnt all the same. */
static void who_reads_little_is_protected(void **state)
{
	(void)state;
	for (int reads = 2; reads <= 4; reads++) {
		double base;
		uint64_t braked, held, free = ticks_for_room(100e3, reads, reads, 1e6, &base, &braked);

		assert_int_equal(braked, 0);
		held = ticks_for_room(1e6, reads, reads, 1e6, &base, &braked);
		print_message("%d reads a tick: %llu ticks, %llu under the brake (%llu times, base %.0f us)\n", reads,
			      (unsigned long long)free, (unsigned long long)held, (unsigned long long)braked, base);
		assert_near(base, 100, 1);
		assert_true(braked > 5);
		assert_true(2 * held > 3 * free);
		assert_true(held < 5000);
	}
}

/* A block that is fast, or is not. */
static uint64_t one_that_is(struct sim *s, bool fast)
{
	uint64_t block;

	do
		block = prng_below(&s->prng, BLOCKS);
	while ((s->v.place[block] != PLACE_PACKED) != fast);
	return block;
}

/*
 * Ticks until the fast tier is half empty, on a disk that gets a share of 1 - @hits of @reads a tick, from tick @from on of
 * 1 - @later; hits take ten times as long while an order is under way, or not.
 */
static uint64_t ticks_of_mixed_reads(bool timed, bool slowed, int reads, double hits, double later, uint64_t from, uint64_t *braked)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	uint64_t ticks = 0;

	s->delay = 1;
	s->timed = timed;
	s->hit_us = 100;
	s->hit_moving_us = slowed ? 1000 : 100;
	s->miss_us = 6600;
	s->c.tuning.governor.epoch_ops = 1000000000;
	s->c.tuning.idle.boost = 1;
	s->c.tuning.watermark.high = 0.5;
	s->c.tuning.watermark.low = 0.1;
	for (int t = 0; t < 2; t++)
		s->c.budget[t] = (struct budget_tunables){ .bytes_per_second = 4e5, .burst_seconds = 0.5, .in_flight = 4 };
	for (uint64_t b = 0; s->v.fast_used < FAST; b++)
		volume_write(&s->v, b * 7 % BLOCKS);
	sim_open(s);
	for (; s->v.fast_used > FAST / 2 && ticks < 5000; ticks++) {
		for (int i = 0; i < reads; i++)
			sim_access(s, one_that_is(s, i < reads * (ticks < from ? hits : later)), false);
		assert_int_equal(sim_tick(s), 0);
	}
	*braked = limits_braked(&s->e);
	sim_remove(s);
	return ticks;
}

/* Two thirds are hits: that they take ten times as long makes the mean of all 1.3 times what it was. */
static void the_brake_hears_each_tier(void **state)
{
	uint64_t braked, held, free = ticks_of_mixed_reads(true, false, 64, 0.67, 0.67, 0, &braked);

	(void)state;
	assert_int_equal(braked, 0);
	held = ticks_of_mixed_reads(true, true, 64, 0.67, 0.67, 0, &braked);
	print_message("%llu ticks, %llu under the brake, %llu times\n", (unsigned long long)free, (unsigned long long)held,
		      (unsigned long long)braked);
	assert_true(braked > 5);
	assert_true(held > 2 * free);
}

/* So it does where a tier has three reads a tick, and the other one. */
static void the_brake_hears_a_tier_that_is_read_little(void **state)
{
	uint64_t braked, held, free = ticks_of_mixed_reads(true, false, 4, 0.67, 0.67, 0, &braked);

	(void)state;
	assert_int_equal(braked, 0);
	held = ticks_of_mixed_reads(true, true, 4, 0.67, 0.67, 0, &braked);
	print_message("%llu ticks, %llu under the brake, %llu times\n", (unsigned long long)free, (unsigned long long)held,
		      (unsigned long long)braked);
	assert_true(braked > 5);
	assert_true(4 * held > 5 * free);
	assert_true(held < 5000);
}

/* Hits become misses: the mean is four times what it was and more, each tier serves as before. */
static void a_hotspot_that_moves_is_no_reason_to_brake(void **state)
{
	uint64_t braked, ticks = ticks_of_mixed_reads(true, false, 64, 0.95, 0.05, 40, &braked);

	(void)state;
	print_message("%llu ticks, braked %llu times\n", (unsigned long long)ticks, (unsigned long long)braked);
	assert_true(ticks > 60);
	assert_int_equal(braked, 0);
	/* The mean alone would have it so. */
	ticks_of_mixed_reads(false, false, 64, 0.95, 0.05, 40, &braked);
	assert_true(braked > 0);
}

/* Nobody is about: what is to be moved goes faster, by idle.boost. */
static void idle_time_is_used(void **state)
{
	double moved[2];

	(void)state;
	for (int boosted = 0; boosted < 2; boosted++) {
		struct sim *s = sim_create(BLOCKS, FAST);

		s->c.tuning.idle.boost = boosted ? 4 : 1;
		s->c.tuning.watermark.high = 0.5;
		s->c.tuning.watermark.low = 0.1;
		for (int t = 0; t < 2; t++)
			s->c.budget[t].bytes_per_second = 2e5;
		for (uint64_t b = 0; s->v.fast_used < FAST; b++)
			volume_write(&s->v, b * 7 % BLOCKS);
		sim_open(s);
		for (int i = 0; i < 300; i++)
			assert_int_equal(sim_tick(s), 0);
		moved[boosted] = (double)s->e.stats.written_bytes[1];
		sim_remove(s);
	}
	print_message("%.1f MB, %.1f with the boost\n", moved[0] / 1e6, moved[1] / 1e6);
	assert_true(moved[0] > 0);
	assert_true(moved[1] > 2 * moved[0]);
}

/*
 * Bytes that moves wrote below in 57 s of reads and writes anywhere, or, of a hotspot that moves after 20 s, the share of reads that were served
 * fast in the last 10, on a machine whose CPUs have so much of their time to spare.
 */
static double moved_with_idle(double idle, bool hotspot, double *hits)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	uint64_t reads = 0, fast = 0;
	double moved = 0;

	s->c.tuning.governor.epoch_ops = 1000000000;
	s->c.tuning.admit.uniform_hits = 1e12;	/* room is made, uniform or not, until twice as much was used as the tier holds */
	for (int t = 0; t < 2; t++)
		s->c.budget[t] = (struct budget_tunables){ .bytes_per_second = 4e6, .burst_seconds = 1, .in_flight = 16 };
	for (uint64_t b = 0; s->v.fast_used < FAST; b++)
		volume_write(&s->v, b * 7 % BLOCKS);
	sim_open(s);
	for (int tick = 0; tick < 600; tick++) {
		s->cpu_all += 10;
		s->cpu_idle += (uint64_t)(10 * idle);
		if (tick == 30)		/* from when it has been seen */
			moved = (double)s->e.stats.written_bytes[1];
		if (tick == 500)
			reads = s->e.state.reads, fast = s->e.state.fast_reads;
		for (int i = 0; i < 256; i++) {
			uint64_t block = prng_below(&s->prng, BLOCKS);

			if (hotspot && i % 16)
				block = (tick < 200 ? 0 : BLOCKS / 2) + prng_below(&s->prng, FAST / 4);
			sim_access(s, block, hotspot ? i % 16 == 1 : i % 2);
		}
		assert_int_equal(sim_tick(s), 0);
		assert_false(s->spares && idle > 0);
		assert_false(s->spares && hotspot && tick == 206);	/* there is something to learn */
	}
	if (hotspot && idle <= 0)
		assert_true(s->spares);
	*hits = (double)(s->e.state.fast_reads - fast) / (double)(s->e.state.reads - reads);
	moved = (double)s->e.stats.written_bytes[1] - moved;
	sim_remove(s);
	return moved;
}

/* Where the CPU is never idle moves keep to a two-hundredth of it, unless reads are served worse than they could be. */
static void full_cpus_hold_moves_back(void **state)
{
	double hits[4];
	double free = moved_with_idle(0.5, false, &hits[0]), held = moved_with_idle(0, false, &hits[1]);

	(void)state;
	print_message("uniform: %.2f MB moved, %.2f with all CPUs full\n", free / 1e6, held / 1e6);
	assert_true(free > 2 * held);
	moved_with_idle(0.5, true, &hits[2]);
	moved_with_idle(0, true, &hits[3]);
	print_message("a hotspot that has moved: %.3f of the reads fast, %.3f with all CPUs full\n", hits[2], hits[3]);
	assert_true(hits[2] > 0.9);
	assert_true(hits[3] > hits[2] - 0.03);
}

/* Just begun, nothing that is read is fast, and nobody knows yet what could be: moves are free until it is known. */
static void full_cpus_do_not_hold_back_what_is_not_known(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	s->c.tuning.admit.min_accesses = 1000000;
	sim_open(s);
	for (int tick = 0; tick < 50; tick++) {
		s->cpu_all += 10;
		for (int i = 0; i < 16; i++)
			sim_access(s, prng_below(&s->prng, BLOCKS), false);
		assert_int_equal(sim_tick(s), 0);
		assert_true(tick < 10 || s->e.cpu.full);
		assert_false(tick >= 10 && cpu_holds(&s->e.cpu));
		assert_false(tick >= 10 && s->e.cpu.served);
	}
	sim_remove(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_brake_holds_moves_back),
		cmocka_unit_test(who_is_slowed_down_most_is_heard),
		cmocka_unit_test(who_reads_little_is_protected),
		cmocka_unit_test(the_brake_hears_each_tier),
		cmocka_unit_test(the_brake_hears_a_tier_that_is_read_little),
		cmocka_unit_test(a_hotspot_that_moves_is_no_reason_to_brake),
		cmocka_unit_test(full_cpus_hold_moves_back),
		cmocka_unit_test(full_cpus_do_not_hold_back_what_is_not_known),
		cmocka_unit_test(idle_time_is_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
