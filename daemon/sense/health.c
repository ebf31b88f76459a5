// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A thread that asks each drive for its SMART log, every EVERY_SECONDS, and for the room inside when that is wanted. An
 * admin command to a drive that hangs takes a minute to fail; the loop only ever takes the last answer.
 */
#include "sense/health.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "nvme_disk.h"
#include "sense/heat.h"
#include "sense/room.h"
#include "sense/smart.h"

#define EVERY_SECONDS	60
#define STACK_BYTES	(128u << 10)	/* all memory is locked */

struct room {
	uint32_t disk;		/* that is asked, as below */
	bool news;		/* that nobody has taken yet */
	struct port_room said;
};

struct watcher {
	struct health health;
	pthread_mutex_t lock;	/* of all below */
	pthread_cond_t called;
	bool stop;
	uint32_t wanted;	/* tiers whose drive is to be asked for its room, a bit each */
	struct room room[TERRACE_MAX_RESULT_TIERS];
	uint32_t disk[TERRACE_HEAT_TIERS];	/* major << 20 | minor; 0: none that tells */
	bool known[TERRACE_HEAT_TIERS];
	struct port_wear wear[TERRACE_HEAT_TIERS];
};

static int ask(uint32_t disk, struct port_wear *out)
{
	struct smart smart;
	int err = disk ? smart_read(disk >> 20, disk & 0xfffff, &smart) : 0;

	if (disk && !err)
		*out = (struct port_wear){
			.written_bytes = smart.written_bytes, .percent_used = smart.percent_used,
			.critical = smart.critical,
		};
	return err;
}

static void look(struct watcher *w)
{
	for (int t = 0; t < TERRACE_HEAT_TIERS; t++) {
		struct port_wear wear;
		int err = ask(w->disk[t], &wear);

		pthread_mutex_lock(&w->lock);
		/* A drive that fails to answer once keeps its last answer. */
		if (w->disk[t] && !err)
			w->wear[t] = wear;
		w->wear[t].error = err;
		w->known[t] |= w->disk[t] && !err;
		pthread_mutex_unlock(&w->lock);
	}
}

static void ask_room(struct watcher *w, uint32_t tier)
{
	struct room *r = &w->room[tier];
	struct port_room said;
	uint32_t disk;
	bool wanted;

	pthread_mutex_lock(&w->lock);
	wanted = w->wanted >> tier & 1;
	w->wanted &= ~(1u << tier);
	disk = r->disk;
	pthread_mutex_unlock(&w->lock);
	if (!wanted)
		return;
	room_read(disk >> 20, disk & 0xfffff, &said);
	pthread_mutex_lock(&w->lock);
	/* Another drive's by now: that one is wanted. */
	if (r->disk == disk) {
		r->said = said;
		r->news = true;
	}
	pthread_mutex_unlock(&w->lock);
}

/* Until then, or until something is wanted. */
static bool rest(struct watcher *w, const struct timespec *until)
{
	int err = 0;
	bool stop;

	pthread_mutex_lock(&w->lock);
	while (!w->stop && !w->wanted && !err)
		err = pthread_cond_timedwait(&w->called, &w->lock, until);
	stop = w->stop;
	pthread_mutex_unlock(&w->lock);
	return !stop;
}

static void destroy(struct watcher *w)
{
	pthread_cond_destroy(&w->called);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

/* Frees all when it has been stopped: nobody else knows of it then. */
static void *watch(void *arg)
{
	struct timespec now, next = { 0 };
	struct watcher *w = arg;

	do {
		for (uint32_t t = 0; t < TERRACE_MAX_RESULT_TIERS; t++)
			ask_room(w, t);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec < next.tv_sec)
			continue;
		look(w);
		clock_gettime(CLOCK_MONOTONIC, &next);
		next.tv_sec += EVERY_SECONDS;
	} while (rest(w, &next));
	destroy(w);
	return NULL;
}

static bool room_answer(struct health *health, uint32_t tier, unsigned int major, unsigned int minor, bool ask,
			struct port_room *out)
{
	struct watcher *w = (struct watcher *)health;
	const uint32_t disk = major << 20 | minor;
	struct room *r;
	bool news;

	if (tier >= TERRACE_MAX_RESULT_TIERS)
		return false;
	r = &w->room[tier];
	pthread_mutex_lock(&w->lock);
	if (r->disk != disk)
		*r = (struct room){ .disk = disk };
	news = r->news;
	*out = r->said;
	r->news = false;
	if (ask) {
		w->wanted |= 1u << tier;
		pthread_cond_signal(&w->called);
	}
	pthread_mutex_unlock(&w->lock);
	return news;
}

static bool last_answer(struct health *health, uint32_t tier, struct port_wear *out)
{
	struct watcher *w = (struct watcher *)health;
	bool known = false;

	if (tier >= TERRACE_HEAT_TIERS)
		return false;
	pthread_mutex_lock(&w->lock);
	known = w->known[tier];
	*out = w->wear[tier];
	pthread_mutex_unlock(&w->lock);
	return known;
}

/* Not waited for: it may be with a drive that hangs. */
static void finish(struct health *health)
{
	struct watcher *w = (struct watcher *)health;

	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->called);
	pthread_mutex_unlock(&w->lock);
}

/* Signals are for the main thread. */
static int start(struct watcher *w)
{
	pthread_attr_t attr;
	sigset_t all, before;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	err = pthread_create(&thread, &attr, watch, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return err;
}

struct health *health_open(unsigned int major, unsigned int minor, bool *unknown)
{
	struct watcher *w = calloc(1, sizeof(*w));
	pthread_condattr_t attr;

	*unknown = false;
	if (!w)
		return NULL;
	*unknown = !tier_disks(major, minor, w->disk);
	for (int t = 0; t < TERRACE_HEAT_TIERS; t++)
		if (w->disk[t] && !nvme_disk_is(w->disk[t] >> 20, w->disk[t] & 0xfffff))
			w->disk[t] = 0;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->called, &attr);
	pthread_condattr_destroy(&attr);
	w->health = (struct health){ .wear = last_answer, .room = room_answer, .close = finish };
	if (!*unknown && !start(w))
		return &w->health;
	destroy(w);
	return NULL;
}
