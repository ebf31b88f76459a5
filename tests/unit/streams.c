// SPDX-License-Identifier: GPL-2.0-or-later
/* Hints on the ranges of files: so many at a time, each taken back with its file, and what is out is what the file has now. */
#include <errno.h>

#include "policy_lib.h"

#include "act/device.h"
#include "act/streams.h"

#define BLOCKS	4096

/* The kernel: what is hinted, of one file of the device. */
static uint32_t hint[BLOCKS];
static uint32_t room;

int device_mark(int fd, uint32_t what, uint64_t block, uint64_t nr)
{
	assert_int_equal(fd, 3);
	if (what != TERRACE_RANGE_CLEAR && what != TERRACE_RANGE_HINT_COLD)
		return -EINVAL;
	if (what != TERRACE_RANGE_CLEAR && !room)
		return -ENOSPC;
	room -= what != TERRACE_RANGE_CLEAR;
	for (uint64_t i = block; i < block + nr; i++)
		hint[i] = what == TERRACE_RANGE_CLEAR ? 0 : what;
	return 0;
}

static int64_t told;

static void on_told(void *ctx, const struct stream_range *range, bool yes)
{
	(void)ctx;
	told += yes ? (int64_t)range->nr : -(int64_t)range->nr;
}

static struct streams s;

static void begin(uint32_t most)
{
	memset(hint, 0, sizeof(hint));
	room = UINT32_MAX;
	told = 0;
	s = (struct streams){ .fd = 3, .what = TERRACE_RANGE_HINT_COLD, .most = most, .told = on_told };
}

static uint32_t hinted(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < BLOCKS; i++)
		n += hint[i] != 0;
	return n;
}

static void one(uint64_t inode, uint64_t block, uint64_t nr)
{
	streams_hint(&s, &(struct stream_key){ .inode = inode }, &(struct stream_range){ block, nr }, 1);
}

static void the_oldest_gives_way(void **state)
{
	(void)state;
	begin(16);
	for (uint32_t i = 1; i <= 40; i++)
		one(i, i * 10, 10);
	assert_int_equal(s.nr, 16);
	assert_int_equal(hinted(), 160);
	assert_int_equal(hint[10 * 24 + 9], 0);
	assert_int_equal(hint[10 * 25], TERRACE_RANGE_HINT_COLD);
	assert_int_equal(told, 160);
	streams_end(&s, &(struct stream_key){ .inode = 24 });
	assert_int_equal(s.nr, 16);
	streams_end(&s, &(struct stream_key){ .inode = 40 });
	streams_end(&s, &(struct stream_key){ .inode = 40 });
	assert_int_equal(s.nr, 15);
	assert_int_equal(hinted(), 150);
	streams_end_all(&s);
	assert_int_equal(s.nr, 0);
	assert_int_equal(hinted(), 0);
	assert_int_equal(told, 0);
	begin(0);
	for (uint32_t i = 1; i <= 2 * STREAMS_MAX; i++)
		one(i, i, 1);
	assert_int_equal(s.nr, STREAMS_MAX);
}

/* A log that grows, is cut, and lies elsewhere. */
static void what_is_hinted_is_what_it_has(void **state)
{
	const struct stream_key key = { .inode = 7 };
	struct stream_range range[STREAM_RANGES + 1] = { { 100, 50 }, { 300, 20 } };

	(void)state;
	begin(16);
	one(7, 100, 50);
	streams_hint(&s, &key, range, 2);
	assert_int_equal(s.counts.hinted, 1);
	assert_int_equal(s.counts.blocks, 70);
	assert_int_equal(hinted(), 70);
	one(7, 100, 10);
	assert_int_equal(hinted(), 10);
	assert_int_equal(hint[109], TERRACE_RANGE_HINT_COLD);
	one(7, 1000, 5);
	assert_int_equal(hinted(), 5);
	assert_int_equal(s.nr, 1);
	/* nowhere, or in too many pieces: what is known stays */
	streams_hint(&s, &key, range, 0);
	streams_hint(&s, &key, range, STREAM_RANGES + 1);
	assert_int_equal(hinted(), 5);
	assert_int_equal(s.counts.unplaced, 1);
	assert_int_equal(s.counts.scattered, 1);
	streams_end(&s, &key);
	assert_int_equal(hinted(), 0);
}

static void who_finds_no_room_has_none_at_all(void **state)
{
	const struct stream_range range[2] = { { 100, 50 }, { 300, 20 } };

	(void)state;
	begin(16);
	room = 1;
	streams_hint(&s, &(struct stream_key){ .inode = 7 }, range, 2);
	assert_int_equal(hinted(), 0);
	assert_int_equal(s.nr, 0);
	assert_int_equal(s.counts.scattered, 1);
	assert_int_equal(s.counts.refused, 0);
	/* an older kernel */
	begin(16);
	s.what = TERRACE_RANGE_HINT_FAST;
	one(7, 100, 50);
	assert_int_equal(s.nr, 0);
	assert_int_equal(s.counts.hinted, 0);
	assert_int_equal(s.counts.refused, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_oldest_gives_way),
		cmocka_unit_test(what_is_hinted_is_what_it_has),
		cmocka_unit_test(who_finds_no_room_has_none_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
