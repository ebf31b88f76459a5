// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Marks of volumes that are being made. See unfinished.h.
 */
#include <stdlib.h>
#include <string.h>
#include <asm/byteorder.h>

#include "ctl.h"
#include "unfinished.h"
#include "volume.h"

#define MAGIC	0x1a454b414d525254ull	/* "TRRMAKE" and 0x1a */

struct mark {
	__le64 magic;
	__le32 version;
	__le32 crc;
	__le32 nr;
	u8 unused[12];
	u8 tier_uuid[VOLUME_MAX_DEVICES][TERRACE_UUID_BYTES];
};

static u32 mark_crc(const void *block)
{
	return tr_block_crc(block, TERRACE_BLOCK_BYTES, offsetof(struct mark, crc));
}

int unfinished_mark(const struct device *dev, const struct tr_label *label, u32 nr)
{
	struct mark *mark = ctl_alloc_blocks(1);
	int r;

	mark->magic = __cpu_to_le64(MAGIC);
	mark->version = __cpu_to_le32(1);
	mark->nr = __cpu_to_le32(nr);
	for (u32 i = 0; i < nr; i++)
		memcpy(mark->tier_uuid[i], label[i].tier_uuid, TERRACE_UUID_BYTES);
	mark->crc = __cpu_to_le32(mark_crc(mark));
	r = device_write(dev, 0, 1, mark);
	free(mark);
	return r ? r : device_flush(dev);
}

static bool read_mark(const struct device *dev, struct mark *mark)
{
	return dev->fd >= 0 && !device_read(dev, 0, 1, mark) &&
	       __le64_to_cpu(mark->magic) == MAGIC && __le32_to_cpu(mark->crc) == mark_crc(mark) &&
	       __le32_to_cpu(mark->nr) <= VOLUME_MAX_DEVICES;
}

static bool names(const struct mark *mark, const u8 *tier_uuid)
{
	for (u32 i = 0; i < __le32_to_cpu(mark->nr); i++)
		if (!memcmp(mark->tier_uuid[i], tier_uuid, TERRACE_UUID_BYTES))
			return true;
	return false;
}

bool unfinished_device(const struct device *dev, const struct device *all, u32 nr)
{
	void *block = ctl_alloc_blocks(1);
	bool is = read_mark(dev, block), labelled = false;
	struct tr_label label;

	for (u32 copy = 0; copy < TERRACE_LABEL_COPIES && !is && !labelled; copy++)
		labelled = !device_read(dev, copy, 1, block) && !tr_label_decode(&label, block);
	for (u32 i = 0; i < nr && labelled && !is; i++)
		is = read_mark(&all[i], block) && names(block, label.tier_uuid);
	free(block);
	return is;
}
