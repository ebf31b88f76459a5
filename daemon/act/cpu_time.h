/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How much of the CPUs' time was nobody's: /proc/stat, four times a second at most, for the kernel counts much to answer. */
#ifndef TERRACE_ACT_CPU_TIME_H
#define TERRACE_ACT_CPU_TIME_H

#include <stdint.h>

struct cpu_time {
	uint64_t idle, all;	/* ticks since the start, of all CPUs; 0: not known */
	uint64_t next_ns;	/* looked at from then on */
};

/* Of the text of /proc/stat. What low priorities took is idle: they make way. */
void cpu_time_parse(struct cpu_time *c, const char *text);
/* Keeps what it has where nothing can be read. */
void cpu_time_read(struct cpu_time *c);

#endif
