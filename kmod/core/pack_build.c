// SPDX-License-Identifier: GPL-2.0
/*
 * Building a pack: clusters in, the image of the whole run out, in one pass.
 * The compressor writes straight into the image, with just less room than the
 * cluster is long: what does not fit is stored raw, by one copy, and the
 * compressor has stopped as early as it could tell.
 */
#include <linux/bitops.h>
#include <linux/crc32c.h>
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include "format.h"
#include "pack_tables.h"

#define MAX_STORED	0xffffu		/* of a segment that is not raw */

static bool head_ok(const struct tr_pack_head *head)
{
	return head->id && head->place < TERRACE_NO_PLACE && head->nr_blocks &&
	       head->nr_blocks <= TERRACE_REGION_BLOCKS && head->codec <= TERRACE_CODEC_ZSTD &&
	       (head->shift == 0 || head->shift == 2 || head->shift == 4) &&
	       head->region < TR_MAX_BLOCKS >> TERRACE_REGION_SHIFT;
}

int tr_pack_start(struct tr_pack_build *build, void *image, u32 image_bytes, const u8 *uuid)
{
	struct tr_pack_head *head = &build->head;
	struct terrace_pack_disk *disk = image;

	if (!head_ok(head))
		return -EINVAL;
	head->bytes = tr_pack_header_bytes(head->nr_blocks, head->shift);
	head->payload_bytes = 0;
	head->blocks = 0;
	head->nr_clusters = 0;
	build->image = image;
	build->image_bytes = image_bytes;
	build->payload_at = tr_pack_header_blocks(head->bytes) * TERRACE_BLOCK_BYTES;
	build->nr_slots = 0;
	build->nr_raw = 0;
	memset(build->slot, 0, sizeof(build->slot));
	if (build->payload_at > image_bytes)
		return -ENOSPC;

	memset(image, 0, build->payload_at);
	disk->magic = cpu_to_le32(TERRACE_PACK_MAGIC);
	memcpy(disk->volume_uuid, uuid, TERRACE_UUID_BYTES);
	disk->id = cpu_to_le64(head->id);
	disk->place = cpu_to_le64(head->place);
	disk->region = cpu_to_le64(head->region);
	disk->record_seq = cpu_to_le64(head->record_seq);
	disk->bytes = cpu_to_le32(head->bytes);
	disk->nr_blocks = cpu_to_le16(head->nr_blocks);
	disk->version = cpu_to_le16(TERRACE_PACK_VERSION);
	disk->codec = head->codec;
	disk->level = head->level;
	disk->shift = head->shift;
	return 0;
}

/* Gives the blocks of the next cluster their slots. */
static int take_slots(struct tr_pack_build *build, const u16 *block, u32 nr)
{
	struct terrace_pack_disk *disk = (void *)build->image;
	u32 k, i, w;

	for (k = 0; k < nr; k++) {
		i = block[k];
		if (i >= TERRACE_REGION_BLOCKS || build->slot[i])
			return -EINVAL;
		if (!build->head.shift) { /* slot = rank: none behind it is in yet */
			if (le64_to_cpu(disk->bitmap[i / 64]) >> (i % 64))
				return -EINVAL;
			for (w = i / 64 + 1; w < TERRACE_REGION_BLOCKS / 64; w++)
				if (disk->bitmap[w])
					return -EINVAL;
		}
		disk->bitmap[i / 64] |= cpu_to_le64(1ull << (i % 64));
		build->slot[i] = ++build->nr_slots;
	}
	return 0;
}

/* Compresses the cluster into the image. Returns its bytes, 0: does not shrink. */
static int compress_cluster(u8 *to, u32 nr, const void *data, const struct tr_codec_ops *ops,
			    void *context, u16 *length)
{
	u32 k, segments = segments_of(nr), room = nr * TERRACE_BLOCK_BYTES - 1;
	u32 used = 0, fits;
	int got;

	for (k = 0; k < segments; k++) {
		u32 from = segment_from(k, nr), end = segment_from(k + 1, nr);

		fits = min(room - used, MAX_STORED);
		if (!fits)
			return 0;
		got = ops->compress(context, data, from * TERRACE_BLOCK_BYTES,
				    (end - from) * TERRACE_BLOCK_BYTES, k == segments - 1,
				    to + used, fits);
		if (got <= 0)
			return got;
		if ((u32)got > fits)
			return -EINVAL;
		length[k] = got;
		used += got;
	}
	return used;
}

