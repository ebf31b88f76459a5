/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The mark of a device that is being restored. It stands in the places of both
 * label copies while the metadata are written, says which tier of which volume
 * the device is, and where the labels before said that its data are. Unlike that
 * of unfinished.h it says nothing about worth: the data areas hold what they held.
 */
#ifndef TERRACE_CTL_RESTORE_MARK_H
#define TERRACE_CTL_RESTORE_MARK_H

#include "core/format.h"
#include "device.h"

struct restore_mark {
	u8 volume_uuid[TERRACE_UUID_BYTES], tier_uuid[TERRACE_UUID_BYTES];
	u64 data_start[TERRACE_LABEL_COPIES], data_blocks[TERRACE_LABEL_COPIES];	/* 0: no label, no data known */
};

bool restore_mark_decode(struct restore_mark *mark, const void *block);

/* That of @dev, if it has one. */
bool restore_mark_read(const struct device *dev, struct restore_mark *mark);

/*
 * Makes the device one of tier @want in both places, and flushes. At no time is neither a
 * mark nor a label of this tier there, if there was one. 0 or -errno.
 */
int restore_mark_write(const struct device *dev, const struct tr_label *want);

#endif
