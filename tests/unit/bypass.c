// SPDX-License-Identifier: GPL-2.0-or-later
/* The promotion cache keeps decoded what is hotter than mean + k sigma, and tunes k. */
#include "core_lib.h"
#include "bypass.h"

#define CLUSTERS	1000

static struct tr_heat heat[CLUSTERS];

static void fill(struct tr_bypass *b)
{
	u32 i;

	tr_bypass_init(b);
	for (i = 0; i < CLUSTERS; i++)
		tr_bypass_add(b, &heat[i]);
}

/* How many of the hits of a Zipf-like or even load find their cluster hot? */
static u32 hot_hits(u32 k, bool even, u32 hits)
{
	struct tr_bypass b;
	u64 seed = 7;
	u32 i, n = 0;

	fill(&b);
	b.k = k;
	for (i = 0; i < hits; i++) {
		u32 r = random_bits(&seed) % CLUSTERS;

		if (!even && i % 2)
			r %= 10;
		n += tr_bypass_hit(&b, &heat[r]);
		tr_bypass_turn(&b);
	}
	return n;
}

static void skew_is_found(void **state)
{
	u32 skewed = hot_hits(TR_BYPASS_K_START, false, 40000), even = hot_hits(TR_BYPASS_K_START, true, 40000);

	(void)state;
	assert_in_range(skewed, 15000, 25000);	/* the ten have half of the hits */
	assert_in_range(even, 0, 1500);
}

static void k_matters(void **state)
{
	(void)state;
	assert_true(hot_hits(4, true, 40000) > hot_hits(12, true, 40000));
	assert_true(hot_hits(12, false, 40000) > hot_hits(64, false, 40000));
}

static void sums_stay_right(void **state)
{
	struct tr_bypass b;
	u64 seed = 3;
	u32 i;

	(void)state;
	fill(&b);
	for (i = 0; i < 100000; i++) {
		tr_bypass_hit(&b, &heat[random_bits(&seed) % CLUSTERS]);
		tr_bypass_turn(&b);
	}
	assert_true(b.epoch > 10);
	assert_true(b.sum < 16 * 3 * (4 * CLUSTERS + 1024));	/* halved, or it were 100000 */
	for (i = 0; i < CLUSTERS; i++)
		tr_bypass_remove(&b, &heat[i]);
	assert_int_equal(b.nr, 0);
	assert_true(b.sum < CLUSTERS);
}

static void k_is_tuned(void **state)
{
	struct tr_bypass_epoch e = { .plain_hits = 1000, .plain_bytes = 1 << 20, .decode_ns = 1000,
				     .stored_hits = 1000, .stored_bytes = 1 << 20, .read_ns = 100000, .full = true };
	struct tr_bypass b;
	u32 i;

	(void)state;
	tr_bypass_init(&b);
	for (i = 0; i < 100; i++)
		tr_bypass_tune(&b, &e);
	assert_int_equal(b.k, TR_BYPASS_K_MAX);		/* reads cost more */
	e.plain_hits = 1000000;
	for (i = 0; i < 100; i++)
		tr_bypass_tune(&b, &e);
	assert_int_equal(b.k, TR_BYPASS_K_MIN);
	e.full = false;
	b.k = 40;
	for (i = 0; i < 100; i++)
		tr_bypass_tune(&b, &e);
	assert_int_equal(b.k, TR_BYPASS_K_START);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(skew_is_found),
		cmocka_unit_test(k_matters),
		cmocka_unit_test(sums_stay_right),
		cmocka_unit_test(k_is_tuned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
