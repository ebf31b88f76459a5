// SPDX-License-Identifier: GPL-2.0
/*
 * Reading from a pack: the segments that a block needs, each checked by its
 * CRC before it is decoded, and not one more. What a CRC does not cover is
 * not looked at, so a damaged tail of a cluster harms only the blocks in it.
 */
#include <linux/crc32c.h>
#include <linux/errno.h>
#include <linux/string.h>
#include "pack_tables.h"

/* The segments of one cluster, as its index describes them. */
struct segments {
	const void *index;
	u32 crc_table, length_table;	/* of the index */
	u32 cell;			/* of the cluster's first */
	u32 nr_slots;
	bool raw;
};

static void segments_init(struct segments *s, const void *index,
			  const struct tr_pack_where *where)
{
	const struct terrace_pack_disk *disk = index;
	struct pack_tables t;

	pack_tables(&t, le16_to_cpu(disk->nr_blocks), disk->shift);
	s->index = index;
	s->crc_table = t.crc;
	s->length_table = t.length;
	s->cell = where->cluster * pack_segments(disk->shift);
	s->nr_slots = where->nr_slots;
	s->raw = where->raw;
}

/* What segment @k holds when decoded, in bytes from the cluster's start. */
static u32 decoded_from(const struct segments *s, u32 k)
{
	return segment_from(k, s->nr_slots) * TERRACE_BLOCK_BYTES;
}

static u32 stored_bytes(const struct segments *s, u32 k)
{
	if (s->raw)
		return decoded_from(s, k + 1) - decoded_from(s, k);
	return table_u16(s->index, s->length_table, s->cell + k);
}

static bool bytes_good(const struct segments *s, u32 k, const u8 *stored, u32 bytes)
{
	return crc32c(~0u, stored, bytes) == table_u32(s->index, s->crc_table, s->cell + k);
}

static bool segment_good(const struct segments *s, u32 k, const u8 *stored)
{
	return bytes_good(s, k, stored, stored_bytes(s, k));
}

int tr_pack_check(const void *index, const struct tr_pack_where *where, const void *stored)
{
	const u8 *at = stored;
	struct segments s;
	u32 k;

	segments_init(&s, index, where);
	for (k = where->first; k <= where->last; k++) {
		if (!segment_good(&s, k, at))
			return -EBADMSG;
		at += stored_bytes(&s, k);
	}
	return 0;
}

/* A cluster of one block: one segment, and where->length is what is stored of it. */
static int decode_single(const struct segments *s, const struct tr_pack_where *where,
			 const void *stored, void *block, const struct tr_codec_ops *ops, void *context)
{
	if (!bytes_good(s, 0, stored, where->length))
		return -EBADMSG;
	if (!s->raw)
		return ops->decompress(context, stored, where->length, block, 0,
				       TERRACE_BLOCK_BYTES, true);
	memcpy(block, stored, TERRACE_BLOCK_BYTES);
	return 0;
}

int tr_pack_decode(const void *index, const struct tr_pack_where *where, const void *stored,
		   void *cluster, const struct tr_codec_ops *ops, void *context)
{
	const u8 *at = stored;
	struct segments s;
	u32 k, from, bytes;
	int err;

	segments_init(&s, index, where);
	if (where->nr_slots == 1)
		return decode_single(&s, where, stored, cluster, ops, context);
	for (k = where->first; k <= where->last; k++) {
		if (!segment_good(&s, k, at))
			return -EBADMSG;
		from = decoded_from(&s, k);
		bytes = decoded_from(&s, k + 1) - from;
		if (s.raw) {
			memcpy((u8 *)cluster + from, at, bytes);
		} else {
			err = ops->decompress(context, at, stored_bytes(&s, k), cluster, from,
					      bytes, k + 1 == segments_of(s.nr_slots));
			if (err)
				return err;
		}
		at += stored_bytes(&s, k);
	}
	return 0;
}

void tr_pack_filled(const struct tr_pack_where *where, u32 *from, u32 *to)
{
	*from = segment_from(where->first, where->nr_slots);
	*to = segment_from(where->last + 1, where->nr_slots);
}

u32 tr_pack_raw_offset(const struct tr_pack_where *where)
{
	return (where->slot - segment_from(where->first, where->nr_slots)) * TERRACE_BLOCK_BYTES;
}
