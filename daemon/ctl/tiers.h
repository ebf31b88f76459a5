/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tiers of an active volume, as its folder in sysfs says.
 */
#ifndef TERRACE_CTL_TIERS_H
#define TERRACE_CTL_TIERS_H

#include "dm.h"

#define VOLUME_FOLDER "/sys/fs/terrace/dm-%u"

struct ctl_tier {
	u32 class, kind;
	u64 used_blocks, blocks, reserve_blocks, reads, writes, free_shelves;
	bool missing;
	bool avoided;		/* to be left: the tunable avoid_tiers */
};

/* How many there are; @tier has room for TERRACE_MAX_TIERS. */
u32 tiers_read(const struct dm_volume *v, struct ctl_tier *tier);

/*
 * The tier that @word names: its number, or its class if only one has it.
 * -EINVAL after a message that says which there are.
 */
int tiers_find(const struct dm_volume *v, const char *word, struct ctl_tier *tier);

#endif
