// SPDX-License-Identifier: GPL-2.0-or-later
/* Algorithm 1 and the sample: limits by hand, thresholds, uniform and hotspot loads, sampling rates. */
#include "policy_lib.h"

#include "decide/prng.h"
#include "ralt/tune.h"

struct world {
	struct ralt_tunables t;
	struct ralt_sizes s;
	struct ralt_decay d;
	struct ralt_judge j;
	struct sample sample;
	struct tune tune;
	double *scratch;
	uint64_t accesses;
	uint64_t next;
};

static void start(struct world *w, uint64_t fast)
{
	ralt_sizes_of(&w->s, &w->t, fast);
	ralt_decay_init(&w->d, w->t.alpha);
	ralt_judge_init(&w->j, &w->t, &w->s, &w->d);
	sample_init(&w->sample, w->t.samples, 0, malloc(sample_bytes(w->t.samples)));
	w->scratch = malloc(sample_scratch_bytes(&w->sample));
	tune_init(&w->tune, &w->s);
	w->accesses = w->next = 0;
}

static void set_up(struct world *w, uint64_t fast)
{
	memset(w, 0, sizeof(*w));
	tunable_defaults(&ralt_tunable_table, &w->t);
	start(w, fast);
}

static void tear_down(struct world *w)
{
	free(w->sample.slots);
	free(w->scratch);
}

static void touch(struct world *w, uint64_t block)
{
	struct ralt_record r;

	w->j.now = ralt_time_of(&w->s, ++w->accesses);
	r = ralt_record_access(&w->j, block, 0);
	sample_add_newer(&w->sample, &w->j, &r);
	if (w->accesses < w->next)
		return;
	w->next = w->accesses + w->s.candidates / 4 + 1;
	tune_step(&w->tune, &w->j, &w->t, &w->sample, w->scratch);
}

/* Fast 10000: L 500, R 7000, D 700. */
static void limit_by_hand(void **state)
{
	struct world w;

	(void)state;
	set_up(&w, 10000);
	assert_int_equal(tune_limit(&w.s, 0), 700);
	assert_int_equal(tune_limit(&w.s, 1234), 1934);
	assert_int_equal(tune_limit(&w.s, 6300), 7000);
	assert_int_equal(tune_limit(&w.s, 9999), 7000);
	w.t.candidate_share = 0.01;
	ralt_sizes_of(&w.s, &w.t, 10000);
	assert_int_equal(tune_limit(&w.s, 0), 500);
	assert_int_equal(w.tune.hot_limit, 5000);
	/* r = 4 times the limit, and at least twice the fast tier. */
	assert_int_equal(tune_physical_limit(&w.tune, &w.s, &w.t), 20000);
	w.t.physical_ratio = 10;
	assert_int_equal(tune_physical_limit(&w.tune, &w.s, &w.t), 50000);
	w.t.tracked_share = 8;
	assert_int_equal(tune_physical_limit(&w.tune, &w.s, &w.t), 80000);
	tear_down(&w);
}

static void put(struct world *w, uint64_t block, float score, bool stable)
{
	struct ralt_record r = { .block = block, .score = score, .counter = 50, .tag = stable };

	sample_add_newer(&w->sample, &w->j, &r);
}

/*
 * Stable scores 1..5, unstable 11..20.  Keep 3: the stable 3, 4, 5.  Keep 8: all stable and the best
 * three unstable, 18, 19, 20.  Keep 15 or more: everything.
 */
static void thresholds_take_unstable_records_first(void **state)
{
	struct world w;
	struct ralt_threshold t;
	struct sample_census c;

	(void)state;
	set_up(&w, 1000);
	for (int i = 1; i <= 5; i++)
		put(&w, (uint64_t)i, (float)i, true);
	for (int i = 11; i <= 20; i++)
		put(&w, (uint64_t)i, (float)i, false);
	t = sample_kth(&w.sample, &w.j, 3, w.scratch);
	assert_true(t.set && t.rank == RALT_STABLE);
	assert_near(t.score, 3, 1e-6);
	t = sample_kth(&w.sample, &w.j, 8, w.scratch);
	assert_true(t.set && t.rank == RALT_CANDIDATE);
	assert_near(t.score, 18, 1e-6);
	assert_false(sample_kth(&w.sample, &w.j, 15, w.scratch).set);
	/* Nothing may stay: above the best. */
	t = sample_kth(&w.sample, &w.j, 0, w.scratch);
	assert_true(t.rank == RALT_STABLE && t.score > 5);
	/* Outside the hot set (the five stable): the ten unstable. */
	c = sample_census(&w.sample, &w.j, w.scratch);
	assert_int_equal(c.nr_others, 10);
	assert_near(sample_kth_other(&w.sample, &c, 4, w.scratch), 17, 1e-6);
	assert_near(sample_kth_other(&w.sample, &c, 11, w.scratch), 0, 0);
	assert_true(sample_kth_other(&w.sample, &c, 0, w.scratch) > 1e6);
	tear_down(&w);
}

