// SPDX-License-Identifier: GPL-2.0-or-later
/* The half-a-run rule; see flush.h. */
#include "decide/flush.h"

static const struct tunable rows[] = {
	TUNABLE(TUNABLE_U32, flush_tunables, run_blocks, 256, 1, 1048576,
		"blocks of a full promotion run"),
	TUNABLE(TUNABLE_DOUBLE, flush_tunables, hot_fraction, 0.5, 0.0, 1.0,
		"share of a run that must be hot to promote it"),
	TUNABLE(TUNABLE_DOUBLE, flush_tunables, neighbours, 0.6, 0.1, 2.0,
		"share of 64 adjacent blocks that must be hot for the others to go up with one; above 1: never"),
	TUNABLE(TUNABLE_U32, flush_tunables, lonely_batches, 7, 0, 1000000,
		"batches, at most, in which a region whose blocks had no such neighbours is not looked into for them"),
};
TUNABLE_TABLE(flush_tunable_table, "flush", rows);

double flush_enough(const struct flush_tunables *t, uint32_t batch_blocks)
{
	return t->hot_fraction * (batch_blocks < t->run_blocks ? batch_blocks : t->run_blocks);
}

enum flush_verdict flush_decide(const struct flush_tunables *t,
				uint32_t batch_blocks, uint32_t hot_blocks)
{
	if (!hot_blocks)
		return FLUSH_NOTHING;
	if (hot_blocks >= flush_enough(t, batch_blocks))
		return FLUSH_PROMOTE;
	return FLUSH_KEEP;
}
