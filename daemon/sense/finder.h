/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tables that are there before anything is heard of them: those from before the daemon's start, and those whose creation
 * was lost.  The folders of a filesystem are read through once, by a thread, and what is called like a table is told.
 * Nothing of the files themselves is read, and no folder stays open.
 */
#ifndef TERRACE_SENSE_FINDER_H
#define TERRACE_SENSE_FINDER_H

#include "sense/inquiry.h"
#include "sense/mounts.h"

#define FINDER_TABLES	(FILES_MAX / 2)	/* told of a filesystem; what is beyond them is counted */
#define FINDER_FOLDERS	4096u		/* that wait to be read */
#define FINDER_NAMES	(256u << 10)	/* looked at */

struct finder;

struct finder_counts {
	uint64_t walks, tables;
	uint64_t left;		/* tables, folders; and once for each filesystem with too many names */
};

/* 0 or -errno */
int finder_open(struct finder **out);
/* A walk under way ends by itself. */
void finder_close(struct finder *f);
/* A walk through all of it, with names as @profiles know them.  False: one is under way, or has not been heard to its end. */
bool finder_walk(struct finder *f, const struct mount *m, uint32_t profiles);
/* The next table of that walk; never waits. */
bool finder_next(struct finder *f, struct found_file *out);
void finder_counts(const struct finder *f, struct finder_counts *out);

/* --- for their test ------------------------------------------------------------------ */

struct walk {
	char root[MOUNT_PATH];
	uint32_t dev, profiles;
	struct finder_counts counts;
	uint32_t nr, heard;
	struct found_file table[FINDER_TABLES];
};

void finder_read(struct walk *w);

#endif
