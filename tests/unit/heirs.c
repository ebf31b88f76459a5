// SPDX-License-Identifier: GPL-2.0-or-later
/* What the loop does with what is known of files, on a simulated volume: heat by descent, tails that stay. */
#include "sim_lib.h"

#define BLOCKS	(64 * 1024)
#define FAST	(8 * 1024)

/*
 * Files of 1024 blocks: the first two are merged into the third and fourth, block by block in turn.  Blocks that were
 * hot are hot where they went, and up, before anyone has read them there.
 */
static void outputs_inherit_heat(void **state)
{
	const struct inherit_step step[] = { { 2 * 1024 * 4096ull, 1024 * 4096ull } };
	const struct engine_range range[] = {
		{ .block = 0, .nr = 1024 }, { .block = 2048, .nr = 1024 },
		{ .block = 32768, .nr = 1024 }, { .block = 40960, .nr = 1024 },
	};
	struct engine_file file[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		file[i] = (struct engine_file){ .range = &range[i], .nr = 1, .size = 1024 * 4096, .step = step, .nr_steps = 1 };
	for (enum heat_kind kind = HEAT_RALT; kind <= HEAT_CLOCK; kind++) {
		struct sim *s = sim_create(BLOCKS, FAST);
		uint32_t hot = 0, cold = 0, up = 0;

		s->c.heat = kind;
		s->c.tuning.mapper.pinning_threshold = 1;	/* or a clock pins by chance at its boundary */
		sim_open(s);
		/* every 16th block of the first half, and with it of the first two files */
		for (int i = 0; i < 40000; i++) {
			sim_access(s, prng_below(&s->prng, 2048) * 16, false);
			if (i % 64 == 63)
				assert_int_equal(sim_tick(s), 0);
		}
		for (uint64_t b = 32768; b < 33792; b++)
			hot += warmth_hot(&s->e.warmth, b);
		assert_int_equal(hot, 0);
		engine_inherit(&s->e, file, 2, file + 2, 2, 0, false);
		for (int i = 0; i < 64; i++)
			assert_int_equal(sim_tick(s), 0);
		for (uint64_t b = 0; b < 2048; b++) {
			uint64_t at = b < 1024 ? 32768 + b : 40960 + b - 1024;
			bool heir = b / 2 % 16 == 0;

			*(heir ? &hot : &cold) += warmth_hot(&s->e.warmth, at);
			up += heir && s->v.place[at] != PLACE_PACKED;
		}
		/* of 128 */
		assert_true(hot >= 120);
		assert_true(cold <= 20);
		assert_true(up >= hot && s->e.stats.promoted_as_heirs >= 120);
		assert_int_equal(s->e.stats.bequests, 1);
		assert_true(sim_explained(s, WHY_HEIR, " heirs and tails that waited") > 0);
		assert_int_equal(sim_explained(s, WHY_HEIR, "; of 0 heirs"), 0);
		sim_remove(s);
	}
}

/* An output that is complete has its heat before the others are written, at once though few heirs are not worth a run; each gets it once. */
static void outputs_inherit_one_after_the_other(void **state)
{
	const uint64_t half = 512 * 4096ull, all = 1024 * 4096ull;
	const struct inherit_step step[] = { { all, half }, { 2 * all, all } };
	const struct engine_range range[] = {
		{ .block = 0, .nr = 1024 }, { .block = 2048, .nr = 1024 },
		{ .block = 32768, .nr = 1024 }, { .block = 40960, .nr = 1024 },
	};
	struct sim *s = sim_create(BLOCKS, FAST);
	struct engine_file file[4];
	uint64_t heirs;

	(void)state;
	for (int i = 0; i < 4; i++)
		file[i] = (struct engine_file){ .range = &range[i], .nr = 1, .size = all, .step = step, .nr_steps = 2 };
	sim_open(s);
	for (int i = 0; i < 40000; i++) {
		sim_access(s, prng_below(&s->prng, 2048) * 16, false);
		if (i % 64 == 63)
			assert_int_equal(sim_tick(s), 0);
	}
	assert_true(engine_hot_set(&s->e, 0, 1024) >= 60 && engine_hot_set(&s->e, 32768, 1024) == 0);
	for (int i = 0; i < 2; i++)
		file[i].nr_steps = 1;
	engine_inherit(&s->e, file, 2, file + 2, 1, 0, true);
	heirs = s->e.stats.heirs;
	assert_true(heirs >= 60 && heirs <= 128 && s->e.stats.bequests == 0);
	assert_true(engine_hot_set(&s->e, 32768, 1024) >= 60 && engine_hot_set(&s->e, 40960, 1024) == 0);
	for (int i = 0; i < 2; i++)
		file[i].nr_steps = 2;
	engine_inherit(&s->e, file, 2, file + 2, 2, 1, false);
	assert_true(s->e.stats.heirs - heirs >= 60 && s->e.stats.heirs <= 256 && s->e.stats.bequests == 1);
	assert_true(engine_hot_set(&s->e, 40960, 1024) >= 60);
	/* nothing is left to pass on */
	heirs = s->e.stats.heirs;
	engine_inherit(&s->e, file, 2, file + 2, 2, 2, false);
	assert_int_equal(s->e.stats.heirs, heirs);
	sim_remove(s);
}

/* An output in the room of a file that has just died: that one's heat is forgotten, what is inherited is not. */
static void heirs_outlive_who_was_there(void **state)
{
	const struct inherit_step step[] = { { 1024 * 4096ull, 1024 * 4096ull } };
	const struct engine_range range[] = { { .block = 0, .nr = 1024 }, { .block = 32768, .nr = 1024 } };
	struct engine_file file[2];
	struct sim *s = sim_create(BLOCKS, FAST);
	uint32_t hot = 0, stale = 0;

	(void)state;
	for (int i = 0; i < 2; i++)
		file[i] = (struct engine_file){ .range = &range[i], .nr = 1, .size = 1024 * 4096, .step = step, .nr_steps = 1 };
	sim_open(s);
	/* every 16th block of the input, and of what dies later; in that the one beside each as well */
	for (int i = 0; i < 60000; i++) {
		uint64_t b = prng_below(&s->prng, 64) * 16;

		sim_access(s, i % 3 ? 32768 + b + (i % 3 == 2) : b, false);
		if (i % 64 == 63)
			assert_int_equal(sim_tick(s), 0);
	}
	assert_true(engine_hot_set(&s->e, 0, 1024) >= 60 && engine_hot_set(&s->e, 32768, 1024) >= 120);
	engine_forget(&s->e, 32768, 512);
	engine_forget(&s->e, 33280, 512);
	engine_inherit(&s->e, file, 1, file + 1, 1, 0, false);
	for (int i = 0; i < 64; i++)
		assert_int_equal(sim_tick(s), 0);
	for (uint64_t b = 0; b < 1024; b++)
		*(b % 16 ? &stale : &hot) += warmth_hot(&s->e.warmth, 32768 + b);
	assert_true(hot >= 60);
	assert_true(stale <= 4);
	assert_int_equal(s->e.nr_cold, 0);
	sim_remove(s);
}

/* Tails come up at once and stay, though nobody reads them; without a share for them they do neither. */
static void tails_stay_fast(void **state)
{
	(void)state;
	for (int share = 0; share <= 1; share++) {
		struct sim *s = sim_create(BLOCKS, FAST);
		uint32_t up = 0, left = 0;

		s->c.pin_share = share * 0.05;
		sim_open(s);
		sim_hotspot(s, 10000, 2048, 0.8, 0.5);
		for (uint64_t t = 0; t < 10; t++)
			engine_pin(&s->e, t * 5000 + 3, 32);
		for (int i = 0; i < 8; i++)
			assert_int_equal(sim_tick(s), 0);
		for (uint64_t t = 0; t < 10; t++)
			for (uint64_t b = t * 5000 + 3; b < t * 5000 + 35; b++)
				up += s->v.place[b] != PLACE_PACKED;
		sim_hotspot(s, 60000, 2048, 0.8, 0.5);
		for (uint64_t t = 0; t < 10; t++)
			for (uint64_t b = t * 5000 + 3; b < t * 5000 + 35; b++)
				left += s->v.place[b] != PLACE_PACKED;
		if (share) {
			assert_true(up >= 310 && left >= 310);
			assert_true(s->e.stats.pinned > 100);
		} else {
			assert_true(up < 200 && left < 200);
			assert_int_equal(s->e.stats.pinned, 0);
		}
		engine_unpin(&s->e, 0, BLOCKS);
		assert_int_equal(s->e.tails->blocks, 0);
		sim_remove(s);
	}
}

/* Dead blocks that an order brings up are told; not those that the kernel keeps down, nor those that are in use again. */
static void dead_blocks_that_come_up_are_counted(void **state)
{
	(void)state;
	for (int ban = 0; ban <= 1; ban++) {
		struct sim *s = sim_create(BLOCKS, FAST);

		s->c.pin_share = 0.05;
		sim_open(s);
		if (ban)
			tails_add(&s->marks, 100, 40, UINT64_MAX);
		engine_dead(&s->e, 100, 40, true);
		engine_dead(&s->e, 110, 5, false);
		engine_pin(&s->e, 90, 60);
		for (int i = 0; i < 8; i++)
			assert_int_equal(sim_tick(s), 0);
		assert_int_equal(s->e.stats.promoted_dead, ban ? 0 : 35);
		assert_int_equal(s->e.stats.promoted_as_heirs, ban ? 20 : 60);
		sim_remove(s);
	}
}

/* So are those that room is made around because they were hot. */
static void dead_blocks_that_stay_are_counted(void **state)
{
	(void)state;
	for (int dead = 0; dead <= 1; dead++) {
		struct sim *s = sim_create(BLOCKS, FAST);
		uint64_t before;

		sim_open(s);
		sim_hotspot(s, 60000, 2048, 0.8, 0.5);
		if (dead)
			engine_dead(&s->e, 0, BLOCKS, true);
		before = s->e.stats.retained;
		for (int i = 0; i < 60000; i++) {
			bool write = i % 4 == 0;

			/* The hot ones are only read: what is written is not dead. */
			sim_access(s, write ? 2048 + prng_below(&s->prng, BLOCKS - 2048) : prng_below(&s->prng, 2048), write);
			if (i % 512 == 511)
				assert_int_equal(sim_tick(s), 0);
		}
		assert_true(s->e.stats.retained > before + 100);
		assert_true(s->e.stats.retained_dead <= s->e.stats.retained - before);
		assert_true(dead ? s->e.stats.retained_dead > 100 : !s->e.stats.retained_dead);
		sim_remove(s);
	}
}

/* Of the first half of the volume, whose hot blocks are those of sim_hotspot(). */
static uint32_t hot_and_fast(const struct sim *s)
{
	uint32_t n = 0;

	for (uint64_t b = 0; b < BLOCKS / 2; b += 32)
		n += s->v.place[b] != PLACE_PACKED;
	return n;
}

/* Writes to the other half need room, and nobody uses the first one. */
static void sim_press(struct sim *s, int ops)
{
	for (int i = 0; i < ops; i++) {
		sim_access(s, BLOCKS / 2 + prng_below(&s->prng, BLOCKS / 2), true);
		if (i % 512 == 511)
			assert_int_equal(sim_tick(s), 0);
	}
}

static struct sim *sim_with_dead(enum heat_kind heat, enum choose_rule rule, bool marked, bool banned)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	s->c.heat = heat;
	s->c.rule = rule;
	sim_open(s);
	sim_hotspot(s, 60000, 2048, 0.8, 0.5);
	assert_true(hot_and_fast(s) > 800);	/* of 1024 */
	engine_dead(&s->e, 0, BLOCKS / 2, true);
	if (marked)
		tails_add(&s->marks, 0, BLOCKS / 2, UINT64_MAX);
	if (banned)
		engine_ban(&s->e, 0, BLOCKS / 2, true);
	return s;
}

