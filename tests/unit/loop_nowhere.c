// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The daemon's loop on a simulated volume: heat of what was discarded and not heard of, or heard of and not written down
 * when the daemon was killed, is not the heat of what is written there next.
 *
 *	killed right after it heard	a commit of RALT's would have come within the second
 *	not there at all		whole regions, and pieces of regions, also many
 *	events lost while it ran
 *	what still has a place		keeps its heat in all of these
 *	a region that cannot be read	does not keep the others from it, nor does heat that cannot be
 *	summaries that are behind	are not what decides
 */
#include <fcntl.h>
#include <sys/wait.h>

#include "ralt/file_store.h"
#include "sim_lib.h"

#define BLOCKS	(64 * 1024)
#define FAST	(8 * 1024)
#define LATE	(48 * 1024 + 24)

/* Reads @nr blocks, @stride apart, until they are hot. */
static void heat_up(struct sim *s, uint64_t nr, uint64_t stride)
{
	for (uint64_t i = 0; i < nr * 40; i++) {
		sim_access(s, i % nr * stride, false);
		if (i % 64 == 63)
			assert_int_equal(sim_tick(s), 0);
	}
	assert_int_equal(sim_tick(s), 0);
	assert_int_equal(ralt_flush(s->e.warmth.ralt), 0);
}

static uint64_t hot(const struct sim *s, uint64_t first, uint64_t nr, uint64_t stride)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < nr; i++)
		n += warmth_hot(&s->e.warmth, first + i * stride);
	return n;
}

static uint64_t in_hot_set(struct sim *s, uint64_t first, uint64_t nr, uint64_t stride)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < nr; i++)
		n += warmth_hot_set(&s->e.warmth, first + i * stride, 1);
	return n;
}

static uint32_t forgotten_ranges(const struct sim *s)
{
	struct ralt_stats now;

	ralt_stats(s->e.warmth.ralt, &now);
	return now.forgotten_ranges;
}

static void ticks(struct sim *s, int nr)
{
	while (nr--)
		assert_int_equal(sim_tick(s), 0);
}

static void discard(struct sim *s, uint64_t block, uint64_t nr)
{
	s->heard[s->nr_heard++] = (struct port_access){ .block = block, .count = nr, .op = PORT_DISCARD };
}

/* The first discard is written down at once, the second within a second, which it does not live. */
static void lives_until_it_has_heard(struct sim *s)
{
	sim_open(s);
	heat_up(s, 1024, 1);
	if (hot(s, 0, 1024, 1) != 1024)
		_exit(1);
	discard(s, 0, 128);
	ticks(s, 1);
	discard(s, 256, 256);
	ticks(s, 1);
	_exit(s->e.nr_cold == 1 ? 0 : 2);
}

static void killed_before_it_is_written_down(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	pid_t child = fork();
	int status;

	(void)state;
	if (!child)
		lives_until_it_has_heard(s);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	sim_unmap(s, 0, 128);
	sim_unmap(s, 256, 256);
	sim_open(s);
	assert_int_equal(hot(s, 256, 256, 1), 256);
	ticks(s, 20);
	assert_int_equal(hot(s, 0, 128, 1), 0);
	assert_int_equal(hot(s, 256, 256, 1), 0);
	assert_int_equal(hot(s, 128, 128, 1), 128);
	assert_int_equal(hot(s, 512, 512, 1), 512);
	/* Written once is not hot. */
	for (uint64_t b = 256; b < 512; b++)
		sim_access(s, b, true);
	ticks(s, 1);
	assert_int_equal(hot(s, 256, 256, 1), 0);
	sim_remove(s);
}

