// SPDX-License-Identifier: GPL-2.0-or-later
/* Tails against a plain list: bounded, the oldest leaves, the dead leave. */
#include "policy_lib.h"

#include "decide/prng.h"
#include "decide/tails.h"

#define BLOCKS	4096u
#define LIMIT	600u

static struct tails tails;

static int setup(void **state)
{
	(void)state;
	memset(&tails, 0, sizeof(tails));
	return 0;
}

static uint32_t masked(uint64_t region)
{
	struct upmask m;

	tails_mask(&tails, region, &m);
	return upmask_count(&m);
}

static void the_oldest_leaves(void **state)
{
	(void)state;
	tails_add(&tails, 100, 10, 25);
	tails_add(&tails, 50, 10, 25);
	tails_add(&tails, 1020, 10, 25);	/* over the border of two regions */
	assert_int_equal(tails.blocks, 20);
	assert_int_equal(tails.left, 10);
	assert_false(tails_have(&tails, 100));
	assert_true(tails_have(&tails, 50) && tails_have(&tails, 59) && !tails_have(&tails, 60));
	assert_int_equal(masked(0), 14);
	assert_int_equal(masked(1), 6);
	tails_limit(&tails, 10);
	assert_false(tails_have(&tails, 50));
	tails_add(&tails, 0, 30, 25);		/* too large for all of it: the others stay */
	assert_int_equal(tails.blocks, 10);
	tails_drop(&tails, 1025, 1);
	assert_int_equal(tails.blocks, 0);
}

static void agrees_with_a_list(void **state)
{
	static uint64_t serial[BLOCKS];	/* of the tail that a block is of */
	struct prng p = { 3 };

	(void)state;
	memset(serial, 0, sizeof(serial));
	for (uint64_t n = 1; n < 500; n++) {
		uint64_t first = prng_below(&p, BLOCKS - 40), nr = prng_below(&p, 40) + 1, total = 0;
		bool drop = !prng_below(&p, 4);

		if (drop)
			tails_drop(&tails, first, nr);
		else
			tails_add(&tails, first, nr, LIMIT);
		for (uint64_t b = first; b < first + nr; b++) {
			uint64_t gone = serial[b];

			for (uint64_t k = 0; gone && k < BLOCKS; k++)
				serial[k] = serial[k] == gone ? 0 : serial[k];
		}
		for (uint64_t b = first; !drop && b < first + nr; b++)
			serial[b] = n;
		for (;;) {
			uint64_t oldest = UINT64_MAX;

			total = 0;
			for (uint64_t b = 0; b < BLOCKS; b++) {
				total += serial[b] != 0;
				oldest = serial[b] && serial[b] < oldest ? serial[b] : oldest;
			}
			if (total <= LIMIT)
				break;
			for (uint64_t b = 0; b < BLOCKS; b++)
				serial[b] = serial[b] == oldest ? 0 : serial[b];
		}
		assert_int_equal(tails.blocks, total);
		for (uint64_t b = 0; b < BLOCKS; b += 7)
			assert_int_equal(tails_have(&tails, b), serial[b] != 0);
		assert_int_equal(masked(0) + masked(1) + masked(2) + masked(3), total);
	}
}

static void cut_by_cut(void **state)
{
	static bool have[BLOCKS];
	struct prng p = { 5 };

	(void)state;
	memset(have, 0, sizeof(have));
	for (uint64_t n = 1; n < 500; n++) {
		uint64_t first = prng_below(&p, BLOCKS - 40), nr = prng_below(&p, 40) + 1, total = 0;
		bool cut = prng_below(&p, 2);

		if (!cut)
			tails_cut(&tails, first, nr);	/* adding takes back whole tails that overlap */
		if (cut)
			tails_cut(&tails, first, nr);
		else
			tails_add(&tails, first, nr, UINT64_MAX);
		for (uint64_t b = first; b < first + nr; b++)
			have[b] = !cut;
		for (uint64_t b = 0; b < BLOCKS; b++) {
			assert_int_equal(tails_have(&tails, b), have[b]);
			total += have[b];
		}
		assert_int_equal(tails.blocks, total);
	}
	/* no room for the rest behind the cut */
	setup(NULL);
	tails_add(&tails, 1000000, 10, UINT64_MAX);
	for (uint64_t i = 1; i < TAILS_MAX; i++)
		tails_add(&tails, i * 2, 1, UINT64_MAX);
	tails_cut(&tails, 1000004, 2);
	assert_int_equal(tails.nr, TAILS_MAX);
	assert_true(tails_have(&tails, 1000003) && !tails_have(&tails, 1000004) && !tails_have(&tails, 1000006));
	assert_int_equal(tails.blocks, TAILS_MAX - 1 + 4);
}

static void bounded_in_number(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < TAILS_MAX + 100; i++)
		tails_add(&tails, i * 2, 1, UINT64_MAX / 2);
	assert_int_equal(tails.nr, TAILS_MAX);
	assert_false(tails_have(&tails, 0));
	assert_true(tails_have(&tails, (TAILS_MAX + 99) * 2));
}

/* By when they were added; what is left of one that was cut is as old as it was. */
static void the_older_ones_go(void **state)
{
	uint64_t then;

	(void)state;
	for (uint64_t i = 0; i < 10; i++)
		tails_add(&tails, (9 - i) * 100, 10, UINT64_MAX);
	then = tails.serial;
	tails_cut(&tails, 204, 2);
	tails_add(&tails, 5000, 7, UINT64_MAX);
	tails_cut(&tails, 300, 10);
	tails_add(&tails, 300, 10, UINT64_MAX);		/* anew */
	assert_int_equal(tails.blocks, 10 * 10 - 2 + 7);
	tails_older(&tails, 0);
	assert_int_equal(tails.blocks, 10 * 10 - 2 + 7);
	tails_older(&tails, then);
	assert_int_equal(tails.nr, 2);
	assert_int_equal(tails.blocks, 17);
	assert_true(tails_have(&tails, 5006) && tails_have(&tails, 309) && !tails_have(&tails, 203) && !tails_have(&tails, 206));
	tails_older(&tails, tails.serial);
	assert_int_equal(tails.nr, 0);
	assert_int_equal(tails.blocks, 0);
}

static void tails_begin_in_whole_blocks(void **state)
{
	(void)state;
	assert_int_equal(tails_begin(1 << 20, 0.25), (1 << 20) - (1 << 18));
	assert_int_equal(tails_begin((64 << 20) + 5, 0.02) % 4096, 0);
	assert_int_equal(tails_begin(100000, 0.02), 32768);	/* 64 KiB at least */
	assert_int_equal(tails_begin(5000, 0.02), 0);
	assert_int_equal(tails_begin(0, 0.02), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_oldest_leaves, setup),
		cmocka_unit_test_setup(agrees_with_a_list, setup),
		cmocka_unit_test_setup(cut_by_cut, setup),
		cmocka_unit_test_setup(bounded_in_number, setup),
		cmocka_unit_test_setup(the_older_ones_go, setup),
		cmocka_unit_test_setup(tails_begin_in_whole_blocks, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
