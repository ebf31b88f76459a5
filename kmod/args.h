/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Arguments of the table line, and tunables.
 */
#ifndef TR_ARGS_H
#define TR_ARGS_H

#include <linux/types.h>
#include "core/format.h"

struct dm_dev;
struct dm_target;
struct terrace;

enum tr_tune_id {
	TR_TUNE_MEMORY_MB,	/* map in memory, at most */
	TR_TUNE_STREAM_KB,	/* a sequential write this long goes to shelves; 0: never */
	TR_TUNE_APPEND_KB,	/* prepared ahead of appends that are synced, at most; 0: nothing */
	TR_TUNE_COMMIT_MS,	/* records are committed this soon without a flush */
	TR_TUNE_QUEUE_IF_FULL,	/* wait for room instead of ENOSPC */
	TR_TUNE_AGE_S,		/* seconds a tick of region age lasts */
	TR_TUNE_JANITOR_HIGH,	/* per mille of a slots tier in use: the janitor starts */
	TR_TUNE_JANITOR_LOW,	/* … and stops */
	TR_TUNE_THROTTLE_US,	/* the longest delay of a new write */
	TR_TUNE_CACHE_MB,	/* promotion cache, at most; and half of memory_mb */
	TR_TUNE_AHEAD_KB,	/* read beyond what is read in order from packs; 0: nothing */
	TR_TUNE_CLEAN_SLOTS,	/* what is promoted from a pack stays in it as well; 0: it leaves it */
	TR_TUNE_EARLY_TERMINATION, /* of a cluster no more is read and decoded than is wanted; 0: all of it */
	TR_TUNE_TRIM_MS,	/* what became free is discarded so much later; 0: never */
	TR_TUNE_HEAT_SAMPLE,	/* of so many hits one is told to the senses */
	TR_TUNE_SLOW_SAMPLE,	/* … of so many reads that a slow tier serves */
	TR_TUNE_AVOID_TIERS,	/* bits: nothing new goes there as long as others have room */
	TR_TUNE_SCRUB_MB,	/* MB per second that scrubs read, 0: no limit */
	TR_TUNE_ORDERS_TIER0,	/* orders that read or write tier 0 at once; the others follow */
	TR_TUNE_ORDERS_TIER1,
	TR_TUNE_ORDERS_TIER2,
	TR_TUNE_ORDERS_TIER3,
	TR_TUNE_ORDERS_TIER4,
	TR_TUNE_ORDERS_TIER5,
	TR_TUNE_ORDERS_TIER6,
	TR_TUNE_ORDERS_TIER7,
	TR_NR_TUNES,
};

struct tr_tune_info {
	const char *name;
	u32 min, max, initial;
};

extern const struct tr_tune_info tr_tune_info[TR_NR_TUNES];

struct tr_tunes {
	u32 value[TR_NR_TUNES];
};

void tr_tunes_init(struct tr_tunes *tunes);
/* "name=value"; NULL or what is wrong with it. */
const char *tr_tunes_set(struct tr_tunes *tunes, const char *word);
/* The same while the volume runs; what is wrong goes to the log. */
int tr_tune_change(struct terrace *tr, const char *word);
/* Whoever acts on one looks again. */
void tr_tunes_changed(struct terrace *tr);

/* One device of the table line, and what its label says. */
struct tr_arg_device {
	struct dm_dev *dev;	/* NULL: "missing" */
	struct tr_label label;
	u32 class, kind;
};

/* A table line, parsed and compared with the labels. */
struct tr_args {
	struct tr_arg_device meta;	/* metadata device, dev NULL: none */
	struct tr_arg_device tier[TERRACE_MAX_TIERS];
	u32 nr_tiers;
	u8 uuid[TERRACE_UUID_BYTES];
	char name[TERRACE_NAME_BYTES];
	bool read_only;
	bool out_of_place[TERRACE_MAX_TIERS]; /* option atomic=no:<tier> */
	struct tr_tunes tunes;
	u64 virtual_blocks;		/* as the newest superblock says */
};

/* Parses, opens the devices, reads the labels. Writes nothing. On failure
 * ti->error says which argument is wrong and why.
 */
int tr_args_parse(struct tr_args *args, struct dm_target *ti, unsigned int argc, char **argv);
void tr_args_release(struct tr_args *args, struct dm_target *ti);
/* The table line again, with these options, as tr_args_parse() takes it. */
unsigned int tr_args_emit(const struct tr_args *args, const struct tr_tunes *tunes, char *result,
			  unsigned int maxlen);
const char *tr_class_name(u32 class);
const char *tr_kind_name(u32 kind);

#endif
