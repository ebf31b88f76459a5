// SPDX-License-Identifier: GPL-2.0-or-later
/* The daemon's loop on a simulated volume: room, retention, restarts, damage. */
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>

#include "sim_lib.h"

#define BLOCKS	(64 * 1024)
#define FAST	(8 * 1024)

/* The kernel keeps back more of a small tier than the marks leave: room is made all the same, below that. */
static void room_is_made_below_what_the_kernel_keeps_back(void **state)
{
	struct sim *s = sim_create(BLOCKS, 1024);

	(void)state;
	s->kept_back = 64;
	sim_open(s);
	for (uint64_t b = 0; s->v.fast_used < 960; b++)
		volume_write(&s->v, b * 7 % BLOCKS);
	sim_hotspot(s, 60000, 512, 0.95, 0);
	assert_true(s->e.stats.demoted + s->e.stats.dropped > 256);
	assert_true(sim_hit_rate(s, 10000, 512) > 0.85);
	sim_remove(s);
}

/* All in use but a large reserve: what comes has to be worth its place. */
static void a_tier_with_a_large_reserve_may_be_crowded(void **state)
{
	struct sim *s = sim_create(BLOCKS, 1024);

	(void)state;
	s->kept_back = 205;
	sim_open(s);
	assert_int_equal(sim_tick(s), 0);
	assert_false(engine_crowded(&s->e));
	for (uint64_t b = 0; s->v.fast_used < 1024 - 205; b++)
		volume_write(&s->v, b * 7 % BLOCKS);
	assert_int_equal(sim_tick(s), 0);
	assert_true(engine_crowded(&s->e));
	sim_remove(s);
}

/* Writes everywhere fill the fast tier; room is made below the mark, the hot blocks stay. */
static void room_is_made_and_hot_blocks_stay(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	sim_open(s);
	sim_hotspot(s, 60000, 2048, 0.8, 0.5);
	assert_true(s->v.fast_used < FAST);
	assert_true((double)s->v.overflowed < 60000 * 0.05);
	assert_true(s->e.stats.demoted > 1000);
	assert_true(s->e.stats.retained > 500);
	assert_true(sim_hit_rate(s, 10000, 2048) > 0.8);
	assert_true(s->claimed);
	sim_remove(s);
}

/* Without retention all of a region goes down, hot or not, and comes up again as it is read. */
static void hot_blocks_go_down_without_retention(void **state)
{
	double hits[2];

	(void)state;
	for (int retain = 0; retain < 2; retain++) {
		struct sim *s = sim_create(BLOCKS, FAST);

		s->c.retain = retain;
		sim_open(s);
		sim_hotspot(s, 60000, 2048, 0.8, 0.5);
		assert_true(s->e.stats.demoted > 1000);
		assert_int_equal(s->e.stats.retained > 0, retain);
		hits[retain] = sim_hit_rate(s, 10000, 2048);
		sim_remove(s);
	}
	assert_true(hits[0] < hits[1]);
}

/* Without a sense of blocks the oldest regions go, and nothing comes up. */
static void a_blind_loop_goes_by_age(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	s->blind = true;
	sim_open(s);
	assert_non_null(strstr(s->log, "no sense of single blocks"));
	for (int i = 0; i < 30000; i++) {
		sim_access(s, prng_below(&s->prng, BLOCKS), true);
		if (i % 64 == 63)
			assert_int_equal(sim_tick(s), 0);
	}
	assert_true(s->v.fast_used < FAST);
	assert_true(s->e.stats.demoted > 10000);
	assert_int_equal(s->v.promoted, 0);
	assert_int_equal(s->e.stats.retained, 0);
	sim_remove(s);
	/* Files die all the same, and where the fast tier has no room there is not even a heat store. */
	s = sim_create(BLOCKS, 0);
	s->blind = true;
	sim_open(s);
	engine_forget(&s->e, 0, 8);
	assert_int_equal(s->e.nr_cold, 0);
	sim_remove(s);
}

/* Heat survives: after a restart the hot blocks are hot at once. */
static void heat_survives_a_restart(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	uint32_t hot = 0, cold = 0;

	(void)state;
	sim_open(s);
	sim_hotspot(s, 60000, 2048, 0.95, 0);
	engine_close(&s->e);
	sim_open(s);
	for (uint64_t i = 0; i < 2048; i++) {
		hot += warmth_hot(&s->e.warmth, i * (BLOCKS / 2048));
		cold += warmth_hot(&s->e.warmth, i * (BLOCKS / 2048) + 7);
	}
	assert_true(hot > 1800);
	assert_true(cold < 200);
	sim_remove(s);
}

