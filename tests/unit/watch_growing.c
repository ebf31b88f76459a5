// SPDX-License-Identifier: GPL-2.0-or-later
/* Files that are being written: what is known of logs and of a compaction's outputs before they are complete. */
#include "watch_lib.h"

#include "sense/bequest.h"

/* ---- outputs ------------------------------------------------------------------------------- */

static uint32_t growing_told;

static void on_growing(void *ctx, const struct file_id *id, const struct bequest *b, bool bottom, const struct extent *extents,
		       uint32_t nr)
{
	(void)ctx;
	(void)b;
	(void)bottom;
	(void)extents;
	assert_int_equal(id->inode, 1);
	growing_told = nr;
}

static int busy;

static void on_busy(void *ctx, uint32_t thread, bool yes)
{
	(void)ctx;
	(void)thread;
	busy += yes ? 1 : -1;
}

/* RocksDB deletes what its compactions were writing when it is closed: nobody has asked for that as a whole. */
static void an_output_that_is_not_finished_is_trimmed(void **state)
{
	const struct watch_tell tell = { .dead = on_dead, .growing = on_growing };
	struct watch *w = watch_with(&tell);

	(void)state;
	pieces = 10;
	growing_told = 0;
	written(2);
	watch_tick(w, false, false);
	happens(TERRACE_FILE_CREATED, 0);
	happens_to(2, TERRACE_FILE_READ, 0);
	queue[queued - 1].to = TERRACE_FILE_STEP;
	happens(TERRACE_FILE_WRITTEN, 0);
	queue[queued - 1].to = TERRACE_FILE_STEP;
	watch_tick(w, false, false);
	assert_int_equal(growing_told, 10);
	dies(w);
	assert_int_equal(told.nr, 10);
	assert_int_equal(told.sure, 0);
}

/* A compaction goes on when nobody follows files any more: its thread is not ignored for ever. */
static void a_compaction_that_is_left_is_busy_no_longer(void **state)
{
	const struct watch_tell tell = { .dead = on_dead, .growing = on_growing, .busy = on_busy };
	struct watch *w = watch_with(&tell);

	(void)state;
	busy = 0;
	written(2);
	watch_tick(w, false, false);
	happens(TERRACE_FILE_CREATED, 0);
	happens_to(2, TERRACE_FILE_READ, 0);
	queue[queued - 1].to = TERRACE_FILE_STEP;
	happens(TERRACE_FILE_WRITTEN, 0);
	queue[queued - 1].to = TERRACE_FILE_STEP;
	happens_to(2, TERRACE_FILE_READ, 0);
	queue[queued - 1].from = TERRACE_FILE_STEP;
	queue[queued - 1].to = 2 * TERRACE_FILE_STEP;
	/* by the clock of who ticks it has just been at it */
	for (uint32_t i = 0; i < queued; i++)
		queue[i].nanoseconds = UINT64_MAX / 2;
	watch_tick(w, false, false);
	assert_int_equal(busy, 1);
	watch_close(w);
	assert_int_equal(busy, 0);
}

/* So it does with what it was writing from memory; whether the answer comes before the table is closed, before it dies, or after that. */
static void a_table_from_memory_that_is_not_kept_is_trimmed(void **state)
{
	const struct watch_tell tell = { .dead = on_dead, .growing = on_growing };

	(void)state;
	for (int late = 0; late <= 2; late++) {
		struct watch *w = watch_with(&tell);

		pieces = 10;
		happens(TERRACE_FILE_CREATED, 0);
		happens(TERRACE_FILE_WRITTEN, 0);
		queue[queued - 1].to = TERRACE_FILE_STEP;
		happens(TERRACE_FILE_WRITTEN, 0);
		queue[queued - 1].from = TERRACE_FILE_STEP;
		queue[queued - 1].to = 2 * TERRACE_FILE_STEP;
		held = late;
		watch_tick(w, false, false);
		assert_int_equal(asked, 1);
		gone = 1;
		happens(TERRACE_FILE_CLOSED, 0);
		if (late == 1) {
			held = false;
			watch_tick(w, false, false);
		}
		happens(TERRACE_FILE_UNLINKED, 0);
		happens(TERRACE_FILE_DIED, 0);
		watch_tick(w, false, false);
		held = false;
		watch_tick(w, false, false);
		assert_int_equal(told.deaths, 1 + (late == 2));
		assert_int_equal(told.nr, 10);
		assert_int_equal(told.sure, 0);
		watch_close(w);
	}
}

