// SPDX-License-Identifier: GPL-2.0-or-later
/* What dead files leave behind: a bounded queue, marks that are always taken back, and no trim of another filesystem. */
#include <errno.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "policy_lib.h"

#include "act/device.h"
#include "act/invalidate.h"

#define QUEUE	16384u	/* ranges */

/* The kernel, as far as it is asked here. */
static uint32_t room, marks, clears;
static bool is_marked;	/* by what came last */
static bool mark_of[1024];	/* blocks, the first of them */

int device_range(struct port *port, uint32_t what, uint64_t block, uint64_t nr)
{
	(void)port;
	assert_int_equal(nr, 4);
	if (block < 1024)
		mark_of[block] = what == TERRACE_RANGE_DEAD;
	if (what == TERRACE_RANGE_CLEAR) {
		clears++;
		is_marked = false;
		return 0;
	}
	assert_int_equal(what, TERRACE_RANGE_DEAD);
	if (marks - clears >= room)
		return -ENOSPC;
	marks++;
	is_marked = true;
	return 0;
}

/* A filesystem that is slow, and can be trimmed. */
static sem_t gate;
static bool holds, is_xfs;
static int held, syncs, trims;
static struct fstrim_range range[64];	/* the first of them, as they were asked for */
static int64_t frees = -1;		/* so much of each was free; -1: what was asked for */

int syncfs(int fd)
{
	(void)fd;
	syncs++;
	if (!holds)
		return 0;
	__atomic_store_n(&held, 1, __ATOMIC_SEQ_CST);
	sem_wait(&gate);
	return 0;
}

int fstatfs(int fd, struct statfs *fs)
{
	(void)fd;
	*fs = (struct statfs){ .f_type = is_xfs ? XFS_SUPER_MAGIC : EXT4_SUPER_MAGIC };
	return 0;
}

int ioctl(int fd, unsigned long request, ...)
{
	struct fstrim_range *r;
	va_list args;

	(void)fd;
	assert_int_equal(request, FITRIM);
	va_start(args, request);
	r = va_arg(args, struct fstrim_range *);
	va_end(args);
	if (trims < 64)
		range[trims] = *r;
	trims++;
	if (frees >= 0)
		r->len = (uint64_t)frees;
	return 0;
}

/* The loop: blocks it has been told are banned. */
static int64_t banned;

static void on_banned(void *ctx, uint64_t block, uint64_t nr, bool yes)
{
	assert_ptr_equal(ctx, &banned);
	(void)block;
	banned += yes ? (int64_t)nr : -(int64_t)nr;
}

static struct invalidate *begin(bool ban, bool trim, uint32_t wait_ms)
{
	const struct invalidate_config c = {
		.ban = ban, .trim = trim, .wait_ms = wait_ms, .banned = on_banned, .ctx = &banned,
	};
	struct invalidate *i;

	room = 1u << 30;
	marks = clears = 0;
	banned = 0;
	assert_int_equal(invalidate_open(NULL, &c, &i), 0);
	return i;
}

static void add(struct invalidate *i, const char *path, uint32_t dev, uint32_t nr)
{
	for (uint32_t k = 0; k < nr; k++)
		invalidate_add(i, path, dev, &(struct dead_range){ .block = 8 * k, .nr = 4, .physical = 32768ull * k }, 1);
}

/* Until all marks are taken back. */
static void wait_for(struct invalidate *i, uint32_t marked)
{
	for (int n = 0; n < 2000 && clears < marked; n++) {
		invalidate_tick(i);
		usleep(5000);
	}
	assert_int_equal(clears, marked);
	assert_int_equal(banned, 0);
}

