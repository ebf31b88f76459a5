// SPDX-License-Identifier: GPL-2.0-or-later
/* SIGHUP, of a volume that is driven: what a changed configuration does at once. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

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

/* What it says, line by line. */
static char said[20000];

void log_line(enum log_level level, const char *volume, const char *format, ...)
{
	size_t n = strlen(said);
	va_list args;

	(void)level;
	n += (size_t)snprintf(said + n, sizeof(said) - n, "%s: ", volume ? volume : "terraced");
	va_start(args, format);
	n += (size_t)vsnprintf(said + n, sizeof(said) - n, format, args);
	va_end(args);
	assert_true(n < sizeof(said) - 2);
	strcpy(said + n, "\n");
}

static enum log_level log_level;

void log_set_level(enum log_level most)
{
	log_level = most;
}

enum log_level log_get_level(void)
{
	return log_level;
}

const char *log_level_name(enum log_level level)
{
	return level < LOG_LEVELS ? "some" : NULL;
}

int log_level_of(const char *name)
{
	(void)name;
	return LOG_LEVEL_NOTICE;
}

/* Whether memory may be locked, how often that was tried, and whether it is. */
static bool may_lock, is_locked;
static int locks;

int mlockall(int flags)
{
	(void)flags;
	locks++;
	is_locked = may_lock;
	errno = ENOMEM;
	return may_lock ? 0 : -1;
}

int munlockall(void)
{
	is_locked = false;
	return 0;
}

static struct sim *sim;
static struct service service;
static struct driver *d;

