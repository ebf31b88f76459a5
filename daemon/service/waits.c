// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Keys that wait for the next start: a reload has read them, and something else is in force.  And those that the kernel
 * has refused.
 *
 * No list says which these are. What the daemon and its loops work with is shown as the configuration is (status.c), and
 * where the two differ a key waits: so none is forgotten that somebody makes fixed later on.
 */
#include <stdio.h>
#include <string.h>

#include "service/service.h"

/* What the loop moves itself is none of it: the pinning threshold climbs from where it is configured. */
static void in_force(const struct driver *d, const struct settings *configured, struct settings *out)
{
	const struct engine_config *c = &d->engine.c;

	*out = *configured;
	out->heat = c->heat;
	out->rule = c->rule;
	out->cache_blocks = c->cache_blocks;
	out->fill = c->fill;
	out->evaluate = c->evaluate;
	out->claim = c->claim;
	out->retain = c->retain;
	out->scrub_days = c->scrub_days;
	out->tuning = c->tuning;
	out->tuning.mapper.pinning_threshold = configured->tuning.mapper.pinning_threshold;
	out->sense = d->sensed.kind;
	out->sampling = d->sensed.sampling;
	out->heat_sample = d->sensed.heat_sample;
}

/* Each of @now and @next, which have the same keys. */
static void compare(struct json_object *now, struct json_object *next, const char *of, struct json_object *out)
{
	json_object_object_foreach(next, key, value) {
		struct json_object *old = json_object_object_get(now, key), *both;
		char name[100];

		snprintf(name, sizeof(name), "%s%s%s", of, *of ? "." : "", key);
		if (json_object_is_type(value, json_type_object)) {
			compare(old, value, name, out);
		} else if (!json_object_equal(old, value)) {
			both = json_object_new_object();
			json_object_object_add(both, "in_force", json_object_get(old));
			json_object_object_add(both, "configured", json_object_get(value));
			json_object_object_add(out, name, both);
		}
	}
}

static struct json_object *differences(struct json_object *now, struct json_object *next)
{
	struct json_object *out = json_object_new_object();

	compare(now, next, "", out);
	json_object_put(now);
	json_object_put(next);
	return out;
}

static struct json_object *waits_of_volume(const struct service *s, const struct driver *d)
{
	const struct settings *configured = config_of(&s->config, d->name);
	struct settings now;

	if (!configured)
		return json_object_new_object();
	in_force(d, configured, &now);
	return differences(settings_json(&now), settings_json(configured));
}

static struct json_object *kept_json(const char *state_directory, const char *socket)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "state_directory", json_object_new_string(state_directory));
	json_object_object_add(o, "socket", json_object_new_string(socket));
	return o;
}

static struct json_object *waits_of_daemon(const struct service *s)
{
	return differences(kept_json(s->kept.state_directory, s->kept.socket),
			   kept_json(s->config.state_directory, s->config.socket));
}

/* Numbers as they are written there. */
static void value_text(struct json_object *value, char *text, size_t bytes)
{
	if (json_object_is_type(value, json_type_double))
		snprintf(text, bytes, "%.10g", json_object_get_double(value));
	else
		snprintf(text, bytes, "%s", json_object_get_string(value));
}

/* Nothing of what was told @before. */
static void tell(const char *volume, struct json_object *waits, struct json_object *before)
{
	json_object_object_foreach(waits, key, both) {
		char now[300], next[300];

		if (json_object_equal(both, json_object_object_get(before, key)))
			continue;
		value_text(json_object_object_get(both, "in_force"), now, sizeof(now));
		value_text(json_object_object_get(both, "configured"), next, sizeof(next));
		log_line(LOG_LEVEL_NOTICE, volume, "%s = %s takes effect with the next start: until then it is %s", key, next, now);
	}
}

void waits_tell(struct service *s)
{
	struct json_object *waits = waits_json(s), *before = s->waits_told;
	struct json_object *volumes_before = json_object_object_get(before, "volumes");

	tell(NULL, json_object_object_get(waits, "daemon"), json_object_object_get(before, "daemon"));
	json_object_object_foreach(json_object_object_get(waits, "volumes"), name, of_volume)
		tell(name, of_volume, json_object_object_get(volumes_before, name));
	json_object_put(before);
	s->waits_told = waits;
}

/* @of_daemon, and of each volume that is driven. */
static struct json_object *of_all(const struct service *s, struct json_object *of_daemon,
				  struct json_object *(*of_volume)(const struct service *s, const struct driver *d))
{
	struct json_object *o = json_object_new_object(), *volumes = json_object_new_object();

	json_object_object_add(o, "daemon", of_daemon);
	for (uint32_t i = 0; i < CONFIG_MAX_VOLUMES; i++)
		if (s->driver[i].port)
			json_object_object_add(volumes, s->driver[i].name, of_volume(s, &s->driver[i]));
	json_object_object_add(o, "volumes", volumes);
	return o;
}

struct json_object *waits_json(const struct service *s)
{
	return of_all(s, waits_of_daemon(s), waits_of_volume);
}

static struct json_object *refused_of_volume(const struct service *s, const struct driver *d)
{
	const struct settings *configured = config_of(&s->config, d->name);
	struct settings now;

	if (!configured)
		return json_object_new_object();
	now = *configured;
	now.files = d->follow;
	return differences(settings_json(&now), settings_json(configured));
}

static struct json_object *locked_json(bool locked)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "lock_memory", json_object_new_boolean(locked));
	return o;
}

struct json_object *refused_json(const struct service *s)
{
	return of_all(s, differences(locked_json(s->locked), locked_json(s->config.lock_memory)), refused_of_volume);
}
