/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which blocks of a pack's clusters come first.  A cluster is read and decoded up to the block that is wanted
 * (kmod/unpack.c), so the warmest belong at its beginning: the `warm` mask of a move order.
 */
#ifndef DECIDE_WARMEST_H
#define DECIDE_WARMEST_H

#include "decide/upmask.h"

/*
 * Of each @cluster of the blocks in @packed, by number as the kernel fills them, those of the highest of their
 * @level; none where all have the same.
 */
void warmest(struct upmask *warm, const struct upmask *packed, const int8_t level[REGION_BLOCKS], uint32_t cluster);

#endif
