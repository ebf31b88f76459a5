// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Miniatures: the sample takes one block of each group and no stride escapes it, a miniature does what the settings say, and what
 * the loop foretells of other settings is what comes of them.
 */
#include "sim_lib.h"

#include "decide/miniature.h"
#include "ralt/small.h"

#define BLOCKS	(64 * 1024)
#define FAST	(8 * 1024)
#define HOT	4096

/* ---- the sample ------------------------------------------------------------------------ */

static void every_group_has_one_block(void **state)
{
	uint32_t at[16] = { 0 }, found = 0;

	(void)state;
	for (uint64_t block = 0; block < 16 * 4096; block++) {
		int64_t n = miniature_number(block, 4);

		if (n < 0)
			continue;
		assert_int_equal(n, block / 16);
		assert_int_equal(miniature_block((uint64_t)n, 4), block);
		at[block % 16]++;
		found++;
	}
	assert_int_equal(found, 4096);
	/* 256 of 4096 groups in each place, 15.5 give or take: a load of every 16th block is sampled like any other. */
	for (int i = 0; i < 16; i++)
		assert_in_range(at[i], 180, 332);
	assert_int_equal(miniature_number(12345, 0), 12345);
}

static void memory_is_bounded_whatever_the_volume(void **state)
{
	struct miniature_tunables t;

	(void)state;
	assert_table_is_sound(&miniature_tunable_table, &t);
	assert_int_equal(miniature_shift(&t, 8192), 0);
	assert_int_equal(miniature_shift(&t, 8193), 1);
	assert_int_equal((1ull << 34) >> miniature_shift(&t, 1ull << 34), 8192);
	assert_true(miniature_bytes(8192, miniature_shift(&t, 1ull << 34)) < 64 * 1024);
	assert_int_equal(miniature_counted_shift(&t, 262144), 0);
	assert_int_equal((1ull << 34) >> miniature_counted_shift(&t, 1ull << 34), 262144);
	t.samples = 1024;
	t.counted = 4096;
	assert_int_equal(miniature_shift(&t, 16384), 4);
	assert_int_equal(miniature_counted_shift(&t, 16384), 2);
}

static void small_volumes_have_none(void **state)
{
	struct tuning t;
	struct whatif w;
	struct whatif_config c = { .blocks = 8192ull << 7, .fast_blocks = 8192, .seed = 1 };

	(void)state;
	tuning_defaults(&t);
	assert_int_equal(whatif_open(&w, &c, &t), -E2BIG);
	assert_true(whatif_hit_rate(&w, 0) < 0);	/* and nothing is touched */
	whatif_access(&w, 1, false);
	t.miniature.most_share = 1.0 / 128;
	assert_int_equal(whatif_open(&w, &c, &t), 0);
	whatif_close(&w);
	t.miniature.most_share = 0.004;
	c.blocks *= 2;
	assert_int_equal(whatif_open(&w, &c, &t), 0);
	assert_non_null(w.counts);
	whatif_close(&w);
	/* Nor is anything counted that would say less than the sample does. */
	t.miniature.counted = 8192;
	assert_int_equal(whatif_open(&w, &c, &t), 0);
	assert_null(w.counts);
	whatif_access(&w, 1, false);
	whatif_forget(&w, 0, c.blocks);
	whatif_close(&w);
}

/* ---- one setting --------------------------------------------------------------------------- */

struct small {
	struct miniature m;
	struct recency list;
	struct heat heat;
	struct prng prng;
	struct choose_tunables choose;
	struct msc_tunables msc;
	struct bucket_tunables buckets;
	struct watermark_tunables watermark;
	struct flush_tunables flush;
	struct miniature_rules rules;
	void *memory[2];
};

/* 256 blocks in regions of 16, 64 of them fast; hot is what an LRU of @listed blocks has. */
static void small_open(struct small *s, uint32_t listed)
{
	size_t n = miniature_bytes(256, 6);

	memset(s, 0, sizeof(*s));
	tunable_defaults(&choose_tunable_table, &s->choose);
	tunable_defaults(&msc_tunable_table, &s->msc);
	tunable_defaults(&bucket_tunable_table, &s->buckets);
	tunable_defaults(&watermark_tunable_table, &s->watermark);
	tunable_defaults(&flush_tunable_table, &s->flush);
	s->rules = (struct miniature_rules){
		.rule = CHOOSE_APPROX, .choose = &s->choose, .msc = &s->msc, .buckets = &s->buckets, .watermark = &s->watermark,
		.flush = &s->flush,
	};
	s->memory[0] = malloc(n);
	assert_int_equal(miniature_init(&s->m, 256, 64, 6, s->memory[0], n - 1), -ENOMEM);
	assert_int_equal(miniature_init(&s->m, 256, 0, 6, s->memory[0], n), -EINVAL);
	assert_int_equal(miniature_init(&s->m, 256, 64, 6, s->memory[0], n), 0);
	s->memory[1] = malloc(recency_bytes(listed));
	assert_int_equal(recency_init(&s->list, listed, s->memory[1], recency_bytes(listed)), 0);
	s->heat = (struct heat){ .kind = HEAT_LRU, .recency = &s->list };
}

