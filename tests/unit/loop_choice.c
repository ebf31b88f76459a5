// SPDX-License-Identifier: GPL-2.0-or-later
/* The daemon's loop on a simulated volume: which regions it chooses. */
#include "sim_lib.h"

#define BLOCKS	(64 * 1024)
#define FAST	(8 * 1024)

/* So many ticks, and no more use. */
static void quiet(struct sim *s, int ticks)
{
	while (ticks--)
		assert_int_equal(sim_tick(s), 0);
}

/* Of 64 regions that differ in their packs alone: how often one with much garbage is chosen. */
static double chosen_for_garbage(double saved)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	uint32_t nr = 0, garbage = 0;

	s->c.evaluate = true;
	s->c.endurance[1].drive_writes_per_day = 1;
	for (uint64_t b = 0; s->v.fast_used < FAST; b++)
		volume_write(&s->v, b / 128 * 1024 + b % 128);
	for (uint32_t r = 0; r < 64; r++) {
		s->v.region[r].packs = 4;
		s->v.region[r].packed = r % 2 ? 340 : 512;
		s->v.region[r].garbage = r % 2 ? 0 : 512;
	}
	sim_open(s);
	s->e.endurance[1].saved = saved * s->e.endurance[1].capacity;
	quiet(s, 50);
	for (; nr < s->e.decisions && nr < ENGINE_DECISIONS; nr++)
		garbage += s->e.decision[nr].region % 2 == 0;
	assert_true(nr > 20);
	sim_remove(s);
	return (double)garbage / nr;
}

/* The less may still be written to the drive below, the more counts how much of its packs a region's merge writes again. */
static void wear_changes_the_choice(void **state)
{
	double rested = chosen_for_garbage(1), worn = chosen_for_garbage(0.05);

	(void)state;
	print_message("with garbage: %.2f of the choices, %.2f where writing is dear\n", rested, worn);
	assert_true(rested < 0.1);
	assert_true(worn > 0.9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wear_changes_the_choice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
