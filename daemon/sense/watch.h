/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The files of the filesystems that lie on a volume: finds these (ext4, xfs; partitions, linear and
 * crypt devices in between), follows their files (lsm.h, files.h), and knows where on the volume
 * each table is, since its blocks can no longer be asked for when it is dead.
 *
 * A table is opened only for the moment in which it is asked for its extents, by handle: no path is walked, and a file that
 * died before that is just not found.  A thread does that (asker.h), for filesystems may hang.  Tables from before the
 * daemon's start, and those whose creation was missed, are found by their names (finder.h).
 */
#ifndef TERRACE_SENSE_WATCH_H
#define TERRACE_SENSE_WATCH_H

#include <stddef.h>

#include "sense/extents.h"
#include "sense/files.h"
#include "sense/finder.h"
#include "sense/logs.h"

struct watch;
struct bequest;

struct watch_counts {
	struct files_stats files;
	struct extents_stats extents;
	uint64_t lost;			/* events */
	uint64_t filesystems;
	uint64_t restacked;		/* times that devices below one have changed */
	uint64_t places_forgotten;	/* of tables that live: their deaths mean nothing */
	uint64_t places_changed;	/* times that a file whose place is known was cut or shared */
	uint64_t mapped, unmapped;	/* tables whose extents are known; could not be asked for */
	uint64_t not_asked;		/* ... of these, since too many were waiting */
	uint64_t found, found_left;	/* tables of which nothing had been heard; left alone, so many being known */
	struct finder_counts walks;
	uint64_t looked_again;		/* tables that were asked once more, since they may have changed unheard */
	uint64_t died_unheard;		/* of those */
	uint64_t dead_blocks;		/* of tables that died */
	uint64_t growing_lost;		/* outputs that were not asked for: no room, or their filesystem is out of reach */
	uint64_t growing_late;		/* ... that were complete when the answer came */
	uint64_t logs_lost, logs_late;	/* the same of logs that grow */
	uint64_t bequests_lost;		/* jobs whose heat is not passed on, for want of room */
	struct logs_counts logs;
};

struct watch_tell {
	/*
	 * A file has died: @extents were its own, if they are known; @path: where its filesystem is mounted.
	 * @sure: false: part of them may be others' by now, for it was cut or shared after it had been asked.
	 */
	void (*dead)(void *ctx, const char *path, const struct file_id *id, const struct extent *extents, uint32_t nr, bool sure);
	/* It has been written: where its bytes are. */
	void (*placed)(void *ctx, const struct file *file, const struct extent *extents, uint32_t nr);
	/*
	 * These blocks are its own no longer: devices below its filesystem have changed. It is told as placed again.
	 * Once before all, with none: marks and hints that are out are of others' blocks.
	 */
	void (*moved)(void *ctx, const struct extent *extents, uint32_t nr);
	/* It is closed, and will not be told as placed. */
	void (*left)(void *ctx, const struct file_id *id);
	/*
	 * It is being written by a job that reads the inputs of @b: where its bytes will be, as far as that is decided.
	 * @bottom: by the database's own log, nothing lies below its level.
	 */
	void (*growing)(void *ctx, const struct file_id *id, const struct bequest *b, bool bottom,
			const struct extent *extents, uint32_t nr);
	/* A log is being written: where its bytes will be, likewise. Again when it has grown beyond that. */
	void (*log)(void *ctx, const struct file_id *id, const struct extent *extents, uint32_t nr);
	/* @thread compacts; or does no longer. */
	void (*busy)(void *ctx, uint32_t thread, bool yes);
	/* A job has written an output, or its last ones: what they are made of.  May turn out to be no compaction. */
	void (*bequest)(void *ctx, const struct bequest *b);
	/* For people. */
	void (*compaction)(void *ctx, const char *line);
	void (*logged)(void *ctx, const char *line);	/* the same by the database's own log */
	void (*filesystem)(void *ctx, const char *path);
	void (*refused)(void *ctx, const char *path, const char *why);	/* its files are not followed */
	void *ctx;
};

/* @ignored: see lsm.h; @profiles: FILE_PROFILE_*.  0, or -errno with a phrase in @why. */
int watch_open(unsigned int major, unsigned int minor, const int *ignored, uint32_t profiles, const struct watch_tell *tell,
	       struct watch **out, char *why, size_t bytes);
/* Other profiles, for names from now on. */
void watch_profiles(struct watch *w, uint32_t profiles);
/* Whether threads are marked as soon as they compact. */
void watch_mark(struct watch *w, bool yes);
void watch_close(struct watch *w);

/* See lsm_fd(). */
int watch_fd(const struct watch *w);
/* Hands on what has happened.  @look: looks for new filesystems, too; @logs: reads the databases' own logs. */
void watch_tick(struct watch *w, bool look, bool logs);

const struct watch_counts *watch_counts(struct watch *w);

#endif
