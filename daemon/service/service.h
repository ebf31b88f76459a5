/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The service around the loops: finds volumes, gives each a loop, keeps time, hears signals,
 * tells systemd, answers on a socket.  One thread.
 *
 *	drivers.c	volumes come and go; a loop for each
 *	service.c	epoll: timers, signals, socket, lives of files
 *	socket.c	one request a connection, one JSON object back
 *	status.c	what the object says
 *	waits.c		what a reload has read and only the next start puts into force
 *	process.c	locked memory, I/O flusher
 */
#ifndef TERRACE_SERVICE_SERVICE_H
#define TERRACE_SERVICE_SERVICE_H

#include <json-c/json.h>

#include "config.h"
#include "decide/growth.h"
#include "follow.h"
#include "loop/engine.h"

struct driver {
	char name[CONFIG_NAME_BYTES];
	char directory[512];
	int lock;			/* on the directory; -1: it cannot be locked */
	struct port *port;		/* NULL: a free slot */
	const char *sense;		/* its name, "none" */
	struct {
		enum sense_kind kind;
		uint32_t sampling, heat_sample;
	} sensed;			/* as configured when it was opened */
	struct follow *follow;		/* of its files; NULL: off */
	bool woken;			/* by them */
	struct engine engine;
	uint64_t failed_ticks;
	struct growth growth;
};

/* Opens a volume.  Messages are logged. */
typedef int (*service_open_fn)(const char *name, struct port **out);

/* Senses its blocks, once nobody else does: that sets how much the kernel tells.  What senses them. */
typedef const char *(*service_sense_fn)(const char *name, const struct settings *settings, struct port *port);

/* Follows its files.  NULL after a message, if that cannot be. */
typedef struct follow *(*service_follow_fn)(const char *name, const struct settings *settings, struct port *port);

/* A volume that could not be driven: told once, and left alone for a while. */
struct refusal {
	char name[CONFIG_NAME_BYTES];	/* "": none */
	uint64_t at_ns;
};

/* Where things are kept does not change under a running daemon. */
struct kept {
	char state_directory[256];
	char socket[108];
};

#define SERVICE_CLIENTS	8

/* Who has connected to the socket, and has not asked yet. */
struct client {
	int fd;
	uint64_t since_ns;		/* 0: a free place */
};

struct service {
	struct config config;		/* as read last */
	struct kept kept;		/* as it was when we started */
	bool locked;			/* memory is */
	struct json_object *waits_told;	/* as waits_json() had it then; NULL: nothing was */
	const char *config_path;
	service_open_fn open;
	service_sense_fn sense;
	service_follow_fn follow;
	const char *only;		/* drive just this volume; NULL: as configured */
	bool verbose, evaluate;		/* asked for when it was started: whatever the configuration says */
	struct driver *driver;		/* CONFIG_MAX_VOLUMES of them */
	uint32_t nr_drivers;
	struct refusal refused[CONFIG_MAX_VOLUMES];
	int epoll, timer, soon, signals, listener;
	struct client client[SERVICE_CLIENTS];
	bool hears;			/* `soon` is set */
	uint64_t hears_next_ns;		/* not before that */
	uint64_t started_ns, ticks, cpu_started_ns;
	bool stop;
};

/* What was asked for at the start goes on top of @config. */
void service_overrule(const struct service *s, struct config *config);

/* Runs until SIGTERM or SIGINT.  Exit status of the program. */
int service_run(struct service *s);

/* --- between its files -------------------------------------------------------------- */

uint64_t service_now_ns(void);
/* Until it is closed. */
int service_watch(struct service *s, int fd);

void drivers_look(struct service *s);
void drivers_tick(struct service *s);
/* Something has happened to the files behind this descriptor that cannot wait for the tick; all such files are heard of. */
void drivers_woken(struct service *s, int fd);
void drivers_hear(struct service *s);
void drivers_retune(struct service *s);
void drivers_stop(struct service *s);
void driver_config(const struct service *s, const char *name, const char *directory,
		   const struct settings *settings, struct engine_config *out);

/* A listening socket, 0600, or -errno after a message. */
int socket_open(const char *path);
void socket_accept(struct service *s);
/* Answers, if it is a client's; false: it is not. */
bool socket_hear(struct service *s, int fd);
void socket_tick(struct service *s);
void socket_close(struct service *s);

struct json_object *status_json(struct service *s);
/* @what: "", "VOLUME", or "VOLUME BLOCK" for the heat of one as well. */
struct json_object *explain_json(struct service *s, const char *what);
struct json_object *config_json(struct service *s);
struct json_object *settings_json(const struct settings *c);

/* One line for each key that waits for the next start, when it begins to, or with another value. */
void waits_tell(struct service *s);
/* These keys, of the daemon and of each volume that is driven: what is in force, and what is configured. */
struct json_object *waits_json(const struct service *s);
/* The same of what the kernel has refused; it is asked again with the next reload. */
struct json_object *refused_json(const struct service *s);

/* As configured, or lets it go; what was refused is tried again. */
void process_lock_memory(struct service *s);
void process_flush_io(void);
void process_open_files(void);

#endif