/* And what was forgotten is so after the next start, too. */
static void discards_while_it_is_down_take_the_heat_away(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	sim_open(s);
	heat_up(s, 2048, 8);
	assert_int_equal(hot(s, 0, 2048, 8), 2048);
	engine_close(&s->e);
	sim_unmap(s, 2048, 2048);		/* two regions, whole */
	sim_unmap(s, 5000, 200);
	sim_unmap(s, 8191, 2);			/* the first block of a region */
	for (int starts = 0; starts < 2; starts++) {
		sim_open(s);
		ticks(s, 20);
		assert_int_equal(hot(s, 2048, 256, 8), 0);
		assert_int_equal(hot(s, 5000, 25, 8), 0);
		assert_int_equal(hot(s, 8192, 1, 8), 0);
		assert_int_equal(hot(s, 0, 2048, 8), 2048 - 256 - 25 - 1);
		assert_int_equal(forgotten_ranges(s), 3);
		if (!starts)
			engine_close(&s->e);
	}
	sim_remove(s);
}

/* More single blocks than RALT's list has room for: it takes a while, and no tick is long. */
static void strewn_discards_are_all_forgotten(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	uint32_t most = 0;

	(void)state;
	s->c.tuning.ralt.forget_ranges = 256;
	sim_open(s);
	heat_up(s, 2048, 16);
	assert_int_equal(hot(s, 0, 2048, 16), 2048);
	engine_close(&s->e);
	for (uint64_t b = 0; b < 2048 * 16; b += 32)
		sim_unmap(s, b, 1);
	sim_open(s);
	for (int i = 0; i < 3000 && (s->e.nowhere.going || s->e.nr_cold); i++) {
		uint32_t before = s->regions_asked;

		ticks(s, 1);
		assert_true(s->regions_asked <= before + 8);
		most = s->e.nr_cold > most ? s->e.nr_cold : most;
	}
	assert_int_equal(s->e.nr_cold, 0);
	assert_true(most > 256);
	assert_int_equal(s->e.stats.heat_left, 0);
	assert_int_equal(hot(s, 0, 1024, 32), 0);
	assert_int_equal(hot(s, 16, 1024, 32), 1024);
	sim_remove(s);
}

/* ... those that are heard meanwhile find room to wait. */
static void a_list_that_is_full_lets_others_in(void **state)
{
	struct sim *s = sim_create(BLOCKS * 2, BLOCKS * 2);

	(void)state;
	s->c.tuning.ralt.forget_ranges = 16;
	sim_open(s);
	for (uint64_t i = 0; i < 2 * BLOCKS / 4; i++) {
		sim_access(s, i % (BLOCKS / 4) * 8, false);
		if (i % 128 == 127)
			ticks(s, 1);
	}
	assert_int_equal(hot(s, 0, BLOCKS / 4, 8), BLOCKS / 4);
	engine_close(&s->e);
	for (uint64_t b = 0; b < BLOCKS * 2; b += 2)
		sim_unmap(s, b, 1);
	sim_open(s);
	for (int i = 0; i < 40; i++) {
		ticks(s, 1);
		assert_true(s->e.nr_cold < ENGINE_COLD / 2);
	}
	assert_true(s->e.nr_cold > 1000);
	sim_remove(s);
}

/* Single blocks that were used once: RALT's list has room for what was more than that, and no merge has to come for it. */
static void a_list_that_fills_is_for_what_is_hot(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	uint32_t most = 0;

	(void)state;
	s->c.tuning.ralt.forget_ranges = 1024;
	sim_open(s);
	heat_up(s, 64, 1024);
	for (uint64_t b = 8; b < BLOCKS; b += 16) {
		sim_access(s, b, false);
		if (b % 1024 == 1016)
			ticks(s, 1);
	}
	assert_int_equal(hot(s, 0, 64, 1024), 64);
	/* Twice, with what was written in between: no filter knows that these are hot. */
	assert_int_equal(ralt_flush(s->e.warmth.ralt), 0);
	for (uint64_t b = LATE; b < BLOCKS; b += 1024)
		sim_access(s, b, false);
	ticks(s, 1);
	engine_close(&s->e);
	for (uint64_t b = 0; b < BLOCKS; b += 2)
		sim_unmap(s, b, 1);
	sim_open(s);
	assert_int_equal(hot(s, LATE, 16, 1024), 0);
	assert_int_equal(in_hot_set(s, LATE, 16, 1024), 16);
	for (int i = 0; i < 200; i++) {
		ticks(s, 1);
		most = forgotten_ranges(s) > most ? forgotten_ranges(s) : most;
	}
	assert_false(s->e.nowhere.going);
	assert_int_equal(s->e.nr_cold, 0);
	assert_int_equal(hot(s, 0, 64, 1024), 0);
	assert_int_equal(in_hot_set(s, LATE, 16, 1024), 0);
	assert_in_range(most, 256, 256 + 64 + 16);
	sim_remove(s);
}

