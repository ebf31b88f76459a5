// SPDX-License-Identifier: GPL-2.0-or-later
/* Packs: what goes in comes out, of any codec, cluster and content; and only what is needed is read. */
#include "pack_lib.h"

static struct pack_codec *codec;

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

static void check_pack(const struct packed *p)
{
	u16 order[BLOCKS], members[16];
	u8 block[BYTES];
	u32 i, k, n, size = 1u << p->head.shift;
	bool in[BLOCKS] = {};

	for (k = 0; k < p->nr; k++) {
		assert_int_equal(read_block(p, p->order[k], block, codec), 0);
		assert_memory_equal(block, p->data + p->order[k] * BYTES, BYTES);
		in[p->order[k]] = true;
	}
	for (i = 0; i < BLOCKS; i++)
		assert_int_equal(tr_pack_has(p->image, i), in[i]);
	assert_int_equal(read_block(p, BLOCKS, block, codec), -ENOENT);
	tr_pack_order(p->image, order);
	assert_memory_equal(order, p->order, p->nr * sizeof(u16));
	for (k = 0; k < p->head.nr_clusters; k++) {
		n = tr_pack_members(p->image, k, members);
		assert_int_equal(n, p->nr - k * size < size ? p->nr - k * size : size);
		assert_memory_equal(members, p->order + k * size, n * sizeof(u16));
	}
}

static void every_block_comes_back(void **state)
{
	static const u32 sizes[] = { 1, 2, 3, 4, 5, 15, 16, 17, 20, 33, 300, 1023, 1024 };
	struct packed p;
	u32 c, shift, n, what;
	u64 seed = 4711;

	(void)state;
	for (c = TERRACE_CODEC_NONE; c <= TERRACE_CODEC_ZSTD; c++)
		for (shift = 0; shift <= 4; shift += 2)
			for (n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++)
				for (what = 0; what < NR_CONTENTS; what++) {
					if (sizes[n] > 100 && what != MIXED)
						continue;
					build_pack(&p, sizes[n], c, shift, what, &seed, codec);
					check_pack(&p);
					free_pack(&p);
				}
}

static void only_what_a_block_needs_is_read(void **state)
{
	struct tr_pack_where first, fourth, fifth, last, whole;
	struct packed p;
	u64 seed = 815;
	u32 c;

	(void)state;
	for (c = TERRACE_CODEC_LZ4; c <= TERRACE_CODEC_ZSTD; c++) {
		build_pack(&p, 64, c, 4, HALF, &seed, codec);
		tr_pack_cluster(p.image, 1, &whole);
		assert_true(tr_pack_find(p.image, p.order[16], &first));
		assert_true(tr_pack_find(p.image, p.order[19], &fourth));
		assert_true(tr_pack_find(p.image, p.order[20], &fifth));
		assert_true(tr_pack_find(p.image, p.order[31], &last));
		assert_true(first.length * 12 < whole.length);
		assert_true(fourth.length * 3 < whole.length);
		assert_int_equal(fifth.length, whole.length);
		assert_memory_equal(&last.offset, &whole.offset, sizeof(u32));
		assert_int_equal(last.length, whole.length);
		assert_int_equal(first.offset, whole.offset);
		assert_false(first.raw);
		free_pack(&p);
	}
	/* a raw cluster needs the block's own segment only */
	build_pack(&p, 64, TERRACE_CODEC_LZ4, 4, RANDOM, &seed, codec);
	assert_true(tr_pack_find(p.image, p.order[17], &first));
	assert_true(first.raw);
	assert_int_equal(first.length, 3 * BYTES);
	assert_int_equal(first.offset % BYTES, 0);
	assert_int_equal(tr_pack_raw_offset(&first), 0);
	assert_true(tr_pack_find(p.image, p.order[31], &last));
	assert_int_equal(last.length, 12 * BYTES);
	assert_int_equal(tr_pack_raw_offset(&last), 11 * BYTES);
	free_pack(&p);
}

static void headers_are_as_small_as_the_page_says(void **state)
{
	(void)state;
	assert_int_equal(tr_pack_header_bytes(1024, 0), 6656);
	assert_int_equal(tr_pack_header_bytes(1024, 2), 5440);
	assert_int_equal(tr_pack_header_bytes(1024, 4), 3472);
	assert_int_equal(tr_pack_image_bytes(1024, 4), 1025 * BYTES);
}

static u32 compressed_bytes, passes;

static int counting_compress(void *context, const u8 *cluster, u32 from, u32 bytes, bool last, u8 *to,
			     u32 room)
{
	compressed_bytes += bytes;
	passes += !from;
	return pack_codec_ops(TERRACE_CODEC_LZ4)->compress(context, cluster, from, bytes, last, to, room);
}

