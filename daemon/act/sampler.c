// SPDX-License-Identifier: GPL-2.0-or-later
/* Reading and measuring samples; see sampler.h. */
#include "act/sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>

#define BLOCK		((size_t)TERRACE_BLOCK_BYTES)
#define BYTES		(PORT_SAMPLE_BLOCKS * BLOCK)
#define SLOTS		8u
#define ZSTD_LEVEL	3
#define LITTLE		1.02	/* gain below which there is none */

struct slot {
	uint64_t region;
	uint32_t left;		/* reads; 0: free */
	int error;
	char *data;
};

struct sampler {
	struct io_uring ring;
	char disk[64];
	char *data;
	struct slot slot[SLOTS];
};

/* ---- measuring ----------------------------------------------------------------------- */

static double gain(size_t in, size_t out)
{
	return out && out < in ? (double)in / (double)out : 1;
}

static double lz4_gain(const char *data)
{
	char out[LZ4_COMPRESSBOUND(TERRACE_BLOCK_BYTES)];
	size_t sum = 0;

	for (size_t at = 0; at < BYTES; at += BLOCK) {
		int n = LZ4_compress_default(data + at, out, (int)BLOCK, (int)sizeof(out));

		sum += n > 0 && (size_t)n < BLOCK ? (size_t)n : BLOCK;
	}
	return gain(BYTES, sum);
}

static double zstd_gain(const char *data, size_t bytes, size_t cluster)
{
	static char out[ZSTD_COMPRESSBOUND(PORT_SAMPLE_BLOCKS * TERRACE_BLOCK_BYTES)];
	size_t sum = 0;

	for (size_t at = 0; at < bytes; at += cluster) {
		size_t n = ZSTD_compress(out, sizeof(out), data + at, cluster, ZSTD_LEVEL);

		sum += !ZSTD_isError(n) && n < cluster ? n : cluster;
	}
	return gain(bytes, sum);
}

/* What LZ4 finds nothing in is not worth zstd's time, except to see whether that is so: at its begin and its end, narrowly. */
static bool nothing_in(const char *data, double lz4)
{
	return lz4 < LITTLE && zstd_gain(data, 4 * BLOCK, 4 * BLOCK) < LITTLE &&
	       zstd_gain(data + BYTES - 4 * BLOCK, 4 * BLOCK, 4 * BLOCK) < LITTLE;
}

void sampler_measure(const void *blocks, struct port_gain *out)
{
	out->lz4 = lz4_gain(blocks);
	out->zstd_4 = 1;
	out->zstd_16 = 1;
	if (nothing_in(blocks, out->lz4))
		return;
	out->zstd_4 = zstd_gain(blocks, BYTES, 4 * BLOCK);
	if (out->zstd_4 >= LITTLE)
		out->zstd_16 = zstd_gain(blocks, BYTES, 16 * BLOCK);
}

/* ---- reading --------------------------------------------------------------------------- */

/*
 * The disk is open only while reads are under way (which hold it by themselves): nobody can remove a
 * volume whose disk is open.
 */
int sampler_ask(struct sampler *s, uint64_t region, const uint64_t *blocks)
{
	struct slot *slot = s->slot;
	int disk;

	while (slot < s->slot + SLOTS && slot->left)
		slot++;
	if (slot == s->slot + SLOTS || io_uring_sq_space_left(&s->ring) < PORT_SAMPLE_BLOCKS)
		return -EBUSY;
	disk = open(s->disk, O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (disk < 0)
		return -errno;
	slot->region = region;
	slot->error = 0;
	for (uint32_t i = 0; i < PORT_SAMPLE_BLOCKS; i++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(&s->ring);

		io_uring_prep_read(sqe, disk, slot->data + i * BLOCK, (unsigned int)BLOCK, blocks[i] * BLOCK);
		io_uring_sqe_set_data(sqe, slot);
	}
	slot->left = PORT_SAMPLE_BLOCKS;
	io_uring_submit(&s->ring);
	close(disk);
	return 0;
}

/* 1 when that was the last of its sample. */
static int one_read(struct slot *slot, int result, struct port_gain *out)
{
	if (result != (int)BLOCK)
		slot->error = result < 0 ? result : -EIO;
	if (--slot->left)
		return 0;
	*out = (struct port_gain){ .region = slot->region, .error = slot->error };
	if (!slot->error)
		sampler_measure(slot->data, out);
	return 1;
}

int sampler_gains(struct sampler *s, struct port_gain *out, uint32_t most)
{
	struct io_uring_cqe *cqe;
	uint32_t n = 0;

	while (n < most && !io_uring_peek_cqe(&s->ring, &cqe)) {
		struct slot *slot = io_uring_cqe_get_data(cqe);
		int result = cqe->res;

		io_uring_cqe_seen(&s->ring, cqe);
		n += (uint32_t)one_read(slot, result, &out[n]);
	}
	return (int)n;
}

/* ---- opening ----------------------------------------------------------------------------- */

int sampler_open(struct sampler **out, const char *disk)
{
	struct sampler *s = calloc(1, sizeof(*s));
	int err = -ENOMEM;

	if (!s)
		return err;
	snprintf(s->disk, sizeof(s->disk), "%s", disk);
	s->data = aligned_alloc(BLOCK, SLOTS * BYTES);
	if (s->data)
		err = io_uring_queue_init(SLOTS * PORT_SAMPLE_BLOCKS, &s->ring, 0);
	if (err) {
		free(s->data);
		free(s);
		return err;
	}
	for (uint32_t i = 0; i < SLOTS; i++)
		s->slot[i].data = s->data + i * BYTES;
	*out = s;
	return 0;
}

/* Reads under way end before their memory goes: those of a volume that has gone end with errors. */
void sampler_close(struct sampler *s)
{
	struct io_uring_cqe *cqe;

	for (uint32_t i = 0; i < SLOTS; i++) {
		while (s->slot[i].left && !io_uring_wait_cqe(&s->ring, &cqe)) {
			((struct slot *)io_uring_cqe_get_data(cqe))->left--;
			io_uring_cqe_seen(&s->ring, cqe);
		}
	}
	io_uring_queue_exit(&s->ring);
	free(s->data);
	free(s);
}