/* Blocks that have died hot make room first, by either heat and rule: it is not enough that the kernel would let them go. */
static void banned_blocks_do_not_stay(void **state)
{
	(void)state;
	for (enum heat_kind heat = HEAT_RALT; heat <= HEAT_CLOCK; heat++) {
		for (int precise = 0; precise <= 1; precise++) {
			uint32_t left[2];
			uint64_t kept[2], spared[2];

			for (int ban = 0; ban <= 1; ban++) {
				struct sim *s = sim_with_dead(heat, precise ? CHOOSE_PRECISE : CHOOSE_APPROX, ban, ban);

				sim_press(s, 40000);
				left[ban] = hot_and_fast(s);
				kept[ban] = s->e.stats.retained_dead;
				spared[ban] = s->e.stats.not_retained_dead;
				sim_remove(s);
			}
			print_message("heat %d, precise %d: hot and dead left up: %u, banned %u\n", heat, precise, left[0], left[1]);
			assert_true(left[1] * 2 < left[0]);
			assert_true(kept[1] == 0 && spared[0] == 0 && spared[1] > 100);
		}
	}
}

/* A ban that ends lets them stay again: taken back; heard of as written; written unheard, which the kernel alone knows. */
static void written_anew_they_stay(void **state)
{
	enum { TAKEN_BACK, HEARD, UNHEARD, WAYS };

	(void)state;
	for (int way = TAKEN_BACK; way < WAYS; way++) {
		struct sim *s = sim_with_dead(HEAT_RALT, CHOOSE_APPROX, true, true);
		uint32_t before = hot_and_fast(s);

		for (uint64_t b = 0; way != TAKEN_BACK && b < BLOCKS / 2; b += 32) {
			if (s->v.place[b] == PLACE_PACKED)
				continue;
			if (way == HEARD)
				sim_access(s, b, true);
			else
				tails_cut(&s->marks, b, 1);
		}
		if (way == TAKEN_BACK) {
			tails_drop(&s->marks, 0, BLOCKS);
			engine_ban(&s->e, 0, BLOCKS / 2, false);
		}
		assert_int_equal(sim_tick(s), 0);
		sim_press(s, 20000);
		print_message("way %d: %u before, %u after, written anew %u\n", way, before, hot_and_fast(s), (uint32_t)s->e.stats.written_anew);
		assert_true(hot_and_fast(s) > before / 2);
		assert_true(way == UNHEARD ? s->e.stats.written_anew > 100 : !s->e.stats.written_anew);
		sim_remove(s);
	}
}