/* A heat store that cannot be opened costs persistence, not the loop. */
static void an_unusable_heat_store_falls_back_to_memory(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	char path[128];
	int hot = 0;
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "%s/ralt", s->dir);
	f = fopen(path, "w");		/* a file where the directory should be */
	assert_non_null(f);
	fclose(f);
	sim_open(s);
	assert_non_null(strstr(s->log, "heat is kept in memory"));
	assert_int_equal(s->e.warmth.kind, HEAT_CLOCK);
	sim_hotspot(s, 60000, 4096, 0.95, 0);
	assert_true(s->v.promoted > 1000);
	/* The way is free: a minute later. */
	assert_int_equal(unlink(path), 0);
	for (int i = 0; i < 601; i++)
		assert_int_equal(sim_tick(s), 0);
	assert_int_equal(s->e.warmth.kind, HEAT_RALT);
	assert_int_equal(times(s->log, "the heat store can be opened again"), 1);
	assert_false(s->e.climbs);
	sim_hotspot(s, 30000, 4096, 0.95, 0);
	for (uint64_t i = 0; i < 4096; i++)
		hot += warmth_hot(&s->e.warmth, i * (BLOCKS / 4096));
	assert_true(hot > 1000);
	sim_remove(s);
}

/* Of a terabyte that is fast: what stands in for a store on disk must fit into memory that is locked. */
static void a_clock_that_stands_in_is_small(void **state)
{
	struct warmth w;
	struct tuning tuning;
	struct prng prng = { 1 };
	struct warmth_config c = {
		.kind = HEAT_CLOCK, .blocks = 1ull << 32, .fast_blocks = 1 << 28, .most_tracked = 4 << 20, .tuning = &tuning,
	};

	(void)state;
	tuning_defaults(&tuning);
	assert_int_equal(warmth_open(&w, &c, &prng), 0);
	assert_true(tracker_bytes(w.tracker.limit) <= 64 << 20);
	assert_true(w.tracker.limit >= 1 << 20);
	warmth_close(&w);
}

/* Of the sanitizer's allocator. */
size_t __sanitizer_get_current_allocated_bytes(void);

/* What terraced.md says that a volume takes for its size, with all its regions on the fast tier. */
static void a_tebibyte_takes_16_mebibytes(void **state)
{
	uint64_t regions = (1ull << 40) / TERRACE_BLOCK_BYTES / REGION_BLOCKS;
	size_t before = __sanitizer_get_current_allocated_bytes(), small, large;
	struct book book;

	(void)state;
	assert_int_equal(book_init(&book, 1, true), 0);
	small = __sanitizer_get_current_allocated_bytes() - before;
	book_exit(&book);
	assert_int_equal(__sanitizer_get_current_allocated_bytes(), before);
	assert_int_equal(book_init(&book, regions, true), 0);
	large = __sanitizer_get_current_allocated_bytes() - before;
	print_message("%zu bytes, and %.1f for each region\n", small, (double)(large - small) / (double)(regions - 1));
	assert_true(large - small <= 16 << 20);
	assert_true(small <= 512 << 10);
	book_exit(&book);
}

/* A share of the volume, but no more blocks than the fast tier has: what is pinned of them must leave it room. */
static void a_clock_tracks_what_may_fit(void **state)
{
	static const struct { double share; uint64_t tracked; } want[] = { { 0.01, 10000 }, { 0.05, 50000 }, { 0.2, 100000 }, { 1, 100000 } };

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct tuning tuning;
		struct prng prng = { 1 };
		struct warmth w;
		struct warmth_config c = { .kind = HEAT_CLOCK, .blocks = 1000000, .fast_blocks = 100000, .tuning = &tuning };

		tuning_defaults(&tuning);
		tuning.tracker.tracked_share = want[i].share;
		assert_int_equal(warmth_open(&w, &c, &prng), 0);
		assert_int_equal(w.tracker.limit, want[i].tracked);
		warmth_close(&w);
	}
}

/* SIGHUP: new tunables hold at once, what sized the heat store stays. */
static void retuning_takes_effect(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	struct engine_config next;

	(void)state;
	sim_open(s);
	sim_hotspot(s, 30000, 2048, 0.8, 0.5);
	next = s->c;
	next.tuning.watermark.high = 0.5;
	next.tuning.watermark.low = 0.4;
	next.tuning.ralt.fanout = 20;
	next.tuning.epoch.min_epoch_ops = 77777;
	next.heat = HEAT_LRU;
	engine_retune(&s->e, &next);
	assert_int_equal(s->e.epoch.epoch_ops, 77777);
	sim_hotspot(s, 5000, 2048, 0.8, 0.5);
	assert_true(s->v.fast_used < FAST * 0.55);
	assert_int_equal(s->e.warmth.kind, HEAT_RALT);
	assert_true(s->e.c.tuning.ralt.fanout != 20);
	sim_remove(s);
}

