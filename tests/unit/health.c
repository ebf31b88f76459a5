// SPDX-License-Identifier: GPL-2.0-or-later
/* The thread that asks drives: one that hangs holds up nobody who wants to know. */
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

#include "policy_lib.h"

#include "sense/health.h"
#include "sense/heat.h"
#include "sense/room.h"
#include "sense/smart.h"
#include "nvme_disk.h"

/* Two NVMe drives, 259:0 and 259:1, which answer one request for each that the test lets through. */
static struct gate {
	sem_t asked, let;
	_Atomic unsigned int rooms_asked, last_minor;
	_Atomic uint64_t used;
} gates[8], *gate = gates;	/* one a test: a thread that hangs may do so after it */

int tier_disks(unsigned int major, unsigned int minor, uint32_t *disk)
{
	memset(disk, 0, TERRACE_HEAT_TIERS * sizeof(*disk));
	disk[0] = 259 << 20;
	disk[1] = 259 << 20 | 1;
	return major == 253 && minor == 7 ? 2 : 0;
}

bool nvme_disk_is(unsigned int major, unsigned int minor)
{
	(void)minor;
	return major == 259;
}

int smart_read(unsigned int major, unsigned int minor, struct smart *out)
{
	(void)major;
	*out = (struct smart){ .percent_used = 10 + minor };
	return 0;
}

void room_read(unsigned int major, unsigned int minor, struct port_room *out)
{
	struct gate *g = gate;

	assert_int_equal(major, 259);
	g->last_minor = minor;
	g->rooms_asked++;
	sem_post(&g->asked);
	sem_wait(&g->let);
	*out = (struct port_room){ .used = g->used, .limit = 100 + minor };
}

static struct health *health;

/* Once the thread has looked at both it waits to be called. */
static int setup(void **state)
{
	const struct timespec rest = { .tv_nsec = 1000000 };
	struct port_wear wear;
	bool unknown = true;

	(void)state;
	sem_init(&gate->asked, 0, 0);
	sem_init(&gate->let, 0, 0);
	health = health_open(253, 7, &unknown);
	assert_non_null(health);
	assert_false(unknown);
	for (int i = 0; i < 5000 && !health->wear(health, 1, &wear); i++)
		nanosleep(&rest, NULL);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	health->close(health);
	gate++;
	return 0;
}

static bool room(unsigned int minor, struct port_room *out)
{
	return health->room(health, 1, 259, minor, true, out);
}

/* Whether it has answered, without asking anew. */
static bool answered(unsigned int minor, struct port_room *out)
{
	return health->room(health, 1, 259, minor, false, out);
}

/* What it answers to the request that is under way, and whether it does within some seconds. */
static bool hears(unsigned int minor, struct port_room *out)
{
	for (int i = 0; i < 500; i++) {
		const struct timespec rest = { .tv_nsec = 10000000 };

		if (room(minor, out))
			return true;
		nanosleep(&rest, NULL);
	}
	return false;
}

static void wait_asked(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 5;
	assert_int_equal(sem_timedwait(&gate->asked, &until), 0);
}

/* The drive is asked when that is wanted, by the thread; who wants to know goes on. */
static void a_drive_that_hangs_holds_up_nobody(void **state)
{
	struct port_room said;
	struct port_wear wear;

	(void)state;
	assert_int_equal(gate->rooms_asked, 0);
	assert_false(room(1, &said));
	wait_asked();
	for (int i = 0; i < 10; i++) {		/* it hangs */
		assert_false(room(1, &said));
		assert_int_equal(gate->rooms_asked, 1);
	}
	assert_true(health->wear(health, 1, &wear));
	assert_int_equal(wear.percent_used, 11);
	gate->used = 17;
	sem_post(&gate->let);
	assert_true(hears(1, &said));
	assert_int_equal(said.used, 17);
	assert_int_equal(said.limit, 101);
}

/* Or the module would be set back to it again and again, whatever it has counted since. */
static void no_answer_is_given_twice(void **state)
{
	struct port_room said;

	(void)state;
	gate->used = 5;
	sem_post(&gate->let);
	assert_true(hears(1, &said));
	wait_asked();
	wait_asked();		/* the next request, which hangs */
	assert_false(room(1, &said));
	gate->used = 6;
	sem_post(&gate->let);
	assert_true(hears(1, &said));
	assert_int_equal(said.used, 6);
}

/* Who looks in each tick for the answer to one question does not ask a new one with each look. */
static void looking_for_an_answer_asks_nothing(void **state)
{
	const struct timespec rest = { .tv_nsec = 10000000 };
	struct port_room said;
	bool news = false;

	(void)state;
	assert_false(answered(1, &said));
	nanosleep(&rest, NULL);
	assert_int_equal(gate->rooms_asked, 0);
	assert_false(room(1, &said));
	wait_asked();
	assert_false(answered(1, &said));
	gate->used = 7;
	sem_post(&gate->let);
	for (int i = 0; i < 500 && !news; i++) {
		news = answered(1, &said);
		nanosleep(&rest, NULL);
	}
	assert_true(news);
	assert_int_equal(said.used, 7);
	assert_false(answered(1, &said));
	nanosleep(&rest, NULL);
	assert_int_equal(gate->rooms_asked, 1);
}

/* A tier is given another drive while the first is asked: what that says is not the other's. */
static void a_replaced_drive_does_not_answer_for_the_next(void **state)
{
	struct port_room said;

	(void)state;
	assert_false(room(1, &said));
	wait_asked();
	assert_false(room(0, &said));
	sem_post(&gate->let);
	wait_asked();
	assert_int_equal(gate->last_minor, 0);
	assert_false(room(0, &said));
	sem_post(&gate->let);
	assert_true(hears(0, &said));
	assert_int_equal(said.limit, 100);
}

/* Closing its volume, or the daemon, does not wait for it, either. */
static void nor_does_it_hold_up_the_end(void **state)
{
	struct port_room said;

	(void)state;
	assert_false(room(1, &said));
	wait_asked();
	alarm(10);
	health->close(health);
	alarm(0);
	gate++;
	setup(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_drive_that_hangs_holds_up_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(no_answer_is_given_twice, setup, teardown),
		cmocka_unit_test_setup_teardown(looking_for_an_answer_asks_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(a_replaced_drive_does_not_answer_for_the_next, setup, teardown),
		cmocka_unit_test_setup_teardown(nor_does_it_hold_up_the_end, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
