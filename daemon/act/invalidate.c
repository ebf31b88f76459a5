// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two rings of dead ranges between the daemon and a thread that trims, see invalidate.h: what has just died, and what was
 * not free yet, which waits for four times as long each time, and holds up nothing that is fresh.  Of each
 *
 *	[done, taken)	trimmed or given up: their marks are taken back by the daemon
 *	[taken, head)	waiting; those of one filesystem that are old enough are a batch
 *
 * Each batch costs a syncfs, but on xfs, which forces its log by itself when it is asked to trim.  While batches take long,
 * the next one waits for as long as the last has taken: what dies meanwhile comes together.
 *
 * The thread never touches the control device, the daemon never a filesystem.  Nor does the daemon wait for the thread:
 * syncfs may take minutes, and other volumes go on.
 *
 * xfs (6.1) does not cut its free extents to the range: it discards each that overlaps, whole. That is
 * free space all the same; but it costs more than was asked for, and hides what was not free yet.
 *
 * It also walks all free extents of a group for each trim, the longest first, down to the least length it is asked
 * for. What a dead range has become is at least as long as the range, so that is asked for: on a fragmented
 * filesystem hardly any are. Where part of the range is in use again there may be none; tried again, all are looked at, on
 * xfs those of a 64th: each extent that is looked at takes 230 ns (tests/bench/run trim:large). Of
 * a log, whose end was given up when it was closed, half is long enough. Since the pieces of a table that lies in pieces
 * would each have all longer ones looked at, those that are near each other are one trim.
 */
#include "act/invalidate.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "act/device.h"

#define RING	16384u	/* ranges; a power of two */
#define BATCH	1024u
#define TRIES	3	/* freed in the background: a moment later */
#define SETTLED	255	/* as `tries`: all of it was free; or the trim was refused, and would be again */
#define BLOCK	4096u
#define REST_NS	2000000000ull	/* between two batches at most */
#define SCRAP	64	/* of a dead piece, what is left of it and is not worth looking for by length */
#define LEAST	(16u << 20)	/* free extents of more are looked at in any case: ext4 allows no more than a group */

struct item {
	struct dead_range range;
	uint64_t at_ns;
	uint64_t number;	/* in its ring */
	uint32_t dev;
	uint8_t path, tries;
	bool banned;
	bool was_late;		/* in a batch: of the ring of those that are tried again */
};

