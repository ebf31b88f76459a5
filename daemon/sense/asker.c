// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A ring of questions between the daemon and a thread; see asker.h.
 *
 *	[heard, done)	answered
 *	[done, head)	waiting; the first one may be under way
 */
#include "sense/asker.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

struct question {
	struct mount mount;
	struct asker_answer answer;
};

struct asker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake, answered;
	bool stop, away;
	bool orphan;		/* the thread is alone with all this, and frees it */
	uint32_t heard, done, head;
	struct question ring[ASKER_QUESTIONS];
	struct question now;	/* the thread's own */
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
int asker_open_inode(const struct mount *m, const struct file_id *id)
{
	union {
		struct file_handle handle;
		char room[sizeof(struct file_handle) + 16];
	} u;
	uint32_t inode = (uint32_t)id->inode;
	int root = open_root(m->path, id->dev), fd;

	if (root < 0)
		return root;
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
	close(root);
	return fd;
}

static void answer(struct question *q)
{
	int fd = asker_open_inode(&q->mount, &q->answer.id), nr = 0;

	if (fd >= 0) {
		nr = extents_of(fd, &q->mount.stack, q->answer.extent, ASKER_EXTENTS, &q->answer.stats);
		close(fd);
	}
	q->answer.nr = nr > 0 ? (uint32_t)nr : 0;
}

/* ---- the thread ----------------------------------------------------------------------------- */

static void release(struct asker *a)
{
	pthread_cond_destroy(&a->answered);
	pthread_cond_destroy(&a->wake);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

static void *run(void *arg)
{
	struct asker *a = arg;
	bool orphan;

	pthread_mutex_lock(&a->lock);
	while (!a->stop) {
		if (a->done == a->head) {
			pthread_cond_wait(&a->wake, &a->lock);
			continue;
		}
		a->now = a->ring[a->done % ASKER_QUESTIONS];
		a->away = true;
		pthread_mutex_unlock(&a->lock);
		answer(&a->now);
		pthread_mutex_lock(&a->lock);
		a->away = false;
		a->ring[a->done++ % ASKER_QUESTIONS] = a->now;
		pthread_cond_signal(&a->answered);
	}
	orphan = a->orphan;
	pthread_mutex_unlock(&a->lock);
	if (orphan)
		release(a);
	return NULL;
}

/* ---- the daemon's side ------------------------------------------------------------------------ */

bool asker_ask(struct asker *a, const struct mount *m, const struct file_id *id)
{
	bool room;

	pthread_mutex_lock(&a->lock);
	room = a->head - a->heard < ASKER_QUESTIONS;
	if (room) {
		struct question *q = &a->ring[a->head++ % ASKER_QUESTIONS];

		memset(q, 0, sizeof(*q));
		q->mount = *m;
		q->answer.id = *id;
		q->answer.stack = m->stack;
		pthread_cond_signal(&a->wake);
	}
	pthread_mutex_unlock(&a->lock);
	return room;
}

bool asker_hear(struct asker *a, uint64_t until_ns, struct asker_answer *out)
{
	const struct timespec until = {
		.tv_sec = (time_t)(until_ns / 1000000000), .tv_nsec = (long)(until_ns % 1000000000),
	};
	bool got;

	pthread_mutex_lock(&a->lock);
	while (a->heard == a->done && a->done != a->head &&
	       !pthread_cond_clockwait(&a->answered, &a->lock, CLOCK_MONOTONIC, &until))
		;
	got = a->heard != a->done;
	if (got)
		*out = a->ring[a->heard++ % ASKER_QUESTIONS].answer;
	pthread_mutex_unlock(&a->lock);
	return got;
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
