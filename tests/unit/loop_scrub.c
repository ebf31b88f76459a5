// SPDX-License-Identifier: GPL-2.0-or-later
/* The daemon scrubs by itself: when, how far, over restarts, and what it says of what it finds. */
#include "sim_lib.h"

#define BLOCKS	(64 * 1024)
#define REGIONS	(BLOCKS / REGION_BLOCKS)
#define SHELVES	(BLOCKS / TERRACE_CHUNK_BLOCKS)
#define DAY	86400u

static struct sim *create(uint32_t days)
{
	struct sim *s = sim_create(BLOCKS, 8 * 1024);

	s->c.scrub_days = days;
	return s;
}

static void ticks(struct sim *s, uint32_t n)
{
	while (n--)
		assert_int_equal(sim_tick(s), 0);
}

static uint32_t regions_told, shelves_told;

static void count_orders(void *ctx, enum engine_level level, const char *line)
{
	sim_log(ctx, level, line);
	regions_told += level == ENGINE_DEBUG && !strncmp(line, "scrub region ", 13);
	shelves_told += level == ENGINE_DEBUG && !strncmp(line, "scrub shelf ", 12);
}

static bool explained(const struct sim *s, const char *text)
{
	char line[400];

	scrub_text(&s->e, line, sizeof(line));
	return strstr(line, text);
}

static void a_pass_comes_every_few_days(void **state)
{
	struct sim *s = create(7);

	(void)state;
	s->c.debug = true;
	s->c.log = count_orders;
	sim_open(s);
	s->e.wall_s = 1000 * DAY;
	ticks(s, 100);
	s->e.wall_s += 7 * DAY - 1;
	ticks(s, 100);
	assert_int_equal(s->scrubs, 0);
	assert_true(explained(s, "no scrub: 7.0 of 7 days"));
	s->e.wall_s++;
	ticks(s, 20);
	assert_true(s->scrubs > 0 && s->scrubs < REGIONS);
	assert_true(explained(s, ": pass 1, one is due every 7 days (scrub_days); under way"));
	ticks(s, 80);
	/* each order is in the log */
	assert_int_equal(regions_told, REGIONS);
	assert_int_equal(shelves_told, SHELVES);
	assert_int_equal(s->scrubs, REGIONS);
	assert_int_equal(s->table_scrubs, SHELVES);
	assert_int_equal(s->most_scrubs, 1);
	assert_int_equal(s->e.scrub.regions, REGIONS);
	assert_int_equal(s->e.scrub.tables, SHELVES);
	assert_int_equal(s->e.scrub.read_bytes, (REGIONS + SHELVES) * 4096ull);
	assert_int_equal(s->e.scrub.passes, 1);
	assert_false(s->e.scrub.going);
	assert_int_equal(times(s->log, "scrub: a pass begins"), 1);
	assert_int_equal(times(s->log, "scrub: the pass has ended: 64 regions and 4 tables"), 1);
	s->e.wall_s += 7 * DAY;
	ticks(s, 100);
	assert_int_equal(s->scrubs, 2 * REGIONS);
	assert_int_equal(s->e.stats.failed, 0);
	sim_remove(s);
}

static void none_if_off_or_evaluating(void **state)
{
	(void)state;
	for (int turn = 0; turn < 3; turn++) {
		struct sim *s = create(turn ? 1 : 0);

		s->c.evaluate = turn == 1;
		sim_open(s);
		s->e.wall_s = turn == 2 ? 0 : 1000 * DAY;
		ticks(s, 10);
		s->e.wall_s *= 2;
		ticks(s, 100);
		assert_int_equal(s->scrubs, 0);
		sim_remove(s);
	}
}

