// SPDX-License-Identifier: GPL-2.0-or-later
/* Owner blocks and tables: what is accepted names blocks of its own shelf only. */
#include "fuzz.h"

#define PLACE	tr_place(1, 2 * TERRACE_CHUNK_BLOCKS + 300)

static u8 block[TERRACE_BLOCK_BYTES] __aligned(8);
static struct tr_owner owner[TERRACE_OWNERS_PER_BLOCK];
static u64 table[TERRACE_TABLE_OWNERS];

static void decode(void)
{
	struct tr_owners head;
	struct tr_table table_head;
	struct tr_owner one;
	u32 i;

	if (!tr_owners_decode(block, &head, PLACE, fuzz_uuid)) {
		for (i = 0; i < head.nr; i++) {
			tr_owners_get(block, i, &one);
			hold(one.offset < 300);
		}
		hold(head.prev_offset < 300 || head.prev_offset == ~0u);
	}
	if (!tr_table_decode(block, &table_head, table, PLACE, fuzz_uuid))
		hold(table_head.first_offset + table_head.nr <= TERRACE_CHUNK_BLOCKS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct tr_owners head = { .place = PLACE, .prev_offset = ~0u, .nr = 250 };
	const struct tr_table table_head = { .place = PLACE, .first_offset = 504, .nr = 504 };

	raw(block, sizeof(block), data, size);
	decode();
	tr_owners_encode(block, &head, owner, fuzz_uuid);
	patch(block, sizeof(block), data, size);
	seal(block, sizeof(block), offsetof(struct terrace_owners_disk, crc));
	decode();
	tr_table_encode(block, &table_head, table, fuzz_uuid);
	patch(block, sizeof(block), data, size);
	seal(block, sizeof(block), offsetof(struct terrace_table_disk, crc));
	decode();
	return 0;
}
