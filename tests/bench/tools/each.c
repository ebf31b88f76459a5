// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * each: what one 4 KiB I/O takes
 *
 *	each DEVICE read|write BLOCKS COUNT DEPTH [STRIDE]
 *
 * COUNT reads or writes at random of BLOCKS blocks, STRIDE bytes apart (4096) from the
 * device's beginning, DEPTH at a time through io_uring, and prints the nanoseconds each took, in tenths. fio's
 * clock shows milliseconds and its own work varies with its version: this does
 * the same instructions every time.
 */
#include "blocks.h"

int main(int argc, char **argv)
{
	uint64_t blocks, count, depth, stride = BLOCK, state = 1, began, busy = 0;
	struct io_uring ring;
	void *data;
	int fd, write;

	if (argc != 6 && argc != 7) {
		fprintf(stderr, "usage: each DEVICE read|write BLOCKS COUNT DEPTH [STRIDE]\n");
		return 2;
	}
	write = !strcmp(argv[2], "write");
	blocks = strtoull(argv[3], NULL, 0);
	count = strtoull(argv[4], NULL, 0);
	depth = strtoull(argv[5], NULL, 0);
	if (argc == 7)
		stride = strtoull(argv[6], NULL, 0);
	if (!blocks || !count || !depth || stride % BLOCK)
		trouble("numbers", EINVAL);
	fd = open_direct(argv[1]);
	data = block_new();
	ring_open(&ring, (unsigned int)depth);
	began = now();
	for (uint64_t k = 0; k < count; k++) {
		struct io_uring_sqe *sqe;
		uint64_t at = rnd(&state, blocks) * stride;

		if (busy == depth) {
			ring_reap(&ring);
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
		ring_reap(&ring);
	printf("%lu\n", (now() - began) * 10 / count);
	free(data);
	return 0;
}
