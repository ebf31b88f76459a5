/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What files are for, from what happens to them (bpf/lsm.bpf.c): tables of an LSM tree and the
 * compactions that read and write them.  Pure: events in, compactions out; no I/O, no clock.
 *
 * A thread's work on tables is a job: those it reads from the beginning are inputs, those it
 * creates meanwhile are outputs.  The job ends when no output is open and the thread has synced
 * something else (a manifest), has unlinked, or starts to read anew after all inputs were read through.
 * A job whose inputs, read through, then die is a compaction.  A table written without reading
 * is a flush.
 *
 * Events get lost, processes are killed: an output that dies, is forgotten, or must have been closed long ago is
 * none any more.
 *
 * Everything is bounded: the oldest file is forgotten, the job that does least, and both are counted.
 */
#ifndef TERRACE_SENSE_FILES_H
#define TERRACE_SENSE_FILES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "terrace_bpf.h"

#define FILES_MAX	8192u	/* known at a time */
#define FILES_JOBS	64u	/* under way, or waiting for their inputs to die */
#define FILES_INPUTS	256u	/* of a job */
#define FILES_OUTPUTS	256u
#define FILES_CROSSINGS	4096u	/* of a job; a larger job has coarser ones ... */
#define FILES_COARSE	12u	/* ... up to TERRACE_FILE_STEP << so much */

enum file_kind {
	FILE_UNKNOWN,		/* may be a table: judged by what happens to it */
	FILE_TABLE,		/* immutable when closed */
	FILE_LOG,		/* write-ahead log */
	FILE_META,		/* manifest, options, the database's own log of events, ... */
	FILE_OTHER,		/* nothing that any profile in use knows */
};

/* Whose names are known: RocksDB's (MyRocks has the same), LevelDB's, Cassandra's; generic: any other may be a table. */
#define FILE_PROFILE_ROCKSDB	(1u << 0)
#define FILE_PROFILE_LEVELDB	(1u << 1)
#define FILE_PROFILE_CASSANDRA	(1u << 2)
#define FILE_PROFILE_GENERIC	(1u << 3)
#define FILE_PROFILES		15u

enum file_kind file_kind_of(const char *name, uint32_t profiles);

/* What of a file by that name lookups begin with, index and filter: its end, where tables have theirs, or all of it. */
enum file_pins { FILE_PINS_NOTHING, FILE_PINS_END, FILE_PINS_ALL };
enum file_pins file_pins_of(const char *name, uint32_t profiles);

struct file_id {
	uint64_t inode;
	uint32_t generation;
	uint32_t dev;
};

struct file {
	struct file_id id;
	uint64_t parent;
	uint64_t size;
	uint64_t written;	/* told so far, while it is written */
	uint64_t written_ns;	/* when that was */
	uint64_t reads_before;	/* of its writer's job, when it was created */
	uint64_t serial;	/* in order of appearance; 0: free */
	enum file_kind kind;
	enum file_pins pins;
	uint32_t thread;	/* its creator */
	bool open;		/* being written */
	bool astray;		/* not only appended to */
	bool synced;
	bool unlinked;
	bool told;		/* that it grows */
	uint64_t sought;	/* of a log: not told again that it grows before it is as long as this */
	char name[TERRACE_FILE_NAME];
	uint32_t next;		/* in its chain */
	bool nameless;		/* only read so far: among those that go first ... */
	uint32_t older, newer;	/* ... in order of appearance, 1-based */
};

/*
 * When the output had grown to @at, the input was read up to @end.  @exact: and of that all before @from had gone to the
 * outputs.  Else the output may have been a little longer, and nothing is known of how much had.
 */
struct file_crossing {
	uint16_t input, output;
	bool exact;
	uint64_t at, from, end;
};

struct file_part {
	struct file_id id;
	uint64_t size;
	uint64_t read;		/* of an input: through up to here */
	uint64_t reads;		/* of its job, when an input was read last, or an output created */
	bool done;		/* input: dead; output: closed */
	bool table;		/* by its name */
	char name[TERRACE_FILE_NAME];
};

