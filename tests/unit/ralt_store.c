// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The store against a model that keeps every record whole in memory: scans, hot blocks, sizes, across
 * flushes, merges, evictions, discards and reopening.
 */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "ralt_lib.h"

#include "ralt/file_store.h"

enum { BLOCKS = 4000, FAST = 2000 };

/* What the store should know, without files. */
struct model {
	struct ralt_record records[BLOCKS];
};

static void model_touch(struct model *m, const struct ralt *r, uint64_t block)
{
	struct ralt_record fresh = ralt_record_access(&r->judge, block, 0);

	if (m->records[block].score > 0)
		ralt_record_merge(&r->judge, &fresh, &m->records[block]);
	m->records[block] = fresh;
}

struct check {
	const struct model *m;
	const struct ralt *r;
	uint64_t next;
	int seen;
};

static int check_one(void *ctx, const struct ralt_heat *h)
{
	struct check *c = ctx;

	while (c->next < h->block)
		assert_near(c->m->records[c->next++].score, 0, 0);
	/* Fixed point on disk: 1/512 per rewrite. */
	assert_near(h->score, ralt_score_now(&c->r->judge, &c->m->records[h->block]), 0.05);
	c->next++;
	c->seen++;
	return 0;
}

static void compare_range(struct bench *b, const struct model *m, uint64_t first, uint64_t count)
{
	struct check c = { m, b->r, first, 0 };
	int want = 0;

	assert_int_equal(ralt_scan(b->r, first, count, false, check_one, &c), 0);
	for (uint64_t i = first; i < first + count; i++)
		want += m->records[i].score > 0;
	assert_int_equal(c.seen, want);
}

/* Before the buffer has been written out, too. */
static void compare(struct bench *b, const struct model *m)
{
	struct prng p = { 2 };

	compare_range(b, m, 0, BLOCKS);
	for (int i = 0; i < 200; i++) {
		uint64_t first = prng_below(&p, BLOCKS);

		compare_range(b, m, first, 1 + prng_below(&p, i % 2 && first + 8 < BLOCKS ? 8 : BLOCKS - first));
	}
}

/* Skewed: block x with weight falling with x. */
static uint64_t skewed(struct prng *p)
{
	uint64_t a = prng_below(p, BLOCKS), b = prng_below(p, BLOCKS);

	return a * b / BLOCKS;
}

static void every_access_is_found_again(void **state)
{
	static struct model m;
	struct bench b;
	struct prng p = { 1 };

	(void)state;
	memset(&m, 0, sizeof(m));
	bench_init(&b, FAST);
	b.config.tunables.buffer_records = 64;
	b.config.tunables.page_bytes = 4096;
	b.config.tunables.samples = 64;
	b.config.tunables.physical_ratio = 1000;	/* nothing is evicted */
	b.config.tunables.initial_hot_share = 1;
	b.config.tunables.min_hot_share = 1;
	b.config.tunables.max_hot_share = 1;
	bench_open(&b);
	assert_int_equal(b.reports[RALT_COLD], 1);
	for (int i = 0; i < 30000; i++) {
		uint64_t block = skewed(&p);

		touch(&b, block);
		model_touch(&m, b.r, block);
		if (i % 10000 == 9999)
			compare(&b, &m);
	}
	assert_true(b.r->buffered > 0);
	assert_int_equal(ralt_flush(b.r), 0);
	finish_work(&b);
	compare(&b, &m);
	assert_int_equal(ralt_close(b.r), 0);
	bench_open(&b);
	assert_int_equal(b.reports[RALT_COLD], 0);
	compare(&b, &m);
	for (int i = 0; i < 5000; i++) {
		uint64_t block = skewed(&p);

		touch(&b, block);
		model_touch(&m, b.r, block);
	}
	compare(&b, &m);
	bench_exit(&b);
}

static int count_one(void *ctx, const struct ralt_heat *h)
{
	*(int *)ctx += h->hot;
	return 0;
}

static int count_all(void *ctx, const struct ralt_heat *h)
{
	(void)h;
	++*(int *)ctx;
	return 0;
}

