// SPDX-License-Identifier: GPL-2.0-or-later
/* Access records by hand: score, counter, tag, ranking, merging, the bytes on disk. */
#include "policy_lib.h"

#include "decide/prng.h"
#include "ralt/file_store.h"
#include "ralt/record.h"

struct world {
	struct ralt_tunables t;
	struct ralt_sizes s;
	struct ralt_decay d;
	struct ralt_judge j;
};

/* Fast tier of 1000 blocks: a tick is 100 accesses, a period 700. */
static void rebuild(struct world *w)
{
	assert_int_equal(ralt_tunables_check(&w->t, NULL), 0);
	ralt_sizes_of(&w->s, &w->t, 1000);
	ralt_decay_init(&w->d, w->t.alpha);
	ralt_judge_init(&w->j, &w->t, &w->s, &w->d);
}

static struct world *make(struct world *w)
{
	tunable_defaults(&ralt_tunable_table, &w->t);
	rebuild(w);
	return w;
}

static void at(struct world *w, uint64_t accesses)
{
	w->j.now = ralt_time_of(&w->s, accesses);
}

/* Records one access at @accesses and merges it with what was there. */
static void touch(struct world *w, struct ralt_record *r, uint64_t accesses)
{
	struct ralt_record fresh;

	at(w, accesses);
	fresh = ralt_record_access(&w->j, 5, 0);
	if (r->score > 0)
		ralt_record_merge(&w->j, &fresh, r);
	*r = fresh;
}

static void decay_is_a_power(void **state)
{
	struct world w;
	const uint32_t n[] = { 0, 1, 2, 255, 256, 257, 1000, 65535, 65536, 70000, 700000 };

	(void)state;
	make(&w);
	for (size_t i = 0; i < sizeof(n) / sizeof(n[0]); i++)
		assert_near(ralt_decay_by(&w.d, n[i]) / pow(0.999, n[i]), 1, 1e-6);
	assert_near(ralt_decay_by(&w.d, UINT32_MAX), 0, 0);
}

static void sizes_follow_the_fast_tier(void **state)
{
	struct world w;

	(void)state;
	make(&w);
	assert_int_equal(w.s.tick_accesses, 100);	/* gamma 10 % */
	assert_int_equal(w.s.period_accesses, 700);	/* R = R_hs */
	assert_int_equal(w.s.min_hot, 50);
	assert_int_equal(w.s.max_hot, 700);
	assert_int_equal(w.s.candidates, 70);		/* 0.1 * R_hs */
	assert_int_equal(w.s.initial_hot, 500);
}

/*
 * Accessed in ticks 0, 0, 2, 5: a = 1 0 1 0 0 1 over ticks 0..5.
 * score(5) = 0.999^5 + 0.999^3 + 1 = 0.995009990004999 + 0.997002999 + 1 = 2.992012989
 * and ten ticks later 2.992012989 * 0.999^10 = 2.962226.
 */
static void score_by_hand(void **state)
{
	struct world w;
	struct ralt_record r = { 0 };

	(void)state;
	make(&w);
	touch(&w, &r, 10);
	touch(&w, &r, 20);
	assert_near(r.score, 1, 0);		/* once per tick */
	touch(&w, &r, 250);
	assert_near(r.score, 1.998001, 1e-6);
	touch(&w, &r, 599);
	assert_near(r.score, 2.992012989, 1e-6);
	at(&w, 1500);
	assert_near(ralt_score_now(&w.j, &r), 2.962226, 1e-5);
}

/* 2.6, then 2.6 + 2.6 = 5.2 -> 5.0; minus 1 per 700 accesses: 4.0, 3.0 ... 0 after five. */
static void counter_by_hand(void **state)
{
	struct world w;
	struct ralt_record r = { 0 };

	(void)state;
	make(&w);
	touch(&w, &r, 0);
	assert_int_equal(r.counter, 26);
	assert_int_equal(r.tag, 0);
	assert_false(ralt_is_stable(&w.j, &r));
	touch(&w, &r, 10);
	assert_int_equal(r.counter, 50);
	assert_int_equal(r.tag, 1);
	assert_true(ralt_is_stable(&w.j, &r));
	at(&w, 699);
	assert_int_equal(ralt_counter_now(&w.j, &r), 50);
	at(&w, 700);
	assert_int_equal(ralt_counter_now(&w.j, &r), 40);
	at(&w, 3499);
	assert_int_equal(ralt_counter_now(&w.j, &r), 10);
	assert_true(ralt_is_stable(&w.j, &r));
	at(&w, 3500);
	assert_int_equal(ralt_counter_now(&w.j, &r), 0);
	assert_false(ralt_is_stable(&w.j, &r));
	/* Tick 36 begins at access 3600, in period 5 (3500..4199): 0 + 2.6. */
	touch(&w, &r, 3600);
	assert_int_equal(r.counter, 26);
	assert_true(ralt_is_stable(&w.j, &r));
}

