// SPDX-License-Identifier: GPL-2.0-or-later
/* What is said of a table's blocks when it is known where they lie: its end stays fast, nothing else of it, and none is marked dead. */
#include "sim_lib.h"

#include "act/device.h"
#include "follow.h"
#include "sense/watch.h"

#define BLOCKS	(64 * 1024)
#define MB	(1024 * 1024ull)

/* The kernel and the files, as far as they are needed here. */
static struct watch_tell tell;

int watch_open(unsigned int major, unsigned int minor, const int *ignored, uint32_t profiles, const struct watch_tell *t,
	       struct watch **out, char *why, size_t bytes)
{
	(void)major;
	(void)minor;
	(void)ignored;
	(void)profiles;
	(void)why;
	(void)bytes;
	tell = *t;
	*out = (struct watch *)&tell;
	return 0;
}

void watch_profiles(struct watch *w, uint32_t profiles)
{
	(void)w;
	(void)profiles;
}

void watch_mark(struct watch *w, bool yes)
{
	(void)w;
	(void)yes;
}

void watch_tick(struct watch *w, bool look, bool logs)
{
	(void)w;
	(void)look;
	(void)logs;
}

int watch_fd(const struct watch *w)
{
	(void)w;
	return -1;
}

const struct watch_counts *watch_counts(struct watch *w)
{
	static const struct watch_counts none;

	(void)w;
	return &none;
}

void watch_close(struct watch *w)
{
	(void)w;
}

static bool no_room;	/* for ranges that are cleared in part, or of a hint */

int device_marker(struct port *port)
{
	(void)port;
	return -1;
}

int device_mark(int fd, uint32_t what, uint64_t block, uint64_t nr)
{
	(void)fd;
	(void)block;
	(void)nr;
	return no_room && what == TERRACE_RANGE_CLEAR ? -ENOSPC : 0;
}

int device_range(struct port *port, uint32_t what, uint64_t block, uint64_t nr)
{
	struct sim *sim = sim_of(port);

	if (what == TERRACE_RANGE_DEAD)
		tails_add(&sim->marks, block, nr, UINT64_MAX);
	else if (no_room && nr < BLOCKS)
		return -ENOSPC;
	else if (what == TERRACE_RANGE_CLEAR)
		tails_cut(&sim->marks, block, nr);
	return 0;
}

void device_ignore(struct port *port, uint32_t thread, bool yes)
{
	(void)port;
	(void)thread;
	(void)yes;
}

static struct sim *s;
static struct follow *follow;
static struct config config;

static int setup(void **state)
{
	(void)state;
	config_defaults(&config);
	config.policy.pin_tails = true;
	config.policy.tail_share = 1.0 / 16;
	s = sim_create(BLOCKS, BLOCKS / 8);
	s->c.pin_share = 0.5;
	sim_open(s);
	follow = follow_open("vol", &config.policy, &s->port, 253, 7);
	assert_non_null(follow);
	follow_tick(follow, &s->e);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	follow_close(follow);
	sim_remove(s);
	return 0;
}

static void placed(uint64_t size, enum file_pins pins, const struct extent *extents, uint32_t nr)
{
	const struct file file = { .id = { .inode = 1, .generation = 1, .dev = 7 }, .size = size, .kind = FILE_TABLE, .pins = pins };

	tell.placed(tell.ctx, &file, extents, nr);
}

/* Blocks [@first, @end) are kept, and no others. */
static void kept(uint64_t first, uint64_t end)
{
	for (uint64_t b = 0; b < BLOCKS; b++)
		assert_int_equal(tails_have(s->e.tails, b), b >= first && b < end);
	engine_unpin(&s->e, 0, BLOCKS);
}

/* 2 MiB in one piece, with as much again allocated ahead of its end. */
static void the_end_of_a_table_is_kept(void **state)
{
	const struct extent ahead = { .block = 1000, .nr = 1024 };

	(void)state;
	placed(2 * MB, FILE_PINS_END, &ahead, 1);
	kept(1000 + 512 - 32, 1000 + 512);
	/* its last block is not full */
	placed(2 * MB - 100, FILE_PINS_END, &ahead, 1);
	kept(1000 + 512 - 33, 1000 + 512);
}

/* Its pieces lie in another order than in the file: the end begins within one, and goes on in another. */
static void the_end_is_found_in_pieces(void **state)
{
	const struct extent piece[] = {
		{ .block = 9000, .nr = 400, .offset = 0 }, { .block = 5000, .nr = 92, .offset = 400 * 4096 },
		{ .block = 7000, .nr = 20, .offset = 492 * 4096 },
	};

	(void)state;
	placed(2 * MB, FILE_PINS_END, piece, 3);
	for (uint64_t b = 0; b < BLOCKS; b++)
		assert_int_equal(tails_have(s->e.tails, b), (b >= 5080 && b < 5092) || (b >= 7000 && b < 7020));
}

/* An index in a file of its own is kept as a whole; data that have theirs elsewhere not at all. */
static void all_or_nothing_is_kept_by_name(void **state)
{
	const struct extent whole = { .block = 1000, .nr = 512 };

	(void)state;
	placed(2 * MB, FILE_PINS_ALL, &whole, 1);
	kept(1000, 1512);
	placed(2 * MB, FILE_PINS_NOTHING, &whole, 1);
	kept(0, 0);
}