/* What the policies ask: hot blocks of a region are listed though all that is known of them waits in the buffer. */
static void what_waits_in_the_buffer_is_listed(void **state)
{
	struct ralt_heat heir = { .block = 1500, .score = 5, .counter = 3, .stable = true };
	struct bench b;
	int hot = 0, before;

	(void)state;
	bench_init(&b, FAST);
	bench_open(&b);
	for (int i = 0; i < 3000; i++)
		touch(&b, (uint64_t)i % 100 + 500);
	assert_true(b.r->buffered == 3000 && !b.r->run_count);
	assert_int_equal(ralt_scan(b.r, 0, 1024, true, count_one, &hot), 0);
	assert_int_equal(hot, 100);
	assert_int_equal(ralt_inherit(b.r, &heir), 0);
	before = hot = 0;
	assert_int_equal(ralt_scan(b.r, 1024, 1024, true, count_one, &hot), 0);
	assert_int_equal(hot, 1);
	assert_true(b.r->buffered == 3001);
	/* as it is written out, it is no other */
	assert_int_equal(ralt_scan(b.r, 0, 2048, true, count_one, &before), 0);
	assert_int_equal(ralt_flush(b.r), 0);
	hot = 0;
	assert_int_equal(ralt_scan(b.r, 0, 2048, true, count_one, &hot), 0);
	assert_int_equal(hot, before);
	bench_exit(&b);
}

static int hot_among(struct bench *b, uint64_t first)
{
	int hot = 0;

	for (uint64_t i = 0; i < 100; i++)
		hot += ralt_is_hot(b->r, first + 13 * i);
	return hot;
}

static void hot_blocks_are_known_and_cold_ones_are_not(void **state)
{
	struct bench b;
	struct prng p = { 2 };
	struct ralt_stats st;
	int hot = 0, wrong = 0;

	(void)state;
	bench_small(&b);
	bench_open(&b);
	load_hotspot(&b, &p, 20000, 500);
	ralt_flush(b.r);
	finish_work(&b);
	assert_true(hot_among(&b, 500) >= 99);
	for (uint64_t i = 10000; i < 100000; i++)
		wrong += ralt_is_hot(b.r, i);
	print_message("%d of 90000 cold blocks called hot\n", wrong);
	assert_true(wrong < 270);	/* 0.3 %: filters and a few real ones */
	assert_int_equal(ralt_scan(b.r, 0, 2000, true, count_one, &hot), 0);
	assert_true(hot >= 99 && hot <= 110);
	assert_near(ralt_hot_size(b.r, 0, 2000), hot, 5);
	assert_near(ralt_hot_size(b.r, 0, 100000), hot, 30);
	assert_near(ralt_hot_size(b.r, 500, 650), 50, 3);
	ralt_stats(b.r, &st);
	assert_near(st.hot, 100, 15);
	/* D_hs = 140 for proving oneself, and the 100. */
	assert_near((double)st.hot_limit, 240, 25);
	bench_exit(&b);
}

static void forgotten_ranges_are_cold_at_once_and_stay_so(void **state)
{
	struct bench b;
	struct prng p = { 3 };
	const struct ralt_range r[2] = { { 500, 650 }, { 1150, 3000 } };
	uint32_t before;

	(void)state;
	bench_small(&b);
	bench_open(&b);
	load_hotspot(&b, &p, 20000, 500);
	before = ralt_generation(b.r);
	assert_true(hot_among(&b, 500) >= 99);
	assert_int_equal(ralt_forget(b.r, r, 1), 0);
	assert_near(hot_among(&b, 500), 50, 1);
	assert_int_equal((int)ralt_hot_size(b.r, 500, 650), 0);
	assert_int_equal(ralt_forget(b.r, r + 1, 1), 0);
	assert_int_equal(hot_among(&b, 500), 0);
	/* An access that was on its way does not revive the range; one after it counts anew. */
	for (int i = 0; i < 4; i++)
		assert_int_equal(ralt_insert(b.r, 500, before), 0);
	struct ralt_stats st;

	ralt_stats(b.r, &st);
	assert_int_equal(st.stale, 4);
	ralt_close(b.r);
	bench_open(&b);
	assert_int_equal(hot_among(&b, 500), 0);
	finish_work(&b);
	assert_int_equal(hot_among(&b, 500), 0);
	load_hotspot(&b, &p, 20000, 500);
	ralt_flush(b.r);
	finish_work(&b);
	assert_true(hot_among(&b, 500) >= 99);
	bench_exit(&b);
}

