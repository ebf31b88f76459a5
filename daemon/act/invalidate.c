// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A ring of dead ranges between the daemon and a thread that trims; see invalidate.h.
 *
 *	[done, taken)	trimmed or given up: their marks are taken back by the daemon
 *	[taken, head)	waiting; those of one filesystem that are old enough are a batch
 *
 * The thread never touches the control device, the daemon never a filesystem.  Nor does the daemon wait for the thread:
 * syncfs may take minutes, and other volumes go on.
 *
 * xfs (6.1) does not cut its free extents to the range: it discards each that overlaps, whole. That is
 * free space all the same; but it costs more than was asked for, and hides what was not free yet.
 *
 * It also walks all free extents of a group for each trim, the longest first, down to the least length it is asked
 * for. What a dead range has become is at least as long as the range, so that is asked for: on a fragmented
 * filesystem hardly any are. Where part of the range is in use again there may be none; tried again, all are looked at.
 */
#include "act/invalidate.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "act/device.h"

#define RING	16384u	/* ranges; a power of two */
#define BATCH	1024u
#define TRIES	3	/* freed in the background: a moment later */
#define SETTLED	255	/* as `tries`: all of it was free; or the trim was refused, and would be again */
#define BLOCK	4096u
#define LEAST	(16u << 20)	/* free extents of more are looked at in any case: ext4 allows no more than a group */

struct item {
	struct dead_range range;
	uint64_t at_ns;
	uint32_t dev;
	uint8_t path, tries;
	bool banned;
};

struct invalidate {
	struct port *port;
	struct invalidate_config c;
	struct invalidate_counts counts;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stop;
	bool away;		/* the thread has a batch */
	bool orphan;		/* the thread is alone with all this, and frees it */
	char path[16][INVALIDATE_PATH];
	uint64_t done, taken, head;
	struct item ring[RING];
	struct item batch[BATCH];	/* the thread's own */
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* ---- the thread --------------------------------------------------------------------------- */

static int open_root(const char *path, uint32_t dev)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = -ESTALE;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && (major(st.st_dev) << 20 | minor(st.st_dev)) == dev)
		return fd;
	close(fd);
	return err;
}

static int by_place(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return x->range.physical < y->range.physical ? -1 : x->range.physical > y->range.physical;
}

static bool stopped(struct invalidate *i)
{
	bool stop;

	pthread_mutex_lock(&i->lock);
	stop = i->stop;
	pthread_mutex_unlock(&i->lock);
	return stop;
}

/* Trims [from, +bytes), where free extents are no shorter than @least; what was free of it, or -errno. */
static int64_t trim(int fd, uint64_t from, uint64_t bytes, uint64_t least)
{
	struct fstrim_range range = { .start = from, .len = bytes, .minlen = least };

	return ioctl(fd, FITRIM, &range) ? -errno : (int64_t)range.len;
}

/* Items of one filesystem, sorted: those that follow each other are one trim. */
static void trim_all(struct invalidate *i, int fd, struct item *item, uint32_t nr)
{
	for (uint32_t n = 0; n < nr && !stopped(i);) {
		uint64_t from = item[n].range.physical, bytes = 0;
		bool again = false;
		uint32_t first = n;
		int64_t got;

		while (n < nr && item[n].range.physical == from + bytes) {
			again |= item[n].tries > 0;
			bytes += item[n++].range.nr * BLOCK;
		}
		got = trim(fd, from, bytes, again ? 0 : bytes < LEAST ? bytes : LEAST);
		for (uint32_t k = first; k < n; k++)
			item[k].tries = got >= 0 && (uint64_t)got < bytes ? item[k].tries + 1 : SETTLED;
		pthread_mutex_lock(&i->lock);
		i->counts.trims++;
		if (got < 0) {
			i->counts.errors++;
			i->counts.last_error = (int)got;
		} else {
			i->counts.trimmed_bytes += (uint64_t)got < bytes ? (uint64_t)got : bytes;
			i->counts.beside_bytes += (uint64_t)got > bytes ? (uint64_t)got - bytes : 0;
		}
		pthread_mutex_unlock(&i->lock);
	}
}

