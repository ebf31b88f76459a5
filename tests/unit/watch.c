// SPDX-License-Identifier: GPL-2.0-or-later
/* Where files lie, as far as that is known when they die: what has been cut or shared meanwhile is not told as a dead file's own. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "policy_lib.h"

#include "sense/finder.h"
#include "sense/lsm.h"
#include "sense/mounts.h"
#include "sense/watch.h"

#define DEV	7u
#define PIECES	3000u

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
		.id = { .inode = first_found++, .generation = 1, .dev = DEV }, .parent = 9, .size = 1 << 20, .name = "000001.sst",
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

const struct mount *mounts_now(struct mounts *ms, uint32_t dev)
{
	(void)ms;
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

static void on_dead(void *ctx, const char *path, const struct file_id *id, const struct extent *extents, uint32_t nr, bool sure)
{
	(void)ctx;
	(void)path;
	(void)id;
	(void)extents;
	told.deaths++;
	told.sure += sure;
	told.nr = nr;
}

static void happens_to(uint64_t inode, uint8_t what, uint32_t flags)
{
	struct terrace_file_event e = {
		.what = what, .inode = inode, .generation = 1, .dev = DEV, .thread = 5, .size = 1 << 20, .flags = flags,
		.name = "000001.sst",
	};

	if (what == TERRACE_FILE_UNLINKED)
		e.size = 0;
	assert_true(queued < sizeof(queue) / sizeof(queue[0]));
	queue[queued++] = e;
}

static void happens(uint8_t what, uint32_t flags)
{
	happens_to(1, what, flags);
}

static void written(uint64_t inode)
{
	happens_to(inode, TERRACE_FILE_CREATED, 0);
	happens_to(inode, TERRACE_FILE_WRITTEN, 0);
	happens_to(inode, TERRACE_FILE_SYNCED, 0);
	happens_to(inode, TERRACE_FILE_CLOSED, 0);
}

static struct watch *watch_one_table(void)
{
	const struct watch_tell tell = { .dead = on_dead };
	struct watch *w;
	char why[200];

	memset(&told, 0, sizeof(told));
	pieces = PIECES;
	asked = 0;
	held = false;
	gone = 0;
	assert_int_equal(watch_open(250, 1, NULL, FILE_PROFILES, &tell, &w, why, sizeof(why)), 0);
	written(1);
	watch_tick(w, false, false);
	assert_int_equal(asked, 1);
	return w;
}

static void dies(struct watch *w)
{
	happens(TERRACE_FILE_UNLINKED, 0);
	happens(TERRACE_FILE_DIED, 0);
	watch_tick(w, false, false);
	assert_int_equal(told.deaths, 1);
	watch_close(w);
}

/* A table in thousands of pieces: all of them are its own. */
static void the_dead_are_told_with_all_their_extents(void **state)
{
	struct watch *w = watch_one_table();

	(void)state;
	dies(w);
	assert_int_equal(told.nr, PIECES);
	assert_int_equal(told.sure, 1);
}

/* Truncated or punched by whom nobody hears closing it: asked again, and what is left is its own. Dead before that: nobody can be sure. */
static void what_was_cut_is_asked_for_again(void **state)
{
	(void)state;
	for (int in_time = 0; in_time <= 1; in_time++) {
		struct watch *w = watch_one_table();

		happens(TERRACE_FILE_CHANGED, 0);
		happens(TERRACE_FILE_CHANGED, 0);
		pieces = 10;
		if (in_time) {
			watch_tick(w, false, false);
			assert_int_equal(asked, 2);
		}
		dies(w);
		assert_int_equal(told.nr, in_time ? 10 : PIECES);
		assert_int_equal(told.sure, in_time);
	}
}

/* Written on, closed and deleted within a tick. */
static void what_was_closed_again_is_not_sure_before_it_is_asked(void **state)
{
	struct watch *w = watch_one_table();

	(void)state;
	happens(TERRACE_FILE_CLOSED, 0);
	dies(w);
	assert_int_equal(told.sure, 0);
}

