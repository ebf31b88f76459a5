// SPDX-License-Identifier: GPL-2.0-or-later
/* Quartiles of the heat: looked up now and then, and not once and for all. */
#include "ralt_lib.h"

#include "loop/warmth.h"

#define CALLS	8	/* of warmth_work(), for which they are believed */

static struct bench b;
static struct warmth w;
static struct tuning tuning;
static struct prng prng = { 1 };

static int open_warmth(void **state)
{
	struct warmth_config c = {
		.kind = HEAT_RALT, .directory = b.dir, .volume = 1, .nonce = 2, .blocks = 100000, .fast_blocks = 2000, .tuning = &tuning,
	};

	(void)state;
	bench_init(&b, 2000);
	tuning_defaults(&tuning);
	return warmth_open(&w, &c, &prng);
}

static int close_warmth(void **state)
{
	(void)state;
	warmth_close(&w);
	bench_exit(&b);
	return 0;
}

/* 2000 accesses, of more or fewer blocks: the fewer, the hotter they are. */
static void load(uint64_t blocks)
{
	for (int i = 0; i < 2000; i++)
		warmth_touch(&w, prng_below(&prng, blocks));
}

/* Are they as they would be if they were looked up now? */
static bool are_right(void)
{
	static struct warmth_region region;
	double now[3];

	assert_int_equal(warmth_look(&w, 0, true, &region), 0);
	ralt_quartiles(w.ralt, now);
	return !memcmp(now, w.quartiles, sizeof(now));
}

static void quartiles_are_believed_for_some_calls_and_no_longer(void **state)
{
	(void)state;
	warmth_work(&w, 0, &prng);
	load(4000);
	assert_true(are_right());
	for (uint64_t blocks = 2000; blocks > 100; blocks /= 2) {
		load(blocks);
		for (int i = 1; i < CALLS; i++) {
			warmth_work(&w, 0, &prng);
			assert_false(are_right());
		}
		warmth_work(&w, 0, &prng);
		assert_true(are_right());
	}
}

/* As after the start: with them everything would be of the highest level. */
static void quartiles_of_nothing_are_not_believed(void **state)
{
	(void)state;
	warmth_work(&w, 0, &prng);
	assert_true(are_right());
	load(4000);
	assert_true(are_right());
	assert_true(w.quartiles[0] > 0);
}

/* What is known of single blocks has nothing to do with them. */
static void without_levels_they_are_not_looked_up(void **state)
{
	struct warmth_region region;

	(void)state;
	load(4000);
	assert_int_equal(warmth_look(&w, 0, false, &region), 0);
	assert_false(w.knows_quartiles);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(quartiles_are_believed_for_some_calls_and_no_longer, open_warmth, close_warmth),
		cmocka_unit_test_setup_teardown(quartiles_of_nothing_are_not_believed, open_warmth, close_warmth),
		cmocka_unit_test_setup_teardown(without_levels_they_are_not_looked_up, open_warmth, close_warmth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
