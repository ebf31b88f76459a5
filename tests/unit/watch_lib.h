/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The files of a volume, followed by watch.c and asking.c alone: what happens to files waits in `queue`, the filesystem says that each
 * lies in `pieces` extents, and a test has answers held, a file gone, or events lost.
 */
#ifndef TESTS_WATCH_LIB_H
#define TESTS_WATCH_LIB_H

#include "policy_lib.h"

#include "sense/finder.h"
#include "sense/lsm.h"
#include "sense/mounts.h"
#include "sense/watch.h"

#define DEV	7u
#define SIZE	(16u << 20)	/* of a table */

/* The kernel, a filesystem on the volume, and who asks it, as far as they are needed here. */
static lsm_see_fn see;
static void *seer;
static struct terrace_file_event queue[20000];
static uint32_t queued;
static uint64_t lost;
static struct mount mount = { .major = 0, .minor = DEV, .path = "/", .told = true };
static uint32_t pieces, asked;

int lsm_open(struct lsm_sense **out, const int *ignored, lsm_see_fn fn, void *ctx, char *why, size_t bytes)
{
	(void)ignored;
	(void)why;
	(void)bytes;
	see = fn;
	seer = ctx;
	*out = (struct lsm_sense *)&queue;
	return 0;
}

void lsm_mark(struct lsm_sense *l, bool yes)
{
	(void)l;
	(void)yes;
}

void lsm_close(struct lsm_sense *l)
{
	(void)l;
}

int lsm_watch(struct lsm_sense *l, unsigned int major, unsigned int minor, bool on)
{
	(void)l;
	(void)major;
	(void)minor;
	(void)on;
	return 0;
}

int lsm_fd(const struct lsm_sense *l)
{
	(void)l;
	return -1;
}

uint64_t lsm_lost(const struct lsm_sense *l)
{
	(void)l;
	return lost;
}

int lsm_drain(struct lsm_sense *l)
{
	uint32_t n = 0;

	(void)l;
	while (n < queued && see(seer, &queue[n++]))
		;
	memmove(&queue[0], &queue[n], (queued - n) * sizeof(queue[0]));
	queued -= n;
	return 0;
}

void mounts_init(struct mounts *ms, unsigned int major, unsigned int minor, const struct mounts_tell *tell)
{
	(void)major;
	(void)minor;
	ms->tell = *tell;
	ms->mount[0] = mount;
}

void mounts_look(struct mounts *ms)
{
	assert_int_equal(ms->tell.mounted(ms->tell.ctx, &mount), 0);
}

/* What lies in its folders. */
static uint64_t first_found, nr_found;
static int walks;

int finder_open(struct finder **out)
{
	*out = (struct finder *)&queue;
	walks = 0;
	nr_found = 0;
	return 0;
}

void finder_close(struct finder *f)
{
	(void)f;
}

bool finder_walk(struct finder *f, const struct mount *m, uint32_t profiles)
{
	(void)f;
	assert_int_equal(mount_dev(m), DEV);
	assert_int_equal(profiles, FILE_PROFILES);
	walks++;
	return true;
}

bool finder_next(struct finder *f, struct found_file *out)
{
	(void)f;
	if (!nr_found)
		return false;
	*out = (struct found_file){
		.id = { .inode = first_found++, .generation = 1, .dev = DEV }, .parent = 9, .size = SIZE, .name = "000001.sst",
	};
	nr_found--;
	return true;
}

void finder_counts(const struct finder *f, struct finder_counts *out)
{
	(void)f;
	*out = (struct finder_counts){ .walks = (uint64_t)walks };
}

void mounts_round(struct mounts *ms)
{
	(void)ms;
}

/* Devices below have changed, and are none that can be followed: found out when they are looked at. */
static bool drops;

const struct mount *mounts_now(struct mounts *ms, uint32_t dev)
{
	if (drops) {
		drops = false;
		ms->tell.unmounted(ms->tell.ctx, &mount);
		return NULL;
	}
	return dev == DEV ? &mount : NULL;
}

uint32_t mounts_count(const struct mounts *ms)
{
	(void)ms;
	return 1;
}

