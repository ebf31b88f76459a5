// SPDX-License-Identifier: GPL-2.0-or-later
/* Damage: every flipped bit is noticed, and harms exactly the blocks that need it. */
#include "pack_lib.h"

static struct pack_codec *codec;

static int parse(const struct packed *p, const void *image)
{
	const struct tr_pack_id id = { .volume_uuid = uuid, .id = 77, .place = tr_place(1, 5000),
				       .region = 123456, .header_crc = &p->crc };
	struct tr_pack_head head;

	return tr_pack_parse(image, p->head.bytes, &id, &head);
}

static void every_byte_of_the_header_counts(void **state)
{
	static const u32 shifts[] = { 0, 4 };
	struct packed p;
	u64 seed = 1;
	u32 k, at;
	u8 *header;
	int err;

	(void)state;
	for (k = 0; k < 2; k++) {
		build_pack(&p, 200, TERRACE_CODEC_LZ4, shifts[k], MIXED, &seed, codec);
		header = room_for(p.head.bytes);
		memcpy(header, p.image, p.head.bytes);
		assert_int_equal(parse(&p, header), 0);
		for (at = 0; at < p.head.bytes; at++) {
			header[at] ^= 1u << at % 8;
			err = parse(&p, header);
			assert_true(err == (at < 4 ? -ENODATA : -EBADMSG));
			header[at] ^= 1u << at % 8;
		}
		for (at = 0; at < p.head.bytes; at += 7) /* cut off */
			assert_int_not_equal(tr_pack_parse(header, at, &(struct tr_pack_id){}, &p.head), 0);
		free(header);
		free_pack(&p);
	}
}

/* Which blocks need the byte at @at of the run. */
static bool needs(const struct packed *p, u32 i, u32 at)
{
	struct tr_pack_where where;

	return tr_pack_find(p->image, i, &where) && at >= where.offset &&
	       at < where.offset + where.length;
}

static void a_flipped_bit_of_the_payload_harms_exactly_who_needs_it(void **state)
{
	static const enum contents contents[] = { HALF, MIXED, RANDOM };
	u32 c, shift, k, round, at, failed, first, last;
	struct packed p;
	u8 bit;
	u64 seed = 2;
	int err;

	(void)state;
	for (c = TERRACE_CODEC_NONE; c <= TERRACE_CODEC_ZSTD; c++)
		for (shift = 0; shift <= 4; shift += 2)
			for (k = 0; k < 3; k++) {
				build_pack(&p, 37, c, shift, contents[k], &seed, codec);
				first = tr_pack_header_blocks(p.head.bytes) * BYTES;
				last = first + p.head.payload_bytes;
				for (round = 0; round < 60; round++) {
					at = round ? first + random_below(&seed, last - first) : last - 1;
					failed = 0;
					bit = 1u << random_below(&seed, 8);
					p.image[at] ^= bit;
					for (u32 b = 0; b < p.nr; b++) {
						u8 got[BYTES];

						err = read_block(&p, p.order[b], got, codec);
						assert_int_equal(err, needs(&p, p.order[b], at) ? -EBADMSG : 0);
						failed += !!err;
						if (!err)
							assert_memory_equal(got, p.data + p.order[b] * BYTES, BYTES);
					}
					assert_in_range(failed, 1, 16);
					p.image[at] ^= bit;
				}
				free_pack(&p);
			}
}

/* The last block of a cluster is damaged: the first ones are read all the same. */
static void a_damaged_tail_leaves_the_head_of_its_cluster(void **state)
{
	struct tr_pack_where where;
	struct packed p;
	u8 block[BYTES];
	u64 seed = 3;
	u32 k;

	(void)state;
	build_pack(&p, 16, TERRACE_CODEC_LZ4, 4, HALF, &seed, codec);
	tr_pack_find(p.image, p.order[15], &where);
	p.image[where.offset + where.length - 1] ^= 0x40;
	for (k = 0; k < 16; k++)
		assert_int_equal(read_block(&p, p.order[k], block, codec), k < 4 ? 0 : -EBADMSG);
	free_pack(&p);
}

/* Bytes with a good CRC that no compressor made. */
static void what_does_not_decode_is_an_error(void **state)
{
	u32 c, round, k, length;
	u8 stored[500], *out = room_for(BYTES);
	u64 seed = 4;

	(void)state;
	for (c = TERRACE_CODEC_LZ4; c <= TERRACE_CODEC_ZSTD; c++)
		for (round = 0; round < 3000; round++) {
			length = 1 + random_below(&seed, sizeof(stored));
			for (k = 0; k < length; k++)
				stored[k] = random_bits(&seed) >> 40;
			if (c == TERRACE_CODEC_ZSTD && round % 2 && length > 4)
				memcpy(stored, "\x28\xb5\x2f\xfd", 4);
			assert_int_equal(pack_codec_ops(c)->decompress(codec, stored, length, out, 0, BYTES,
								       true), -EBADMSG);
		}
	free(out);
}

#define HOSTILE(err, change)									\
	do {											\
		__le32 crc;									\
		memcpy(header, p.image, p.head.bytes);						\
		change;										\
		crc = cpu_to_le32(tr_block_crc(header, p.head.bytes, CRC_AT));			\
		disk->crc = crc;								\
		assert_int_equal(tr_pack_parse(header, p.head.bytes, &any, &head), err);	\
	} while (0)

