/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What dead files leave behind: until the filesystem has committed their deletion, no order promotes
 * or keeps their blocks (DEAD); then their ranges are trimmed, so that all tiers free them at once.
 *
 * The trim is the filesystem's own FITRIM, which touches free space only: a range that has been
 * reused, or was never right, is left out by who knows.  syncfs and FITRIM may take long, so a
 * thread of its own does them, a batch at a time.
 */
#ifndef TERRACE_ACT_INVALIDATE_H
#define TERRACE_ACT_INVALIDATE_H

#include <stddef.h>

#include "port.h"

#define INVALIDATE_PATH	256

struct invalidate;

struct dead_range {
	uint64_t block, nr;	/* of the volume */
	uint64_t physical;	/* bytes, in the filesystem's device */
	bool unsure;		/* part of it may be another's: not marked, and trimmed where it is free */
	bool unmarked;		/* the kernel's marks are few: not for this one */
};

struct invalidate_counts {
	uint64_t queued, full;		/* ranges taken; refused, the queue being full */
	uint64_t asked_bytes, trimmed_bytes;
	uint64_t beside_bytes;		/* trimmed without being asked for: free extents that overlap */
	uint64_t again, left;		/* ranges not free yet: tried again; given up */
	uint64_t batches, trims, errors;
	uint64_t unbanned;		/* ranges for which there was no room among the kernel's marks */
	int last_error;
};

struct invalidate_config {
	bool ban, trim;		/* each use has its switch */
	uint32_t wait_ms;	/* from death to the trim: more comes together */
	/* The kernel has marked a range, or its mark has been taken back; from invalidate_add() and invalidate_tick(). */
	void (*banned)(void *ctx, uint64_t block, uint64_t nr, bool yes);
	void *ctx;
};

int invalidate_open(struct port *port, const struct invalidate_config *c, struct invalidate **out);
/* What is queued is left to the filesystem.  A trim under way ends by itself; no other follows. */
void invalidate_close(struct invalidate *i);

/* Other switches, from the next dead range on. */
void invalidate_retune(struct invalidate *i, const struct invalidate_config *c);

/* Ranges of the filesystem @dev mounted at @path. */
void invalidate_add(struct invalidate *i, const char *path, uint32_t dev, const struct dead_range *r,
		    uint32_t nr);

/* Takes back the marks of what has been trimmed; to be called every tick. */
void invalidate_tick(struct invalidate *i);

/* Takes back all marks that are out: their blocks are others' by now.  What they were set for is trimmed all the same. */
void invalidate_unmark(struct invalidate *i);

void invalidate_counts(struct invalidate *i, struct invalidate_counts *out);

#endif
