// SPDX-License-Identifier: GPL-2.0-or-later
/* The daemon's loop on a simulated volume: when no room is made, or by the kernel's janitor. */
#include "sim_lib.h"

#define BLOCKS	(64 * 1024)
#define FAST	(8 * 1024)

/*
 * Demotions rest and room is the janitor's: it begins at the mark, and up to there blocks come up.  Below would be a
 * gap in which nobody makes room and nothing comes up.
 */
static void promotions_go_on_up_to_the_janitors_mark(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	s->c.tuning.governor.epoch_ops = 1000000;
	sim_open(s);
	for (uint64_t b = 0; s->v.fast_used < FAST * 0.975; b++)
		if (b % 16)
			volume_write(&s->v, b);
	s->e.governor.down = (struct governor_side){ .reason = GOVERNOR_COSTLY, .rest = 64 };
	/* Hot are 1024 blocks that lie below. */
	for (int i = 0; i < 60000; i++) {
		sim_access(s, prng_below(&s->prng, 1024) * 16, false);
		if (i % 64 == 63)
			assert_int_equal(sim_tick(s), 0);
	}
	assert_false(governor_allows_down(&s->e.governor));
	assert_false(s->claimed);
	assert_true(s->e.stats.promoted_by_flush > 30);
	/* It is the janitor's turn: its mark is in parts per thousand. */
	assert_true(s->v.fast_used * 1000 / FAST >= 980);
	/* What came up in the last tick is not in the fill that it began with. */
	assert_in_range(s->v.fast_used, 0, FAST * 99 / 100);
	sim_remove(s);
}

/*
 * What goes down is read again: no choice that is known is a good one, and the janitor knows none.  It stays out, nothing
 * is moved, and room is made when nobody is about.
 */
static void regret_keeps_the_janitor_out(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	uint64_t orders;

	(void)state;
	s->c.tuning.governor.epoch_ops = 1000000;
	sim_open(s);
	sim_hotspot(s, 60000, 4096, 0.95, 0.5);
	assert_false(s->e.rests);
	s->e.governor.down = (struct governor_side){ .reason = GOVERNOR_REGRET, .rest = 64 };
	orders = s->e.stats.orders[WHY_ROOM];
	sim_hotspot(s, 60000, 4096, 0.95, 0.5);
	assert_true(s->claimed);
	assert_int_equal(s->e.stats.orders[WHY_ROOM], orders);
	assert_int_equal(s->v.fast_used, FAST);
	assert_non_null(strstr(engine_still(&s->e), "read again"));
	for (int i = 0; i < 100; i++)
		assert_int_equal(sim_tick(s), 0);
	assert_false(governor_allows_down(&s->e.governor));
	assert_true(s->e.stats.orders[WHY_ROOM] > orders);
	assert_true(s->v.fast_used < FAST * 0.96);
	assert_null(engine_still(&s->e));
	/* Shelves that run short are the janitor's all the same. */
	s->home_full = true;
	for (int i = 0; i < 3; i++)
		assert_int_equal(sim_tick(s), 0);
	assert_false(s->claimed);
	sim_remove(s);
}

/* Everything that is used is hot, and more than the fast tier holds, half writes: demotions stop and say why. */
static void all_hot_stops_moves(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	s->c.tuning.governor.epoch_ops = 60000;
	sim_open(s);
	for (uint64_t i = 0; i < 240000; i++) {
		sim_access(s, prng_below(&s->prng, 10 * 1024) * 6, i % 2);
		if (i % 64 == 63)
			assert_int_equal(sim_tick(s), 0);
	}
	assert_true(s->e.governor.down.stops > 0);
	assert_non_null(strstr(s->log, "demotions stop"));
	/*
	 * Half of what went down is read again, which is below the bar (half, and a sixth more that chance would have read):
	 * the rest is written again first.  What shows is that an LRU would have hit more, without the cost.
	 */
	assert_non_null(strstr(s->log, "keeping hot blocks while making room cost more than their hits saved"));
	sim_remove(s);
}

static void uniform_load(struct sim *s, uint64_t ops, double writes)
{
	for (uint64_t i = 0; i < ops; i++) {
		sim_access(s, prng_below(&s->prng, s->v.blocks), prng_unit(&s->prng) < writes);
		if (i % 64 == 63)
			assert_int_equal(sim_tick(s), 0);
	}
}

/*
 * A uniform load, half writes or nothing but: no room is made, since none is better than another; nor does the janitor,
 * whose claim stays.  It is made when nobody is about, and when the load is skewed.
 */
static void a_uniform_load_waits_for_idle_time(void **state)
{
	(void)state;
	for (int writes = 1; writes <= 2; writes++) {
		struct sim *s = sim_create(BLOCKS, FAST);
		uint64_t orders;

		sim_open(s);
		uniform_load(s, 60000, writes / 2.0);
		assert_non_null(strstr(s->log, "making room waits for idle time: the load is uniform"));
		orders = s->e.stats.orders[WHY_ROOM];
		uniform_load(s, 60000, writes / 2.0);
		assert_int_equal(s->e.stats.orders[WHY_ROOM], orders);
		assert_int_equal(s->v.fast_used, FAST);
		assert_true(s->claimed);
		assert_non_null(strstr(engine_still(&s->e), "the load is uniform"));
		/* Ten seconds of rest. */
		for (int i = 0; i < 100; i++)
			assert_int_equal(sim_tick(s), 0);
		assert_true(s->v.fast_used < FAST * 0.96);
		assert_int_equal(times(s->log, "the load is uniform"), 1);
		sim_hotspot(s, 60000, 4096, 0.95, writes / 3.0);
		assert_non_null(strstr(s->log, "room is made again"));
		assert_true(s->v.fast_used < FAST * 0.99);
		assert_true(s->e.stats.retained > 0);
		sim_remove(s);
	}
}

