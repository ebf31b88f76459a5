// SPDX-License-Identifier: GPL-2.0-or-later
/* Superblocks: in what is accepted every range lies in the metadata area and apart. */
#include "fuzz.h"

static const struct tr_super good = {
	.generation = 12, .nr_tiers = 2,
	.region_shift = TERRACE_REGION_SHIFT, .chunk_shift = TERRACE_CHUNK_SHIFT,
	.virtual_blocks = 129 << 10, .meta_blocks = 70000,
	.journal_start = 2, .journal_blocks = 1000,
	.bitmap_start = { 1002, 1005 }, .bitmap_blocks = 3,
	.map_depth = 2, .map_root = { .block = 2000, .blocks = 1 },
	.tier = {
		{ .class = TERRACE_CLASS_NVME, .kind = TERRACE_KIND_SLOTS, .data_blocks = 20000,
		  .space_root = { .block = 1008, .blocks = 1 } },
		{ .class = TERRACE_CLASS_HDD, .kind = TERRACE_KIND_SHELVES, .data_blocks = 1 << 30 },
	},
};

static u8 block[TERRACE_BLOCK_BYTES] __aligned(8);

static bool apart(u64 a, u64 nr_a, u64 b, u64 nr_b)
{
	return a + nr_a <= b || b + nr_b <= a;
}

static void decode(void)
{
	struct tr_super s;
	u32 i;

	if (tr_super_decode(&s, block))
		return;
	hold(s.journal_start >= 2 && s.journal_start + s.journal_blocks <= s.meta_blocks);
	for (i = 0; i < 2; i++) {
		hold(s.bitmap_start[i] >= 2 && s.bitmap_start[i] + s.bitmap_blocks <= s.meta_blocks);
		hold(apart(s.bitmap_start[i], s.bitmap_blocks, s.journal_start, s.journal_blocks));
	}
	hold(s.bitmap_blocks * TERRACE_MBIT_BITS >= s.meta_blocks);
	hold(s.nr_tiers && s.nr_tiers <= TERRACE_MAX_TIERS);
	hold(s.map_depth <= TR_MAX_DEPTH);
	for (i = 0; i < s.nr_tiers; i++) {
		hold(s.tier[i].data_blocks - 1 <= TERRACE_MAX_PLACE_INDEX);
		hold(s.tier[i].space_root.block + s.tier[i].space_root.blocks <= s.meta_blocks ||
		     !s.tier[i].space_root.block);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	raw(block, sizeof(block), data, size);
	decode();
	tr_super_encode(block, &good);
	patch(block, sizeof(block), data, size);
	seal(block, sizeof(block), offsetof(struct terrace_super_disk, crc));
	decode();
	return 0;
}
