// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What packs cost and gain, on this CPU: header, ratio, and reading one block
 * of a cluster of 16 beside reading all of it, in bytes and in CPU time of CRC
 * and decompression. Contents as fio makes them with
 * buffer_compress_percentage=50: half of each block random, half zeros.
 *
 * usage: pack [--check] [PASSES]	--check: exit 1 if a claim does not hold
 *
 * The best of PASSES (60) counts: others are at work on the machine too. In
 * virtual time, where CPU time is instructions, one is as good as many.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/format.h"
#include "pack_codec.h"

#define BLOCKS	TERRACE_REGION_BLOCKS
#define BYTES	TERRACE_BLOCK_BYTES

static u8 data[BLOCKS * BYTES];
static u8 *image;
static struct tr_pack_build build;
static bool failed;
static u32 passes = 60;

static void claim(const char *what, bool holds)
{
	printf("%s  %s\n", holds ? "ok    " : "MISSED", what);
	failed |= !holds;
}

static u64 random_bits(void)
{
	static u64 seed = 88172645463325252ull;

	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed * 0x2545f4914f6cdd1dull;
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

static void fill(void)
{
	memset(data, 0, sizeof(data));
	for (u32 k = 0; k < BLOCKS; k++)
		for (u32 b = 0; b < BYTES / 2; b += 8) {
			u64 bits = random_bits();

			memcpy(data + k * BYTES + b, &bits, 8);
		}
}

/* A whole region as one pack. Returns the CPU seconds. */
static double make_pack(u32 codec, u32 shift, struct pack_codec *context)
{
	u32 size = 1u << shift, crc;
	u16 block[16];
	double start;

	build.head = (struct tr_pack_head){ .id = 1, .place = 8, .nr_blocks = BLOCKS, .codec = codec,
					    .shift = shift };
	start = seconds();
	if (tr_pack_start(&build, image, tr_pack_image_bytes(BLOCKS, 0), (const u8 *)"0123456789abcdef"))
		abort();
	for (u32 at = 0; at < BLOCKS; at += size) {
		for (u32 k = 0; k < size; k++)
			block[k] = at + k;
		if (tr_pack_add(&build, block, size, data + at * BYTES, pack_codec_ops(codec), context))
			abort();
	}
	if (tr_pack_finish(&build, 1, &crc))
		abort();
	return seconds() - start;
}

static void table(struct pack_codec *context)
{
	static const char *const names[] = { "none", "lz4", "zstd" };

	printf("whole region, 1024 blocks, 50 %% compressible:\n");
	printf("  codec cluster  header B  blocks  run blocks   ratio  MB/s packed (CPU)\n");
	for (u32 codec = 0; codec <= TERRACE_CODEC_ZSTD; codec++)
		for (u32 shift = 0; shift <= 4; shift += 2) {
			double s = make_pack(codec, shift, context);
			double ratio = (double)BLOCKS / build.head.blocks;

			printf("  %-5s %5u KiB  %7u  %6u  %10u  %6.3f  %8.0f\n", names[codec],
			       4u << shift, build.head.bytes, tr_pack_header_blocks(build.head.bytes),
			       build.head.blocks, ratio, sizeof(data) / s / 1e6);
			if (codec)
				claim("at least 1.9 times the payload, header and padding included",
				      ratio >= 1.9);
		}
}

#define WHOLE	16	/* in place of a slot: all of the cluster, as if it had no segments */

/* Reads one slot of every cluster. Returns the bytes. */
static u64 read_pass(u32 slot, struct pack_codec *context)
{
	u8 cluster[16 * BYTES];
	struct tr_pack_where where;
	u64 bytes = 0;

	for (u32 c = 0; c < BLOCKS / 16; c++) {
		if (slot == WHOLE)
			tr_pack_cluster(image, c, &where);
		else if (!tr_pack_find(image, c * 16 + slot, &where))
			abort();
		if (tr_pack_decode(image, &where, image + where.offset, cluster,
				   pack_codec_ops(build.head.codec), context))
			abort();
		bytes += where.length;
	}
	return bytes;
}

/* CPU nanoseconds for one read, and how many bytes it takes. */
static double read_slot(u32 slot, struct pack_codec *context, double *bytes)
{
	double best = 1e9;

	for (u32 pass = 0; pass < passes; pass++) {
		double start = seconds();

		*bytes = read_pass(slot, context) / (BLOCKS / 16.0);
		best = fmin(best, (seconds() - start) * 1e9 / (BLOCKS / 16));
	}
	return best;
}

static void early(u32 codec, const char *name, struct pack_codec *context)
{
	double ns[16], bytes[16], whole, whole_bytes, zipf = 0, zipf_bytes = 0, sum = 0;

	make_pack(codec, 4, context);
	whole = read_slot(WHOLE, context, &whole_bytes);
	for (u32 slot = 0; slot < 16; slot++) {
		ns[slot] = read_slot(slot, context, &bytes[slot]);
		zipf += ns[slot] / pow(slot + 1, 0.99);
		zipf_bytes += bytes[slot] / pow(slot + 1, 0.99);
		sum += 1 / pow(slot + 1, 0.99);
	}
	zipf /= sum;
	zipf_bytes /= sum;
	printf("\n%s, clusters of 64 KiB: bytes read; CPU ns for look-up + CRC + decompression\n", name);
	printf("  whole cluster %7.0f B %8.0f ns\n", whole_bytes, whole);
	printf("  first block   %7.0f B %8.0f ns: %.1f and %.1f times cheaper\n", bytes[0], ns[0],
	       whole_bytes / bytes[0], whole / ns[0]);
	printf("  second block  %7.0f B %8.0f ns\n", bytes[1], ns[1]);
	printf("  last block    %7.0f B %8.0f ns\n", bytes[15], ns[15]);
	printf("  Zipf 0.99     %7.0f B %8.0f ns: %.1f and %.1f times cheaper\n", zipf_bytes, zipf,
	       whole_bytes / zipf_bytes, whole / zipf);
	claim("first block at least 5 times fewer bytes than the whole", bytes[0] * 5 <= whole_bytes);
	if (codec == TERRACE_CODEC_LZ4)
		claim("first block at least 5 times less CPU than the whole", ns[0] * 5 <= whole);
	claim("on average over Zipf positions cheaper than the whole",
	      zipf < whole && zipf_bytes < whole_bytes);
	claim("last block no dearer than the whole (10 % for noise)",
	      ns[15] <= whole * 1.1 && bytes[15] <= whole_bytes);
}

static void small_clusters(struct pack_codec *context)
{
	u8 cluster[BYTES];
	struct tr_pack_where where;
	double start;

	make_pack(TERRACE_CODEC_LZ4, 0, context);
	start = seconds();
	for (u32 r = 0; r < 100; r++)
		for (u32 i = 0; i < BLOCKS; i++)
			if (!tr_pack_find(image, i, &where) ||
			    tr_pack_decode(image, &where, image + where.offset, cluster,
					   pack_codec_ops(TERRACE_CODEC_LZ4), context))
				abort();
	printf("\nlz4, clusters of 4 KiB: %.0f ns of CPU for look-up + CRC + decompression\n",
	       (seconds() - start) * 1e9 / (100 * BLOCKS));
	start = seconds();
	for (u32 r = 0; r < 1000; r++)
		if (tr_pack_parse(image, build.head.bytes, &(struct tr_pack_id){}, &build.head))
			abort();
	printf("parsing its header once: %.0f ns\n", (seconds() - start) * 1e9 / 1000);
}

int main(int argc, char **argv)
{
	struct pack_codec *context = pack_codec_create(0);
	bool check = argc > 1 && !strcmp(argv[1], "--check");

	if (argc > 1 + check)
		passes = atoi(argv[1 + check]);
	image = aligned_alloc(BYTES, tr_pack_image_bytes(BLOCKS, 0));
	if (!context || !image)
		return 1;
	fill();
	table(context);
	early(TERRACE_CODEC_LZ4, "lz4", context);
	early(TERRACE_CODEC_ZSTD, "zstd", context);
	small_clusters(context);
	pack_codec_destroy(context);
	free(image);
	return failed && check;
}
