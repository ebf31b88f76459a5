// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Power cut after power cut, in one process: arm a drive model to lose its
 * power at some write, flush or FUA, work until it does, bring everything
 * back, let the checker look at the devices, and compare every block that was
 * touched with what it may hold. In a part of the rounds recovery meets a
 * power cut as well. Meanwhile a pest asks for checkpoints, evictions and
 * suspends at bad moments, and a command may run beside the work: move orders, say.
 *
 * The drives must be of one power group. Everything follows from the seed,
 * but for what threads make of it.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cuts.h"
#include "dm.h"

#define MAX_DRIVES	8

enum { WORK, CUT, DOWN, CHECK, UP, VERIFY, NR_STEPS };

struct cuts {
	struct cut_options *c;
	struct options o;
	struct ledger *l;
	char *drive[MAX_DRIVES];
	uint32_t nr_drives;
	uint64_t random;
	char what[200];			/* this round's, for the report */
	uint64_t cuts, in_recovery, came_late;
	uint64_t spent[NR_STEPS], since;	/* microseconds; for those who wonder */
	pthread_t pest;
	bool pest_stop;
};

static uint32_t below(struct cuts *k, uint32_t n)
{
	k->random = stamp_mix(k->random);
	return n ? (k->random >> 8) % n : 0;
}

/* What has passed since the last call goes to @step. */
static void spend(struct cuts *k, int step)
{
	struct timespec t;
	uint64_t now;

	clock_gettime(CLOCK_MONOTONIC, &t);
	now = t.tv_sec * 1000000ull + t.tv_nsec / 1000;
	k->spent[step] += now - k->since;
	k->since = now;
}

static void expect(const char *what, int err)
{
	if (err)
		trouble("%s: %s", what, strerror(-err));
}

/* ---- the power ---- */

static void arm(struct cuts *k, uint32_t most)
{
	const char *drive = k->drive[below(k, 4) ? 0 : below(k, k->nr_drives)];
	uint32_t rare = most / 8 + 1;
	char how[80];

	switch (below(k, 8)) {
	case 0:
		snprintf(how, sizeof(how), "arm flush %u", below(k, rare) + 1);
		break;
	case 1:
		snprintf(how, sizeof(how), "arm flush %u after", below(k, rare) + 1);
		break;
	case 2:
		snprintf(how, sizeof(how), "arm fua %u", below(k, rare) + 1);
		break;
	case 3:
		snprintf(how, sizeof(how), "arm fua %u after", below(k, rare) + 1);
		break;
	case 4:
		snprintf(how, sizeof(how), "arm barrier %u", below(k, 2 * rare) + 1);
		break;
	case 5:
		snprintf(how, sizeof(how), "arm bytes %u", below(k, most) * 4096 + 512);
		break;
	default:
		snprintf(how, sizeof(how), "arm write %u", below(k, most) + 1);
	}
	snprintf(k->what + strlen(k->what), sizeof(k->what) - strlen(k->what), "; %s %s", drive, how);
	expect("arm", dm_message(drive, "%s", how));
}

static void power_off(struct cuts *k)
{
	dm_message(k->drive[0], "cut");
	k->cuts++;
}

static void power_on(struct cuts *k)
{
	uint32_t d;

	expect("revive", dm_message(k->drive[0], "revive"));
	for (d = 0; d < k->nr_drives; d++)
		expect("disarm", dm_message(k->drive[d], "disarm"));
}

/* The volume goes, without power. Somebody may have it open for a moment. */
static void take_down(struct cuts *k)
{
	int err, tries = 0;

	while ((err = dm_remove(k->c->volume)) == -EBUSY && tries++ < 200)
		usleep(10000);
	if (err && err != -ENXIO)
		trouble("the volume cannot be removed: %s", strerror(-err));
	spend(k, DOWN);
}

/* ---- the pest ---- */

static void *pester(void *arg)
{
	struct cuts *k = arg;
	uint64_t random = stamp_mix(k->random ^ 0x7e57);

	while (!__atomic_load_n(&k->pest_stop, __ATOMIC_RELAXED)) {
		random = stamp_mix(random);
		usleep(1000 + (random >> 20) % 60000);
		switch ((random >> 8) % 8) {
		case 0:
		case 1:
		case 2:
			dm_message(k->c->volume, "checkpoint");
			break;
		case 3:
		case 4:
			dm_message(k->c->volume, "evict");
			break;
		case 5:
			dm_message(k->c->volume, "commit");
			break;
		case 6:
			if (!k->c->suspend)
				break;
			if (!dm_suspend(k->c->volume, random & 1))
				dm_resume(k->c->volume);
		}
	}
	return NULL;
}

/* ---- what runs beside ---- */

/* A process group, so that all of it can be ended. 0: there is none. */
static pid_t begin_beside(struct cuts *k)
{
	char seed[24];
	pid_t pid;

	if (!k->c->beside)
		return 0;
	snprintf(seed, sizeof(seed), "%u", below(k, UINT32_MAX));
	pid = fork();
	if (pid < 0)
		trouble("fork: %s", strerror(errno));
	if (!pid) {
		setpgid(0, 0);
		setenv("SEED", seed, 1);
		execl("/bin/sh", "sh", "-c", k->c->beside, NULL);
		_exit(127);
	}
	setpgid(pid, pid);	/* whoever comes first */
	return pid;
}

