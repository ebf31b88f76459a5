/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loose blocks: what was streamed, or came while the fast tier was full, lies on the shelves as it
 * was written.  It is packed when that disturbs nobody, for it saves only room: on an idle volume; and
 * under load once the slow tier is filling up.  A region with a few of them is left: its packs would
 * be written anew for little.
 *
 * Blocks that were overwritten one by one lie all over the shelves, and who reads them in order waits
 * for the head of a disk between them.  Such a region is written in one piece on an idle volume, by the
 * same order, even if it does not shrink.
 */
#ifndef DECIDE_LOOSE_H
#define DECIDE_LOOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "decide/tunable.h"

struct loose_tunables {
	uint32_t least;
	double full;
	double quiet_seconds;
	double scattered;
};

extern const struct tunable_table loose_tunable_table;

/* Is it time to pack?  The slow tier has @used of @total blocks in use. */
bool loose_turn(const struct loose_tunables *t, bool idle, uint64_t used, uint64_t total);

/*
 * Is a region with @loose such blocks worth it, used @quiet seconds ago?  @known: loose blocks it had when
 * a sample of them did not shrink, 0: never; new ones may.
 */
bool loose_worth(const struct loose_tunables *t, uint32_t loose, uint32_t known, double quiet);

/*
 * Is a region with @loose such blocks in @runs runs scattered, on a drive whose head takes @seek_ns to
 * another place, and @block_ns to read a block?
 */
bool loose_scattered(const struct loose_tunables *t, uint32_t loose, uint32_t runs, double seek_ns, double block_ns);

#endif
