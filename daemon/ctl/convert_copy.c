// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Filling a new volume with the data of a device.
 *
 *	1  a mark in block 0 of the volume
 *	2  all but the ends, in order, without what is zeros (a new volume reads as
 *	   zeros); after each part a flush, and how far it is goes into the mark
 *	3  both are read and compared; what differs is copied, and read once more
 *	4  the ends: the last MiB, then the first without its first block
 *	5  block 0, in the place of the mark
 *
 * By their ends a filesystem, a RAID or a pool is known. So up to 5 the volume
 * is no copy of anything, nobody mounts it in place of the device by a UUID
 * that both have, and the mark says what it is. Stopped anywhere before 5, the
 * same call goes on at the mark's place; what an earlier call has copied and the
 * device has changed since, 3 finds. After 5 it is complete and durable.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <asm/byteorder.h>

#include "convert.h"
#include "ctl.h"
#include "interrupt.h"
#include "term.h"

#define END_BLOCKS	256u		/* where signatures stand: 1 MiB */
#define CHUNK_BLOCKS	256u
#define PART_BLOCKS	65536u		/* 256 MiB, then the mark */
#define BUFFERS		4u
#define MAGIC		0x1a56434e4f435254ull	/* "TRCONCV" and 0x1a */

/* ---- the mark ------------------------------------------------------------------------------- */

struct mark {
	__le64 magic;
	__le32 version;
	__le32 crc;
	__le64 bytes;		/* of the device */
	__le64 done;		/* blocks up to this one are there, block 0 aside */
	u8 uuid[TERRACE_UUID_BYTES];	/* of the volume: a copy of the mark is no mark */
};

static u32 mark_crc(const void *block)
{
	return tr_block_crc(block, TERRACE_BLOCK_BYTES, offsetof(struct mark, crc));
}

/* What was copied must be durable before: the caller has flushed. */
static int write_mark(const struct convert_copy *c, u64 done)
{
	struct mark *mark = ctl_alloc_blocks(1);
	int r;

	mark->magic = __cpu_to_le64(MAGIC);
	mark->version = __cpu_to_le32(1);
	mark->bytes = __cpu_to_le64(c->source->bytes);
	mark->done = __cpu_to_le64(done);
	memcpy(mark->uuid, c->uuid, TERRACE_UUID_BYTES);
	mark->crc = __cpu_to_le32(mark_crc(mark));
	r = device_write(&c->volume, 0, 1, mark);
	free(mark);
	return r ? r : device_flush(&c->volume);
}

static bool is_mark(const struct convert_copy *c, const struct mark *mark)
{
	return __le64_to_cpu(mark->magic) == MAGIC && __le32_to_cpu(mark->crc) == mark_crc(mark) &&
	       !memcmp(mark->uuid, c->uuid, TERRACE_UUID_BYTES);
}

/* ---- reading the device ----------------------------------------------------------------------- */

/* As device_read(), but the last block may be a part of one: the rest is zeros. */
static int read_source(const struct source *s, u64 block, u64 nr, u8 *buf)
{
	u64 whole = s->bytes / TERRACE_BLOCK_BYTES, nr_whole = nr;
	size_t rest = s->bytes % TERRACE_BLOCK_BYTES;
	int r;

	if (block + nr > whole)
		nr_whole = whole > block ? whole - block : 0;
	r = nr_whole ? device_read(&s->dev, block, nr_whole, buf) : 0;
	if (r || nr_whole == nr)
		return r;
	buf += nr_whole * TERRACE_BLOCK_BYTES;
	memset(buf, 0, (nr - nr_whole) * TERRACE_BLOCK_BYTES);
	return pread(s->dev.fd, buf, TERRACE_BLOCK_BYTES, (off_t)(whole * TERRACE_BLOCK_BYTES)) == (ssize_t)rest ?
	       0 : -EIO;
}

static bool is_zero(const u8 *data, size_t bytes)
{
	return !data[0] && !memcmp(data, data + 1, bytes - 1);
}

/* ---- 2: one thread reads, the other writes ---------------------------------------------------- */

struct reader {
	pthread_t thread;
	sem_t filled, empty;
	const struct source *source;
	u64 first, end;
	bool stop;		/* set before `empty` is posted */
	struct {
		u8 *data;
		u64 nr;
		int r;
	} buffer[BUFFERS];
};

