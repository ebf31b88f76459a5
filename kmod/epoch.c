// SPDX-License-Identifier: GPL-2.0
/*
 * Grace periods for places. A freed place may be written again only when
 * every bio that was mapped to it has ended; a bio counts itself in when it
 * is mapped and out when it ends, per tier and per CPU, without a shared
 * cache line.
 *
 * Each tier has two counters and an index (a bit of tr->epochs) that says which
 * one new bios take. Waiting: flip the index; synchronize_rcu(), after which
 * nobody who read the old index is still about to count itself in (map runs under
 * rcu_read_lock); then wait until the old counter, summed over the CPUs, is
 * zero. From then on it only ever falls, so a sum read while it changes can
 * be too large, never too small.
 *
 * A bio's index is read before it looks for its place (map.c): one that
 * has the new index sees everything that was done before the flip. Were it read
 * when the bio is counted, one that was held up between the two would have an old
 * place and the new index, and nobody would wait for it.
 */
#include <linux/delay.h>

#include "terrace.h"

static long epoch_sum(const struct tr_tier *tier, u8 epoch)
{
	long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(tier->epoch_cpu, cpu)->count[epoch]);
	return sum;
}

void tr_epoch_wait(struct terrace *tr, u32 mask)
{
	u32 t, us;
	u8 old;

	mutex_lock(&tr->epoch_mutex);
	old = tr->epochs;
	smp_mb();	/* what is waited for is seen by who sees the flip, map.c */
	WRITE_ONCE(tr->epochs, old ^ mask);
	synchronize_rcu();
	for (t = 0; t < tr->nr_tiers; t++) {
		if (!(mask & BIT(t)))
			continue;
		for (us = 20; epoch_sum(&tr->tier[t], old >> t & 1); us = min(us * 2, 2000u))
			usleep_range(us, 2 * us);
	}
	mutex_unlock(&tr->epoch_mutex);
	smp_mb();	/* what the ended bios did is before what follows here */
}
