/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RALT, the recent access lookup table (HotRAP): which blocks are hot, on disk,
 * in bounded memory, across restarts.
 *
 * Four operations: insert an access, is a block hot, how many hot blocks has a
 * range, list the hot blocks of a range.  Only the last one reads the disk.
 * Merging goes on in steps, from ralt_work() and, if nobody calls that, from insert: no call merges more than some
 * multiple of the buffer (RALT_STEP_MOST), however much there is.
 *
 * One thread uses a store at a time.  Nothing here reads a clock: time is the
 * number of accesses inserted.  With sampled accesses, insert the sampled ones
 * only, all at the same rate: ticks and periods then stretch by themselves and the
 * tuned limit stays the same.
 *
 * Heat dies with ralt_forget(); an access is inserted under the generation that
 * ralt_generation() gave when it happened, so one that was on its way while its
 * range was discarded does not revive it.
 *
 * Lost by a crash: the accesses in the buffer (buffer_records at most).
 */
#ifndef RALT_RALT_H
#define RALT_RALT_H

#include <stdbool.h>
#include <stdint.h>

#include "ralt/tunables.h"

struct ralt;

/* Records merged by one call of all but ralt_work(), in multiples of buffer_records. */
#define RALT_STEP_MOST	128u

enum ralt_event {
	RALT_COLD,		/* opened without heat: nothing there, or all set aside */
	RALT_SET_ASIDE,		/* a damaged file was renamed to NAME.bad; its heat is lost */
	RALT_OTHER_VOLUME,	/* the files belong to another volume; set aside */
	RALT_WRITE_FAILED,	/* a flush or merge failed; will be tried again */
	RALT_DROPPED,		/* the buffer could not be written and had to be emptied */
};

/* Called from within ralt functions; must not call them. */
typedef void (*ralt_report_fn)(void *ctx, enum ralt_event event, const char *file, int err);

struct ralt_config {
	const char *directory;	/* exists; used by one store at a time */
	uint64_t volume;	/* the volume's identity; another one's heat is not used */
	uint64_t nonce;		/* random; names a new store */
	uint64_t fast_blocks;
	struct ralt_tunables tunables;
	ralt_report_fn report;	/* may be NULL */
	void *report_ctx;
	/* Blocks that have passed their heat on to others, and will soon be forgotten: they do not count. The caller's; or NULL. */
	const struct tails *passed_on;
};

struct ralt_heat {
	uint64_t block;
	double score;
	double counter;		/* accesses to come that it still lives on */
	bool stable;
	bool hot;
};

struct ralt_range {
	uint64_t first;
	uint64_t count;
};

struct ralt_stats {
	uint64_t accesses;
	uint64_t records;	/* on disk, the same block counted in every run it is in */
	double tracked;		/* estimates: blocks with a record, ... */
	double hot;		/* ... of them in the hot set, ... */
	double fill;		/* ... hot only because of ralt_fill() */
	uint64_t hot_limit;
	uint64_t physical_limit;
	uint64_t tunings;
	uint64_t evictions;	/* complete merges that dropped records */
	uint64_t merges;
	uint64_t merged;	/* records that merges have read */
	uint64_t records_written;
	uint64_t stale;		/* inserts refused for their generation */
	uint64_t dropped;	/* accesses lost to failed writes */
	uint32_t runs;
	uint32_t forgotten_ranges;
	uint64_t bytes_on_disk;
	bool evicting;		/* a complete merge is under way */
};

/*
 * -EBUSY: another process has the directory; -EINVAL, -ERANGE: tunables; -ENOSYS and
 * the like: no io_uring.  Damaged files are no error: see ralt_event.
 */
int ralt_open(struct ralt **out, const struct ralt_config *config);

/* Writes the buffer out.  The store is freed whatever the result. */
int ralt_close(struct ralt *r);

uint32_t ralt_generation(const struct ralt *r);

/* 0, -ERANGE for a block beyond 2^40, or the error of a flush (the access is kept). */
int ralt_insert(struct ralt *r, uint64_t block, uint32_t generation);

/*
 * A block begins with the heat of what it was made of.  No access: time does not pass.  @heat: `block`, `score` above 0,
 * `counter`, `stable`; on return `hot` says whether that is hot now.  Errors as from an insertion, or -EINVAL.
 */
int ralt_inherit(struct ralt *r, struct ralt_heat *heat);

/* Advances merges by about @records.  1: more to do, 0: idle, negative errno. */
int ralt_work(struct ralt *r, uint64_t records);

/* Writes the buffer out now. */
int ralt_flush(struct ralt *r);

/*
 * Durable when it returns 0.  All ranges share one new generation.  -ENOSPC, and nothing is forgotten: there is no room
 * for so many.
 */
int ralt_forget(struct ralt *r, const struct ralt_range *ranges, uint32_t count);

/* So many ranges can be forgotten now.  ralt_work() makes room again. */
uint32_t ralt_forget_room(const struct ralt *r);

/* So many, and no merge has to come for it, whatever else is forgotten. */
uint32_t ralt_forget_spare(const struct ralt *r);

/* From filters in memory: false positives of about 1 in 14,000 and run, no false negatives. */
bool ralt_is_hot(const struct ralt *r, uint64_t block);

/*
 * Hot, or with accesses in the buffer: those that have been written out may be what the next one makes it hot with, but only
 * a scan would tell.  False positives of 1 in 16.
 */
bool ralt_is_used(const struct ralt *r, uint64_t block);

/* Short ranges by filter, long ones by prefix sums corrected for duplicates. */
double ralt_hot_size(const struct ralt *r, uint64_t first, uint64_t count);

/* By prefix sums alone, whatever the length: a few dozen ns, within a page's spread. */
double ralt_hot_estimate(const struct ralt *r, uint64_t first, uint64_t count);

/*
 * Lists the blocks of a range with a record (or the hot ones only), ascending, whether that has been written out or
 * not.  Stops when @see returns nonzero and returns that.
 */
typedef int (*ralt_see_fn)(void *ctx, const struct ralt_heat *heat);
int ralt_scan(struct ralt *r, uint64_t first, uint64_t count, bool hot_only,
	      ralt_see_fn see, void *ctx);

/*
 * The same of [*@first, @end), but no more than about @most records are read, of which forgotten ranges may hold any number.
 * *@first becomes where to go on: @end, when that was all, or the block for which @see returned nonzero.
 */
int ralt_scan_some(struct ralt *r, uint64_t *first, uint64_t end, uint64_t most, ralt_see_fn see, void *ctx);

/*
 * From the next tuning on, also calls hot the blocks with the highest scores, up to @share of
 * the fast tier (0: only the hot set).  For loads that are skewed; costs filter memory.
 */
void ralt_fill(struct ralt *r, double share);

/* Quartiles of the scores tracked, for quantile levels. */
void ralt_quartiles(struct ralt *r, double out[3]);

void ralt_stats(const struct ralt *r, struct ralt_stats *out);

#endif
