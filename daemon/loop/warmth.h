/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The heat of one volume, whatever keeps it: RALT's files, the clock tracker or the LRU
 * list.  Owns their memory.  Without a sense of single blocks (`blocks` is false)
 * nothing is hot, and victims can only be chosen by age.
 */
#ifndef TERRACE_LOOP_WARMTH_H
#define TERRACE_LOOP_WARMTH_H

#include "decide/heat.h"
#include "decide/inherit.h"
#include "decide/upmask.h"
#include "ralt/ralt.h"
#include "tuning.h"

struct warmth_config {
	enum heat_kind kind;
	const char *directory;		/* RALT's files */
	uint64_t volume;
	uint64_t nonce;
	uint64_t blocks;		/* of the volume */
	uint64_t fast_blocks;
	uint64_t most_tracked;		/* by a clock, 0: no matter how many; memory may be locked */
	const struct tuning *tuning;
	ralt_report_fn report;
	void *report_ctx;
	const struct tails *passed_on;	/* as RALT wants it */
};

struct warmth {
	enum heat_kind kind;
	const struct tuning *tuning;
	struct ralt *ralt;
	double quartiles[3];	/* of its scores, when they were last looked up */
	bool knows_quartiles;
	uint32_t work;			/* calls of warmth_work() */
	struct tracker tracker;
	struct mapper mapper;
	struct buckets buckets;
	struct recency recency;
	void *memory[3];
	uint64_t errors;		/* accesses whose insertion met a write error */
	int last_error;
};

/* What is known of a region's blocks. */
struct warmth_region {
	int8_t level[REGION_BLOCKS];	/* -1..3 */
	struct upmask hot;
};

/* 0 or -errno, with nothing left open.  RALT's -EBUSY: another process has the directory. */
int warmth_open(struct warmth *w, const struct warmth_config *c, struct prng *prng);
void warmth_close(struct warmth *w);

void warmth_touch(struct warmth *w, uint64_t block);
/* By a clock or list: all of them now. */
void warmth_forget_blocks(struct warmth *w, uint64_t first, uint64_t count);
/*
 * Those that can be forgotten now without waiting for much; returns how many, from the first on.  Of the next one a clock
 * or list may have done a part, which is cut off it.
 */
uint32_t warmth_forget_some(struct warmth *w, struct ralt_range *range, uint32_t nr);
/* So many ranges may be forgotten without a thought whether there is any heat in them. */
uint32_t warmth_forget_spare(const struct warmth *w);
/* Hot, or used so lately that it may become so; see ralt_is_used(). */
bool warmth_used(const struct warmth *w, uint64_t block);
bool warmth_hot(const struct warmth *w, uint64_t block);
/* How many of a range are in the hot set, exactly; not those that only fill the fast tier beyond it. */
uint64_t warmth_hot_set(struct warmth *w, uint64_t first, uint64_t count);

/* @levels: for precise scores; without, only `hot` is filled in, which costs less. */
int warmth_look(struct warmth *w, uint64_t region, bool levels, struct warmth_region *out);

/* What is known of @count blocks, into zeroed memory; or -errno. */
int warmth_worth(struct warmth *w, uint64_t first, uint64_t count, struct inherit_heat *out);
/* A block begins with heat passed on.  True: it has some now; *@hot: enough to go up. */
bool warmth_inherit(struct warmth *w, uint64_t block, const struct inherit_heat *heat, bool *hot);
/* What was passed on is to be seen by whole regions at once, not when the next accesses are written out. */
void warmth_settle(struct warmth *w);

/* About so many blocks of a region are hot, as cheaply as for warmth_estimate(). */
double warmth_hot_estimate(const struct warmth *w, uint64_t region);
/* Fills in what approximate MSC wants to know, in constant time where the source can.  @below: hot blocks that are not fast. */
void warmth_estimate(struct warmth *w, struct region_view *view, uint32_t below);

/* Between accesses: merges, a new mapping.  @fill: share of the fast tier filled by score. */
void warmth_work(struct warmth *w, double fill, struct prng *prng);

#endif