/* What is born hot and finds no room, room for some of it, or its region being moved, goes up when that is over. */
static void heirs_wait(void **state)
{
	enum { NO_ROOM, SOME_ROOM, BUSY, WAYS };

	(void)state;
	for (int way = NO_ROOM; way < WAYS; way++) {
		struct sim *s = sim_create(BLOCKS, FAST);
		uint32_t up = 0;

		s->c.pin_share = 0.05;
		sim_open(s);
		s->no_room = way == NO_ROOM;
		s->room_for = way == SOME_ROOM ? 7 : 0;
		s->delay = way == BUSY ? 4 : 0;
		engine_pin(&s->e, 100, 30);
		assert_int_equal(sim_tick(s), 0);
		engine_pin(&s->e, 200, 30);	/* in the same region */
		for (int i = 0; i < 3; i++)
			assert_int_equal(sim_tick(s), 0);
		s->no_room = false;
		s->room_for = 0;
		for (int i = 0; i < 32; i++)
			assert_int_equal(sim_tick(s), 0);
		for (uint64_t b = 100; b < 230; b++)
			up += s->v.place[b] != PLACE_PACKED;
		assert_int_equal(up, 60);
		sim_remove(s);
	}
}

/* What waits to be raised is not when its file has died meanwhile, or its heat is gone: others may lie there. */
/* With so many blocks tracked that RALT asks its filters, which do not know what is in its buffer yet. */
static void few_heirs_among_many_blocks_are_raised(void **state)
{
	const struct inherit_step step[] = { { 1024 * 4096ull, 1024 * 4096ull } };
	const struct engine_range range[] = { { .block = 0, .nr = 1024 }, { .block = 32768, .nr = 1024 } };
	struct sim *s = sim_create(8 * BLOCKS, 8 * FAST);
	struct engine_file file[2];
	uint32_t up = 0;

	(void)state;
	for (int i = 0; i < 2; i++)
		file[i] = (struct engine_file){ .range = &range[i], .nr = 1, .size = 1024 * 4096, .step = step, .nr_steps = 1 };
	sim_open(s);
	for (int i = 0; i < 400000; i++) {
		if (i % 4)
			sim_access(s, BLOCKS + prng_below(&s->prng, 6 * BLOCKS), false);
		else
			sim_access(s, prng_below(&s->prng, 2048) * 16, false);
		if (i % 1024 == 1023)
			assert_int_equal(sim_tick(s), 0);
	}
	engine_inherit(&s->e, file, 1, file + 1, 1, 0, false);
	for (int i = 0; i < 8; i++)
		assert_int_equal(sim_tick(s), 0);
	for (uint64_t b = 32768; b < 33792; b++)
		up += s->v.place[b] != PLACE_PACKED;
	print_message("%u up, %u raised as heirs\n", up, (uint32_t)s->e.stats.promoted_as_heirs);
	assert_true(s->e.stats.promoted_as_heirs >= 50);
	sim_remove(s);
}

