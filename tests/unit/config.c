// SPDX-License-Identifier: GPL-2.0-or-later
/* terraced's configuration: every key, errors with their line, precedence; the example file is right. */
#include <stdio.h>

#include "policy_lib.h"

#include "config.h"
#include "sense/files.h"

struct told {
	char text[2000];
};

static void tell(void *ctx, int line, const char *reason)
{
	struct told *t = ctx;
	size_t n = strlen(t->text);

	snprintf(t->text + n, sizeof(t->text) - n, "%d: %s\n", line, reason);
}

static int read_text(struct config *c, const char *text, struct told *t)
{
	FILE *f = fmemopen((void *)text, strlen(text), "r");
	int n;

	assert_non_null(f);
	t->text[0] = 0;
	n = config_read(c, f, tell, t);
	fclose(f);
	return n;
}

static struct config c;
static struct told t;

static void accepts(const char *text)
{
	if (read_text(&c, text, &t))
		fail_msg("%s", t.text);
}

static void refuses(const char *text, const char *said)
{
	if (!read_text(&c, text, &t))
		fail_msg("accepted: %s", text);
	if (!strstr(t.text, said))
		fail_msg("'%s' instead of '%s'", t.text, said);
}

static void defaults_without_a_word(void **state)
{
	(void)state;
	accepts("# nothing\n\n; nothing\n");
	assert_string_equal(c.state_directory, "/var/lib/terrace");
	assert_int_equal(c.policy.heat, HEAT_RALT);
	assert_int_equal(c.policy.rule, CHOOSE_APPROX);
	assert_int_equal(c.policy.tuning.choose.candidates, 8);
	assert_non_null(config_of(&c, "any"));
}

static void every_key_is_heard(void **state)
{
	(void)state;
	accepts("[daemon]\nstate_directory = /x\nsocket = /y\nlog_level = debug\ntick_ms = 50\n"
		"lock_memory = no\ndrive_all = no\n"
		"[policy]\nheat = lru\nrule = hotrap\nsense = none\nsampling = 16\nheat_sample = 8\ncache_blocks = 64\n"
		"fill = 0.5\nevaluate = yes\nclaim = no\nchoose.candidates = 3\n"
		"files = yes\nprofiles = cassandra  rocksdb\nretain = no\nban_dead = no\ntrim_dead = no\ndead_wait_ms = 70\nignore_compactions = no\ninherit_heat = no\npin_tails = no\ncold_streams = no\ncold_share = 0.3\nbottom_share = 0.4\nfast_logs = no\ndatabase_logs = no\npin_share = 0.2\ntail_share = 0.1\nscrub_days = 12\n");
	assert_string_equal(c.state_directory, "/x");
	assert_string_equal(c.socket, "/y");
	assert_int_equal(c.log_level, LOG_LEVEL_DEBUG);
	assert_int_equal(c.tick_ms, 50);
	assert_false(c.lock_memory);
	assert_int_equal(c.policy.heat, HEAT_LRU);
	assert_int_equal(c.policy.rule, CHOOSE_HOTRAP);
	assert_int_equal(c.policy.sense, SENSE_NONE);
	assert_int_equal(c.policy.sampling, 16);
	assert_int_equal(c.policy.heat_sample, 8);
	assert_int_equal(c.policy.cache_blocks, 64);
	assert_near(c.policy.fill, 0.5, 0);
	assert_true(c.policy.evaluate);
	assert_false(c.policy.claim);
	assert_true(c.policy.files);
	assert_int_equal(c.policy.profiles, FILE_PROFILE_ROCKSDB | FILE_PROFILE_CASSANDRA);
	assert_false(c.policy.retain);
	assert_false(c.policy.ban_dead);
	assert_false(c.policy.trim_dead);
	assert_false(c.policy.ignore_compactions);
	assert_false(c.policy.inherit_heat);
	assert_false(c.policy.pin_tails);
	assert_false(c.policy.cold_streams);
	assert_true(c.policy.cold_share > 0.29);
	assert_true(c.policy.bottom_share > 0.39);
	assert_false(c.policy.fast_logs);
	assert_false(c.policy.database_logs);
	assert_true(c.policy.pin_share > 0.19 && c.policy.tail_share < 0.11);
	assert_int_equal(c.policy.dead_wait_ms, 70);
	assert_int_equal(c.policy.scrub_days, 12);
	assert_int_equal(c.policy.tuning.choose.candidates, 3);
	assert_null(config_of(&c, "any"));	/* drive_all = no */
}