/* What the settings that are no tunables change. */
static uint64_t hot_after(uint32_t cache_blocks, double fill, uint64_t *flushes)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	uint64_t hot = 0;

	s->c.cache_blocks = cache_blocks;
	s->c.fill = fill;
	sim_open(s);
	sim_hotspot(s, 60000, 2048, 0.6, 0);
	for (uint64_t b = 0; b < BLOCKS; b++)
		hot += warmth_hot(&s->e.warmth, b);
	*flushes = s->e.stats.flushes;
	sim_remove(s);
	return hot;
}

static void each_setting_changes_the_outcome(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	uint64_t plain_flushes, flushes, plain = hot_after(1024, 0.85, &plain_flushes);

	(void)state;
	assert_true(hot_after(1024, 0.5, &flushes) < plain);
	hot_after(256, 0.85, &flushes);
	assert_true(flushes > plain_flushes);
	s->c.claim = false;
	sim_open(s);
	sim_hotspot(s, 60000, 2048, 0.8, 0.5);
	assert_false(s->claimed);
	assert_true(s->e.stats.demoted > 0);
	sim_remove(s);
}

/* A state directory that takes no more bytes: told once, and moves go on. */
static void a_full_state_directory_costs_no_moves(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	struct rlimit before, none;

	(void)state;
	s->c.tuning.ralt.buffer_records = 1024;
	sim_open(s);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	none = before;
	none.rlim_cur = 512;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	sim_hotspot(s, 40000, 2048, 0.8, 0.5);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(times(s->log, "could not be written"), 1);
	assert_true(s->e.stats.demoted > 100);
	assert_true(s->v.fast_used < FAST);
	/* Room again: the heat is kept from now on. */
	sim_hotspot(s, 40000, 2048, 0.8, 0.5);
	assert_true(s->e.stats.retained > 0);
	sim_remove(s);
}

/*
 * A state directory that cannot be written at all, as on a read-only file system (the superuser may
 * write to any other).
 */
static void a_read_only_state_directory_costs_no_moves(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	s->c.directory = "/proc";
	sim_open(s);
	assert_non_null(strstr(s->log, "/proc/ralt: the heat store cannot be opened"));
	assert_non_null(strstr(s->log, "heat is kept in memory"));
	sim_hotspot(s, 80000, 2048, 0.8, 0.5);
	assert_int_equal(times(s->log, "/proc/wear cannot be written"), 1);
	assert_true(s->e.stats.demoted > 100);
	assert_true(s->v.fast_used < FAST);
	sim_remove(s);
}

/* The only clock is monotonic; should it jump all the same, limits hold and moves go on. */
static void a_clock_that_jumps_does_no_harm(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	const uint64_t day = 86400ull * 1000000000;
	uint64_t written;

	(void)state;
	for (int t = 0; t < 2; t++) {
		s->c.endurance[t].drive_writes_per_day = 1;
		s->c.budget[t].bytes_per_second = 4 << 20;
	}
	s->now_ns = 400 * day;
	sim_open(s);
	sim_hotspot(s, 20000, 2048, 0.8, 0.5);
	assert_true(s->e.stats.done > 0);
	s->now_ns += 3650 * day;
	written = s->e.stats.written_bytes[1];
	assert_int_equal(sim_tick(s), 0);
	/* Ten years save up no more than a day's writes, and one second's bandwidth. */
	assert_true(s->e.endurance[1].saved <= s->e.endurance[1].capacity * 1.001);
	sim_hotspot(s, 640, 2048, 0.8, 0.5);
	assert_true(s->e.stats.written_bytes[1] - written < 32 << 20);
	s->now_ns -= 3800 * day;
	sim_hotspot(s, 20000, 2048, 0.8, 0.5);
	written = s->e.stats.done;
	sim_hotspot(s, 20000, 2048, 0.8, 0.5);
	assert_true(s->e.stats.done > written);
	assert_int_equal(s->e.stats.failed, 0);
	assert_true(s->e.endurance[1].saved > 0);
	sim_remove(s);
}

