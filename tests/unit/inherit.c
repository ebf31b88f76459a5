// SPDX-License-Identifier: GPL-2.0-or-later
/* Heat by descent: nothing lost, nothing made, and where it belongs. */
#include "policy_lib.h"

#include "decide/inherit.h"
#include "decide/prng.h"

#define N	256u	/* blocks of an input */

static double sum(const struct inherit_heat *h, uint64_t nr)
{
	double s = 0;

	for (uint64_t i = 0; i < nr; i++)
		s += (double)h[i].score;
	return s;
}

/* One input, copied: each block's heat is its own again. */
static void a_copy_is_as_hot(void **state)
{
	const struct inherit_step step[] = { { 300000, 300000 }, { N * 4096, N * 4096 } };
	struct inherit_heat in[N] = { 0 }, out[N] = { 0 };

	(void)state;
	for (uint32_t i = 0; i < N; i += 3)
		in[i] = (struct inherit_heat){ .score = (float)i, .stable = (float)i, .counter = (float)i * 2 };
	inherit_lay(step, 2, in, N, out, N);
	for (uint32_t i = 0; i < N; i++) {
		assert_near(out[i].score, in[i].score, 0.01);
		assert_near(out[i].counter, in[i].counter, 0.05);
	}
}

/* Two inputs into one of twice the size: a hot block lands where it was read, spread over two. */
static void two_are_merged(void **state)
{
	const struct inherit_step step[] = { { 2 * N * 4096, N * 4096 } };
	struct inherit_heat a[N] = { 0 }, b[N] = { 0 }, out[2 * N] = { 0 };

	(void)state;
	a[10].score = 8;
	b[200].score = 4;
	inherit_lay(step, 1, a, N, out, 2 * N);
	inherit_lay(step, 1, b, N, out, 2 * N);
	assert_near(out[20].score, 4, 0.01);
	assert_near(out[21].score, 4, 0.01);
	assert_near(out[400].score, 2, 0.01);
	assert_near(out[401].score, 2, 0.01);
	assert_near(sum(out, 2 * N), 12, 0.01);
}

/* Steps tell uneven progress: B is read only at the end. */
static void steps_are_followed(void **state)
{
	const struct inherit_step late[] = { { N * 4096, 0 }, { 2 * N * 4096, N * 4096 } };
	struct inherit_heat b[N] = { 0 }, out[2 * N] = { 0 };

	(void)state;
	b[0].score = 1;
	inherit_lay(late, 2, b, N, out, 2 * N);
	assert_near(out[N].score, 1, 0.01);
	assert_near(sum(out, N), 0, 0.001);
}

/* What is read before the outputs grow is not lost, and no disorder of steps makes heat. */
static void nothing_is_lost_or_made(void **state)
{
	struct prng p = { 7 };

	(void)state;
	for (int round = 0; round < 200; round++) {
		struct inherit_heat in[N] = { 0 }, out[N] = { 0 };
		struct inherit_step step[32] = { 0 };
		uint64_t at = 0, read = 0, end = N * 4096;

		for (uint32_t i = 0; i < N; i++)
			in[i].score = (float)prng_below(&p, 10);
		for (int k = 0; k < 31; k++) {
			at += prng_below(&p, 3) ? prng_below(&p, (end - at) / 4 + 1) : 0;
			read += prng_below(&p, (end - read) / 4 + 1);
			step[k] = (struct inherit_step){ at, read };
		}
		step[31] = (struct inherit_step){ end, end };
		if (at == end)
			continue;
		inherit_lay(step, 32, in, N, out, N);
		assert_near(sum(out, N), sum(in, N), 0.5);
	}
}

/* Outputs that are smaller than said, or not known: what lies beyond is left out. */
static void bounds_are_kept(void **state)
{
	const struct inherit_step step[] = { { 4 * N * 4096, 4 * N * 4096 } };
	struct inherit_heat in[N] = { 0 }, out[N] = { 0 };

	(void)state;
	for (uint32_t i = 0; i < N; i++)
		in[i].score = 1;
	inherit_lay(step, 1, in, N, out, N / 2);
	assert_near(sum(out, N), N / 2, 0.01);
	assert_near(out[N / 2].score, 0, 0);
	inherit_lay(step, 1, in, N, out, 0);
	inherit_lay(NULL, 0, in, N, out, N);
	assert_near(sum(out, N), N / 2, 0.01);
}

static void a_trace_of_heat_is_no_record(void **state)
{
	const struct inherit_heat none = { .score = 0.1f }, some = { .score = 4, .stable = 3, .counter = 10 };
	const struct inherit_heat young = { .score = 4, .stable = 1, .counter = 10 };
	double score, counter;
	bool stable;

	(void)state;
	assert_false(inherit_start(&none, &score, &counter, &stable));
	assert_true(inherit_start(&some, &score, &counter, &stable));
	assert_near(score, 4, 1e-6);
	assert_near(counter, 2.5, 1e-6);
	assert_true(stable);
	assert_true(inherit_start(&young, &score, &counter, &stable));
	assert_false(stable);
}

/* A twentieth is hot: too much for a stream to be cold, but for one to the last level, if that share is larger. */
static void shares_say_what_is_cold(void **state)
{
	(void)state;
	assert_false(inherit_is_cold(0.05, 0.01, 0.1, false));
	assert_true(inherit_is_cold(0.05, 0.06, 0.1, false));
	assert_true(inherit_is_cold(0.05, 0.01, 0.1, true));
	assert_false(inherit_is_cold(0.05, 0.01, 0.04, true));
	assert_true(inherit_is_cold(0.05, 0.06, 0.04, true));
	assert_false(inherit_is_cold(-1, 1, 1, true));
	assert_false(inherit_is_cold(0, -1, 1, true));	/* switched off */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copy_is_as_hot),
		cmocka_unit_test(two_are_merged),
		cmocka_unit_test(steps_are_followed),
		cmocka_unit_test(nothing_is_lost_or_made),
		cmocka_unit_test(bounds_are_kept),
		cmocka_unit_test(a_trace_of_heat_is_no_record),
		cmocka_unit_test(shares_say_what_is_cold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