static void small_close(struct small *s)
{
	free(s->memory[0]);
	free(s->memory[1]);
}

static void small_read(struct small *s, uint32_t block)
{
	recency_touch(&s->list, block);
	miniature_read(&s->m, &s->rules, &s->heat, block, &s->prng);
}

/* Each stands for 64 reads: of 6400, those of the sample that missed. */
static void misses_are_what_counts(void **state)
{
	struct small s;

	(void)state;
	small_open(&s, 32);
	assert_near(miniature_hit_rate(&s.m, 0), 0, 0);
	s.m.up = MINIATURE_ALL;
	for (uint32_t i = 0; i < 100; i++)
		small_read(&s, i % 4);
	assert_near(miniature_hit_rate(&s.m, 6400), 0.96, 1e-9);
	/* More reads of few blocks that the sample has not are more hits. */
	assert_near(miniature_hit_rate(&s.m, 12800), 0.98, 1e-9);
	assert_near(miniature_hit_rate(&s.m, 64), 0, 0);
	miniature_age(&s.m);
	assert_near(miniature_hit_rate(&s.m, 3200), 0.96, 1e-9);
	miniature_forget(&s.m, 3);
	small_read(&s, 3);
	assert_near(s.m.misses, 3, 1e-9);
	small_close(&s);
}

static void what_may_go_up_does(void **state)
{
	struct small s;

	(void)state;
	small_open(&s, 32);
	for (uint32_t i = 0; i < 100; i++)
		small_read(&s, i % 4);
	assert_int_equal(s.m.fast_used, 0);
	s.m.up = MINIATURE_HOT;
	small_read(&s, 1);
	assert_int_equal(s.m.fast_used, 1);
	/* Not hot: the heat has not heard of it. */
	miniature_read(&s.m, &s.rules, &s.heat, 200, &s.prng);
	assert_int_equal(s.m.fast_used, 1);
	s.m.up = MINIATURE_ALL;
	miniature_read(&s.m, &s.rules, &s.heat, 200, &s.prng);
	assert_int_equal(s.m.fast_used, 2);
	small_close(&s);
}

/* 98 % of 64 are 62.7, 95 % are 60.8: the next beyond 62 makes room, and of a region with hot blocks these stay. */
static void room_is_made_and_the_hot_stay(void **state)
{
	struct small s;

	(void)state;
	small_open(&s, 8);
	s.m.up = MINIATURE_ALL;
	for (uint32_t i = 0; i < 256; i++) {
		small_read(&s, i);
		assert_true(s.m.fast_used <= 63);
		for (uint32_t hot = 0; hot < 4; hot++)
			small_read(&s, hot);
	}
	assert_true(s.m.fast_used > 32);
	/* 4 at first, and nobody has sent them down since. */
	for (uint32_t hot = 0; hot < 4; hot++)
		assert_true(s.m.place[hot]);
	assert_near(s.m.misses, 256, 0);
	small_close(&s);
}

/* 9 of a region's 16 are not 60 %, 10 are: then the six that nobody has read for long come with the next one. */
static void where_most_are_hot_the_rest_comes_along(void **state)
{
	struct small s;

	(void)state;
	small_open(&s, 10);
	for (uint32_t i = 0; i < 8; i++)
		recency_touch(&s.list, 16 + i);
	s.m.up = MINIATURE_HOT;
	small_read(&s, 24);
	assert_int_equal(s.m.fast_used, 1);
	s.flush.neighbours = 2;
	small_read(&s, 25);
	assert_int_equal(s.m.fast_used, 2);
	s.flush.neighbours = 0.6;
	small_read(&s, 16);
	assert_int_equal(s.m.fast_used, 16);
	assert_true(s.m.place[31] && !s.m.place[15] && !s.m.place[32]);
	/* No more than there is room for. */
	small_close(&s);
	small_open(&s, 10);
	for (uint32_t i = 0; i < 10; i++)
		recency_touch(&s.list, 16 + i);
	s.m.up = MINIATURE_ALL;
	for (uint32_t i = 64; i < 120; i++)
		miniature_read(&s.m, &s.rules, &s.heat, i, &s.prng);
	assert_int_equal(s.m.fast_used, 56);
	small_read(&s, 16);
	assert_int_equal(s.m.region[1].fast, 63 - 56);
	small_close(&s);
}

