// SPDX-License-Identifier: GPL-2.0
/*
 * key=value parameters: one table says what there is, how it is written and
 * what it may be. Sizes take k m g t (1024), times ns us ms s; a bandwidth is
 * a size per second.
 */
#include <linux/kernel.h>
#include <linux/ctype.h>
#include <linux/log2.h>

#include "drive.h"

enum unit { NUMBER, SIZE, TIME, SWITCH, TEXT };

/**
 * struct parameter - one parameter
 * @name: as written
 * @offset: in struct drive_config
 * @unit: how to read it
 * @min: least value
 * @max: greatest value
 * @reloads: shows in the queue limits, so only a new table can change it
 */
struct parameter {
	const char *name;
	size_t offset;
	enum unit unit;
	u64 min;
	u64 max;
	bool reloads;
};

#define MINUTE_NS	(60ULL * NSEC_PER_SEC)
#define MAX_SIZE	BIT_ULL(46)
#define MAX_BW		BIT_ULL(40)

#define KEY(_name, _field, _unit, _min, _max, _reloads) {		\
	.name = _name, .offset = offsetof(struct drive_config, _field),	\
	.unit = _unit, .min = _min, .max = _max, .reloads = _reloads }

static const struct parameter keys[] = {
	KEY("read_lat", model.read_lat_ns, TIME, 0, MINUTE_NS, false),
	KEY("write_lat", model.write_lat_ns, TIME, 0, MINUTE_NS, false),
	KEY("flush_lat", model.flush_lat_ns, TIME, 0, MINUTE_NS, false),
	KEY("discard_lat", model.discard_lat_ns, TIME, 0, MINUTE_NS, false),
	KEY("channels", model.channels, NUMBER, 1, DRIVE_MAX_CHANNELS, false),
	KEY("read_bw", model.read_bw, SIZE, 0, MAX_BW, false),
	KEY("write_bw", model.write_bw, SIZE, 0, MAX_BW, false),
	KEY("flush_bw", model.flush_bw, SIZE, 0, MAX_BW, false),
	KEY("seek_min", model.seek_min_ns, TIME, 0, MINUTE_NS, false),
	KEY("seek_max", model.seek_max_ns, TIME, 0, MINUTE_NS, false),
	KEY("stroke", model.stroke_bytes, SIZE, 0, MAX_SIZE, false),
	KEY("rev", model.rev_ns, TIME, 0, NSEC_PER_SEC, false),
	KEY("track", model.track_bytes, SIZE, 0, MAX_SIZE, false),
	KEY("ahead", model.ahead_bytes, SIZE, 0, MAX_SIZE, false),
	KEY("ncq", model.ncq, NUMBER, 0, 1024, false),
	KEY("slc", model.slc_bytes, SIZE, 0, MAX_SIZE, false),
	KEY("fold_bw", model.fold_bw, SIZE, 0, MAX_BW, false),
	KEY("iu", model.iu_bytes, SIZE, 0, 1 << 20, false),
	KEY("erase", erase_bytes, SIZE, 0, MAX_SIZE, false),
	KEY("cache", cache, SWITCH, 0, 1, true),
	KEY("powercut", powercut, SWITCH, 0, 1, false),
	KEY("cache_size", cache_bytes, SIZE, BLOCK_BYTES, MAX_SIZE, false),
	KEY("atom", atom, SIZE, SECTOR_SIZE, 1 << 20, false),
	KEY("reorder", reorder, SWITCH, 0, 1, false),
	KEY("survive", survive, NUMBER, 0, 100, false),
	KEY("tear", tear, NUMBER, 0, 100, false),
	KEY("seed", seed, NUMBER, 0, U64_MAX, false),
	KEY("lbs", lbs, SIZE, SECTOR_SIZE, BLOCK_BYTES, true),
	KEY("pbs", pbs, SIZE, SECTOR_SIZE, 1 << 20, true),
	KEY("io_opt", io_opt, SIZE, 0, 1 << 30, true),
	KEY("rotational", rotational, SWITCH, 0, 1, true),
	KEY("discard", discard, SWITCH, 0, 1, true),
	KEY("lie_flush", lie_flush, SWITCH, 0, 1, false),
	KEY("lie_fua", lie_fua, SWITCH, 0, 1, false),
	KEY("keep", keep, SWITCH, 0, 1, true),
	KEY("group", group, TEXT, 0, 0, true),
};

/* two keys in one: lat=80us sets read_lat and write_lat */
static const struct {
	const char *name;
	const char *first;
	const char *second;
} pairs[] = {
	{ "lat", "read_lat", "write_lat" },
	{ "bw", "read_bw", "write_bw" },
};

static u64 *number_at(struct drive_config *c, const struct parameter *k)
{
	return (void *)c + k->offset;
}

static const u64 *number_in(const struct drive_config *c, const struct parameter *k)
{
	return (const void *)c + k->offset;
}

static const struct parameter *find_key(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(keys); i++)
		if (!strcmp(keys[i].name, name))
			return &keys[i];
	return NULL;
}

static u64 time_factor(const char *unit)
{
	static const struct {
		const char *name;
		u64 ns;
	} units[] = {
		{ "", 1 }, { "ns", 1 }, { "us", NSEC_PER_USEC },
		{ "ms", NSEC_PER_MSEC }, { "s", NSEC_PER_SEC },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(units); i++)
		if (!strcmp(unit, units[i].name))
			return units[i].ns;
	return 0;
}

static u64 size_factor(const char *unit)
{
	static const char letters[] = "kmgt";
	const char *at;

	if (!*unit)
		return 1;
	at = strchr(letters, tolower(unit[0]));
	return at && !unit[1] ? 1ULL << (10 * (at - letters + 1)) : 0;
}