static void what_does_not_compress_is_stored_raw_in_one_pass(void **state)
{
	const struct tr_codec_ops ops = { .compress = counting_compress };
	struct packed p;
	u64 seed = 5;
	u32 k;

	(void)state;
	choose_blocks(&p, 200, false, &seed);
	p.data = room_for(BLOCKS * BYTES);
	for (k = 0; k < p.nr; k++)
		fill_block(p.data + p.order[k] * BYTES, RANDOM, &seed);
	start_pack(&p, TERRACE_CODEC_LZ4, 2);
	compressed_bytes = 0;
	passes = 0;
	add_clusters(&p, &ops, codec);
	assert_int_equal(passes, 50);
	assert_true(compressed_bytes <= 200 * BYTES);
	assert_int_equal(p.build.nr_raw, 50);
	assert_int_equal(tr_pack_finish(&p.build, 1, &p.crc), 0);
	assert_int_equal(p.build.head.payload_bytes, 200 * BYTES);
	free_pack(&p);
}

static void runs_are_aligned_and_their_padding_is_zero(void **state)
{
	struct packed p;
	u64 seed = 6;
	u32 k;
	u8 *room;

	(void)state;
	build_pack(&p, 10, TERRACE_CODEC_LZ4, 0, HALF, &seed, codec);
	room = room_for(16 * BYTES);
	memcpy(room, p.image, p.image_bytes);
	p.build.image = room;
	p.build.image_bytes = 16 * BYTES;
	assert_int_equal(tr_pack_finish(&p.build, 16, &p.crc), 0);
	assert_int_equal(p.build.head.blocks, 16);
	for (k = BYTES + p.build.head.payload_bytes; k < 16 * BYTES; k++)
		assert_int_equal(room[k], 0);
	assert_int_equal(tr_pack_finish(&p.build, 17, &p.crc), -ENOSPC);
	assert_int_equal(tr_pack_finish(&p.build, 0, &p.crc), -EINVAL);
	free(room);
	free_pack(&p);
}

#define START(err, change)									\
	do {											\
		b.head = (struct tr_pack_head){ .id = 1, .place = 8, .region = 2, .nr_blocks = 4,	\
						.codec = TERRACE_CODEC_LZ4, .shift = 2 };	\
		room = 2 * BYTES;								\
		change;										\
		assert_int_equal(tr_pack_start(&b, image, room, uuid), err);			\
	} while (0)

static int liar(void *context, const u8 *cluster, u32 from, u32 bytes, bool last, u8 *to, u32 room)
{
	(void)cluster;
	(void)from;
	(void)bytes;
	(void)last;
	(void)to;
	return context ? *(int *)context : (int)room + 1;
}

static void the_builder_refuses_what_cannot_be(void **state)
{
	static u8 image[6 * BYTES] __aligned(8), data[4 * BYTES];
	const struct tr_codec_ops lies = { .compress = liar };
	static const u16 good[] = { 5, 4, 1023, 0 }, far[] = { 1, 2, 1024, 3 }, twice[] = { 1, 2, 1, 3 };
	static struct tr_pack_build b;
	int error = -EIO;
	u32 room, crc;

	(void)state;
	START(0, (void)0);
	START(-EINVAL, b.head.id = 0);
	START(-EINVAL, b.head.place = TERRACE_NO_PLACE);
	START(-EINVAL, b.head.nr_blocks = 0);
	START(-EINVAL, b.head.nr_blocks = 1025);
	START(-EINVAL, b.head.codec = 3);
	START(-EINVAL, b.head.shift = 1);
	START(-EINVAL, b.head.shift = 6);
	START(-EINVAL, b.head.region = TR_MAX_BLOCKS);
	START(-ENOSPC, room = BYTES - 1);
	START(0, room = 4 * BYTES);
	assert_int_equal(tr_pack_add(&b, good, 4, data, pack_codec_ops(1), codec), -ENOSPC);
	START(0, room = sizeof(image));
	assert_int_equal(tr_pack_add(&b, good, 3, data, pack_codec_ops(1), codec), -EINVAL);
	assert_int_equal(tr_pack_add(&b, far, 4, data, pack_codec_ops(1), codec), -EINVAL);
	START(0, room = sizeof(image));
	assert_int_equal(tr_pack_add(&b, twice, 4, data, pack_codec_ops(1), codec), -EINVAL);
	START(0, room = sizeof(image));
	assert_int_equal(tr_pack_add(&b, good, 4, data, &lies, NULL), -EINVAL);
	START(0, room = sizeof(image));
	assert_int_equal(tr_pack_add(&b, good, 4, data, &lies, &error), -EIO);
	START(0, room = sizeof(image));
	assert_int_equal(tr_pack_finish(&b, 1, &crc), -EINVAL);
	assert_int_equal(tr_pack_add(&b, good, 4, data, pack_codec_ops(1), codec), 0);
	assert_int_equal(tr_pack_add(&b, good, 4, data, pack_codec_ops(1), codec), -EINVAL);
	START(0, room = sizeof(image); b.head.shift = 0);
	assert_int_equal(tr_pack_add(&b, good, 1, data, pack_codec_ops(1), codec), 0);
	assert_int_equal(tr_pack_add(&b, good + 1, 1, data, pack_codec_ops(1), codec), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_block_comes_back),
		cmocka_unit_test(only_what_a_block_needs_is_read),
		cmocka_unit_test(headers_are_as_small_as_the_page_says),
		cmocka_unit_test(what_does_not_compress_is_stored_raw_in_one_pass),
		cmocka_unit_test(runs_are_aligned_and_their_padding_is_zero),
		cmocka_unit_test(the_builder_refuses_what_cannot_be),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