/* Another file has the same blocks: they outlive this one, also when it is asked for something else later. */
static void what_was_shared_is_not_its_own(void **state)
{
	(void)state;
	for (int again = 0; again <= 1; again++) {
		struct watch *w = watch_one_table();

		happens(TERRACE_FILE_CHANGED, TERRACE_FILE_SHARED);
		if (again)
			happens(TERRACE_FILE_CLOSED, 0);
		for (int i = 0; i < 3; i++)
			watch_tick(w, false, false);
		assert_int_equal(asked, 1 + again);
		dies(w);
		assert_int_equal(told.sure, 0);
	}
}

/* Its filesystem hangs: nobody waits for it, and what happens meanwhile is heard with the answer. */
static void an_answer_may_come_late(void **state)
{
	(void)state;
	for (int what = 0; what < 4; what++) {
		struct watch *w = watch_one_table();

		held = true;
		written(2);
		watch_tick(w, false, false);
		assert_int_equal(asked, 2);
		if (what == 1)
			happens_to(2, TERRACE_FILE_CHANGED, 0);
		else if (what == 2)
			happens_to(2, TERRACE_FILE_CHANGED, TERRACE_FILE_SHARED);
		else if (what == 3)
			happens_to(2, TERRACE_FILE_CLOSED, 0);
		watch_tick(w, false, false);
		/* what was cut is asked once more; should it die before that, nobody can be sure */
		assert_int_equal(asked, what % 2 ? 3 : 2);
		while (nr_asks > 1)
			free(asks[--nr_asks].answer.extent);
		held = false;
		watch_tick(w, false, false);
		assert_int_equal(watch_counts(w)->mapped, 2);
		held = true;
		happens_to(2, TERRACE_FILE_UNLINKED, 0);
		happens_to(2, TERRACE_FILE_DIED, 0);
		watch_tick(w, false, false);
		assert_int_equal(told.deaths, 1);
		assert_int_equal(told.nr, PIECES);
		assert_int_equal(told.sure, what == 0);
		watch_close(w);
	}
}

/* It lay there when it was asked; where it lies now is another's, perhaps. */
static void who_dies_while_it_is_asked_is_trimmed_where_it_is_free(void **state)
{
	struct watch *w = watch_one_table();

	(void)state;
	held = true;
	written(2);
	watch_tick(w, false, false);
	happens_to(2, TERRACE_FILE_UNLINKED, 0);
	happens_to(2, TERRACE_FILE_DIED, 0);
	watch_tick(w, false, false);
	assert_int_equal(told.deaths, 1);
	assert_int_equal(told.nr, 0);
	held = false;
	watch_tick(w, false, false);
	assert_int_equal(told.deaths, 2);
	assert_int_equal(told.nr, PIECES);
	assert_int_equal(told.sure, 0);
	watch_close(w);
}

/* Cut, and deleted before it is asked again: what was its own is trimmed where it is free. */
static void what_cannot_be_asked_any_more_keeps_its_place(void **state)
{
	struct watch *w = watch_one_table();

	(void)state;
	happens(TERRACE_FILE_CHANGED, 0);
	gone = 1;
	watch_tick(w, false, false);
	assert_int_equal(asked, 2);
	assert_int_equal(watch_counts(w)->unmapped, 1);
	dies(w);
	assert_int_equal(told.nr, PIECES);
	assert_int_equal(told.sure, 0);
}

/* However many are closed at once, a tick asks and tells so many; those that find no room are counted. */
static void a_tick_asks_so_many_and_no_more(void **state)
{
	struct watch *w = watch_one_table();

	(void)state;
	held = true;
	pieces = 1;
	for (uint64_t i = 2; i < 2 + 64 + INQUIRIES + 10; i++)
		written(i);
	watch_tick(w, false, false);
	assert_int_equal(asked, 1 + ASKER_PATIENT);
	assert_int_equal(watch_counts(w)->not_asked, 64 + 10);
	held = false;
	watch_tick(w, false, false);
	assert_int_equal(watch_counts(w)->mapped, 1 + INQUIRIES);
	watch_close(w);
	/* in many pieces, each: with later ticks */
	w = watch_one_table();
	for (uint64_t i = 2; i < 12; i++)
		written(i);
	watch_tick(w, false, false);
	assert_in_range(watch_counts(w)->mapped, 2, 3);
	for (int i = 0; i < 10; i++)
		watch_tick(w, false, false);
	assert_int_equal(watch_counts(w)->mapped, 11);
	watch_close(w);
}

