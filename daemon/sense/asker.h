/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files are opened by their inode and asked where they lie.  A filesystem lets who asks wait for who writes, xfs for
 * seconds: of files that are being written a thread asks, and nobody waits for it for long.
 */
#ifndef TERRACE_SENSE_ASKER_H
#define TERRACE_SENSE_ASKER_H

#include "sense/extents.h"
#include "sense/files.h"
#include "sense/mounts.h"

#define ASKER_EXTENTS	256	/* of a file; what it has beyond them is left alone */
#define ASKER_QUESTIONS	16	/* under way */

struct asker;

struct asker_answer {
	struct file_id id;
	struct stack stack;	/* as its filesystem lay when that was asked */
	uint32_t nr;		/* 0: it cannot be asked */
	struct extent extent[ASKER_EXTENTS];
	struct extents_stats stats;
};

/* A descriptor, for this moment only: it would keep the filesystem from being unmounted.  Or negative. */
int asker_open_inode(const struct mount *m, const struct file_id *id);

/* 0 or -errno */
int asker_open(struct asker **out);
/* A question under way ends by itself. */
void asker_close(struct asker *a);
/* False: too many are under way. */
bool asker_ask(struct asker *a, const struct mount *m, const struct file_id *id);
/* The next answer; waits for it until @until_ns (CLOCK_MONOTONIC) if there is a question.  False: none yet. */
bool asker_hear(struct asker *a, uint64_t until_ns, struct asker_answer *out);

#endif
