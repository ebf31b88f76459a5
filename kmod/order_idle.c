// SPDX-License-Identifier: GPL-2.0
/*
 * Orders with the flag IDLE: they yield to all user I/O.
 *
 * One begins when nobody has read or written between TR_IDLE_LOOKS looks, and between its
 * pieces waits for the same. Looks are counted, not time: while this machine stands still, so
 * do users. It never waits for ever: submit.c lets one begin every second, whatever users do,
 * and between two pieces it waits for MOST looks.
 */
#include <linux/delay.h>

#include "order.h"

#define MOST	25

u64 tr_user_ios(struct terrace *tr)
{
	u64 sum = 0;
	int cpu;
	u32 t;

	for_each_possible_cpu(cpu) {
		const struct tr_stats *stats = per_cpu_ptr(tr->stats, cpu);

		sum += READ_ONCE(stats->read_zeros);
		for (t = 0; t < tr->nr_tiers; t++)
			sum += READ_ONCE(stats->reads[t]) + READ_ONCE(stats->writes[t]);
	}
	return sum;
}

bool tr_idle_look(struct terrace *tr, u64 *seen)
{
	u64 before = *seen;

	fsleep(TR_IDLE_STEP_US);
	*seen = tr_user_ios(tr);
	return *seen == before;
}

void tr_order_idle(struct terrace *tr, struct tr_order *order)
{
	u32 quiet = 0, looks;

	/* Nobody since the last piece. */
	if (!(order->ask.flags & TERRACE_MOVE_IDLE) || tr_user_ios(tr) == order->seen)
		return;
	/* A cleaning holds up the janitor's: not while it is what somebody waits for. */
	for (looks = 0; looks < MOST && quiet < TR_IDLE_LOOKS && !tr_order_stops(tr, order) &&
	     !tr_room_is_waited_for(tr); looks++)
		quiet = tr_idle_look(tr, &order->seen) ? quiet + 1 : 0;
}
