/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Packs: compressed blocks of one region in one run on a shelf. The layout is
 * in terrace_format.h, why it is so in Documentation/decisions/0003-packs.md.
 *
 *   pack_build.c   clusters in, the image of a run out
 *   pack_index.c   header bytes, checked; a block's cluster, offset, segments
 *   pack_decode.c  stored bytes in, CRC, decompression, blocks out
 *   pack_list.c    the packs of a region, and which blocks are live in them
 *
 * The index of a pack is its header as it stands on disk: the first
 * head.bytes bytes, in memory, in the copy on the fastest tier and at the
 * start of the run. tr_pack_parse() checks them once; from then on lookups
 * trust them. Buffers with headers are aligned to 8 bytes.
 *
 * Compression itself is the caller's: struct tr_codec_ops. Errors:
 *   -ENODATA, -EBADMSG, -EPROTONOSUPPORT, -EUCLEAN, -ESTALE as in format.h
 */
#ifndef TERRACE_CORE_PACK_H
#define TERRACE_CORE_PACK_H

#include "place.h"

struct tr_pack_head {
	u64 id;
	u64 place;
	u64 region;
	u64 record_seq;
	u32 bytes;		/* of the header, and of the index */
	u32 payload_bytes;
	u16 blocks;		/* of the run */
	u16 nr_blocks;		/* packed in it */
	u16 nr_clusters;
	u8 codec;		/* enum terrace_codec */
	u8 level;
	u8 shift;		/* blocks of a cluster, log2: 0, 2, 4 */
};

/* Bytes of the header of a pack of @nr_blocks (1 .. 1024) blocks. */
u32 tr_pack_header_bytes(u32 nr_blocks, u32 shift);

/* Blocks in front of the payload. */
static inline u32 tr_pack_header_blocks(u32 header_bytes)
{
	return (header_bytes + TERRACE_BLOCK_BYTES - 1) / TERRACE_BLOCK_BYTES;
}

/* Room in bytes for an image of @nr_blocks blocks, whatever they hold. */
u32 tr_pack_image_bytes(u32 nr_blocks, u32 shift);

/* --- codecs ---------------------------------------------------------------- */

/*
 * A cluster is compressed in segments, [@from, @from + @bytes) of @cluster
 * each, in order and without gaps; @from 0 begins a new cluster, @last ends
 * it. Segments may refer to the cluster's bytes before them. @context is the
 * caller's (and one thread's).
 *
 * @compress: returns the bytes it put at @to, at most @room; 0: it does not
 * fit (the cluster is then given up: its next call has @from 0); or an error.
 *
 * @decompress: @cluster holds the output of the segments before. Fills
 * [@from, @from + @bytes) exactly and returns 0, or -EBADMSG. Must be safe
 * with any input.
 */
struct tr_codec_ops {
	int (*compress)(void *context, const u8 *cluster, u32 from, u32 bytes, bool last,
			u8 *to, u32 room);
	int (*decompress)(void *context, const u8 *stored, u32 length, u8 *cluster, u32 from,
			  u32 bytes, bool last);
};

/* --- building -------------------------------------------------------------- */

struct tr_pack_build {
	struct tr_pack_head head;	/* id .. record_seq, nr_blocks, codec, level, shift: given */
	u8 *image;
	u32 image_bytes;
	u32 payload_at;
	u16 nr_slots;			/* filled so far */
	u16 nr_raw;			/* clusters that did not shrink */
	u16 slot[TERRACE_REGION_BLOCKS]; /* of each block, + 1; 0: not in the pack */
};

/*
 * Starts the image of a pack in @image (8-aligned; tr_pack_image_bytes() is
 * always enough). The caller has set build->head: id, place, region,
 * record_seq, nr_blocks, codec, level and shift. -EINVAL: one of them is not
 * possible; -ENOSPC: not even the header fits.
 */
int tr_pack_start(struct tr_pack_build *build, void *image, u32 image_bytes, const u8 *uuid);