/* A death costs what it leaves behind: thousands of them are told in several ticks, in their order, all the same. */
static void a_tick_tells_so_many_deaths_and_no_more(void **state)
{
	struct watch *w = watch_one_table();
	int before, ticks = 0;

	(void)state;
	pieces = 10;
	for (uint64_t i = 2; i < 1002; i++)
		written(i);
	watch_tick(w, false, false);
	assert_int_equal(watch_counts(w)->mapped, 1 + 373);
	while (watch_counts(w)->mapped < 1001)
		watch_tick(w, false, false);
	for (uint64_t i = 2; i < 1002; i++) {
		happens_to(i, TERRACE_FILE_UNLINKED, 0);
		happens_to(i, TERRACE_FILE_DIED, 0);
	}
	do {
		before = told.deaths;
		watch_tick(w, false, false);
		assert_in_range(told.deaths - before, 0, 200);
		ticks++;
	} while (told.deaths > before);
	assert_int_equal(told.deaths, 1000);
	assert_int_equal(told.sure, 1000);
	assert_in_range(ticks, 6, 20);
	watch_close(w);
}

/* What was missed of them may be anything: none is believed before it has been asked again, and who has died is told. */
static void lost_events_are_made_good(void **state)
{
	struct watch *w = watch_one_table();

	(void)state;
	pieces = 5;
	for (uint64_t i = 2; i < 100; i++)
		written(i);
	watch_tick(w, false, false);
	/* the death of one, and that another was cut or shared, are missed; a third is heard to die right after that */
	held = true;
	lost += 3;
	happens_to(3, TERRACE_FILE_UNLINKED, 0);
	happens_to(3, TERRACE_FILE_DIED, 0);
	watch_tick(w, false, false);
	assert_int_equal(told.deaths, 1);
	assert_int_equal(told.nr, 5);
	assert_int_equal(told.sure, 0);
	held = false;
	gone = 2;
	pieces = 3;
	for (int i = 0; i < 20; i++)
		watch_tick(w, false, false);
	assert_int_equal(watch_counts(w)->looked_again, 97);
	assert_int_equal(watch_counts(w)->died_unheard, 1);
	assert_int_equal(told.deaths, 2);
	assert_int_equal(told.nr, 5);
	assert_int_equal(told.sure, 0);
	/* once */
	asked = 0;
	watch_tick(w, false, false);
	assert_int_equal(asked, 0);
	/* and what has been asked is relied upon again */
	happens_to(4, TERRACE_FILE_UNLINKED, 0);
	happens_to(4, TERRACE_FILE_DIED, 0);
	watch_tick(w, false, false);
	assert_int_equal(told.deaths, 3);
	assert_int_equal(told.nr, 3);
	assert_int_equal(told.sure, 1);
	watch_close(w);
}

/* Events are lost while answers are on their way: these are older than that. */
static void an_answer_from_before_a_loss_is_not_believed(void **state)
{
	struct watch *w = watch_one_table();

	(void)state;
	held = true;
	written(2);
	watch_tick(w, false, false);
	lost++;
	watch_tick(w, false, false);
	assert_int_equal(nr_asks, 3);
	for (int i = 1; i < 3; i++)
		free(asks[i].answer.extent);
	nr_asks = 1;
	held = false;
	watch_tick(w, false, false);
	held = true;
	happens_to(2, TERRACE_FILE_UNLINKED, 0);
	happens_to(2, TERRACE_FILE_DIED, 0);
	watch_tick(w, false, false);
	assert_int_equal(told.deaths, 1);
	assert_int_equal(told.nr, PIECES);
	assert_int_equal(told.sure, 0);
	watch_close(w);
}

/* The closing of an output was missed: it has a place all the same, which is not relied upon; nothing more is said of it. */
static void who_was_closed_unheard_has_a_place(void **state)
{
	struct watch *w = watch_one_table();

	(void)state;
	happens_to(2, TERRACE_FILE_CREATED, 0);
	happens_to(2, TERRACE_FILE_WRITTEN, 0);
	watch_tick(w, false, false);
	assert_int_equal(asked, 1);
	lost++;
	watch_tick(w, false, false);
	assert_int_equal(asked, 3);
	happens_to(2, TERRACE_FILE_UNLINKED, 0);
	happens_to(2, TERRACE_FILE_DIED, 0);
	watch_tick(w, false, false);
	assert_int_equal(told.nr, PIECES);
	assert_int_equal(told.sure, 0);
	watch_close(w);
}

