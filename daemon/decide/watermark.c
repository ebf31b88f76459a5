// SPDX-License-Identifier: GPL-2.0-or-later
/* Hysteresis between two marks; see watermark.h. */
#include "decide/watermark.h"

#include <errno.h>

static const struct tunable rows[] = {
	TUNABLE(TUNABLE_DOUBLE, watermark_tunables, high, 0.98, 0.05, 0.999,
		"fill of the fast tier at which demotion starts; writers slow down by the module's janitor_high alone"),
	TUNABLE(TUNABLE_DOUBLE, watermark_tunables, low, 0.95, 0.01, 0.998,
		"fill down to which demotion goes on; below high"),
	TUNABLE(TUNABLE_DOUBLE, watermark_tunables, heirs_share, 0.125, 0.0, 1.0,
		"share of the fast tier that is made room at a time, at most, for blocks born hot that wait to be raised"),
	TUNABLE(TUNABLE_U32, watermark_tunables, vain_ticks, 256, 1, 1000000000,
		"ticks in a row that find only hot blocks, above high, after which the oldest go down, hot or not"),
};
TUNABLE_TABLE(watermark_tunable_table, "watermark", rows);

int watermark_check(const struct watermark_tunables *t)
{
	if (tunable_check(&watermark_tunable_table, t, NULL) || t->low >= t->high)
		return -EINVAL;
	return 0;
}

struct watermark_verdict watermark_step(struct watermark *w,
					const struct watermark_tunables *t,
					uint64_t used_blocks, uint64_t total_blocks)
{
	struct watermark_verdict v = { 0 };
	double total = (double)total_blocks, used = (double)used_blocks;
	double high = total * t->high, low = total * t->low;

	if (used >= high)
		w->demoting = true;
	else if (used <= low)
		w->demoting = false;
	if (w->demoting)
		v.demote_blocks = used_blocks - (uint64_t)low;
	if (used < high)
		v.room_blocks = (uint64_t)(high - used);
	return v;
}
