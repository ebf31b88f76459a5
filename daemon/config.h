/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The configuration file of terraced; packaging/terraced.conf is its commented example.
 *
 *	[daemon]	where it keeps what, what it says
 *	[policy]	for all volumes
 *	[volume NAME]	for one, on top of [policy]
 *
 * Keys of the last two: what settings_keys lists, POLICY.TUNABLE (Documentation/policy.md), and
 * tierN.budget.TUNABLE or tierN.endurance.TUNABLE for one tier, which a general key
 * does not change any more, wherever it stands.  Else a later line wins.  Anything
 * unknown, out of range or in the wrong place is an error, told with its line.
 */
#ifndef TERRACE_CONFIG_H
#define TERRACE_CONFIG_H

#include <stdbool.h>
#include <stdio.h>

#include "decide/choose.h"
#include "decide/heat.h"
#include "log.h"
#include "terrace.h"
#include "tuning.h"

#define CONFIG_PATH		"/etc/terrace/terraced.conf"
#define CONFIG_MAX_VOLUMES	64
#define CONFIG_NAME_BYTES	64
#define CONFIG_PROFILES		4

enum sense_kind {
	SENSE_AUTO,		/* the best that works */
	SENSE_BPF,		/* the module's own tracepoint, gathered by BPF */
	SENSE_ACCESS,		/* ... through perf */
	SENSE_BLOCK,		/* the block layer's */
	SENSE_NONE,
	SENSE_KINDS,
};

struct settings {
	struct tuning tuning;
	struct budget_tunables budget[TERRACE_MAX_RESULT_TIERS];
	struct endurance_tunables endurance[TERRACE_MAX_RESULT_TIERS];
	struct price_tunables price[TERRACE_MAX_RESULT_TIERS];
	uint32_t own[TERRACE_MAX_RESULT_TIERS];	/* which of these were set for the tier alone */
	enum heat_kind heat;
	enum choose_rule rule;
	enum sense_kind sense;
	uint32_t sampling;	/* SENSE_BLOCK: one access in so many */
	uint32_t heat_sample;	/* SENSE_BPF: one hit in so many at the busiest */
	uint32_t cache_blocks;
	double fill;
	bool evaluate;
	bool claim;
	bool drive;		/* false: leave this volume alone */
	bool files;		/* follow the files of filesystems on it ... */
	uint32_t profiles;	/* ... by these databases' names, CONFIG_PROFILES */
	bool retain;		/* hot blocks stay fast when room is made */
	bool ban_dead;		/* blocks of dead files are not promoted ... */
	bool trim_dead;		/* ... and trimmed, ... */
	bool ignore_compactions;	/* what they read is not heated */
	uint32_t scrub_days;	/* between two scrubs of a volume; 0: none */
	uint32_t dead_wait_ms;	/* ... so long after */
	bool cold_streams;	/* what compactions of cold tables write goes past the fast tier ... */
	double cold_share;	/* ... if no larger share of what they read is hot, ... */
	double bottom_share;	/* ... or than this where they write to a database's last level */
	bool fast_logs;		/* write-ahead logs stay fast, however long they are written unsynced */
	bool database_logs;	/* read RocksDB's own LOG */
	bool pin_tails;		/* ends of tables stay fast ... */
	double pin_share;	/* ... on so much of the fast tier at most, ... */
	double tail_share;	/* ... of each table so much */
	bool inherit_heat;	/* what they write starts with the heat of what they read */
};

struct config_volume {
	char name[CONFIG_NAME_BYTES];
	struct settings settings;
};

struct config {
	char state_directory[256];
	char socket[108];
	enum log_level log_level;
	uint32_t tick_ms;
	bool lock_memory;
	bool drive_all;		/* volumes without a section, too */
	struct settings policy;
	struct config_volume volume[CONFIG_MAX_VOLUMES];
	uint32_t nr_volumes;
};

/* Told once for each error. */
typedef void (*config_error_fn)(void *ctx, int line, const char *reason);

void config_defaults(struct config *c);

/* 0, or the number of errors told; -errno when the file cannot be read.  Starts from the defaults. */
int config_read(struct config *c, FILE *f, config_error_fn error, void *ctx);
int config_load(struct config *c, const char *path, config_error_fn error, void *ctx);

/* What holds for a volume of this name; NULL: it is to be left alone. */
const struct settings *config_of(const struct config *c, const char *name);

/* Whether the bandwidth that moves may take on a tier was set for that tier alone. */
bool config_own_rate(const struct settings *s, uint32_t tier);

/* i < CONFIG_PROFILES: that of bit i. */
const char *config_profile_name(uint32_t i);

/* Keys of a volume that are no tunables, one by one; NULL beyond the last. */
const char *config_key_name(uint32_t i);

const char *sense_kind_name(enum sense_kind kind);

#endif
