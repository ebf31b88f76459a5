// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The file is split by libinih; keys are looked up in tables.  See config.h.
 *
 * inih numbers no lines for its handler, so the lines are fed to it one by one, counted.
 */
#include "config.h"

#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

struct reading {
	struct config *c;
	FILE *f;
	config_error_fn error;
	void *ctx;
	int line;
	int errors;
	int set_at[1 + CONFIG_MAX_VOLUMES][TUNING_FITS + 1];	/* [policy] and each volume: lines that set one of these tunables last */
	char said[300];
};

static void tell(struct reading *r, const char *reason)
{
	r->errors++;
	r->error(r->ctx, r->line, reason);
}

/* ---- values ---------------------------------------------------------------------- */

static const char *set_bool(void *to, const char *text)
{
	static const char *const yes[] = { "yes", "on", "true", "1" }, *const no[] = { "no", "off", "false", "0" };

	for (int i = 0; i < 4; i++) {
		if (!strcmp(text, yes[i]) || !strcmp(text, no[i])) {
			*(bool *)to = !strcmp(text, yes[i]);
			return NULL;
		}
	}
	return "is neither yes nor no";
}

static const char *set_number(uint32_t *to, const char *text, uint32_t min, uint32_t max, const char *why)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (end == text || *end || text[0] == '-' || value < min || value > max)
		return why;
	*to = (uint32_t)value;
	return NULL;
}

static const char *set_word(int *to, const char *text, const char *(*name)(int), const char *why)
{
	for (int i = 0; name(i); i++) {
		if (!strcmp(name(i), text)) {
			*to = i;
			return NULL;
		}
	}
	return why;
}

static const char *heat_word(int i)
{
	return heat_kind_name((enum heat_kind)i);
}

static const char *rule_word(int i)
{
	return choose_rule_name((enum choose_rule)i);
}

static const char *sense_word(int i)
{
	return sense_kind_name((enum sense_kind)i);
}

const char *sense_kind_name(enum sense_kind kind)
{
	static const char *const names[SENSE_KINDS] = { "auto", "bpf", "access", "block", "none" };

	return kind < SENSE_KINDS ? names[kind] : NULL;
}

/* ---- keys of a volume -------------------------------------------------------------- */

static const char *set_heat(struct settings *s, const char *text)
{
	int i = s->heat;
	const char *why = set_word(&i, text, heat_word, "is none of ralt, clock, lru");

	s->heat = (enum heat_kind)i;
	return why;
}

static const char *set_rule(struct settings *s, const char *text)
{
	int i = s->rule;
	const char *why = set_word(&i, text, rule_word, "is none of precise, approx, random, oldest, hotrap");

	s->rule = (enum choose_rule)i;
	return why;
}

static const char *set_sense(struct settings *s, const char *text)
{
	int i = s->sense;
	const char *why = set_word(&i, text, sense_word, "is none of auto, bpf, access, block, none");

	s->sense = (enum sense_kind)i;
	return why;
}

static const char *set_sampling(struct settings *s, const char *text)
{
	return set_number(&s->sampling, text, 1, 65536, "is not a whole number from 1 to 65536");
}

static const char *set_heat_sample(struct settings *s, const char *text)
{
	return set_number(&s->heat_sample, text, 1, 65536, "is not a whole number from 1 to 65536");
}

static const char *set_cache(struct settings *s, const char *text)
{
	return set_number(&s->cache_blocks, text, 16, 4096, "is not a whole number from 16 to 4096");
}

static const char *set_share(double *to, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= 0 && value <= 1))
		return "is not a number from 0 to 1";
	*to = value;
	return NULL;
}

static const char *set_fill(struct settings *s, const char *text)
{
	return set_share(&s->fill, text);
}

static const char *set_evaluate(struct settings *s, const char *text)
{
	return set_bool(&s->evaluate, text);
}

static const char *set_claim(struct settings *s, const char *text)
{
	return set_bool(&s->claim, text);
}

static const char *set_drive(struct settings *s, const char *text)
{
	return set_bool(&s->drive, text);
}

static const char *set_files(struct settings *s, const char *text)
{
	return set_bool(&s->files, text);
}

static const char *set_ban(struct settings *s, const char *text)
{
	return set_bool(&s->ban_dead, text);
}

static const char *set_trim(struct settings *s, const char *text)
{
	return set_bool(&s->trim_dead, text);
}

static const char *set_ignore(struct settings *s, const char *text)
{
	return set_bool(&s->ignore_compactions, text);
}

static const char *set_retain(struct settings *s, const char *text)
{
	return set_bool(&s->retain, text);
}

static const char *set_inherit(struct settings *s, const char *text)
{
	return set_bool(&s->inherit_heat, text);
}

static const char *set_pin(struct settings *s, const char *text)
{
	return set_bool(&s->pin_tails, text);
}

