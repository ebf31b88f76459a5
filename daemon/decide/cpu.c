// SPDX-License-Identifier: GPL-2.0-or-later
/* What is left of the moves' time; see cpu.h. */
#include "decide/cpu.h"

#define TICK_US	1e4	/* USER_HZ */

static const struct tunable rows[] = {
	TUNABLE(TUNABLE_DOUBLE, cpu_tunables, min_idle, 0.03, 0.0, 1.0,
		"share of the CPUs' time below which they are full, and moves are held back; 0: never"),
	TUNABLE(TUNABLE_DOUBLE, cpu_tunables, enough, 0.02, 0.0, 1.0,
		"how far the share of reads that are served fast may be below an LRU's for that"),
	TUNABLE(TUNABLE_DOUBLE, cpu_tunables, share, 0.005, 0.0, 1.0,
		"share of the CPUs' time that moves may take then"),
	TUNABLE(TUNABLE_DOUBLE, cpu_tunables, order_us, 300.0, 0.0, 1e6,
		"what an order is taken to cost of it, in microseconds, whatever it moves, and ..."),
	TUNABLE(TUNABLE_DOUBLE, cpu_tunables, block_us, 12.0, 0.0, 1e6,
		"... for each block"),
};
TUNABLE_TABLE(cpu_tunable_table, "cpu", rows);

/* Nothing is saved up, but a debt is paid off. */
static double left(const struct cpu *c, bool was_full, double share_us)
{
	double owed = c->left_us < 0 ? -c->left_us : 0;

	if (!was_full)
		owed = c->given_us < CPU_OWED * share_us ? c->given_us : CPU_OWED * share_us;
	return c->full ? share_us - owed : 0;
}

bool cpu_look(struct cpu *c, const struct cpu_tunables *t, uint64_t idle, uint64_t all)
{
	bool first = !c->all, was_full = c->full, on = all > c->all && idle >= c->idle;	/* a count that ran backwards: begun anew */
	double ticks = (double)(all - c->all);

	if (all == c->all)
		return false;
	if (first || !on)
		c->calm = CPU_CALM;
	else if ((double)(idle - c->idle) < t->min_idle * ticks)
		c->calm = 0;
	else if (c->calm < CPU_CALM)
		c->calm++;
	c->full = c->calm < CPU_CALM;
	c->left_us = left(c, was_full, ticks * TICK_US * t->share);
	c->given_us = 0;
	c->idle = idle;
	c->all = all;
	return !first;
}

void cpu_judge(struct cpu *c, const struct cpu_tunables *t, double rate, double lru)
{
	c->served = rate + t->enough >= lru;
	c->content = !c->full || !c->served ? 0 : c->content < CPU_CONTENT ? c->content + 1 : c->content;
}

double cpu_charge(struct cpu *c, const struct cpu_tunables *t, uint32_t blocks)
{
	double us = c->served ? t->order_us + t->block_us * blocks : 0;

	cpu_refund(c, -us);
	return us;
}

void cpu_refund(struct cpu *c, double us)
{
	if (c->full)
		c->left_us += us;
	else
		c->given_us -= us;
}
