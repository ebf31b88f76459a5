/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RALT's constants (HotRAP, arXiv 2402.02070), sizes as shares of the fast tier.
 *
 * HotRAP counts bytes of records; blocks are all 4 KiB, so every size here is a
 * number of blocks and every "accessed size" a number of accesses.
 */
#ifndef RALT_TUNABLES_H
#define RALT_TUNABLES_H

#include <stdint.h>

#include "decide/tunable.h"

struct ralt_tunables {
	double alpha;
	double tick_share;
	double evict_share;
	double counter_step;
	double counter_max;
	double period_share;
	double min_hot_share;
	double max_hot_share;
	double candidate_share;
	double initial_hot_share;
	double physical_ratio;
	double tracked_share;
	double fill_score;
	uint32_t fanout;
	uint32_t young_runs;
	uint32_t bloom_bits;
	uint32_t samples;
	uint32_t buffer_records;
	uint32_t page_bytes;
	uint32_t forget_ranges;
};

extern const struct tunable_table ralt_tunable_table;

/* 0; -ERANGE or -EINVAL with the offending row in *@bad (may be NULL). */
int ralt_tunables_check(const struct ralt_tunables *t, const struct tunable **bad);

/* The tunables applied to one fast tier: what the algorithms calculate with. */
struct ralt_sizes {
	uint64_t fast_blocks;
	uint64_t tick_accesses;
	uint64_t period_accesses;
	uint64_t min_hot;
	uint64_t max_hot;
	uint64_t candidates;
	uint64_t initial_hot;
};

void ralt_sizes_of(struct ralt_sizes *s, const struct ralt_tunables *t, uint64_t fast_blocks);

#endif
