// SPDX-License-Identifier: GPL-2.0-or-later
/* /proc/stat; see cpu_time.h. */
#include "act/cpu_time.h"

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS	250000000u

void cpu_time_parse(struct cpu_time *c, const char *text)
{
	unsigned long long user, nice, system, idle, iowait, irq, softirq, steal;

	if (sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &iowait, &irq, &softirq,
		   &steal) != 8)
		return;
	c->idle = nice + idle + iowait;
	c->all = c->idle + user + system + irq + softirq + steal;
}

void cpu_time_hear(struct cpu_time *c, const char *text)
{
	struct cpu_time said = { 0 };

	cpu_time_parse(&said, text);
	if (said.all && said.all != c->seen)
		c->same = 0;
	else if (c->same < CPU_TIME_SAME)
		c->same++;
	if (said.all)
		c->seen = said.all;
	if (said.all || c->same == CPU_TIME_SAME) {
		c->idle = c->same < CPU_TIME_SAME ? said.idle : 0;
		c->all = c->same < CPU_TIME_SAME ? said.all : 0;
	}
}

void cpu_time_read(struct cpu_time *c)
{
	struct timespec now;
	uint64_t ns;
	char text[256];
	ssize_t n = 0;
	int fd;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	if (ns < c->next_ns)
		return;
	c->next_ns = ns + LOOK_NS;
	fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	text[n < 0 ? 0 : n] = 0;
	cpu_time_hear(c, text);
}