/* The answer about what it was when it grew does not stand for the one about what it was in the end. */
static void all_of_a_table_that_died_meanwhile_is_trimmed(void **state)
{
	const struct watch_tell tell = { .dead = on_dead };
	struct watch *w = watch_with(&tell);

	(void)state;
	held = true;
	pieces = 5;
	happens(TERRACE_FILE_CREATED, 0);
	happens(TERRACE_FILE_WRITTEN, 0);
	watch_tick(w, false, false);
	pieces = 10;
	happens(TERRACE_FILE_SYNCED, 0);
	happens(TERRACE_FILE_CLOSED, 0);
	watch_tick(w, false, false);
	assert_int_equal(asked, 2);
	happens(TERRACE_FILE_UNLINKED, 0);
	happens(TERRACE_FILE_DIED, 0);
	watch_tick(w, false, false);
	assert_int_equal(told.deaths, 1);
	held = false;
	watch_tick(w, false, false);
	assert_int_equal(told.deaths, 3);
	assert_int_equal(told.nr, 10);
	assert_int_equal(told.sure, 0);
	watch_close(w);
}

/* Who asks what grows looks at the devices below first: what lies there may be followed no longer. */
static void devices_below_may_change_while_it_grows(void **state)
{
	const struct watch_tell tell = { .dead = on_dead };

	(void)state;
	for (int late = 0; late <= 1; late++) {
		struct watch *w = watch_with(&tell);

		pieces = 10;
		happens(TERRACE_FILE_CREATED, 0);
		happens(TERRACE_FILE_WRITTEN, 0);
		held = late;
		drops = !late;
		watch_tick(w, false, false);
		assert_int_equal(asked, late);
		held = false;
		drops = late;
		watch_tick(w, false, false);
		assert_false(drops);
		/* the next one is asked as ever */
		happens_to(2, TERRACE_FILE_CREATED, 0);
		happens_to(2, TERRACE_FILE_WRITTEN, 0);
		watch_tick(w, false, false);
		assert_int_equal(asked, 1 + late);
		watch_close(w);
	}
}

/* What is known of it from when it grew is not all that is passed on: it may have been closed without a sync, and is asked when it is read. */
static void an_input_is_asked_as_a_whole(void **state)
{
	const struct watch_tell tell = { .dead = on_dead };
	struct watch *w = watch_with(&tell);

	(void)state;
	pieces = 5;
	happens(TERRACE_FILE_CREATED, 0);
	happens(TERRACE_FILE_WRITTEN, 0);
	watch_tick(w, false, false);
	assert_int_equal(asked, 1);
	happens(TERRACE_FILE_CLOSED, 0);
	watch_tick(w, false, false);
	assert_int_equal(asked, 1);
	pieces = 10;
	happens_to(2, TERRACE_FILE_CREATED, 0);
	happens_to(1, TERRACE_FILE_READ, 0);
	queue[queued - 1].to = TERRACE_FILE_STEP;
	watch_tick(w, false, false);
	assert_int_equal(asked, 2);
	dies(w);
	assert_int_equal(told.nr, 10);
	assert_int_equal(told.sure, 1);
}

/* What a compaction's outputs are told to have of its inputs. */
static struct {
	int times;
	uint32_t first, nr_outputs;
	bool more;
} given;

static void on_bequest(void *ctx, const struct bequest *b)
{
	(void)ctx;
	given.times++;
	given.first = b->first;
	given.nr_outputs = b->nr_outputs;
	given.more = b->more;
	/* where both lie: the inputs from before they died, the outputs that are new as well */
	assert_int_equal(b->nr_inputs, 2);
	for (uint32_t i = 0; i < b->nr_inputs; i++) {
		assert_int_equal(b->file[i].id.inode, 1 + i);
		assert_int_equal(b->file[i].nr, 10);
	}
	for (uint32_t i = 0; i < b->nr_outputs; i++) {
		assert_int_equal(b->file[b->nr_inputs + i].id.inode, 11 + i);
		assert_int_equal(b->file[b->nr_inputs + i].nr, 10);
	}
}

static void reads(uint64_t inode, uint64_t from, uint64_t to)
{
	happens_to(inode, TERRACE_FILE_READ, 0);
	queue[queued - 1].from = from;
	queue[queued - 1].to = to;
}

/* Half of each input goes to each of two outputs. */
static void writes_output(uint64_t inode, uint64_t from, uint64_t to)
{
	reads(1, from, to);
	reads(2, from, to);
	written(inode);
}

static void assert_given(int times, uint32_t first, uint32_t nr_outputs, bool more)
{
	assert_int_equal(given.times, times);
	assert_int_equal(given.first, first);
	assert_int_equal(given.nr_outputs, nr_outputs);
	assert_int_equal(given.more, more);
}

/*
 * An output is given its heat as soon as it has a place, while its job goes on, and not once more at the end: that is for the
 * last one, unless that had its place before.
 */
