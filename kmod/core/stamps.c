// SPDX-License-Identifier: GPL-2.0
/*
 * What labels together know of each device's last activation; kmod/stamp.c says why
 * and when they are written.
 */
#include <linux/minmax.h>
#include "format.h"

u32 tr_stamp_slot(const struct tr_label *label)
{
	return min_t(u32, label->tier_index, TERRACE_MAX_TIERS);
}

void tr_stamps_add(struct tr_stamps *stamps, const struct tr_label *label)
{
	u32 i;

	stamps->most = max(stamps->most, label->stamp);
	for (i = 0; i < TR_STAMPS; i++) {
		stamps->last[i] = max(stamps->last[i], label->stamps[i]);
		stamps->most = max(stamps->most, label->stamps[i]);
	}
}

/* None at all: it is new, or whoever wrote the label did not know of stamps. */
bool tr_stamp_is_old(const struct tr_stamps *stamps, const struct tr_label *label)
{
	return label->stamp && label->stamp < stamps->last[tr_stamp_slot(label)];
}