/* The power is off: whatever it waits for fails. */
static void end_beside(pid_t pid)
{
	if (!pid)
		return;
	kill(-pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static int work(struct cuts *k, uint32_t ops)
{
	bool pest = below(k, 2);
	pid_t beside = begin_beside(k);
	int result;

	if (beside)
		usleep(500000 + below(k, 1500000));	/* it has to begin; the power may go meanwhile */
	k->o.seed = k->random;
	k->o.ops = ops;
	k->o.threads = 1 + below(k, 2);
	k->o.depth = 1 + below(k, 10);
	k->o.max_blocks = 1 << below(k, 7);
	/* up to 64 regions: more than 16 at once have a record of their own */
	k->o.max_discard = 1 << below(k, below(k, 8) ? 10 : 17);
	k->o.hot = below(k, 100);
	k->o.stream_ops = 1 + below(k, 12);
	k->pest_stop = false;
	if (pest && pthread_create(&k->pest, NULL, pester, k))
		trouble("pthread_create failed");
	result = run_workload(&k->o, k->l);
	spend(k, WORK);
	if (result == EXIT_GOOD)
		k->came_late++;
	__atomic_store_n(&k->pest_stop, true, __ATOMIC_RELAXED);
	power_off(k);	/* before the join: a suspend may be waiting for an armed drive */
	if (pest)
		pthread_join(k->pest, NULL);
	dm_resume(k->c->volume);	/* in case the pest could not */
	end_beside(beside);
	ledger_crash(k->l);
	spend(k, CUT);
	return result;
}

/* ---- a round ---- */

static bool cut_recovery(struct cuts *k)
{
	int result = EXIT_DARK;

	k->in_recovery++;
	arm(k, 16);
	if (!dm_create(k->c->volume, k->c->table))
		result = work(k, 20);
	else
		power_off(k);
	take_down(k);
	power_on(k);
	return result != EXIT_BROKEN;
}

static bool check(struct cuts *k)
{
	int status;

	if (!k->c->check)
		return true;
	status = system(k->c->check);
	spend(k, CHECK);
	if (!status)
		return true;
	printf("oracle: BROKEN: the checker's exit status is %d\n", status >> 8);
	return false;
}

static bool round_of(struct cuts *k)
{
	int err;

	snprintf(k->what, sizeof(k->what), "cut %llu", (unsigned long long)k->cuts);
	arm(k, k->c->beside ? 600 : 120);	/* what runs beside writes as well */
	if (work(k, k->c->ops) == EXIT_BROKEN)
		return false;
	take_down(k);
	power_on(k);
	while (!below(k, 4))
		if (!cut_recovery(k))
			return false;
	if (!check(k))
		return false;
	err = dm_create(k->c->volume, k->c->table);
	spend(k, UP);
	if (err) {
		printf("oracle: BROKEN: the volume does not come up again: %s\n", strerror(-err));
		return false;
	}
	k->o.touched = below(k, 16) != 0;
	k->o.seed = k->random;
	err = verify(&k->o, k->l);
	spend(k, VERIFY);
	return err == EXIT_GOOD;
}

static unsigned long long per_cut(const struct cuts *k, int step)
{
	return k->spent[step] / 1000 / (k->cuts ? k->cuts : 1);
}

int cut_power(struct cut_options *c, struct options *o, struct ledger *l)
{
	struct cuts k = { .c = c, .o = *o, .l = l, .random = stamp_mix(o->seed) };
	time_t began = time(NULL);
	char *drives = strdup(c->drives), *word;
	bool good = true;
	int err;

	for (word = strtok(drives, ","); word && k.nr_drives < MAX_DRIVES; word = strtok(NULL, ","))
		k.drive[k.nr_drives++] = word;
	if (!k.nr_drives)
		trouble("cuts: --drives, please");
	k.o.crash = k.o.quiet = true;
	k.o.sample = 32;
	k.o.seconds = 0;
	err = dm_create(c->volume, c->table);
	if (err)
		trouble("the volume does not come up: %s", strerror(-err));
	spend(&k, WORK);
	k.spent[WORK] = 0;
	while (good && k.cuts < c->cuts && time(NULL) - began < o->seconds)
		good = round_of(&k);
	if (good) {
		k.o.touched = false;
		good = verify(&k.o, l) == EXIT_GOOD;
	}
	printf("oracle: %llu cuts, %llu of them in recovery, %llu after the work, in %ld s; seed %llu\n",
	       (unsigned long long)k.cuts, (unsigned long long)k.in_recovery, (unsigned long long)k.came_late,
	       (long)(time(NULL) - began), (unsigned long long)o->seed);
	printf("oracle: ms per cut: work %llu, cut %llu, down %llu, check %llu, up %llu, verify %llu\n",
	       per_cut(&k, WORK), per_cut(&k, CUT), per_cut(&k, DOWN), per_cut(&k, CHECK), per_cut(&k, UP), per_cut(&k, VERIFY));
	if (!good)
		printf("oracle: BROKEN in %s\n", k.what);
	free(drives);
	return good ? EXIT_GOOD : EXIT_BROKEN;
}