/* Of a full fast tier, the share that is sent down at once while 4000 heirs wait. */
static double room_made_for_heirs(double share)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	double room;

	s->c.tuning.watermark.heirs_share = share;
	for (uint64_t b = 0; s->v.fast_used < FAST; b++)
		volume_write(&s->v, b / 128 * 1024 + b % 128);
	sim_open(s);
	s->e.governor.up = (struct governor_side){ .reason = GOVERNOR_UNPAID, .rest = 64 };	/* they go on waiting */
	s->e.nr_heirs = 4000;
	while (!s->e.under_way)
		assert_int_equal(sim_tick(s), 0);
	room = (double)s->e.leaving / FAST;
	sim_remove(s);
	return room;
}

static void room_for_heirs_is_a_share_of_the_fast_tier(void **state)
{
	double none = room_made_for_heirs(0), eighth = room_made_for_heirs(0.125), third = room_made_for_heirs(0.3);

	(void)state;
	print_message("room for none: %.3f, for an eighth %.3f, for three tenths %.3f\n", none, eighth, third);
	/* to within an order: down to the low mark, and so much */
	assert_near(none, 0.05, 0.02);
	assert_near(eighth, 0.05 + 0.125, 0.02);
	assert_near(third, 0.05 + 0.3, 0.02);
}

