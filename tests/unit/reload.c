// SPDX-License-Identifier: GPL-2.0-or-later
/* SIGHUP, of a volume that is driven: what a changed configuration does at once. */
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "sim_lib.h"

#include "service/service.h"

#define BLOCKS	(64 * 1024)

/* What follows files: opened, retuned and left, that is all. */
static int opened, retuned, left, refuses;
static int wakes;

static struct follow *follow_volume(const char *name, const struct settings *settings, struct port *port)
{
	(void)name;
	(void)settings;
	(void)port;
	opened++;
	return refuses ? NULL : (struct follow *)&opened;
}

int follow_fd(const struct follow *f)
{
	(void)f;
	return wakes;
}

void follow_retune(struct follow *f, const struct settings *settings)
{
	(void)f;
	(void)settings;
	retuned++;
}

void follow_leave(struct follow *f, struct engine *e)
{
	(void)f;
	assert_non_null(e->port);
	left++;
}

void follow_close(struct follow *f)
{
	(void)f;
}

void follow_hear(struct follow *f, struct engine *e)
{
	(void)f;
	(void)e;
}

void follow_tick(struct follow *f, struct engine *e)
{
	(void)f;
	(void)e;
}

void follow_report(struct follow *f, struct json_object *out)
{
	(void)f;
	(void)out;
}

static struct sim *sim;
static struct service service;
static struct driver *d;

/* A volume named "vol", driven as its start would have it. */
static int setup(void **state)
{
	struct engine_config c;

	(void)state;
	opened = retuned = left = refuses = 0;
	sim = sim_create(BLOCKS, BLOCKS / 8);
	memset(&service, 0, sizeof(service));
	config_defaults(&service.config);
	service.follow = follow_volume;
	service.epoll = epoll_create1(EPOLL_CLOEXEC);
	service.driver = calloc(CONFIG_MAX_VOLUMES, sizeof(*service.driver));
	assert_non_null(service.driver);
	wakes = eventfd(0, EFD_CLOEXEC);
	d = service.driver;
	strcpy(d->name, "vol");
	strcpy(d->directory, sim->dir);
	d->port = &sim->port;
	driver_config(&service, d->name, d->directory, &service.config.policy, &c);
	c.log_ctx = d;
	assert_int_equal(engine_open(&d->engine, &c, d->port, sim->now_ns), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	engine_close(&d->engine);
	free(service.driver);
	close(service.epoll);
	close(wakes);
	sim_open(sim);
	sim_remove(sim);
	return 0;
}

/* Whether its files wake the loop. */
static bool hears_files(void)
{
	struct epoll_event event;
	const uint64_t one = 1;

	assert_int_equal(write(wakes, &one, sizeof(one)), sizeof(one));
	return epoll_wait(service.epoll, &event, 1, 0) == 1;
}

static void files_are_followed_from_a_reload_on_and_left_by_one(void **state)
{
	(void)state;
	drivers_retune(&service);
	assert_null(d->follow);
	service.config.policy.files = true;
	drivers_retune(&service);
	assert_non_null(d->follow);
	assert_int_equal(opened, 1);
	assert_true(hears_files());
	drivers_retune(&service);
	assert_int_equal(opened, 1);
	assert_int_equal(retuned, 1);
	service.config.policy.files = false;
	drivers_retune(&service);
	assert_null(d->follow);
	assert_int_equal(left, 1);
	assert_int_equal(retuned, 1);
	drivers_retune(&service);
	assert_int_equal(left, 1);
}

/* The kernel that refuses is asked again by the next reload. */
static void files_that_cannot_be_followed_are_tried_again(void **state)
{
	(void)state;
	service.config.policy.files = true;
	refuses = 1;
	drivers_retune(&service);
	assert_null(d->follow);
	refuses = 0;
	drivers_retune(&service);
	assert_non_null(d->follow);
	assert_int_equal(opened, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(files_are_followed_from_a_reload_on_and_left_by_one, setup, teardown),
		cmocka_unit_test_setup_teardown(files_that_cannot_be_followed_are_tried_again, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
