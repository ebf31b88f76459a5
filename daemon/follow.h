/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Following the files on a volume: what sense/watch.h tells, put to use by act/invalidate.h and by the loop.
 */
#ifndef TERRACE_FOLLOW_H
#define TERRACE_FOLLOW_H

#include <json-c/json.h>

#include "config.h"
#include "loop/engine.h"
#include "port.h"

struct follow;

/* NULL after a message, if the kernel refuses; the volume is driven all the same. */
struct follow *follow_open(const char *name, const struct settings *settings, struct port *port,
			   unsigned int major, unsigned int minor);
void follow_close(struct follow *f);
/* The same, where the loop goes on: nothing of what it was told stays. */
void follow_leave(struct follow *f, struct engine *e);
/* New switches; one that was turned off takes back what it can. */
void follow_retune(struct follow *f, const struct settings *settings);
/* @e: the volume's loop. */
void follow_tick(struct follow *f, struct engine *e);
/* Between two ticks, a moment after something happened to files that cannot wait: see lsm_fd(). */
int follow_fd(const struct follow *f);
void follow_hear(struct follow *f, struct engine *e);
void follow_report(struct follow *f, struct json_object *out);

#endif
