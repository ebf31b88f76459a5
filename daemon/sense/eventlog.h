/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a RocksDB tells of itself in its LOG: the lines with EVENT_LOG_v1, which name the files that a compaction
 * reads and writes, and their levels.  Pure: lines in, knowledge out.
 *
 *	[JOB 9] Compacting 2@0 + 1@1 files to L1		level of the outputs
 *	compaction_started	files_L0, files_L1		inputs
 *	table_file_creation	file_number, cf_name		an output, of a flush or a compaction
 *	compaction_finished	output_level, lsm_state		files of each level
 *	Moving #18 to level-2					the same file, one level down
 *
 * RocksDB writes its LOG through a buffer, so what is told may be seconds old: it adds to what files.h sees at
 * once, and corrects it.  Lines without meaning are passed over; those that promise an event and hold none are
 * counted.  Bounded: the oldest job is forgotten, and of files the one whose number is furthest behind.
 */
#ifndef TERRACE_SENSE_EVENTLOG_H
#define TERRACE_SENSE_EVENTLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EVENTLOG_JOBS		16u
#define EVENTLOG_PARTS		512u	/* inputs or outputs of a job; with more it is not told */
#define EVENTLOG_FILES		8192u	/* numbers that follow each other */
#define EVENTLOG_FAMILIES	16u	/* column families; the last stands for all others */

struct eventlog_job {
	uint64_t serial;	/* 0: free */
	uint64_t number;
	int level;		/* of its outputs; -1: not known yet */
	uint8_t family;
	bool compacts, cut;
	uint32_t nr_inputs, nr_outputs;
	uint64_t input[EVENTLOG_PARTS], output[EVENTLOG_PARTS];
};

struct eventlog_stats {
	uint64_t events, malformed, compactions, cut;
};

struct eventlog {
	/* A compaction has finished. */
	void (*compaction)(void *ctx, const struct eventlog_job *job);
	void *ctx;
	struct eventlog_stats stats;
	uint64_t serial;
	uint32_t nr_families;
	struct {
		char name[32];
		int bottom;	/* deepest level that holds files; -1: not known */
	} family[EVENTLOG_FAMILIES];
	struct {
		uint64_t number;	/* 0: free */
		int8_t level;		/* -1: not known */
		uint8_t family;
	} file[EVENTLOG_FILES];
	struct eventlog_job job[EVENTLOG_JOBS];
};

/* @l is zeroed memory. */
void eventlog_init(struct eventlog *l);
/* One line, without its end. */
void eventlog_line(struct eventlog *l, const char *line, size_t bytes);

/* -1: not known. */
int eventlog_level(const struct eventlog *l, uint64_t file);
/* Where a compaction of these inputs writes to; -1: not known. */
int eventlog_output_level(const struct eventlog *l, const uint64_t *input, uint32_t nr);
/* ... and nothing lies below that. */
bool eventlog_goes_to_bottom(const struct eventlog *l, const uint64_t *input, uint32_t nr);

#endif