static void marks_last_as_long_as_they_should(void **state)
{
	struct invalidate *i = begin(true, false, 300);

	(void)state;
	add(i, "/", 1, 3);
	assert_int_equal(marks, 3);
	assert_int_equal(banned, 12);
	invalidate_tick(i);
	assert_int_equal(clears, 0);
	wait_for(i, 3);
	invalidate_close(i);
	/* switched off, nothing is marked; with neither use nothing is kept in mind */
	for (int trim = 0; trim <= 1; trim++) {
		struct invalidate_counts c;

		i = begin(false, trim, 3600000);
		add(i, "/", 1, 3);
		invalidate_counts(i, &c);
		assert_int_equal(marks, 0);
		assert_int_equal(c.queued, trim ? 3 : 0);
		assert_int_equal(banned, 0);
		invalidate_close(i);
	}
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* A range that dies again, while it waits for the time before, is marked until the second time is over. */
static void what_dies_again_stays_marked(void **state)
{
	struct invalidate *i = begin(true, false, 400);
	uint64_t again;
	int looks = 0;

	(void)state;
	add(i, "/", 1, 1);
	usleep(250000);
	again = now_ms();
	add(i, "/", 1, 1);
	while (now_ms() < again + 390) {
		invalidate_tick(i);
		if (now_ms() < again + 390) {
			assert_true(is_marked);
			looks += now_ms() > again + 200;
		}
		usleep(5000);
	}
	assert_true(looks);
	wait_for(i, marks);
	assert_false(is_marked);
	invalidate_close(i);
}

/* What may be another's by now is trimmed where it is free, and not marked. */
static void what_may_be_anothers_is_not_marked(void **state)
{
	struct invalidate *i = begin(true, true, 3600000);
	struct invalidate_counts c;

	(void)state;
	invalidate_add(i, "/", 1, &(struct dead_range){ .block = 8, .nr = 4, .unsure = true }, 1);
	invalidate_counts(i, &c);
	assert_int_equal(c.queued, 1);
	assert_int_equal(c.unbanned, 0);
	assert_int_equal(marks, 0);
	/* Nor is what comes after so many of one table; that is counted. */
	invalidate_add(i, "/", 1, &(struct dead_range){ .block = 20, .nr = 4, .unmarked = true }, 1);
	invalidate_counts(i, &c);
	assert_int_equal(c.queued, 2);
	assert_int_equal(c.unbanned, 1);
	assert_int_equal(marks, 0);
	invalidate_close(i);
}

/* What does not fit is left alone, neither marked nor trimmed; what was taken before is served. */
static void the_queue_is_bounded(void **state)
{
	struct invalidate *i = begin(true, false, 1000);
	struct invalidate_counts c;

	(void)state;
	add(i, "/", 1, QUEUE + 10);
	invalidate_counts(i, &c);
	assert_int_equal(c.queued, QUEUE);
	assert_int_equal(c.full, 10);
	assert_int_equal(marks, QUEUE);
	assert_int_equal(banned, 4 * QUEUE);
	wait_for(i, QUEUE);
	add(i, "/", 1, 1);
	invalidate_counts(i, &c);
	assert_int_equal(c.queued, QUEUE + 1);
	invalidate_close(i);
}

/* Ranges that the kernel could not mark are counted; nobody takes them for banned, or takes back marks they have not. */
static void the_kernel_may_have_no_room(void **state)
{
	struct invalidate *i = begin(true, false, 10);
	struct invalidate_counts c;

	(void)state;
	room = 5;
	add(i, "/", 1, 8);
	invalidate_counts(i, &c);
	assert_int_equal(c.unbanned, 3);
	assert_int_equal(banned, 20);
	wait_for(i, 5);
	usleep(20000);
	invalidate_tick(i);
	assert_int_equal(clears, 5);
	invalidate_close(i);
}

/* Something else is mounted there by now, or nothing: no trim is tried, one error is told, the marks end. */
static void another_filesystem_is_not_trimmed(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(stat("/tmp", &st), 0);
	for (int gone = 0; gone <= 1; gone++) {
		struct invalidate *i = begin(true, true, 10);
		struct invalidate_counts c;

		add(i, gone ? "/nowhere/at/all" : "/tmp", (major(st.st_dev) << 20 | minor(st.st_dev)) + 1, 4);
		wait_for(i, 4);
		invalidate_counts(i, &c);
		assert_int_equal(c.trims, 0);
		assert_int_equal(c.trimmed_bytes, 0);
		assert_true(c.errors >= 1);
		assert_int_equal(c.last_error, gone ? -ENOENT : -ESTALE);
		assert_int_equal(c.left, 4);
		invalidate_close(i);
	}
}

static void wait_for_trims(struct invalidate *i, uint64_t nr)
{
	struct invalidate_counts c = { 0 };

	for (int n = 0; n < 2000 && c.trims < nr; n++) {
		invalidate_tick(i);
		usleep(5000);
		invalidate_counts(i, &c);
	}
	assert_int_equal(c.trims, nr);
}

static void check_trim(int n, uint64_t start, uint64_t bytes, uint64_t least)
{
	assert_int_equal(range[n].start, start);
	assert_int_equal(range[n].len, bytes);
	assert_int_equal(range[n].minlen, least);
}

/*
 * Only what has died is trimmed, in order, together where it touches; first where a free extent is as long as that, or of 16
 * MiB, or half as long where part of it may be another's; again, where anything of it is free.
 */
static void just_the_dead_ranges_are_trimmed(void **state)
{
	const struct dead_range dead[] = {
		{ .block = 900, .nr = 4, .physical = 1 << 20 },
		{ .block = 100, .nr = 4, .physical = 49152 },
		{ .block = 500, .nr = 8, .physical = 16384, .unsure = true },
		{ .block = 2000, .nr = 10000, .physical = 1 << 24, .unsure = true },
	};
	struct invalidate *i;
	struct invalidate_counts c;
	struct stat st;

	(void)state;
	assert_int_equal(stat("/tmp", &st), 0);
	for (int busy = 0; busy <= 1; busy++) {
		trims = 0;
		frees = busy ? 4096 : -1;
		i = begin(true, true, 10);
		invalidate_add(i, "/tmp", major(st.st_dev) << 20 | minor(st.st_dev), dead, 4);
		wait_for_trims(i, busy ? 12 : 3);
		check_trim(0, 16384, 49152, 24576);
		check_trim(1, 1 << 20, 16384, 16384);
		check_trim(2, 1 << 24, 10000 * 4096, 16 << 20);
		for (int again = 1; busy && again < 4; again++) {
			check_trim(3 * again, 16384, 49152, 0);
			check_trim(3 * again + 1, 1 << 20, 16384, 0);
			check_trim(3 * again + 2, 1 << 24, 10000 * 4096, 0);
		}
		usleep(100000);
		invalidate_counts(i, &c);
		assert_int_equal(c.trims, busy ? 12 : 3);
		assert_int_equal(c.left, busy ? 4 : 0);
		assert_int_equal(c.again, busy ? 12 : 0);
		invalidate_close(i);
	}
	trims = 0;
	frees = -1;
}

/*
 * xfs looks through its free extents by their length for each trim.  Dead pieces that lie near each other are one trim there,
 * for which each of them is long enough, and no gap holds more than one that is; again, those of a 64th are looked at.
 */
static void near_ranges_are_one_trim_on_xfs(void **state)
{
	const struct dead_range dead[] = {
		/* two pieces with a gap, and two that touch behind another */
		{ .block = 0, .nr = 64, .physical = 1 << 20 },
		{ .block = 100, .nr = 32, .physical = (1 << 20) + 384 * 1024 },
		{ .block = 200, .nr = 32, .physical = (1 << 20) + 640 * 1024 },
		{ .block = 232, .nr = 16, .physical = (1 << 20) + 768 * 1024 },
		/* too far for the shorter of them */
		{ .block = 300, .nr = 64, .physical = 4 << 20 },
		{ .block = 400, .nr = 16, .physical = (4 << 20) + 384 * 1024 },
		/* shorter than a gap before it, if not than its own */
		{ .block = 500, .nr = 64, .physical = 8 << 20 },
		{ .block = 600, .nr = 64, .physical = (8 << 20) + 384 * 1024 },
		{ .block = 700, .nr = 1, .physical = (8 << 20) + 644 * 1024 },
	};
	struct stat st;

	(void)state;
	assert_int_equal(stat("/tmp", &st), 0);
	for (int xfs = 0; xfs <= 1; xfs++) {
		struct invalidate *i = begin(false, true, 10);
		const int nr = xfs ? 5 : 8;

		is_xfs = xfs;
		trims = 0;
		frees = 4096;
		invalidate_add(i, "/tmp", major(st.st_dev) << 20 | minor(st.st_dev), dead, 9);
		wait_for_trims(i, (uint64_t)(xfs ? 17 : 8 + 3 * 7));
		for (int again = 0; xfs && again <= 1; again++) {
			check_trim(again * nr, 1 << 20, 832 * 1024, again ? 2048 : 128 * 1024);
			check_trim(again * nr + 1, 4 << 20, 256 * 1024, again ? 4096 : 256 * 1024);
			check_trim(again * nr + 2, (4 << 20) + 384 * 1024, 64 * 1024, again ? 1024 : 64 * 1024);
			check_trim(again * nr + 3, 8 << 20, 640 * 1024, again ? 4096 : 256 * 1024);
		}
		/* of which all was free */
		check_trim(nr - 1, (8 << 20) + 644 * 1024, 4096, 4096);
		invalidate_close(i);
	}
	is_xfs = false;
	frees = -1;
	trims = 0;
}

/* One that sees to the commit by itself when it is trimmed is not synced: all that users have written would go there with it. */
static void xfs_is_not_synced(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(stat("/tmp", &st), 0);
	for (int xfs = 0; xfs <= 1; xfs++) {
		struct invalidate *i = begin(true, true, 10);

		is_xfs = xfs;
		syncs = trims = 0;
		add(i, "/tmp", major(st.st_dev) << 20 | minor(st.st_dev), 4);
		wait_for(i, 4);
		assert_int_equal(syncs, !xfs);
		assert_int_equal(trims, xfs ? 1 : 4);
		invalidate_close(i);
	}
	is_xfs = false;
	trims = 0;
}

/* Whatever order they are trimmed in, marks are taken back of those that have them. */
static void marks_are_taken_back_of_what_is_marked(void **state)
{
	const struct dead_range dead[] = {
		{ .block = 40, .nr = 4, .physical = 1 << 20 },
		{ .block = 80, .nr = 4, .physical = 1 << 16, .unsure = true },
		{ .block = 120, .nr = 4, .physical = 1 << 18 },
	};
	struct invalidate *i = begin(true, true, 10);
	struct stat st;

	(void)state;
	assert_int_equal(stat("/tmp", &st), 0);
	memset(mark_of, 0, sizeof(mark_of));
	invalidate_add(i, "/tmp", major(st.st_dev) << 20 | minor(st.st_dev), dead, 3);
	assert_true(mark_of[40] && !mark_of[80] && mark_of[120]);
	wait_for(i, 2);
	for (uint32_t block = 0; block < 1024; block++)
		assert_false(mark_of[block]);
	invalidate_close(i);
	trims = 0;
}

/* What is tried again waits longer each time, and holds up nothing that has just died. */
static void what_is_tried_again_holds_up_nothing(void **state)
{
	struct invalidate *i = begin(false, true, 400);
	uint64_t began;
	struct stat st;

	(void)state;
	assert_int_equal(stat("/tmp", &st), 0);
	trims = 0;
	frees = 0;
	add(i, "/tmp", major(st.st_dev) << 20 | minor(st.st_dev), 1);
	wait_for_trims(i, 1);
	began = now_ms();
	frees = -1;
	add(i, "/tmp", major(st.st_dev) << 20 | minor(st.st_dev), 2);
	wait_for_trims(i, 3);
	assert_in_range(now_ms() - began, 390, 700);	/* the first again after 1600 ms */
	wait_for_trims(i, 4);
	assert_true(now_ms() - began >= 1590);
	invalidate_close(i);
	trims = 0;
}

/* From one tick to the next a tenth of a second goes by: the thread, once it has been woken, does not wait for that. */
static void trims_wait_for_no_tick(void **state)
{
	struct invalidate *i = begin(false, true, 400);
	struct invalidate_counts c = { 0 };
	struct stat st;

	(void)state;
	assert_int_equal(stat("/tmp", &st), 0);
	trims = 0;
	add(i, "/tmp", major(st.st_dev) << 20 | minor(st.st_dev), 3);
	invalidate_tick(i);
	for (int n = 0; n < 1000 && c.trims < 3; n++) {
		usleep(5000);
		invalidate_counts(i, &c);
	}
	assert_int_equal(c.trims, 3);
	invalidate_close(i);
	trims = 0;
}

static void *open_the_gate(void *arg)
{
	(void)arg;
	usleep(20000);
	sem_post(&gate);
	return NULL;
}

/* A filesystem that takes minutes to sync holds nobody up: neither the end of its own volume, nor other volumes meanwhile. */
static void the_end_waits_for_no_filesystem(void **state)
{
	struct stat st;
	pthread_t thread;

	(void)state;
	assert_int_equal(stat("/tmp", &st), 0);
	for (int late = 0; late <= 1; late++) {
		struct invalidate *i = begin(true, true, 10);

		sem_init(&gate, 0, 0);
		holds = true;
		held = 0;
		add(i, "/tmp", major(st.st_dev) << 20 | minor(st.st_dev), 4);
		for (int n = 0; n < 2000 && !__atomic_load_n(&held, __ATOMIC_SEQ_CST); n++) {
			invalidate_tick(i);
			usleep(5000);
		}
		assert_int_equal(held, 1);
		alarm(20);	/* it is not waited for */
		if (late)
			assert_int_equal(pthread_create(&thread, NULL, open_the_gate, NULL), 0);
		invalidate_close(i);
		if (late)
			pthread_join(thread, NULL);
		else
			sem_post(&gate);
		alarm(0);
		/* nor is anything trimmed after the end */
		usleep(200000);
		assert_int_equal(trims, 0);
		holds = false;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marks_last_as_long_as_they_should),
		cmocka_unit_test(what_dies_again_stays_marked),
		cmocka_unit_test(what_may_be_anothers_is_not_marked),
		cmocka_unit_test(the_queue_is_bounded),
		cmocka_unit_test(the_kernel_may_have_no_room),
		cmocka_unit_test(another_filesystem_is_not_trimmed),
		cmocka_unit_test(just_the_dead_ranges_are_trimmed),
		cmocka_unit_test(near_ranges_are_one_trim_on_xfs),
		cmocka_unit_test(xfs_is_not_synced),
		cmocka_unit_test(marks_are_taken_back_of_what_is_marked),
		cmocka_unit_test(what_is_tried_again_holds_up_nothing),
		cmocka_unit_test(trims_wait_for_no_tick),
		cmocka_unit_test(the_end_waits_for_no_filesystem),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
