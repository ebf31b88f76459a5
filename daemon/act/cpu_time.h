/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How much of the CPUs' time was nobody's: /proc/stat, four times a second at most, for the kernel counts much to answer. */
#ifndef TERRACE_ACT_CPU_TIME_H
#define TERRACE_ACT_CPU_TIME_H

#include <stdint.h>

struct cpu_time {
	uint64_t idle, all;	/* ticks since the start, of all CPUs; 0: not known */
	uint64_t seen;		/* the same, when it was told last ... */
	uint32_t same;		/* ... and looks since that have told nothing else */
	uint64_t next_ns;	/* looked at from then on */
};

#define CPU_TIME_SAME	8u	/* looks after which what they told before says nothing of now */

/* Of the text of /proc/stat. What low priorities took is idle: they make way. */
void cpu_time_parse(struct cpu_time *c, const char *text);
/* The same, of one look after the other: counts that stand still, or cannot be read, are soon not known any more. */
void cpu_time_hear(struct cpu_time *c, const char *text);
void cpu_time_read(struct cpu_time *c);

#endif