/* Regions that are full but for a block, and have no heat: neither they nor their heat is asked for, one by one. */
static void regions_without_heat_cost_nothing(void **state)
{
	struct sim *s = sim_create(BLOCKS * 16, FAST);

	(void)state;
	sim_open(s);
	heat_up(s, 1024, 1);
	engine_close(&s->e);
	for (uint64_t b = 500; b < BLOCKS * 16; b += REGION_BLOCKS)
		sim_unmap(s, b, 1);
	sim_open(s);
	s->regions_asked = 0;
	ticks(s, 3);
	assert_false(s->e.nowhere.going);
	assert_int_equal(s->regions_asked, 1);
	assert_int_equal(hot(s, 0, 1024, 1), 1023);
	sim_remove(s);
}

/* Nor is what was forgotten long ago, and no merge has dropped yet, gone through in one tick. */
static void what_is_dead_already_takes_no_long_tick(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	sim_open(s);
	for (uint64_t b = 0; b < BLOCKS; b += 4) {
		sim_access(s, b, false);
		if (b % 1024 == 1020)
			ticks(s, 1);
	}
	assert_int_equal(ralt_flush(s->e.warmth.ralt), 0);
	discard(s, 0, BLOCKS);
	ticks(s, 1);
	engine_close(&s->e);
	sim_unmap(s, 0, BLOCKS);
	sim_open(s);
	ticks(s, 1);
	assert_true(s->e.nowhere.going);
	assert_in_range(s->e.nowhere.next, 1, BLOCKS * 3 / 4);
	ticks(s, 2);
	assert_false(s->e.nowhere.going);
	assert_int_equal(s->e.nr_cold, 0);
	sim_remove(s);
}

/* ... and begins where the region does, not where the heat does, or each region that it spans would take one. */
static void a_large_discard_takes_one_range(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	sim_open(s);
	heat_up(s, 1024, 5);
	engine_close(&s->e);
	sim_unmap(s, 0, 5120);
	sim_open(s);
	ticks(s, 20);
	assert_int_equal(hot(s, 0, 1024, 5), 0);
	assert_int_equal(forgotten_ranges(s), 1);
	sim_remove(s);
}

/* Summaries are some seconds old, and the book goes round them in some more: what was discarded just before may look full. */
static void what_summaries_do_not_know_yet_is_found_later(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	s->port.summaries_per_tick = 2;
	sim_open(s);
	heat_up(s, 1024, 1);
	engine_close(&s->e);
	s->uncounted = true;
	sim_unmap(s, 0, 512);
	sim_open(s);
	ticks(s, 97);			/* of the book three turns, and once more what it begins with */
	assert_int_equal(hot(s, 0, 1024, 1), 1024);
	s->uncounted = false;
	ticks(s, 100);
	assert_int_equal(hot(s, 0, 512, 1), 0);
	assert_int_equal(hot(s, 512, 512, 1), 512);
	sim_remove(s);
}

