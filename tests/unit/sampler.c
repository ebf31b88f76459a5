// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Samples: what random, repetitive and mixed data gain, read from a file that stands for the volume; what is marked
 * meanwhile, on a control device that is none.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <liburing.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "policy_lib.h"

#include "act/sampler.h"
#include "decide/codec.h"
#include "decide/prng.h"

#define BYTES	(PORT_SAMPLE_BLOCKS * TERRACE_BLOCK_BYTES)

static void fill(char *to, size_t random_of_16, struct prng *p)
{
	for (size_t i = 0; i < BYTES; i++)
		to[i] = i % 16 < random_of_16 ? (char)prng_next(p) : (char)(i / 4096);
}

static struct codec_choice chosen(const struct port_gain *g, double coldness)
{
	struct codec_sample s = { g->lz4, g->zstd_4, g->zstd_16 };
	struct codec_tunables t;

	tunable_defaults(&codec_tunable_table, &t);
	return codec_choose(&t, coldness, &s);
}

static void measures(void **state)
{
	static char data[BYTES];
	struct prng p = { 1 };
	struct port_gain g;

	(void)state;
	fill(data, 16, &p);
	sampler_measure(data, &g);
	assert_near(g.lz4, 1, 1e-6);
	assert_true(g.zstd_4 < 1.02 && g.zstd_16 < 1.02);
	assert_int_equal(chosen(&g, 0).codec, CODEC_NONE);
	assert_int_equal(chosen(&g, 1).codec, CODEC_NONE);
	fill(data, 0, &p);
	sampler_measure(data, &g);
	assert_true(g.lz4 > 20 && g.zstd_4 > 20 && g.zstd_16 > g.zstd_4);
	assert_int_equal(chosen(&g, 0).codec, CODEC_LZ4);
	assert_int_equal(chosen(&g, 1).codec, CODEC_ZSTD);
	/* No repetitions, few values: nothing for LZ4, something for zstd. */
	for (size_t i = 0; i < BYTES; i++)
		data[i] = (char)(prng_next(&p) % 16);
	sampler_measure(data, &g);
	assert_true(g.lz4 < 1.2 && g.zstd_4 > 1.6);
	assert_int_equal(chosen(&g, 1).codec, CODEC_ZSTD);
}

/* Nor does LZ4 find anything where only the first quarter has few values, or the last: zstd is asked all the same. */
static void what_shrinks_at_either_end_is_found(void **state)
{
	static char data[BYTES];
	struct prng p = { 1 };

	(void)state;
	for (size_t from = 0; from < BYTES; from += BYTES * 3 / 4) {
		struct port_gain g;

		fill(data, 16, &p);
		for (size_t i = 0; i < BYTES / 4; i++)
			data[from + i] &= 0x3f;
		sampler_measure(data, &g);
		assert_near(g.lz4, 1, 1e-6);
		assert_true(g.zstd_4 > 1.04);
	}
}

/* ---- a file for the volume, and its control device --------------------------------------- */

#define CONTROL	4711	/* no file of ours has that number */

static struct terrace_range marks[64];
static uint32_t nr_marks, marked_before_reading;
static int mark_error;

int ioctl(int fd, unsigned long request, ...)
{
	struct terrace_range *range;
	va_list args;

	va_start(args, request);
	range = va_arg(args, struct terrace_range *);
	va_end(args);
	if (fd != CONTROL) {
		errno = EBADF;
		return -1;
	}
	assert_int_equal(request, TERRACE_IOC_RANGE);
	assert_true(nr_marks < 64);
	marks[nr_marks++] = *range;
	errno = mark_error;
	return mark_error ? -1 : 0;
}

int io_uring_submit(struct io_uring *ring)
{
	int (*real)(struct io_uring *) = (int (*)(struct io_uring *))dlsym(RTLD_NEXT, "io_uring_submit");

	marked_before_reading = nr_marks;
	return real(ring);
}

static char path[] = "/var/tmp/sampler-XXXXXX";
static int file;

/* Two samples' worth of blocks: random, repetitive. */
static int make_file(void **state)
{
	static char data[BYTES];
	struct prng p = { 1 };

	(void)state;
	strcpy(path + sizeof(path) - 7, "XXXXXX");
	file = mkstemp(path);
	if (file < 0)
		return -1;
	fill(data, 16, &p);
	assert_int_equal(pwrite(file, data, BYTES, 0), BYTES);
	fill(data, 0, &p);
	assert_int_equal(pwrite(file, data, BYTES, BYTES), BYTES);
	nr_marks = 0;
	mark_error = 0;
	return 0;
}

static int remove_file(void **state)
{
	(void)state;
	close(file);
	unlink(path);
	return 0;
}

/* Without io_uring, or on a file system without O_DIRECT, there is nothing to be seen. */
static struct sampler *open_or_skip(void)
{
	int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC), err;
	struct sampler *s;

	err = fd < 0 ? -errno : sampler_open(&s, path, CONTROL);
	if (fd >= 0)
		close(fd);
	if (err) {
		print_message("not here: %s\n", strerror(-err));
		skip();
	}
	return s;
}

/* The first @most that come; their number. */
static uint32_t wait_for(struct sampler *s, struct port_gain *g, uint32_t most)
{
	uint32_t got = 0;

	for (int tries = 0; got < most && tries < 100000; tries++) {
		int n = sampler_gains(s, g + got, most - got);

		assert_true(n >= 0);
		got += (uint32_t)n;
		usleep(n ? 0 : 100);
	}
	return got;
}

static void row(uint64_t *blocks, uint64_t first)
{
	for (uint64_t i = 0; i < PORT_SAMPLE_BLOCKS; i++)
		blocks[i] = first + i;
}

