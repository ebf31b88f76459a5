/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where tables are on the volume, by inode: asked for while they live, since the dead cannot be asked.
 * A hash with room for more than files are known, so that hardly any is crowded out; where one is, the oldest of its chain
 * goes, and the oldest of all where extents are too many.
 */
#ifndef TERRACE_SENSE_PLACES_H
#define TERRACE_SENSE_PLACES_H

#include "sense/extents.h"
#include "sense/files.h"

#define PLACES		(2 * FILES_MAX)
#define PLACES_EXTENTS	(1u << 20)	/* of all; near to that, of each no more than its first EXTENTS_FIRST */

struct place {
	struct file_id id;
	uint32_t nr;		/* 0: free */
	bool stale;		/* part of it may be others' since: cut, or shared */
	bool shared;		/* ... or is about to be: it stays stale */
	bool early;		/* asked while it grew: part of it may be missing, and its end given up */
	bool again;		/* to be looked at again */
	bool absent;		/* its filesystem was away, and it has not been looked at since */
	uint64_t serial;	/* when it was kept */
	struct extent *extent;
};

struct places {
	/* One goes for want of room, while it lives. */
	void (*forgets)(void *ctx, const struct place *p);
	void *ctx;
	uint64_t serial;
	uint64_t forgotten;	/* ... so many */
	uint64_t nr;		/* extents of all */
	struct place place[PLACES];	/* by hash of the inode, the next free one from there */
};

struct place *places_find(struct places *ps, const struct file_id *id);
/* Copies @extent.  No memory: it is not known. */
void places_keep(struct places *ps, const struct file_id *id, const struct extent *extent, uint32_t nr);
void places_drop(struct places *ps, struct place *p);
void places_exit(struct places *ps);

#endif