/* Stable records rank above all unstable ones, scores decide among equals. */
static void ranking(void **state)
{
	struct world w;
	struct ralt_record stable = { .score = 1.5f, .counter = 50, .tag = 1 };
	struct ralt_record high = { .score = 9, .counter = 50, .tag = 0 };
	struct ralt_record low = { .score = 2, .counter = 50, .tag = 0 };
	struct ralt_threshold none = { .set = false };
	struct ralt_threshold unstable5 = { true, RALT_CANDIDATE, 5, 0, 0 };
	struct ralt_threshold stable1 = { true, RALT_STABLE, 1, 0, 0 };
	struct ralt_threshold stable2 = { true, RALT_STABLE, 2, 0, 0 };

	(void)state;
	make(&w);
	at(&w, 0);
	assert_true(ralt_is_above(&w.j, &low, &none));
	assert_true(ralt_is_above(&w.j, &stable, &unstable5));
	assert_true(ralt_is_above(&w.j, &high, &unstable5));
	assert_false(ralt_is_above(&w.j, &low, &unstable5));
	assert_true(ralt_is_above(&w.j, &stable, &stable1));
	assert_false(ralt_is_above(&w.j, &stable, &stable2));
	assert_false(ralt_is_above(&w.j, &high, &stable1));
	/* A cut among the stable leaves those out that it judged, not what came later. */
	at(&w, 5000);
	low.tick = 40;
	stable1.since = 40;
	assert_false(ralt_is_above(&w.j, &low, &stable1));
	stable1.since = 39;
	assert_true(ralt_is_above(&w.j, &low, &stable1));
	low.age = 1;
	assert_false(ralt_is_above(&w.j, &low, &stable1));
	stable1.since = 0;
	at(&w, 0);
	/* An expired record, however high its score, is below every candidate. */
	high.counter = 0;
	assert_int_equal(ralt_rank(&w.j, &high), RALT_EXPIRED);
	assert_false(ralt_is_above(&w.j, &high, &unstable5));
	high.counter = 50;
	/* A threshold decays like the records it was taken from. */
	at(&w, 5000);
	stable.counter = 250;
	assert_true(ralt_is_above(&w.j, &stable, &stable1));
	stable.tick = 50;
	stable2.tick = 0;	/* 2 * 0.999^50 = 1.902 */
	stable.score = 1.91f;
	assert_true(ralt_is_above(&w.j, &stable, &stable2));
	stable.score = 1.89f;
	assert_false(ralt_is_above(&w.j, &stable, &stable2));
	/* Hot: stable and above. */
	w.j.hot = unstable5;
	assert_true(ralt_is_hot_record(&w.j, &stable));
	assert_false(ralt_is_hot_record(&w.j, &high));
}

/*
 * Below the hot threshold a record counts as new: no tag from a late re-access.  Score and counter
 * (2.6 + 2.6, at most 5) stay; settling takes the counter too, as an eviction would.
 */
static void a_record_that_fell_out_starts_anew(void **state)
{
	struct world w;
	struct ralt_record r = { 0 };

	(void)state;
	make(&w);
	touch(&w, &r, 0);
	w.j.hot = (struct ralt_threshold){ true, RALT_CANDIDATE, 3, 0, 0 };
	touch(&w, &r, 150);
	assert_int_equal(r.tag, 0);
	assert_int_equal(r.counter, 50);
	assert_near(r.score, 1.999, 1e-6);
	/* New as it is, the next access proves it, if that comes before the next eviction. */
	touch(&w, &r, 350);
	assert_int_equal(r.tag, 1);
	r.tag = 0;
	w.j.hot = (struct ralt_threshold){ true, RALT_CANDIDATE, 30, 2, 2 };
	touch(&w, &r, 360);
	assert_int_equal(r.tag, 0);
	w.j.hot = (struct ralt_threshold){ true, RALT_CANDIDATE, 3, 0, 0 };
	r.score = 1.999f;
	r.tag = 1;
	ralt_record_settle(&w.j, &r);		/* stable: above */
	assert_int_equal(r.tag, 1);
	w.j.hot = (struct ralt_threshold){ true, RALT_STABLE, 3, 0, 0 };
	ralt_record_settle(&w.j, &r);
	assert_int_equal(r.tag, 0);
	assert_int_equal(r.counter, 0);
	assert_near(r.score, 1.999, 1e-6);
}

