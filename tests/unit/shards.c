// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * SHARDS against an exact LRU: the predicted hit rate of every fast-tier size within
 * 2 points, on Zipf, uniform and hotspot traces.
 */
#include "policy_lib.h"

#include "decide/prng.h"
#include "decide/recency.h"
#include "decide/shards.h"

enum { BLOCKS = 200000, ACCESSES = 1500000 };

static struct shards *make(struct shards *s, const struct shards_tunables *t, uint64_t max)
{
	void *mem = malloc(shards_bytes(t));

	assert_int_equal(shards_init(s, t, max, mem, shards_bytes(t)), 0);
	return s;
}

/* Cumulative Zipf weights; the rank is found by bisection. */
static double *zipf_table(size_t n, double theta)
{
	double *sum = malloc(n * sizeof(*sum));
	double total = 0;

	for (size_t i = 0; i < n; i++)
		sum[i] = total += pow((double)i + 1, -theta);
	for (size_t i = 0; i < n; i++)
		sum[i] /= total;
	return sum;
}

static uint64_t zipf_draw(const double *sum, size_t n, struct prng *p)
{
	double u = prng_unit(p);
	size_t lo = 0, hi = n - 1;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (sum[mid] < u)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static uint64_t draw(int kind, const double *zipf, struct prng *p)
{
	if (kind == 0)
		return zipf_draw(zipf, BLOCKS, p);
	if (kind == 1)
		return prng_below(p, BLOCKS);
	return prng_below(p, 100) < 95 ? prng_below(p, BLOCKS / 20) : prng_below(p, BLOCKS);
}

static double exact_lru(int kind, const double *zipf, uint32_t size)
{
	void *mem = malloc(recency_bytes(size));
	struct recency r;
	struct prng p = { 77 };
	uint64_t hits = 0;

	recency_init(&r, size, mem, recency_bytes(size));
	for (int i = 0; i < ACCESSES; i++)
		hits += recency_touch(&r, draw(kind, zipf, &p));
	free(mem);
	return (double)hits / ACCESSES;
}

static void predicts_within_2_points(int kind)
{
	static const uint32_t sizes[] = { BLOCKS / 50, BLOCKS / 20, BLOCKS / 10, BLOCKS / 4 };
	double *zipf = zipf_table(BLOCKS, 0.99);
	struct shards_tunables t;
	struct shards s;
	struct prng p = { 77 };

	tunable_defaults(&shards_tunable_table, &t);
	make(&s, &t, BLOCKS);
	for (int i = 0; i < ACCESSES; i++)
		shards_access(&s, draw(kind, zipf, &p));
	assert_true(shards_rate(&s) < 0.3);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		double exact = exact_lru(kind, zipf, sizes[i]);
		double guess = shards_hit_rate(&s, sizes[i]);

		print_message("fast %3u %%: exact %.4f predicted %.4f (rate %.3f)\n",
			      sizes[i] * 100 / BLOCKS, exact, guess, shards_rate(&s));
		assert_near(guess, exact, 0.02);
	}
	free(s.samples);
	free(zipf);
}

static void zipf_within_2_points(void **state)
{
	(void)state;
	predicts_within_2_points(0);
}

static void uniform_within_2_points(void **state)
{
	(void)state;
	predicts_within_2_points(1);
}

static void hotspot_within_2_points(void **state)
{
	(void)state;
	predicts_within_2_points(2);
}

/*
 * Rate 1 (all blocks fit the sample): a loop over 4 blocks has distance 3, so sizes of 4 and more
 * hit on all but the first round: 96 of 100; sizes of 3 never hit.
 */
static void exact_when_everything_is_sampled(void **state)
{
	struct shards_tunables t;
	struct shards s;

	(void)state;
	tunable_defaults(&shards_tunable_table, &t);
	make(&s, &t, 1024);
	for (int i = 0; i < 100; i++)
		shards_access(&s, (uint64_t)i % 4);
	assert_near(shards_hit_rate(&s, 3), 0, 1e-9);
	assert_near(shards_hit_rate(&s, 4), 0.96, 1e-9);
	assert_near(shards_reuse(&s), 0.96, 1e-9);
	free(s.samples);
}

/* Three blocks are read in turn, one is written in between: they need room for four, and all reads but the first hit. */
static void a_touch_takes_room_and_is_no_access(void **state)
{
	struct shards_tunables t;
	struct shards s;

	(void)state;
	tunable_defaults(&shards_tunable_table, &t);
	make(&s, &t, 1024);
	for (int i = 0; i < 3000; i++) {
		shards_access(&s, (uint64_t)(i % 3));
		shards_touch(&s, 100);
	}
	assert_near(shards_hit_rate(&s, 4), 1, 0.01);
	assert_near(shards_hit_rate(&s, 3), 0, 0.01);
	assert_near(shards_reuse(&s), 1, 0.01);
	/* Touches have a curve of their own. */
	assert_near(shards_touch_rate(&s, 2), 1, 0.01);
	assert_near(shards_touch_rate(&s, 1), 0, 0.01);
	free(s.samples);
}