static void lost_events_begin_another_round(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	s->port.sense = &s->sense;
	sim_open(s);
	heat_up(s, 1024, 1);
	ticks(s, 100);
	assert_false(s->e.nowhere.going);
	sim_unmap(s, 0, 512);
	ticks(s, 100);
	assert_int_equal(hot(s, 0, 1024, 1), 1024);	/* it cannot know */
	s->sense.lost++;
	ticks(s, 100);
	assert_int_equal(hot(s, 0, 1024, 1), 1024);	/* not with each loss */
	s->now_ns += 600000000000ull;
	ticks(s, 20);
	assert_int_equal(hot(s, 0, 512, 1), 0);
	assert_int_equal(hot(s, 512, 512, 1), 512);
	assert_false(s->e.nowhere.going);
	s->now_ns += 600000000000ull;
	ticks(s, 1);
	assert_false(s->e.nowhere.going);
	sim_remove(s);
}

static void a_region_that_cannot_be_read_is_left(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	sim_open(s);
	heat_up(s, 1024, 4);
	engine_close(&s->e);
	sim_unmap(s, 0, 4096);
	s->unreadable = 2;
	sim_open(s);
	ticks(s, 20);
	assert_int_equal(hot(s, 0, 1024, 4), 256);
	assert_int_equal(hot(s, 2048, 256, 4), 256);
	assert_false(s->e.nowhere.going);
	sim_remove(s);
}

static void heat_that_cannot_be_read_is_left(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	int folder = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_true(folder >= 0);
	sim_open(s);
	heat_up(s, 1024, 4);
	engine_close(&s->e);
	sim_unmap(s, 0, 4096);
	sim_open(s);
	for (uint32_t i = 0; i < s->e.warmth.ralt->run_count; i++)
		assert_true(dup2(folder, s->e.warmth.ralt->runs[i].fd) >= 0);
	close(folder);
	ticks(s, 5);
	assert_true(s->e.nowhere.going);
	ticks(s, 85);
	assert_false(s->e.nowhere.going);
	sim_remove(s);
}

/* ... but where the volume is suspended the round waits until it no longer is. */
static void what_is_suspended_is_asked_for_again(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	sim_open(s);
	heat_up(s, 1024, 4);
	engine_close(&s->e);
	sim_unmap(s, 0, 4096);
	sim_open(s);
	s->suspended = true;
	ticks(s, 300);
	assert_int_equal(hot(s, 0, 1024, 4), 1024);
	s->suspended = false;
	ticks(s, 20);
	assert_int_equal(hot(s, 0, 1024, 4), 0);
	assert_false(s->e.nowhere.going);
	sim_remove(s);
}

/* A file's blocks, which have inherited heat but not been written yet. */
static void what_was_placed_a_moment_ago_is_left_alone(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	sim_open(s);
	heat_up(s, 1024, 1);
	engine_close(&s->e);
	sim_unmap(s, 0, 512);
	sim_open(s);
	engine_placed(&s->e, 100, 10, true);
	ticks(s, 20);
	assert_int_equal(hot(s, 0, 512, 1), 10);
	assert_int_equal(hot(s, 100, 10, 1), 10);
	sim_remove(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_before_it_is_written_down),
		cmocka_unit_test(discards_while_it_is_down_take_the_heat_away),
		cmocka_unit_test(strewn_discards_are_all_forgotten),
		cmocka_unit_test(a_list_that_is_full_lets_others_in),
		cmocka_unit_test(a_list_that_fills_is_for_what_is_hot),
		cmocka_unit_test(regions_without_heat_cost_nothing),
		cmocka_unit_test(a_large_discard_takes_one_range),
		cmocka_unit_test(what_is_dead_already_takes_no_long_tick),
		cmocka_unit_test(what_summaries_do_not_know_yet_is_found_later),
		cmocka_unit_test(lost_events_begin_another_round),
		cmocka_unit_test(a_region_that_cannot_be_read_is_left),
		cmocka_unit_test(heat_that_cannot_be_read_is_left),
		cmocka_unit_test(what_is_suspended_is_asked_for_again),
		cmocka_unit_test(what_was_placed_a_moment_ago_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
