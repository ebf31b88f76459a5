// SPDX-License-Identifier: GPL-2.0-or-later
/* The daemon's loop on a simulated volume: heat of what is discarded does not outlive it. */
#include "sim_lib.h"

#define BLOCKS	(64 * 1024)
#define FAST	(8 * 1024)

/* Heat of a discarded range is not the heat of what is written there next. */
static void discards_take_the_heat_away(void **state)
{
	(void)state;
	for (int heat = 0; heat < HEAT_KINDS; heat++) {
		struct sim *s = sim_create(BLOCKS / 4, FAST / 4);

		s->c.heat = (enum heat_kind)heat;
		sim_open(s);
		for (int i = 0; i < 20000; i++) {
			sim_access(s, (uint64_t)i % 512, false);
			if (i % 64 == 63)
				assert_int_equal(sim_tick(s), 0);
		}
		assert_true(warmth_hot(&s->e.warmth, 100));
		s->heard[s->nr_heard++] = (struct port_access){ .block = 0, .count = 512, .op = PORT_DISCARD };
		assert_int_equal(sim_tick(s), 0);
		for (uint64_t b = 0; b < 512; b++)
			assert_false(warmth_hot(&s->e.warmth, b));
		sim_remove(s);
	}
}

/*
 * Thousands of discards in a tick are made durable together, and the list of them never has to be emptied at once:
 * each commit is two fsyncs, and a merge of everything takes minutes where there is much.
 */
static void many_discards_cost_one_commit(void **state)
{
	struct sim *s = sim_create(4096 * 1024, FAST);
	uint32_t generation;
	double hot = 0;

	(void)state;
	sim_open(s);
	for (int i = 0; i < 40000; i++) {
		sim_access(s, (uint64_t)(i % 2000) * 2048 + 5, false);
		if (i % 64 == 63)
			assert_int_equal(sim_tick(s), 0);
	}
	for (uint64_t i = 0; i < 2000; i++)
		hot += warmth_hot(&s->e.warmth, i * 2048 + 5);
	assert_true(hot > 1500);
	for (uint64_t round = 0; round < 3; round++) {
		for (uint64_t i = 0; i < 2000; i++)
			s->heard[s->nr_heard++] = (struct port_access){
				.block = i * 2048 + round % 2 * 600, .count = 512 - round, .op = PORT_DISCARD,
			};
		generation = ralt_generation(s->e.warmth.ralt);
		assert_int_equal(sim_tick(s), 0);
		assert_int_equal(ralt_generation(s->e.warmth.ralt), generation + 1);
		for (int i = 0; i < 30; i++)
			assert_int_equal(sim_tick(s), 0);
		assert_int_equal(s->e.nr_cold, 0);
	}
	for (uint64_t i = 0; i < 2000; i++)
		assert_false(warmth_hot(&s->e.warmth, i * 2048 + 5));
	assert_int_equal(s->e.stats.heat_left, 0);
	sim_remove(s);
}

/* Pieces of a long one are one; where there is room those of cold blocks are remembered as well: they may have been used once. */
static void pieces_of_a_discard_are_one(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	struct ralt_stats st;

	(void)state;
	sim_open(s);
	assert_int_equal(sim_tick(s), 0);
	for (uint64_t b = 0; b < 4096; b += 8)
		s->heard[s->nr_heard++] = (struct port_access){ .block = b, .count = 8, .op = PORT_DISCARD };
	for (uint64_t b = 8192; b < 16384; b += 64)
		s->heard[s->nr_heard++] = (struct port_access){ .block = b, .count = 8, .op = PORT_DISCARD };
	assert_int_equal(sim_tick(s), 0);
	ralt_stats(s->e.warmth.ralt, &st);
	assert_int_equal(st.forgotten_ranges, 1 + 128);
	sim_remove(s);
}

static void discard(struct sim *s, uint64_t block, uint64_t nr)
{
	assert_true(s->nr_heard < SIM_HEARD);
	s->heard[s->nr_heard++] = (struct port_access){ .block = block, .count = (uint32_t)nr, .op = PORT_DISCARD };
}

/* Files of 1 to 15 blocks were hot and are deleted; what is written there once is not hot, and does not stay for it. */
static void short_discards_take_the_heat_away(void **state)
{
	(void)state;
	for (int heat = 0; heat < HEAT_KINDS; heat++) {
		struct sim *s = sim_create(BLOCKS, FAST);
		uint32_t was = 0, still = 0;

		s->c.heat = (enum heat_kind)heat;
		sim_open(s);
		for (int i = 0; i < 40000; i++) {
			sim_access(s, prng_below(&s->prng, 120) * 16 + prng_below(&s->prng, 15), false);
			if (i % 64 == 63)
				assert_int_equal(sim_tick(s), 0);
		}
		for (uint64_t b = 0; b < 120 * 16; b++)
			was += warmth_hot(&s->e.warmth, b);
		for (uint64_t file = 0; file < 120; file++)
			discard(s, file * 16, 1 + file % 15);
		for (int i = 0; i < 20; i++)
			assert_int_equal(sim_tick(s), 0);
		for (uint64_t b = 0; b < 120 * 16; b++) {
			if (b % 16 >= 1 + b / 16 % 15)
				continue;
			still += warmth_hot(&s->e.warmth, b);
			sim_access(s, b, true);
			assert_int_equal(sim_tick(s), 0);
			/* Clock and list may keep what was used once. */
			still += heat == HEAT_RALT && warmth_hot(&s->e.warmth, b);
		}
		print_message("%s: %u of 1800 hot, %u still\n", heat_kind_name(heat), was, still);
		assert_true(was > 1000);
		assert_int_equal(still, 0);
		assert_int_equal(s->e.stats.heat_left, 0);
		sim_remove(s);
	}
}