static const char *set_pin_share(struct settings *s, const char *text)
{
	return set_share(&s->pin_share, text);
}

static const char *set_cold(struct settings *s, const char *text)
{
	return set_bool(&s->cold_streams, text);
}

static const char *set_cold_share(struct settings *s, const char *text)
{
	return set_share(&s->cold_share, text);
}

static const char *set_bottom_share(struct settings *s, const char *text)
{
	return set_share(&s->bottom_share, text);
}

static const char *set_fast_logs(struct settings *s, const char *text)
{
	return set_bool(&s->fast_logs, text);
}

static const char *set_logs(struct settings *s, const char *text)
{
	return set_bool(&s->database_logs, text);
}

static const char *set_tail_share(struct settings *s, const char *text)
{
	return set_share(&s->tail_share, text);
}

static const char *set_dead_wait(struct settings *s, const char *text)
{
	return set_number(&s->dead_wait_ms, text, 10, 3600000, "is not a whole number from 10 to 3600000");
}

static const char *set_scrub(struct settings *s, const char *text)
{
	return set_number(&s->scrub_days, text, 0, 3650, "is not a whole number from 0 to 3650");
}

/* In the order of FILE_PROFILE_*, "generic" last. */
static const char *const profile_names[CONFIG_PROFILES] = { "rocksdb", "leveldb", "cassandra", "generic" };

const char *config_profile_name(uint32_t i)
{
	return profile_names[i];
}

static const char *set_profiles(struct settings *s, const char *text)
{
	uint32_t profiles = 0;
	size_t n;

	for (text += strspn(text, " \t"); *text; text += n, text += strspn(text, " \t")) {
		uint32_t i = 0;

		n = strcspn(text, " \t");
		while (i < CONFIG_PROFILES && (strlen(profile_names[i]) != n || strncmp(profile_names[i], text, n)))
			i++;
		if (i == CONFIG_PROFILES)
			return "is not a list of rocksdb, leveldb, cassandra, generic";
		profiles |= 1u << i;
	}
	s->profiles = profiles;
	return profiles ? NULL : "is not a list of rocksdb, leveldb, cassandra, generic";
}

static const struct key {
	const char *name;
	const char *(*set)(struct settings *s, const char *text);
} settings_keys[] = {
	{ "heat", set_heat }, { "rule", set_rule }, { "sense", set_sense },
	{ "sampling", set_sampling }, { "heat_sample", set_heat_sample }, { "cache_blocks", set_cache }, { "fill", set_fill },
	{ "evaluate", set_evaluate }, { "claim", set_claim }, { "drive", set_drive },
	{ "files", set_files }, { "profiles", set_profiles }, { "ban_dead", set_ban }, { "trim_dead", set_trim },
	{ "dead_wait_ms", set_dead_wait }, { "ignore_compactions", set_ignore },
	{ "retain", set_retain }, { "inherit_heat", set_inherit }, { "pin_tails", set_pin }, { "pin_share", set_pin_share },
	{ "tail_share", set_tail_share }, { "cold_streams", set_cold }, { "cold_share", set_cold_share },
	{ "bottom_share", set_bottom_share }, { "database_logs", set_logs }, { "fast_logs", set_fast_logs },
	{ "scrub_days", set_scrub },
};

const char *config_key_name(uint32_t i)
{
	return i < sizeof(settings_keys) / sizeof(settings_keys[0]) ? settings_keys[i].name : NULL;
}

static bool is_of_tiers(const char *key)
{
	return !strncmp(key, "budget.", 7) || !strncmp(key, "endurance.", 10) || !strncmp(key, "price.", 6);
}

/* The bit of "budget.X", "endurance.X", "price.X" in settings.own. */
static uint32_t own_bit(const char *key)
{
	const struct tunable_table *const tables[] = { &budget_tunable_table, &endurance_tunable_table, &price_tunable_table };
	uint32_t bit = 1;

	for (int i = 0; i < 3; i++) {
		size_t n = strlen(tables[i]->policy);

		for (size_t k = 0; k < tables[i]->count; k++, bit <<= 1)
			if (!strncmp(key, tables[i]->policy, n) && key[n] == '.' && !strcmp(key + n + 1, tables[i]->rows[k].name))
				return bit;
	}
	return 0;
}

bool config_own_rate(const struct settings *s, uint32_t tier)
{
	return s->own[tier] & own_bit("budget.bytes_per_second");
}

/* @key: "budget.X" */
static const char *set_of_tier(struct settings *s, uint32_t tier, const char *key, const char *text)
{
	struct tuning one = s->tuning;
	const char *dot = strchr(key, '.'), *why;
	char policy[32] = "";

	memcpy(policy, key, (size_t)(dot - key));
	one.budget = s->budget[tier];
	one.endurance = s->endurance[tier];
	one.price = s->price[tier];
	why = tuning_set(&one, policy, dot + 1, text);
	if (why)
		return why;
	s->budget[tier] = one.budget;
	s->endurance[tier] = one.endurance;
	s->price[tier] = one.price;
	return NULL;
}

