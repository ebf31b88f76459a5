/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The inside of a store, shared by the file_*.c that make it up:
 *
 *	file_open.c	opening, recovering, setting aside, closing
 *	file_commit.c	the manifest and the list of runs
 *	file_insert.c	accesses in, buffer out, forgetting
 *	file_merge.c	merges in steps
 *	file_query.c	hot or not, how much, which
 *	page_cache.c	the pages that it read last
 */
#ifndef RALT_FILE_STORE_H
#define RALT_FILE_STORE_H

#include "ralt/file_io.h"
#include "ralt/file_run.h"
#include "ralt/forget.h"
#include "ralt/levels.h"
#include "ralt/manifest.h"
#include "ralt/merge.h"
#include "ralt/page_cache.h"
#include "ralt/ralt.h"
#include "ralt/sample.h"
#include "ralt/tune.h"

struct merge_job {
	bool active;
	bool writes;		/* clear: only counts, to fill the sample after opening */
	struct merge_plan plan;
	struct merge merge;
	struct run_reader readers[RALT_RUNS_MAX];
	struct run_writer writer;
	struct ralt_threshold physical;
	struct sample sample;	/* filled by a complete merge */
	void *sample_memory;
	uint64_t records;	/* of the inputs */
	uint64_t dropped;
};

struct ralt {
	struct ralt_config config;
	struct ralt_sizes sizes;
	struct ralt_decay decay;
	struct ralt_judge judge;
	struct tune tune;
	struct file_io io;
	struct page_cache pages;
	int dir;
	int lock;

	uint64_t store;
	uint64_t accesses;
	uint64_t next_change;	/* accesses at which tick or period change */
	uint64_t next_tuning;
	uint64_t next_eviction;
	uint32_t buffer_limit;
	uint64_t next_run;
	uint32_t generation;
	struct forget forget;

	struct ralt_run runs[RALT_RUNS_MAX];	/* oldest first */
	uint32_t run_count;

	struct ralt_record *buffer;
	uint32_t buffered;
	uint64_t *in_buffer;	/* a filter: bits of the hashes of what it holds */
	uint64_t filter_bits;	/* less 1, a mask */

	struct sample sample;
	void *sample_memory;
	bool sample_complete;	/* clear until all runs were counted after opening */
	uint64_t next_census;	/* accesses at which that is tried again, after an error */
	double *scratch;

	struct merge_job job;
	struct ralt_stats stats;
};

/* file_open.c */
void store_report(const struct ralt *r, enum ralt_event event, const char *file, int err);
void store_set_aside(struct ralt *r, const char *name, int err);

/* file_commit.c */
int store_commit(struct ralt *r);
int store_commit_with(struct ralt *r, const struct manifest_run *runs, uint32_t count);
int store_read_manifest(struct ralt *r, struct manifest *m);
/* Takes a damaged run out of the list and sets it aside. */
void store_drop_run(struct ralt *r, uint32_t at, int err);

/* file_insert.c */
void store_set_time(struct ralt *r);
int store_flush(struct ralt *r);
void store_empty_buffer(struct ralt *r);
/* Sorts records and folds those of each block into its last one; how many are left. */
uint32_t store_fold(const struct ralt_judge *judge, struct ralt_record *record, uint32_t nr);

/* file_merge.c */
int job_begin_planned(struct ralt *r);
int job_begin_complete(struct ralt *r);
int job_begin_census(struct ralt *r);
/* Takes in about so many @records.  1: more to do, 0: finished, negative errno (the job is then gone). */
int job_step(struct ralt *r, uint64_t records);
void job_abort(struct ralt *r);

#endif
