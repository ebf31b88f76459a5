/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the programs that measure have in common: blocks of 4 KiB through io_uring,
 * the clock, numbers at random that are the same in every run, marks for ../plugin.h.
 */
#ifndef BENCH_BLOCKS_H
#define BENCH_BLOCKS_H

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

#define MARK(n) __asm__ volatile(".byte 0x0f, 0x1f, 0x80, 0xe0 + " #n ", 0xac, 0x44, 0x7e" ::: "memory")

static inline void trouble(const char *text, int error)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, text, strerror(error));
	exit(1);
}

static inline uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static inline uint64_t rnd(uint64_t *state, uint64_t below)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (*state >> 20) % below;
}

/* A block to write, or to read into. */
static inline void *block_new(void)
{
	void *data = aligned_alloc(BLOCK, BLOCK);

	if (!data)
		trouble("memory", ENOMEM);
	return memset(data, 0x5a, BLOCK);
}

static inline int open_direct(const char *device)
{
	int fd = open(device, O_RDWR | O_DIRECT | O_CLOEXEC);

	if (fd < 0)
		trouble(device, errno);
	return fd;
}

static inline void ring_open(struct io_uring *ring, unsigned int depth)
{
	int err = io_uring_queue_init(depth, ring, 0);

	if (err)
		trouble("io_uring", -err);
}

/* Waits for one that has ended, which must have been a whole block. */
static inline void ring_reap(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	int err = io_uring_wait_cqe(ring, &cqe);

	if (err)
		trouble("wait", -err);
	if (cqe->res != BLOCK)
		trouble("I/O", cqe->res < 0 ? -cqe->res : EIO);
	io_uring_cqe_seen(ring, cqe);
}

#endif