/* As soon as its hits would stand out if it were another: a fast tier of 52,000 blocks need not have been filled twice for that. */
static void a_uniform_load_is_known_before_an_lru_is_full(void **state)
{
	const uint64_t blocks = 512 * 1024, fast = 52 * 1024;
	struct sim *s = sim_create(blocks, fast);

	(void)state;
	sim_open(s);
	uniform_load(s, 30000, 0.5);
	assert_true(s->e.rests);
	sim_hotspot(s, 30000, blocks / 20, 0.95, 0.5);
	assert_false(s->e.rests);
	sim_remove(s);

	/* 72 of 100 accesses to 30 of 100 blocks: 1.84 times the hits of chance. */
	s = sim_create(blocks, fast);
	sim_open(s);
	for (int turn = 0; turn < 10; turn++) {
		sim_hotspot(s, 6000, blocks * 3 / 10, 0.6, 0.5);
		assert_false(s->e.rests);
	}
	sim_remove(s);
}

/* While a uniform load lasts a sample of the slow reads will do, too; they are counted for what they stand for. */
static void a_uniform_load_needs_no_slow_read_told(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	uint64_t told, counted, below;

	(void)state;
	s->sample = 16;
	s->port.sampling = 1.0 / 16;
	s->port.slow_always = true;
	sim_open(s);
	uniform_load(s, 600000, 0.5);
	assert_true(s->e.rests);
	told = s->told;
	counted = s->e.stats.slow_reads;
	below = s->v.reads - s->v.fast_hits;
	uniform_load(s, 60000, 0.5);
	assert_in_range(s->told - told, 60000 / 20, 60000 / 12);
	below = s->v.reads - s->v.fast_hits - below;
	assert_in_range(s->e.stats.slow_reads - counted, below * 4 / 5, below * 6 / 5);
	/* It ends: each of them again. */
	sim_hotspot(s, 600000, 4096, 0.95, 0.3);
	assert_false(s->e.rests);
	assert_int_equal(s->port.slow_sampling, 1);
	assert_true(s->v.promoted > 1000);
	sim_remove(s);
}

static void until_judged(struct sim *s)
{
	uint64_t epochs = s->e.governor.epochs;

	while (s->e.governor.epochs == epochs)
		uniform_load(s, 64, 0.5);
}

/* Of blocks that went down @epochs ago, those that a uniform load reads within an epoch. */
static double regretted(uint32_t sample, uint32_t epochs, uint32_t regret_epochs)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	double n;

	s->sample = sample;
	s->port.sampling = sample ? 1.0 / sample : 1;
	s->port.slow_always = true;
	s->c.tuning.governor.epoch_ops = 60000;
	s->c.tuning.governor.regret_epochs = regret_epochs;
	sim_open(s);
	uniform_load(s, 300000, 0.5);
	assert_true(s->e.rests);
	assert_int_equal(s->port.slow_sampling, sample);
	until_judged(s);
	for (uint64_t b = 0; b < BLOCKS; b++)
		if (s->v.place[b] == PLACE_PACKED)
			repay_moved(&s->e.repay, b, REPAY_DOWN);
	s->e.repay.epoch += epochs;
	until_judged(s);
	n = s->e.governor.last.regretted;
	sim_remove(s);
	return n;
}

/* One in sixteen slow reads is told then.  Twice is regretted once, so the sample says a little more. */
static void regret_counts_reads_that_are_not_told(void **state)
{
	double each = regretted(0, 0, 8), sampled = regretted(16, 0, 8);

	(void)state;
	print_message("%.0f blocks were read again, by a sample of the reads %.0f\n", each, sampled);
	assert_in_range((uint64_t)each, 15000, 25000);
	assert_in_range((uint64_t)sampled, (uint64_t)each * 7 / 10, (uint64_t)each * 15 / 10);
}

/* Two epochs later they are regretted still, or not at all. */
static void regret_ends_after_some_epochs(void **state)
{
	(void)state;
	assert_true(regretted(0, 2, 8) > 15000);
	assert_near(regretted(0, 2, 2), 0, 0);
	assert_true(regretted(0, 2, 3) > 15000);
}

/* What only compactions read is not heard of: their load is not taken for uniform. */
static void reads_that_are_not_heard_are_no_uniform_load(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	sim_open(s);
	for (uint64_t i = 0; i < 60000; i++) {
		sim_access(s, prng_below(&s->prng, BLOCKS), true);
		volume_read(&s->v, prng_below(&s->prng, BLOCKS));
		if (i % 64 == 63)
			assert_int_equal(sim_tick(s), 0);
	}
	assert_false(s->e.rests);
	assert_true(s->v.fast_used < FAST);
	sim_remove(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(promotions_go_on_up_to_the_janitors_mark),
		cmocka_unit_test(regret_keeps_the_janitor_out),
		cmocka_unit_test(all_hot_stops_moves),
		cmocka_unit_test(a_uniform_load_waits_for_idle_time),
		cmocka_unit_test(a_uniform_load_is_known_before_an_lru_is_full),
		cmocka_unit_test(a_uniform_load_needs_no_slow_read_told),
		cmocka_unit_test(regret_counts_reads_that_are_not_told),
		cmocka_unit_test(regret_ends_after_some_epochs),
		cmocka_unit_test(reads_that_are_not_heard_are_no_uniform_load),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
