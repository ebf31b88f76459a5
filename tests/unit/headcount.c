// SPDX-License-Identifier: GPL-2.0-or-later
/* Head counts: the few get room for as many as are as hot as the volume's hottest, whatever their share of these is. */
#include <stdlib.h>

#include "policy_lib.h"

#include "decide/headcount.h"
#include "decide/miniature.h"

#define BLOCKS		4096u
#define FEW_SHIFT	4u
#define FEW		(BLOCKS >> FEW_SHIFT)

static void open_counts(struct headcount *h, uint64_t blocks, uint32_t wide, uint32_t few)
{
	size_t n = headcount_bytes(blocks, wide, few);
	void *mem = malloc(n);

	assert_int_equal(headcount_init(h, blocks, wide, few, mem, n - 1), -ENOMEM);
	assert_int_equal(headcount_init(h, blocks, few, few, mem, n), -EINVAL);
	assert_int_equal(headcount_init(h, 0, wide, few, mem, n), -EINVAL);
	assert_int_equal(headcount_init(h, blocks, wide, few, mem, n), 0);
}

static bool access_block(struct headcount *h, uint64_t block)
{
	return headcount_access(h, block, miniature_block(block >> h->few.shift, h->few.shift));
}

static void close_counts(struct headcount *h)
{
	free(h->wide.uses);
}

static void counts_are_sound(const struct headcount *h)
{
	const struct headcount_sample *both[] = { &h->wide, &h->few };

	for (int i = 0; i < 2; i++) {
		uint32_t at[HEADCOUNT_LEVELS] = { 0 };

		for (uint32_t n = 0; n < both[i]->blocks; n++)
			at[both[i]->uses[n]]++;
		assert_memory_equal(at, both[i]->used, sizeof(at));
	}
}

/* @hot of the few and @other of the rest, used twice each. */
static void use_twice(struct headcount *h, uint32_t hot, uint32_t other)
{
	for (uint64_t block = 0; block < BLOCKS; block++) {
		uint32_t *left = miniature_number(block, FEW_SHIFT) < 0 ? &other : &hot;

		for (int i = 0; *left && i < 2; i++)
			assert_false(access_block(h, block));
		*left -= *left > 0;
	}
}

/* 400 are hot: 25 would be in the sample by its share, but 40 are. */
static void room_is_for_as_many_as_are_as_hot(void **state)
{
	struct headcount h;

	(void)state;
	open_counts(&h, BLOCKS, 0, FEW_SHIFT);
	assert_near(headcount_room(&h, 400), 25, 1e-9);
	use_twice(&h, 40, 360);
	counts_are_sound(&h);
	assert_near(headcount_room(&h, 400), 40, 1e-9);
	assert_near(headcount_room(&h, 100), 10, 1e-9);
	/* What is left is the same share of what is cold. */
	assert_near(headcount_room(&h, 400 + 3696 / 2), 40 + 216 / 2, 1e-9);
	assert_near(headcount_room(&h, BLOCKS), FEW, 1e-9);
	assert_near(headcount_room(&h, 2 * BLOCKS), FEW, 1e-9);
	/* Discarded, they are as cold as all others; half of them: those that are left. */
	headcount_forget(&h, 0, 20u << FEW_SHIFT);
	counts_are_sound(&h);
	assert_near(headcount_room(&h, h.wide.used[2]), 20, 1e-9);
	headcount_forget(&h, 0, BLOCKS);
	assert_near(headcount_room(&h, 400), 25, 1e-9);
	close_counts(&h);
}

static void uses_are_of_lately(void **state)
{
	struct headcount h;
	uint64_t hot = miniature_block(7, FEW_SHIFT), halved = 0;

	(void)state;
	open_counts(&h, BLOCKS, 0, FEW_SHIFT);
	/* Each BLOCKS accesses, and no block has more than fit a byte. */
	for (uint32_t i = 1; i <= 3 * BLOCKS; i++) {
		bool now = access_block(&h, hot);

		halved += now;
		assert_int_equal(now, i % BLOCKS == 0);
	}
	assert_int_equal(halved, 3);
	assert_int_equal(h.few.uses[7], (HEADCOUNT_LEVELS - 1) / 2);
	assert_int_equal(h.wide.uses[hot], h.few.uses[7]);
	counts_are_sound(&h);
	/* It is used no more. */
	for (uint32_t i = 0; i < 7 * BLOCKS; i++)
		access_block(&h, hot == 0);
	assert_int_equal(h.wide.uses[hot], 0);
	assert_int_equal(h.few.uses[7], 0);
	counts_are_sound(&h);
	close_counts(&h);
}

/*
 * Half of a volume's blocks get each a different number of accesses. The wide sample is one block of four: what it says of the few is off
 * by the noise of a quarter, not of a 64th: of 3277 in it 1.5 %, of 205 in theirs 6.8 %.
 */
static void a_sample_of_the_counts_will_do(void **state)
{
	const uint64_t blocks = 256 * 1024, fast = blocks / 20;
	double square = 0, few_square = 0;

	(void)state;
	for (uint64_t round = 0; round < 32; round++) {
		struct headcount h;
		double hot = 0;

		open_counts(&h, blocks, 2, 6);
		for (uint64_t block = 0; block < blocks; block++)
			if (mix64(block + round * blocks) % 20 == 0) {
				access_block(&h, block);
				hot += miniature_number(block, 6) >= 0;
			}
		few_square += (hot / (double)(fast >> 6) - 1) * (hot / (double)(fast >> 6) - 1);
		square += (headcount_room(&h, (double)fast) / hot - 1) * (headcount_room(&h, (double)fast) / hot - 1);
		counts_are_sound(&h);
		/* One by one: it is the very block that is counted which is forgotten. */
		for (uint64_t block = 0; block < blocks; block++)
			if (mix64(block + round * blocks) % 20 == 0)
				headcount_forget(&h, block, 1);
		assert_int_equal(h.wide.used[0], h.wide.blocks);
		assert_int_equal(h.few.used[0], h.few.blocks);
		close_counts(&h);
	}
	print_message("of the hot ones: %.4f, were it by their share: %.4f\n", sqrt(square / 32), sqrt(few_square / 32));
	assert_true(sqrt(square / 32) < 0.025);
	assert_true(sqrt(few_square / 32) > 0.045);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(room_is_for_as_many_as_are_as_hot),
		cmocka_unit_test(uses_are_of_lately),
		cmocka_unit_test(a_sample_of_the_counts_will_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