/* A sample of 1 in 2^shift: counts within the noise of the truth, k-th score likewise. */
static void a_sample_stands_for_the_whole(void **state)
{
	struct world w;
	struct sample_census c;

	(void)state;
	set_up(&w, 100000);
	w.j.counter_max = 255;
	for (uint64_t b = 0; b < 200000; b++)
		put(&w, b, (float)(1 + b % 1000), b % 10 == 0);
	assert_true(w.sample.shift >= 3);
	assert_true(w.sample.count <= w.t.samples);
	c = sample_census(&w.sample, &w.j, w.scratch);
	assert_near(c.tracked, 200000, 4000);
	assert_near(c.stable, 20000, 1500);
	/* The best 10 % of the 180,000 others: scores above 900. */
	assert_near(sample_kth_other(&w.sample, &c, 18000, w.scratch), 901, 6);
	tear_down(&w);
}

static void uniform_loads_have_no_hot_set(void **state)
{
	struct world w;
	struct prng p = { 1 };

	(void)state;
	set_up(&w, 2000);
	for (int i = 0; i < 200000; i++)
		touch(&w, prng_below(&p, 20000));
	/* L_hs = 100 and D_hs = 140 are the floor; the stable are a small part of the fast tier. */
	assert_true(w.tune.hot_limit < 220);
	assert_true(w.tune.census.stable < 0.04 * 2000);
	tear_down(&w);
}

static void run_hotspot(struct world *w, struct prng *p, int accesses, uint64_t first, uint64_t hot)
{
	for (int i = 0; i < accesses; i++)
		touch(w, prng_below(p, 20) ? first + prng_below(p, hot) : prng_below(p, 20000));
}

/* The limit finds the hot set's size and follows when it grows, shrinks or moves (HotRAP 4.6). */
static void the_limit_follows_the_hot_set(void **state)
{
	struct world w;
	struct prng p = { 2 };
	static const struct {
		uint64_t first, hot;
	} stages[] = { { 0, 400 }, { 0, 800 }, { 0, 1200 }, { 0, 600 }, { 0, 200 }, { 9000, 800 } };

	(void)state;
	set_up(&w, 2000);
	for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++) {
		run_hotspot(&w, &p, 40000, stages[i].first, stages[i].hot);
		print_message("hot set %llu: limit %llu, stable %.0f\n",
			      (unsigned long long)stages[i].hot,
			      (unsigned long long)w.tune.hot_limit, w.tune.census.stable);
		/* The set, D_hs = 140, and the few of the others that look stable for a while. */
		assert_near((double)w.tune.hot_limit, (double)stages[i].hot + 140, 60);
	}
	/* More than R_hs = 1400 is cut off there. */
	run_hotspot(&w, &p, 60000, 0, 3000);
	assert_true(w.tune.hot_limit <= 1400);
	tear_down(&w);
}

/* The same load seen whole, 1 access in 16, 1 in 256: only the sampled ones advance the time. */
static double limit_at(uint32_t every, int kind)
{
	struct world w;
	struct prng p = { 3 }, thin = { 4 };
	double sum = 0;
	int seen = 0;

	set_up(&w, 2000);
	for (uint64_t i = 0; seen < 60000; i++) {
		uint64_t a = prng_below(&p, 20000), b = prng_below(&p, 20000);
		uint64_t block = kind ? a * b / 20000 * b / 20000 :
				 prng_below(&p, 20) ? a % 1000 : a;

		if (prng_below(&thin, every))
			continue;
		touch(&w, block);
		if (++seen > 30000)
			sum += (double)w.tune.hot_limit / 30000;
	}
	tear_down(&w);
	return sum;
}

static void the_limit_agrees_at_any_sampling_rate(void **state)
{
	(void)state;
	for (int kind = 0; kind < 2; kind++) {
		double all = limit_at(1, kind), some = limit_at(16, kind), few = limit_at(256, kind);

		print_message("limit at 1: %.1f, 1/16: %.1f, 1/256: %.1f\n", all, some, few);
		assert_near(some / all, 1, 0.1);
		assert_near(few / all, 1, 0.1);
	}
}

