// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two devices against each other. See compare.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compare.h"
#include "ctl.h"
#include "interrupt.h"
#include "names.h"
#include "term.h"

#define CHUNK_BLOCKS	256		/* 1 MiB */
#define FEW		64		/* chunks that may be left for the end */
#define ROUNDS		8
#define AT_MOST		1024		/* … however fast it is written to */

static u64 blocks_of(const struct compare *c, u64 chunk)
{
	u64 left = c->blocks - c->first - chunk * CHUNK_BLOCKS;

	return left < CHUNK_BLOCKS ? left : CHUNK_BLOCKS;
}

static u64 start_of(const struct compare *c, u64 chunk)
{
	return c->first + chunk * CHUNK_BLOCKS;
}

/* 1: the same, 0: not, -errno after a message. */
static int same(struct compare *c, u64 chunk)
{
	u64 nr = blocks_of(c, chunk);
	int r = device_read(&c->from, start_of(c, chunk), nr, c->a);

	if (r) {
		ctl_error("%s: blocks from %llu on cannot be read: %s",
			  c->from.path, (unsigned long long)start_of(c, chunk), strerror(-r));
		return r;
	}
	r = device_read(&c->to, start_of(c, chunk), nr, c->b);
	if (r) {
		ctl_error("%s: blocks from %llu on cannot be read: %s", c->to.path,
			  (unsigned long long)start_of(c, chunk), strerror(-r));
		return r;
	}
	return !memcmp(c->a, c->b, nr * TERRACE_BLOCK_BYTES);
}

static void keep(struct compare *c, u64 chunk)
{
	if (!(c->nr & (c->nr + 1)))
		c->chunk = ctl_realloc(c->chunk, (2 * (u64)c->nr + 2) * sizeof(*c->chunk));
	c->chunk[c->nr++] = chunk;
}

int compare_read(struct compare *c)
{
	u64 chunks = (c->blocks - c->first + CHUNK_BLOCKS - 1) / CHUNK_BLOCKS;

	for (u64 k = 0; k < chunks; k++) {
		int r = same(c, k);

		if (r < 0)
			return r;
		if (!r)
			keep(c, k);
		if (interrupt_seen())
			return -EINTR;
		term_progress("comparing", k + 1, chunks);
	}
	return 0;
}

/* Those that differed, once more. */
static int read_again(struct compare *c)
{
	u32 n = 0;

	for (u32 i = 0; i < c->nr; i++) {
		int r = same(c, c->chunk[i]);

		if (r < 0)
			return r;
		if (interrupt_seen())
			return -EINTR;
		c->again_bytes += blocks_of(c, c->chunk[i]) * TERRACE_BLOCK_BYTES;
		if (!r)
			c->chunk[n++] = c->chunk[i];
	}
	c->nr = n;
	return 0;
}

static int open_both(struct compare *c, const char *from, const char *to)
{
	int r = device_open(&c->from, from, DEVICE_SHARED);

	if (r)
		return r;
	r = device_open(&c->to, to, DEVICE_SHARED);
	if (r)
		return r;
	/* exclusive it cannot be opened any more: the mirror, or we, have it */
	close(c->to.fd);
	c->to.fd = open(to, O_RDWR | O_DIRECT | O_CLOEXEC);
	if (c->to.fd >= 0)
		return 0;
	r = -errno;
	ctl_error("%s: cannot open: %s", to, strerror(-r));
	return r;
}

int compare_open(struct compare *c, const char *from, const char *to, u64 first, u64 blocks)
{
	memset(c, 0, sizeof(*c));
	c->from.fd = c->to.fd = -1;
	c->first = first;
	c->blocks = blocks;
	c->a = ctl_alloc_blocks(CHUNK_BLOCKS);
	c->b = ctl_alloc_blocks(CHUNK_BLOCKS);
	return open_both(c, from, to);
}

int compare_devices(struct compare *c, const char *from, const char *to, u64 first, u64 blocks)
{
	int r = compare_open(c, from, to, first, blocks);

	if (!r)
		r = compare_read(c);
	for (u32 round = 0; !r && c->nr > FEW && round < ROUNDS; round++)
		r = read_again(c);
	if (!r && c->nr > AT_MOST) {
		ctl_error("%u MiB differ in the copy: more than what is being written can be", c->nr);
		r = -EIO;
	}
	return r;
}

int compare_settle(struct compare *c)
{
	int r = read_again(c);

	for (u32 i = 0; i < c->nr && !r; i++) {
		u64 at = start_of(c, c->chunk[i]), nr = blocks_of(c, c->chunk[i]);

		r = device_read(&c->from, at, nr, c->a);
		if (!r)
			r = device_write(&c->to, at, nr, c->a);
		if (r)
			ctl_error("%s: blocks from %llu on cannot be copied: %s", c->to.path,
				  (unsigned long long)at, strerror(-r));
	}
	if (!r)
		r = read_again(c);
	if (!r && c->nr) {
		ctl_error("%s does not keep what is written to it: %u MiB of it differ after they were written again",
			  c->to.path, c->nr);
		r = -EIO;
	}
	return r ? r : device_flush(&c->to);
}

void compare_free(struct compare *c)
{
	if (c->from.fd > 0)
		device_close(&c->from);
	if (c->to.fd > 0)
		device_close(&c->to);
	free(c->a);
	free(c->b);
	free(c->chunk);
	c->a = c->b = c->chunk = NULL;
	c->from.fd = c->to.fd = -1;
}