/* Overwrites the middle of every file of the heat store. */
static void damage(const char *dir)
{
	char path[400];
	DIR *d;
	struct dirent *entry;

	snprintf(path, sizeof(path), "%s/ralt", dir);
	d = opendir(path);
	assert_non_null(d);
	while ((entry = readdir(d))) {
		FILE *f;

		if (!strstr(entry->d_name, ".ralt"))
			continue;
		snprintf(path, sizeof(path), "%s/ralt/%.200s", dir, entry->d_name);
		f = fopen(path, "r+");
		assert_non_null(f);
		fseek(f, 40, SEEK_SET);
		for (int i = 0; i < 40000; i++)
			fputc(0xa5, f);
		fclose(f);
	}
	closedir(d);
}

static void damaged_heat_is_set_aside(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	sim_open(s);
	sim_hotspot(s, 30000, 2048, 0.95, 0);
	engine_close(&s->e);
	damage(s->dir);
	sim_open(s);
	assert_non_null(strstr(s->log, "is damaged and was set aside"));
	sim_hotspot(s, 30000, 2048, 0.95, 0.2);
	assert_true(s->v.promoted > 0);
	sim_remove(s);
}

static void a_damaged_account_is_empty(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	char path[128];
	FILE *f;

	(void)state;
	s->c.endurance[1].drive_writes_per_day = 1;
	snprintf(path, sizeof(path), "%s/wear", s->dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs("0 1e30\n1 rubbish\n", f);
	fclose(f);
	sim_open(s);
	assert_non_null(strstr(s->log, "wear cannot be used"));
	assert_near(s->e.endurance[1].saved, 0, 0);
	sim_remove(s);
}

static void a_second_loop_is_refused(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	struct engine *other = calloc(1, sizeof(*other));

	(void)state;
	sim_open(s);
	assert_int_equal(engine_open(other, &s->c, &s->port, s->now_ns), -EBUSY);
	assert_non_null(strstr(s->log, "another process works on this volume"));
	free(other);
	sim_remove(s);
}

static void evaluation_orders_nothing(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	char line[400];

	(void)state;
	s->c.evaluate = true;
	sim_open(s);
	sim_hotspot(s, 30000, 2048, 0.8, 0.5);
	assert_int_equal(s->submits, 0);
	assert_int_equal(s->v.promoted + s->v.demoted, 0);
	assert_true(s->e.decisions > 0);
	explain_text(&s->e.decision[0], line, sizeof(line));
	assert_non_null(strstr(line, "region"));
	assert_false(s->claimed);
	sim_remove(s);
}

/* Every heat source and every rule drives the loop; each makes room, and says what it has chosen by. */
static void every_source_and_rule_works(void **state)
{
	static const char *const by[CHOOSE_RULES] = {
		" = benefit ", " = benefit ", "; at random, ", ", oldest of ", " = cold / all of the region, ",
	};

	(void)state;
	for (int heat = 0; heat < HEAT_KINDS; heat++)
		for (int rule = 0; rule < CHOOSE_RULES; rule++) {
			struct sim *s = sim_create(BLOCKS / 4, FAST / 4);

			s->c.heat = (enum heat_kind)heat;
			s->c.rule = (enum choose_rule)rule;
			sim_open(s);
			sim_hotspot(s, 16000, 512, 0.8, 0.5);
			assert_true(s->v.fast_used < FAST / 4);
			assert_true(s->e.stats.demoted > 100);
			for (int r = 0; r < CHOOSE_RULES; r++)
				if (strcmp(by[r], by[rule]) && !(rule == CHOOSE_HOTRAP && r == CHOOSE_OLDEST))
					assert_int_equal(sim_explained(s, WHY_ROOM, by[r]), 0);
			assert_true(sim_explained(s, WHY_ROOM, by[rule]) > 0);
			sim_remove(s);
		}
}

/* So many ticks, and no more use. */
static void quiet(struct sim *s, int ticks)
{
	while (ticks--)
		assert_int_equal(sim_tick(s), 0);
}

static struct sim *low_marks(void)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	s->c.tuning.watermark.high = 0.4;
	s->c.tuning.watermark.low = 0.3;
	s->c.tuning.ralt.buffer_records = 256;
	s->c.tuning.governor.epoch_ops = 1000000000;	/* what is tested goes before its verdict */
	return s;
}

static void use_what_is_hot(struct sim *s, int accesses)
{
	for (int i = 0; i < accesses; i++) {
		sim_access(s, prng_below(&s->prng, FAST / 2), i % 2);
		if (i % 64 == 63)
			assert_int_equal(sim_tick(s), 0);
	}
	quiet(s, 600);
}

