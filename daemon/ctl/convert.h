/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * terracectl convert, in the order in which it runs:
 *   convert.c          the command: refusals, the new volume, what was begun before
 *   convert_source.c   the device whose data it takes: is it left alone?
 *   convert_copy.c     copying, comparing, and the mark of a volume that is being filled
 */
#ifndef TERRACE_CTL_CONVERT_H
#define TERRACE_CTL_CONVERT_H

#include "compare.h"
#include "dm.h"

/* ---- convert_source.c ---- */

struct source {
	struct device dev;	/* open: nobody else can write to it, or ... */
	bool mounted;		/* ... only the filesystem that is mounted read-only */
	u64 bytes, blocks;	/* the last one may be a part of one */
	u64 writes;		/* that it had had when it was opened */
};

/* Refuses what is in use for writing. 0 or -errno, after a message. */
int source_open(struct source *s, const char *path);
/* Refuses what could not be used on a volume. CTL_OK, or CTL_PROBLEM after a message. */
int source_refuse(const struct source *s);
/* Has anything been written to it since source_open()? A message says so. */
bool source_written(const struct source *s);

/* ---- convert_copy.c ---- */

struct convert_copy {
	const struct source *source;
	struct device volume;	/* nobody else has it */
	u8 uuid[TERRACE_UUID_BYTES];
	u64 done;		/* blocks that an earlier call has copied */
	u64 copied_blocks, again_bytes;
	struct compare compare;
};

enum convert_state {
	CONVERT_EMPTY,		/* nothing is in it */
	CONVERT_BEGUN,		/* the mark is there */
	CONVERT_DONE,		/* it begins as the source does */
	CONVERT_OTHER,		/* what is in it is of somebody else */
};

/* @empty: the volume says that it has nothing. CONVERT_BEGUN: c->done is read. -errno after a message. */
int convert_state(struct convert_copy *c, bool empty);

/* All of it. 0, -EINTR or -errno, after a message if it is neither. */
int convert_copy(struct convert_copy *c);

/* CONVERT_DONE: does it still hold what the source does? Writes nothing. The same results. */
int convert_verify(struct convert_copy *c);

#endif
