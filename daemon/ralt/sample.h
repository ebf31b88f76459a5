/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The resident sample: the complete, current records of a hashed share of the
 * blocks.
 *
 * HotRAP samples N scores while it scans RALT for an eviction.  A record's parts are
 * spread over runs, so that takes a merge of everything, and between scans the
 * sizes are guesses.  Here the blocks whose hash is below a threshold are kept whole
 * in memory instead: sizes, stable counts and k-th largest scores can be
 * estimated at any time without I/O.  With N samples a share of 5 % is known to
 * about 1 / sqrt(0.05 N) = 2.5 % at N = 32768; a small set is sampled completely and
 * exact.
 *
 * When N + 1 records qualify the rate is halved.  It rises again only when a
 * complete merge fills a new sample.
 */
#ifndef RALT_SAMPLE_H
#define RALT_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ralt/forget.h"
#include "ralt/record.h"

struct sample_slot {
	struct ralt_record record;	/* score 0: empty */
	bool was_hot;			/* when the runs were last rewritten */
};

struct sample {
	struct sample_slot *slots;
	uint64_t *taken;	/* a bit for each slot that is not empty */
	uint32_t mask;
	uint32_t limit;
	uint32_t count;
	uint32_t shift;		/* rate = 2^-shift */
};

size_t sample_bytes(uint32_t limit);

/* @mem: sample_bytes(@limit), owned by the caller. */
void sample_init(struct sample *s, uint32_t limit, uint32_t shift, void *mem);

/* Smallest shift at which about @records fit with a quarter to spare. */
uint32_t sample_shift_for(uint32_t limit, uint64_t records);

bool sample_wants(const struct sample *s, uint64_t block);

/* Adds @r, the newest record of its block, or an older one found by a merge. */
void sample_add_newer(struct sample *s, const struct ralt_judge *j, const struct ralt_record *r);
void sample_add_older(struct sample *s, const struct ralt_judge *j, const struct ralt_record *r);

/* Drops the records that @f declares dead. */
void sample_forget(struct sample *s, const struct forget *f);

/* One block's. */
void sample_drop(struct sample *s, uint64_t block);

/* Estimates of the whole from the sample: but for `tracked` and `stale`, of what counts (ralt_counts()). */
struct sample_census {
	double tracked;
	double members;		/* above the hot threshold, stable or not */
	double stable;		/* stable members: the hot set */
	double fill;		/* hot by the fill threshold alone */
	double passed;		/* stable members that do not count: they take room all the same */
	double stale;		/* were hot at the last rewrite and no longer are */
	size_t nr_others;
};

/* @others: room for a score of each, for those outside the hot set, census.nr_others of them; or NULL. */
struct sample_census sample_census(const struct sample *s, const struct ralt_judge *j, double *others);

/* The threshold that lets in the @keep highest-ranked records of the whole, and of those that do not count what lies above it. */
struct ralt_threshold sample_kth(const struct sample *s, const struct ralt_judge *j, double keep,
				 double *scratch);

/* The @keep-th highest score outside the hot set; 0 when there are fewer, huge for none. @others: as the census left it. */
double sample_kth_other(const struct sample *s, const struct sample_census *c, double keep, double *others);

/* Bytes of @scratch for sample_kth() and sample_quartiles(), and of @others. */
size_t sample_scratch_bytes(const struct sample *s);

/* Quartiles of the scores tracked, ascending. */
void sample_quartiles(const struct sample *s, const struct ralt_judge *j, double out[3],
		      double *scratch);

/* The sampled record of @block, or NULL. */
const struct ralt_record *sample_find(const struct sample *s, uint64_t block);

/* The runs were just rewritten: their filters say what is hot now. */
void sample_mark_hot(struct sample *s, const struct ralt_judge *j);

/* Settles every record against the current threshold, as a merge would, and counts. */
struct sample_census sample_settle(struct sample *s, const struct ralt_judge *j);

#endif
