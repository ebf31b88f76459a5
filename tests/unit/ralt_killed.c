// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RALT killed before and after each single change that it makes to its files: creating, writing, syncing,
 * renaming, unlinking. All of them go through io_uring_submit(), which is overridden here.
 *
 * See also ralt_crash.c: random moments, those between two changes among them.
 */
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>

#include <liburing.h>

#include "ralt_lib.h"

#define PIECE	1500	/* accesses of a child: flushes, merges, an eviction */

static struct {
	int at;		/* which change; 0: none */
	bool after;	/* it has been made */
	int changes;
} death;

static bool is_change(const struct io_uring *ring)
{
	const struct io_uring_sq *sq = &ring->sq;

	return sq->sqe_tail != sq->sqe_head && sq->sqes[(sq->sqe_tail - 1) & *sq->kring_mask].opcode != IORING_OP_READ;
}

int io_uring_submit(struct io_uring *ring)
{
	int (*real)(struct io_uring *) = (int (*)(struct io_uring *))dlsym(RTLD_NEXT, "io_uring_submit");
	bool dies = is_change(ring) && ++death.changes == death.at;
	int sent;

	if (dies && !death.after)
		kill(getpid(), SIGKILL);
	sent = real(ring);
	if (dies)
		kill(getpid(), SIGKILL);
	return sent;
}

static int load(struct bench *b, struct prng *p, int accesses)
{
	int err = 0;

	for (int i = 0; i < accesses && !err; i++)
		err = ralt_insert(b->r, prng_below(p, 4) ? 500 + 13 * prng_below(p, 100) : prng_below(p, 100000),
				  ralt_generation(b->r));
	return err;
}

static int hot_known(struct bench *b)
{
	int hot = 0;

	for (uint64_t i = 0; i < 100; i++)
		hot += ralt_is_hot(b->r, 500 + 13 * i);
	return hot;
}

/* True if it was killed: its piece of work has so many changes. */
static bool killed_at(struct bench *b, int at, bool after)
{
	struct ralt_range range = { 90000, 10 };
	struct prng p = { (uint64_t)at };
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		death.at = at;
		death.after = after;
		death.changes = 0;
		_exit(ralt_open(&b->r, &b->config) || ralt_forget(b->r, &range, 1) || load(b, &p, PIECE) || ralt_close(b->r));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) || !WEXITSTATUS(status));
	return WIFSIGNALED(status);
}

static void each_change(bool after)
{
	struct bench b;
	struct prng p = { 1 };
	int at = 1;

	bench_init(&b, 2000);
	b.config.tunables.buffer_records = 256;
	b.config.tunables.page_bytes = 4096;
	b.config.tunables.samples = 512;
	b.config.tunables.tracked_share = 1;
	b.config.tunables.physical_ratio = 1;
	bench_open(&b);
	assert_int_equal(load(&b, &p, 20000), 0);
	assert_int_equal(ralt_close(b.r), 0);
	for (; killed_at(&b, at, after); at++) {
		bench_open(&b);
		assert_int_equal(b.reports[RALT_SET_ASIDE], 0);
		assert_int_equal(b.reports[RALT_COLD], 0);
		if (hot_known(&b) < 95)
			fail_msg("killed %s change %d: %d of 100 hot blocks are known", after ? "after" : "before", at, hot_known(&b));
		assert_int_equal(ralt_close(b.r), 0);
	}
	print_message("killed %s each of %d changes\n", after ? "after" : "before", at - 1);
	assert_true(at > 50);
	b.r = NULL;
	bench_exit(&b);
}

static void killed_before_any_change_it_keeps_its_heat(void **state)
{
	(void)state;
	each_change(false);
}

static void killed_after_any_change_it_keeps_its_heat(void **state)
{
	(void)state;
	each_change(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_before_any_change_it_keeps_its_heat),
		cmocka_unit_test(killed_after_any_change_it_keeps_its_heat),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