struct ring {
	uint64_t done, taken, head;
	struct item item[RING];
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
	uint64_t rests_until_ns;
	char path[16][INVALIDATE_PATH];
	struct ring fresh, late;
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

static uint64_t least(uint64_t bytes)
{
	return bytes < LEAST ? bytes : LEAST;
}

/* Dead ranges that are one trim. */
struct span {
	uint64_t end, bytes;
	uint64_t run, shortest;	/* of those that follow each other: the last, the shortest before it */
	uint64_t widest;	/* gap */
	bool again, unsure;
};

/*
 * Those that follow each other; and where each trim looks through all lengths (@by_length) those with gaps of what is in
 * use, or free and somebody else's to trim, as long as no gap has room for two free extents that are long enough.
 */
static bool joins(const struct span *s, const struct dead_range *r, bool by_length)
{
	const uint64_t gap = r->physical - s->end, widest = gap > s->widest ? gap : s->widest;

	if (r->physical <= s->end)
		return !gap;
	return by_length && widest <= r->nr * BLOCK && widest <= s->run && widest <= s->shortest;
}

static void join(struct span *s, const struct item *one)
{
	const uint64_t gap = one->range.physical - s->end, bytes = one->range.nr * BLOCK;

	if (gap) {
		s->shortest = s->run < s->shortest ? s->run : s->shortest;
		s->widest = gap > s->widest ? gap : s->widest;
		s->run = 0;
	}
	s->run += bytes;
	s->bytes += bytes;
	s->end = one->range.physical + bytes;
	s->again |= one->tries > 0;
	s->unsure |= one->range.unsure;
}

static uint64_t least_of(const struct span *s, bool by_length)
{
	const uint64_t bytes = s->run < s->shortest ? s->run : s->shortest;

	if (s->again)
		return by_length ? least(bytes) / SCRAP : 0;
	return least(s->unsure ? bytes / 2 : bytes);
}

/* Items of one filesystem, sorted. */
static void trim_all(struct invalidate *i, int fd, struct item *item, uint32_t nr, bool by_length)
{
	for (uint32_t n = 0; n < nr && !stopped(i);) {
		const uint64_t from = item[n].range.physical;
		struct span s = { .end = from, .shortest = UINT64_MAX };
		uint32_t first = n;
		int64_t got;

		while (n < nr && joins(&s, &item[n].range, by_length))
			join(&s, &item[n++]);
		got = trim(fd, from, s.end - from, least_of(&s, by_length));
		for (uint32_t k = first; k < n; k++)
			item[k].tries = got >= 0 && (uint64_t)got < s.bytes ? item[k].tries + 1 : SETTLED;
		pthread_mutex_lock(&i->lock);
		i->counts.trims++;
		if (got < 0) {
			i->counts.errors++;
			i->counts.last_error = (int)got;
		} else {
			i->counts.trimmed_bytes += (uint64_t)got < s.bytes ? (uint64_t)got : s.bytes;
			i->counts.beside_bytes += (uint64_t)got > s.bytes ? (uint64_t)got - s.bytes : 0;
		}
		pthread_mutex_unlock(&i->lock);
	}
}

static bool is_xfs(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && fs.f_type == XFS_SUPER_MAGIC;
}

/*
 * The deletion has to be on disk before its blocks are free.  Where all that users have written need not go there with it, they
 * are not held up, and nor is the trim.
 */
static int commit(int fd)
{
	return is_xfs(fd) || !syncfs(fd) ? 0 : -errno;
}

static void work(struct invalidate *i, struct item *item, uint32_t nr, const char *path)
{
	int fd = open_root(path, item[0].dev), err = fd < 0 ? fd : commit(fd);

	qsort(item, nr, sizeof(*item), by_place);
	if (!err)
		trim_all(i, fd, item, nr, is_xfs(fd));
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

static uint64_t due_ns(const struct invalidate *i, const struct item *one)
{
	return one->at_ns + ((uint64_t)i->c.wait_ms * 1000000 << (2 * one->tries));
}

static struct item *at(struct ring *r, uint64_t n)
{
	return &r->item[n % RING];
}

/*
 * The oldest, when its time has come, and with it all fresh ones that follow of its filesystem; @dev: of the batch.  Called
 * locked.
 */
static uint32_t take_from(struct invalidate *i, struct ring *r, uint32_t nr, uint32_t dev, uint64_t now)
{
	uint64_t n = r->taken;

	for (; nr < BATCH && n < r->head; n++) {
		const struct item *one = at(r, n);

		if ((nr && one->dev != dev) || ((!nr || r == &i->late) && now < due_ns(i, one)))
			break;
		i->batch[nr] = *one;
		i->batch[nr].number = n;
		i->batch[nr++].was_late = r == &i->late;
		dev = one->dev;
	}
	return nr;
}

static uint32_t take(struct invalidate *i, uint64_t now)
{
	uint32_t nr;

	if (now < i->rests_until_ns)
		return 0;
	nr = take_from(i, &i->fresh, 0, 0, now);
	return take_from(i, &i->late, nr, i->batch[0].dev, now);
}

/*
 * Called locked.  What was not free yet is tried again, if there is room.  Marks may have been taken back meanwhile.  The batch
 * is in the order of places by now.
 */
static void settle(struct invalidate *i, uint32_t nr, uint64_t began)
{
	const uint64_t now = now_ns();

	i->rests_until_ns = now + (now - began < REST_NS ? now - began : REST_NS);
	for (uint32_t k = 0; k < nr; k++) {
		struct item *one = &i->batch[k];
		struct ring *r = one->was_late ? &i->late : &i->fresh;

		one->banned = at(r, one->number)->banned;
		r->taken++;
		if (one->tries && one->tries <= TRIES && i->late.head - i->late.done < RING) {
			i->counts.again++;
			one->at_ns = now;
			*at(&i->late, i->late.head++) = *one;
			one->banned = false;	/* not taken back yet */
		} else if (one->tries != SETTLED) {
			i->counts.left++;	/* in use after all, or nobody could ask */
		}
		*at(r, one->number) = *one;
	}
}

/* When there will be something to take: the thread wakes by itself then, for the next tick is a tenth of a second off. */
static uint64_t next_ns(struct invalidate *i)
{
	uint64_t next = UINT64_MAX;

	if (!i->c.trim)
		return next;
	if (i->fresh.taken < i->fresh.head)
		next = due_ns(i, at(&i->fresh, i->fresh.taken));
	if (i->late.taken < i->late.head && due_ns(i, at(&i->late, i->late.taken)) < next)
		next = due_ns(i, at(&i->late, i->late.taken));
	return next < i->rests_until_ns ? i->rests_until_ns : next;
}

static void wait_for_work(struct invalidate *i)
{
	const uint64_t next = next_ns(i);
	const struct timespec t = { .tv_sec = (time_t)(next / 1000000000), .tv_nsec = (long)(next % 1000000000) };

	if (next == UINT64_MAX)
		pthread_cond_wait(&i->wake, &i->lock);
	else
		pthread_cond_timedwait(&i->wake, &i->lock, &t);
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
		const uint64_t began = now_ns();
		uint32_t nr = i->c.trim ? take(i, began) : 0;
		char path[INVALIDATE_PATH];

		if (!nr) {
			wait_for_work(i);
			continue;
		}
		memcpy(path, i->path[i->batch[0].path], sizeof(path));
		i->away = true;
		pthread_mutex_unlock(&i->lock);
		work(i, i->batch, nr, path);
		pthread_mutex_lock(&i->lock);
		i->away = false;
		settle(i, nr, began);
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
static void hand_over(struct invalidate *i, struct ring *ring, const struct dead_range *r, uint32_t nr)
{
	uint64_t first = UINT64_MAX, end = 0;

	for (uint32_t k = 0; k < nr; k++) {
		first = r[k].block < first ? r[k].block : first;
		end = r[k].block + r[k].nr > end ? r[k].block + r[k].nr : end;
	}
	for (uint64_t n = ring->done; n < ring->head; n++) {
		struct item *one = at(ring, n);

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
	hand_over(i, &i->fresh, r, nr);
	hand_over(i, &i->late, r, nr);
	for (uint32_t k = 0; (i->c.ban || i->c.trim) && k < nr; k++) {
		struct item *one = at(&i->fresh, i->fresh.head);
		const bool ban = i->c.ban && !r[k].unsure;

		if (i->fresh.head - i->fresh.done == RING) {
			i->counts.full++;
			continue;
		}
		*one = (struct item){
			.range = r[k], .at_ns = now_ns(), .dev = dev, .path = path_number(i, path),
		};
		one->banned = ban && !r[k].unmarked && !device_range(i->port, TERRACE_RANGE_DEAD, r[k].block, r[k].nr);
		i->counts.unbanned += ban && !one->banned;
		if (one->banned)
			i->c.banned(i->c.ctx, r[k].block, r[k].nr, true);
		i->counts.queued++;
		i->counts.asked_bytes += r[k].nr * BLOCK;
		i->fresh.head++;
	}
	pthread_mutex_unlock(&i->lock);
}

void invalidate_retune(struct invalidate *i, const struct invalidate_config *c)
{
	pthread_mutex_lock(&i->lock);
	i->c = *c;
	pthread_mutex_unlock(&i->lock);
}

static void take_back_done(struct invalidate *i, struct ring *r)
{
	for (; r->done < r->taken; r->done++)
		take_back(i, at(r, r->done));
}

void invalidate_tick(struct invalidate *i)
{
	pthread_mutex_lock(&i->lock);
	/* Without trims, the marks last as long as a trim would have taken to come. */
	while (!i->c.trim && !i->away && i->fresh.taken < i->fresh.head && now_ns() >= due_ns(i, at(&i->fresh, i->fresh.taken)))
		i->fresh.taken++;
	while (!i->c.trim && !i->away && i->late.taken < i->late.head)
		i->late.taken++;
	take_back_done(i, &i->fresh);
	take_back_done(i, &i->late);
	pthread_cond_signal(&i->wake);
	pthread_mutex_unlock(&i->lock);
}

static void unmark(struct invalidate *i, struct ring *r)
{
	for (uint64_t n = r->done; n < r->head; n++)
		take_back(i, at(r, n));
}

void invalidate_unmark(struct invalidate *i)
{
	pthread_mutex_lock(&i->lock);
	unmark(i, &i->fresh);
	unmark(i, &i->late);
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
	pthread_condattr_t attr;
	int err;

	if (!i)
		return -ENOMEM;
	i->port = port;
	i->c = *c;
	pthread_mutex_init(&i->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&i->wake, &attr);
	pthread_condattr_destroy(&attr);
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