/*
 * Two partial records of one block, as flushes at tick 3 leave them: ticks 1, 3 in the older, 3, 4
 * in the newer.  Together 1, 3, 4: 0.999^3 + 0.999 + 1 = 2.996002999 as of tick 4.  If the older
 * one ends at tick 2 instead, nothing is shared: 0.999^3 + 0.999^2 + 0.999 + 1 = 3.994003999.
 */
static void parts_that_share_a_tick_count_it_once(void **state)
{
	struct world w;
	struct ralt_record older = { 0 }, newer = { 0 }, apart;

	(void)state;
	make(&w);
	touch(&w, &older, 100);
	apart = older;
	touch(&w, &older, 300);
	touch(&w, &apart, 200);
	touch(&w, &newer, 350);
	touch(&w, &newer, 400);
	assert_int_equal(newer.span, 1);
	struct ralt_record sum = newer;

	ralt_record_merge(&w.j, &sum, &older);
	assert_near(sum.score, 2.996002999, 1e-6);
	assert_int_equal(sum.span, 3);
	sum = newer;
	ralt_record_merge(&w.j, &sum, &apart);
	assert_near(sum.score, 3.994003999, 1e-6);
}

static void bytes_survive_the_round_trip(void **state)
{
	struct prng p = { 9 };
	uint8_t raw[16];

	(void)state;
	for (int i = 0; i < 10000; i++) {
		struct ralt_record a = {
			.block = prng_next(&p) & (RALT_BLOCK_LIMIT - 1),
			.tick = (uint32_t)prng_next(&p),
			.score = (float)(1 + prng_unit(&p) * 9999),
			.counter = (uint8_t)prng_next(&p),
			.tag = prng_next(&p) & 1,
			.span = (uint8_t)prng_next(&p),
			.age = (uint8_t)prng_next(&p),
		}, b;

		ralt_record_encode(&a, raw);
		ralt_record_decode(&b, raw);
		assert_int_equal(a.block, b.block);
		assert_int_equal(b.generation, 0);
		assert_int_equal(a.tick, b.tick);
		assert_int_equal(a.counter, b.counter);
		assert_int_equal(a.tag, b.tag);
		assert_int_equal(a.span, b.span);
		assert_int_equal(a.age, b.age);
		assert_near(b.score, a.score, 1.0 / 512);
	}
	/* block 0x123456789a, age 0x70, span 0xf0; its generation is its run's */
	struct ralt_record r = { 0x123456789aull, 0xbcde, 0x01020304, 2.5f, 26, 1, 0xf0, 0x70 };
	const uint8_t want[16] = { 0xf0, 0x70, 0, 0x9a, 0x78, 0x56, 0x34, 0x12,
				   4, 3, 2, 1, 0x35, 0x00, 0x0a, 0x00 };

	ralt_record_encode(&r, raw);	/* 2.5 * 512 = 1280; 1280 << 9 | 26 << 1 | 1 = 0x000a0035 */
	assert_memory_equal(raw, want, 16);
}

static void each_tunable_changes_the_outcome(void **state)
{
	struct world w;
	struct ralt_record r = { 0 };

	(void)state;
	assert_table_is_sound(&ralt_tunable_table, &w.t);
	w.t.alpha = 0.5;
	rebuild(&w);
	touch(&w, &r, 0);
	touch(&w, &r, 150);
	assert_near(r.score, 1.5, 1e-6);
	make(&w);
	w.t.tick_share = 0.2;
	rebuild(&w);
	r.score = 0;
	touch(&w, &r, 0);
	touch(&w, &r, 150);		/* still the first tick */
	assert_near(r.score, 1, 1e-6);
	make(&w);
	w.t.counter_step = 1;
	w.t.counter_max = 1.5;
	w.t.period_share = 0.1;
	rebuild(&w);
	r.score = 0;
	touch(&w, &r, 0);
	assert_int_equal(r.counter, 10);
	touch(&w, &r, 10);
	assert_int_equal(r.counter, 15);
	at(&w, 100);
	assert_int_equal(ralt_counter_now(&w.j, &r), 5);
	make(&w);
	w.t.min_hot_share = 0.06;
	w.t.max_hot_share = 0.8;
	w.t.candidate_share = 0.2;
	w.t.initial_hot_share = 0.3;
	rebuild(&w);
	assert_int_equal(w.s.min_hot, 60);
	assert_int_equal(w.s.max_hot, 800);
	assert_int_equal(w.s.candidates, 160);
	assert_int_equal(w.s.initial_hot, 300);
}

