// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Does RALT keep its memory bound?  Tracks BLOCKS blocks, a share of them hot, and prints
 * what is known, the time it took and the peak resident size.  Then a child opens the store with room for 80 % of
 * them, and is killed (-9) in the middle of the eviction that this causes: all is known as before.
 *
 * usage: ralt-memory DIRECTORY BLOCKS HOT_SHARE [LIMIT_MIB]
 *
 * The load: first the hot set alone, five accesses each; then every cold block once, in hashed
 * order, with three accesses to the hot set for two to cold blocks.  Exit status 1 when the peak
 * exceeds LIMIT_MIB (48), fewer than 90 % of the hot blocks are known as hot (at 1.2 periods between
 * accesses some 4 % are not stable at any time), more than 0.1 % of the cold ones are, or fewer
 * than 95 % of the blocks are tracked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "decide/prng.h"
#include "ralt/ralt.h"

struct load {
	struct ralt *r;
	uint64_t blocks;
	uint64_t hot;
	struct prng p;
};

/* Hot and cold interleaved over the whole volume: x * odd mod 2^k walks every number once. */
static uint64_t place(const struct load *l, uint64_t n)
{
	uint64_t bits = 1, at = n;

	while (bits < l->blocks)
		bits *= 2;
	do {
		at = (at * 0x9e3779b97f4a7c15ull + 0x3c6ef372fe94f82bull) & (bits - 1);
	} while (at >= l->blocks);
	return at;
}

static void touch(struct load *l, uint64_t n)
{
	int err = ralt_insert(l->r, place(l, n), 0);

	if (err) {
		fprintf(stderr, "ralt_insert: %s\n", strerror(-err));
		exit(1);
	}
}

static void run(struct load *l)
{
	uint64_t cold = l->hot;

	for (uint64_t i = 0; i < 5 * l->hot; i++)
		touch(l, prng_below(&l->p, l->hot));
	while (cold < l->blocks) {
		for (int i = 0; i < 3; i++)
			touch(l, prng_below(&l->p, l->hot));
		for (int i = 0; i < 2 && cold < l->blocks; i++)
			touch(l, cold++);
	}
}

static double known(const struct load *l, uint64_t from, uint64_t to)
{
	uint64_t hot = 0, step = (to - from) / 1000000 + 1, n = 0;

	for (uint64_t i = from; i < to; i += step, n++)
		hot += ralt_is_hot(l->r, place(l, i));
	return n ? (double)hot / (double)n : 0;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double peak_mib(void)
{
	struct rusage u, child;

	getrusage(RUSAGE_SELF, &u);
	getrusage(RUSAGE_CHILDREN, &child);
	if (child.ru_maxrss > u.ru_maxrss)
		u = child;
	return (double)u.ru_maxrss / 1024;
}

static int verdict(const struct load *l, const struct ralt_stats *st, double limit_mib)
{
	double hot = known(l, 0, l->hot), cold = known(l, l->hot, l->blocks);
	double tracked = st->tracked / (double)l->blocks, mib = peak_mib();

	printf("tracked %.1f %% of %llu blocks; hot: %.2f %% of the hot, %.4f %% of the cold\n",
	       100 * tracked, (unsigned long long)l->blocks, 100 * hot, 100 * cold);
	printf("stable by the sample: %.2f %% of the hot\n", 100 * st->hot / (double)l->hot);
	printf("peak resident %.1f MiB of %.0f allowed\n", mib, limit_mib);
	return mib <= limit_mib && hot >= 0.9 && cold <= 0.001 && tracked >= 0.95 ? 0 : 1;
}

static struct ralt *reopen(const struct ralt_config *c)
{
	struct ralt *r;
	int err = ralt_open(&r, c);

	if (!err)
		return r;
	fprintf(stderr, "ralt_open: %s\n", strerror(-err));
	exit(1);
}

/* Counts what is there, which takes all of it once. */
static void settle(struct ralt *r)
{
	while (ralt_work(r, 1000000) > 0)
		;
}

/* The child: tells when an eviction has begun, goes on with it, and is killed. */
static void evict_until_killed(struct load *l, struct ralt_config c, int told)
{
	struct ralt_stats st;
	bool said = false;

	c.tunables.physical_ratio *= 0.4;	/* it was twice what is there */
	c.tunables.tracked_share = 0;
	l->r = reopen(&c);
	for (;;) {
		int more = ralt_work(l->r, 100000);

		ralt_stats(l->r, &st);
		if (st.evicting && !said)
			said = write(told, "x", 1) == 1;
		if (more <= 0 && st.evictions)
			_exit(1);	/* not killed in time */
		if (!said && more <= 0)
			touch(l, prng_below(&l->p, l->hot));
	}
}

/* 0: killed in the middle of it. */
static int kill_in_eviction(struct load *l, const struct ralt_config *c)
{
	int pipes[2], status;
	char byte;
	pid_t child;

	if (pipe(pipes))
		return 1;
	child = fork();
	if (!child)
		evict_until_killed(l, *c, pipes[1]);
	close(pipes[1]);
	if (read(pipes[0], &byte, 1) == 1)
		usleep((useconds_t)(l->blocks / 100));	/* 100 M: a second of several */
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	close(pipes[0]);
	printf("killed in the middle of an eviction: %s\n", WIFSIGNALED(status) ? "yes" : "NO");
	return !WIFSIGNALED(status);
}

static int after_kill(struct load *l, const struct ralt_config *c, double limit)
{
	struct ralt_stats st;
	int bad = kill_in_eviction(l, c);

	l->r = reopen(c);
	settle(l->r);
	ralt_stats(l->r, &st);
	return verdict(l, &st, limit) || bad;
}

int main(int argc, char **argv)
{
	struct ralt_config c = { .volume = 1, .nonce = 1 };
	struct load l = { .p = { 1 } };
	struct ralt_stats st;
	double start = seconds(), limit = argc > 4 ? atof(argv[4]) : 48;
	int err, bad;

	if (argc < 4) {
		fprintf(stderr, "usage: ralt-memory DIRECTORY BLOCKS HOT_SHARE [LIMIT_MIB]\n");
		return 2;
	}
	l.blocks = strtoull(argv[2], NULL, 0);
	l.hot = (uint64_t)((double)l.blocks * atof(argv[3]));
	c.directory = argv[1];
	c.fast_blocks = 2 * l.hot;
	tunable_defaults(&ralt_tunable_table, &c.tunables);
	c.tunables.physical_ratio = 2.0 / atof(argv[3]);
	err = ralt_open(&l.r, &c);
	if (err) {
		fprintf(stderr, "ralt_open: %s\n", strerror(-err));
		return 1;
	}
	run(&l);
	ralt_stats(l.r, &st);
	printf("%llu accesses, %.0f ns CPU each; %llu records in %u runs, %.0f MB on disk, written %.1f times; limit %llu\n",
	       (unsigned long long)st.accesses, 1e9 * (seconds() - start) / (double)st.accesses,
	       (unsigned long long)st.records, st.runs, (double)st.bytes_on_disk / 1e6,
	       (double)st.records_written / (double)st.accesses, (unsigned long long)st.hot_limit);
	bad = verdict(&l, &st, limit);
	err = ralt_close(l.r);
	if (!err) {
		fflush(stdout);
		bad |= after_kill(&l, &c, limit);
		err = ralt_close(l.r);
	}
	return bad || err;
}