/* Neither the day nor the place is lost. */
static void a_restart_goes_on(void **state)
{
	struct sim *s = create(2);
	uint32_t before;

	(void)state;
	sim_open(s);
	s->e.wall_s = 1000 * DAY;
	ticks(s, 10);
	engine_close(&s->e);
	sim_open(s);
	s->e.wall_s = 1002 * DAY - 1;
	ticks(s, 10);
	assert_int_equal(s->scrubs, 0);
	s->e.wall_s = 1002 * DAY;
	ticks(s, 20);
	before = s->scrubs;
	assert_in_range(before, 5, REGIONS - 5);
	engine_close(&s->e);
	s->queued = 0;		/* what was under way has gone with it */
	sim_open(s);
	s->e.wall_s = 1002 * DAY + 10;
	ticks(s, 150);
	assert_in_range(s->scrubs, REGIONS, REGIONS + 1);
	assert_int_equal(s->table_scrubs, SHELVES);
	assert_int_equal(s->e.scrub.regions, REGIONS);
	assert_int_equal(s->e.scrub.passes, 1);
	sim_remove(s);
}

static void write_state(const struct sim *s, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/scrub", s->dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* A damaged file, a clock that was ahead: as on the first day. */
static void a_bad_file_is_as_none(void **state)
{
	static const char *const text[] = { "", "x", "1 2 3", "1 0 0 1 99 0\n0 0 0 0 0 0\n", "1 0 0 1 0 0\n0 0 0 0 0\n",
					    "999999999999 0 0 0 0 0\n0 0 0 0 0 0\n", "86400000 0 0 1 0 99999\n0 0 0 0 0 0\n" };

	(void)state;
	for (uint32_t k = 0; k < sizeof(text) / sizeof(text[0]); k++) {
		struct sim *s = create(5);

		write_state(s, text[k]);
		sim_open(s);
		s->e.wall_s = 1000 * DAY;
		ticks(s, 50);
		assert_int_equal(s->scrubs, 0);
		s->e.wall_s = 1005 * DAY;
		ticks(s, 100);
		assert_int_equal(s->scrubs, REGIONS);
		sim_remove(s);
	}
}

/* Each finding is told and counted; one that a suspend ended comes again. */
static void what_is_found_is_told(void **state)
{
	struct sim *s = create(1);

	(void)state;
	sim_open(s);
	s->e.wall_s = 1000 * DAY;
	ticks(s, 10);
	s->bad_region = 5;
	s->damaged_region = 6;
	s->busy_region = 7;
	s->e.wall_s += DAY;
	ticks(s, 200);
	assert_int_equal(s->scrubs, REGIONS + 1);
	assert_int_equal(s->e.scrub.regions, REGIONS);
	assert_int_equal(s->e.scrub.unreadable, 3);
	assert_int_equal(s->e.scrub.damaged, 1);
	assert_int_equal(s->e.scrub.bad_tables, 0);
	assert_int_equal(times(s->log, "scrub: region 5: 3 blocks cannot be read; the first is block 5121"), 1);
	assert_int_equal(times(s->log, "scrub: region 6: a pack is damaged"), 1);
	assert_int_equal(times(s->log, "3 blocks cannot be read, 1 regions have damaged packs"), 1);
	sim_remove(s);
}

/* A drive that begins to fail is told once, and again after a while without errors. */
static void a_tier_that_begins_to_fail_is_told(void **state)
{
	struct sim *s = create(0);

	(void)state;
	sim_open(s);
	ticks(s, 3);
	for (int k = 0; k < 20; k++) {
		s->io_errors++;
		ticks(s, 20);
	}
	assert_int_equal(times(s->log, "tier 1 (hdd) begins to fail: its drive has failed 1 requests"), 1);
	assert_int_equal(times(s->log, "begins to fail"), 1);
	ticks(s, 310);
	s->io_errors++;
	ticks(s, 2);
	assert_int_equal(times(s->log, "begins to fail"), 2);
	sim_remove(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pass_comes_every_few_days),
		cmocka_unit_test(none_if_off_or_evaluating),
		cmocka_unit_test(a_restart_goes_on),
		cmocka_unit_test(a_bad_file_is_as_none),
		cmocka_unit_test(what_is_found_is_told),
		cmocka_unit_test(a_tier_that_begins_to_fail_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
