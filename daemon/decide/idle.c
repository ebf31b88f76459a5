// SPDX-License-Identifier: GPL-2.0-or-later
/* See idle.h. */
#include "decide/idle.h"

static const struct tunable rows[] = {
	TUNABLE(TUNABLE_DOUBLE, idle_tunables, idle_iops, 10.0, 0.0, 1e7,
		"user operations a second below which a volume counts as idle"),
	TUNABLE(TUNABLE_DOUBLE, idle_tunables, idle_seconds, 5.0, 0.0, 86400.0,
		"how long it must have been so"),
	TUNABLE(TUNABLE_DOUBLE, idle_tunables, boost, 4.0, 1.0, 1000.0,
		"bandwidth of moves on an idle volume, as a multiple"),
};
TUNABLE_TABLE(idle_tunable_table, "idle", rows);

double idle_step(struct idle *i, const struct idle_tunables *t, uint64_t ops, double seconds)
{
	if (!(seconds > 0))
		return i->quiet_seconds > t->idle_seconds ? t->boost : 1;
	if ((double)ops > t->idle_iops * seconds)
		i->quiet_seconds = 0;
	else
		i->quiet_seconds += seconds;
	return i->quiet_seconds > t->idle_seconds ? t->boost : 1;
}
