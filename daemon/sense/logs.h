/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Follows the LOGs of databases on watched filesystems (eventlog.h says what is read out of them).
 *
 * A database is found by its tables: where one lies, its LOG lies, too.  It is looked at every tick, by a thread since its
 * filesystem may hang, and never kept open, since that would keep the filesystem from being unmounted.  When RocksDB begins a new one it renames the old
 * one to LOG.old.*, whose rest is read before.  A LOG elsewhere (db_log_dir) is not found.
 *
 * Of a LOG that is long when it is found only the end is read; of any, a bounded part each tick.
 */
#ifndef TERRACE_SENSE_LOGS_H
#define TERRACE_SENSE_LOGS_H

#include "sense/eventlog.h"

#define LOGS_MAX	16u		/* databases; folders without a LOG give way, then the one that is longest without a new table */
#define LOGS_AT_ONCE	(256u << 10)	/* bytes of one LOG, each tick */
#define LOGS_PAST	(4u << 20)	/* bytes that are read of one that was there before */
#define LOGS_PATH	256

struct logs;

struct logs_counts {
	struct eventlog_stats log;	/* of all databases, also those that are gone */
	uint64_t databases, rotations;
	uint64_t lost_rests;		/* of LOGs that were renamed to what was not found */
};

/* A compaction as its database told it. */
typedef void (*logs_compaction_fn)(void *ctx, const struct eventlog_job *job);

struct logs *logs_open(logs_compaction_fn compaction, void *ctx);
void logs_close(struct logs *l);

/* A table lies in the folder with this inode: is that known? */
bool logs_used(struct logs *l, uint32_t dev, uint64_t folder);
/* It is there. */
void logs_found(struct logs *l, uint32_t dev, uint64_t folder, const char *path);
/* The filesystem is gone. */
void logs_gone(struct logs *l, uint32_t dev);
/* Looks at each, once; a thread reads, and is not waited for beyond @until_ns (CLOCK_MONOTONIC). */
void logs_tick(struct logs *l, uint64_t until_ns);

/* What the database in that folder has told; NULL: there is none. */
const struct eventlog *logs_of(const struct logs *l, uint32_t dev, uint64_t folder);
void logs_counts(const struct logs *l, struct logs_counts *out);

#endif
