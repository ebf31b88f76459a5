// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Asks terraced. See ask.h; daemon/service/socket.c answers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "ask.h"

#define PATIENCE_S	5

static char *read_all(int fd)
{
	size_t have = 0, room = 65536;
	char *text = ctl_alloc(room);
	ssize_t n;

	while ((n = read(fd, text + have, room - have - 1)) > 0) {
		have += (size_t)n;
		if (have + 1 == room)
			text = ctl_realloc(text, room *= 2);
	}
	text[have] = 0;
	return text;
}

struct json_object *ask_daemon(const char *socket_path, const char *question)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	struct json_object *answer = NULL;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char *text;

	if (fd < 0)
		return NULL;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (!connect(fd, (struct sockaddr *)&address, sizeof(address)) &&
	    send(fd, question, strlen(question), MSG_NOSIGNAL) > 0) {
		text = read_all(fd);
		answer = json_tokener_parse(text);
		free(text);
	}
	close(fd);
	return answer;
}

struct json_object *ask_volume(struct json_object *status, const char *name)
{
	struct json_object *list, *who;

	if (!status || !json_object_object_get_ex(status, "volumes", &list))
		return NULL;
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *o = json_object_array_get_idx(list, i);

		if (json_object_object_get_ex(o, "name", &who) && !strcmp(json_object_get_string(who), name))
			return o;
	}
	return NULL;
}
