// SPDX-License-Identifier: GPL-2.0-or-later
/* The pages of runs that were read last: whose they are, that they need no file, and which one goes for another. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "ralt_lib.h"

#include "ralt/file_store.h"
#include "ralt/page.h"

enum { RUNS = 2, PAGES = PAGE_CACHE_PAGES, PAGE_BYTES = 4096 };

static struct bench b;
static struct file_io io;
static struct ralt_run run[RUNS];
static struct page_cache cache;

/* Page @page of run @id begins with this block. */
static uint64_t block_of(uint64_t id, uint32_t page)
{
	return id * 1000000 + page * page_capacity(PAGE_BYTES);
}

static void write_run(uint64_t id, int dir)
{
	struct run_footer start = { .store = 1, .id = id, .page_bytes = PAGE_BYTES };
	struct ralt_sizes sizes;
	struct ralt_decay decay;
	struct ralt_judge judge;
	struct run_writer w;

	ralt_sizes_of(&sizes, &b.config.tunables, 2000);
	ralt_decay_init(&decay, b.config.tunables.alpha);
	ralt_judge_init(&judge, &b.config.tunables, &sizes, &decay);
	assert_int_equal(run_writer_begin(&w, &io, dir, &judge, &start, 20, PAGES * page_capacity(PAGE_BYTES)), 0);
	for (uint32_t i = 0; i < PAGES * page_capacity(PAGE_BYTES); i++) {
		struct ralt_record r = { .block = block_of(id, 0) + i, .score = 1, .tick = 1 };

		assert_int_equal(run_writer_add(&w, &r), 0);
	}
	assert_int_equal(run_writer_finish(&w), 0);
	run_writer_end(&w, true);
	assert_int_equal(run_open(&run[id - 1], &io, dir, 1, id, 0), 0);
	assert_int_equal(run[id - 1].footer.pages, PAGES);
}

static int open_runs(void **state)
{
	int dir;

	(void)state;
	bench_init(&b, 2000);
	assert_int_equal(file_io_init(&io), 0);
	dir = open(b.dir, O_RDONLY | O_DIRECTORY);
	for (uint64_t id = 1; id <= RUNS; id++)
		write_run(id, dir);
	close(dir);
	return page_cache_init(&cache);
}

static int close_runs(void **state)
{
	(void)state;
	page_cache_exit(&cache);
	for (int i = 0; i < RUNS; i++)
		run_close(&run[i]);
	file_io_exit(&io);
	bench_exit(&b);
	return 0;
}

static int get(uint64_t id, uint32_t page)
{
	uint8_t *at = NULL;
	int got = page_cache_get(&cache, &run[id - 1], &io, page, &at);

	if (got >= 0) {
		assert_int_equal(got, page_capacity(PAGE_BYTES));
		assert_int_equal(ralt_record_block(page_record(at, 0)), block_of(id, page));
		assert_int_equal(ralt_record_block(page_record(at, (uint32_t)got - 1)), block_of(id, page + 1) - 1);
	}
	return got < 0 ? got : 0;
}

/* The same without the file: is it kept? */
static bool is_kept(uint64_t id, uint32_t page)
{
	int fd = run[id - 1].fd, got;

	run[id - 1].fd = -1;
	got = get(id, page);
	run[id - 1].fd = fd;
	return !got;
}

static void as_many_as_there_is_room_for_are_kept(void **state)
{
	(void)state;
	assert_false(is_kept(1, 0));
	for (uint32_t page = 0; page < PAGES; page++)
		assert_int_equal(get(1 + page % RUNS, page), 0);
	for (int again = 0; again < 2; again++)
		for (uint32_t page = 0; page < PAGES; page++)
			assert_true(is_kept(1 + page % RUNS, page));
}

static void a_page_of_one_run_is_none_of_another(void **state)
{
	(void)state;
	assert_int_equal(get(1, 3), 0);
	assert_false(is_kept(2, 3));
	assert_int_equal(get(2, 3), 0);
	assert_true(is_kept(1, 3));
	assert_true(is_kept(2, 3));
}

static void the_one_that_was_used_longest_ago_goes(void **state)
{
	(void)state;
	for (uint32_t page = 0; page < PAGES; page++)
		assert_int_equal(get(1, page), 0);
	assert_int_equal(get(1, 0), 0);
	assert_int_equal(get(2, 0), 0);
	assert_true(is_kept(1, 0));
	for (uint32_t page = 2; page < PAGES; page++)
		assert_true(is_kept(1, page));
	assert_true(is_kept(2, 0));
	assert_false(is_kept(1, 1));
}

static void damage(const char *path)
{
	int fd = strstr(path, "run-0000000000000002") ? open(path, O_RDWR) : -1;
	char byte;

	if (fd < 0)
		return;
	assert_int_equal(pread(fd, &byte, 1, RALT_RUN_HEADER + 5 * PAGE_BYTES + 100), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, RALT_RUN_HEADER + 5 * PAGE_BYTES + 100), 1);
	close(fd);
}

/* It is read each time, and what it was read over is not what was there before. */
static void damaged_ones_are_not_kept(void **state)
{
	(void)state;
	bench_files(&b, damage);
	for (uint32_t page = 0; page < PAGES; page++)
		assert_int_equal(get(1, page), 0);
	assert_int_equal(get(2, 5), -EBADMSG);
	assert_int_equal(get(2, 5), -EBADMSG);
	assert_false(is_kept(1, 0));
	for (uint32_t page = 1; page < PAGES; page++)
		assert_true(is_kept(1, page));
	for (uint32_t page = 0; page < PAGES; page++)
		assert_int_equal(get(1, page), 0);
	assert_int_equal(get(2, 4), 0);
}

int main(void)
{
#define ON_RUNS(test)	cmocka_unit_test_setup_teardown(test, open_runs, close_runs)
	const struct CMUnitTest tests[] = {
		ON_RUNS(as_many_as_there_is_room_for_are_kept),
		ON_RUNS(a_page_of_one_run_is_none_of_another),
		ON_RUNS(the_one_that_was_used_longest_ago_goes),
		ON_RUNS(damaged_ones_are_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
