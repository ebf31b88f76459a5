/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One question to three heat sources: how hot is this block, -1 (untracked) to 3?
 *
 *	ralt	quantile of the block's score among the scores tracked
 *	clock	the tracker's value, scaled to 0..3
 *	lru	the age quarter in the recency list
 *
 * MSC's coldness is 1 / (level + 1) for all of them; "hot" (stays or goes up) is the
 * mapper's decision for clock, membership of the hot set for RALT, membership of
 * the list for lru.
 */
#ifndef DECIDE_HEAT_H
#define DECIDE_HEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "decide/mapper.h"
#include "decide/recency.h"
#include "decide/tracker.h"

enum heat_kind {
	HEAT_RALT,
	HEAT_CLOCK,
	HEAT_LRU,
	HEAT_KINDS,
};

/* RALT keeps files, so it is reached through two functions and stays out of decide/. */
struct heat_ralt {
	void *ctx;
	bool (*is_hot)(void *ctx, uint64_t block);
	/* The block's score now, negative when untracked. */
	double (*score)(void *ctx, uint64_t block);
	double quartiles[3];	/* of the scores tracked, ascending */
};

struct heat {
	enum heat_kind kind;
	const struct heat_ralt *ralt;
	const struct tracker *tracker;
	const struct mapper *mapper;
	const struct recency *recency;
};

/* Name as in the configuration file, NULL beyond the last. */
const char *heat_kind_name(enum heat_kind kind);

/* 0..3 for a score among @quartiles; -1 for a negative score. */
int heat_quantile(double score, const double quartiles[3]);

int heat_level(const struct heat *h, uint64_t block, uint32_t generation);
bool heat_hot(const struct heat *h, uint64_t block, uint32_t generation);

#endif