static void work(struct invalidate *i, struct item *item, uint32_t nr, const char *path)
{
	int fd = open_root(path, item[0].dev), err = 0;

	/* The deletion has to be on disk before its blocks are free. */
	if (fd < 0 || syncfs(fd))
		err = fd < 0 ? fd : -errno;
	qsort(item, nr, sizeof(*item), by_place);
	if (!err)
		trim_all(i, fd, item, nr);
	if (fd >= 0)
		close(fd);
	pthread_mutex_lock(&i->lock);
	i->counts.batches++;
	if (err) {
		i->counts.errors++;
		i->counts.last_error = err;
	}
	pthread_mutex_unlock(&i->lock);
}

/*
 * The oldest, when its time has come, and with it all that follow of its filesystem: each batch costs a syncfs.  Called
 * locked.  What is tried again waits for its own time.
 */
static uint32_t take(struct invalidate *i, uint64_t now)
{
	uint32_t n = 0;

	while (n < BATCH && i->taken + n < i->head) {
		const struct item *one = &i->ring[(i->taken + n) % RING];

		if (one->dev != i->ring[i->taken % RING].dev ||
		    ((!n || one->tries) && now - one->at_ns < (uint64_t)i->c.wait_ms * 1000000))
			break;
		i->batch[n++] = *one;
	}
	return n;
}

/* Called locked.  What was not free yet goes to the end of the ring, if there is room.  Marks may have been taken back meanwhile. */
static void settle(struct invalidate *i, uint32_t nr)
{
	uint64_t now = now_ns();

	for (uint32_t k = 0; k < nr; k++) {
		struct item *one = &i->batch[k];

		one->banned = i->ring[(i->taken + k) % RING].banned;
		if (one->tries && one->tries <= TRIES && i->head - i->done < RING) {
			i->counts.again++;
			one->at_ns = now;
			i->ring[i->head++ % RING] = *one;
			one->banned = false;	/* not taken back yet */
		} else if (one->tries != SETTLED) {
			i->counts.left++;	/* in use after all, or nobody could ask */
		}
		i->ring[(i->taken + k) % RING] = *one;
	}
	i->taken += nr;
}

static void release(struct invalidate *i)
{
	pthread_cond_destroy(&i->wake);
	pthread_mutex_destroy(&i->lock);
	free(i);
}

static void *run(void *arg)
{
	struct invalidate *i = arg;
	bool orphan;

	pthread_mutex_lock(&i->lock);
	while (!i->stop) {
		uint32_t nr = i->c.trim ? take(i, now_ns()) : 0;
		char path[INVALIDATE_PATH];

		if (!nr) {
			pthread_cond_wait(&i->wake, &i->lock);
			continue;
		}
		memcpy(path, i->path[i->batch[0].path], sizeof(path));
		i->away = true;
		pthread_mutex_unlock(&i->lock);
		work(i, i->batch, nr, path);
		pthread_mutex_lock(&i->lock);
		i->away = false;
		settle(i, nr);
	}
	orphan = i->orphan;
	pthread_mutex_unlock(&i->lock);
	if (orphan)
		release(i);
	return NULL;
}

/* ---- the daemon's side ------------------------------------------------------------------------ */

static uint8_t path_number(struct invalidate *i, const char *path)
{
	int n = 0;

	while (n < 15 && i->path[n][0] && strcmp(i->path[n], path))
		n++;
	snprintf(i->path[n], sizeof(i->path[n]), "%s", path);
	return (uint8_t)n;
}

/* Called locked. */
static void take_back(struct invalidate *i, struct item *one)
{
	if (!one->banned)
		return;
	one->banned = false;
	device_range(i->port, TERRACE_RANGE_CLEAR, one->range.block, one->range.nr);
	i->c.banned(i->c.ctx, one->range.block, one->range.nr, false);
}

/*
 * Called locked.  Of these ranges some have died again, while they wait to be trimmed for the time before: their marks
 * are the new ones' now, and do not end with the old ones.
 */
