// SPDX-License-Identifier: GPL-2.0-or-later
/* See errand.h. */
#include "sense/errand.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct errand {
	void (*run)(void *arg);
	void (*drop)(void *arg);
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake, ended;
	bool stop, away;
	bool orphan;		/* the thread is alone with all this, and frees it */
	bool done;
	void *arg;		/* NULL: nothing to do */
};

static void release(struct errand *e)
{
	if (e->arg)
		e->drop(e->arg);
	pthread_cond_destroy(&e->ended);
	pthread_cond_destroy(&e->wake);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

static void *run(void *arg)
{
	struct errand *e = arg;
	bool orphan;

	pthread_mutex_lock(&e->lock);
	while (!e->stop) {
		if (!e->arg || e->done) {
			pthread_cond_wait(&e->wake, &e->lock);
			continue;
		}
		e->away = true;
		pthread_mutex_unlock(&e->lock);
		e->run(e->arg);
		pthread_mutex_lock(&e->lock);
		e->away = false;
		e->done = true;
		pthread_cond_signal(&e->ended);
	}
	orphan = e->orphan;
	pthread_mutex_unlock(&e->lock);
	if (orphan)
		release(e);
	return NULL;
}

bool errand_start(struct errand *e, void *arg)
{
	bool free_now;

	pthread_mutex_lock(&e->lock);
	free_now = !e->arg;
	if (free_now) {
		e->arg = arg;
		pthread_cond_signal(&e->wake);
	}
	pthread_mutex_unlock(&e->lock);
	return free_now;
}

void *errand_ended(struct errand *e, uint64_t until_ns)
{
	const struct timespec until = {
		.tv_sec = (time_t)(until_ns / 1000000000), .tv_nsec = (long)(until_ns % 1000000000),
	};
	void *arg = NULL;

	pthread_mutex_lock(&e->lock);
	while (e->arg && !e->done && !pthread_cond_clockwait(&e->ended, &e->lock, CLOCK_MONOTONIC, &until))
		;
	if (e->done) {
		arg = e->arg;
		e->arg = NULL;
		e->done = false;
	}
	pthread_mutex_unlock(&e->lock);
	return arg;
}

int errand_open(void (*fn)(void *arg), void (*drop)(void *arg), struct errand **out)
{
	struct errand *e = calloc(1, sizeof(*e));
	int err;

	if (!e)
		return -ENOMEM;
	e->run = fn;
	e->drop = drop;
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->wake, NULL);
	pthread_cond_init(&e->ended, NULL);
	err = pthread_create(&e->thread, NULL, run, e);
	if (err) {
		release(e);
		return -err;
	}
	*out = e;
	return 0;
}

void errand_close(struct errand *e)
{
	pthread_mutex_lock(&e->lock);
	e->stop = true;
	e->orphan = e->away;
	if (e->orphan) {
		pthread_detach(e->thread);
		pthread_mutex_unlock(&e->lock);
		return;
	}
	pthread_cond_signal(&e->wake);
	pthread_mutex_unlock(&e->lock);
	pthread_join(e->thread, NULL);
	release(e);
}
