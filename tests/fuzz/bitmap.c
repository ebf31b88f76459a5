// SPDX-License-Identifier: GPL-2.0-or-later
/* Space pages and the meta bitmap. */
#include "fuzz.h"

static const struct tr_page_id id = {
	.magic = TERRACE_SPACE_MAGIC, .index = 3, .tier = 1, .tree = TERRACE_TREE_SPACE,
};

static u8 block[TERRACE_BLOCK_BYTES] __aligned(8);
static u64 bitmap[TERRACE_MBIT_WORDS];

static void decode(void)
{
	u32 used;

	(void)tr_page_check(block, sizeof(block), &id, NULL, fuzz_uuid);
	if (!tr_space_decode(block, bitmap, &used))
		hold(used <= TERRACE_CHUNK_BLOCKS);
	(void)tr_mbit_decode(block, bitmap, 0, 5, fuzz_uuid);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const u64 empty[TERRACE_MBIT_WORDS];

	raw(block, sizeof(block), data, size);
	decode();
	tr_page_start(block, &id, 1, 1, 1, fuzz_uuid);
	tr_space_encode(block, empty);
	patch(block, sizeof(block), data, size);
	seal(block, sizeof(block), offsetof(struct terrace_page_disk, crc));
	decode();
	tr_mbit_encode(block, empty, 0, 5, fuzz_uuid);
	patch(block, sizeof(block), data, size);
	seal(block, sizeof(block), offsetof(struct terrace_page_disk, crc));
	decode();
	return 0;
}
