// SPDX-License-Identifier: GPL-2.0-or-later
/* The `up` mask: retention, promotion within the room, pins, bans; and the flush rule. */
#include "policy_lib.h"

#include "decide/flush.h"
#include "decide/prng.h"
#include "decide/upmask.h"
#include "decide/warmest.h"

/*
 * block   0 fast hot     -> kept (retention)
 *         1 fast cold    -> down
 *         2 packed hot   -> up (promotion)
 *         3 packed cold  -> stays down
 *         4 fast cold, pinned   -> kept
 *         5 packed cold, pinned -> up
 *         6 fast hot, banned    -> down
 *         7 packed hot, banned  -> stays down
 *         8 hot, nowhere (unmapped) -> nothing
 *      1023 packed hot   -> up, the last bit
 */
static struct upmask_input example(void)
{
	struct upmask_input in = { 0 };
	const uint32_t fast[] = { 0, 1, 4, 6 }, packed[] = { 2, 3, 5, 7, 1023 };
	const uint32_t hot[] = { 0, 2, 6, 7, 8, 1023 };

	for (size_t i = 0; i < 4; i++)
		upmask_set(&in.fast, fast[i]);
	for (size_t i = 0; i < 5; i++)
		upmask_set(&in.packed, packed[i]);
	for (size_t i = 0; i < 6; i++)
		upmask_set(&in.hot, hot[i]);
	upmask_set(&in.pins, 4);
	upmask_set(&in.pins, 5);
	upmask_set(&in.banned, 6);
	upmask_set(&in.banned, 7);
	return in;
}

static void each_kind_of_block_ends_where_it_should(void **state)
{
	struct upmask_input in = example();
	struct upmask_result r;
	const uint32_t up[] = { 0, 2, 4, 5, 1023 };

	(void)state;
	upmask_build(&r, &in, 1000);
	assert_int_equal(upmask_count(&r.up), 5);
	for (size_t i = 0; i < 5; i++)
		assert_true(upmask_test(&r.up, up[i]));
	assert_int_equal(r.retained, 2);	/* 0 and 4 */
	assert_int_equal(r.promoted, 3);	/* 2, 5 and 1023 */
	assert_int_equal(r.demoted, 2);		/* 1 and 6 */
	assert_int_equal(r.refused, 0);
}

static void room_limits_promotion_but_not_pins_or_retention(void **state)
{
	struct upmask_input in = example();
	struct upmask_result r;

	(void)state;
	upmask_build(&r, &in, 1);
	assert_true(upmask_test(&r.up, 2));
	assert_false(upmask_test(&r.up, 1023));
	assert_int_equal(r.refused, 1);
	upmask_build(&r, &in, 0);
	assert_int_equal(upmask_count(&r.up), 3);	/* 0, 4, 5 */
	assert_int_equal(r.refused, 2);
}

/* Against the definition, bit by bit, on random inputs. */
static void agrees_with_the_definition(void **state)
{
	struct prng p = { 4 };

	(void)state;
	for (int round = 0; round < 200; round++) {
		struct upmask_input in;
		struct upmask_result r;
		uint32_t n = 0;

		for (uint32_t w = 0; w < UPMASK_WORDS; w++) {
			in.fast.bits[w] = prng_next(&p);
			in.packed.bits[w] = prng_next(&p) & ~in.fast.bits[w];
			in.hot.bits[w] = prng_next(&p);
			in.pins.bits[w] = prng_next(&p) & prng_next(&p) & prng_next(&p);
			in.banned.bits[w] = prng_next(&p) & prng_next(&p);
		}
		upmask_build(&r, &in, UINT32_MAX);
		for (uint32_t b = 0; b < REGION_BLOCKS; b++) {
			bool here = upmask_test(&in.fast, b) || upmask_test(&in.packed, b);
			bool want = (upmask_test(&in.hot, b) || upmask_test(&in.pins, b)) &&
				    here && !upmask_test(&in.banned, b);

			assert_int_equal(upmask_test(&r.up, b), want);
			n += upmask_test(&in.fast, b);
		}
		assert_int_equal(r.retained + r.demoted, n);
		assert_int_equal(r.retained + r.promoted, upmask_count(&r.up));
	}
}

