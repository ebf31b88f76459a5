// SPDX-License-Identifier: GPL-2.0
/*
 * What can be tuned, in one table: the table line, dmsetup message and sysfs
 * all read it, and tests/host/kmod-words.sh compares Documentation/target.md
 * with it.
 */
#include <linux/kernel.h>
#include <linux/string.h>

#include "order.h"
#include "packs.h"
#include "terrace.h"

const struct tr_tune_info tr_tune_info[TR_NR_TUNES] = {
	[TR_TUNE_MEMORY_MB]	= { "memory_mb", 1, 1 << 20, 64 },
	[TR_TUNE_STREAM_KB]	= { "stream_kb", 0, 1 << 30, 16384 },
	[TR_TUNE_APPEND_KB]	= { "append_kb", 0, 4096, 1024 },
	[TR_TUNE_COMMIT_MS]	= { "commit_ms", 10, 60000, 1000 },
	[TR_TUNE_QUEUE_IF_FULL]	= { "queue_if_full", 0, 1, 0 },
	[TR_TUNE_AGE_S]		= { "age_s", 1, 86400, 60 },
	[TR_TUNE_JANITOR_HIGH]	= { "janitor_high", 1, 1000, 980 },
	[TR_TUNE_JANITOR_LOW]	= { "janitor_low", 0, 999, 950 },
	[TR_TUNE_THROTTLE_US]	= { "throttle_us", 0, 1000000, 5000 },
	[TR_TUNE_CACHE_MB]	= { "cache_mb", 0, 1 << 20, 64 },
	[TR_TUNE_AHEAD_KB]	= { "ahead_kb", 0, 256, 256 },
	[TR_TUNE_CLEAN_SLOTS]	= { "clean_slots", 0, 1, 1 },
	[TR_TUNE_EARLY_TERMINATION]	= { "early_termination", 0, 1, 1 },
	[TR_TUNE_TRIM_MS]	= { "trim_ms", 0, 3600000, 0 },
	[TR_TUNE_HEAT_SAMPLE]	= { "heat_sample", 1, 65536, 16 },
	[TR_TUNE_SLOW_SAMPLE]	= { "slow_sample", 1, 65536, 1 },
	[TR_TUNE_AVOID_TIERS]	= { "avoid_tiers", 0, 255, 0 },
	[TR_TUNE_SCRUB_MB]	= { "scrub_mb", 0, 1 << 20, 100 },
	[TR_TUNE_ORDERS_TIER0]	= { "orders_tier0", 1, 8, 2 },
	[TR_TUNE_ORDERS_TIER1]	= { "orders_tier1", 1, 8, 2 },
	[TR_TUNE_ORDERS_TIER2]	= { "orders_tier2", 1, 8, 2 },
	[TR_TUNE_ORDERS_TIER3]	= { "orders_tier3", 1, 8, 2 },
	[TR_TUNE_ORDERS_TIER4]	= { "orders_tier4", 1, 8, 2 },
	[TR_TUNE_ORDERS_TIER5]	= { "orders_tier5", 1, 8, 2 },
	[TR_TUNE_ORDERS_TIER6]	= { "orders_tier6", 1, 8, 2 },
	[TR_TUNE_ORDERS_TIER7]	= { "orders_tier7", 1, 8, 2 },
};

void tr_tunes_init(struct tr_tunes *tunes)
{
	u32 k;

	for (k = 0; k < TR_NR_TUNES; k++)
		tunes->value[k] = tr_tune_info[k].initial;
}

const char *tr_tunes_set(struct tr_tunes *tunes, const char *word)
{
	const char *value = strchr(word, '=');
	const struct tr_tune_info *info;
	u32 k, number;

	if (!value)
		return "Option is not of the form name=value";
	for (k = 0; k < TR_NR_TUNES; k++) {
		info = &tr_tune_info[k];
		if (strlen(info->name) != value - word ||
		    strncmp(info->name, word, value - word))
			continue;
		if (kstrtou32(value + 1, 10, &number))
			return "Option value is not a number";
		if (number < info->min || number > info->max)
			return "Option value is out of range";
		WRITE_ONCE(tunes->value[k], number);
		return NULL;
	}
	return "Unknown option";
}

void tr_tunes_changed(struct terrace *tr)
{
	tr_janitor_kick(tr);		/* its marks may have moved */
	tr_flight_changed(tr);
	tr_scrub_limit_changed(tr);
	tr_trim_kick(tr);
	tr_promotion_fit(tr);
	tr_memory_check(tr);		/* its limit may be lower */
	tr_throttle_update(tr);
	tr_room_made(tr);		/* a tier may be open again */
}

int tr_tune_change(struct terrace *tr, const char *word)
{
	const char *wrong = tr_tunes_set(&tr->tunes, word);

	if (wrong) {
		DMERR("%s: set %s: %s", tr->name, word, wrong);
		return -EINVAL;
	}
	tr_tunes_changed(tr);
	return 0;
}
