// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The status socket: a client connects, sends one line, gets one JSON object and the end.
 *
 *	status			all volumes, with statistics and limits
 *	explain [VOLUME]	the last decisions, newest first
 *	config			every key with its value
 *
 * A client that is slow, silent or sends rubbish costs at most a short wait: requests fit into one
 * read, and what it does not take at once is dropped with the connection after that.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "service/service.h"

#define CLIENT_MS	200	/* to send the line, and again to take the answer */

int socket_open(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t before;
	int err = 0;

	if (fd < 0)
		return -errno;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (!connect(fd, (struct sockaddr *)&address, sizeof(address)) || errno == EAGAIN) {
		log_line(LOG_LEVEL_WARNING, NULL, "%s: another terraced answers there: no status can be asked of this one", path);
		close(fd);
		return -EADDRINUSE;
	}
	/* Left by one that was killed. */
	unlink(path);
	before = umask(0177);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 8))
		err = -errno;
	umask(before);
	if (!err)
		return fd;
	log_line(LOG_LEVEL_WARNING, NULL, "%s: %s: no status can be asked for", path, strerror(-err));
	close(fd);
	return err;
}

static struct json_object *error_json(const char *text)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "error", json_object_new_string(text));
	return o;
}

static struct json_object *answer_to(struct service *s, char *line)
{
	char *argument;

	line[strcspn(line, "\r\n")] = 0;
	argument = strchr(line, ' ');
	if (argument)
		*argument++ = 0;
	if (!strcmp(line, "status"))
		return status_json(s);
	if (!strcmp(line, "explain"))
		return explain_json(s, argument);
	if (!strcmp(line, "config"))
		return config_json(s);
	return error_json("unknown request; there are: status, explain [VOLUME [BLOCK]], config");
}

static bool ready(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, CLIENT_MS) == 1 && p.revents & events;
}

static void send_all(int fd, const char *text)
{
	size_t left = strlen(text);

	while (left && ready(fd, POLLOUT)) {
		ssize_t n = send(fd, text, left, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n <= 0)
			return;
		text += n;
		left -= (size_t)n;
	}
}

void socket_answer(struct service *s, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	char line[256];
	ssize_t n;

	if (fd < 0)
		return;
	if (ready(fd, POLLIN) && (n = recv(fd, line, sizeof(line) - 1, 0)) > 0) {
		struct json_object *o;

		line[n] = 0;
		o = answer_to(s, line);
		send_all(fd, json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY |
						 JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE));
		send_all(fd, "\n");
		json_object_put(o);
	}
	close(fd);
}

void socket_close(int listener, const char *path)
{
	if (listener < 0)
		return;
	close(listener);
	unlink(path);
}