/*
 * Adds the next cluster: @nr blocks, 1 << shift, or what is left for the last
 * one. @block are their numbers in the region, the warmest first, @data their
 * contents in that order. With shift 0 blocks must come in rising order.
 * Incompressible clusters (and all with codec NONE; @ops may then be NULL)
 * are stored raw, by one copy. -EINVAL: blocks that are not possible or in it
 * already; -ENOSPC: no room left in the image; or the callback's error. After
 * an error the image is not to be used.
 */
int tr_pack_add(struct tr_pack_build *build, const u16 *block, u32 nr, const void *data,
		const struct tr_codec_ops *ops, void *context);

/*
 * Seals the header. The run is build->head.blocks long, a multiple of
 * @align_blocks, and stands at the start of @image, padded with zeros.
 * -EINVAL: blocks are missing; -ENOSPC: no room for the padding.
 */
int tr_pack_finish(struct tr_pack_build *build, u32 align_blocks, u32 *header_crc);

/* Only now is it known how long the run is, hence where it fits: puts its
 * place into the finished image.
 */
void tr_pack_place(struct tr_pack_build *build, u64 place, u32 *header_crc);

/* --- the index ------------------------------------------------------------- */

/* What a header must be; NULL or zero fields are not compared (salvage). */
struct tr_pack_id {
	const u8 *volume_uuid;
	u64 id;
	u64 place;
	u64 region;
	u16 blocks;
	const u32 *header_crc;
};

/*
 * Decodes and checks the header in @buf of @bytes bytes, every number of it:
 * after 0 no lookup in it leads outside of it or of the run. -ENODATA,
 * -EBADMSG, -EPROTONOSUPPORT, -EUCLEAN; -ESTALE: a good header, but not that
 * of @id.
 */
int tr_pack_parse(const void *buf, u32 bytes, const struct tr_pack_id *id,
		  struct tr_pack_head *head);

/* The same fields once more, from bytes that were parsed. */
void tr_pack_head(const void *index, struct tr_pack_head *head);

/* Where a block is. Offsets in bytes from the start of the run. */
struct tr_pack_where {
	u32 offset;		/* of what must be read */
	u32 length;		/* of what must be read: the segments first .. last */
	u16 cluster;
	u8 slot;		/* of the block in its cluster */
	u8 nr_slots;		/* blocks of the cluster */
	u8 first, last;		/* segments; last alone if raw */
	bool raw;
};

/* Is block @i (of the region) in the pack? */
bool tr_pack_has(const void *index, u32 i);

/* Where block @i is; false: not in the pack. */
bool tr_pack_find(const void *index, u32 i, struct tr_pack_where *where);

/* The whole of @cluster < nr_clusters, all its segments. */
void tr_pack_cluster(const void *index, u32 cluster, struct tr_pack_where *where);

/* Its blocks, by slot; @block has room for 16. Returns how many. */
u32 tr_pack_members(const void *index, u32 cluster, u16 *block);

/* All blocks by slot (1024 u16): what cleaning and merging walk along. */
void tr_pack_order(const void *index, u16 *block);

/* --- reading --------------------------------------------------------------- */

/*
 * Checks and decodes what @where names: @stored holds its @where->length
 * bytes, @cluster has room for where->nr_slots blocks. Slots up to that of
 * the block (tr_pack_filled() of them) are then in @cluster at slot * 4096;
 * of a raw cluster only those of the last segment. -EBADMSG: a CRC is wrong,
 * or the bytes do not decode. @ops may be NULL if where->raw.
 */
int tr_pack_decode(const void *index, const struct tr_pack_where *where, const void *stored,
		   void *cluster, const struct tr_codec_ops *ops, void *context);

/* Only the CRCs of what @where names: scrub, and raw clusters read in place. */
int tr_pack_check(const void *index, const struct tr_pack_where *where, const void *stored);

/* Slots [*@from, *@to) are in the buffer after tr_pack_decode(). */
void tr_pack_filled(const struct tr_pack_where *where, u32 *from, u32 *to);

/* Where in @stored a raw block stands: no copy is needed to use it. */
u32 tr_pack_raw_offset(const struct tr_pack_where *where);

#endif
