// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hits: reads one block after the other, each between two marks
 *
 *	hits DEVICE write|read|new STRIDE COUNT [READS [SEED]]
 *
 * write: one block every STRIDE bytes, COUNT of them, past the page cache.
 * read: READS random ones of these, each between marks that the QEMU plugin
 * tests/bench/lines/plugin.c knows; a mark is a no-op for everybody else.
 * new: writes the blocks behind those of write, between marks.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK 4096

#define MARK(n) __asm__ volatile(".byte 0x0f, 0x1f, 0x80, 0xe0 + " #n ", 0xac, 0x44, 0x7e" ::: "memory")

static void trouble(const char *text)
{
	fprintf(stderr, "hits: %s: %s\n", text, strerror(errno));
	exit(1);
}

static uint64_t rnd(uint64_t *state, uint64_t below)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (*state >> 20) % below;
}

int main(int argc, char **argv)
{
	uint64_t stride, count, reads, seed, k;
	void *block;
	int fd;

	if (argc < 5) {
		fprintf(stderr, "usage: hits DEVICE write|read|new STRIDE COUNT [READS [SEED]]\n");
		return 2;
	}
	stride = strtoull(argv[3], NULL, 0);
	count = strtoull(argv[4], NULL, 0);
	reads = argc > 5 ? strtoull(argv[5], NULL, 0) : 1000;
	seed = argc > 6 ? strtoull(argv[6], NULL, 0) : 1;
	block = aligned_alloc(BLOCK, BLOCK);
	fd = open(argv[1], O_RDWR | O_DIRECT | O_CLOEXEC);
	if (!block || fd < 0)
		trouble(argv[1]);
	memset(block, 0x5a, BLOCK);
	if (!strcmp(argv[2], "write")) {
		for (k = 0; k < count; k++)
			if (pwrite(fd, block, BLOCK, k * stride) != BLOCK)
				trouble("write");
		return 0;
	}
	if (!strcmp(argv[2], "new")) {
		for (k = 0; k < count; k++) {
			ssize_t put;

			MARK(1);
			put = pwrite(fd, block, BLOCK, k * stride + BLOCK);
			MARK(2);
			if (put != BLOCK)
				trouble("write");
		}
		MARK(3);
		return 0;
	}
	for (k = 0; k < reads; k++) {
		uint64_t at = rnd(&seed, count) * stride;
		ssize_t got;

		MARK(1);
		got = pread(fd, block, BLOCK, at);
		MARK(2);
		if (got != BLOCK)
			trouble("read");
	}
	MARK(3);
	return 0;
}
