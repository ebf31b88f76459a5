// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Marks of devices that are being restored. See restore_mark.h.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <asm/byteorder.h>

#include "ctl.h"
#include "restore_mark.h"

#define MAGIC	0x1a5453524d525254ull	/* "TRRMRST" and 0x1a */

/* All in the first sector: on a drive that holds zeros a torn one is whole, or none. */
struct mark {
	__le64 magic;
	__le32 version;
	__le32 crc;
	u8 volume_uuid[TERRACE_UUID_BYTES];
	u8 tier_uuid[TERRACE_UUID_BYTES];
	struct {
		__le64 start, blocks;
	} data[TERRACE_LABEL_COPIES];
};

static u32 mark_crc(const void *block)
{
	return tr_block_crc(block, TERRACE_BLOCK_BYTES, offsetof(struct mark, crc));
}

static void mark_encode(void *block, const struct restore_mark *from)
{
	struct mark *mark = block;

	memset(block, 0, TERRACE_BLOCK_BYTES);
	mark->magic = __cpu_to_le64(MAGIC);
	mark->version = __cpu_to_le32(1);
	memcpy(mark->volume_uuid, from->volume_uuid, TERRACE_UUID_BYTES);
	memcpy(mark->tier_uuid, from->tier_uuid, TERRACE_UUID_BYTES);
	for (u32 i = 0; i < TERRACE_LABEL_COPIES; i++) {
		mark->data[i].start = __cpu_to_le64(from->data_start[i]);
		mark->data[i].blocks = __cpu_to_le64(from->data_blocks[i]);
	}
	mark->crc = __cpu_to_le32(mark_crc(block));
}

bool restore_mark_decode(struct restore_mark *to, const void *block)
{
	const struct mark *mark = block;

	if (__le64_to_cpu(mark->magic) != MAGIC || __le32_to_cpu(mark->crc) != mark_crc(block) ||
	    __le32_to_cpu(mark->version) != 1)
		return false;
	memcpy(to->volume_uuid, mark->volume_uuid, TERRACE_UUID_BYTES);
	memcpy(to->tier_uuid, mark->tier_uuid, TERRACE_UUID_BYTES);
	for (u32 i = 0; i < TERRACE_LABEL_COPIES; i++) {
		to->data_start[i] = __le64_to_cpu(mark->data[i].start);
		to->data_blocks[i] = __le64_to_cpu(mark->data[i].blocks);
	}
	return true;
}

bool restore_mark_read(const struct device *dev, struct restore_mark *mark)
{
	void *block = ctl_alloc_blocks(1);
	bool is = false;

	for (u32 i = 0; i < TERRACE_LABEL_COPIES && !is; i++)
		is = !device_read(dev, i, 1, block) && restore_mark_decode(mark, block);
	free(block);
	return is;
}

/* A label of another tier is one that --force gives up: where its data were does not matter. */
static bool label_of(const struct device *dev, u32 copy, const u8 *tier_uuid, struct tr_label *label)
{
	void *block = ctl_alloc_blocks(1);
	bool is = !device_read(dev, copy, 1, block) && !tr_label_decode(label, block) &&
		  !memcmp(label->tier_uuid, tier_uuid, TERRACE_UUID_BYTES);

	free(block);
	return is;
}

static void mark_make(const struct device *dev, const struct tr_label *want, struct restore_mark *mark)
{
	struct tr_label label;

	memset(mark, 0, sizeof(*mark));
	memcpy(mark->volume_uuid, want->volume_uuid, TERRACE_UUID_BYTES);
	memcpy(mark->tier_uuid, want->tier_uuid, TERRACE_UUID_BYTES);
	for (u32 i = 0; i < TERRACE_LABEL_COPIES; i++) {
		if (!label_of(dev, i, want->tier_uuid, &label))
			continue;
		mark->data_start[i] = label.data_start;
		mark->data_blocks[i] = label.data_blocks;
	}
}

/* What is lost last: a label before a mark, of two labels the newer. 0: neither is there. */
static u64 worth(const struct device *dev, u32 copy, const u8 *tier_uuid)
{
	void *block = ctl_alloc_blocks(1);
	struct restore_mark mark;
	struct tr_label label;
	u64 is = !device_read(dev, copy, 1, block) && restore_mark_decode(&mark, block) &&
		 !memcmp(mark.tier_uuid, tier_uuid, TERRACE_UUID_BYTES);

	if (label_of(dev, copy, tier_uuid, &label))
		is = label.generation < ~0ull - 2 ? label.generation + 2 : ~0ull;
	free(block);
	return is;
}

/* A mark that is there already says what the labels said before the first call: it is kept. */
int restore_mark_write(const struct device *dev, const struct tr_label *want)
{
	u32 first = worth(dev, 0, want->tier_uuid) >= worth(dev, 1, want->tier_uuid) ? 1 : 0;
	void *block = ctl_alloc_blocks(1);
	struct restore_mark mark;
	int r = 0;

	if (!restore_mark_read(dev, &mark) || memcmp(mark.tier_uuid, want->tier_uuid, TERRACE_UUID_BYTES))
		mark_make(dev, want, &mark);
	mark_encode(block, &mark);
	for (u32 i = 0; i < TERRACE_LABEL_COPIES && !r; i++) {
		r = device_write(dev, i ? !first : first, 1, block);
		if (!r)
			r = device_flush(dev);
	}
	free(block);
	return r;
}