/* Nobody has to ask for room first. */
static void a_smaller_fast_tier_sends_down_at_once(void **state)
{
	struct small s;

	(void)state;
	small_open(&s, 4);
	s.m.up = MINIATURE_ALL;
	for (uint32_t i = 0; i < 60; i++)
		small_read(&s, i);
	assert_int_equal(s.m.fast_used, 60);
	miniature_resize(&s.m, &s.rules, &s.heat, 32, &s.prng);
	assert_in_range(s.m.fast_used, 4, 31);
	for (uint32_t i = 56; i < 60; i++)
		assert_true(s.m.place[i]);
	/* What is hot stays even so, and the call comes back. */
	miniature_resize(&s.m, &s.rules, &s.heat, 2, &s.prng);
	assert_int_equal(s.m.fast_used, 4);
	miniature_resize(&s.m, &s.rules, &s.heat, 64, &s.prng);
	assert_int_equal(s.m.fast_used, 4);
	small_close(&s);
}

static void a_write_takes_a_place_where_there_is_one(void **state)
{
	struct small s;

	(void)state;
	small_open(&s, 256);
	for (uint32_t i = 0; i < 256; i++) {
		recency_touch(&s.list, i);
		miniature_write(&s.m, &s.rules, &s.heat, i, &s.prng);
	}
	/* All of it is hot, so nothing leaves; the rest has overflowed, and writes are no misses. */
	assert_int_equal(s.m.fast_used, 64);
	assert_near(s.m.misses, 0, 0);
	small_close(&s);
}

/* ---- RALT without files ---------------------------------------------------------------------- */

static void a_small_ralt_finds_the_hot(void **state)
{
	struct ralt_tunables t;
	struct ralt_small r;
	struct prng p = { 3 };
	uint32_t hot = 0, cold = 0;
	double quartiles[3];
	void *mem = malloc(ralt_small_bytes(2000));

	(void)state;
	tunable_defaults(&ralt_tunable_table, &t);
	assert_int_equal(ralt_small_init(&r, &t, 400, 2000, 0, mem, 16), -ENOMEM);
	assert_int_equal(ralt_small_init(&r, &t, 400, 2000, 0, mem, ralt_small_bytes(2000)), 0);
	for (int i = 0; i < 40000; i++)
		ralt_small_touch(&r, prng_below(&p, 100) < 95 ? prng_below(&p, 100) : prng_below(&p, 2000));
	for (uint32_t b = 0; b < 2000; b++)
		*(b < 100 ? &hot : &cold) += ralt_small_is_hot(&r, b);
	print_message("hot: %u of 100, %u of 1900\n", hot, cold);
	assert_true(hot >= 98);
	assert_true(cold <= 38);
	/* Filled by score: more, as many as it names. */
	ralt_small_fill(&r, 0.85);
	for (int i = 0; i < 4000; i++)
		ralt_small_touch(&r, prng_below(&p, 100) < 95 ? prng_below(&p, 100) : prng_below(&p, 2000));
	for (uint32_t b = hot = 0; b < 2000; b++)
		hot += ralt_small_is_hot(&r, b);
	assert_in_range(hot, 300, 350);
	/* A fast tier half as large: as many fewer, and its time is what it was. */
	ralt_small_resize(&r, 200);
	assert_int_equal(r.sizes.tick_accesses, 40);
	assert_int_equal(r.sizes.period_accesses, 280);
	for (int i = 0; i < 4000; i++)
		ralt_small_touch(&r, prng_below(&p, 100) < 95 ? prng_below(&p, 100) : prng_below(&p, 2000));
	for (uint32_t b = hot = 0; b < 2000; b++)
		hot += ralt_small_is_hot(&r, b);
	assert_in_range(hot, 150, 175);
	ralt_small_quartiles(&r, quartiles);
	assert_true(ralt_small_score(&r, 5) > quartiles[2] && quartiles[0] > 0);
	ralt_small_forget(&r, 5);
	assert_false(ralt_small_is_hot(&r, 5));
	assert_near(ralt_small_score(&r, 5), -1, 0);
	free(mem);
}

/* ---- one setting of the loop's -------------------------------------------------------------------- */