/* A curve of a few uses keeps them. */
static void aging_waits_for_samples(void **state)
{
	struct shards_tunables t;
	struct shards s;

	(void)state;
	tunable_defaults(&shards_tunable_table, &t);
	t.samples = 64;
	make(&s, &t, 1024);
	for (int i = 0; i < 100; i++) {
		if (i == 60)
			shards_age(&s);
		shards_access(&s, (uint64_t)i % 4);
	}
	assert_near(s.access.all, 100, 0);
	shards_age(&s);
	assert_near(s.access.all, 50, 0);
	free(s.samples);
}

/* After a change of load, aging lets the curve follow; without it the past weighs on. */
static void aging_follows_the_load(void **state)
{
	struct shards_tunables t;
	struct shards s;
	struct prng p = { 5 };

	(void)state;
	tunable_defaults(&shards_tunable_table, &t);
	make(&s, &t, 10000);
	for (int i = 0; i < 100000; i++)
		shards_access(&s, prng_below(&p, 100));
	assert_true(shards_hit_rate(&s, 1000) > 0.99);
	for (int i = 0; i < 100000; i++) {
		if (i % 10000 == 0)
			shards_age(&s);
		shards_access(&s, prng_below(&p, 10000));
	}
	assert_near(shards_hit_rate(&s, 1000), 0.1, 0.03);
	free(s.samples);
}

/* A loop over 2000 blocks: what is predicted of a fast tier of @size. */
static double hit_of_a_loop(const char *name, double value, uint64_t size)
{
	struct shards_tunables t;
	struct shards s;
	double hit;

	tunable_defaults(&shards_tunable_table, &t);
	assert_int_equal(tunable_set(&shards_tunable_table, &t, name, value), 0);
	make(&s, &t, 4096);
	for (int i = 0; i < 200000; i++)
		shards_access(&s, (uint64_t)i % 2000);
	hit = shards_hit_rate(&s, size);
	free(s.samples);
	return hit;
}

/* With all blocks in the sample the cliff is where it is, and a few per cent off with 64 of them. */
static void a_small_sample_is_off(void **state)
{
	double below = hit_of_a_loop("samples", 64, 1960), above = hit_of_a_loop("samples", 64, 2040);

	(void)state;
	print_message("below the cliff %.3f, above %.3f\n", below, above);
	assert_near(hit_of_a_loop("samples", 16384, 1960), 0, 0.001);
	assert_near(hit_of_a_loop("samples", 16384, 2040), 0.99, 0.001);
	assert_true(below > 0.5 || above < 0.5);
}

/* With sixteen steps of 256 blocks nothing is known of what lies between 1792 and 2048. */
static void few_buckets_blur_the_curve(void **state)
{
	double below = hit_of_a_loop("buckets", 16, 1960), above = hit_of_a_loop("buckets", 16, 2040);

	(void)state;
	print_message("below the cliff %.3f, above %.3f\n", below, above);
	assert_true(above - below < 0.5);
}

static void memory_is_constant_and_tunables_matter(void **state)
{
	struct shards_tunables t;
	struct shards small, large;
	struct prng p = { 5 };
	char mem[16];

	(void)state;
	assert_table_is_sound(&shards_tunable_table, &t);
	assert_int_equal(shards_init(&small, &t, 100, mem, sizeof(mem)), -ENOMEM);
	assert_int_equal(shards_init(&small, &t, 0, mem, sizeof(mem)), -EINVAL);
	make(&large, &t, 1000000);
	t.samples = 64;
	t.buckets = 16;
	make(&small, &t, 1000000);
	for (int i = 0; i < 100000; i++) {
		uint64_t b = prng_below(&p, 50000);

		shards_access(&small, b);
		shards_access(&large, b);
	}
	assert_int_equal(small.count, 64);
	assert_true(shards_rate(&small) < shards_rate(&large) / 50);
	assert_int_equal(small.bucket_blocks, 62500);
	assert_int_equal(large.bucket_blocks, 977);
	free(small.samples);
	free(large.samples);
}

/* ---- what lasts ---- */

enum { RECORDS = 480000, PAGE = 8, PAGES = RECORDS / PAGE };

enum load { UNIFORM, HALF, FAINT, WARM, ZIPF, LOOP };

struct below {
	enum load load;
	double cached;	/* of the pages: an LRU above */
	double least, most;	/* of what was said */
	uint32_t said;
};