/* Every tunable of every policy can be set to both ends of its range, and not beyond. */
static void every_tunable_is_a_key(void **state)
{
	(void)state;
	for (size_t i = 0; i < tuning_part_count; i++) {
		const struct tunable_table *table = tuning_parts[i].table;

		for (size_t k = 0; k < table->count; k++) {
			const struct tunable *row = &table->rows[k];
			struct tuning tuning;
			char text[64];

			tuning_defaults(&tuning);
			snprintf(text, sizeof(text), "%.17g", row->min);
			assert_null(tuning_set(&tuning, table->policy, row->name, text));
			assert_near(tunable_get(row, (char *)&tuning + tuning_parts[i].offset), row->min, 0);
			snprintf(text, sizeof(text), "%.17g", row->max * 2 + 1);
			assert_non_null(tuning_set(&tuning, table->policy, row->name, text));
			assert_non_null(tuning_set(&tuning, table->policy, row->name, "x"));
			assert_non_null(tuning_set(&tuning, table->policy, row->name, ""));
		}
	}
}

static void errors_name_line_and_reason(void **state)
{
	(void)state;
	refuses("[policy]\nchoose.candidates = 0\n", "2: choose.candidates = 0: '0' is not a whole number from");
	refuses("[policy]\nchoose.candidates = 1.5\n", "2: ");
	refuses("[policy]\n\nchoose.nonsense = 1\n", "3: choose.nonsense = 1: policy choose has no tunable 'nonsense'");
	refuses("[policy]\nprofiles = rocksdb, leveldb\n", "2: profiles = rocksdb, leveldb: is not a list of");
	refuses("[policy]\nprofiles = rocks\n", "2: profiles = rocks: is not a list of");
	refuses("[policy]\nprofiles =\n", "2: ");
	refuses("[policy]\nnonsense.x = 1\n", "no policy is called 'nonsense'");
	refuses("[policy]\nnonsense = 1\n", "2: nonsense = 1: is no key of a volume");
	refuses("[daemon]\nnonsense = 1\n", "2: nonsense = 1: is no key of [daemon]");
	refuses("[deamon]\ntick_ms = 1\n", "is in section [deamon]: there are [daemon], [policy] and [volume NAME]");
	refuses("tick_ms = 1\n", "1: ");
	refuses("[daemon]\ntick_ms = 1\n", "2: tick_ms = 1: is not a whole number from 10 to 10000");
	refuses("[daemon]\ntick_ms = -20\n", "2: ");
	refuses("[daemon]\nlog_level = loud\n", "is none of error, warning, notice, debug");
	refuses("[daemon]\nstate_directory = here\n", "is not an absolute path");
	refuses("[daemon]\nlock_memory = maybe\n", "is neither yes nor no");
	refuses("[policy]\nheat = sun\n", "is none of ralt, clock, lru");
	refuses("[policy]\nrule = best\n", "is none of precise");
	refuses("[policy]\nsense = x\n", "is none of auto");
	refuses("[policy]\nfiles = some\n", "is neither yes nor no");
	refuses("[policy]\npin_share = 1.5\n", "is not a number from 0 to 1");
	refuses("[policy]\nscrub_days = 3651\n", "2: scrub_days = 3651: is not a whole number from 0 to 3650");
	refuses("[policy]\ndead_wait_ms = 9\n", "2: dead_wait_ms = 9: is not a whole number from 10 to 3600000");
	refuses("[policy]\nfill = 2\n", "is not a number from 0 to 1");
	refuses("[volume a]\ndrive = yes\n[policy]\nheat = lru\n", "4: heat = lru: comes too late");
	refuses("[volume a/b]\ndrive = yes\n", "2: that is no name of a volume");
	refuses("[policy\nheat = lru\n", "1: is neither '[section]' nor 'key = value' nor a comment");
	refuses("[policy]\ntier1.msc.wear_price = 2\n", "of a tier, only budget, endurance and price");
}

