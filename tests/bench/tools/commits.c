// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * commits: new blocks, so many per fsync
 *
 *	commits DEVICE BLOCKS COUNT PER_SYNC DEPTH [order]
 *
 * Writes COUNT of the device's first BLOCKS blocks of 4 KiB, in random order
 * (`order`: one after the other), no block twice, DEPTH at a time; after every
 * PER_SYNC of them (0: never) it waits for all and calls fsync once. Prints one
 * line of name=value, in nanoseconds: the whole time per write, fsyncs
 * included, the mean fsync, how many, and the longest of them.
 *
 * fio's --fsync=64 is no measure of that: at a queue depth above one it sends
 * many more than one fsync per 64 writes, and its random offsets repeat.
 */
#include <stdbool.h>

#include "blocks.h"

/* The k-th of 0 .. blocks-1 in an order without pattern: a full-period walk. */
static uint32_t *order_of(uint32_t blocks, bool random)
{
	uint32_t *order = malloc(blocks * sizeof(*order));
	uint64_t state = 1;

	if (!order)
		trouble("memory", ENOMEM);
	for (uint32_t k = 0; k < blocks; k++)
		order[k] = k;
	for (uint32_t k = blocks - 1; random && k; k--) {
		uint32_t other = (uint32_t)rnd(&state, k + 1), swap = order[k];

		order[k] = order[other];
		order[other] = swap;
	}
	return order;
}

int main(int argc, char **argv)
{
	uint64_t began, sync_ns = 0, syncs = 0, worst = 0, took;
	uint32_t blocks, count, per_sync, depth, busy = 0;
	struct io_uring ring;
	uint32_t *order;
	void *data;
	int fd;

	if (argc != 6 && (argc != 7 || strcmp(argv[6], "order"))) {
		fprintf(stderr, "usage: commits DEVICE BLOCKS COUNT PER_SYNC DEPTH [order]\n");
		return 2;
	}
	blocks = strtoul(argv[2], NULL, 0);
	count = strtoul(argv[3], NULL, 0);
	per_sync = strtoul(argv[4], NULL, 0);
	depth = strtoul(argv[5], NULL, 0);
	if (!depth || count > blocks)
		trouble("numbers", EINVAL);
	fd = open_direct(argv[1]);
	data = block_new();
	order = order_of(blocks, argc == 6);
	ring_open(&ring, depth);

	began = now();
	for (uint32_t k = 0; k < count; k++) {
		struct io_uring_sqe *sqe;
		uint64_t from;

		if (busy == depth) {
			ring_reap(&ring);
			busy--;
		}
		sqe = io_uring_get_sqe(&ring);
		io_uring_prep_write(sqe, fd, data, BLOCK, (uint64_t)order[k] * BLOCK);
		busy++;
		if (busy == depth || k + 1 == count || (per_sync && (k + 1) % per_sync == 0))
			io_uring_submit(&ring);
		if (!per_sync || (k + 1) % per_sync)
			continue;
		while (busy) {
			ring_reap(&ring);
			busy--;
		}
		from = now();
		if (fsync(fd))
			trouble("fsync", errno);
		took = now() - from;
		worst = took > worst ? took : worst;
		sync_ns += took;
		syncs++;
	}
	while (busy) {
		ring_reap(&ring);
		busy--;
	}
	took = now() - began;
	printf("write=%lu sync=%lu syncs=%lu worst=%lu\n", took / count, syncs ? sync_ns / syncs : 0, syncs, worst);
	return 0;
}