/**
 * drive_parse_number() - digits with a unit
 * @text: like 80us, 16k, 7
 * @value: the result
 * @time: true for units of time, false for sizes
 *
 * Return: 0, -EINVAL or -ERANGE.
 */
int drive_parse_number(const char *text, u64 *value, bool time)
{
	char digits[21];
	size_t n = strspn(text, "0123456789");
	u64 factor = time ? time_factor(text + n) : size_factor(text + n);
	int r;

	if (!n || n >= sizeof(digits) || !factor)
		return -EINVAL;
	memcpy(digits, text, n);
	digits[n] = 0;
	r = kstrtou64(digits, 10, value);
	if (r)
		return r;
	return check_mul_overflow(*value, factor, value) ? -ERANGE : 0;
}

static int parse_switch(const char *text, u64 *value)
{
	bool on;

	if (kstrtobool(text, &on))
		return -EINVAL;
	*value = on;
	return 0;
}

static int set_text(struct drive_config *c, const struct parameter *k,
		    const char *text, char **error)
{
	if (strlen(text) >= NAME_LEN) {
		*error = "Group name is longer than 31 characters";
		return -EINVAL;
	}
	strscpy((char *)c + k->offset, text, NAME_LEN);
	return 0;
}

static int set_key(struct drive_config *c, const struct parameter *k,
		   const char *text, char **error)
{
	u64 value;
	int r;

	if (k->unit == TEXT)
		return set_text(c, k, text, error);
	if (k->unit == SWITCH)
		r = parse_switch(text, &value);
	else
		r = drive_parse_number(text, &value, k->unit == TIME);
	if (r) {
		*error = "Malformed value (sizes 4k 1m 2g, times 5us 2ms, switches on off)";
		return -EINVAL;
	}
	if (value < k->min || value > k->max) {
		*error = "Value out of range, see Documentation/drive-model.md";
		return -EINVAL;
	}
	*number_at(c, k) = value;
	return 0;
}

/* The key of "key=value" in @name; returns the value or NULL. */
static const char *split_word(const char *word, char *name, size_t size)
{
	const char *eq = strchr(word, '=');

	if (!eq || eq - word >= size)
		return NULL;
	memcpy(name, word, eq - word);
	name[eq - word] = 0;
	return eq + 1;
}

/**
 * drive_config_set() - take one key=value
 * @c: the configuration, unchanged on failure
 * @word: key=value
 * @error: what is wrong with it
 *
 * Return: 0 or -EINVAL.
 */
int drive_config_set(struct drive_config *c, const char *word, char **error)
{
	char name[NAME_LEN];
	const char *value = split_word(word, name, sizeof(name));
	const struct parameter *k;
	unsigned int i;

	if (!value) {
		*error = "Parameters are written key=value";
		return -EINVAL;
	}
	for (i = 0; i < ARRAY_SIZE(pairs); i++)
		if (!strcmp(pairs[i].name, name))
			return set_key(c, find_key(pairs[i].first), value, error) ?:
			       set_key(c, find_key(pairs[i].second), value, error);
	k = find_key(name);
	if (!k) {
		*error = "Unknown parameter, see Documentation/drive-model.md";
		return -EINVAL;
	}
	return set_key(c, k, value, error);
}

/* True if @word names something that only a new table can change. */
bool drive_config_reloads(const char *word)
{
	char name[NAME_LEN];
	const struct parameter *k;

	if (!split_word(word, name, sizeof(name)))
		return false;
	k = find_key(name);
	return k && k->reloads;
}

/**
 * drive_config_check() - do the parameters fit together?
 * @c: the configuration; what is left open is filled in
 * @bytes: size of the drive
 * @error: what is wrong
 *
 * Return: 0 or -EINVAL.
 */
int drive_config_check(struct drive_config *c, u64 bytes, char **error)
{
	struct drive_model *m = &c->model;

	if (!is_power_of_2(c->lbs) || !is_power_of_2(c->pbs) || c->pbs < c->lbs)
		*error = "lbs and pbs must be powers of two and pbs at least lbs";
	else if (!is_power_of_2(c->atom))
		*error = "atom must be a power of two";
	else if (m->iu_bytes && (!is_power_of_2(m->iu_bytes) || m->iu_bytes < c->lbs))
		*error = "iu must be a power of two and at least lbs";
	else if (c->survive + c->tear > 100)
		*error = "survive and tear together exceed 100 percent";
	else if (m->slc_bytes && !m->fold_bw)
		*error = "slc needs fold_bw";
	else if (drive_model_is_disk(m) && !m->track_bytes && !m->read_bw)
		*error = "A disk (seek_max or rev) needs read_bw or track";
	else if (m->seek_max_ns && m->seek_max_ns < m->seek_min_ns)
		*error = "seek_max is less than seek_min";
	else if (c->cache && !c->powercut)
		*error = "cache=on needs powercut=on";
	else if (bytes & (c->lbs - 1))
		*error = "Size is not a multiple of lbs";
	else
		return 0;
	return -EINVAL;
}

/**
 * drive_config_emit() - the parameters as words of a table line
 * @c: the configuration
 * @but: leave out what is as here
 * @result: buffer
 * @maxlen: its size
 *
 * Return: number of characters written.
 */
unsigned int drive_config_emit(const struct drive_config *c,
			       const struct drive_config *but,
			       char *result, unsigned int maxlen)
{
	unsigned int i, sz = 0;

	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		const struct parameter *k = &keys[i];

		if (k->unit == TEXT) {
			if (c->group[0])
				DMEMIT(" %s=%s", k->name, c->group);
		} else if (*number_in(c, k) != *number_in(but, k)) {
			DMEMIT(" %s=%llu", k->name, *number_in(c, k));
		}
	}
	return sz;
}