static void wait_for(sem_t *sem)
{
	while (sem_wait(sem) && errno == EINTR)
		;
}

static void *read_ahead(void *arg)
{
	struct reader *rd = arg;
	u32 n = 0;

	for (u64 at = rd->first; at < rd->end; n = (n + 1) % BUFFERS) {
		u64 nr = rd->end - at < CHUNK_BLOCKS ? rd->end - at : CHUNK_BLOCKS;

		wait_for(&rd->empty);
		if (rd->stop)
			break;
		rd->buffer[n].nr = nr;
		rd->buffer[n].r = read_source(rd->source, at, nr, rd->buffer[n].data);
		sem_post(&rd->filled);
		at += nr;
	}
	return NULL;
}

static int reader_begin(struct reader *rd)
{
	int r;

	sem_init(&rd->filled, 0, 0);
	sem_init(&rd->empty, 0, BUFFERS);
	for (u32 i = 0; i < BUFFERS; i++)
		rd->buffer[i].data = ctl_alloc_blocks(CHUNK_BLOCKS);
	r = pthread_create(&rd->thread, NULL, read_ahead, rd);
	if (r)
		ctl_error("no thread to read with: %s", strerror(r));
	return -r;
}

static void reader_end(struct reader *rd)
{
	rd->stop = true;
	sem_post(&rd->empty);
	pthread_join(rd->thread, NULL);
	for (u32 i = 0; i < BUFFERS; i++)
		free(rd->buffer[i].data);
}

/* Runs of blocks that are not zeros. */
static int write_runs(struct convert_copy *c, u64 at, u64 nr, const u8 *data)
{
	u64 first = 0, end;
	int r = 0;

	for (; first < nr && !r; first = end) {
		bool zero = is_zero(data + first * TERRACE_BLOCK_BYTES, TERRACE_BLOCK_BYTES);

		for (end = first + 1; end < nr; end++)
			if (is_zero(data + end * TERRACE_BLOCK_BYTES, TERRACE_BLOCK_BYTES) != zero)
				break;
		if (zero)
			continue;
		r = device_write(&c->volume, at + first, end - first, data + first * TERRACE_BLOCK_BYTES);
		c->copied_blocks += end - first;
	}
	if (r)
		ctl_error("%s: blocks from %llu on cannot be written: %s", c->volume.path, (unsigned long long)at,
			  strerror(-r));
	return r;
}

static int write_all(struct convert_copy *c, struct reader *rd)
{
	const u64 total = c->source->blocks;
	u64 at = rd->first, marked = at;
	int r = 0;

	for (u32 n = 0; at < rd->end && !r; n = (n + 1) % BUFFERS) {
		wait_for(&rd->filled);
		r = rd->buffer[n].r;
		if (r)
			ctl_error("%s: blocks from %llu on cannot be read: %s", c->source->dev.path,
				  (unsigned long long)at, strerror(-r));
		else
			r = write_runs(c, at, rd->buffer[n].nr, rd->buffer[n].data);
		if (r)
			break;
		at += rd->buffer[n].nr;
		sem_post(&rd->empty);
		term_progress("copying", at < rd->end ? at : total, total);
		if (interrupt_seen())
			r = -EINTR;
		if (at - marked < PART_BLOCKS && !r && at < rd->end)
			continue;
		if (!device_flush(&c->volume) && !write_mark(c, at))
			marked = at;
	}
	return r;
}

static int copy_middle(struct convert_copy *c, u64 first, u64 end)
{
	struct reader rd = { .source = c->source, .first = first, .end = end };
	int r;

	if (first >= end)
		return 0;
	r = reader_begin(&rd);
	if (r)
		return r;
	r = write_all(c, &rd);
	reader_end(&rd);
	return r;
}

static int compare_middle(struct convert_copy *c, u64 first, u64 end)
{
	int r;

	if (first >= end)
		return 0;
	r = compare_open(&c->compare, c->source->dev.path, c->volume.path, first, end);
	if (!r)
		r = compare_read(&c->compare);
	if (!r)
		r = compare_settle(&c->compare);
	c->again_bytes = c->compare.again_bytes;
	compare_free(&c->compare);
	return r;
}

