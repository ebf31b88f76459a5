/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which order takes which blocks of a region to a tier? For move and evacuate.
 */
#ifndef TERRACE_CTL_MOVE_H
#define TERRACE_CTL_MOVE_H

#include "orders.h"
#include "tiers.h"

struct move_target {
	u32 tier, kind;
	u32 slowest_slots;	/* tier: what is on slots already stays where it is */
	bool merge;		/* packs may lie on another tier: they go along */
	u8 codec, shift;
};

void move_target_init(struct move_target *target, u32 tier, const struct ctl_tier *tiers, u32 nr,
		      const struct terrace_hello *hello);

/* false: none of @want has to go. */
bool move_make(const struct move_target *target, const struct terrace_region *region,
	       const __u64 *want, struct terrace_move *move);

/* "none", "lz4", "zstd" for @target, or -EINVAL after a message. */
int move_set_codec(struct move_target *target, const struct terrace_hello *hello, const char *word);

#endif