static void hand_over(struct invalidate *i, const struct dead_range *r, uint32_t nr)
{
	uint64_t first = UINT64_MAX, end = 0;

	for (uint32_t k = 0; k < nr; k++) {
		first = r[k].block < first ? r[k].block : first;
		end = r[k].block + r[k].nr > end ? r[k].block + r[k].nr : end;
	}
	for (uint64_t at = i->done; at < i->head; at++) {
		struct item *one = &i->ring[at % RING];

		if (!one->banned || one->range.block >= end || one->range.block + one->range.nr <= first)
			continue;
		for (uint32_t k = 0; one->banned && k < nr; k++)
			if (one->range.block < r[k].block + r[k].nr && r[k].block < one->range.block + one->range.nr)
				take_back(i, one);
	}
}

void invalidate_add(struct invalidate *i, const char *path, uint32_t dev, const struct dead_range *r,
		    uint32_t nr)
{
	pthread_mutex_lock(&i->lock);
	hand_over(i, r, nr);
	for (uint32_t k = 0; (i->c.ban || i->c.trim) && k < nr; k++) {
		struct item *one = &i->ring[i->head % RING];
		const bool ban = i->c.ban && !r[k].unsure;

		if (i->head - i->done == RING) {
			i->counts.full++;
			continue;
		}
		*one = (struct item){ .range = r[k], .at_ns = now_ns(), .dev = dev, .path = path_number(i, path) };
		one->banned = ban && !device_range(i->port, TERRACE_RANGE_DEAD, r[k].block, r[k].nr);
		i->counts.unbanned += ban && !one->banned;
		if (one->banned)
			i->c.banned(i->c.ctx, r[k].block, r[k].nr, true);
		i->counts.queued++;
		i->counts.asked_bytes += r[k].nr * BLOCK;
		i->head++;
	}
	pthread_mutex_unlock(&i->lock);
}

void invalidate_retune(struct invalidate *i, const struct invalidate_config *c)
{
	pthread_mutex_lock(&i->lock);
	i->c = *c;
	pthread_mutex_unlock(&i->lock);
}

void invalidate_tick(struct invalidate *i)
{
	pthread_mutex_lock(&i->lock);
	/* Without trims, the marks last as long as a trim would have taken to come. */
	while (!i->c.trim && !i->away && i->taken < i->head &&
	       now_ns() - i->ring[i->taken % RING].at_ns >= (uint64_t)i->c.wait_ms * 1000000)
		i->taken++;
	for (; i->done < i->taken; i->done++)
		take_back(i, &i->ring[i->done % RING]);
	pthread_cond_signal(&i->wake);
	pthread_mutex_unlock(&i->lock);
}

void invalidate_unmark(struct invalidate *i)
{
	pthread_mutex_lock(&i->lock);
	for (uint64_t at = i->done; at < i->head; at++)
		take_back(i, &i->ring[at % RING]);
	pthread_mutex_unlock(&i->lock);
}

void invalidate_counts(struct invalidate *i, struct invalidate_counts *out)
{
	pthread_mutex_lock(&i->lock);
	*out = i->counts;
	pthread_mutex_unlock(&i->lock);
}

int invalidate_open(struct port *port, const struct invalidate_config *c, struct invalidate **out)
{
	struct invalidate *i = calloc(1, sizeof(*i));
	int err;

	if (!i)
		return -ENOMEM;
	i->port = port;
	i->c = *c;
	pthread_mutex_init(&i->lock, NULL);
	pthread_cond_init(&i->wake, NULL);
	err = pthread_create(&i->thread, NULL, run, i);
	if (err) {
		free(i);
		return -err;
	}
	*out = i;
	return 0;
}

void invalidate_close(struct invalidate *i)
{
	pthread_mutex_lock(&i->lock);
	i->stop = true;
	i->orphan = i->away;
	if (i->orphan) {
		pthread_detach(i->thread);
		pthread_mutex_unlock(&i->lock);
		return;
	}
	pthread_cond_signal(&i->wake);
	pthread_mutex_unlock(&i->lock);
	pthread_join(i->thread, NULL);
	release(i);
}
