// SPDX-License-Identifier: GPL-2.0-or-later
/* /proc/stat; see cpu_time.h. */
#include "act/cpu_time.h"

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

void cpu_time_parse(struct cpu_time *c, const char *text)
{
	unsigned long long user, nice, system, idle, iowait, irq, softirq, steal;

	if (sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &iowait, &irq, &softirq,
		   &steal) != 8)
		return;
	c->idle = nice + idle + iowait;
	c->all = c->idle + user + system + irq + softirq + steal;
}

void cpu_time_read(struct cpu_time *c)
{
	struct timespec now;
	char text[256];
	ssize_t n;
	int fd;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec < c->next)
		return;
	c->next = now.tv_sec + 1;
	fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n < 0 ? 0 : n] = 0;
	cpu_time_parse(c, text);
}