static void heirs_that_wait_in_vain_are_not_raised(void **state)
{
	enum { LIVE, DIE, COOL, WAYS };
	const struct inherit_step step[] = { { 1024 * 4096ull, 1024 * 4096ull } };
	const struct engine_range range[] = { { .block = 0, .nr = 1024 }, { .block = 32768, .nr = 1024 } };
	struct engine_file file[2];

	(void)state;
	for (int i = 0; i < 2; i++)
		file[i] = (struct engine_file){ .range = &range[i], .nr = 1, .size = 1024 * 4096, .step = step, .nr_steps = 1 };
	for (int way = LIVE; way < WAYS; way++) {
		struct ralt_range out = { 32768, 1024 };
		struct sim *s = sim_create(BLOCKS, FAST);
		uint64_t before;
		uint32_t up = 0;

		sim_open(s);
		for (int i = 0; i < 40000; i++) {
			sim_access(s, prng_below(&s->prng, 2048) * 16, false);
			if (i % 64 == 63)
				assert_int_equal(sim_tick(s), 0);
		}
		s->no_room = true;
		engine_inherit(&s->e, file, 1, file + 1, 1, 0, false);
		assert_true(s->e.nr_heirs >= 60);
		for (int i = 0; i < 3; i++)
			assert_int_equal(sim_tick(s), 0);
		if (way == DIE) {
			engine_dead(&s->e, out.first, out.count, true);
			engine_forget(&s->e, out.first, out.count);
		} else if (way == COOL) {
			assert_int_equal(warmth_forget_some(&s->e.warmth, &out, 1), 1);
		}
		before = s->e.stats.promoted_as_heirs;
		s->no_room = false;
		for (int i = 0; i < 32; i++)
			assert_int_equal(sim_tick(s), 0);
		for (uint64_t b = 32768; b < 33792; b++)
			up += s->v.place[b] != PLACE_PACKED;
		print_message("way %d: %u up, %u raised as heirs\n", way, up, (uint32_t)(s->e.stats.promoted_as_heirs - before));
		assert_true(way == LIVE ? s->e.stats.promoted_as_heirs - before >= 50 : s->e.stats.promoted_as_heirs == before);
		sim_remove(s);
	}
}