static uint32_t number_of(const char *name)
{
	uint32_t n = 0;

	while (strcmp(whatif_settings[n].name, name))
		assert_true(++n < WHATIF_SETTINGS);
	return n;
}

/* A sixth of the blocks is read; an LRU is in use. */
struct foretold {
	struct tuning tuning;
	struct whatif w;
	struct shards ghost;
	struct prng prng;
	uint64_t accesses;
	void *memory;
};

static void foretold_open(struct foretold *f)
{
	const struct whatif_config c = { .heat = HEAT_LRU, .blocks = BLOCKS, .fast_blocks = FAST, .seed = 1 };
	size_t n;

	memset(f, 0, sizeof(*f));
	tuning_defaults(&f->tuning);
	f->tuning.miniature.most_share = 1;
	n = shards_bytes(&f->tuning.shards);
	f->memory = malloc(n);
	assert_int_equal(shards_init(&f->ghost, &f->tuning.shards, BLOCKS, f->memory, n), 0);
	assert_int_equal(whatif_open(&f->w, &c, &f->tuning), 0);
}

static void foretold_close(struct foretold *f)
{
	whatif_close(&f->w);
	free(f->memory);
}

static void foretold_read(struct foretold *f, uint64_t reads)
{
	for (uint64_t i = 0; i < reads; i++) {
		uint64_t block = prng_below(&f->prng, BLOCKS / 6);

		shards_access(&f->ghost, block);
		whatif_access(&f->w, block, false);
		if (++f->accesses % 64 == 0)
			whatif_work(&f->w, &f->ghost, f->accesses, BLOCKS);
	}
}

/* Up to nine tenths what is read goes up at first sight; after that room that comes is for what is hot, as in the loop. */
static void what_was_full_is_not_filled_at_first_sight(void **state)
{
	struct foretold f;
	struct whatif_one *o;

	(void)state;
	foretold_open(&f);
	o = &f.w.one[number_of("lru")];
	foretold_read(&f, 2048);
	assert_int_equal(o->miniature.up, MINIATURE_ALL);
	for (int i = 0; i < 400 && o->miniature.up == MINIATURE_ALL; i++)
		foretold_read(&f, 64);
	assert_int_equal(o->miniature.up, MINIATURE_HOT);
	assert_in_range(o->miniature.fast_used, o->miniature.fast_blocks * 9 / 10, o->miniature.fast_blocks);
	whatif_forget(&f.w, 0, BLOCKS / 12);
	assert_in_range(o->miniature.fast_used, o->miniature.fast_blocks / 3, o->miniature.fast_blocks / 2);
	foretold_read(&f, 64);
	assert_int_equal(o->miniature.up, MINIATURE_HOT);
	/* Empty as at the beginning. */
	whatif_forget(&f.w, 0, BLOCKS);
	foretold_read(&f, 64);
	assert_int_equal(o->miniature.up, MINIATURE_ALL);
	foretold_close(&f);
}

/* ---- what the loop foretells ------------------------------------------------------------------- */

/* Half of them to a 32nd of the blocks, a third to an eighth, scattered: no edge that any fast tier would fit. */
static void graded(struct sim *s, uint64_t ops)
{
	for (uint64_t i = 0; i < ops; i++) {
		double draw = prng_unit(&s->prng);
		uint64_t of = draw < 0.5 ? BLOCKS / 32 : draw < 0.83 ? BLOCKS / 8 : BLOCKS;

		sim_access(s, prng_below(&s->prng, of) * 40503 % BLOCKS, false);
		if (i % 64 == 63)
			assert_int_equal(sim_tick(s), 0);
	}
}

/* Hit rate of the last third; what was foretold by then. */
static double loop_hits(enum heat_kind heat, uint64_t fast, double *foretold)
{
	struct sim *s = sim_create(BLOCKS, fast);
	uint64_t reads, hits;
	double rate;

	s->c.heat = heat;
	s->c.tuning.climb.min = s->c.tuning.climb.max;
	sim_open(s);
	graded(s, 200000);
	reads = s->v.reads;
	hits = s->v.fast_hits;
	graded(s, 100000);
	rate = (double)(s->v.fast_hits - hits) / (double)(s->v.reads - reads);
	for (uint32_t n = 0; n < WHATIF_SETTINGS; n++)
		foretold[n] = whatif_hit_rate(&s->e.whatif, n);
	sim_remove(s);
	return rate;
}