static double limit_with(const char *name, double value)
{
	struct world w;
	struct prng p = { 5 };
	double limit;

	memset(&w, 0, sizeof(w));
	tunable_defaults(&ralt_tunable_table, &w.t);
	if (name)
		assert_int_equal(tunable_set(&ralt_tunable_table, &w.t, name, value), 0);
	start(&w, 2000);
	run_hotspot(&w, &p, 40000, 0, 800);
	limit = (double)w.tune.hot_limit;
	tear_down(&w);
	return limit;
}

static void each_tunable_changes_the_outcome(void **state)
{
	double plain = limit_with(NULL, 0);

	(void)state;
	assert_true(limit_with("max_hot_share", 0.3) <= 600);
	assert_true(limit_with("min_hot_share", 0.6) >= 1200);
	assert_true(limit_with("candidate_share", 0.3) > plain + 200);
	assert_true(limit_with("counter_step", 0.2) < plain - 100);
	assert_true(limit_with("period_share", 0.1) < plain - 20);
	assert_true(limit_with("samples", 64) != plain);
	/* The others have cases of their own. */
}

static void set_up_with(struct world *w, const char *name, double value)
{
	memset(w, 0, sizeof(*w));
	tunable_defaults(&ralt_tunable_table, &w->t);
	assert_int_equal(tunable_set(&ralt_tunable_table, &w->t, name, value), 0);
	start(w, 2000);
}

/* 1500 unstable ones are more than 1000, the first limit; without any stable ones it falls to D_hs = 140, and that share below goes the eviction. */
static void an_eviction_leaves_all_but_a_share_of_the_limit(void **state)
{
	static const double share[] = { 0.1, 0.5, 0.01 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct world w;

		set_up_with(&w, "evict_share", share[i]);
		for (int n = 1; n <= 1500; n++)
			put(&w, (uint64_t)n, (float)n, false);
		assert_true(tune_step(&w.tune, &w.j, &w.t, &w.sample, w.scratch));
		assert_int_equal(w.tune.hot_limit, 140);
		assert_int_equal(w.tune.evictions, 1);
		assert_near(w.tune.census.members, (1 - share[i]) * 140, 1);
		tear_down(&w);
	}
}

/* Until how many blocks have been accessed once, of which none is stable. */
static uint64_t first_tuning(double share)
{
	struct world w;
	uint64_t n = 0;

	set_up_with(&w, "initial_hot_share", share);
	while (!w.tune.tunings)
		touch(&w, n++);
	tear_down(&w);
	return n;
}

/* More than so many blocks are not hot before that; it comes with the first period, of 1400 accesses, at the latest.  It is looked at each 36 accesses. */
static void the_first_limit_holds_until_the_first_tuning(void **state)
{
	(void)state;
	assert_in_range(first_tuning(0.5), 1000, 1037);
	assert_in_range(first_tuning(0.2), 400, 437);
	assert_in_range(first_tuning(1), 1400, 1437);
}

/* Accessed twenty times in a row: stable for so many periods. */
static uint64_t periods_stable(double most)
{
	const struct ralt_record *r;
	struct world w;
	uint64_t n = 0;

	set_up_with(&w, "counter_max", most);
	for (int i = 0; i < 20; i++)
		touch(&w, 7);
	r = sample_find(&w.sample, 7);
	assert_non_null(r);
	while (ralt_is_stable(&w.j, r))
		w.j.now = ralt_time_of(&w.s, 20 + ++n * w.s.period_accesses);
	tear_down(&w);
	return n;
}

/* Each period takes 1 away. */
static void a_counter_lasts_as_long_as_it_may_reach(void **state)
{
	(void)state;
	assert_int_equal(periods_stable(5), 5);
	assert_int_equal(periods_stable(2.6), 3);
	assert_int_equal(periods_stable(10), 10);
}

/* With a fill share the highest scores count as hot beyond the hot set; below fill_score never. */
static void filling_takes_the_highest_scores(void **state)
{
	struct world w;
	struct prng p = { 6 };
	int hot = 0;

	(void)state;
	set_up(&w, 2000);
	w.tune.fill_share = 0.9;
	for (int i = 0; i < 100000; i++) {
		uint64_t a = prng_below(&p, 20000), b = prng_below(&p, 20000);

		touch(&w, a * b / 20000);
	}
	tune_step(&w.tune, &w.j, &w.t, &w.sample, w.scratch);
	for (uint64_t b = 0; b < 20000; b++) {
		const struct ralt_record *r = sample_find(&w.sample, b);

		hot += r && ralt_is_hot_record(&w.j, r);
	}
	assert_near(hot, 1800, 90);	/* 0.9 * 2000, hot set included */
	w.t.fill_score = 10000;
	tune_step(&w.tune, &w.j, &w.t, &w.sample, w.scratch);
	assert_near(sample_census(&w.sample, &w.j, NULL).fill, 0, 0);
	w.tune.fill_share = 0;
	tune_step(&w.tune, &w.j, &w.t, &w.sample, w.scratch);
	assert_false(w.j.fill.set);
	tear_down(&w);
}

