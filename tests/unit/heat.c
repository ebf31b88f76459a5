// SPDX-License-Identifier: GPL-2.0-or-later
/* The three heat sources answer the same question; the LRU list behind one of them. */
#include "policy_lib.h"

#include "decide/heat.h"

static void lru_keeps_the_latest(void **state)
{
	size_t bytes = recency_bytes(4);
	void *mem = malloc(bytes);
	struct recency r;

	(void)state;
	assert_int_equal(recency_init(&r, 0, mem, bytes), -EINVAL);
	assert_int_equal(recency_init(&r, 100, mem, bytes), -ENOMEM);
	assert_int_equal(recency_init(&r, 4, mem, bytes), 0);
	for (uint64_t b = 1; b <= 4; b++)
		assert_false(recency_touch(&r, b));
	assert_true(recency_touch(&r, 1));
	recency_touch(&r, 5);			/* 2 is now the oldest */
	assert_int_equal(recency_level(&r, 2), RECENCY_NO_LEVEL);
	/* Stamps 3:3 4:4 1:5 5:6, now 6, oldest 3: span 4, ages 3 2 1 0. */
	assert_int_equal(recency_level(&r, 3), 0);
	assert_int_equal(recency_level(&r, 4), 1);
	assert_int_equal(recency_level(&r, 1), 2);
	assert_int_equal(recency_level(&r, 5), 3);
	assert_true(recency_forget(&r, 4));
	assert_false(recency_forget(&r, 4));
	assert_int_equal(r.count, 3);
	free(mem);
}

/* Against a plain array kept in order. */
static void lru_agrees_with_a_simple_list(void **state)
{
	enum { LIMIT = 37, BLOCKS = 90 };
	size_t bytes = recency_bytes(LIMIT);
	void *mem = malloc(bytes);
	uint64_t list[LIMIT + 1];
	size_t n = 0;
	struct recency r;
	struct prng p = { 8 };

	(void)state;
	recency_init(&r, LIMIT, mem, bytes);
	for (int i = 0; i < 20000; i++) {
		uint64_t b = prng_below(&p, BLOCKS);
		bool drop = !prng_below(&p, 7);
		size_t at = 0;

		if (!prng_below(&p, 500)) {
			recency_empty(&r);
			n = 0;
		}
		while (at < n && list[at] != b)
			at++;
		assert_int_equal(drop ? recency_forget(&r, b) : recency_touch(&r, b), at < n);
		if (at < n) {
			memmove(&list[at], &list[at + 1], (n - at - 1) * sizeof(*list));
			n--;
		}
		if (!drop) {
			memmove(&list[1], &list[0], n * sizeof(*list));
			list[0] = b;
			n = n + 1 > LIMIT ? LIMIT : n + 1;
		}
		assert_int_equal(r.count, n);
		if (n)
			assert_int_equal(r.entries[r.oldest].block, list[n - 1]);
	}
	free(mem);
}

static bool odd_is_hot(void *ctx, uint64_t block)
{
	(void)ctx;
	return block & 1;
}

static double score_is_block(void *ctx, uint64_t block)
{
	(void)ctx;
	return block == 99 ? -1 : (double)block;
}

static void quantiles_of_scores(void **state)
{
	const double q[3] = { 1, 5, 20 };

	(void)state;
	assert_int_equal(heat_quantile(-1, q), -1);
	assert_int_equal(heat_quantile(0, q), 0);
	assert_int_equal(heat_quantile(0.99, q), 0);
	assert_int_equal(heat_quantile(1, q), 1);
	assert_int_equal(heat_quantile(5, q), 2);
	assert_int_equal(heat_quantile(1000, q), 3);
	assert_int_equal(heat_quantile((double)NAN, q), -1);
}

static void each_source_answers(void **state)
{
	struct heat_ralt ralt = { NULL, odd_is_hot, score_is_block, { 1, 5, 20 } };
	struct tracker_tunables tt;
	struct mapper_tunables mt;
	struct tracker tr;
	struct mapper m;
	struct recency rec;
	struct prng p = { 1 };
	uint64_t tracker_mem[16];
	void *mem = malloc(recency_bytes(2));
	struct heat h = { HEAT_RALT, &ralt, &tr, &m, &rec };

	(void)state;
	tunable_defaults(&tracker_tunable_table, &tt);
	tunable_defaults(&mapper_tunable_table, &mt);
	assert_int_equal(tracker_init(&tr, &tt, 8, tracker_mem, sizeof(tracker_mem)), 0);
	recency_init(&rec, 2, mem, recency_bytes(2));
	tracker_touch(&tr, 30, 0);
	tracker_touch(&tr, 30, 0);
	tracker_touch(&tr, 31, 0);
	mapper_refresh(&m, &mt, &tr, &p);
	recency_touch(&rec, 77);

	assert_int_equal(heat_level(&h, 30, 0), 3);
	assert_int_equal(heat_level(&h, 99, 0), -1);
	assert_false(heat_hot(&h, 30, 0));
	assert_true(heat_hot(&h, 31, 0));
	h.kind = HEAT_CLOCK;	/* 2 tracked, 70 % = 1.4: value 3 whole, value 0 at 0.4 */
	assert_int_equal(heat_level(&h, 30, 0), 3);
	assert_int_equal(heat_level(&h, 31, 0), 0);
	assert_int_equal(heat_level(&h, 77, 0), -1);
	assert_true(heat_hot(&h, 30, 0));
	assert_false(heat_hot(&h, 77, 0));
	h.kind = HEAT_LRU;
	assert_int_equal(heat_level(&h, 77, 0), 3);
	assert_true(heat_hot(&h, 77, 0));
	assert_false(heat_hot(&h, 30, 0));
	assert_string_equal(heat_kind_name(HEAT_CLOCK), "clock");
	assert_null(heat_kind_name(HEAT_KINDS));
	free(mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lru_keeps_the_latest),
		cmocka_unit_test(lru_agrees_with_a_simple_list),
		cmocka_unit_test(quantiles_of_scores),
		cmocka_unit_test(each_source_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