static void each_output_is_given_its_heat_once_and_at_once(void **state)
{
	const struct watch_tell tell = { .dead = on_dead, .bequest = on_bequest };

	(void)state;
	for (int in_time = 0; in_time <= 1; in_time++) {
		struct watch *w = watch_with(&tell);

		memset(&given, 0, sizeof(given));
		pieces = 10;
		written(1);
		written(2);
		watch_tick(w, false, false);
		assert_int_equal(given.times, 0);
		writes_output(11, 0, SIZE / 2);
		watch_tick(w, false, false);
		assert_given(1, 0, 1, true);
		writes_output(12, SIZE / 2, SIZE);
		if (in_time) {
			watch_tick(w, false, false);
			assert_given(2, 1, 2, true);
		}
		dies(w);
		assert_int_equal(told.sure, 1);
		assert_given(2 + in_time, 1 + in_time, 2, false);
	}
}

/* ---- logs ---------------------------------------------------------------------------------- */

static struct {
	int times;
	uint32_t nr;
} log_told;

static void on_log(void *ctx, const struct file_id *id, const struct extent *extents, uint32_t nr)
{
	(void)ctx;
	(void)extents;
	assert_int_equal(id->inode, 1);
	log_told.times++;
	log_told.nr = nr;
}

static void log_grows(struct watch *w, uint64_t to)
{
	happens_to(1, TERRACE_FILE_WRITTEN, 0);
	queue[queued - 1].to = to;
	watch_tick(w, false, false);
}

static struct watch *watch_a_log(void)
{
	const struct watch_tell tell = { .dead = on_dead, .log = on_log };
	struct watch *w = watch_with(&tell);

	memset(&log_told, 0, sizeof(log_told));
	pieces = 1024;		/* 4 MiB ahead */
	happens_to(1, TERRACE_FILE_CREATED, 0);
	strcpy(queue[queued - 1].name, "000009.log");
	watch_tick(w, false, false);
	return w;
}

/* RocksDB deletes a log as soon as it has closed it. */
static void a_log_that_dies_when_it_is_closed_is_trimmed(void **state)
{
	struct watch *w = watch_a_log();

	(void)state;
	log_grows(w, TERRACE_FILE_STEP);
	gone = 1;
	happens(TERRACE_FILE_CLOSED, 0);
	dies(w);
	assert_int_equal(told.nr, 1024);
	assert_int_equal(told.sure, 0);
}

/* It was being asked once more when it died. */
static void the_death_of_a_log_is_told_once(void **state)
{
	struct watch *w = watch_a_log();

	(void)state;
	pieces = 10;
	log_grows(w, TERRACE_FILE_STEP);
	held = true;
	log_grows(w, 4 << 20);
	assert_int_equal(asked, 2);
	happens(TERRACE_FILE_UNLINKED, 0);
	happens(TERRACE_FILE_DIED, 0);
	watch_tick(w, false, false);
	assert_int_equal(told.nr, 10);
	held = false;
	watch_tick(w, false, false);
	assert_int_equal(told.deaths, 1);
	watch_close(w);
}

/* A log is asked where it lies as soon as it grows, and again when it grows beyond that; and its death is found out. */
static void a_log_is_told_while_it_grows(void **state)
{
	struct watch *w = watch_a_log();

	(void)state;
	assert_int_equal(log_told.times, 0);
	for (uint64_t to = TERRACE_FILE_STEP; to <= 4 << 20; to += TERRACE_FILE_STEP)
		log_grows(w, to);
	assert_int_equal(log_told.times, 1);
	assert_int_equal(log_told.nr, 1024);
	/* beyond that nothing is allocated yet: asked once in a MiB */
	pieces = 0;
	for (uint64_t to = (4 << 20) + TERRACE_FILE_STEP; to <= 8 << 20; to += TERRACE_FILE_STEP)
		log_grows(w, to);
	assert_int_equal(log_told.times, 5);
	assert_int_equal(log_told.nr, 0);
	/* its death is lost */
	pieces = 10;
	gone = 1;
	lost++;
	watch_tick(w, false, false);
	watch_tick(w, false, false);
	assert_int_equal(told.deaths, 1);
	assert_int_equal(watch_counts(w)->died_unheard, 1);
	watch_close(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_output_that_is_not_finished_is_trimmed),
		cmocka_unit_test(a_compaction_that_is_left_is_busy_no_longer),
		cmocka_unit_test(a_table_from_memory_that_is_not_kept_is_trimmed),
		cmocka_unit_test(all_of_a_table_that_died_meanwhile_is_trimmed),
		cmocka_unit_test(devices_below_may_change_while_it_grows),
		cmocka_unit_test(an_input_is_asked_as_a_whole),
		cmocka_unit_test(the_death_of_a_log_is_told_once),
		cmocka_unit_test(each_output_is_given_its_heat_once_and_at_once),
		cmocka_unit_test(a_log_is_told_while_it_grows),
		cmocka_unit_test(a_log_that_dies_when_it_is_closed_is_trimmed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
