// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The event loop; see service.h.
 *
 * The watchdog is told from the same loop that ticks: a tick that hangs, in a control device
 * for instance, ends the notifications, and systemd restarts the daemon, which is harmless.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "service/service.h"

#define LOOK_NS	2000000000ull	/* between looks for new volumes */
/* Between two times that files are heard of because of what happens to them. */
#define HEAR_NS		10000000ull
#define HEAR_MOST_NS	100000000ull

uint64_t service_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void told(void *ctx, int line, const char *reason)
{
	const struct service *s = ctx;

	log_line(LOG_LEVEL_ERROR, NULL, "%s:%d: %s", s->config_path, line, reason);
}

void service_overrule(const struct service *s, struct config *config)
{
	if (s->verbose)
		config->log_level = LOG_LEVEL_DEBUG;
	if (!s->evaluate)
		return;
	config->policy.evaluate = true;
	for (uint32_t i = 0; i < config->nr_volumes; i++)
		config->volume[i].settings.evaluate = true;
}

/* A file with errors changes nothing. */
static void reload(struct service *s)
{
	struct config *next = malloc(sizeof(*next));
	int errors = next ? config_load(next, s->config_path, told, s) : -ENOMEM;

	sd_notify(0, "RELOADING=1");
	if (errors > 0) {
		log_line(LOG_LEVEL_ERROR, NULL, "the old configuration stays");
	} else if (errors < 0) {
		log_line(LOG_LEVEL_ERROR, NULL, "%s: %s: the old configuration stays", s->config_path,
			 strerror(-errors));
	} else {
		s->config = *next;
		service_overrule(s, &s->config);
		log_set_level(s->config.log_level);
		process_lock_memory(s);
		drivers_retune(s);
		waits_tell(s);
		log_line(LOG_LEVEL_NOTICE, NULL, "%s: read anew", s->config_path);
	}
	free(next);
	sd_notify(0, "READY=1");
}

static void hear_signal(struct service *s)
{
	struct signalfd_siginfo info;

	if (read(s->signals, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP)
		reload(s);
	else
		s->stop = true;
}

static void set_timer(struct service *s)
{
	const struct timespec every = {
		.tv_sec = s->config.tick_ms / 1000, .tv_nsec = s->config.tick_ms % 1000 * 1000000L,
	};
	const struct itimerspec spec = { .it_interval = every, .it_value = every };

	timerfd_settime(s->timer, 0, &spec, NULL);
}

static void tick(struct service *s)
{
	static uint64_t looked_ns;
	uint64_t expired, now = service_now_ns();

	if (read(s->timer, &expired, sizeof(expired)) != sizeof(expired))
		return;
	if (!looked_ns || now - looked_ns >= LOOK_NS) {
		drivers_look(s);
		looked_ns = now;
	}
	drivers_tick(s);
	socket_tick(s);
	s->ticks++;
	if (sd_watchdog_enabled(0, NULL) > 0)
		sd_notify(0, "WATCHDOG=1");
}

/* However long that takes, a tenth of the time goes into it, unless that is more than ticks would let wait. */
static void hear_now(struct service *s)
{
	const uint64_t began = service_now_ns();
	uint64_t ended, rest;

	drivers_hear(s);
	ended = service_now_ns();
	rest = 9 * (ended - began);
	rest = rest > HEAR_NS ? rest : HEAR_NS;
	s->hears_next_ns = ended + (rest < HEAR_MOST_NS ? rest : HEAR_MOST_NS);
}

/* At once, but not all the time: what happens meanwhile is heard of together. */
static void hear_soon(struct service *s, int fd)
{
	const uint64_t now = service_now_ns(), next = s->hears_next_ns;
	const struct itimerspec once = { .it_value.tv_nsec = (long)(next - now) };

	drivers_woken(s, fd);
	if (now >= next)
		hear_now(s);
	else if (!s->hears)
		s->hears = !timerfd_settime(s->soon, 0, &once, NULL);
}

static void hear_then(struct service *s)
{
	uint64_t expired;

	if (read(s->soon, &expired, sizeof(expired)) != sizeof(expired))
		return;
	s->hears = false;
	hear_now(s);
}

int service_watch(struct service *s, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return fd < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int open_descriptors(struct service *s)
{
	sigset_t set;
	int err;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	s->soon = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	err = s->epoll < 0 ? -errno : service_watch(s, s->timer);
	if (!err)
		err = service_watch(s, s->soon);
	if (!err)
		err = service_watch(s, s->signals);
	s->listener = socket_open(s->kept.socket);
	if (!err && s->listener >= 0)
		err = service_watch(s, s->listener);
	return err;
}

static void serve(struct service *s)
{
	uint32_t tick_ms = s->config.tick_ms;

	while (!s->stop) {
		struct epoll_event event[8];
		int n = epoll_wait(s->epoll, event, 8, -1);

		for (int i = 0; i < n; i++) {
			if (event[i].data.fd == s->timer)
				tick(s);
			else if (event[i].data.fd == s->signals)
				hear_signal(s);
			else if (event[i].data.fd == s->listener)
				socket_accept(s);
			else if (event[i].data.fd == s->soon)
				hear_then(s);
			else if (!socket_hear(s, event[i].data.fd))
				hear_soon(s, event[i].data.fd);
		}
		if (s->config.tick_ms != tick_ms) {
			tick_ms = s->config.tick_ms;
			set_timer(s);
		}
	}
}

int service_run(struct service *s)
{
	int err;

	s->driver = calloc(CONFIG_MAX_VOLUMES, sizeof(*s->driver));
	memcpy(s->kept.state_directory, s->config.state_directory, sizeof(s->kept.state_directory));
	memcpy(s->kept.socket, s->config.socket, sizeof(s->kept.socket));
	s->started_ns = service_now_ns();
	err = s->driver ? open_descriptors(s) : -ENOMEM;
	if (err) {
		log_line(LOG_LEVEL_ERROR, NULL, "cannot start: %s", strerror(-err));
		return 1;
	}
	process_lock_memory(s);
	process_flush_io();
	process_open_files();
	drivers_look(s);
	set_timer(s);
	sd_notify(0, "READY=1");
	if (!s->nr_drivers)
		log_line(LOG_LEVEL_NOTICE, NULL, "no volume is active yet");
	serve(s);
	sd_notify(0, "STOPPING=1");
	drivers_stop(s);
	socket_close(s);
	log_line(LOG_LEVEL_NOTICE, NULL, "stopped");
	json_object_put(s->waits_told);
	free(s->driver);
	return 0;
}