/* What a tier was told itself stays, wherever that stands: a limit must not get lost by a general key. */
static void to_other_tiers(struct settings *s, const char *key, const char *text)
{
	for (uint32_t t = 0; t < TERRACE_MAX_RESULT_TIERS; t++)
		if (!(s->own[t] & own_bit(key)))
			set_of_tier(s, t, key, text);
}

static const char *set_tunable(struct settings *s, const char *key, const char *text)
{
	const char *dot = strchr(key, '.'), *why;
	char policy[32] = "";

	if (!strncmp(key, "tier", 4) && key[4] >= '0' && key[4] < '0' + TERRACE_MAX_RESULT_TIERS && key[5] == '.') {
		uint32_t tier = (uint32_t)(key[4] - '0');

		key += 6;
		if (!is_of_tiers(key))
			return "of a tier, only budget, endurance and price can be set";
		why = set_of_tier(s, tier, key, text);
		if (!why)
			s->own[tier] |= own_bit(key);
		return why;
	}
	if ((size_t)(dot - key) >= sizeof(policy))
		return "is no key";
	memcpy(policy, key, (size_t)(dot - key));
	why = tuning_set(&s->tuning, policy, dot + 1, text);
	if (!why && is_of_tiers(key))
		to_other_tiers(s, key, text);
	return why;
}

static const char *set_setting(struct settings *s, const char *key, const char *text)
{
	for (size_t i = 0; i < sizeof(settings_keys) / sizeof(settings_keys[0]); i++)
		if (!strcmp(settings_keys[i].name, key))
			return settings_keys[i].set(s, text);
	if (strchr(key, '.'))
		return set_tunable(s, key, text);
	return "is no key of a volume";
}

/* ---- keys of the daemon -------------------------------------------------------------- */

static const char *set_path(char *to, size_t bytes, const char *text)
{
	if (text[0] != '/')
		return "is not an absolute path";
	if (strlen(text) >= bytes)
		return "is too long a path";
	memcpy(to, text, strlen(text) + 1);
	return NULL;
}

static const char *set_daemon(struct config *c, const char *key, const char *text)
{
	int level;

	if (!strcmp(key, "state_directory"))
		return set_path(c->state_directory, sizeof(c->state_directory), text);
	if (!strcmp(key, "socket"))
		return set_path(c->socket, sizeof(c->socket), text);
	if (!strcmp(key, "tick_ms"))
		return set_number(&c->tick_ms, text, 10, 10000, "is not a whole number from 10 to 10000");
	if (!strcmp(key, "lock_memory"))
		return set_bool(&c->lock_memory, text);
	if (!strcmp(key, "drive_all"))
		return set_bool(&c->drive_all, text);
	if (strcmp(key, "log_level"))
		return "is no key of [daemon]";
	level = log_level_of(text);
	if (level < 0)
		return "is none of error, warning, notice, debug";
	c->log_level = (enum log_level)level;
	return NULL;
}

/* ---- sections ------------------------------------------------------------------------- */

static struct config_volume *volume_section(struct reading *r, const char *name)
{
	struct config *c = r->c;
	struct config_volume *v;

	for (uint32_t i = 0; i < c->nr_volumes; i++)
		if (!strcmp(c->volume[i].name, name))
			return &c->volume[i];
	if (!*name || strlen(name) >= CONFIG_NAME_BYTES || strchr(name, '/')) {
		tell(r, "that is no name of a volume");
		return NULL;
	}
	if (c->nr_volumes == CONFIG_MAX_VOLUMES) {
		tell(r, "too many volumes: 64 at most");
		return NULL;
	}
	v = &c->volume[c->nr_volumes++];
	snprintf(v->name, sizeof(v->name), "%s", name);
	v->settings = c->policy;
	return v;
}

/* @section: 0: [policy], else 1 + the volume's number. */
static const char *set_in(struct reading *r, size_t section, struct settings *s, const char *key, const char *text)
{
	const char *why = set_setting(s, key, text);

	if (!why)
		r->set_at[section][tuning_fit_of(key)] = r->line;
	return why;
}

static const char *set_key(struct reading *r, const char *section, const char *key, const char *text)
{
	struct config_volume *v;

	if (!strcmp(section, "daemon"))
		return set_daemon(r->c, key, text);
	if (!strcmp(section, "policy")) {
		if (r->c->nr_volumes)
			return "comes too late: [policy] belongs before the first [volume NAME]";
		return set_in(r, 0, &r->c->policy, key, text);
	}
	if (strncmp(section, "volume ", 7)) {
		snprintf(r->said, sizeof(r->said), "is in section [%s]: there are [daemon], [policy] and [volume NAME]",
			 section);
		return r->said;
	}
	v = volume_section(r, section + 7);
	return v ? set_in(r, 1 + (size_t)(v - r->c->volume), &v->settings, key, text) : NULL;
}

