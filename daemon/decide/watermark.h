/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Watermarks of the fast tier: when to demote and how far.
 *
 * Demotion starts at the high mark (98 %) and goes on to the low one (95 %): the
 * gap keeps it from flickering.  Writers are held back by the kernel, which does so above a
 * mark of its own (janitor_high, 98 % as well) and only where shelves run short, too.
 */
#ifndef DECIDE_WATERMARK_H
#define DECIDE_WATERMARK_H

#include <stdbool.h>
#include <stdint.h>

#include "decide/tunable.h"

struct watermark_tunables {
	double high;
	double low;
	double heirs_share;
	uint32_t vain_ticks;
};

extern const struct tunable_table watermark_tunable_table;

struct watermark {
	bool demoting;
};

struct watermark_verdict {
	uint64_t demote_blocks;	/* to get back to the low mark; 0 = leave it */
	uint64_t room_blocks;	/* promotions that fit without starting a demotion */
};

/* -EINVAL unless low < high. */
int watermark_check(const struct watermark_tunables *t);

struct watermark_verdict watermark_step(struct watermark *w,
					const struct watermark_tunables *t,
					uint64_t used_blocks, uint64_t total_blocks);

#endif