/* More ranges than there is room for are refused as a whole, and can be forgotten when steps have made room. */
static void endless_discards_are_bounded(void **state)
{
	struct bench b;
	struct prng p = { 4 };
	struct ralt_stats st;

	(void)state;
	bench_small(&b);
	b.config.tunables.forget_ranges = 16;
	bench_open(&b);
	load_hotspot(&b, &p, 20000, 500);
	for (uint64_t i = 0; i < 100; i++) {
		struct ralt_range r[9] = { { 200000 + 10 * i, 5 } };
		uint32_t before = ralt_generation(b.r);

		assert_int_equal(ralt_forget(b.r, r, 9), -ENOSPC);
		assert_int_equal(ralt_generation(b.r), before);
		while (!ralt_forget_room(b.r))
			assert_int_equal(ralt_work(b.r, 1000), 1);
		assert_int_equal(ralt_forget(b.r, r, 1), 0);
		touch(&b, 200000 + 10 * i);
		ralt_stats(b.r, &st);
		assert_true(st.forgotten_ranges <= 16);
	}
	assert_true(hot_among(&b, 500) >= 95);
	bench_exit(&b);
}

/* A store with 100,000 records and a buffer of 256. */
static void fill_up(struct bench *b)
{
	bench_small(b);
	b->config.tunables.physical_ratio = 1000;
	bench_open(b);
	for (uint64_t i = 0; i < 100003; i++)
		touch(b, i * 7 % 100003);
	ralt_flush(b->r);
	finish_work(b);
}

static uint64_t merged_now(const struct bench *b)
{
	struct ralt_stats st;

	ralt_stats(b->r, &st);
	return st.merged;
}

#define STEP	(RALT_STEP_MOST * 256ull + 100)

/*
 * Once a second something is discarded: 65,536 times, and more.  No call rewrites the whole store, for a daemon whose
 * tick takes so long is taken for dead; what is forgotten stays so, what is not is known, also after a restart.
 */
static void no_discard_rewrites_the_store(void **state)
{
	const struct ralt_range gone = { 500, 100 };
	struct bench b;
	uint64_t most = 0;

	(void)state;
	fill_up(&b);
	/* 16 bits, and so near their end that the test need not wait. */
	b.r->generation = (1u << 16) - 10;
	for (uint64_t i = 0; i < 40; i++) {
		uint64_t before = merged_now(&b);

		assert_int_equal(ralt_forget(b.r, i == 20 ? &gone : &(struct ralt_range){ 300000 + 10 * i, 5 }, 1), 0);
		most = merged_now(&b) - before > most ? merged_now(&b) - before : most;
		for (uint64_t k = 0; k < 300; k++)
			touch(&b, 300000 + k);
		finish_work(&b);
	}
	print_message("%llu records merged by one call\n", (unsigned long long)most);
	assert_true(most <= STEP);
	assert_true(ralt_generation(b.r) > 1 << 16);
	for (int restart = 0; restart < 2; restart++) {
		int known = 0;

		assert_int_equal(ralt_scan(b.r, 400, 100, false, count_all, &known), 0);
		assert_int_equal(known, 100);
		assert_int_equal(ralt_scan(b.r, 500, 100, false, count_all, &known), 0);
		assert_int_equal(known, 100);
		ralt_close(b.r);
		bench_open(&b);
	}
	bench_exit(&b);
}

struct stretch {
	uint64_t seen, refuses;
	uint64_t last;
};

static int see_stretch(void *ctx, const struct ralt_heat *h)
{
	struct stretch *s = ctx;

	if (h->block == s->refuses)
		return 7;
	assert_true(!s->seen || h->block > s->last);
	s->last = h->block;
	s->seen++;
	return 0;
}

/* Piece by piece a scan sees what it sees at once, and no piece is long, dead as its records may be. */
static void a_scan_by_pieces_sees_everything_once(void **state)
{
	struct stretch at_once = { .refuses = UINT64_MAX }, s = at_once;
	const uint64_t end = 60000, refuses = 20500;
	uint64_t at = 0;
	struct bench b;

	(void)state;
	fill_up(&b);
	touch(&b, refuses);
	assert_int_equal(ralt_forget(b.r, &(struct ralt_range){ 500, 20000 }, 1), 0);
	assert_int_equal(ralt_scan(b.r, 0, end, false, see_stretch, &at_once), 0);
	for (s.refuses = refuses; at < end;) {
		uint64_t before = at;
		int got = ralt_scan_some(b.r, &at, end, 100, see_stretch, &s);

		assert_true(at - before <= 100);
		assert_true(got == 0 || (got == 7 && at == refuses));
		if (got)
			s.refuses = UINT64_MAX;
		else
			assert_true(at > before);
	}
	assert_int_equal(at, end);
	assert_int_equal(s.seen, at_once.seen);
	assert_int_equal(s.seen, 40000);
	bench_exit(&b);
}

