/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A question to a running terraced, over its status socket.
 */
#ifndef TERRACE_CTL_ASK_H
#define TERRACE_CTL_ASK_H

#include "ctl.h"

#define ASK_SOCKET "/run/terrace/status"

/* What that status says of a volume; NULL: terraced does not drive it. */
struct json_object *ask_volume(struct json_object *status, const char *name);

/* The answer to one line ("status", "explain db"), to be put; NULL: it does
 * not run, or gave no answer. Prints nothing.
 */
struct json_object *ask_daemon(const char *socket_path, const char *question);

#endif
