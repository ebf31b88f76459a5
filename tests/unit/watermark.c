// SPDX-License-Identifier: GPL-2.0-or-later
/* Watermarks: demotion from 98 to 95 %, room for promotions. */
#include "policy_lib.h"

#include "decide/watermark.h"

static void demotes_from_98_down_to_95(void **state)
{
	struct watermark_tunables t;
	struct watermark w = { false };

	(void)state;
	tunable_defaults(&watermark_tunable_table, &t);
	assert_int_equal(watermark_step(&w, &t, 9700, 10000).demote_blocks, 0);
	assert_int_equal(watermark_step(&w, &t, 9800, 10000).demote_blocks, 300);
	assert_int_equal(watermark_step(&w, &t, 9600, 10000).demote_blocks, 100);
	assert_int_equal(watermark_step(&w, &t, 9500, 10000).demote_blocks, 0);
	/* Below the low mark and up again: no flicker in between. */
	assert_int_equal(watermark_step(&w, &t, 9600, 10000).demote_blocks, 0);
	assert_int_equal(watermark_step(&w, &t, 9799, 10000).demote_blocks, 0);
}

static void room_ends_at_the_high_mark(void **state)
{
	struct watermark_tunables t;
	struct watermark w = { false };

	(void)state;
	tunable_defaults(&watermark_tunable_table, &t);
	assert_int_equal(watermark_step(&w, &t, 9000, 10000).room_blocks, 800);
	assert_int_equal(watermark_step(&w, &t, 9900, 10000).room_blocks, 0);
}

static void each_tunable_changes_the_outcome(void **state)
{
	struct watermark_tunables t;
	struct watermark w = { false };

	(void)state;
	assert_table_is_sound(&watermark_tunable_table, &t);
	t.low = 0.9;
	assert_int_equal(watermark_step(&w, &t, 9800, 10000).demote_blocks, 800);
	t.high = 0.93;
	w.demoting = false;
	assert_int_equal(watermark_step(&w, &t, 9400, 10000).demote_blocks, 400);
	assert_int_equal(watermark_check(&t), 0);
	t.low = 0.93;
	assert_int_equal(watermark_check(&t), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(demotes_from_98_down_to_95),
		cmocka_unit_test(room_ends_at_the_high_mark),
		cmocka_unit_test(each_tunable_changes_the_outcome),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