static void contradictions_are_refused(void **state)
{
	struct ralt_tunables t;
	const struct tunable *bad = NULL;

	(void)state;
	tunable_defaults(&ralt_tunable_table, &t);
	t.page_bytes = 5000;
	assert_int_equal(ralt_tunables_check(&t, &bad), -EINVAL);
	assert_string_equal(bad->name, "page_bytes");
	tunable_defaults(&ralt_tunable_table, &t);
	t.min_hot_share = 0.8;
	assert_int_equal(ralt_tunables_check(&t, &bad), -EINVAL);
	assert_string_equal(bad->name, "min_hot_share");
	tunable_defaults(&ralt_tunable_table, &t);
	t.counter_step = 6;
	assert_int_equal(ralt_tunables_check(&t, &bad), -EINVAL);
	assert_string_equal(bad->name, "counter_step");
	t.alpha = 1;
	assert_int_equal(ralt_tunables_check(&t, &bad), -ERANGE);
	assert_string_equal(bad->name, "alpha");
}

/*
 * A buffer as it came becomes one record for each block, ascending: as if each were merged with the one before it in time,
 * also where an access that was heard late stands behind a newer one.  Block numbers of all lengths.
 */
static void folding_sorts_and_merges(void **state)
{
	enum { BLOCKS = 50, NR = 3000 };
	struct ralt_record record[NR], expected[BLOCKS] = { 0 };
	uint64_t block[BLOCKS];
	struct prng prng = { 3 };
	struct world w;
	uint32_t last = 0;

	(void)state;
	make(&w);
	for (uint32_t b = 0; b < BLOCKS; b++)
		block[b] = b ? block[b - 1] + 1 + prng_below(&prng, 1ull << b * 38 / BLOCKS) : 0;
	for (uint32_t i = 0; i < NR; i++) {
		at(&w, i * 50);
		record[i] = ralt_record_access(&w.j, block[prng_below(&prng, BLOCKS)], i / 1000);
	}
	for (uint32_t b = 0; b < BLOCKS; b++)
		for (uint32_t i = 0; i < NR; i++) {
			struct ralt_record next = record[i];

			if (next.block != block[b])
				continue;
			if (expected[b].score > 0)
				ralt_record_merge(&w.j, &next, &expected[b]);
			expected[b] = next;
		}
	/* One that was heard late. */
	for (uint32_t i = 0; i < NR - 1 && !last; i++)
		if (record[i].block == record[i + 1].block && record[i].tick != record[i + 1].tick)
			last = i + 1;
	assert_true(last > 0);
	struct ralt_record swap = record[last];

	record[last] = record[last - 1];
	record[last - 1] = swap;
	assert_int_equal(store_fold(&w.j, record, NR), BLOCKS);
	for (uint32_t b = 0; b < BLOCKS; b++) {
		assert_int_equal(record[b].block, block[b]);
		assert_int_equal(record[b].tick, expected[b].tick);
		assert_int_equal(record[b].generation, expected[b].generation);
		assert_int_equal(record[b].counter, expected[b].counter);
		assert_int_equal(record[b].tag, expected[b].tag);
		assert_int_equal(record[b].span, expected[b].span);
		if (record[b].block != swap.block)
			assert_near(record[b].score, expected[b].score, 1e-6);
	}
	assert_int_equal(store_fold(&w.j, record, 1), 1);
	assert_int_equal(store_fold(&w.j, record, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decay_is_a_power),
		cmocka_unit_test(sizes_follow_the_fast_tier),
		cmocka_unit_test(score_by_hand),
		cmocka_unit_test(counter_by_hand),
		cmocka_unit_test(ranking),
		cmocka_unit_test(a_record_that_fell_out_starts_anew),
		cmocka_unit_test(parts_that_share_a_tick_count_it_once),
		cmocka_unit_test(bytes_survive_the_round_trip),
		cmocka_unit_test(each_tunable_changes_the_outcome),
		cmocka_unit_test(folding_sorts_and_merges),
		cmocka_unit_test(contradictions_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