/* Who is asked: answers are there at once, unless they are held; what has died cannot be asked. */
static struct {
	struct asker_answer answer;
	uint64_t inode;
} asks[200];
static uint32_t nr_asks, order[2000];
static bool held;
static uint64_t gone;	/* this inode has died */

bool asker_ask(struct asker *a, const struct mount *m, const struct file_id *id, bool urgent)
{
	struct asker_answer *one = &asks[nr_asks].answer;

	(void)a;
	if (nr_asks == ASKER_PATIENT)
		return false;
	order[asked++ % 2000] = (uint32_t)id->inode;
	memset(one, 0, sizeof(*one));
	one->id = *id;
	one->stack = m->stack;
	one->urgent = urgent;
	if (id->inode == gone) {
		one->err = -ESTALE;
	} else {
		one->extent = calloc(pieces, sizeof(*one->extent));
		one->nr = pieces;
		for (uint32_t i = 0; i < pieces; i++)
			one->extent[i] = (struct extent){ .block = 2 * i, .nr = 1, .offset = i * 4096ull, .physical = i * 8192ull };
	}
	nr_asks++;
	return true;
}

bool asker_hear(struct asker *a, uint64_t until_ns, struct asker_answer *out)
{
	(void)a;
	(void)until_ns;
	if (held || !nr_asks)
		return false;
	*out = asks[0].answer;
	memmove(&asks[0], &asks[1], --nr_asks * sizeof(asks[0]));
	return true;
}

int asker_open(struct asker **out)
{
	*out = (struct asker *)&queue;
	return 0;
}

void asker_close(struct asker *a)
{
	(void)a;
	for (uint32_t i = 0; i < nr_asks; i++)
		free(asks[i].answer.extent);
	nr_asks = 0;
}

int extents_place(const struct fiemap_extent *fe, const struct stack *stack, struct extent *out, uint32_t most,
		  struct extents_stats *stats)
{
	(void)fe;
	(void)stack;
	(void)out;
	(void)most;
	(void)stats;
	return 0;
}

/* ---- what is told ------------------------------------------------------------------------- */

static struct {
	int deaths, sure;
	uint32_t nr;
} told;

static inline void on_dead(void *ctx, const char *path, const struct file_id *id, const struct extent *extents, uint32_t nr, bool sure)
{
	(void)ctx;
	(void)path;
	(void)id;
	(void)extents;
	told.deaths++;
	told.sure += sure;
	told.nr = nr;
}

static inline void happens_to(uint64_t inode, uint8_t what, uint32_t flags)
{
	struct terrace_file_event e = {
		.what = what, .inode = inode, .generation = 1, .dev = DEV, .thread = 5, .size = SIZE, .flags = flags,
		.name = "000001.sst",
	};

	if (what == TERRACE_FILE_UNLINKED)
		e.size = 0;
	assert_true(queued < sizeof(queue) / sizeof(queue[0]));
	queue[queued++] = e;
}

static inline void happens(uint8_t what, uint32_t flags)
{
	happens_to(1, what, flags);
}

static inline void written(uint64_t inode)
{
	happens_to(inode, TERRACE_FILE_CREATED, 0);
	happens_to(inode, TERRACE_FILE_WRITTEN, 0);
	happens_to(inode, TERRACE_FILE_SYNCED, 0);
	happens_to(inode, TERRACE_FILE_CLOSED, 0);
}

static inline struct watch *watch_with(const struct watch_tell *tell)
{
	struct watch *w;
	char why[200];

	memset(&told, 0, sizeof(told));
	asked = 0;
	held = false;
	drops = false;
	gone = 0;
	assert_int_equal(watch_open(250, 1, NULL, FILE_PROFILES, tell, &w, why, sizeof(why)), 0);
	return w;
}

static inline void dies(struct watch *w)
{
	happens(TERRACE_FILE_UNLINKED, 0);
	happens(TERRACE_FILE_DIED, 0);
	watch_tick(w, false, false);
	assert_int_equal(told.deaths, 1);
	watch_close(w);
}

#endif
