/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files are opened by their inode and asked where they lie.  A filesystem lets who asks wait for who writes, xfs for
 * seconds, and one that hangs for ever: a thread asks, and nobody waits for it for long.
 *
 * Files that are being written come first: what is said of them is of use only while they are.
 */
#ifndef TERRACE_SENSE_ASKER_H
#define TERRACE_SENSE_ASKER_H

#include "sense/extents.h"
#include "sense/files.h"
#include "sense/mounts.h"

#define ASKER_URGENT	16u	/* questions under way, of files that are being written */
#define ASKER_PATIENT	64u	/* of others */
#define ASKER_PATH	256

struct asker;

struct asker_answer {
	struct file_id id;
	struct stack stack;	/* as its filesystem lay when that was asked */
	bool urgent;
	int err;		/* -ESTALE: there is no such file any more; others: it could not be asked */
	uint32_t nr;
	struct extent *extent;	/* whoever hears this frees it */
	char path[ASKER_PATH];	/* where it was; "": not known */
	struct extents_stats stats;
};

/* 0 or -errno */
int asker_open(struct asker **out);
/* A question under way ends by itself. */
void asker_close(struct asker *a);
/* False: too many are under way. */
bool asker_ask(struct asker *a, const struct mount *m, const struct file_id *id, bool urgent);
/* The next answer; waits for it until @until_ns (CLOCK_MONOTONIC) if there is a question.  False: none yet. */
bool asker_hear(struct asker *a, uint64_t until_ns, struct asker_answer *out);

#endif