/* Of two blocks the one accessed in every tick long ago, the other in the last two: alpha says which is the hotter. */
static void alpha_weighs_the_past(void **state)
{
	(void)state;
	for (int fresh = 0; fresh < 2; fresh++) {
		struct world w;
		struct prng p = { 9 };
		const struct ralt_record *old, *new;

		memset(&w, 0, sizeof(w));
		tunable_defaults(&ralt_tunable_table, &w.t);
		assert_int_equal(tunable_set(&ralt_tunable_table, &w.t, "alpha", fresh ? 0.5 : 0.999), 0);
		start(&w, 2000);
		for (int i = 0; i < 20000; i++)
			touch(&w, i < 10000 && i % 20 == 0 ? 7 : i > 19400 && i % 20 == 0 ? 8 : 100 + prng_below(&p, 20000));
		old = sample_find(&w.sample, 7);
		new = sample_find(&w.sample, 8);
		assert_true(old && new);
		assert_int_equal(ralt_score_now(&w.j, old) > ralt_score_now(&w.j, new), !fresh);
		tear_down(&w);
	}
}

/*
 * A hotspot of 500 moves twice; fill is on.  The old ones still have the higher scores, but what is hot
 * never exceeds the share of the fast tier: otherwise there is no room for the new ones.
 */
static void filling_leaves_room_for_a_new_hotspot(void **state)
{
	struct world w;
	struct prng p = { 7 };

	(void)state;
	set_up(&w, 1000);
	w.tune.fill_share = 0.85;
	for (uint64_t stage = 0; stage < 3; stage++) {
		run_hotspot(&w, &p, 40000, stage * 5000, 500);
		struct sample_census c = sample_census(&w.sample, &w.j, NULL);

		assert_near(c.stable, 500, 40);
		assert_true(c.stable + c.fill <= 850 * 1.05);
	}
	tear_down(&w);
}

/*
 * Half of a hotspot of 500 has passed its heat on to the other half: the limit is that of one of them, both stay hot, and filling leaves
 * room for both, and for no more.
 */
static void what_has_passed_its_heat_on_takes_room_but_does_not_count(void **state)
{
	static struct tails passed_on;
	struct world w;
	struct prng p = { 7 };
	struct sample_census c;
	uint64_t limit, hot = 0;

	(void)state;
	set_up(&w, 1000);
	w.t.fill_score = 0.1;
	w.tune.fill_share = 0.85;
	run_hotspot(&w, &p, 40000, 0, 500);
	limit = w.tune.hot_limit;
	tails_add(&passed_on, 0, 250, UINT64_MAX);
	w.j.passed_on = &passed_on;
	run_hotspot(&w, &p, 40000, 0, 500);
	c = sample_census(&w.sample, &w.j, NULL);
	print_message("limit %u, before %u; stable %.0f, passed %.0f, fill %.0f\n", (uint32_t)w.tune.hot_limit, (uint32_t)limit, c.stable, c.passed, c.fill);
	assert_near(limit, 570, 40);
	assert_near(w.tune.hot_limit, 320, 40);
	assert_near(c.stable, 250, 20);
	assert_near(c.passed, 250, 5);
	assert_in_range((uint64_t)c.fill, 300, 375);
	for (uint64_t b = 0; b < 500; b++)
		hot += sample_find(&w.sample, b) && ralt_is_member(&w.j, sample_find(&w.sample, b));
	assert_in_range(hot, 490, 500);
	tear_down(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limit_by_hand),
		cmocka_unit_test(thresholds_take_unstable_records_first),
		cmocka_unit_test(a_sample_stands_for_the_whole),
		cmocka_unit_test(uniform_loads_have_no_hot_set),
		cmocka_unit_test(the_limit_follows_the_hot_set),
		cmocka_unit_test(the_limit_agrees_at_any_sampling_rate),
		cmocka_unit_test(each_tunable_changes_the_outcome),
		cmocka_unit_test(an_eviction_leaves_all_but_a_share_of_the_limit),
		cmocka_unit_test(the_first_limit_holds_until_the_first_tuning),
		cmocka_unit_test(a_counter_lasts_as_long_as_it_may_reach),
		cmocka_unit_test(alpha_weighs_the_past),
		cmocka_unit_test(filling_takes_the_highest_scores),
		cmocka_unit_test(filling_leaves_room_for_a_new_hotspot),
		cmocka_unit_test(what_has_passed_its_heat_on_takes_room_but_does_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
