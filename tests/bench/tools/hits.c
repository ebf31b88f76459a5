// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hits: reads one block after the other, each between two marks
 *
 *	hits DEVICE write|new STRIDE COUNT
 *	hits DEVICE read|fsync STRIDE COUNT READS SEED [READS SEED]...
 *
 * write: one block every STRIDE bytes, COUNT of them, past the page cache.
 * read: READS random ones of these, each between marks that the QEMU plugin
 * tests/bench/lines/plugin.c knows; a mark is a no-op for everybody else. With
 * several READS the plugin counts each anew: what a process does for the first time,
 * on a stack that nobody has used, falls into the first of them.
 * fsync: writes READS random ones of these, and marks the fsync behind each.
 * new: writes the blocks behind those of write, between marks.
 */
#include "blocks.h"

static void write_all(int fd, void *block, uint64_t stride, uint64_t count)
{
	for (uint64_t k = 0; k < count; k++)
		if (pwrite(fd, block, BLOCK, k * stride) != BLOCK)
			trouble("write", errno);
}

static void write_new(int fd, void *block, uint64_t stride, uint64_t count)
{
	for (uint64_t k = 0; k < count; k++) {
		ssize_t put;

		MARK(1);
		put = pwrite(fd, block, BLOCK, k * stride + BLOCK);
		MARK(2);
		if (put != BLOCK)
			trouble("write", errno);
	}
	MARK(3);
}

static void read_one(int fd, void *block, uint64_t at)
{
	ssize_t got;

	MARK(1);
	got = pread(fd, block, BLOCK, at);
	MARK(2);
	if (got != BLOCK)
		trouble("read", errno);
}

static void fsync_one(int fd, void *block, uint64_t at)
{
	int err;

	if (pwrite(fd, block, BLOCK, at) != BLOCK)
		trouble("write", errno);
	MARK(1);
	err = fsync(fd);
	MARK(2);
	if (err)
		trouble("fsync", errno);
}

static int usage(void)
{
	fprintf(stderr, "usage: hits DEVICE write|new STRIDE COUNT\n"
			"       hits DEVICE read|fsync STRIDE COUNT READS SEED [READS SEED]...\n");
	return 2;
}

int main(int argc, char **argv)
{
	uint64_t stride, count;
	void *block;
	int fd, k;

	if (argc < 5 || argc % 2 == 0)
		return usage();
	stride = strtoull(argv[3], NULL, 0);
	count = strtoull(argv[4], NULL, 0);
	block = block_new();
	fd = open_direct(argv[1]);
	if (!strcmp(argv[2], "write"))
		write_all(fd, block, stride, count);
	else if (!strcmp(argv[2], "new"))
		write_new(fd, block, stride, count);
	else if (argc == 5)
		return usage();
	for (k = 5; k < argc; k += 2) {
		uint64_t reads = strtoull(argv[k], NULL, 0), seed = strtoull(argv[k + 1], NULL, 0);

		while (reads--) {
			uint64_t at = rnd(&seed, count) * stride;

			if (!strcmp(argv[2], "fsync"))
				fsync_one(fd, block, at);
			else
				read_one(fd, block, at);
		}
		MARK(3);
	}
	return 0;
}