static void reads_what_it_was_asked_for(void **state)
{
	struct sampler *s = open_or_skip();
	struct port_gain g[3];
	uint64_t blocks[PORT_SAMPLE_BLOCKS];

	(void)state;
	/* Regions 1 and 2: random, repetitive; 3: beyond the end. */
	for (uint64_t region = 1; region <= 3; region++) {
		row(blocks, (region - 1) * PORT_SAMPLE_BLOCKS);
		assert_int_equal(sampler_ask(s, region, blocks), 0);
	}
	assert_int_equal(wait_for(s, g, 3), 3);
	for (int i = 0; i < 3; i++) {
		assert_true((g[i].region == 3) == (g[i].error != 0));
		if (g[i].region == 1)
			assert_near(g[i].lz4, 1, 1e-6);
		if (g[i].region == 2)
			assert_true(g[i].lz4 > 20);
	}
	/* As many as there are places, then busy; closed with reads under way. */
	for (int i = 0; i < 8; i++)
		assert_int_equal(sampler_ask(s, 2, blocks), 0);
	nr_marks = 0;
	assert_int_equal(sampler_ask(s, 2, blocks), -EBUSY);
	assert_int_equal(nr_marks, 0);
	sampler_close(s);
}

static void a_disk_that_has_gone_is_told(void **state)
{
	struct sampler *s = open_or_skip();
	uint64_t blocks[PORT_SAMPLE_BLOCKS];

	(void)state;
	unlink(path);
	row(blocks, 0);
	assert_int_equal(sampler_ask(s, 2, blocks), -ENOENT);
	assert_int_equal(nr_marks, 0);
	sampler_close(s);
}

/* ---- what is marked -------------------------------------------------------------------------- */

struct run {
	uint64_t block, nr;
};

/* The last of the marks so far, @nr of them, is of all from the first of @run to the last. */
static void assert_mark(uint32_t nr, const struct run *run, const struct run *last, uint32_t what)
{
	assert_int_equal(nr_marks, nr);
	assert_int_equal(marks[nr - 1].block, run->block);
	assert_int_equal(marks[nr - 1].nr, last->block + last->nr - run->block);
	assert_int_equal(marks[nr - 1].what, what);
	assert_int_equal(marks[nr - 1].flags, 0);
}

/* Asks for the blocks of @run, and sees what is marked until the sample is there. */
static void sample_runs(const struct run *run, uint32_t nr, struct port_gain *g)
{
	struct sampler *s = open_or_skip();
	uint64_t blocks[PORT_SAMPLE_BLOCKS];
	uint32_t n = 0;
	int got = 0;

	for (uint32_t i = 0; i < nr; i++)
		for (uint64_t b = 0; b < run[i].nr; b++)
			blocks[n++] = run[i].block + b;
	assert_int_equal(n, PORT_SAMPLE_BLOCKS);
	marked_before_reading = 0;
	assert_int_equal(sampler_ask(s, 1, blocks), 0);
	assert_mark(1, run, run + nr - 1, TERRACE_RANGE_HINT_NOHEAT);
	assert_int_equal(marked_before_reading, 1);
	/* They stay until the last of the reads has ended. */
	for (int tries = 0; !got && tries < 100000; tries++) {
		assert_int_equal(nr_marks, 1);
		got = sampler_gains(s, g, 1);
		usleep(100);
	}
	assert_int_equal(got, 1);
	assert_mark(2, run, run + nr - 1, TERRACE_RANGE_CLEAR);
	sampler_close(s);
	assert_int_equal(nr_marks, 2);
}

/* Sixteen blocks in a row: one range. */
static void neighbours_are_marked_together(void **state)
{
	static const struct run all[] = { { 3, 16 } };
	struct port_gain g;

	(void)state;
	sample_runs(all, 1, &g);
	assert_int_equal(g.error, 0);
}

/* Six runs of blocks, one range all the same: to make the volume's ranges anew is what is dear. */
static void what_lies_between_is_marked_as_well(void **state)
{
	static const struct run parts[] = { { 0, 1 }, { 2, 3 }, { 6, 1 }, { 8, 1 }, { 20, 9 }, { 31, 1 } };
	struct port_gain g;

	(void)state;
	sample_runs(parts, 6, &g);
	assert_int_equal(g.error, 0);
}

/* No two neighbours, and half of them lie beyond the end: the mark goes all the same. */
static void a_read_that_fails_leaves_no_mark(void **state)
{
	struct run every_third[PORT_SAMPLE_BLOCKS];
	struct port_gain g;

	(void)state;
	for (uint64_t i = 0; i < PORT_SAMPLE_BLOCKS; i++)
		every_third[i] = (struct run){ 8 + 3 * i, 1 };
	sample_runs(every_third, PORT_SAMPLE_BLOCKS, &g);
	assert_int_not_equal(g.error, 0);
}

/* A module without these marks, or without room for more: the blocks look read once, no more. */
static void without_marks_it_is_read_all_the_same(void **state)
{
	static const struct run all[] = { { 16, 16 } };
	struct port_gain g;

	(void)state;
	mark_error = ENOSPC;
	sample_runs(all, 1, &g);
	assert_int_equal(g.error, 0);
	assert_true(g.lz4 > 20);
}

int main(void)
{
#define ON_FILE(test)	cmocka_unit_test_setup_teardown(test, make_file, remove_file)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(measures),
		cmocka_unit_test(what_shrinks_at_either_end_is_found),
		ON_FILE(reads_what_it_was_asked_for),
		ON_FILE(a_disk_that_has_gone_is_told),
		ON_FILE(neighbours_are_marked_together),
		ON_FILE(what_lies_between_is_marked_as_well),
		ON_FILE(a_read_that_fails_leaves_no_mark),
		ON_FILE(without_marks_it_is_read_all_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