/* Thousands of them at once, and among them many more of blocks that nobody used: for these there is no room to waste. */
static void many_short_discards_take_the_heat_away(void **state)
{
	struct sim *s = sim_create(4096 * 1024, FAST);
	uint32_t was = 0, still = 0;

	(void)state;
	sim_open(s);
	for (int i = 0; i < 80000; i++) {
		sim_access(s, (uint64_t)(i % 4000) * 1024 + 5, false);
		if (i % 64 == 63)
			assert_int_equal(sim_tick(s), 0);
	}
	for (uint64_t i = 0; i < 4000; i++)
		was += warmth_hot(&s->e.warmth, i * 1024 + 5);
	for (uint64_t i = 0; i < 4000; i++) {
		for (uint64_t k = 1; k <= 12; k++)
			discard(s, i * 1024 + k % 12 * 64, 8);
		if (i % 500 == 499)
			assert_int_equal(sim_tick(s), 0);
	}
	for (int i = 0; i < 400; i++)
		assert_int_equal(sim_tick(s), 0);
	for (uint64_t i = 0; i < 4000; i++)
		still += warmth_hot(&s->e.warmth, i * 1024 + 5);
	print_message("%u of 4000 hot, %u still, %llu left\n", was, still, (unsigned long long)s->e.stats.heat_left);
	assert_true(was > 3000);
	assert_int_equal(still, 0);
	assert_int_equal(s->e.nr_cold, 0);
	assert_int_equal(s->e.stats.heat_left, 0);
	sim_remove(s);
}

/* A large one costs a clock or a list so much a tick, and all of it is done in the end; what is used behind it is not lost. */
static void all_of_a_large_discard_is_forgotten(void **state)
{
	(void)state;
	for (int heat = HEAT_CLOCK; heat <= HEAT_LRU; heat++) {
		struct sim *s = sim_create(2048 * 1024, FAST);
		uint32_t was = 0, still = 0;

		s->c.heat = (enum heat_kind)heat;
		sim_open(s);
		for (int i = 0; i < 40000; i++) {
			sim_access(s, (uint64_t)(i % 2000) * 1024 + 5, false);
			if (i % 64 == 63)
				assert_int_equal(sim_tick(s), 0);
		}
		for (uint64_t i = 0; i < 2000; i++)
			was += warmth_hot(&s->e.warmth, i * 1024 + 5);
		discard(s, 0, 2000 * 1024);
		assert_int_equal(sim_tick(s), 0);
		assert_int_equal(s->e.nr_cold, 1);
		for (int i = 0; i < 10; i++)
			assert_int_equal(sim_tick(s), 0);
		for (uint64_t i = 0; i < 2000; i++)
			still += warmth_hot(&s->e.warmth, i * 1024 + 5);
		print_message("%s: %u of 2000 hot, %u still\n", heat_kind_name(heat), was, still);
		assert_true(was > 1000);
		assert_int_equal(still, 0);
		assert_int_equal(s->e.nr_cold, 0);
		sim_remove(s);
	}
}

/* Told and not yet forgotten when the daemon stops: done on the way out. */
static void a_stop_forgets_what_was_discarded(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	sim_open(s);
	for (int i = 0; i < 20000; i++) {
		sim_access(s, (uint64_t)i % 512, false);
		if (i % 64 == 63)
			assert_int_equal(sim_tick(s), 0);
	}
	for (uint64_t b = 0; b < 512; b += 256) {
		assert_true(warmth_hot(&s->e.warmth, b + 100));
		discard(s, b, 256);
		assert_int_equal(sim_tick(s), 0);
	}
	assert_int_equal(s->e.nr_cold, 1);
	engine_close(&s->e);
	sim_open(s);
	for (int i = 0; i < 20; i++)
		assert_int_equal(sim_tick(s), 0);
	for (uint64_t b = 0; b < 512; b++)
		assert_false(warmth_hot(&s->e.warmth, b));
	sim_remove(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(discards_take_the_heat_away),
		cmocka_unit_test(many_discards_cost_one_commit),
		cmocka_unit_test(pieces_of_a_discard_are_one),
		cmocka_unit_test(short_discards_take_the_heat_away),
		cmocka_unit_test(many_short_discards_take_the_heat_away),
		cmocka_unit_test(all_of_a_large_discard_is_forgotten),
		cmocka_unit_test(a_stop_forgets_what_was_discarded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