/* Of 64 adjacent blocks, 60 of them there, 36 are six tenths: the others go up with one of them, 35 are too few. */
static void neighbours_follow_where_enough_is_hot(void **state)
{
	struct upmask fast = { 0 }, packed = { 0 }, known = { 0 }, up;
	struct flush_tunables t;

	(void)state;
	tunable_defaults(&flush_tunable_table, &t);
	fast.bits[3] = 0xffffull;			/* 16 blocks */
	packed.bits[3] = ((1ull << 60) - 1) & ~0xffffull;	/* 44 */
	packed.bits[4] = ~0ull;				/* as hot, but nothing of it goes up */
	packed.bits[5] = known.bits[5] = 0x7fffffffull;	/* 31 blocks say too little */
	known.bits[3] = known.bits[4] = (1ull << 35) - 1;
	up = (struct upmask){ .bits[3] = 1ull << 20, .bits[5] = 1 };
	assert_int_equal(upmask_neighbours(&up, &known, &fast, &packed, t.neighbours, 1000), 0);
	assert_int_equal(upmask_count(&up), 2);
	up.bits[3] = 1ull << 40;			/* going up makes it known: 36 */
	assert_int_equal(upmask_neighbours(&up, &known, &fast, &packed, t.neighbours, 1000), 43);
	assert_true(up.bits[3] == packed.bits[3]);
	assert_int_equal(up.bits[4], 0);
	assert_int_equal(up.bits[5], 1);
	up.bits[3] = 1ull << 40;
	assert_int_equal(upmask_neighbours(&up, &known, &fast, &packed, t.neighbours, 5), 5);
	up.bits[3] = 1ull << 40;
	assert_int_equal(upmask_neighbours(&up, &known, &fast, &packed, 0.7, 1000), 0);
}

/* Run 256: 128 hot are half of it, 127 are not; a short batch is its own run. */
static void half_a_run_is_promoted_less_goes_back(void **state)
{
	struct flush_tunables t;

	(void)state;
	assert_table_is_sound(&flush_tunable_table, &t);
	assert_int_equal(flush_decide(&t, 256, 128), FLUSH_PROMOTE);
	assert_int_equal(flush_decide(&t, 256, 127), FLUSH_KEEP);
	assert_int_equal(flush_decide(&t, 256, 0), FLUSH_NOTHING);
	assert_int_equal(flush_decide(&t, 10, 5), FLUSH_PROMOTE);
	assert_int_equal(flush_decide(&t, 10, 4), FLUSH_KEEP);
	assert_int_equal(flush_decide(&t, 10000, 128), FLUSH_PROMOTE);
	t.hot_fraction = 0.4;
	assert_int_equal(flush_decide(&t, 10, 4), FLUSH_PROMOTE);
	t.run_blocks = 512;
	assert_int_equal(flush_decide(&t, 10000, 128), FLUSH_KEEP);
}

/* By clusters of 4 of what is packed: in each the highest level, whatever the number; where all are alike, nothing. */
static void the_warmest_of_each_cluster_come_first(void **state)
{
	struct upmask packed = { .bits[0] = 0xfff0ull, .bits[15] = 1ull << 63 | 7 }, warm;
	int8_t level[REGION_BLOCKS];

	(void)state;
	memset(level, -1, sizeof(level));
	level[0] = 3;				/* not packed */
	level[7] = 1;				/* 4 to 7: the last */
	level[8] = level[9] = level[10] = level[11] = 2;
	level[12] = 3, level[13] = 2, level[15] = 3;
	level[1023] = 0;			/* 960, 961, 962, 1023 */
	warmest(&warm, &packed, level, 4);
	assert_int_equal(warm.bits[0], 1ull << 7 | 1ull << 12 | 1ull << 15);
	assert_int_equal(warm.bits[15], 1ull << 63);
	assert_int_equal(upmask_count(&warm), 4);
	/* one cluster of 12 and the first of the last four, then three that are alike but one */
	level[1023] = -1;
	warmest(&warm, &packed, level, 16);
	assert_int_equal(warm.bits[0], 1ull << 12 | 1ull << 15);
	assert_int_equal(upmask_count(&warm), 2);
	warmest(&warm, &packed, level, 1);
	assert_int_equal(upmask_count(&warm), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_of_block_ends_where_it_should),
		cmocka_unit_test(room_limits_promotion_but_not_pins_or_retention),
		cmocka_unit_test(agrees_with_the_definition),
		cmocka_unit_test(neighbours_follow_where_enough_is_hot),
		cmocka_unit_test(the_warmest_of_each_cluster_come_first),
		cmocka_unit_test(half_a_run_is_promoted_less_goes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