enum { LEVELS = 5, HOT = 2048 };

/* A file all of which is hot, and where the others will lie that it goes through, one after the other. */
static struct sim *hot_file_and_levels(struct engine_range *range, struct engine_file *file)
{
	static const struct inherit_step step[] = { { HOT * 4096ull, HOT * 4096ull } };
	struct sim *s = sim_create(BLOCKS, FAST);

	for (int i = 0; i < LEVELS; i++) {
		range[i] = (struct engine_range){ .block = (uint64_t)i * 8192, .nr = HOT };
		file[i] = (struct engine_file){ .range = &range[i], .nr = 1, .size = HOT * 4096ull, .step = step, .nr_steps = 1 };
	}
	sim_open(s);
	for (int i = 0; i < 60000; i++) {
		sim_access(s, prng_below(&s->prng, HOT), false);
		if (i % 64 == 63)
			assert_int_equal(sim_tick(s), 0);
	}
	return s;
}

/*
 * Heat goes down several levels, one compaction after the other, before the first of these files is dead: more blocks are hot
 * than the hot set may have, and none is the less so. When they are dead the limit is the old one.
 */
static void all_are_hot_while_heat_is_passed_on(void **state)
{
	struct engine_range range[LEVELS];
	struct engine_file file[LEVELS];
	struct sim *s = hot_file_and_levels(range, file);
	struct ralt_stats ralt;

	(void)state;
	assert_in_range(engine_hot_set(&s->e, 0, HOT), HOT - 20, HOT);
	for (int k = 0; k < 4; k++) {
		engine_inherit(&s->e, &file[k], 1, &file[k + 1], 1, 0, true);
		for (int i = 0; i < 2048; i++) {
			sim_access(s, prng_below(&s->prng, HOT), false);
			if (i % 64 == 63)
				assert_int_equal(sim_tick(s), 0);
		}
	}
	/* of which the last stands for all */
	ralt_stats(s->e.warmth.ralt, &ralt);
	print_message("%u hot, limit %u\n", (uint32_t)ralt.hot, (uint32_t)ralt.hot_limit);
	assert_in_range(ralt.hot, HOT * 98 / 100, HOT);
	assert_in_range(ralt.hot_limit, HOT, 2 * HOT);
	for (int k = 0; k < 5; k++)
		assert_in_range(engine_hot_set(&s->e, range[k].block, HOT), HOT * 98 / 100, HOT);
	/* the jobs end, the files die, and the last one is read */
	for (int k = 0; k < 4; k++) {
		engine_inherit(&s->e, &file[k], 1, &file[k + 1], 1, 1, false);
		engine_forget(&s->e, range[k].block, HOT);
	}
	for (int i = 0; i < 60000; i++) {
		sim_access(s, range[4].block + prng_below(&s->prng, HOT), false);
		if (i % 64 == 63)
			assert_int_equal(sim_tick(s), 0);
	}
	assert_int_equal(s->e.passed_on->nr, 0);
	ralt_stats(s->e.warmth.ralt, &ralt);
	assert_true(ralt.hot <= 1.1 * HOT && ralt.hot_limit <= 0.7 * FAST);
	assert_in_range(engine_hot_set(&s->e, range[4].block, HOT), HOT - 20, HOT);
	sim_remove(s);
}

