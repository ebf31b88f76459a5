/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * terracectl repair, in the order in which it runs:
 *   repair.c          the command line, the order of it
 *   rebuild*.c        where each block is, and how sure that is
 *   repair_report.c   what is lost, kept, newer: in ranges of blocks
 *   repair_write.c    the new metadata, on a new device or in place
 */
#ifndef TERRACE_CTL_REPAIR_H
#define TERRACE_CTL_REPAIR_H

#include "area.h"

struct repair {
	struct volume vol;
	struct findings findings;	/* what is wrong, on stderr */
	struct tr_super super;		/* in use, or made up from the labels */
	bool made_up, was_borrowed;
	struct tr_super borrowed;
	struct rebuild rb;
	struct rebuild map;		/* --from-shelves: to compare with, if there is one */
	const char *to;
	bool in_place, from_shelves, accept_older, force, dry_run, json;
	u64 size_blocks, limit;

	u64 printed, lost, dropped;
	u64 newer, only_map, only_shelves;
	struct json_object *ranges;
};

/* The superblock that the labels allow to make up; with tiers missing the size must
 * have been given. 0 or -errno after a message.
 */
int repair_make_super(struct repair *rp);

/* Prints or collects the ranges; fills in the counts. */
void repair_report(struct repair *rp);
void repair_print_summary(const struct repair *rp, u64 kept, bool written);

/* From shelves, with no map that says what they lack. */
bool repair_blind(const struct repair *rp);

/* Is a block of this state and source kept mapped? */
bool repair_keeps(const struct repair *rp, u64 at);

/* 0 or -errno after a message. *@kept: blocks that are mapped now. */
int repair_write(struct repair *rp, u64 *kept);

#endif
