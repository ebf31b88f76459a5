/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The daemon's decisions wired to the simulated volume: the smallest loop that uses
 * every policy, with each part selectable.
 *
 *	access -> heat -> (slow read -> promotion cache -> flush -> raise)
 *	every few operations: watermarks -> choice -> up mask -> move
 */
#ifndef REPLAY_POLICY_H
#define REPLAY_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "decide/admit.h"
#include "decide/buckets.h"
#include "decide/choose.h"
#include "decide/epoch.h"
#include "decide/flush.h"
#include "decide/heat.h"
#include "decide/shards.h"
#include "decide/watermark.h"
#include "ralt/ralt.h"
#include "volume.h"

struct policy_config {
	enum heat_kind heat;
	enum choose_rule rule;
	bool knows_all;		/* instead of the rule: sees every block of every region */
	const char *ralt_directory;
	double tracked_share;
	uint32_t cache_blocks;	/* promotion cache */
	bool first_sight;
	double fill;		/* RALT: share of fast filled by score when skewed */
	bool flush;		/* promotion by flush; off: only epochs promote */
	bool appends;		/* off: every demotion merges, as PrismDB's does */
	uint64_t seed;
	struct ralt_tunables ralt;
};

struct policy {
	struct policy_config c;
	struct volume *v;
	struct prng prng;

	struct ralt *ralt;
	struct tracker tracker;
	struct mapper mapper;
	struct buckets buckets;
	struct recency recency;
	struct recency cache;
	struct shards shards;
	struct watermark watermark;
	struct epoch epoch;
	void *memory[6];

	struct tracker_tunables tracker_t;
	struct mapper_tunables mapper_t;
	struct bucket_tunables bucket_t;
	struct msc_tunables msc_t;
	struct choose_tunables choose_t;
	struct flush_tunables flush_t;
	struct watermark_tunables watermark_t;
	struct epoch_tunables epoch_t;
	struct admit_tunables admit_t;
	struct admit_room filled;
	struct shards_tunables shards_t;

	uint32_t fresh_in_cache;	/* entered since the last flush */
	uint64_t first_sight_promotions;
	uint64_t flush_promotions;
	uint64_t compaction_promotions;
	uint64_t retained;
	uint64_t kept;			/* flushes that went back into the cache */
	uint64_t choices;
	double choice_ns;
	uint64_t last_reads;
	uint64_t last_hits;
	uint64_t last_operations;
};

void policy_config_defaults(struct policy_config *c);
bool policy_init(struct policy *p, const struct policy_config *c, struct volume *v);
void policy_exit(struct policy *p);

/* One user operation. */
void policy_access(struct policy *p, uint64_t block, bool write);

#endif
