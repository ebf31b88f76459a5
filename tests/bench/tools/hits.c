// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hits: reads one block after the other, each between two marks
 *
 *	hits DEVICE write|read|fsync|new STRIDE COUNT [READS [SEED]]
 *
 * write: one block every STRIDE bytes, COUNT of them, past the page cache.
 * read: READS random ones of these, each between marks that the QEMU plugin
 * tests/bench/lines/plugin.c knows; a mark is a no-op for everybody else.
 * fsync: writes READS random ones of these, and marks the fsync behind each.
 * new: writes the blocks behind those of write, between marks.
 */
#include "blocks.h"

int main(int argc, char **argv)
{
	uint64_t stride, count, reads, seed, k;
	void *block;
	int fd;

	if (argc < 5) {
		fprintf(stderr, "usage: hits DEVICE write|read|fsync|new STRIDE COUNT [READS [SEED]]\n");
		return 2;
	}
	stride = strtoull(argv[3], NULL, 0);
	count = strtoull(argv[4], NULL, 0);
	reads = argc > 5 ? strtoull(argv[5], NULL, 0) : 1000;
	seed = argc > 6 ? strtoull(argv[6], NULL, 0) : 1;
	block = block_new();
	fd = open_direct(argv[1]);
	if (!strcmp(argv[2], "write")) {
		for (k = 0; k < count; k++)
			if (pwrite(fd, block, BLOCK, k * stride) != BLOCK)
				trouble("write", errno);
		return 0;
	}
	if (!strcmp(argv[2], "new")) {
		for (k = 0; k < count; k++) {
			ssize_t put;

			MARK(1);
			put = pwrite(fd, block, BLOCK, k * stride + BLOCK);
			MARK(2);
			if (put != BLOCK)
				trouble("write", errno);
		}
		MARK(3);
		return 0;
	}
	for (k = 0; k < reads && !strcmp(argv[2], "fsync"); k++) {
		int err;

		if (pwrite(fd, block, BLOCK, rnd(&seed, count) * stride) != BLOCK)
			trouble("write", errno);
		MARK(1);
		err = fsync(fd);
		MARK(2);
		if (err)
			trouble("fsync", errno);
	}
	for (k = 0; k < reads && strcmp(argv[2], "fsync"); k++) {
		uint64_t at = rnd(&seed, count) * stride;
		ssize_t got;

		MARK(1);
		got = pread(fd, block, BLOCK, at);
		MARK(2);
		if (got != BLOCK)
			trouble("read", errno);
	}
	MARK(3);
	return 0;
}
