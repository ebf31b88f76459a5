// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Volumes come and go: each control device in /dev/terrace that the configuration does not
 * leave alone gets a loop; one that is gone loses it.
 *
 * A volume's state is in STATE_DIRECTORY/UUID, so that a renamed one keeps its heat.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "service/service.h"

#define TRY_AGAIN_NS	60000000000ull	/* a volume that could not be driven */

static void from_engine(void *ctx, enum engine_level level, const char *line)
{
	const struct driver *d = ctx;

	/* The same four levels. */
	log_line((enum log_level)level, d->name, "%s", line);
}

static uint64_t seed(void)
{
	uint64_t value = 0;

	if (getrandom(&value, sizeof(value), GRND_NONBLOCK) != sizeof(value))
		value = service_now_ns();
	return value;
}

void driver_config(const struct service *s, const char *name, const char *directory,
		   const struct settings *settings, struct engine_config *out)
{
	(void)s;
	(void)name;
	*out = (struct engine_config){
		.directory = directory, .tuning = settings->tuning, .heat = settings->heat,
		.rule = settings->rule, .cache_blocks = settings->cache_blocks, .fill = settings->fill,
		.pin_share = settings->pin_tails ? settings->pin_share : 0,
		.evaluate = settings->evaluate, .claim = settings->claim, .seed = seed(),
		.log = from_engine,
	};
	memcpy(out->budget, settings->budget, sizeof(out->budget));
	memcpy(out->endurance, settings->endurance, sizeof(out->endurance));
}

/* STATE_DIRECTORY/UUID, made if it is not there. */
static void state_directory(const struct service *s, struct port *port, char *path, size_t bytes)
{
	struct port_shape shape = { 0 };
	int n;

	port->ops->shape(port, &shape);
	n = snprintf(path, bytes, "%s/", s->config.state_directory);
	for (int i = 0; i < 16 && n > 0 && (size_t)n < bytes; i++)
		n += snprintf(path + n, bytes - (size_t)n, "%02x", shape.uuid[i]);
	if (mkdir(s->config.state_directory, 0700) && errno != EEXIST)
		log_line(LOG_LEVEL_WARNING, NULL, "%s: %s", s->config.state_directory, strerror(errno));
	else if (mkdir(path, 0700) && errno != EEXIST)
		log_line(LOG_LEVEL_WARNING, NULL, "%s: %s", path, strerror(errno));
}

static int start(struct service *s, struct driver *d, const char *name, const struct settings *settings)
{
	struct engine_config config;
	int err;

	memset(d, 0, sizeof(*d));
	snprintf(d->name, sizeof(d->name), "%.63s", name);
	err = s->open(name, settings, &d->port, &d->sense, &d->follow);
	if (err)
		return err;
	state_directory(s, d->port, d->directory, sizeof(d->directory));
	driver_config(s, name, d->directory, settings, &config);
	config.log_ctx = d;
	err = engine_open(&d->engine, &config, d->port, service_now_ns());
	if (err) {
		follow_close(d->follow);
		d->port->ops->close(d->port);
		d->port = NULL;
		return err;
	}
	log_line(LOG_LEVEL_NOTICE, name, "driving%s: heat by %s, sensed by %s, victims by %s",
		 settings->evaluate ? " (evaluation: nothing is ordered)" : "",
		 heat_kind_name(d->engine.warmth.kind), d->sense, choose_rule_name(settings->rule));
	return 0;
}

static struct driver *driver_of(struct service *s, const char *name)
{
	for (uint32_t i = 0; i < CONFIG_MAX_VOLUMES; i++)
		if (s->driver[i].port && !strcmp(s->driver[i].name, name))
			return &s->driver[i];
	return NULL;
}

static struct driver *free_driver(struct service *s)
{
	for (uint32_t i = 0; i < CONFIG_MAX_VOLUMES; i++)
		if (!s->driver[i].port)
			return &s->driver[i];
	return NULL;
}

static void stop_driver(struct service *s, struct driver *d)
{
	engine_close(&d->engine);
	follow_close(d->follow);
	d->port->ops->close(d->port);
	d->port = NULL;
	s->nr_drivers--;
}

/* One that failed a moment ago is left alone for a while. */
static void try_start(struct service *s, const char *name, const struct settings *settings)
{
	struct driver *d = free_driver(s);

	if (!strcmp(s->refused, name) && service_now_ns() - s->refused_at_ns < TRY_AGAIN_NS)
		return;
	if (!d || !start(s, d, name, settings)) {
		s->nr_drivers += d != NULL;
		return;
	}
	snprintf(s->refused, sizeof(s->refused), "%.63s", name);
	s->refused_at_ns = service_now_ns();
}

void drivers_look(struct service *s)
{
	DIR *dir = opendir(TERRACE_DEVICE_FOLDER);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		const struct settings *settings;

		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= CONFIG_NAME_BYTES)
			continue;
		if (s->only && strcmp(s->only, entry->d_name))
			continue;
		settings = config_of(&s->config, entry->d_name);
		if (settings && !driver_of(s, entry->d_name))
			try_start(s, entry->d_name, settings);
	}
	if (dir)
		closedir(dir);
}

static void note_growth(struct driver *d)
{
	const struct port_state *state = &d->engine.state;
	uint64_t used = 0;

	for (uint32_t t = 0; t < state->nr_tiers; t++)
		used += state->tier[t].used_blocks;
	growth_note(&d->growth, service_now_ns(), used);
}

void drivers_tick(struct service *s)
{
	for (uint32_t i = 0; i < CONFIG_MAX_VOLUMES; i++) {
		struct driver *d = &s->driver[i];
		int err;

		if (!d->port)
			continue;
		err = engine_tick(&d->engine, service_now_ns());
		if (d->follow)
			follow_tick(d->follow, &d->engine);
		if (err == -ENODEV) {
			log_line(LOG_LEVEL_NOTICE, d->name, "the volume has gone");
			stop_driver(s, d);
		} else if (err) {
			if (!d->failed_ticks++)
				log_line(LOG_LEVEL_ERROR, d->name, "cannot be asked: %s; tried again", strerror(-err));
		} else {
			d->failed_ticks = 0;
			note_growth(d);
		}
	}
}

void drivers_retune(struct service *s)
{
	for (uint32_t i = 0; i < CONFIG_MAX_VOLUMES; i++) {
		struct driver *d = &s->driver[i];
		const struct settings *settings = d->port ? config_of(&s->config, d->name) : NULL;
		struct engine_config config;

		if (!d->port)
			continue;
		if (!settings) {
			log_line(LOG_LEVEL_NOTICE, d->name, "left alone from now on");
			stop_driver(s, d);
			continue;
		}
		driver_config(s, d->name, d->directory, settings, &config);
		config.log_ctx = d;
		engine_retune(&d->engine, &config);
		if (d->follow)
			follow_retune(d->follow, settings);
	}
	s->refused[0] = 0;
}

void drivers_stop(struct service *s)
{
	for (uint32_t i = 0; i < CONFIG_MAX_VOLUMES; i++)
		if (s->driver[i].port)
			stop_driver(s, &s->driver[i]);
}