/*
 * The same, but each file is dead before the next is merged: what it stood for is gone, and it counts. The limit is that of the one
 * that is left, in any moment, and what has just been touched has the room to prove itself that the limit leaves it.
 */
static void heirs_count_when_their_inputs_are_dead(void **state)
{
	struct engine_range range[LEVELS];
	struct engine_file file[LEVELS];
	struct sim *s = hot_file_and_levels(range, file);
	struct ralt_stats ralt;

	(void)state;
	for (int k = 0; k < 4; k++) {
		engine_inherit(&s->e, &file[k], 1, &file[k + 1], 1, 0, true);
		engine_inherit(&s->e, &file[k], 1, &file[k + 1], 1, 1, false);
		engine_forget(&s->e, range[k].block, HOT);
		for (int i = 0; i < 8192; i++) {
			sim_access(s, range[k + 1].block + prng_below(&s->prng, HOT), false);
			if (i % 512 == 511)
				assert_int_equal(sim_tick(s), 0);
		}
		ralt_stats(s->e.warmth.ralt, &ralt);
		print_message("level %d: %u hot, limit %u, %u uncounted\n", k + 1, (uint32_t)ralt.hot, (uint32_t)ralt.hot_limit, (uint32_t)s->e.passed_on->blocks);
		assert_in_range(ralt.hot, HOT * 98 / 100, HOT);
		assert_in_range(ralt.hot_limit, HOT, 2 * HOT);
		assert_in_range(engine_hot_set(&s->e, range[k + 1].block, HOT), HOT * 98 / 100, HOT);
	}
	sim_remove(s);
}

/* Inputs that do not die, for somebody has them open, count again some time after all the same. */
static void inputs_that_live_on_count_again(void **state)
{
	const struct inherit_step step[] = { { 64 * 4096ull, 64 * 4096ull } };
	const struct engine_range range[] = { { .block = 0, .nr = 64 }, { .block = 32768, .nr = 64 } };
	struct engine_file file[2];
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	for (int i = 0; i < 2; i++)
		file[i] = (struct engine_file){ .range = &range[i], .nr = 1, .size = 64 * 4096, .step = step, .nr_steps = 1 };
	sim_open(s);
	for (int i = 0; i < 40000; i++) {
		sim_access(s, prng_below(&s->prng, 64), false);
		if (i % 64 == 63)
			assert_int_equal(sim_tick(s), 0);
	}
	engine_inherit(&s->e, file, 1, file + 1, 1, 0, false);
	assert_int_equal(s->e.passed_on->blocks, 64);
	assert_true(warmth_hot(&s->e.warmth, 7) && warmth_hot(&s->e.warmth, 32768 + 7));
	for (int minute = 0; minute < 20; minute++) {
		if (minute <= 10)
			assert_int_equal(s->e.passed_on->nr, 1);
		s->e.now_ns += 60000000000ull;
		heirs_tick(&s->e);
	}
	assert_int_equal(s->e.passed_on->nr, 0);
	sim_remove(s);
}