/* What does not fit together is told with the last line that had a part in it, in that section. */
static void contradictions_name_a_line(void **state)
{
	(void)state;
	refuses("[policy]\nwatermark.low = 0.99\nwatermark.high = 0.98\n", "3: [policy]: watermark.low must be below");
	refuses("[policy]\nwatermark.high = 0.5\nheat = lru\nclimb.noise = 0.1\n", "2: [policy]: watermark.low must be below");
	refuses("[policy]\n\nclimb.min = 0.9\nfill = 0.5\nclimb.max = 0.8\nwatermark.low = 0.5\n", "5: [policy]: climb.min must be below");
	refuses("[policy]\nralt.page_bytes = 5000\nbudget.in_flight = 5\n", "2: [policy]: ralt.page_bytes does not fit");
	/* of the same policy, but fitting */
	refuses("[policy]\nralt.page_bytes = 5000\nralt.fanout = 12\nralt.max_hot_share = 0.7\n", "2: [policy]: ralt.page_bytes does not fit");
	refuses("[policy]\nclimb.min = 0.9\nclimb.max = 0.8\nclimb.noise = 0.1\n", "3: [policy]: climb.min must be below");
	refuses("[policy]\nralt.min_hot_share = 0.8\nralt.counter_max = 6\n", "2: [policy]: ralt.min_hot_share does not fit");
	refuses("[policy]\nwatermark.high = 0.97\n[volume a]\nheat = lru\n[volume b]\nwatermark.low = 0.975\nheat = lru\n",
		"6: [volume b]: watermark.low must be below");
	/* one that is refused has no part in it */
	refuses("[policy]\nwatermark.high = 0.5\nwatermark.low = 7\n", "2: [policy]: watermark.low must be below");
	/* nor has what another section says */
	refuses("[volume a]\nclimb.max = 0.05\n[volume b]\nclimb.max = 0.9\n", "2: [volume a]: climb.min must be below");
}

static void all_errors_are_told(void **state)
{
	(void)state;
	assert_int_equal(read_text(&c, "[daemon]\na = 1\nb = 2\ntick_ms = 20\nc = 3\n", &t), 3);
	assert_non_null(strstr(t.text, "2: a"));
	assert_non_null(strstr(t.text, "3: b"));
	assert_non_null(strstr(t.text, "5: c"));
}

static void a_volume_builds_on_the_policy(void **state)
{
	const struct settings *s;

	(void)state;
	accepts("[policy]\nheat = clock\nchoose.candidates = 4\n[volume a]\nchoose.candidates = 5\n"
		"[volume b]\ndrive = no\n");
	s = config_of(&c, "a");
	assert_int_equal(s->heat, HEAT_CLOCK);
	assert_int_equal(s->tuning.choose.candidates, 5);
	assert_int_equal(config_of(&c, "c")->tuning.choose.candidates, 4);
	assert_null(config_of(&c, "b"));
}

static void tiers_have_limits_of_their_own(void **state)
{
	(void)state;
	accepts("[policy]\nbudget.in_flight = 5\nbudget.bytes_per_second = 1e6\n"
		"tier1.budget.bytes_per_second = 2e6\ntier0.endurance.drive_writes_per_day = 0.3\n");
	assert_near(c.policy.budget[0].bytes_per_second, 1e6, 0);
	assert_near(c.policy.budget[1].bytes_per_second, 2e6, 0);
	assert_int_equal(c.policy.budget[1].in_flight, 5);
	assert_near(c.policy.endurance[0].drive_writes_per_day, 0.3, 0);
	assert_near(c.policy.endurance[1].drive_writes_per_day, 0, 0);
	accepts("[policy]\ntier1.price.read_us = 4000\n[volume v]\nprice.bytes_per_us = 250\nprice.read_us = 90\n");
	assert_near(c.policy.price[0].read_us, 0, 0);
	assert_near(c.policy.price[1].read_us, 4000, 0);
	assert_near(config_of(&c, "v")->price[0].read_us, 90, 0);
	assert_near(config_of(&c, "v")->price[1].read_us, 4000, 0);
	assert_near(config_of(&c, "v")->price[1].bytes_per_us, 250, 0);
	refuses("[policy]\ntier9.budget.in_flight = 5\n", "no policy is called 'tier9'");
}