/* What is dead is let go, be it known for certain that all of it was its own or not. */
static void what_is_dead_is_let_go(void **state)
{
	const struct file_id id = { .inode = 1, .generation = 1, .dev = 7 };
	const struct extent whole = { .block = 1000, .nr = 512 };

	(void)state;
	for (int sure = 0; sure <= 1; sure++) {
		placed(2 * MB, FILE_PINS_END, &whole, 1);
		assert_int_equal(s->e.tails->blocks, 32);
		tell.dead(tell.ctx, "/", &id, &whole, 1, sure);
		kept(0, 0);
		/* dead for certain, or perhaps another's by now */
		assert_int_equal(tails_have(s->e.dead, 1000) && tails_have(s->e.dead, 1511), sure);
	}
}

/* Tables are written once, until they are dead; any other file may be written in place, and nothing is when compactions are not ignored. */
static void tables_are_written_once(void **state)
{
	const struct extent whole = { .block = 1000, .nr = 512 };
	struct file file = { .id = { .inode = 1, .generation = 1, .dev = 7 }, .size = 2 * MB, .kind = FILE_TABLE };

	(void)state;
	/* it was there before us */
	tell.placed(tell.ctx, &file, &whole, 1);
	assert_int_equal(s->e.once->nr, 0);
	file.thread = 1;
	for (int sure = 0; sure <= 1; sure++) {
		tell.placed(tell.ctx, &file, &whole, 1);
		assert_true(tails_have(s->e.once, 1000) && tails_have(s->e.once, 1511));
		tell.dead(tell.ctx, "/", &file.id, &whole, 1, sure);
		assert_int_equal(s->e.once->nr, 0);
	}
	tell.log(tell.ctx, &file.id, &whole, 1);
	assert_int_equal(s->e.once->blocks, 512);
	file.kind = FILE_UNKNOWN;
	tell.placed(tell.ctx, &file, &whole, 1);
	assert_int_equal(s->e.once->nr, 0);
	file.kind = FILE_TABLE;
	tell.placed(tell.ctx, &file, &whole, 1);
	tell.moved(tell.ctx, &whole, 1);
	assert_int_equal(s->e.once->nr, 0);
	tell.placed(tell.ctx, &file, &whole, 1);
	config.policy.ignore_compactions = false;
	follow_retune(follow, &config.policy);
	follow_tick(follow, &s->e);
	assert_int_equal(s->e.once->nr, 0);
	tell.placed(tell.ctx, &file, &whole, 1);
	assert_int_equal(s->e.once->nr, 0);
}

/*
 * Another table is written where one has died, before that is heard of: its writes did not lift a mark that was not there yet,
 * and are told of when it is. The mark goes when it is known where the table lies, with the rest of the dead one's left.
 */
static void no_mark_stays_on_what_lives(void **state)
{
	const struct file_id id = { .inode = 2, .generation = 1, .dev = 7 };
	const struct extent dead = { .block = 1000, .nr = 512 }, lives = { .block = 1100, .nr = 256 };

	(void)state;
	tell.dead(tell.ctx, "/", &id, &dead, 1, true);
	assert_true(tails_have(&s->marks, 1000) && tails_have(&s->marks, 1511));
	s->heard[s->nr_heard++] = (struct port_access){ .block = 1100, .count = 256, .op = PORT_WRITE };
	assert_int_equal(engine_tick(&s->e, s->now_ns += 1000000000), 0);
	assert_false(tails_have(s->e.banned, 1100));
	assert_true(tails_have(&s->marks, 1100));
	placed(MB, FILE_PINS_END, &lives, 1);
	assert_int_equal(s->marks.blocks, 256);
	assert_false(tails_have(&s->marks, 1100) || tails_have(&s->marks, 1355));
	assert_true(tails_have(s->e.banned, 1000) && tails_have(s->e.banned, 1400));
}

/*
 * The loop goes on without: nothing stays kept, marked, hinted, or left out of the heat; also where the module has no room to
 * split a range, to clear a part of it.
 */
static void what_was_told_is_taken_back_with_files_no(void **state)
{
	const struct file_id id = { .inode = 2, .generation = 1, .dev = 7 };
	const struct extent table = { .block = 1000, .nr = 512 }, dead = { .block = 2000, .nr = 512 }, log = { .block = 4000, .nr = 64 };
	const struct file file = { .id = { .inode = 1, .generation = 1, .dev = 7 }, .size = 2 * MB, .kind = FILE_TABLE,
				   .pins = FILE_PINS_END, .thread = 1 };

	(void)state;
	tell.placed(tell.ctx, &file, &table, 1);
	tell.dead(tell.ctx, "/", &id, &dead, 1, true);
	tell.log(tell.ctx, &id, &log, 1);
	assert_true(s->e.tails->nr && s->e.once->nr && s->e.dead->nr && s->e.banned->nr && s->e.hinted->nr && s->marks.nr);
	no_room = true;
	follow_leave(follow, &s->e);
	no_room = false;
	follow = NULL;
	assert_int_equal(s->e.tails->nr, 0);
	assert_int_equal(s->e.once->nr, 0);
	assert_int_equal(s->e.dead->nr, 0);
	assert_int_equal(s->e.banned->nr, 0);
	assert_int_equal(s->e.hinted->nr, 0);
	assert_int_equal(s->marks.nr, 0);
	assert_int_equal(engine_tick(&s->e, s->now_ns += 1000000000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_end_of_a_table_is_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(the_end_is_found_in_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(all_or_nothing_is_kept_by_name, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_dead_is_let_go, setup, teardown),
		cmocka_unit_test_setup_teardown(no_mark_stays_on_what_lives, setup, teardown),
		cmocka_unit_test_setup_teardown(tables_are_written_once, setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_told_is_taken_back_with_files_no, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
