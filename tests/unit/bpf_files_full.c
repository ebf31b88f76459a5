// SPDX-License-Identifier: GPL-2.0-or-later
/* The table of files when it is full, and when nothing more is heard of what is in it. */
#include <time.h>

#include "policy_lib.h"

#include "file_events.h"

#define SECOND	1000000000ull

static struct {
	int left;
} seen;

static void on_left(void *ctx, const struct file *file)
{
	(void)ctx;
	(void)file;
	seen.left++;
}

static int setup(void **state)
{
	const struct files_tell tell = { .left = on_left };

	(void)state;
	files = calloc(1, sizeof(*files));
	seen.left = 0;
	now = 0;
	files_init(files, FILE_PROFILES, &tell);
	return !files;
}

static int teardown(void **state)
{
	(void)state;
	free(files);
	return 0;
}

static double cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Seconds for @nr files, each of which one thread begins to read. */
static double begin_files(uint64_t first, uint32_t nr)
{
	double before = cpu_now();

	for (uint64_t i = first; i < first + nr; i++)
		row(TERRACE_FILE_READ, i, 5, 0, 4096);
	return cpu_now() - before;
}

/* Small files read one after the other (grep -r) cost as much when the table is full as before, also where most in it have names. */
static void a_full_table_costs_no_walk(void **state)
{
	double empty, full;

	(void)state;
	for (uint64_t i = 1; i <= FILES_MAX / 2; i++)
		table(i, 2);
	empty = begin_files(100000, FILES_MAX / 2 - 10);
	for (uint64_t i = 200000; i < 200000 + FILES_MAX / 2 + 5; i++)
		table(i, 2);
	full = begin_files(300000, FILES_MAX / 2 - 10);
	print_message("%u files begun: %.4f s while there is room, %.4f s when there is none\n", FILES_MAX / 2 - 10, empty, full);
	assert_true(full < 5 * empty);
}

static void on_growing(void *ctx, const struct file_job *job, const struct file *file)
{
	(void)ctx;
	(void)job;
	assert_int_equal(file->id.inode, 11);
}

/* What was said of an output while it was written is taken back, also if nothing is heard of its end: it is forgotten, or its closing was lost. */
static void outputs_of_no_known_end_are_let_go(void **state)
{
	struct files_tell tell = files->tell;

	(void)state;
	tell.growing = on_growing;
	files_init(files, FILE_PROFILES, &tell);
	for (int lose = 0; lose <= 1; lose++) {
		seen.left = 0;
		table(1, 2);
		row(TERRACE_FILE_READ, 1, 5, 0, MB);
		create(11, "000011.sst", 5);
		row(TERRACE_FILE_WRITTEN, 11, 5, 0, MB);
		files_tick(files, now + 30 * SECOND);
		assert_int_equal(seen.left, 0);
		for (uint64_t i = 100; lose && i < 100 + 2 * FILES_MAX; i++)
			table(i, 2);
		files_tick(files, now + 90 * SECOND);
		assert_int_equal(seen.left, 1);
		files_tick(files, now + 900 * SECOND);
		assert_int_equal(seen.left, 1);
		/* it was only slow: told again, and let go at its end */
		if (!lose) {
			now += 901 * SECOND;
			row(TERRACE_FILE_READ, 1, 5, MB, SIZE);
			row(TERRACE_FILE_WRITTEN, 11, 5, MB, SIZE);
			happens(TERRACE_FILE_CLOSED, 11, 5);
			assert_int_equal(seen.left, 2);
			dies(1, 5);
			dies(11, 5);
		}
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_full_table_costs_no_walk),
		TEST(outputs_of_no_known_end_are_let_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
