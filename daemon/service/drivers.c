// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Volumes come and go: each control device in /dev/terrace that the configuration does not
 * leave alone gets a loop; one that is gone loses it.
 *
 * A volume's state is in STATE_DIRECTORY/UUID, so that a renamed one keeps its heat.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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
		.retain = settings->retain, .evaluate = settings->evaluate, .claim = settings->claim, .seed = seed(),
		.scrub_days = settings->scrub_days, .debug = log_get_level() >= LOG_LEVEL_DEBUG,
		.log = from_engine,
	};
	memcpy(out->budget, settings->budget, sizeof(out->budget));
	for (uint32_t t = 0; t < TERRACE_MAX_RESULT_TIERS; t++)
		out->own_rate[t] = config_own_rate(settings, t);
	memcpy(out->endurance, settings->endurance, sizeof(out->endurance));
	memcpy(out->price, settings->price, sizeof(out->price));
}

/* STATE_DIRECTORY/UUID, made if it is not there. */
static void state_directory(const struct service *s, struct port *port, char *path, size_t bytes)
{
	struct port_shape shape = { 0 };
	int n;

	port->ops->shape(port, &shape);
	n = snprintf(path, bytes, "%s/", s->kept.state_directory);
	for (int i = 0; i < 16 && n > 0 && (size_t)n < bytes; i++)
		n += snprintf(path + n, bytes - (size_t)n, "%02x", shape.uuid[i]);
	if (mkdir(s->kept.state_directory, 0700) && errno != EEXIST)
		log_line(LOG_LEVEL_WARNING, NULL, "%s: %s", s->kept.state_directory, strerror(errno));
	else if (mkdir(path, 0700) && errno != EEXIST)
		log_line(LOG_LEVEL_WARNING, NULL, "%s: %s", path, strerror(errno));
}

/* A second terraced must not even listen.  What cannot be locked cannot keep heat either: that is told elsewhere. */
static int lock_directory(struct driver *d)
{
	d->lock = open(d->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->lock < 0 || !flock(d->lock, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
		return 0;
	log_line(LOG_LEVEL_ERROR, d->name, "%s: another process works on this volume", d->directory);
	close(d->lock);
	return -EBUSY;
}

static void end(struct driver *d)
{
	follow_close(d->follow);
	d->port->ops->close(d->port);
	d->port = NULL;
	if (d->lock >= 0)
		close(d->lock);
}

/* Edge by edge, for what is in the ring and wakes nobody stays there until the next tick. */
static void wake_by_files(struct service *s, struct driver *d)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.fd = follow_fd(d->follow) };

	if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, event.data.fd, &event))
		log_line(LOG_LEVEL_WARNING, d->name, "what happens to files is heard of tick by tick only: %s", strerror(errno));
}

static void open_files(struct service *s, struct driver *d, const struct settings *settings)
{
	if (!settings->files)
		return;
	d->follow = s->follow(d->name, settings, d->port);
	if (d->follow)
		wake_by_files(s, d);
}

/* By SIGHUP they are followed from now on, with other switches, or no longer. */
static void retune_files(struct service *s, struct driver *d, const struct settings *settings)
{
	if (!d->follow) {
		open_files(s, d, settings);
	} else if (settings->files) {
		follow_retune(d->follow, settings);
	} else {
		follow_leave(d->follow, &d->engine);
		d->follow = NULL;
		log_line(LOG_LEVEL_NOTICE, d->name, "files are not followed any more");
	}
}

static int start(struct service *s, struct driver *d, const char *name, const struct settings *settings)
{
	struct engine_config config;
	int err;

	memset(d, 0, sizeof(*d));
	snprintf(d->name, sizeof(d->name), "%.63s", name);
	err = s->open(name, &d->port);
	if (err)
		return err;
	state_directory(s, d->port, d->directory, sizeof(d->directory));
	err = lock_directory(d);
	if (err) {
		d->port->ops->close(d->port);
		d->port = NULL;
		return err;
	}
	d->sense = s->sense(name, settings, d->port);
	d->sensed.kind = settings->sense;
	d->sensed.sampling = settings->sampling;
	d->sensed.heat_sample = settings->heat_sample;
	driver_config(s, name, d->directory, settings, &config);
	config.log_ctx = d;
	err = engine_open(&d->engine, &config, d->port, service_now_ns());
	if (err) {
		end(d);
		return err;
	}
	open_files(s, d, settings);
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
	end(d);
	s->nr_drivers--;
}

/* That of the volume, else a free one, else the oldest. */
static struct refusal *refusal_of(struct service *s, const char *name)
{
	struct refusal *best = s->refused;

	for (uint32_t i = 0; i < CONFIG_MAX_VOLUMES; i++) {
		if (!strcmp(s->refused[i].name, name))
			return &s->refused[i];
		if (!s->refused[i].name[0] || (best->name[0] && s->refused[i].at_ns < best->at_ns))
			best = &s->refused[i];
	}
	return best;
}

/* One that failed a moment ago is left alone for a while. */
static void try_start(struct service *s, const char *name, const struct settings *settings)
{
	struct refusal *r = refusal_of(s, name);
	struct driver *d = free_driver(s);

	if (!strcmp(r->name, name) && service_now_ns() - r->at_ns < TRY_AGAIN_NS)
		return;
	if (!d || !start(s, d, name, settings)) {
		s->nr_drivers += d != NULL;
		return;
	}
	snprintf(r->name, sizeof(r->name), "%.63s", name);
	r->at_ns = service_now_ns();
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

/* The descriptor may be another's by now, who is woken for nothing then. */
void drivers_woken(struct service *s, int fd)
{
	for (uint32_t i = 0; i < CONFIG_MAX_VOLUMES; i++) {
		struct driver *d = &s->driver[i];

		d->woken |= d->port && d->follow && follow_fd(d->follow) == fd;
	}
}

void drivers_hear(struct service *s)
{
	for (uint32_t i = 0; i < CONFIG_MAX_VOLUMES; i++) {
		struct driver *d = &s->driver[i];

		if (d->woken && d->port && d->follow)
			follow_hear(d->follow, &d->engine);
		d->woken = false;
	}
}

void drivers_tick(struct service *s)
{
	for (uint32_t i = 0; i < CONFIG_MAX_VOLUMES; i++) {
		struct driver *d = &s->driver[i];
		int err;

		if (!d->port)
			continue;
		d->engine.wall_s = (uint64_t)time(NULL);
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
		retune_files(s, d, settings);
	}
	memset(s->refused, 0, sizeof(s->refused));
}

void drivers_stop(struct service *s)
{
	for (uint32_t i = 0; i < CONFIG_MAX_VOLUMES; i++)
		if (s->driver[i].port)
			stop_driver(s, &s->driver[i]);
}
