// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How many tiers there should be only the superblock says, so the device that
 * has it must be there first. See complete.h.
 */
#include <stdlib.h>

#include "complete.h"
#include "device.h"

/* The newer of the two copies; 0 tiers: neither is good. */
static u32 nr_tiers(const struct found_device *holder)
{
	struct tr_super super;
	struct device dev;
	u64 newest = 0;
	u32 nr = 0;
	void *block;

	if (device_open(&dev, holder->path, DEVICE_SHARED))
		return 0;
	block = ctl_alloc_blocks(1);
	for (u32 k = 0; k < 2; k++) {
		if (device_read(&dev, holder->label.meta_start + k, 1, block) ||
		    tr_super_decode(&super, block) || super.generation < newest)
			continue;
		newest = super.generation;
		nr = super.nr_tiers;
	}
	free(block);
	device_close(&dev);
	return nr;
}

static bool has_tier(const struct found_volume *v, u32 tier)
{
	for (u32 i = 0; i < v->nr_devices; i++)
		if (v->device[i].label.tier_index == tier)
			return true;
	return false;
}

char *volume_lacks(const struct found_volume *v)
{
	const struct found_device *holder = found_holder(v, TERRACE_LABEL_META);
	u32 nr;

	if (!holder)
		return ctl_text("the device that has the metadata");
	nr = nr_tiers(holder);
	for (u32 t = 0; t < nr; t++)
		if (!has_tier(v, t))
			return ctl_text("tier %u", t);
	return NULL;
}