static int handle(void *ctx, const char *section, const char *key, const char *text)
{
	struct reading *r = ctx;
	char line[400];
	const char *why = set_key(r, section, key, text);

	if (why) {
		snprintf(line, sizeof(line), "%s = %s: %s", key, text, why);
		tell(r, line);
	}
	return 1;
}

static char *feed(char *to, int bytes, void *stream)
{
	struct reading *r = stream;
	char *got = fgets(to, bytes, r->f);

	if (got) {
		r->line++;
		if (!strchr(to, '\n') && !feof(r->f)) {
			int c;

			tell(r, "the line is too long");
			while ((c = fgetc(r->f)) != EOF && c != '\n')
				;
			memcpy(to, "\n", 2);
		}
	}
	return got;
}

static void settings_defaults(struct settings *s)
{
	memset(s, 0, sizeof(*s));
	tuning_defaults(&s->tuning);
	for (int t = 0; t < TERRACE_MAX_RESULT_TIERS; t++) {
		s->budget[t] = s->tuning.budget;
		s->endurance[t] = s->tuning.endurance;
		s->price[t] = s->tuning.price;
	}
	s->heat = HEAT_RALT;
	s->rule = CHOOSE_APPROX;
	s->sense = SENSE_AUTO;
	s->sampling = 1;
	s->heat_sample = 16;
	s->cache_blocks = 1024;
	s->fill = 0.85;
	s->claim = true;
	s->drive = true;
	s->profiles = (1u << CONFIG_PROFILES) - 1;
	s->retain = true;
	s->ban_dead = true;
	s->trim_dead = true;
	s->ignore_compactions = true;
	s->inherit_heat = true;
	s->pin_tails = true;
	s->pin_share = 0.05;
	s->tail_share = 0.02;
	s->cold_streams = true;
	s->cold_share = 0.01;
	s->bottom_share = 0.1;
	s->fast_logs = true;
	s->database_logs = true;
	s->dead_wait_ms = 20;
	s->scrub_days = 30;
}

void config_defaults(struct config *c)
{
	memset(c, 0, sizeof(*c));
	strcpy(c->state_directory, "/var/lib/terrace");
	strcpy(c->socket, "/run/terrace/status");
	c->log_level = LOG_LEVEL_NOTICE;
	c->tick_ms = 100;
	c->lock_memory = true;
	c->drive_all = true;
	settings_defaults(&c->policy);
}

/* What does not fit has been set there, for what it began with does: whoever set one of its tunables last is told. */
static bool fits(struct reading *r, size_t section, const char *name, const struct tuning *tuning)
{
	int before = r->errors;

	for (enum tuning_fit which = 0; which < TUNING_FITS; which++) {
		const char *why = tuning_check(tuning, which);
		char line[400];

		if (!why)
			continue;
		r->line = r->set_at[section][which];
		snprintf(line, sizeof(line), "[%s]: %s", name, why);
		tell(r, line);
	}
	return r->errors == before;
}

static void check_fit(struct reading *r)
{
	char name[CONFIG_NAME_BYTES + 10];

	if (!fits(r, 0, "policy", &r->c->policy.tuning))
		return;
	for (uint32_t i = 0; i < r->c->nr_volumes; i++) {
		snprintf(name, sizeof(name), "volume %s", r->c->volume[i].name);
		fits(r, 1 + i, name, &r->c->volume[i].settings.tuning);
	}
}

int config_read(struct config *c, FILE *f, config_error_fn error, void *ctx)
{
	struct reading r = { .c = c, .f = f, .error = error, .ctx = ctx };
	int first;

	config_defaults(c);
	first = ini_parse_stream(feed, &r, handle, &r);
	if (first < 0 || ferror(f))
		return -EIO;
	if (first > 0) {
		/* Only syntax errors are inih's. */
		r.line = first;
		tell(&r, "is neither '[section]' nor 'key = value' nor a comment");
	}
	check_fit(&r);
	return r.errors;
}

int config_load(struct config *c, const char *path, config_error_fn error, void *ctx)
{
	FILE *f = fopen(path, "re");
	int n;

	if (!f)
		return -errno;
	n = config_read(c, f, error, ctx);
	fclose(f);
	return n;
}

const struct settings *config_of(const struct config *c, const char *name)
{
	const struct settings *s = c->drive_all ? &c->policy : NULL;

	for (uint32_t i = 0; i < c->nr_volumes; i++)
		if (!strcmp(c->volume[i].name, name))
			s = &c->volume[i].settings;
	return s && s->drive ? s : NULL;
}