/* A volume named "vol", driven as its start would have it. */
static int setup(void **state)
{
	struct engine_config c;

	(void)state;
	opened = retuned = left = refuses = locks = 0;
	is_locked = false;
	sim = sim_create(BLOCKS, BLOCKS / 8);
	memset(&service, 0, sizeof(service));
	config_defaults(&service.config);
	strcpy(service.kept.state_directory, service.config.state_directory);
	strcpy(service.kept.socket, service.config.socket);
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
	d->sensed.kind = service.config.policy.sense;
	d->sensed.sampling = service.config.policy.sampling;
	d->sensed.heat_sample = service.config.policy.heat_sample;
	said[0] = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	engine_close(&d->engine);
	json_object_put(service.waits_told);
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

/* Each volume by its own section, else by [policy]: one is followed, the other is not, and they change places. */
static void each_volume_has_files_of_its_own(void **state)
{
	struct config *c = &service.config;
	struct sim *two = sim_create(BLOCKS, BLOCKS / 8);
	struct driver *other = &service.driver[1];
	struct engine_config ec;

	(void)state;
	strcpy(other->name, "other");
	strcpy(other->directory, two->dir);
	other->port = &two->port;
	driver_config(&service, other->name, other->directory, &c->policy, &ec);
	ec.log_ctx = other;
	assert_int_equal(engine_open(&other->engine, &ec, other->port, two->now_ns), 0);
	c->nr_volumes = 1;
	strcpy(c->volume[0].name, "other");
	c->volume[0].settings = c->policy;
	for (int i = 0; i < 4; i++) {
		c->policy.files = i % 2;
		c->volume[0].settings.files = !c->policy.files;
		drivers_retune(&service);
		assert_int_equal(d->follow != NULL, i % 2);
		assert_int_equal(other->follow != NULL, !(i % 2));
		assert_int_equal(opened, i + 1);
		assert_int_equal(left, i);
		assert_int_equal(retuned, 0);
	}
	engine_close(&other->engine);
	other->port = NULL;
	sim_open(two);
	sim_remove(two);
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

static const char *shown_as(struct json_object *config, const char *why, bool daemon, const char *key);

/* What the kernel refuses is not shown as if it were so; nor does it wait for the next start. */
static void refused_files_are_shown_as_refused(void **state)
{
	struct json_object *config;

	(void)state;
	service.config.policy.files = true;
	for (refuses = 1; refuses >= 0; refuses--) {
		drivers_retune(&service);
		config = config_json(&service);
		if (refuses)
			assert_string_equal(shown_as(config, "refused", false, "files"), "false");
		else
			assert_null(shown_as(config, "refused", false, "files"));
		assert_null(shown_as(config, "waits_for_next_start", false, "files"));
		json_object_put(config);
	}
}

/* The limit may have been raised meanwhile. */
static void refused_memory_is_tried_again(void **state)
{
	struct json_object *config;

	(void)state;
	may_lock = false;
	for (int i = 1; i <= 2; i++) {
		process_lock_memory(&service);
		assert_int_equal(locks, i);
		assert_false(is_locked);
		config = config_json(&service);
		assert_string_equal(shown_as(config, "refused", true, "lock_memory"), "false");
		json_object_put(config);
	}
	may_lock = true;
	for (int i = 0; i < 2; i++) {
		process_lock_memory(&service);
		assert_int_equal(locks, 3);
		assert_true(is_locked);
	}
	config = config_json(&service);
	assert_null(shown_as(config, "refused", true, "lock_memory"));
	json_object_put(config);
	service.config.lock_memory = false;
	process_lock_memory(&service);
	assert_false(is_locked);
	assert_int_equal(locks, 3);
}

static uint32_t lines(const char *text)
{
	uint32_t n = 0;

	for (const char *at = said; (at = strstr(at, text)); at++)
		n++;
	return n;
}

/* What --show-config says of a key that is not in force, by @why, of the volume or the daemon: what is, or NULL. */
static const char *shown_as(struct json_object *config, const char *why, bool daemon, const char *key)
{
	struct json_object *o = NULL;

	assert_true(json_object_object_get_ex(config, why, &o));
	assert_true(json_object_object_get_ex(o, daemon ? "daemon" : "volumes", &o));
	assert_true(daemon || json_object_object_get_ex(o, "vol", &o));
	return json_object_object_get_ex(o, key, &o) && json_object_object_get_ex(o, "in_force", &o) ? json_object_get_string(o) : NULL;
}

static const char *shown(struct json_object *config, const char *key)
{
	return shown_as(config, "waits_for_next_start", false, key);
}

/* As SIGHUP has it. */
static void reload(void)
{
	said[0] = 0;
	drivers_retune(&service);
	waits_tell(&service);
}

#define WAITS	"takes effect with the next start"

/* Of what sizes the heat store, and of how blocks are sensed; of all else there is nothing to say. */
static void what_waits_for_the_next_start_is_said_once_a_key(void **state)
{
	struct settings *p = &service.config.policy;
	struct json_object *config;

	(void)state;
	p->rule = CHOOSE_OLDEST;
	p->tuning.choose.candidates = 3;
	p->budget[1].bytes_per_second = 7;
	reload();
	assert_int_equal(lines(WAITS), 0);
	p->heat = HEAT_CLOCK;
	p->cache_blocks = 64;
	p->sense = SENSE_NONE;
	p->heat_sample = 8;
	p->sampling = 9;
	p->tuning.ralt.fanout = 12;
	p->tuning.tracker.tracked_share = 0.125;
	reload();
	assert_int_equal(lines("vol: heat = clock " WAITS ": until then it is ralt\n"), 1);
	assert_int_equal(lines("vol: cache_blocks = 64 " WAITS ": until then it is 1024\n"), 1);
	assert_int_equal(lines("vol: sense = none " WAITS ": until then it is auto\n"), 1);
	assert_int_equal(lines("vol: heat_sample = 8 " WAITS ": until then it is 16\n"), 1);
	assert_int_equal(lines("vol: sampling = 9 " WAITS ": until then it is 1\n"), 1);
	assert_int_equal(lines("vol: ralt.fanout = 12 " WAITS ": until then it is 10\n"), 1);
	assert_int_equal(lines("vol: tracker.tracked_share = 0.125 " WAITS ": until then it is 0.2\n"), 1);
	assert_int_equal(lines(WAITS), 7);
	/* that they wait is news once; what else begins to, or is another value, is told */
	p->heat_sample = 9;
	p->fill = 0.125;
	p->tuning.ralt.fanout = 13;
	p->tuning.ralt.young_runs = 5;
	reload();
	assert_int_equal(lines("vol: heat_sample = 9 " WAITS ": until then it is 16\n"), 1);
	assert_int_equal(lines("vol: ralt.fanout = 13 " WAITS ": until then it is 10\n"), 1);
	assert_int_equal(lines("vol: ralt.young_runs = 5 " WAITS), 1);
	assert_int_equal(lines(WAITS), 3);
	reload();
	assert_int_equal(lines(WAITS), 0);
	config = config_json(&service);
	assert_string_equal(shown(config, "heat"), "ralt");
	assert_string_equal(shown(config, "cache_blocks"), "1024");
	assert_string_equal(shown(config, "ralt.fanout"), "10.0");
	assert_null(shown(config, "rule"));
	json_object_put(config);
	/* as it was: nothing waits any more */
	config_defaults(&service.config);
	reload();
	assert_int_equal(lines(WAITS), 0);
	config = config_json(&service);
	assert_null(shown(config, "heat"));
	json_object_put(config);
	/* and again: that is news */
	p->heat = HEAT_CLOCK;
	reload();
	assert_int_equal(lines("vol: heat = clock " WAITS ": until then it is ralt\n"), 1);
	assert_int_equal(lines(WAITS), 1);
}

static const struct tunable_table *const fixed[] = {
	&ralt_tunable_table, &tracker_tunable_table, &shards_tunable_table, &miniature_tunable_table,
};

/* Each tunable but these is what the loop works with from a reload on; these are told. */
static void every_tunable_is_in_force_or_waits(void **state)
{
	(void)state;
	for (size_t i = 0; i < tuning_part_count; i++) {
		const struct tuning_part *part = &tuning_parts[i];
		bool waits = false;

		for (size_t k = 0; k < sizeof(fixed) / sizeof(fixed[0]); k++)
			waits |= part->table == fixed[k];
		for (size_t k = 0; k < part->table->count; k++) {
			const struct tunable *row = &part->table->rows[k];
			double value = row->initial < row->max ? row->max : row->min;
			struct json_object *config;
			char key[100];

			config_defaults(&service.config);
			assert_int_equal(tunable_set(part->table, (char *)&service.config.policy.tuning + part->offset, row->name, value), 0);
			reload();
			assert_near(tunable_get(row, (char *)&d->engine.c.tuning + part->offset), waits ? row->initial : value, 0);
			snprintf(key, sizeof(key), "vol: %s.%s = ", part->table->policy, row->name);
			assert_int_equal(lines(key), waits);
			assert_int_equal(lines(WAITS), waits);
			config = config_json(&service);
			snprintf(key, sizeof(key), "%s.%s", part->table->policy, row->name);
			assert_int_equal(shown(config, key) != NULL, waits);
			json_object_put(config);
		}
	}
}

/* Where things are kept. */
static void the_daemons_own_keys_wait_as_well(void **state)
{
	(void)state;
	reload();
	assert_int_equal(lines(WAITS), 0);
	strcpy(service.config.socket, "/y");
	reload();
	assert_int_equal(lines("terraced: socket = /y " WAITS ": until then it is /run/terrace/status\n"), 1);
	assert_int_equal(lines(WAITS), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(files_are_followed_from_a_reload_on_and_left_by_one, setup, teardown),
		cmocka_unit_test_setup_teardown(each_volume_has_files_of_its_own, setup, teardown),
		cmocka_unit_test_setup_teardown(files_that_cannot_be_followed_are_tried_again, setup, teardown),
		cmocka_unit_test_setup_teardown(refused_files_are_shown_as_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(refused_memory_is_tried_again, setup, teardown),
		cmocka_unit_test_setup_teardown(what_waits_for_the_next_start_is_said_once_a_key, setup, teardown),
		cmocka_unit_test_setup_teardown(every_tunable_is_in_force_or_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(the_daemons_own_keys_wait_as_well, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