/* While a merge of everything goes on, young runs wait: it is pushed on by steps, and done before they are too many. */
static void no_access_waits_for_a_whole_merge(void **state)
{
	struct ralt_stats st;
	struct bench b;
	uint64_t most = 0, runs = 0, evictions;

	(void)state;
	fill_up(&b);
	ralt_stats(b.r, &st);
	evictions = st.evictions;
	b.r->config.tunables.physical_ratio = 4;
	b.r->config.tunables.tracked_share = 0;
	for (uint64_t i = 0; i < 100000; i++) {
		uint64_t before = merged_now(&b);

		touch(&b, 400000 + i);
		most = merged_now(&b) - before > most ? merged_now(&b) - before : most;
		runs = b.r->run_count > runs ? b.r->run_count : runs;
	}
	ralt_stats(b.r, &st);
	print_message("%llu records merged by one call, %llu runs\n", (unsigned long long)most, (unsigned long long)runs);
	assert_true(st.evictions > evictions);
	assert_true(most <= STEP);
	assert_true(runs < RALT_RUNS_MAX);
	assert_int_equal(st.dropped, 0);
	bench_exit(&b);
}

/* A volume discarded as a whole: merges read much of which nothing comes out, and that is work, too. */
static void dead_records_are_work(void **state)
{
	const struct ralt_range all = { 0, 1 << 30 };
	struct bench b;

	(void)state;
	fill_up(&b);
	b.r->forget.limit = 3;
	assert_int_equal(ralt_forget(b.r, &all, 1), 0);
	b.r->forget.limit = 1;		/* a merge of everything is due */
	for (uint64_t before = merged_now(&b), now; ralt_work(b.r, 1000) > 0; before = now) {
		now = merged_now(&b);
		assert_true(now - before <= 1100);
	}
	assert_true(merged_now(&b) > 90000);
	bench_exit(&b);
}

/* Ticks twice as long, or half: as many have passed as before, and what was hot is. */
static void ticks_of_another_length_do_not_bend_time(void **state)
{
	struct bench b;
	struct prng p = { 8 };
	uint32_t tick;

	(void)state;
	bench_small(&b);
	bench_open(&b);
	load_hotspot(&b, &p, 20000, 500);
	for (int i = 0; i < 2; i++) {
		tick = b.r->judge.now.tick;
		assert_true(tick > 10);
		assert_int_equal(ralt_close(b.r), 0);
		b.config.tunables.tick_share *= i ? 0.25 : 2;
		bench_open(&b);
		assert_int_equal(b.r->judge.now.tick, tick);
		finish_work(&b);
		assert_true(hot_among(&b, 500) >= 95);
	}
	bench_exit(&b);
}

/* Room for forgotten ranges is made by steps, whether anything is accessed or not. */
static void work_makes_room_for_discards(void **state)
{
	struct bench b;
	struct prng p = { 4 };
	struct ralt_stats before, after;

	(void)state;
	bench_small(&b);
	b.config.tunables.forget_ranges = 64;
	bench_open(&b);
	load_hotspot(&b, &p, 20000, 500);
	finish_work(&b);
	assert_int_equal(ralt_forget_room(b.r), 32);
	ralt_stats(b.r, &before);
	for (uint64_t i = 0; i < 100; i++) {
		struct ralt_range r = { 200000 + 10 * i, 5 };

		while (!ralt_forget_room(b.r))
			assert_int_equal(ralt_work(b.r, 1000), 1);
		assert_int_equal(ralt_forget(b.r, &r, 1), 0);
	}
	finish_work(&b);
	ralt_stats(b.r, &after);
	assert_true(ralt_forget_room(b.r) >= 16);
	assert_in_range(after.merges - before.merges, 1, 6);
	assert_true(hot_among(&b, 500) >= 95);
	bench_exit(&b);
}

