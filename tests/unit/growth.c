// SPDX-License-Identifier: GPL-2.0-or-later
/* Growth: the forecast is that of the window, which reaches back up to a week in few moments. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "decide/growth.h"

#define SECOND	1000000000ull

static void nothing_yet_is_no_forecast(void **state)
{
	struct growth g = { 0 };

	(void)state;
	assert_true(growth_days_left(&g, 100) < 0);
	growth_note(&g, 5 * SECOND, 10);
	assert_true(growth_days_left(&g, 100) < 0);
	growth_note(&g, 6 * SECOND, 90);	/* too soon: not kept */
	assert_int_equal(g.nr, 1);
	growth_note(&g, 20 * SECOND, 10);
	assert_true(growth_days_left(&g, 100) < 0);	/* it does not grow */
}

static void steady_growth_is_foretold(void **state)
{
	struct growth g = { 0 };

	(void)state;
	/* 1000 blocks a day, for 30 days, told every 5 s */
	for (uint64_t s = 0; s < 30 * 86400; s += 5) {
		growth_note(&g, s * SECOND, s * 1000 / 86400);
		assert_true(g.nr <= GROWTH_MOMENTS);
		assert_true(growth_window_ns(&g) <= GROWTH_WEEK_NS * 2);
		if (s > 86400)
			assert_float_equal(growth_days_left(&g, 5000), 5, 0.1);
	}
	assert_true(growth_window_ns(&g) >= GROWTH_WEEK_NS * 9 / 10);
}

/* What happened before the window is forgotten. */
static void a_new_pace_wins_in_time(void **state)
{
	struct growth g = { 0 };
	uint64_t used = 0;

	(void)state;
	for (uint64_t s = 0; s < 40 * 86400; s += 60) {
		used += s < 10 * 86400 ? 100 : 1;
		growth_note(&g, s * SECOND, used);
	}
	assert_float_equal(growth_days_left(&g, 1440), 1, 0.05);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_yet_is_no_forecast),
		cmocka_unit_test(steady_growth_is_foretold),
		cmocka_unit_test(a_new_pace_wins_in_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