static void hostile_headers_are_refused(void **state)
{
	const struct tr_pack_id any = {};
	struct terrace_pack_disk *disk;
	struct tr_pack_head head;
	struct packed p;
	u64 seed = 5;
	u8 *header;
	__le16 *lengths, *slots;
	__le32 *offsets;

	(void)state;
	build_pack(&p, 300, TERRACE_CODEC_ZSTD, 4, HALF, &seed, codec);
	header = room_for(p.head.bytes);
	disk = (void *)header;
	offsets = (void *)(header + 256);
	lengths = (void *)(header + 256 + 2 * 4 + 19 * 3 * 4);
	slots = (void *)(header + 256 + 2 * 4 + 19 * 3 * 6);
	assert_int_equal(p.head.bytes, 256 + 2 * 4 + 19 * 3 * 6 + 300 * 2);
	HOSTILE(0, (void)0);
	HOSTILE(-EPROTONOSUPPORT, disk->version = cpu_to_le16(2));
	HOSTILE(-EUCLEAN, disk->version = 0);
	HOSTILE(-EUCLEAN, disk->id = 0);
	HOSTILE(-EUCLEAN, disk->place = cpu_to_le64(TERRACE_NO_PLACE));
	HOSTILE(-EUCLEAN, disk->place = cpu_to_le64(tr_place(1, TERRACE_MAX_PLACE_INDEX)));
	HOSTILE(-EUCLEAN, disk->region = cpu_to_le64(~0ull));
	HOSTILE(-EUCLEAN, disk->blocks = 0);
	HOSTILE(-EUCLEAN, disk->blocks = cpu_to_le16(1));
	HOSTILE(-EUCLEAN, disk->blocks = cpu_to_le16(TERRACE_PACK_MAX_BLOCKS + 1));
	HOSTILE(-EUCLEAN, disk->payload_bytes = cpu_to_le32(~0u));
	HOSTILE(-EUCLEAN, disk->payload_bytes = cpu_to_le32(p.head.payload_bytes + 1));
	HOSTILE(-EUCLEAN, disk->nr_blocks = 0);
	HOSTILE(-EUCLEAN, disk->nr_blocks = cpu_to_le16(299));
	HOSTILE(-EUCLEAN, disk->nr_blocks = cpu_to_le16(0xffff));
	HOSTILE(-EUCLEAN, disk->nr_clusters = cpu_to_le16(18));
	HOSTILE(-EUCLEAN, disk->codec = 3);
	HOSTILE(-EUCLEAN, disk->codec = TERRACE_CODEC_NONE);
	HOSTILE(-EUCLEAN, disk->shift = 2);
	HOSTILE(-EUCLEAN, disk->shift = 3);
	HOSTILE(-EUCLEAN, disk->shift = 255);
	HOSTILE(-EUCLEAN, disk->bitmap[3] ^= cpu_to_le64(1));
	HOSTILE(-EUCLEAN, offsets[0] = cpu_to_le32(1));
	HOSTILE(-EUCLEAN, offsets[1] = cpu_to_le32(~0u));
	HOSTILE(-EUCLEAN, lengths[0] = 0);
	HOSTILE(-EUCLEAN, lengths[4] = 0);
	HOSTILE(-EUCLEAN, lengths[4] = cpu_to_le16(le16_to_cpu(lengths[4]) + 1));
	HOSTILE(-EUCLEAN, lengths[2] = cpu_to_le16(0xffff));
	HOSTILE(-EUCLEAN, slots[0] = slots[1]);
	HOSTILE(-EUCLEAN, slots[7] = cpu_to_le16(300));
	HOSTILE(-EUCLEAN, slots[7] = cpu_to_le16(0xffff));
	memcpy(header, p.image, p.head.bytes);
	disk->bytes = cpu_to_le32(~0u);
	assert_int_equal(tr_pack_parse(header, p.head.bytes, &any, &head), -EBADMSG);
	disk->bytes = 0;
	assert_int_equal(tr_pack_parse(header, p.head.bytes, &any, &head), -EBADMSG);
	free(header);
	free_pack(&p);
}

#define OTHER(change)									\
	do {										\
		id = good;								\
		change;									\
		assert_int_equal(tr_pack_parse(p.image, p.head.bytes, &id, &head), -ESTALE); \
	} while (0)

static void a_header_of_another_pack_is_stale(void **state)
{
	struct tr_pack_id id, good;
	struct tr_pack_head head;
	struct packed p;
	u64 seed = 6;
	u32 crc;

	(void)state;
	build_pack(&p, 3, TERRACE_CODEC_LZ4, 0, HALF, &seed, codec);
	crc = p.crc;
	good = (struct tr_pack_id){ .volume_uuid = uuid, .id = 77, .place = tr_place(1, 5000),
				    .region = 123456, .blocks = p.head.blocks, .header_crc = &crc };
	assert_int_equal(tr_pack_parse(p.image, p.head.bytes, &good, &head), 0);
	OTHER(id.id++);
	OTHER(id.place = tr_place(1, 5001));
	OTHER(id.region--);
	OTHER(id.blocks++);
	OTHER(id.volume_uuid = (const u8 *)"volume-uuid-0124");
	OTHER(crc++);
	free_pack(&p);
}

static int setup(void **state)
{
	(void)state;
	codec = pack_codec_create(0);
	return codec ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	pack_codec_destroy(codec);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte_of_the_header_counts),
		cmocka_unit_test(a_flipped_bit_of_the_payload_harms_exactly_who_needs_it),
		cmocka_unit_test(a_damaged_tail_leaves_the_head_of_its_cluster),
		cmocka_unit_test(what_does_not_decode_is_an_error),
		cmocka_unit_test(hostile_headers_are_refused),
		cmocka_unit_test(a_header_of_another_pack_is_stale),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
