/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Merging sorted sources of records into one, each block once.
 *
 * Sources are ordered oldest to newest; the records of one block are merged from
 * the newest down, dead ones (forgotten) left out.  The sources read files or
 * memory: that is behind a function, so the merge itself is pure.
 */
#ifndef RALT_MERGE_H
#define RALT_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ralt/forget.h"
#include "ralt/record.h"

#define RALT_SOURCES_MAX	(96u + 1)

struct merge_source {
	/* 1 and *@r, in ascending order; 0 at the end; negative errno. */
	int (*next)(void *ctx, struct ralt_record *r);
	void *ctx;
};

#define MERGE_ENDED	UINT64_MAX	/* a source: no block has this number (RALT_BLOCK_LIMIT) */

struct merge {
	const struct ralt_judge *judge;
	const struct forget *forget;
	struct merge_source sources[RALT_SOURCES_MAX];
	struct ralt_record heads[RALT_SOURCES_MAX];
	uint64_t next[RALT_SOURCES_MAX];	/* blocks of the heads; MERGE_ENDED */
	uint32_t count;
	size_t cursor;		/* into the forgotten ranges */
	uint64_t consumed;	/* records taken from sources */
	uint32_t failed;	/* the source that returned an error */
};

/* Reads the first record of every source.  0 or the errno of merge->failed. */
int merge_begin(struct merge *m, const struct ralt_judge *judge, const struct forget *forget,
		const struct merge_source *sources, uint32_t count);

/* The forgotten ranges changed under the merge. */
static inline void merge_forget_changed(struct merge *m)
{
	m->cursor = 0;
}

/* The block that comes next; MERGE_ENDED. */
uint64_t merge_at(const struct merge *m);

/* One block: 1 and *@out; 2: all that was known of it is forgotten; 0 at the end; negative errno of merge->failed. */
int merge_step(struct merge *m, struct ralt_record *out);

/* The next block of which something is alive: 1 and *@out; 0 at the end; negative errno. */
int merge_next(struct merge *m, struct ralt_record *out);

#endif
