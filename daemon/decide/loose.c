// SPDX-License-Identifier: GPL-2.0-or-later
/* See loose.h. */
#include "decide/loose.h"
#include "decide/region.h"

static const struct tunable rows[] = {
	TUNABLE(TUNABLE_U32, loose_tunables, least, 128, 1, 1024,
		"loose blocks from which a region is packed"),
	TUNABLE(TUNABLE_DOUBLE, loose_tunables, full, 0.8, 0.0, 1.0,
		"fill of the slow tier above which that is done under load, too"),
	TUNABLE(TUNABLE_DOUBLE, loose_tunables, quiet_seconds, 10.0, 0.0, 1e6,
		"how long nobody must have used the region"),
	TUNABLE(TUNABLE_DOUBLE, loose_tunables, scattered, 0.5, 0.0, 1e6,
		"time that a disk's head takes between a region's loose blocks, of the time to read the whole of a region, "
		"from which they are written in one piece; 0: never"),
};
TUNABLE_TABLE(loose_tunable_table, "loose", rows);

bool loose_turn(const struct loose_tunables *t, bool idle, uint64_t used, uint64_t total)
{
	return idle || (double)used > t->full * (double)total;
}

bool loose_worth(const struct loose_tunables *t, uint32_t loose, uint32_t known, double quiet)
{
	/* As many new ones as would be worth packing alone. */
	uint32_t fresh = loose > known ? loose - known : 0;

	return fresh >= t->least && quiet >= t->quiet_seconds;
}

bool loose_scattered(const struct loose_tunables *t, uint32_t loose, uint32_t runs, double seek_ns, double block_ns)
{
	double between = runs > 1 ? (double)(runs - 1) * seek_ns : 0;

	return t->scattered > 0 && loose > 1 && between > t->scattered * REGION_BLOCKS * block_ns;
}