/* ---- 4, 5: the ends ------------------------------------------------------------------------------ */

/* Zeros too: the mark goes. Read back from the volume. */
static int copy_end(struct convert_copy *c, u64 first, u64 end)
{
	u64 nr = end > first ? end - first : 0;
	u8 *data = ctl_alloc_blocks(nr), *back = ctl_alloc_blocks(nr);
	int r = nr ? read_source(c->source, first, nr, data) : 0;

	if (r)
		ctl_error("%s: blocks from %llu on cannot be read: %s", c->source->dev.path,
			  (unsigned long long)first, strerror(-r));
	if (!r && nr) {
		r = device_write(&c->volume, first, nr, data);
		if (!r)
			r = device_read(&c->volume, first, nr, back);
		if (!r && memcmp(data, back, nr * TERRACE_BLOCK_BYTES))
			r = -EIO;
		if (!r)
			r = device_flush(&c->volume);
		if (r)
			ctl_error("%s: blocks from %llu on cannot be written: %s", c->volume.path,
				  (unsigned long long)first, strerror(-r));
	}
	c->copied_blocks += r ? 0 : nr;
	free(data);
	free(back);
	return r;
}

int convert_copy(struct convert_copy *c)
{
	const u64 all = c->source->blocks, head = all < END_BLOCKS ? all : END_BLOCKS;
	const u64 tail = all - head > END_BLOCKS ? all - END_BLOCKS : head;
	const u64 first = c->done > head && c->done <= tail ? c->done : head;
	int r = write_mark(c, first);

	if (r)
		ctl_error("%s: its first block cannot be written: %s", c->volume.path, strerror(-r));
	if (!r)
		r = copy_middle(c, first, tail);
	if (!r)
		r = compare_middle(c, head, tail);
	if (!r)
		r = copy_end(c, tail, all);
	if (!r)
		r = copy_end(c, 1, head);
	if (!r && source_written(c->source))
		r = -EBUSY;
	return r ? r : copy_end(c, 0, 1);
}

int convert_verify(struct convert_copy *c)
{
	int r = compare_open(&c->compare, c->source->dev.path, c->volume.path, 0,
			     c->source->bytes / TERRACE_BLOCK_BYTES);

	if (!r)
		r = compare_read(&c->compare);
	if (!r && c->compare.nr) {
		ctl_error("%s was filled from %s, and one of them was written to since: %u MiB differ", c->volume.path,
			  c->source->dev.path, c->compare.nr);
		r = -EEXIST;
	}
	compare_free(&c->compare);
	return r;
}

/* ---- what is in it already? ------------------------------------------------------------------------ */

static int begins_alike(const struct convert_copy *c, const u8 *mine, u64 nr)
{
	u8 *theirs = ctl_alloc_blocks(nr);
	int r = read_source(c->source, 0, nr, theirs);

	if (!r)
		r = !memcmp(mine, theirs, nr * TERRACE_BLOCK_BYTES) && !is_zero(mine, nr * TERRACE_BLOCK_BYTES);
	free(theirs);
	return r;
}

int convert_state(struct convert_copy *c, bool empty)
{
	const u64 all = c->source->blocks, nr = all < END_BLOCKS ? all : END_BLOCKS;
	const struct mark *mark;
	int r = CONVERT_OTHER;
	u8 *mine;

	c->done = 0;
	if (c->volume.blocks != all)
		return CONVERT_OTHER;
	mine = ctl_alloc_blocks(nr);
	mark = (const struct mark *)mine;
	r = device_read(&c->volume, 0, nr, mine);
	if (!r && is_mark(c, mark)) {
		r = __le64_to_cpu(mark->bytes) == c->source->bytes ? CONVERT_BEGUN : CONVERT_OTHER;
		c->done = __le64_to_cpu(mark->done);
	} else if (!r && empty) {
		r = CONVERT_EMPTY;
	} else if (!r) {
		r = begins_alike(c, mine, nr);
		r = r < 0 ? r : r ? CONVERT_DONE : CONVERT_OTHER;
	}
	if (r < 0)
		ctl_error("%s cannot be read: %s", c->volume.path, strerror(-r));
	free(mine);
	return r;
}
