// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The status socket: a client connects, sends one line, gets one JSON object and the end.
 *
 *	status			all volumes, with statistics and limits
 *	explain [VOLUME]	the last decisions, newest first
 *	config			every key with its value
 *
 * A client that is silent is not waited for: it has some seconds to send its line, while
 * everything else goes on. Requests fit into one read, and what it does not take at once of the answer is
 * dropped with the connection after a short wait.
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

#define ANSWER_MS	200		/* to take it */
#define CLIENT_NS	5000000000ull	/* to send the line */

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

static bool takes_more(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	return poll(&p, 1, ANSWER_MS) == 1 && p.revents & POLLOUT;
}

static void send_all(int fd, const char *text)
{
	size_t left = strlen(text);

	while (left && takes_more(fd)) {
		ssize_t n = send(fd, text, left, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n <= 0)
			return;
		text += n;
		left -= (size_t)n;
	}
}

static void answer(struct service *s, int fd, char *line)
{
	struct json_object *o = answer_to(s, line);

	send_all(fd, json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY |
					 JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE));
	send_all(fd, "\n");
	json_object_put(o);
}

static void let_go(struct client *client)
{
	close(client->fd);
	client->since_ns = 0;
}

/* Answers, if it has asked by now; @last: or lets it go. */
static void hear_client(struct service *s, struct client *client, bool last)
{
	char line[256];
	const ssize_t n = recv(client->fd, line, sizeof(line) - 1, 0);

	/* Nothing yet: the event was for an earlier client, that had this descriptor. */
	if (n < 0 && errno == EAGAIN && !last)
		return;
	if (n > 0) {
		line[n] = 0;
		answer(s, client->fd, line);
	}
	let_go(client);
}

/* A free place, or that of whoever has been silent longest. */
static struct client *place_for_client(struct service *s)
{
	struct client *place = &s->client[0];

	for (size_t i = 1; i < SERVICE_CLIENTS; i++)
		if (s->client[i].since_ns < place->since_ns)
			place = &s->client[i];
	if (place->since_ns)
		hear_client(s, place, true);
	return place;
}

void socket_accept(struct service *s)
{
	const int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	if (service_watch(s, fd))
		close(fd);
	else
		*place_for_client(s) = (struct client){ .fd = fd, .since_ns = service_now_ns() };
}

bool socket_hear(struct service *s, int fd)
{
	for (size_t i = 0; i < SERVICE_CLIENTS; i++) {
		if (!s->client[i].since_ns || s->client[i].fd != fd)
			continue;
		hear_client(s, &s->client[i], false);
		return true;
	}
	return false;
}

void socket_tick(struct service *s)
{
	const uint64_t now = service_now_ns();

	for (size_t i = 0; i < SERVICE_CLIENTS; i++)
		if (s->client[i].since_ns && now - s->client[i].since_ns > CLIENT_NS)
			hear_client(s, &s->client[i], true);
}

void socket_close(struct service *s)
{
	for (size_t i = 0; i < SERVICE_CLIENTS; i++)
		if (s->client[i].since_ns)
			let_go(&s->client[i]);
	if (s->listener < 0)
		return;
	close(s->listener);
	unlink(s->kept.socket);
}
