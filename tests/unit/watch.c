// SPDX-License-Identifier: GPL-2.0-or-later
/* Where files lie, as far as that is known when they die: what has been cut or shared meanwhile is not told as a dead file's own. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "policy_lib.h"

#include "sense/asker.h"
#include "sense/lsm.h"
#include "sense/mounts.h"
#include "sense/watch.h"

#define DEV	7u
#define PIECES	3000u

/* The kernel, a filesystem on the volume, and who asks it, as far as they are needed here. */
static lsm_see_fn see;
static void *seer;
static struct terrace_file_event queue[64];
static uint32_t queued;
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
	return 0;
}

int lsm_drain(struct lsm_sense *l)
{
	(void)l;
	for (uint32_t i = 0; i < queued; i++)
		see(seer, &queue[i]);
	queued = 0;
	return 0;
}

void mounts_init(struct mounts *ms, unsigned int major, unsigned int minor, const struct mounts_tell *tell)
{
	(void)ms;
	(void)major;
	(void)minor;
	(void)tell;
}

void mounts_look(struct mounts *ms)
{
	(void)ms;
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

int asker_open_inode(const struct mount *m, const struct file_id *id)
{
	(void)m;
	(void)id;
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

bool asker_ask(struct asker *a, const struct mount *m, const struct file_id *id)
{
	(void)a;
	(void)m;
	(void)id;
	return false;
}

bool asker_hear(struct asker *a, uint64_t until_ns, struct asker_answer *out)
{
	(void)a;
	(void)until_ns;
	(void)out;
	return false;
}

int asker_open(struct asker **out)
{
	*out = (struct asker *)&queue;
	return 0;
}

void asker_close(struct asker *a)
{
	(void)a;
}

int extents_all(int fd, const struct stack *stack, struct extent **out, struct extents_stats *stats)
{
	(void)fd;
	(void)stack;
	(void)stats;
	asked++;
	*out = calloc(pieces, sizeof(**out));
	for (uint32_t i = 0; i < pieces; i++)
		(*out)[i] = (struct extent){ .block = 2 * i, .nr = 1, .offset = i * 4096ull, .physical = i * 8192ull };
	return (int)pieces;
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

static void happens(uint8_t what, uint32_t flags)
{
	struct terrace_file_event e = {
		.what = what, .inode = 1, .generation = 1, .dev = DEV, .thread = 5, .size = 1 << 20, .flags = flags,
		.name = "000001.sst",
	};

	if (what == TERRACE_FILE_UNLINKED)
		e.size = 0;
	queue[queued++] = e;
}

static struct watch *watch_one_table(void)
{
	const struct watch_tell tell = { .dead = on_dead };
	struct watch *w;
	char why[200];

	memset(&told, 0, sizeof(told));
	pieces = PIECES;
	asked = 0;
	assert_int_equal(watch_open(250, 1, NULL, FILE_PROFILES, &tell, &w, why, sizeof(why)), 0);
	happens(TERRACE_FILE_CREATED, 0);
	happens(TERRACE_FILE_WRITTEN, 0);
	happens(TERRACE_FILE_SYNCED, 0);
	happens(TERRACE_FILE_CLOSED, 0);
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

/* Another file has the same blocks: they outlive this one. */
static void what_was_shared_is_not_its_own(void **state)
{
	struct watch *w = watch_one_table();

	(void)state;
	happens(TERRACE_FILE_CHANGED, TERRACE_FILE_SHARED);
	for (int i = 0; i < 3; i++)
		watch_tick(w, false, false);
	assert_int_equal(asked, 1);
	dies(w);
	assert_int_equal(told.sure, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_dead_are_told_with_all_their_extents),
		cmocka_unit_test(what_was_cut_is_asked_for_again),
		cmocka_unit_test(what_was_closed_again_is_not_sure_before_it_is_asked),
		cmocka_unit_test(what_was_shared_is_not_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
