// SPDX-License-Identifier: GPL-2.0-or-later
/* Packs: a header that is accepted leads nowhere outside of header and run, and its slots are a permutation. */
#include "fuzz.h"
#include "pack.h"

static const struct tr_pack_id any = {};

/* as hostile as the input is: writes all that it may write */
static int decompress(void *context, const u8 *stored, u32 length, u8 *cluster, u32 from, u32 bytes, bool last)
{
	(void)context;
	(void)last;
	hold(length && bytes);
	memset(cluster + from, stored[0] ^ stored[length - 1], bytes);
	return 0;
}

static int compress(void *context, const u8 *cluster, u32 from, u32 bytes, bool last, u8 *to, u32 room)
{
	const u8 *how = context;
	u32 n = (how[cluster[from] % 16] + 1) * 64;

	(void)last;
	if (n > room || n > bytes)
		return 0;
	memcpy(to, cluster + from, n);
	return n;
}

static const struct tr_codec_ops ops = { compress, decompress };

static void check_where(const void *image, const struct tr_pack_head *head,
			const struct tr_pack_where *where)
{
	u8 *stored = malloc(where->length), *cluster = malloc(where->nr_slots * TERRACE_BLOCK_BYTES);
	u32 from, to;

	hold(where->length && where->offset + where->length <= head->blocks * TERRACE_BLOCK_BYTES);
	hold(where->offset >= head->bytes);
	hold(where->slot < where->nr_slots && where->nr_slots <= 16 && where->cluster < head->nr_clusters);
	hold(where->raw || head->codec != TERRACE_CODEC_NONE);
	tr_pack_filled(where, &from, &to);
	hold(from <= where->slot && where->slot < to && to <= where->nr_slots);
	if (where->raw)
		hold(tr_pack_raw_offset(where) + TERRACE_BLOCK_BYTES <= where->length);
	memset(stored, 7, where->length);
	hold(!tr_pack_check(image, where, stored) == !tr_pack_decode(image, where, stored, cluster, &ops, NULL));
	free(stored);
	free(cluster);
}

static void decode(const void *buf, u32 bytes)
{
	u16 order[TERRACE_REGION_BLOCKS], members[16];
	struct tr_pack_where where;
	struct tr_pack_head head;
	u32 i, k, n, found = 0, at;

	if (tr_pack_parse(buf, bytes, &any, &head))
		return;
	tr_pack_order(buf, order);
	for (i = 0; i < TERRACE_REGION_BLOCKS; i++) {
		hold(tr_pack_has(buf, i) == tr_pack_find(buf, i, &where));
		if (!tr_pack_has(buf, i))
			continue;
		hold(order[(where.cluster << head.shift) + where.slot] == i);
		check_where(buf, &head, &where);
		found++;
	}
	hold(found == head.nr_blocks);
	for (k = 0, at = 0; k < head.nr_clusters; k++, at += n) {
		n = tr_pack_members(buf, k, members);
		hold(!memcmp(members, order + at, n * sizeof(u16)));
		tr_pack_cluster(buf, k, &where);
		check_where(buf, &head, &where);
	}
	hold(at == head.nr_blocks);
}

/* A pack of up to 40 blocks that the input describes; returns the header's bytes. */
static u32 build(u8 *image, u32 bytes, const uint8_t *data)
{
	static u8 contents[16 * TERRACE_BLOCK_BYTES];
	static struct tr_pack_build b;
	u16 block[16];
	u32 i, k, n, at, crc, size;

	b.head = (struct tr_pack_head){ .id = 1, .place = 8 * data[0], .region = data[1], .record_seq = data[2],
					.nr_blocks = 1 + data[3] % 40, .codec = data[4] % 3,
					.shift = data[5] % 3 * 2 };
	hold(!tr_pack_start(&b, image, bytes, fuzz_uuid));
	size = 1u << b.head.shift;
	for (at = 0; at < b.head.nr_blocks; at += n) {
		n = b.head.nr_blocks - at < size ? b.head.nr_blocks - at : size;
		for (k = 0; k < n; k++) {
			i = at + k;
			block[k] = b.head.shift ? (i * 7 + 5) % TERRACE_REGION_BLOCKS : i * (1 + data[6] % 25);
		}
		memset(contents, data[at % 8], sizeof(contents));
		hold(!tr_pack_add(&b, block, n, contents, &ops, (void *)(data + 8)));
	}
	hold(!tr_pack_finish(&b, 1, &crc));
	return b.head.bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static u8 image[44 * TERRACE_BLOCK_BYTES] __aligned(8);
	u32 bytes = size < 300 ? 300 : size;
	u8 *buf = malloc(bytes);

	raw(buf, bytes, data, size);
	decode(buf, bytes);
	free(buf);
	if (size < 24)
		return 0;
	bytes = build(image, sizeof(image), data);
	buf = malloc(bytes);
	memcpy(buf, image, bytes);
	decode(buf, bytes);
	patch(buf, bytes, data + 24, size - 24);
	seal(buf, bytes, offsetof(struct terrace_pack_disk, crc));
	decode(buf, bytes);
	free(buf);
	return 0;
}
