// SPDX-License-Identifier: GPL-2.0-or-later
/* The daemon's loop on a simulated volume: what is packed, how, and what samples say of it. */
#include "sim_lib.h"

#define BLOCKS	(64 * 1024)
#define FAST	(8 * 1024)

/* What a sample says does not shrink is not compressed; no sample, and it goes by what packing gained. */
static void nothing_is_compressed_in_vain(void **state)
{
	(void)state;
	for (int mute = 0; mute < 2; mute++) {
		struct sim *s = sim_create(BLOCKS, FAST);

		s->samples = true;
		s->mute = mute;
		s->c.tuning.governor.min_moved = 1e9;
		s->c.tuning.admit.uniform = 0;
		sim_open(s);
		for (int i = 0; i < 60000; i++) {
			sim_access(s, (uint64_t)i * 7 % BLOCKS, true);
			if (i % 64 == 63)
				assert_int_equal(sim_tick(s), 0);
		}
		assert_true(s->v.fast_used < FAST);
		assert_true(s->e.stats.samples > 10 || mute);
		assert_int_equal(s->e.stats.failed, 0);
		print_message("packed %u even, %u odd; as it is %u even, %u odd\n", s->packed_even, s->packed_odd,
			      s->plain_even, s->plain_odd);
		assert_true(s->packed_even > 10);
		assert_int_equal(s->packed_in_vain, 0);
		if (mute) {
			assert_true(s->packed_odd > 10);
			/* What comes when nobody waits any more is taken all the same: until then it holds a place. */
			for (int i = 0; i < 60000 && s->e.gains_waiting; i++) {
				sim_access(s, (uint64_t)i * 7 % BLOCKS, true);
				if (i % 64 == 63)
					assert_int_equal(sim_tick(s), 0);
			}
			assert_int_equal(s->e.gains_waiting, 0);
			assert_true(s->nr_asked > 0);
			s->mute = false;
			assert_int_equal(sim_tick(s), 0);
			assert_int_equal(s->nr_asked, 0);
		} else {
			/* Where no sample came: more orders at a time than may wait for one. */
			assert_true(s->plain_odd > 10 && s->plain_even == 0);
			assert_true(s->packed_odd * 50 <= s->plain_odd);
		}
		sim_remove(s);
	}
}

/* Where no sample comes, for a while, it goes by what those before have shown. */
static void what_samples_showed_holds_for_others(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	uint32_t plain = 0;

	(void)state;
	s->samples = s->solid = true;
	s->c.tuning.governor.min_moved = 1e9;
	s->c.tuning.admit.uniform = 0;
	sim_open(s);
	for (int i = 0; i < 90000; i++) {
		sim_access(s, (uint64_t)i * 7 % BLOCKS, true);
		if (i == 30000) {
			assert_true(s->e.stats.samples > 10);
			s->mute = true;
			plain = s->plain_even + s->plain_odd;
		}
		if (i % 64 == 63)
			assert_int_equal(sim_tick(s), 0);
	}
	assert_true(s->plain_even + s->plain_odd > plain + 10);
	/* one try in 64 */
	assert_true((s->packed_even + s->packed_odd) * 50 <= s->plain_even + s->plain_odd - plain);
	sim_remove(s);
}

/* A choice that a limit holds back keeps its sample: it is not read again and again. */
static void a_held_order_is_sampled_once(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	s->samples = true;
	s->c.tuning.governor.min_moved = 1e9;
	s->c.tuning.admit.uniform = 0;
	s->c.tuning.idle.boost = 1;
	for (int t = 0; t < 2; t++)
		s->c.budget[t].bytes_per_second = 10e3;
	sim_open(s);
	for (int i = 0; i < 30000; i++) {
		sim_access(s, (uint64_t)i * 7 % BLOCKS, true);
		if (i % 64 == 63)
			assert_int_equal(sim_tick(s), 0);
	}
	assert_true(s->e.stats.held_by_budget > 100);
	assert_in_range(s->e.stats.samples, 1, 40);
	sim_remove(s);
}

/*
 * What goes down, @solid: none of it shrinks, while no CPU is idle, @share: of the CPUs' time is for moves then, 0: there are idle ones;
 * how many samples were taken, and how many orders given.
 */
static void samples_of(bool solid, double share, uint64_t *samples, uint64_t *orders)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	s->samples = true;
	s->solid = solid;
	s->c.tuning.governor.min_moved = 1e9;
	s->c.tuning.admit.uniform = 0;
	s->c.tuning.cpu.share = share;
	sim_open(s);
	for (int i = 0; i < 60000; i++) {
		sim_access(s, (uint64_t)i * 7 % BLOCKS, true);
		if (i % 64 != 63)
			continue;
		s->cpu_all += 10;
		s->cpu_idle += share > 0 ? 0 : 5;
		assert_int_equal(sim_tick(s), 0);
	}
	*samples = s->e.stats.samples;
	*orders = s->e.stats.done;
	assert_int_equal(s->packed_in_vain, 0);
	assert_true(solid || s->packed_even > 10);
	sim_remove(s);
}

static void full_cpus_sample_an_eighth_of_what_does_not_shrink(void **state)
{
	uint64_t idle, busy, held, shrinks, orders[4];

	(void)state;
	samples_of(true, 0, &idle, &orders[0]);
	samples_of(true, 1, &busy, &orders[1]);
	samples_of(true, 0.005, &held, &orders[2]);
	samples_of(false, 1, &shrinks, &orders[3]);
	print_message("%lu samples of %lu orders, with all CPUs full %lu of %lu, where orders are held %lu of %lu; %lu of %lu of what shrinks\n",
		      idle, orders[0], busy, orders[1], held, orders[2], shrinks, orders[3]);
	assert_true(idle > 100 && orders[1] * 2 > orders[0] && orders[2] > 50);
	assert_in_range(busy * 100 / orders[1], 5, idle * 100 / orders[0] / 3);
	assert_in_range(held * 100 / orders[2], 5, idle * 100 / orders[0] / 3);
	assert_true(shrinks * orders[0] * 2 > idle * orders[3]);
}

/* In clusters of several blocks those with the most heat come first, of each source of it. */
static void the_warmest_come_first(void **state)
{
	(void)state;
	for (int heat = 0; heat < HEAT_KINDS; heat++) {
		struct sim *s = sim_create(BLOCKS, FAST);

		s->c.heat = heat;
		s->c.tuning.codec.frozen = 0;		/* all is packed in clusters of 16 */
		if (heat == HEAT_LRU) {			/* what is known goes down only where there is no room for all of it */
			s->c.tuning.watermark.high = 0.5;
			s->c.tuning.watermark.low = 0.4;
		}
		sim_open(s);
		sim_hotspot(s, 30000, 2048, 0.5, 0.7);
		print_message("%s: %u orders, %u blocks first, %u not\n", heat_kind_name(heat), s->clustered, s->warmed,
			      s->unwarmed);
		assert_true(s->clustered > 10);
		assert_true(s->warmed > 1000);
		assert_int_equal(s->unwarmed, 0);
		sim_remove(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_compressed_in_vain),
		cmocka_unit_test(what_samples_showed_holds_for_others),
		cmocka_unit_test(a_held_order_is_sampled_once),
		cmocka_unit_test(full_cpus_sample_an_eighth_of_what_does_not_shrink),
		cmocka_unit_test(the_warmest_come_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