static void other_settings_are_foretold_within_2_points(void **state)
{
	static const struct {
		const char *name;
		enum heat_kind heat;
		uint64_t fast;
	} other[] = {
		{ "clock", HEAT_CLOCK, FAST }, { "lru", HEAT_LRU, FAST }, { "fast_half", HEAT_RALT, FAST / 2 },
	};
	double foretold[WHATIF_SETTINGS], unused[WHATIF_SETTINGS];

	(void)state;
	assert_near(loop_hits(HEAT_RALT, FAST, foretold), foretold[number_of("ralt")], 0.02);
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		double real = loop_hits(other[i].heat, other[i].fast, unused);

		print_message("%s: foretold %.3f, real %.3f\n", other[i].name, foretold[number_of(other[i].name)], real);
		assert_near(foretold[number_of(other[i].name)], real, 0.02);
	}
}

/* All of 19 accesses in 20 to @hot blocks that lie anywhere from @first on. */
static void edged(struct sim *s, uint64_t ops, uint64_t first)
{
	for (uint64_t i = 0; i < ops; i++) {
		uint64_t n = prng_below(&s->prng, 20) ? prng_below(&s->prng, HOT) + first : prng_below(&s->prng, BLOCKS);

		sim_access(s, n * 40503 % BLOCKS, false);
		if (i % 64 == 63)
			assert_int_equal(sim_tick(s), 0);
	}
}

static uint32_t edged_in_sample(uint64_t first, uint32_t shift)
{
	uint32_t found = 0;

	for (uint64_t n = first; n < first + HOT; n++)
		found += miniature_number(n * 40503 % BLOCKS, shift) >= 0;
	return found;
}

/* The sample has a tenth too many hot blocks; a fast tier half as large just fits them. */
static void a_hot_set_that_just_fits_is_foretold_within_2_points(void **state)
{
	double rate[2], foretold = 0;
	uint64_t first = 0;

	(void)state;
	while (edged_in_sample(first, 5) < HOT / 32 * 11 / 10)
		first++;
	for (int half = 0; half < 2; half++) {
		struct sim *s = sim_create(BLOCKS, half ? FAST / 2 : FAST);
		uint64_t reads, hits;

		s->c.tuning.miniature.samples = BLOCKS / 32;
		sim_open(s);
		edged(s, 200000, first);
		reads = s->v.reads;
		hits = s->v.fast_hits;
		edged(s, 100000, first);
		rate[half] = (double)(s->v.fast_hits - hits) / (double)(s->v.reads - reads);
		if (!half)
			foretold = whatif_hit_rate(&s->e.whatif, number_of("fast_half"));
		sim_remove(s);
	}
	print_message("fast_half: foretold %.3f, real %.3f\n", foretold, rate[1]);
	assert_near(foretold, rate[1], 0.02);
}

static void discards_and_little_heard_foretell_nothing(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	uint32_t ralt = number_of("ralt");

	(void)state;
	sim_open(s);
	assert_true(whatif_hit_rate(&s->e.whatif, ralt) < 0);
	assert_true(whatif_is_now(&s->e.whatif, ralt));
	assert_false(whatif_is_now(&s->e.whatif, number_of("lru")));
	assert_false(whatif_is_now(&s->e.whatif, number_of("fast_half")));
	sim_hotspot(s, 60000, HOT, 0.95, 0);
	assert_true(whatif_hit_rate(&s->e.whatif, ralt) > 0.5);
	assert_true(s->e.whatif.one[ralt].miniature.fast_used > 0);
	assert_true(s->e.whatif.heads.wide.used[0] < BLOCKS);
	engine_forget(&s->e, 0, BLOCKS);
	assert_int_equal(s->e.whatif.one[ralt].miniature.fast_used, 0);
	assert_int_equal(s->e.whatif.heads.wide.used[0], BLOCKS);
	sim_remove(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_group_has_one_block),
		cmocka_unit_test(memory_is_bounded_whatever_the_volume),
		cmocka_unit_test(small_volumes_have_none),
		cmocka_unit_test(misses_are_what_counts),
		cmocka_unit_test(what_may_go_up_does),
		cmocka_unit_test(room_is_made_and_the_hot_stay),
		cmocka_unit_test(where_most_are_hot_the_rest_comes_along),
		cmocka_unit_test(a_smaller_fast_tier_sends_down_at_once),
		cmocka_unit_test(a_write_takes_a_place_where_there_is_one),
		cmocka_unit_test(a_small_ralt_finds_the_hot),
		cmocka_unit_test(what_was_full_is_not_filled_at_first_sight),
		cmocka_unit_test(other_settings_are_foretold_within_2_points),
		cmocka_unit_test(a_hot_set_that_just_fits_is_foretold_within_2_points),
		cmocka_unit_test(discards_and_little_heard_foretell_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