struct file_job {
	uint64_t serial;	/* 0: free */
	uint64_t used;		/* likewise, of its last event */
	uint64_t written_ns;	/* when an output was created, or grew */
	uint32_t thread, process;
	bool makes_tables;	/* by their names */
	bool ended;
	bool synced;		/* something else, since an output was closed */
	bool flushed;		/* a table in passing: what is synced next is for that */
	bool busy;		/* told */
	uint64_t reads;		/* told of inputs */
	uint64_t read_bytes, written_bytes;	/* of inputs; of outputs that are closed */
	uint32_t nr_inputs, nr_outputs, nr_crossings;
	uint32_t open_outputs;
	uint32_t told_inputs;	/* the first ones, to whom it may concern */
	uint32_t given;		/* outputs, from the first on, whose heat has been passed on */
	uint32_t coarse;
	struct file_part input[FILES_INPUTS];
	struct file_part output[FILES_OUTPUTS];
	struct file_crossing crossing[FILES_CROSSINGS];
};

struct files_stats {
	uint64_t events, created, closed, died;
	uint64_t flushes, jobs, compactions;
	uint64_t forgotten_files, forgotten_jobs, cut_jobs;	/* for want of room */
	uint64_t forgotten_writers;	/* by the kernel: how a file was written is not known */
};

struct files_tell {
	/* All outputs are written, the inputs are still there: for what is inherited.  May be no compaction. */
	void (*job)(void *ctx, const struct file_job *job);
	/* ... its inputs died: it was one.  Inputs that did not are left out. */
	void (*compaction)(void *ctx, const struct file_job *job);
	/* @thread reads tables through while it writes others; or does so no longer, or has written nothing for long. */
	void (*busy)(void *ctx, uint32_t thread, bool yes);
	/* An output has begun to grow while its thread reads tables: once, when some of it has been written. */
	void (*growing)(void *ctx, const struct file_job *job, const struct file *file);
	/* A table has begun to grow from what its writer has in memory: once. */
	void (*begun)(void *ctx, const struct file *file);
	/* A log has begun to grow, or beyond what is known of where it lies (files_lies()). */
	void (*log)(void *ctx, const struct file *file);
	/* It is read by a job that writes others: once. */
	void (*input)(void *ctx, const struct file_id *id);
	/* A table is complete, and on disk, or a log or the like is complete; or it is gone, with all its names. */
	void (*table)(void *ctx, const struct file *file);
	/* Blocks of it are its own no longer: it was cut, or punched; @shared: another has them as well, or is about to. */
	void (*changed)(void *ctx, const struct file_id *id, bool shared);
	/* It was closed without that: its writer was killed, or does not sync it; or nothing has been heard of it for long, if ever again. */
	void (*left)(void *ctx, const struct file *file);
	void (*died)(void *ctx, const struct file *file);
	void *ctx;
};

struct files {
	struct files_tell tell;
	struct files_stats stats;
	uint64_t serial;
	uint32_t profiles;
	uint64_t looked_ns;		/* for outputs that do not grow any more */
	uint32_t last;			/* the file that was made last */
	uint32_t nr;			/* files */
	uint32_t oldest, newest;	/* of the nameless, 1-based; 0: none */
	uint32_t chain[FILES_MAX];	/* heads, 1-based; 0: none */
	struct file file[FILES_MAX];
	uint32_t thread[FILES_JOBS];	/* of each job, near to each other: they are looked for with each read; may be stale */
	struct file_job job[FILES_JOBS];
};

/* @f is zeroed memory. */
void files_init(struct files *f, uint32_t profiles, const struct files_tell *tell);
void files_profiles(struct files *f, uint32_t profiles);
void files_event(struct files *f, const struct terrace_file_event *e);
/* @now_ns: the clock of events. */
void files_tick(struct files *f, uint64_t now_ns);
/* Nothing more will come of jobs under way: reports what is certain. */
void files_end(struct files *f);
/* Nothing more will be heard: tells of whoever was told to be busy that it is not. */
void files_rest(struct files *f);

const struct file *files_find(const struct files *f, const struct file_id *id);
/* The next table or log that seems to be written, from number *@at on, which is then beyond it.  NULL: none is left, and *@at is FILES_MAX. */
const struct file *files_next_open(const struct files *f, uint32_t *at);

/* The job under way that has written this table; its number among the outputs.  NULL: none. */
const struct file_job *files_job_of_output(const struct files *f, const struct file_id *id, uint32_t *number);
/* A table that is there, whoever wrote it: its name is @name now. */
void files_found(struct files *f, const struct file_id *id, uint64_t parent, const char *name, uint64_t size);
/* Of a log it is known where its first @bytes lie, as far as they have been allocated. */
void files_lies(struct files *f, const struct file_id *id, uint64_t bytes);
/* Where logs lie is not known any more. */
void files_lie_elsewhere(struct files *f);
/* The heat of its outputs up to this one, complete, has been passed on. */
void files_given(struct files *f, const struct file_id *id);

#endif