/* What a network tier gets by its class gives way to what was said of that very tier, not to a key for all. */
static void a_tiers_own_rate_is_known(void **state)
{
	(void)state;
	accepts("[policy]\nbudget.bytes_per_second = 500e6\nbudget.net_bytes_per_second = 50e6\n"
		"tier2.budget.in_flight = 3\ntier1.budget.bytes_per_second = 200e6\n[volume v]\ntier3.budget.bytes_per_second = 1e6\n");
	assert_near(c.policy.budget[2].net_bytes_per_second, 50e6, 0);
	assert_true(config_own_rate(&c.policy, 1));
	assert_false(config_own_rate(&c.policy, 2));
	assert_false(config_own_rate(&c.policy, 3));
	assert_true(config_own_rate(config_of(&c, "v"), 1));
	assert_true(config_own_rate(config_of(&c, "v"), 3));
}

/* Whatever stands before or behind it, in that section or another: a general key, of the same limit or of others. */
static void a_tiers_own_limit_is_not_lost(void **state)
{
	static const char *const texts[] = {
		"[policy]\ntier1.endurance.drive_writes_per_day = 0.25\nendurance.drive_writes_per_day = 5\nbudget.bytes_per_second = 3e6\n[volume v]\n",
		"[policy]\nbudget.bytes_per_second = 3e6\nendurance.drive_writes_per_day = 5\ntier1.endurance.drive_writes_per_day = 0.25\n[volume v]\n",
		"[policy]\ntier1.endurance.drive_writes_per_day = 0.25\n[volume v]\nbudget.bytes_per_second = 3e6\nendurance.drive_writes_per_day = 5\n",
		"[policy]\nbudget.bytes_per_second = 3e6\nendurance.drive_writes_per_day = 5\n[volume v]\ntier1.endurance.drive_writes_per_day = 0.25\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const struct settings *s;

		accepts(texts[i]);
		s = config_of(&c, "v");
		assert_near(s->endurance[1].drive_writes_per_day, 0.25, 0);
		assert_near(s->endurance[0].drive_writes_per_day, 5, 0);
		assert_near(s->budget[0].bytes_per_second, 3e6, 0);
		assert_near(s->budget[1].bytes_per_second, 3e6, 0);
	}
	/* and of what is said of a tier, the later */
	accepts("[policy]\ntier1.budget.bytes_per_second = 1e6\n[volume v]\ntier1.budget.bytes_per_second = 2e6\n");
	assert_near(config_of(&c, "v")->budget[1].bytes_per_second, 2e6, 0);
}

static void long_lines_are_refused_not_cut(void **state)
{
	char text[20000];

	(void)state;
	strcpy(text, "[policy]\nheat = ");
	memset(text + strlen(text), 'x', 15000);
	text[15000] = 0;
	strcat(text, "\nrule = random\n");
	refuses(text, "2: ");
	assert_int_equal(c.policy.rule, CHOOSE_RANDOM);
}

/* The example with every key, commented in, means the defaults. */
static void the_example_is_right(void **state)
{
	struct config plain;
	char line[400], text[20000] = "";
	FILE *f = fopen("packaging/terraced.conf", "r");

	(void)state;
	if (!f)
		skip();
	while (fgets(line, sizeof(line), f))
		strcat(text, line[0] == ';' ? line + 1 : line);
	fclose(f);
	accepts(text);
	config_defaults(&plain);
	assert_string_equal(c.socket, plain.socket);
	assert_int_equal(c.tick_ms, plain.tick_ms);
	assert_memory_equal(&c.policy.tuning, &plain.policy.tuning, sizeof(plain.policy.tuning));
	assert_int_equal(c.policy.heat, plain.policy.heat);
	assert_int_equal(c.policy.cache_blocks, plain.policy.cache_blocks);
	assert_int_equal(c.nr_volumes, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_without_a_word),
		cmocka_unit_test(every_key_is_heard),
		cmocka_unit_test(every_tunable_is_a_key),
		cmocka_unit_test(errors_name_line_and_reason),
		cmocka_unit_test(contradictions_name_a_line),
		cmocka_unit_test(all_errors_are_told),
		cmocka_unit_test(a_volume_builds_on_the_policy),
		cmocka_unit_test(tiers_have_limits_of_their_own),
		cmocka_unit_test(a_tiers_own_limit_is_not_lost),
		cmocka_unit_test(a_tiers_own_rate_is_known),
		cmocka_unit_test(long_lines_are_refused_not_cut),
		cmocka_unit_test(the_example_is_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
