/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the tests of packs share: contents of every kind, and a pack built from them. */
#ifndef TESTS_PACK_LIB_H
#define TESTS_PACK_LIB_H

#include "core_lib.h"
#include "pack.h"
#include "pack_codec.h"

#define BLOCKS	TERRACE_REGION_BLOCKS
#define BYTES	TERRACE_BLOCK_BYTES
#define CRC_AT	offsetof(struct terrace_pack_disk, crc)

static const u8 uuid[TERRACE_UUID_BYTES] = "volume-uuid-0123";

enum contents { ZEROS, TEXT, HALF, MIXED, RANDOM, NR_CONTENTS };

/* Half of each 4 KiB block is random, half not: fio's buffer_compress_percentage=50. */
static inline void fill_half(u8 *block, u64 *seed)
{
	u32 k;

	memset(block, 0, BYTES);
	for (k = 0; k < BYTES / 2; k += 8)
		memcpy(block + k, &(u64){ random_bits(seed) }, 8);
}

static inline void fill_block(u8 *block, enum contents what, u64 *seed)
{
	static const char *const words[] = { "select ", "from ", "where ", "42, ", "null ", "index " };
	u32 k, n;

	if (what == MIXED)
		what = random_below(seed, MIXED) + (random_below(seed, 4) ? 0 : 1);
	if (what == MIXED)
		what = RANDOM;
	if (what == HALF) {
		fill_half(block, seed);
		return;
	}
	memset(block, 0, BYTES);
	for (k = 0; k < BYTES && what == RANDOM; k += 8)
		memcpy(block + k, &(u64){ random_bits(seed) }, 8);
	for (k = 0; k < BYTES && what == TEXT; k += n) {
		const char *word = words[random_below(seed, 6)];

		n = strlen(word) < BYTES - k ? strlen(word) : BYTES - k;
		memcpy(block + k, word, n);
	}
}

struct packed {
	u16 order[BLOCKS];		/* blocks by slot */
	u32 nr;
	u8 *data;			/* contents by block of the region */
	u8 *image;
	u32 image_bytes;
	struct tr_pack_build build;
	struct tr_pack_head head;
	u32 crc;
};

/* @nr blocks strewn over the region; in rising order for clusters of one. */
static inline void choose_blocks(struct packed *p, u32 nr, bool sorted, u64 *seed)
{
	bool in[BLOCKS] = {};
	u32 k, i, swap;

	p->nr = nr;
	for (k = 0; k < nr;) {
		i = nr == BLOCKS ? k : random_below(seed, BLOCKS);
		k += !in[i];
		in[i] = true;
	}
	for (i = 0, k = 0; i < BLOCKS; i++)
		if (in[i])
			p->order[k++] = i;
	for (k = 0; k < nr && !sorted; k++) {
		i = random_below(seed, nr);
		swap = p->order[k];
		p->order[k] = p->order[i];
		p->order[i] = swap;
	}
}

static inline void start_pack(struct packed *p, u32 codec, u32 shift)
{
	p->build.head = (struct tr_pack_head){
		.id = 77, .place = tr_place(1, 5000), .region = 123456, .record_seq = 99,
		.nr_blocks = p->nr, .codec = codec, .level = 0, .shift = shift,
	};
	p->image_bytes = tr_pack_image_bytes(p->nr, shift);
	p->image = room_for(p->image_bytes);
	assert_int_equal(tr_pack_start(&p->build, p->image, p->image_bytes, uuid), 0);
}

static inline void add_clusters(struct packed *p, const struct tr_codec_ops *ops, void *context)
{
	u32 size = 1u << p->build.head.shift, at, n, k;
	u8 cluster[16 * BYTES];

	for (at = 0; at < p->nr; at += n) {
		n = p->nr - at < size ? p->nr - at : size;
		for (k = 0; k < n; k++)
			memcpy(cluster + k * BYTES, p->data + p->order[at + k] * BYTES, BYTES);
		assert_int_equal(tr_pack_add(&p->build, p->order + at, n, cluster, ops, context), 0);
	}
}

static inline void build_pack(struct packed *p, u32 nr, u32 codec, u32 shift, enum contents what,
			      u64 *seed, struct pack_codec *context)
{
	u32 k;

	choose_blocks(p, nr, !shift, seed);
	p->data = room_for(BLOCKS * BYTES);
	for (k = 0; k < nr; k++)
		fill_block(p->data + p->order[k] * BYTES, what, seed);
	start_pack(p, codec, shift);
	add_clusters(p, pack_codec_ops(codec), context);
	assert_int_equal(tr_pack_finish(&p->build, 1, &p->crc), 0);
	assert_int_equal(tr_pack_parse(p->image, p->build.head.blocks * BYTES, &(struct tr_pack_id){
			 .volume_uuid = uuid, .id = 77, .place = tr_place(1, 5000), .region = 123456,
			 .blocks = p->build.head.blocks, .header_crc = &p->crc }, &p->head), 0);
}

static inline void free_pack(struct packed *p)
{
	free(p->data);
	free(p->image);
}

/* Reads block @i as the kernel does: just the bytes that are needed. */
static inline int read_block(const struct packed *p, u32 i, u8 *block, struct pack_codec *context)
{
	struct tr_pack_where where;
	u8 *stored, *cluster;
	int err;

	if (!tr_pack_find(p->image, i, &where))
		return -ENOENT;
	assert_true(where.offset + where.length <= p->head.blocks * BYTES);
	stored = room_for(where.length);
	cluster = room_for(where.nr_slots * BYTES);
	memcpy(stored, p->image + where.offset, where.length);
	err = tr_pack_decode(p->image, &where, stored, cluster, pack_codec_ops(p->head.codec), context);
	if (!err)
		memcpy(block, cluster + where.slot * BYTES, BYTES);
	assert_int_equal(!!tr_pack_check(p->image, &where, stored), !!err);
	free(stored);
	free(cluster);
	return err;
}

#endif