/* Fresh ones come first. */
static void what_is_looked_at_again_gives_way(void **state)
{
	struct watch *w = watch_one_table();
	uint32_t fresh = 0;

	(void)state;
	pieces = 1;
	for (uint64_t i = 2; i < 500; i++)
		written(i);
	watch_tick(w, false, false);
	held = true;
	asked = 0;
	lost++;
	watch_tick(w, false, false);
	assert_int_equal(asked, INQUIRIES_FEW);
	for (uint64_t i = 1000; i < 1040; i++)
		written(i);
	watch_tick(w, false, false);
	assert_int_equal(asked, INQUIRIES_FEW + 40);
	for (uint32_t i = INQUIRIES_FEW; i < asked; i++)
		fresh += order[i] >= 1000;
	assert_int_equal(fresh, 40);
	watch_close(w);
}

/* Tables from before the daemon's start have places and are told, a few at a time: fresh ones come first. */
static void who_was_there_before_is_found(void **state)
{
	struct watch *w = watch_one_table();
	uint32_t fresh = 0;

	(void)state;
	assert_int_equal(walks, 1);
	pieces = 1;
	held = true;
	asked = 0;
	first_found = 100;
	nr_found = 50;
	watch_tick(w, false, false);
	assert_int_equal(asked, INQUIRIES_FEW);
	for (uint64_t i = 2; i < 22; i++)
		written(i);
	watch_tick(w, false, false);
	assert_int_equal(asked, INQUIRIES_FEW + 20);
	for (uint32_t i = INQUIRIES_FEW; i < asked; i++)
		fresh += order[i] < 100;
	assert_int_equal(fresh, 20);
	held = false;
	gone = 149;
	watch_tick(w, false, false);
	assert_int_equal(watch_counts(w)->found, 49);
	assert_int_equal(watch_counts(w)->mapped, 21);
	assert_int_equal(watch_counts(w)->unmapped, 0);
	/* those that have a place are not asked again; one that dies is told */
	first_found = 100;
	nr_found = 49;
	asked = 0;
	watch_tick(w, false, false);
	assert_int_equal(nr_found, 0);
	assert_int_equal(asked, 0);
	happens_to(120, TERRACE_FILE_UNLINKED, 0);
	happens_to(120, TERRACE_FILE_DIED, 0);
	watch_tick(w, false, false);
	assert_int_equal(told.nr, 1);
	assert_int_equal(told.sure, 1);
	/* what is closed again lies elsewhere */
	happens_to(121, TERRACE_FILE_CLOSED, TERRACE_FILE_UNSEEN);
	watch_tick(w, false, false);
	assert_int_equal(asked, 1);
	/* after a loss all folders are read again */
	lost++;
	watch_tick(w, false, false);
	assert_int_equal(walks, 2);
	lost++;
	watch_tick(w, false, false);
	assert_int_equal(walks, 2);
	watch_close(w);
}

static uint32_t growing_told;

static void on_growing(void *ctx, const struct file_id *id, const struct bequest *b, bool bottom, const struct extent *extents,
		       uint32_t nr)
{
	(void)ctx;
	(void)b;
	(void)bottom;
	(void)extents;
	assert_int_equal(id->inode, 1);
	growing_told = nr;
}

/* RocksDB deletes what its compactions were writing when it is closed: nobody has asked for that as a whole. */
static void an_output_that_is_not_finished_is_trimmed(void **state)
{
	const struct watch_tell tell = { .dead = on_dead, .growing = on_growing };
	struct watch *w;
	char why[200];

	(void)state;
	memset(&told, 0, sizeof(told));
	asked = 0;
	held = false;
	gone = 0;
	pieces = 10;
	growing_told = 0;
	assert_int_equal(watch_open(250, 1, NULL, FILE_PROFILES, &tell, &w, why, sizeof(why)), 0);
	written(2);
	watch_tick(w, false, false);
	happens(TERRACE_FILE_CREATED, 0);
	happens_to(2, TERRACE_FILE_READ, 0);
	queue[queued - 1].to = TERRACE_FILE_STEP;
	happens(TERRACE_FILE_WRITTEN, 0);
	queue[queued - 1].to = TERRACE_FILE_STEP;
	watch_tick(w, false, false);
	assert_int_equal(growing_told, 10);
	dies(w);
	assert_int_equal(told.nr, 10);
	assert_int_equal(told.sure, 0);
}

