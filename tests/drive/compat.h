/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between the kernels the model runs on: how a target tells the
 * block layer that it rotates and how much it discards at a time.
 *
 * Since 6.11 these are queue limits. Before, device-mapper derived
 * "rotational" from the devices below; the model has none, so it sets the
 * queue's flag itself, at resume, after device-mapper has computed its own.
 */
#ifndef DRIVE_COMPAT_H
#define DRIVE_COMPAT_H

#include <linux/blkdev.h>
#include <linux/device-mapper.h>

#ifdef BLK_FEAT_ROTATIONAL

static inline void compat_limits(struct queue_limits *limits, bool rotational,
				 unsigned int discard_sectors)
{
	limits->max_hw_discard_sectors = discard_sectors;
	if (rotational)
		limits->features |= BLK_FEAT_ROTATIONAL;
}

static inline void compat_rotational(struct dm_target *ti, bool rotational)
{
}

#else

static inline void compat_limits(struct queue_limits *limits, bool rotational,
				 unsigned int discard_sectors)
{
	limits->max_discard_sectors = discard_sectors;
	limits->max_hw_discard_sectors = discard_sectors;
}

static inline void compat_rotational(struct dm_target *ti, bool rotational)
{
	struct mapped_device *md = dm_table_get_md(ti->table);

	if (rotational)
		blk_queue_flag_clear(QUEUE_FLAG_NONROT, dm_disk(md)->queue);
}

#endif
#endif
