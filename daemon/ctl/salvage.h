/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * terracectl salvage:
 *   salvage.c        the command line, the order of it, the report
 *   salvage_copy.c   reading blocks and writing them out
 *   salvage_unpack.c the same, from packs
 */
#ifndef TERRACE_CTL_SALVAGE_H
#define TERRACE_CTL_SALVAGE_H

#include "pack_codec.h"
#include "rebuild_packs.h"

struct salvage {
	struct volume vol;
	struct findings findings;	/* on stderr */
	struct tr_super borrowed;
	struct rebuild rb;
	const char *to, *map_path;
	bool older, doubtful, from_shelves, force, dry_run, json;
	u64 limit;

	struct device out;		/* fd -1: --dry-run */
	u64 done, total;
	u64 count[RB_NR_STATES];
	u64 unreadable, missing, printed;
	struct json_object *ranges;
};

/* May the map be written there? CTL_OK, or CTL_PROBLEM after a message. */
int salvage_refuse_map(const struct salvage *s);
/* Opens and checks what is written to; CTL_OK, or CTL_PROBLEM after a message. */
int salvage_open_out(struct salvage *s);

/* Reads and writes all; calls salvage_range() for each range. 0 or -errno after
 * a message: what is written to failed.
 */
int salvage_copy(struct salvage *s);

/* @why NULL: where it comes from is told by @at. */
void salvage_range(struct salvage *s, u64 block, u64 nr, u64 at, const char *why);

/* One pack at a time, with what decodes it. */
struct unpack {
	const struct rebuild *rb;
	struct pack_codec *codec;
	u64 region;
	u32 number;		/* 0: none is open */
	struct rb_run run;
	int error;		/* … and this is why not */
	u64 cluster[16 * TERRACE_BLOCK_BYTES / 8];
};

/* Block @i of a region from its pack: NULL, or why not. */
const char *unpack_block(struct unpack *u, u64 region, u32 number, u32 i, void *data);
void unpack_end(struct unpack *u);

#endif