static struct {
	int times;
	uint32_t nr;
} log_told;

static void on_log(void *ctx, const struct file_id *id, const struct extent *extents, uint32_t nr)
{
	(void)ctx;
	(void)extents;
	assert_int_equal(id->inode, 1);
	log_told.times++;
	log_told.nr = nr;
}

static void log_grows(struct watch *w, uint64_t to)
{
	happens_to(1, TERRACE_FILE_WRITTEN, 0);
	queue[queued - 1].to = to;
	watch_tick(w, false, false);
}

static struct watch *watch_a_log(void)
{
	const struct watch_tell tell = { .dead = on_dead, .log = on_log };
	struct watch *w;
	char why[200];

	memset(&told, 0, sizeof(told));
	memset(&log_told, 0, sizeof(log_told));
	asked = 0;
	held = false;
	gone = 0;
	pieces = 1024;		/* 4 MiB ahead */
	assert_int_equal(watch_open(250, 1, NULL, FILE_PROFILES, &tell, &w, why, sizeof(why)), 0);
	happens_to(1, TERRACE_FILE_CREATED, 0);
	strcpy(queue[queued - 1].name, "000009.log");
	watch_tick(w, false, false);
	return w;
}

/* RocksDB deletes a log as soon as it has closed it. */
static void a_log_that_dies_when_it_is_closed_is_trimmed(void **state)
{
	struct watch *w = watch_a_log();

	(void)state;
	log_grows(w, TERRACE_FILE_STEP);
	gone = 1;
	happens(TERRACE_FILE_CLOSED, 0);
	dies(w);
	assert_int_equal(told.nr, 1024);
	assert_int_equal(told.sure, 0);
}

/* A log is asked where it lies as soon as it grows, and again when it grows beyond that; and its death is found out. */
static void a_log_is_told_while_it_grows(void **state)
{
	struct watch *w = watch_a_log();

	(void)state;
	assert_int_equal(log_told.times, 0);
	for (uint64_t to = TERRACE_FILE_STEP; to <= 4 << 20; to += TERRACE_FILE_STEP)
		log_grows(w, to);
	assert_int_equal(log_told.times, 1);
	assert_int_equal(log_told.nr, 1024);
	/* beyond that nothing is allocated yet: asked once in a MiB */
	pieces = 0;
	for (uint64_t to = (4 << 20) + TERRACE_FILE_STEP; to <= 8 << 20; to += TERRACE_FILE_STEP)
		log_grows(w, to);
	assert_int_equal(log_told.times, 5);
	assert_int_equal(log_told.nr, 0);
	/* its death is lost */
	pieces = 10;
	gone = 1;
	lost++;
	watch_tick(w, false, false);
	watch_tick(w, false, false);
	assert_int_equal(told.deaths, 1);
	assert_int_equal(watch_counts(w)->died_unheard, 1);
	watch_close(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_dead_are_told_with_all_their_extents),
		cmocka_unit_test(what_was_cut_is_asked_for_again),
		cmocka_unit_test(what_was_closed_again_is_not_sure_before_it_is_asked),
		cmocka_unit_test(what_was_shared_is_not_its_own),
		cmocka_unit_test(an_answer_may_come_late),
		cmocka_unit_test(who_dies_while_it_is_asked_is_trimmed_where_it_is_free),
		cmocka_unit_test(what_cannot_be_asked_any_more_keeps_its_place),
		cmocka_unit_test(a_tick_asks_so_many_and_no_more),
		cmocka_unit_test(a_tick_tells_so_many_deaths_and_no_more),
		cmocka_unit_test(lost_events_are_made_good),
		cmocka_unit_test(an_answer_from_before_a_loss_is_not_believed),
		cmocka_unit_test(who_was_closed_unheard_has_a_place),
		cmocka_unit_test(what_is_looked_at_again_gives_way),
		cmocka_unit_test(who_was_there_before_is_found),
		cmocka_unit_test(an_output_that_is_not_finished_is_trimmed),
		cmocka_unit_test(a_log_is_told_while_it_grows),
		cmocka_unit_test(a_log_that_dies_when_it_is_closed_is_trimmed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
