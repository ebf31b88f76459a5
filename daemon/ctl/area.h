/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writing the metadata of a whole volume anew, from a table of blocks: pages
 * and directories bottom-up, meta bitmaps, superblocks last. Pages only go to
 * meta blocks that rebuild->avoid leaves, so that until the first superblock
 * is durable what was there is still there, if the area is in use.
 */
#ifndef TERRACE_CTL_AREA_H
#define TERRACE_CTL_AREA_H

#include "rebuild.h"

struct area {
	const struct rebuild *rb;
	struct tr_super super;		/* sizes and areas come in; roots and counts are filled in */
	const struct device *dev[2];	/* one or both copies */
	u64 start[2];
	u32 nr_devices;
	bool (*keep)(void *ctx, u64 at);	/* which blocks stay mapped */
	int (*ready)(void *ctx);		/* all but the superblocks is there; may be NULL */
	void *ctx;

	u64 *used;			/* meta blocks */
	u64 next;
	u64 pages, mapped;
	int error;
};

/*
 * Writes both superblocks: super.generation and the one after it. 0 or
 * -errno; -ENOSPC: no room, and the area is as it was.
 */
int area_write(struct area *area);


#endif
