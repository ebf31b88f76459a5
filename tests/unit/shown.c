// SPDX-License-Identifier: GPL-2.0-or-later
/* terraced --show-config: every key that the configuration knows is there, under its name, with the value that it was given. */
#include <stdio.h>

#include "policy_lib.h"

#include "service/service.h"

static struct service service;

static int setup(void **state)
{
	(void)state;
	service.driver = calloc(CONFIG_MAX_VOLUMES, sizeof(*service.driver));
	assert_non_null(service.driver);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(service.driver);
	return 0;
}

static void told(void *ctx, int line, const char *reason)
{
	(void)ctx;
	(void)line;
	(void)reason;
}

/* Whether the configuration has no errors; *@out is then what a daemon that was started with it shows. */
static bool shows(const char *text, struct json_object **out)
{
	FILE *f = fmemopen((void *)text, strlen(text), "r");
	int errors;

	assert_non_null(f);
	errors = config_read(&service.config, f, told, NULL);
	fclose(f);
	strcpy(service.kept.state_directory, service.config.state_directory);
	strcpy(service.kept.socket, service.config.socket);
	service.locked = service.config.lock_memory;
	*out = errors ? NULL : config_json(&service);
	return !errors;
}

static struct json_object *in(struct json_object *o, const char *name)
{
	struct json_object *value = NULL;

	if (!json_object_object_get_ex(o, name, &value))
		fail_msg("%s is not shown", name);
	return value;
}

/* Names of @one whose values are others in @other, which is 1 where it is @key alone. */
static uint32_t differ(struct json_object *one, struct json_object *other, const char *key)
{
	uint32_t n = 0;

	assert_int_equal(json_object_object_length(one), json_object_object_length(other));
	json_object_object_foreach(one, name, value) {
		if (json_object_equal(value, in(other, name)))
			continue;
		if (strcmp(name, key))
			fail_msg("%s changes %s", key, name);
		n++;
	}
	return n;
}

/* Of these each key takes one that is not its default. */
static const char *const values[] = {
	"yes", "no", "lru", "random", "block", "cassandra", "0.25", "77", "3", "/elsewhere", "debug",
};

/* @of: where the section's keys are shown; NULL: on top. */
static void changes_itself_alone(const char *section, const char *of, const char *key)
{
	struct json_object *plain, *changed;
	uint32_t n = 0;
	char text[200];

	assert_true(shows("", &plain));
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		snprintf(text, sizeof(text), "[%s]\n%s = %s\n", section, key, values[i]);
		if (!shows(text, &changed))
			continue;
		n += differ(of ? in(plain, of) : plain, of ? in(changed, of) : changed, key);
		json_object_put(changed);
	}
	if (!n)
		fail_msg("%s: no value of it is shown", key);
	json_object_put(plain);
}

static void each_key_of_a_volume_is_shown(void **state)
{
	uint32_t i = 0;

	(void)state;
	for (; config_key_name(i); i++)
		changes_itself_alone("policy", "policy", config_key_name(i));
	assert_true(i > 20);
}

/* Its keys by the example, which has them all (host/tuning-words). */
static void each_key_of_the_daemon_is_shown(void **state)
{
	FILE *f = fopen("packaging/terraced.conf", "r");
	char line[400] = "";
	uint32_t n = 0;

	(void)state;
	assert_non_null(f);
	while (strcmp(line, "[daemon]\n"))
		assert_non_null(fgets(line, sizeof(line), f));
	while (fgets(line, sizeof(line), f) && line[0] != '[') {
		if (line[0] != ';')
			continue;
		line[strcspn(line, " ")] = 0;
		changes_itself_alone("daemon", NULL, line + 1);
		n++;
	}
	fclose(f);
	assert_int_equal(n, 6);
}

static bool is_set(const struct tunable_table *table, const struct tunable *row, const char *where, double value,
		   struct json_object **out)
{
	char text[200];

	snprintf(text, sizeof(text), "[policy]\n%s%s.%s = %.17g\n", where, table->policy, row->name, value);
	return shows(text, out);
}

static double shown_of(struct json_object *o, const struct tunable_table *table, const struct tunable *row)
{
	return json_object_get_double(in(in(o, table->policy), row->name));
}

/* @where: "tier1.", or nothing for all. */
static void tunable_is_shown(const struct tunable_table *table, const struct tunable *row, const char *where)
{
	struct json_object *config = NULL, *policy, *tiers;
	double value = row->max;

	/* Some have to fit others, which the other end does. */
	if (row->initial >= value || !is_set(table, row, where, value, &config)) {
		value = row->min;
		assert_true(value < row->initial && is_set(table, row, where, value, &config));
	}
	policy = in(config, "policy");
	tiers = in(policy, "tiers");
	assert_near(shown_of(policy, table, row), *where ? row->initial : value, 0);
	if (*where) {
		assert_near(shown_of(json_object_array_get_idx(tiers, 1), table, row), value, 0);
		assert_near(shown_of(json_object_array_get_idx(tiers, 2), table, row), row->initial, 0);
	}
	json_object_put(config);
}

static void each_tunable_is_shown(void **state)
{
	(void)state;
	for (size_t i = 0; i < tuning_part_count; i++)
		for (size_t k = 0; k < tuning_parts[i].table->count; k++)
			tunable_is_shown(tuning_parts[i].table, &tuning_parts[i].table->rows[k], "");
}

static void each_tunable_of_a_tier_is_shown(void **state)
{
	const struct tunable_table *const tables[] = { &budget_tunable_table, &endurance_tunable_table, &price_tunable_table };

	(void)state;
	for (int i = 0; i < 3; i++)
		for (size_t k = 0; k < tables[i]->count; k++)
			tunable_is_shown(tables[i], &tables[i]->rows[k], "tier1.");
}

/* A volume with a section of its own has all of them, too. */
static void a_volume_of_its_own_shows_as_much(void **state)
{
	struct json_object *config;

	(void)state;
	assert_true(shows("[volume vol]\nchoose.candidates = 3\n", &config));
	assert_int_equal(differ(in(config, "policy"), in(in(config, "volumes"), "vol"), "choose"), 1);
	json_object_put(config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_key_of_a_volume_is_shown, setup, teardown),
		cmocka_unit_test_setup_teardown(each_key_of_the_daemon_is_shown, setup, teardown),
		cmocka_unit_test_setup_teardown(each_tunable_is_shown, setup, teardown),
		cmocka_unit_test_setup_teardown(each_tunable_of_a_tier_is_shown, setup, teardown),
		cmocka_unit_test_setup_teardown(a_volume_of_its_own_shows_as_much, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
