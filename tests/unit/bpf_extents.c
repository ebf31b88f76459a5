// SPDX-License-Identifier: GPL-2.0-or-later
/* Bytes of files to blocks of the volume, through devices; what must not be taken. */
#include "policy_lib.h"

#include <errno.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sense/extents.h"

#define KB	1024ull
#define MB	(1024 * KB)

static const struct stack direct = { .piece = { { .from = 0, .length = 1024 * MB, .to = 0 } }, .nr = 1 };

static struct fiemap_extent found(uint64_t logical, uint64_t physical, uint64_t length, uint32_t flags)
{
	return (struct fiemap_extent){
		.fe_logical = logical, .fe_physical = physical, .fe_length = length, .fe_flags = flags,
	};
}

static void places_extents(void **state)
{
	struct fiemap_extent fe = found(8 * KB, 40 * MB, 12 * KB, FIEMAP_EXTENT_LAST);
	struct extents_stats stats = { 0 };
	struct extent out[4];

	(void)state;
	assert_int_equal(extents_place(&fe, &direct, out, 4, &stats), 1);
	assert_int_equal(out[0].block, 40 * MB / 4096);
	assert_int_equal(out[0].nr, 3);
	assert_int_equal(out[0].offset, 8 * KB);
	assert_int_equal(out[0].physical, 40 * MB);
}

/* An extent across two pieces of a linear device, which lie the other way round. */
static void follows_pieces(void **state)
{
	static const struct stack two = {
		.piece = { { .from = 0, .length = 40 * MB, .to = 100 * MB }, { .from = 40 * MB, .length = 40 * MB, .to = 4 * MB } },
		.nr = 2,
	};
	struct fiemap_extent fe = found(0, 40 * MB - 8 * KB, 16 * KB, 0);
	struct extents_stats stats = { 0 };
	struct extent out[4];

	(void)state;
	assert_int_equal(extents_place(&fe, &two, out, 4, &stats), 2);
	assert_int_equal(out[0].block, (140 * MB - 8 * KB) / 4096);
	assert_int_equal(out[0].nr, 2);
	assert_int_equal(out[1].block, 4 * MB / 4096);
	assert_int_equal(out[1].nr, 2);
	assert_int_equal(out[1].offset, 8 * KB);
	assert_int_equal(out[1].physical, 40 * MB);
	assert_int_equal(extents_place(&fe, &two, out, 1, &stats), -E2BIG);
	assert_int_equal(stats.unaligned, 0);
}

/* A file of 257 extents, from a file system that knows FIEMAP: the first 256 are told. */
static void tells_the_first_of_many(void **state)
{
	char path[] = "/var/tmp/extents-XXXXXX";
	int fd = mkstemp(path);
	static const struct stack all = { .piece = { { .from = 0, .length = 1ull << 50, .to = 0 } }, .nr = 1 };
	struct extents_stats stats = { 0 };
	static struct extent out[8];
	char block[4096] = "x";
	int n;

	(void)state;
	assert_true(fd >= 0);
	unlink(path);
	for (off_t i = 0; i < 9; i++)
		assert_int_equal(pwrite(fd, block, sizeof(block), i * 2 * (off_t)sizeof(block)), sizeof(block));
	fsync(fd);
	n = extents_of(fd, &all, out, 8, &stats);
	close(fd);
	if (n == -EOPNOTSUPP || n == -ENOTTY || !n)
		skip();		/* this machine's file system has none */
	assert_int_equal(n, 8);
	assert_int_equal(stats.cut, 1);
	assert_int_equal(out[7].offset, 7 * 2 * sizeof(block));
}

/* A file of xfs: @pieces blocks, every other one of its device; @realtime: of another device. */
#define SIMULATED	12345

static uint32_t pieces;
static bool realtime;

static int simulate(unsigned long request, void *arg)
{
	struct fiemap *map = arg;

	if (request == FS_IOC_FSGETXATTR) {
		((struct fsxattr *)arg)->fsx_xflags = realtime ? FS_XFLAG_REALTIME : 0;
		return 0;
	}
	assert_int_equal(request, FS_IOC_FIEMAP);
	map->fm_mapped_extents = 0;
	for (uint32_t i = (uint32_t)(map->fm_start / 4096); i < pieces && map->fm_mapped_extents < map->fm_extent_count; i++)
		map->fm_extents[map->fm_mapped_extents++] =
			found(i * 4096ull, MB + i * 8192ull, 4096, i + 1 == pieces ? FIEMAP_EXTENT_LAST : 0);
	return 0;
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list rest;
	void *arg;

	va_start(rest, request);
	arg = va_arg(rest, void *);
	va_end(rest);
	return fd == SIMULATED ? simulate(request, arg) : (int)syscall(SYS_ioctl, fd, request, arg);
}

