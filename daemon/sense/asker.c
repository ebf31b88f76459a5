// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Questions that go between the daemon and a thread; see asker.h.  Each is in one hand at a time:
 *
 *	FREE -> WAITING		asker_ask()
 *	WAITING -> UNDER_WAY	the thread: the first of the urgent ones, else the first
 *	UNDER_WAY -> ANSWERED	the thread
 *	ANSWERED -> FREE	asker_hear()
 */
#include "sense/asker.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define QUESTIONS	(ASKER_URGENT + ASKER_PATIENT)

struct question {
	enum { FREE, WAITING, UNDER_WAY, ANSWERED } state;
	uint64_t serial;	/* in the order in which it came to be so */
	struct mount mount;
	struct asker_answer answer;
};

struct asker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake, answered;
	bool stop, away;
	bool orphan;		/* the thread is alone with all this, and frees it */
	uint64_t serial;
	struct question question[QUESTIONS];
};

/* ---- asking -------------------------------------------------------------------------------- */

/* An open folder, if the filesystem there is still @dev. */
static int open_root(const char *path, uint32_t dev)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && (major(st.st_dev) << 20 | minor(st.st_dev)) == dev)
		return fd;
	close(fd);
	return -ESTALE;
}

/*
 * Handles as ext4 and xfs make them: inode and generation; xfs with 64-bit inodes of its own type.
 * A wrong guess is refused by the filesystem (ESTALE), not taken for another file: the generation
 * has to be right.  No O_NOATIME: that is for a file's owner alone, and FIEMAP is no access.
 */
static int open_inode(const struct mount *m, const struct file_id *id)
{
	union {
		struct file_handle handle;
		char room[sizeof(struct file_handle) + 16];
	} u;
	uint32_t inode = (uint32_t)id->inode;
	int root = open_root(m->path, id->dev), fd;

	if (root < 0)
		return -ENODEV;
	memset(&u, 0, sizeof(u));
	if (m->xfs) {
		u.handle.handle_type = 0x81;	/* XFS: FILEID_INO32_GEN | 64 bits */
		u.handle.handle_bytes = 12;
		memcpy(u.handle.f_handle, &id->inode, 8);
		memcpy(u.handle.f_handle + 8, &id->generation, 4);
	} else {
		u.handle.handle_type = 1;	/* FILEID_INO32_GEN */
		u.handle.handle_bytes = 8;
		memcpy(u.handle.f_handle, &inode, 4);
		memcpy(u.handle.f_handle + 4, &id->generation, 4);
	}
	fd = open_by_handle_at(root, &u.handle, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		fd = -errno;
	close(root);
	return fd;
}

/* A name that is not known any more ends in " (deleted)". */
static void note_path(struct asker_answer *a, int fd)
{
	char link[32];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, a->path, sizeof(a->path) - 1);
	a->path[n > 0 && n < (ssize_t)sizeof(a->path) - 1 ? n : 0] = 0;
}

static void answer(struct question *q)
{
	struct asker_answer *a = &q->answer;
	int fd = open_inode(&q->mount, &a->id), nr;

	if (fd < 0) {
		a->err = fd;
		return;
	}
	note_path(a, fd);
	nr = extents_all(fd, &q->mount.stack, &a->extent, &a->stats);
	close(fd);
	a->nr = nr > 0 ? (uint32_t)nr : 0;
	a->err = nr < 0 ? nr : 0;
}

/* ---- the thread ----------------------------------------------------------------------------- */

static void release(struct asker *a)
{
	for (uint32_t i = 0; i < QUESTIONS; i++)
		free(a->question[i].answer.extent);
	pthread_cond_destroy(&a->answered);
	pthread_cond_destroy(&a->wake);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

/* The first in this state; called locked. */
static struct question *first(struct asker *a, int state)
{
	struct question *best = NULL;

	for (uint32_t i = 0; i < QUESTIONS; i++) {
		struct question *q = &a->question[i];
		const bool urgent = q->answer.urgent && state == WAITING;

		if ((int)q->state != state)
			continue;
		if (!best || (urgent && !best->answer.urgent) ||
		    (q->serial < best->serial && (urgent || state != WAITING || !best->answer.urgent)))
			best = q;
	}
	return best;
}

static void becomes(struct asker *a, struct question *q, int state)
{
	q->state = state;
	q->serial = ++a->serial;
}

static void *run(void *arg)
{
	struct asker *a = arg;
	bool orphan;

	pthread_mutex_lock(&a->lock);
	while (!a->stop) {
		struct question *q = first(a, WAITING);

		if (!q) {
			pthread_cond_wait(&a->wake, &a->lock);
			continue;
		}
		becomes(a, q, UNDER_WAY);
		a->away = true;
		pthread_mutex_unlock(&a->lock);
		answer(q);
		pthread_mutex_lock(&a->lock);
		a->away = false;
		becomes(a, q, ANSWERED);
		pthread_cond_signal(&a->answered);
	}
	orphan = a->orphan;
	pthread_mutex_unlock(&a->lock);
	if (orphan)
		release(a);
	return NULL;
}

/* ---- the daemon's side ------------------------------------------------------------------------ */

bool asker_ask(struct asker *a, const struct mount *m, const struct file_id *id, bool urgent)
{
	uint32_t room = urgent ? ASKER_URGENT : ASKER_PATIENT;
	struct question *q;

	pthread_mutex_lock(&a->lock);
	for (uint32_t i = 0; i < QUESTIONS; i++)
		room -= a->question[i].state != FREE && a->question[i].answer.urgent == urgent;
	q = room ? first(a, FREE) : NULL;
	if (q) {
		q->mount = *m;
		q->answer = (struct asker_answer){ .id = *id, .stack = m->stack, .urgent = urgent };
		becomes(a, q, WAITING);
		pthread_cond_signal(&a->wake);
	}
	pthread_mutex_unlock(&a->lock);
	return q;
}

/* Whether an answer will come; called locked. */
static bool any_asked(struct asker *a)
{
	return a->away || first(a, WAITING);
}

bool asker_hear(struct asker *a, uint64_t until_ns, struct asker_answer *out)
{
	const struct timespec until = {
		.tv_sec = (time_t)(until_ns / 1000000000), .tv_nsec = (long)(until_ns % 1000000000),
	};
	struct question *q;

	pthread_mutex_lock(&a->lock);
	while (!(q = first(a, ANSWERED)) && any_asked(a) &&
	       !pthread_cond_clockwait(&a->answered, &a->lock, CLOCK_MONOTONIC, &until))
		;
	if (q) {
		*out = q->answer;
		memset(&q->answer, 0, sizeof(q->answer));
		q->state = FREE;
	}
	pthread_mutex_unlock(&a->lock);
	return q;
}

int asker_open(struct asker **out)
{
	struct asker *a = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return -ENOMEM;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->wake, NULL);
	pthread_cond_init(&a->answered, NULL);
	err = pthread_create(&a->thread, NULL, run, a);
	if (err) {
		release(a);
		return -err;
	}
	*out = a;
	return 0;
}

void asker_close(struct asker *a)
{
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	a->orphan = a->away;
	if (a->orphan) {
		pthread_detach(a->thread);
		pthread_mutex_unlock(&a->lock);
		return;
	}
	pthread_cond_signal(&a->wake);
	pthread_mutex_unlock(&a->lock);
	pthread_join(a->thread, NULL);
	release(a);
}
