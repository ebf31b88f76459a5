/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Watermarks of the fast tier: when to demote and when to hold writers back.
 *
 * Demotion starts at the high mark (98 %) and goes on to the low one (95 %): the
 * gap keeps it from flickering.  Writers are throttled only above the high mark,
 * in proportion to how much of the last room is gone, so that room made by
 * demotion and room taken by writes meet before the tier is full.
 */
#ifndef DECIDE_WATERMARK_H
#define DECIDE_WATERMARK_H

#include <stdbool.h>
#include <stdint.h>

#include "decide/tunable.h"

struct watermark_tunables {
	double high;
	double low;
};

extern const struct tunable_table watermark_tunable_table;

struct watermark {
	bool demoting;
};

struct watermark_verdict {
	uint64_t demote_blocks;	/* to get back to the low mark; 0 = leave it */
	double throttle;	/* 0 = free, 1 = stopped */
	uint64_t room_blocks;	/* promotions that fit without starting a demotion */
};

/* -EINVAL unless low < high. */
int watermark_check(const struct watermark_tunables *t);

struct watermark_verdict watermark_step(struct watermark *w,
					const struct watermark_tunables *t,
					uint64_t used_blocks, uint64_t total_blocks);

#endif