/* The limits on records and disk hold under a flood of one-time accesses. */
static void disk_is_bounded(void **state)
{
	struct bench b;
	struct prng p = { 5 };
	struct ralt_stats st;

	(void)state;
	bench_small(&b);
	bench_open(&b);
	for (int round = 0; round < 30; round++) {
		load_hotspot(&b, &p, 3000, 500);
		for (int i = 0; i < 3000; i++)
			touch(&b, 1000000 + prng_below(&p, 100000000));
		ralt_stats(b.r, &st);
		/* At most twice the limit with slack, plus what waits in young runs and a level. */
		assert_true(st.records < 2.2 * 4 * 1400 + 12 * 256 + 2560);
	}
	finish_work(&b);
	ralt_stats(b.r, &st);
	assert_true(st.evictions > 0);
	assert_true(hot_among(&b, 500) >= 95);
	bench_exit(&b);
}

/* The hotspot moves away: without rewriting, the old filters would call it hot for ever. */
static void a_hotspot_that_left_is_no_longer_hot(void **state)
{
	struct bench b;
	struct prng p = { 6 };

	(void)state;
	bench_small(&b);
	b.config.tunables.samples = 64;
	bench_open(&b);
	load_hotspot(&b, &p, 20000, 500);
	load_hotspot(&b, &p, 20000, 60000);
	ralt_flush(b.r);
	finish_work(&b);
	assert_true(hot_among(&b, 60000) >= 95);
	assert_true(hot_among(&b, 500) <= 5);
	bench_exit(&b);
}

static void one_store_per_directory(void **state)
{
	struct bench b;
	struct ralt *second;

	(void)state;
	bench_small(&b);
	bench_open(&b);
	assert_int_equal(ralt_open(&second, &b.config), -EBUSY);
	assert_int_equal(ralt_insert(b.r, 1ull << 40, 0), -ERANGE);
	bench_exit(&b);
}

static void quartiles_ascend(void **state)
{
	struct bench b;
	struct prng p = { 7 };
	double q[3];

	(void)state;
	bench_small(&b);
	bench_open(&b);
	ralt_quartiles(b.r, q);
	assert_near(q[2], 0, 0);
	load_hotspot(&b, &p, 20000, 500);
	ralt_quartiles(b.r, q);
	assert_true(q[0] > 0 && q[0] <= q[1] && q[1] <= q[2]);
	bench_exit(&b);
}

static int copy_one(void *ctx, const struct ralt_heat *h)
{
	*(struct ralt_heat *)ctx = *h;
	return 0;
}

/* Heat from elsewhere: as good as heat of its own, on disk and after a discard. */
static void inherited_heat_is_heat(void **state)
{
	struct ralt_heat heir = { .block = 100, .score = 5, .counter = 3, .stable = true }, known = { 0 };
	struct bench b;
	uint64_t accesses;
	struct ralt_stats stats;
	const struct ralt_range range = { 100, 1 };

	(void)state;
	bench_init(&b, FAST);
	bench_open(&b);
	for (int i = 0; i < 5000; i++)
		assert_int_equal(ralt_insert(b.r, (uint64_t)i % 500 + 1000, 0), 0);
	ralt_stats(b.r, &stats);
	accesses = stats.accesses;
	assert_int_equal(ralt_inherit(b.r, &heir), 0);
	ralt_stats(b.r, &stats);
	assert_int_equal(stats.accesses, accesses);	/* time stands still */
	assert_true(heir.hot);
	assert_true(ralt_is_hot(b.r, 100));
	assert_int_equal(ralt_scan(b.r, 100, 1, false, copy_one, &known), 0);
	assert_near(known.score, 5, 0.05);
	assert_near(known.counter, 3, 0.11);
	assert_true(known.stable);
	assert_int_equal(ralt_close(b.r), 0);
	bench_open(&b);
	assert_true(ralt_is_hot(b.r, 100));
	assert_int_equal(ralt_forget(b.r, &range, 1), 0);
	assert_false(ralt_is_hot(b.r, 100));
	heir.score = 0;
	assert_int_equal(ralt_inherit(b.r, &heir), -EINVAL);
	heir = (struct ralt_heat){ .block = 1ull << 40, .score = 1 };
	assert_int_equal(ralt_inherit(b.r, &heir), -ERANGE);
	bench_exit(&b);
}