/* More is hot than may stay: new blocks find room all the same, it is told, and hot blocks do not go to and fro. */
static void room_is_made_where_all_is_hot(void **state)
{
	struct sim *s = low_marks();
	uint64_t demoted;
	char line[400];
	bool told = false;

	(void)state;
	sim_open(s);
	use_what_is_hot(s, 100000);
	assert_true(engine_hot_set(&s->e, 0, FAST / 2) > 0.45 * FAST);
	assert_true((double)s->v.fast_used < 0.41 * FAST);
	assert_true(s->e.stats.pressed > 0);
	assert_int_equal(times(s->log, "the fast tier is full of hot blocks"), 1);
	for (uint64_t i = 0; i < ENGINE_DECISIONS && i < s->e.decisions; i++) {
		explain_text(&s->e.decision[i], line, sizeof(line));
		told |= strstr(line, "hot or not") != NULL;
	}
	assert_true(told);
	demoted = s->v.demoted;
	quiet(s, 600);
	assert_int_equal(s->v.demoted, demoted);
	sim_remove(s);
}

/* The same, but that more such ticks in a row are asked for than there are. */
static void vain_ticks_change_the_outcome(void **state)
{
	struct sim *s = low_marks();

	(void)state;
	s->c.tuning.watermark.vain_ticks = 100000;
	sim_open(s);
	use_what_is_hot(s, 30000);
	assert_int_equal(s->e.stats.pressed, 0);
	assert_true((double)s->v.fast_used > 0.45 * FAST);
	sim_remove(s);
}

/* Told when it begins and when it ends, however often it is tried meanwhile. */
static void a_rate_that_cannot_be_set_is_told_once(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	s->port.sense = &s->sense;
	sim_open(s);
	quiet(s, 10);
	assert_int_equal(times(s->log, "how many accesses the kernel tells of"), 0);
	s->sense.set_error = -EACCES;
	quiet(s, 10);
	assert_int_equal(times(s->log, "how many accesses the kernel tells of cannot be set (Permission denied)"), 1);
	s->sense.set_error = 0;
	quiet(s, 10);
	assert_int_equal(times(s->log, "how many accesses the kernel tells of can be set again"), 1);
	assert_int_equal(times(s->log, "how many accesses the kernel tells of"), 2);
	sim_remove(s);
}

/* What is filled by score leaves room below the low mark, whatever `fill` says. */
static void filling_stays_below_the_marks(void **state)
{
	struct sim *s = low_marks();

	(void)state;
	s->c.fill = 0.9;
	sim_open(s);
	sim_hotspot(s, 60000, 1024, 0.8, 0.5);
	quiet(s, 100);
	assert_true((double)s->v.fast_used < 0.4 * FAST);
	assert_int_equal(s->e.stats.pressed, 0);
	sim_remove(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(room_is_made_below_what_the_kernel_keeps_back),
		cmocka_unit_test(a_tier_with_a_large_reserve_may_be_crowded),
		cmocka_unit_test(room_is_made_and_hot_blocks_stay),
		cmocka_unit_test(hot_blocks_go_down_without_retention),
		cmocka_unit_test(a_blind_loop_goes_by_age),
		cmocka_unit_test(heat_survives_a_restart),
		cmocka_unit_test(an_unusable_heat_store_falls_back_to_memory),
		cmocka_unit_test(a_clock_that_stands_in_is_small),
		cmocka_unit_test(a_tebibyte_takes_16_mebibytes),
		cmocka_unit_test(a_clock_tracks_what_may_fit),
		cmocka_unit_test(retuning_takes_effect),
		cmocka_unit_test(a_full_state_directory_costs_no_moves),
		cmocka_unit_test(a_read_only_state_directory_costs_no_moves),
		cmocka_unit_test(a_clock_that_jumps_does_no_harm),
		cmocka_unit_test(each_setting_changes_the_outcome),
		cmocka_unit_test(damaged_heat_is_set_aside),
		cmocka_unit_test(a_damaged_account_is_empty),
		cmocka_unit_test(a_second_loop_is_refused),
		cmocka_unit_test(evaluation_orders_nothing),
		cmocka_unit_test(every_source_and_rule_works),
		cmocka_unit_test(room_is_made_where_all_is_hot),
		cmocka_unit_test(vain_ticks_change_the_outcome),
		cmocka_unit_test(filling_stays_below_the_marks),
		cmocka_unit_test(a_rate_that_cannot_be_set_is_told_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