static uint64_t page_of(enum load load, uint64_t i, const double *zipf, struct prng *p)
{
	if (load == LOOP)
		return i % PAGES;
	if (load == HALF)
		return prng_below(p, PAGES / 2);
	if ((load == FAINT && !prng_below(p, 10)) || (load == WARM && !prng_below(p, 5)))
		return prng_below(p, PAGES * 6 / 100);
	if (load == ZIPF)	/* a record anywhere, in a page with seven others */
		return zipf_draw(zipf, RECORDS, p) * 7919 % RECORDS / PAGE;
	return prng_below(p, PAGES);
}

/* What reaches the volume below such a cache; what is said of it, from the second pass on. */
static void watch_below(struct below *b, uint64_t reads)
{
	uint32_t limit = b->cached > 0 ? (uint32_t)(b->cached * PAGES) : 1;
	double *zipf = b->load == ZIPF ? zipf_table(RECORDS, 0.99) : NULL, last = 0;
	struct shards_tunables t;
	struct prng p = { 5 };
	struct recency cache;
	struct shards s;

	tunable_defaults(&shards_tunable_table, &t);
	make(&s, &t, PAGES);
	assert_int_equal(recency_init(&cache, limit, malloc(recency_bytes(limit)), recency_bytes(limit)), 0);
	b->least = 1e9;
	b->most = -1e9;
	for (uint64_t i = 0, below = 0; i < reads; i++) {
		uint64_t page = page_of(b->load, i, zipf, &p);

		if (recency_touch(&cache, page) && b->cached > 0)
			continue;
		if (cache.count > limit)
			abort();
		shards_access(&s, page);
		if (++below < PAGES || shards_lasting(&s) == last)
			continue;
		last = shards_lasting(&s);
		b->least = last < b->least ? last : b->least;
		b->most = last > b->most ? last : b->most;
		b->said++;
	}
	print_message("load %d below a cache of %.2f: %u periods, %.3f to %.3f\n", b->load, b->cached, b->said, b->least, b->most);
	free(cache.entries);
	free(s.samples);
	free(zipf);
}

/* No cache above it makes a uniform load look otherwise, nor that only half of what there is is read. */
static void nothing_lasts_under_a_uniform_load(void **state)
{
	static const double cached[] = { 0, 0.05, 0.13, 0.3, 0.5 };

	(void)state;
	for (size_t i = 0; i < sizeof(cached) / sizeof(*cached); i++) {
		struct below all = { .load = UNIFORM, .cached = cached[i] }, half = { .load = HALF, .cached = cached[i] * 0.9 };

		watch_below(&all, 20 * PAGES);
		assert_true(all.said >= 5);
		assert_in_range((int64_t)(all.least * 1000) + 1000, 950, 1080);
		assert_in_range((int64_t)(all.most * 1000) + 1000, 950, 1080);
		watch_below(&half, 12 * PAGES);
		assert_in_range((int64_t)(half.most * 1000) + 1000, 900, 1100);
	}
}

/* A loop comes to each block as often; where a tenth of the accesses are to 6 % of the blocks there is little to gain, of a fifth there is some. */
static void a_loop_and_faint_skew_are_not_enough(void **state)
{
	struct below loop = { .load = LOOP }, faint = { .load = FAINT }, warm = { .load = WARM };

	(void)state;
	watch_below(&loop, 12 * PAGES);
	assert_true(loop.most < 0.02);
	watch_below(&faint, 12 * PAGES);
	assert_true(faint.least > 0.05 && faint.most < 0.2);
	watch_below(&warm, 12 * PAGES);
	assert_true(warm.least > 0.3);
}

/* An LRU below an eighth of the data has no skew to show, and what is left of it lasts; below a third too little is left. */
static void zipf_lasts_below_a_cache(void **state)
{
	struct below little = { .load = ZIPF, .cached = 0.05 }, eighth = { .load = ZIPF, .cached = 0.13 },
		     third = { .load = ZIPF, .cached = 0.3 };

	(void)state;
	watch_below(&little, 40 * PAGES);
	assert_true(little.least > 0.45);
	watch_below(&eighth, 40 * PAGES);
	assert_true(eighth.said >= 5);
	assert_true(eighth.least > 0.22);
	watch_below(&third, 60 * PAGES);
	assert_true(third.least > 0.08 && third.most < 0.2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact_when_everything_is_sampled),
		cmocka_unit_test(zipf_within_2_points),
		cmocka_unit_test(uniform_within_2_points),
		cmocka_unit_test(hotspot_within_2_points),
		cmocka_unit_test(a_touch_takes_room_and_is_no_access),
		cmocka_unit_test(aging_follows_the_load),
		cmocka_unit_test(aging_waits_for_samples),
		cmocka_unit_test(a_small_sample_is_off),
		cmocka_unit_test(few_buckets_blur_the_curve),
		cmocka_unit_test(memory_is_constant_and_tunables_matter),
		cmocka_unit_test(nothing_lasts_under_a_uniform_load),
		cmocka_unit_test(a_loop_and_faint_skew_are_not_enough),
		cmocka_unit_test(zipf_lasts_below_a_cache),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
