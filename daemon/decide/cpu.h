/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The machine's brake: where no CPU is idle, what moves take is taken from the load.
 *
 * A better placement lets users wait less. Who keeps all CPUs at work does not wait: its pace is the
 * CPUs', wherever its blocks lie. So while less than min_idle of their time is left, and the fast tier serves as many reads as
 * can be expected (all that an LRU of its size would, less `enough`), moves keep to `share` of the CPUs' time: an order is
 * taken to cost order_us, and block_us for each block that it moves. It is given while any is left, and may leave a debt. Those
 * given since the last look are owed when this one is the first to find no CPU idle: the time of CPU_OWED looks at most.
 * When a hotspot has moved moves are free, however busy the CPUs are, until its new place is fast. While both have held for
 * some looks in a row there is little to learn, either: the load is content, and hearing what it does costs it CPU time as well.
 *
 *	1 CPU, nothing idle, share 0.005: 5 ms a second, 3 orders of 100 blocks
 */
#ifndef DECIDE_CPU_H
#define DECIDE_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "decide/tunable.h"

struct cpu_tunables {
	double min_idle;
	double enough;
	double share;
	double order_us;
	double block_us;
};

extern const struct tunable_table cpu_tunable_table;

/* No tunables: they smooth a count that is coarse.  What is too little idle time is cpu.min_idle. */
#define CPU_CALM	4u	/* looks are short: one in which a CPU was idle says little */
#define CPU_OWED	16u	/* nobody knows how much of it was idle time, so not all that was given can be owed */
#define CPU_CONTENT	4u	/* looks in a row; one that is not is enough to learn as before */

struct cpu {
	bool full;		/* at the last look, or at one of the CPU_CALM - 1 before */
	uint32_t calm;		/* looks since */
	bool served;		/* reads, as well as can be expected */
	uint32_t content;	/* looks in a row in which both held, CPU_CONTENT at most */
	double left_us;		/* while both hold */
	double given_us;	/* since the last look, while it was not full */
	uint64_t idle, all;	/* at the last look */
};

/* @idle of @all ticks of 10 ms since the machine's start, all CPUs together; 0: not known. False: nothing new, or the first look. */
bool cpu_look(struct cpu *c, const struct cpu_tunables *t, uint64_t idle, uint64_t all);

/* After a look: @rate of the reads since the last were served fast, of which an LRU would have had @lru. */
void cpu_judge(struct cpu *c, const struct cpu_tunables *t, double rate, double lru);

static inline bool cpu_is_content(const struct cpu *c)
{
	return c->content >= CPU_CONTENT;
}

/* No order may be given now. */
static inline bool cpu_holds(const struct cpu *c)
{
	return c->full && c->served && c->left_us <= 0;
}

/* One was given that moves @blocks. What it was charged, for cpu_refund() if it comes back undone before the next look. */
double cpu_charge(struct cpu *c, const struct cpu_tunables *t, uint32_t blocks);
void cpu_refund(struct cpu *c, double us);

#endif