/* What the filters of runs do not know yet; when it has been written out they alone are asked. */
static void what_is_in_the_buffer_is_used(void **state)
{
	struct bench b;
	int used = 0, others = 0;

	(void)state;
	bench_small(&b);
	bench_open(&b);
	for (uint64_t i = 0; i < 200; i++)
		assert_int_equal(ralt_insert(b.r, i * 7, 0), 0);
	for (uint64_t i = 0; i < 200; i++) {
		assert_false(ralt_is_hot(b.r, i * 7));
		used += ralt_is_used(b.r, i * 7);
		others += ralt_is_used(b.r, i * 7 + 3);
	}
	assert_int_equal(used, 200);
	assert_true(others < 40);
	assert_int_equal(ralt_flush(b.r), 0);
	for (uint64_t i = 0; i < 200; i++)
		assert_int_equal(ralt_is_used(b.r, i * 7), ralt_is_hot(b.r, i * 7));
	bench_exit(&b);
}

/* A filesystem with room for small runs, and none for what they are merged to: accesses
 * are dropped when there are as many runs as there may be, never written behind the buffer.
 */
static void no_room_for_merges_drops_accesses(void **state)
{
	const struct rlimit small = { 120 << 10, RLIM_INFINITY };
	const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
	struct ralt_stats stats;
	struct bench b;

	(void)state;
	bench_init(&b, 1 << 20);
	b.config.tunables.buffer_records = 4096;
	bench_open(&b);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	for (uint64_t block = 0; block < (RALT_RUNS_MAX + 3) * 4096ull; block++) {
		ralt_insert(b.r, block, ralt_generation(b.r));
		assert_true(b.r->buffered <= b.r->buffer_limit);
	}
	ralt_stats(b.r, &stats);
	assert_int_equal(b.r->run_count, RALT_RUNS_MAX);
	assert_true(stats.dropped > 0);
	assert_true(b.reports[RALT_DROPPED] > 0);

	/* Room again: they are merged, and new accesses are taken. */
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	signal(SIGXFSZ, SIG_DFL);
	finish_work(&b);
	assert_true(b.r->run_count < RALT_RUNS_MAX);
	touch(&b, 5);
	bench_exit(&b);
}

/*
 * How often limits and thresholds are looked at: after a quarter of D_hs (7 % of the fast tier), on tiers beyond 14 GiB with
 * each buffer.  What has come to fill the tier since is hot from the next look on.
 */
static void limits_are_tuned_with_each_buffer_at_least(void **state)
{
	static const struct {
		uint64_t fast_blocks;
		uint32_t buffer, pause;
	} of[] = {
		{ 20000, 65536, 350 }, { 3600000, 65536, 63000 }, { 100000000, 65536, 65536 }, { 100000000, 1024, 1024 },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(of) / sizeof(of[0]); k++) {
		struct bench b;

		bench_init(&b, of[k].fast_blocks);
		b.config.tunables.buffer_records = of[k].buffer;
		b.config.tunables.fill_score = 0.5;
		bench_open(&b);
		touch(&b, 1000);	/* the first look, at nothing */
		ralt_fill(b.r, 0.85);
		for (uint32_t i = 1; i < of[k].pause; i++)
			touch(&b, i % 64);
		assert_false(ralt_is_hot(b.r, 1000));
		touch(&b, 0);
		assert_true(ralt_is_hot(b.r, 1000));
		bench_exit(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_access_is_found_again),
		cmocka_unit_test(what_waits_in_the_buffer_is_listed),
		cmocka_unit_test(hot_blocks_are_known_and_cold_ones_are_not),
		cmocka_unit_test(forgotten_ranges_are_cold_at_once_and_stay_so),
		cmocka_unit_test(endless_discards_are_bounded),
		cmocka_unit_test(no_discard_rewrites_the_store),
		cmocka_unit_test(a_scan_by_pieces_sees_everything_once),
		cmocka_unit_test(no_access_waits_for_a_whole_merge),
		cmocka_unit_test(dead_records_are_work),
		cmocka_unit_test(work_makes_room_for_discards),
		cmocka_unit_test(ticks_of_another_length_do_not_bend_time),
		cmocka_unit_test(disk_is_bounded),
		cmocka_unit_test(limits_are_tuned_with_each_buffer_at_least),
		cmocka_unit_test(a_hotspot_that_left_is_no_longer_hot),
		cmocka_unit_test(one_store_per_directory),
		cmocka_unit_test(quartiles_ascend),
		cmocka_unit_test(inherited_heat_is_heat),
		cmocka_unit_test(what_is_in_the_buffer_is_used),
		cmocka_unit_test(no_room_for_merges_drops_accesses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
