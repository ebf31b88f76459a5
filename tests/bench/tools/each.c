// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * each: what one 4 KiB I/O takes
 *
 *	each DEVICE read|write BLOCKS COUNT DEPTH
 *
 * COUNT reads or writes at random of the device's first BLOCKS blocks, DEPTH at
 * a time through io_uring, and prints the nanoseconds each took, in tenths. fio's
 * clock shows milliseconds and its own work varies with its version: this does
 * the same instructions every time.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 4096

static void trouble(const char *text, int error)
{
	fprintf(stderr, "each: %s: %s\n", text, strerror(error));
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static uint64_t rnd(uint64_t *state, uint64_t below)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (*state >> 20) % below;
}

static void reap(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	int err = io_uring_wait_cqe(ring, &cqe);

	if (err)
		trouble("wait", -err);
	if (cqe->res != BLOCK)
		trouble("I/O", cqe->res < 0 ? -cqe->res : EIO);
	io_uring_cqe_seen(ring, cqe);
}

int main(int argc, char **argv)
{
	uint64_t blocks, count, depth, state = 1, began, busy = 0;
	struct io_uring ring;
	void *data;
	int fd, write, err;

	if (argc != 6) {
		fprintf(stderr, "usage: each DEVICE read|write BLOCKS COUNT DEPTH\n");
		return 2;
	}
	write = !strcmp(argv[2], "write");
	blocks = strtoull(argv[3], NULL, 0);
	count = strtoull(argv[4], NULL, 0);
	depth = strtoull(argv[5], NULL, 0);
	fd = open(argv[1], O_RDWR | O_DIRECT | O_CLOEXEC);
	data = aligned_alloc(BLOCK, BLOCK);
	if (fd < 0 || !data || !blocks || !count || !depth)
		trouble(argv[1], errno ? errno : EINVAL);
	memset(data, 0x5a, BLOCK);
	err = io_uring_queue_init((unsigned int)depth, &ring, 0);
	if (err)
		trouble("io_uring", -err);
	began = now();
	for (uint64_t k = 0; k < count; k++) {
		struct io_uring_sqe *sqe;
		uint64_t at = rnd(&state, blocks) * BLOCK;

		if (busy == depth) {
			reap(&ring);
			busy--;
		}
		sqe = io_uring_get_sqe(&ring);
		if (write)
			io_uring_prep_write(sqe, fd, data, BLOCK, at);
		else
			io_uring_prep_read(sqe, fd, data, BLOCK, at);
		if (++busy == depth || k + 1 == count)
			io_uring_submit(&ring);
	}
	for (; busy; busy--)
		reap(&ring);
	printf("%lu\n", (now() - began) * 10 / count);
	free(data);
	return 0;
}