/* What FIEMAP says of a realtime file are places on a device that nobody asked about. */
static void realtime_files_have_no_place(void **state)
{
	(void)state;
	for (int rt = 0; rt <= 1; rt++) {
		struct extents_stats stats = { 0 };
		struct extent out[8];

		pieces = 3;
		realtime = rt;
		assert_int_equal(extents_of(SIMULATED, &direct, out, 8, &stats), rt ? 0 : 3);
		assert_int_equal(stats.realtime, rt);
	}
	realtime = false;
}

/* A file in thousands of pieces is known as a whole, each piece once; one in more than that by its first ones. */
static void files_in_many_pieces_are_known(void **state)
{
	static const uint32_t numbers[] = { 1, EXTENTS_FIRST, EXTENTS_FIRST + 1, 1000, EXTENTS_MOST, EXTENTS_MOST + 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct extents_stats stats = { 0 };
		struct extent *out;
		uint32_t nr;

		pieces = numbers[i];
		nr = pieces < EXTENTS_MOST ? pieces : EXTENTS_MOST;
		assert_int_equal(extents_all(SIMULATED, &direct, &out, &stats), nr);
		for (uint32_t k = 0; k < nr; k++)
			assert_int_equal(out[k].offset, k * 4096ull);
		assert_int_equal(stats.cut, pieces > EXTENTS_MOST);
		free(out);
	}
}

static void refuses_what_is_not_its_own(void **state)
{
	static const struct stack odd = { .piece = { { .from = 0, .length = 1024 * MB, .to = 512 } }, .nr = 1 };
	struct extents_stats stats = { 0 };
	struct extent out[4];
	struct fiemap_extent fe = found(0, MB, 8 * KB, FIEMAP_EXTENT_SHARED);

	(void)state;
	assert_int_equal(extents_place(&fe, &direct, out, 4, &stats), 0);
	assert_int_equal(stats.shared, 1);
	fe.fe_flags = FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC;
	assert_int_equal(extents_place(&fe, &direct, out, 4, &stats), 0);
	fe.fe_flags = FIEMAP_EXTENT_DATA_ENCRYPTED | FIEMAP_EXTENT_ENCODED;
	assert_int_equal(extents_place(&fe, &direct, out, 4, &stats), 0);
	assert_int_equal(stats.odd, 2);
	fe.fe_flags = FIEMAP_EXTENT_DATA_INLINE | FIEMAP_EXTENT_NOT_ALIGNED;
	assert_int_equal(extents_place(&fe, &direct, out, 4, &stats), 0);
	fe = found(0, MB, 5 * KB, 0);
	assert_int_equal(extents_place(&fe, &direct, out, 4, &stats), 0);
	fe = found(0, MB, 8 * KB, 0);
	assert_int_equal(extents_place(&fe, &odd, out, 4, &stats), 0);
	fe = found(0, 2048 * MB, 8 * KB, 0);	/* beyond */
	assert_int_equal(extents_place(&fe, &direct, out, 4, &stats), 0);
	assert_int_equal(stats.unaligned, 4);
}

static void reads_tables(void **state)
{
	unsigned int major, minor;
	uint64_t offset;

	(void)state;
	assert_int_equal(stack_parse("linear", "253:7 2048", &major, &minor, &offset), 0);
	assert_int_equal(major, 253);
	assert_int_equal(minor, 7);
	assert_int_equal(offset, MB);
	assert_int_equal(stack_parse("crypt", "aes-xts-plain64 :64:logon:key 0 253:3 32768 1 allow_discards", &major,
				     &minor, &offset), 0);
	assert_int_equal(minor, 3);
	assert_int_equal(offset, 16 * MB);
	assert_int_equal(stack_parse("snapshot-origin", "253:9", &major, &minor, &offset), 0);
	assert_int_equal(minor, 9);
	assert_int_equal(offset, 0);
	assert_int_equal(stack_parse("linear", "", &major, &minor, &offset), -EPROTO);
	assert_int_equal(stack_parse("thin", "253:2 1", &major, &minor, &offset), -EOPNOTSUPP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_extents),
		cmocka_unit_test(follows_pieces),
		cmocka_unit_test(tells_the_first_of_many),
		cmocka_unit_test(realtime_files_have_no_place),
		cmocka_unit_test(files_in_many_pieces_are_known),
		cmocka_unit_test(refuses_what_is_not_its_own),
		cmocka_unit_test(reads_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