static void put_cluster(struct tr_pack_build *build, u32 nr, const u16 *length, bool raw)
{
	struct tr_pack_head *head = &build->head;
	struct pack_tables t;
	const u8 *stored = build->image + build->payload_at + head->payload_bytes;
	u32 k, bytes, cell = head->nr_clusters * pack_segments(head->shift);
	__le32 *offsets, *crcs;
	__le16 *lengths;

	pack_tables(&t, head->nr_blocks, head->shift);
	offsets = (void *)(build->image + t.offset);
	crcs = (void *)(build->image + t.crc);
	lengths = (void *)(build->image + t.length);
	if (head->nr_clusters % TERRACE_PACK_GROUP == 0)
		offsets[head->nr_clusters / TERRACE_PACK_GROUP] = cpu_to_le32(head->payload_bytes);
	for (k = 0; k < segments_of(nr); k++) {
		bytes = raw ? (segment_from(k + 1, nr) - segment_from(k, nr)) *
			      TERRACE_BLOCK_BYTES : length[k];
		crcs[cell + k] = cpu_to_le32(crc32c(~0u, stored, bytes));
		lengths[cell + k] = cpu_to_le16(raw ? 0 : bytes);
		stored += bytes;
		head->payload_bytes += bytes;
	}
	head->nr_clusters++;
	build->nr_raw += raw;
}

int tr_pack_add(struct tr_pack_build *build, const u16 *block, u32 nr, const void *data,
		const struct tr_codec_ops *ops, void *context)
{
	struct tr_pack_head *head = &build->head;
	u16 length[TERRACE_PACK_MAX_SEGMENTS];
	u8 *to = build->image + build->payload_at + head->payload_bytes;
	int err, used = 0;

	if (build->nr_slots >= head->nr_blocks ||
	    nr != cluster_blocks(head->nr_blocks, head->shift, head->nr_clusters))
		return -EINVAL;
	/* The room for raw data first: what compresses needs less. */
	if (nr * TERRACE_BLOCK_BYTES > build->image_bytes - build->payload_at - head->payload_bytes)
		return -ENOSPC;
	err = take_slots(build, block, nr);
	if (err)
		return err;
	if (head->codec != TERRACE_CODEC_NONE) {
		used = compress_cluster(to, nr, data, ops, context, length);
		if (used < 0)
			return used;
	}
	if (!used)
		memcpy(to, data, nr * TERRACE_BLOCK_BYTES);
	put_cluster(build, nr, length, !used);
	return 0;
}

/* The slots of a pack whose clusters hold more than one block. */
static void put_slots(struct tr_pack_build *build)
{
	struct pack_tables t;
	__le16 *slots;
	u32 i, rank = 0;

	pack_tables(&t, build->head.nr_blocks, build->head.shift);
	slots = (void *)(build->image + t.slot);
	for (i = 0; i < TERRACE_REGION_BLOCKS; i++)
		if (build->slot[i])
			slots[rank++] = cpu_to_le16(build->slot[i] - 1);
}

int tr_pack_finish(struct tr_pack_build *build, u32 align_blocks, u32 *header_crc)
{
	struct terrace_pack_disk *disk = (void *)build->image;
	struct tr_pack_head *head = &build->head;
	u32 end = build->payload_at + head->payload_bytes, blocks;

	if (build->nr_slots != head->nr_blocks || !align_blocks)
		return -EINVAL;
	blocks = (end + TERRACE_BLOCK_BYTES - 1) / TERRACE_BLOCK_BYTES;
	blocks = (blocks + align_blocks - 1) / align_blocks * align_blocks;
	if (blocks > TERRACE_PACK_MAX_BLOCKS || blocks > build->image_bytes / TERRACE_BLOCK_BYTES)
		return -ENOSPC;
	memset(build->image + end, 0, blocks * TERRACE_BLOCK_BYTES - end);
	if (head->shift)
		put_slots(build);
	head->blocks = blocks;
	disk->payload_bytes = cpu_to_le32(head->payload_bytes);
	disk->blocks = cpu_to_le16(blocks);
	disk->nr_clusters = cpu_to_le16(head->nr_clusters);
	tr_pack_place(build, head->place, header_crc);
	return 0;
}

void tr_pack_place(struct tr_pack_build *build, u64 place, u32 *header_crc)
{
	struct terrace_pack_disk *disk = (void *)build->image;

	build->head.place = place;
	disk->place = cpu_to_le64(place);
	disk->crc = 0;
	*header_crc = tr_block_crc(disk, build->head.bytes,
				   offsetof(struct terrace_pack_disk, crc));
	disk->crc = cpu_to_le32(*header_crc);
}