/* Tables are made by writing each block once: that says nothing of whether it will be read, and lets no time go by. */
static void what_is_written_once_heats_nothing(void **state)
{
	(void)state;
	for (int once = 0; once < 2; once++) {
		struct sim *s = sim_create(BLOCKS, FAST);
		uint64_t heard;
		struct ralt_stats ralt;

		sim_open(s);
		if (once)
			engine_once(&s->e, BLOCKS / 2, BLOCKS / 2, true);
		for (uint64_t n = 0; n < BLOCKS; n++) {
			sim_access(s, prng_below(&s->prng, 512) * 16, false);
			sim_access(s, BLOCKS / 2 + n % (BLOCKS / 2), true);
			if (n % 64 == 63)
				assert_int_equal(sim_tick(s), 0);
		}
		assert_int_equal(s->e.stats.written_once, once ? BLOCKS : 0);
		ralt_stats(s->e.warmth.ralt, &ralt);
		print_message("%u blocks are tracked, %u accesses have passed\n", (uint32_t)ralt.tracked, (uint32_t)ralt.accesses);
		assert_int_equal(ralt.accesses, once ? BLOCKS : 2 * BLOCKS);
		assert_true(once ? ralt.tracked <= 550 : ralt.tracked > 5000);
		/* and no longer, when the room is another's, or was discarded */
		engine_once(&s->e, BLOCKS / 2, 1, false);
		s->heard[s->nr_heard++] = (struct port_access){ .block = BLOCKS / 2 + 2, .count = 1, .op = PORT_DISCARD };
		heard = s->e.stats.accesses;
		for (uint64_t b = 0; b < 3; b++)
			s->heard[s->nr_heard++] = (struct port_access){ .block = BLOCKS / 2 + b, .count = 1, .op = PORT_WRITE };
		assert_int_equal(sim_tick(s), 0);
		assert_int_equal(s->e.stats.accesses - heard, once ? 2 : 3);
		sim_remove(s);
	}
}

/* A discard is heard of a tick or two late: whoever has been placed there meanwhile keeps its heat, and those beside it lose theirs. */
static void a_late_discard_is_of_who_was_there_before(void **state)
{
	(void)state;
	for (int late = 0; late <= 1; late++) {
		struct sim *s = sim_create(BLOCKS, FAST);

		sim_open(s);
		for (int i = 0; i < 40000; i++) {
			sim_access(s, prng_below(&s->prng, 64), false);
			if (i % 64 == 63)
				assert_int_equal(sim_tick(s), 0);
		}
		assert_true(warmth_hot(&s->e.warmth, 7) && warmth_hot(&s->e.warmth, 8) && warmth_hot(&s->e.warmth, 16));
		engine_placed(&s->e, 8, 8, true);
		engine_once(&s->e, 8, 8, true);
		for (int i = 0; i < (late ? 8 : 2); i++)
			assert_int_equal(sim_tick(s), 0);
		s->heard[s->nr_heard++] = (struct port_access){ .block = 0, .count = 64, .op = PORT_DISCARD };
		for (int i = 0; i < 20; i++)
			assert_int_equal(sim_tick(s), 0);
		for (uint64_t b = 0; b < 64; b++)
			assert_int_equal(warmth_hot(&s->e.warmth, b), !late && b >= 8 && b < 16);
		assert_int_equal(tails_have(s->e.once, 8), !late);
		sim_remove(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_once_heats_nothing),
		cmocka_unit_test(all_are_hot_while_heat_is_passed_on),
		cmocka_unit_test(heirs_count_when_their_inputs_are_dead),
		cmocka_unit_test(inputs_that_live_on_count_again),
		cmocka_unit_test(outputs_inherit_heat),
		cmocka_unit_test(outputs_inherit_one_after_the_other),
		cmocka_unit_test(heirs_outlive_who_was_there),
		cmocka_unit_test(a_late_discard_is_of_who_was_there_before),
		cmocka_unit_test(tails_stay_fast),
		cmocka_unit_test(dead_blocks_that_come_up_are_counted),
		cmocka_unit_test(dead_blocks_that_stay_are_counted),
		cmocka_unit_test(banned_blocks_do_not_stay),
		cmocka_unit_test(written_anew_they_stay),
		cmocka_unit_test(heirs_wait),
		cmocka_unit_test(heirs_that_wait_in_vain_are_not_raised),
		cmocka_unit_test(room_for_heirs_is_a_share_of_the_fast_tier),
		cmocka_unit_test(few_heirs_among_many_blocks_are_raised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
