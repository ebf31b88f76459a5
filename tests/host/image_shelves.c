// SPDX-License-Identifier: GPL-2.0-or-later
/* What image.c's shelves say about themselves: owner blocks and tables, and what is wrong with them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/format.h"
#include "image.h"

/* As if every shelf had just been closed. */
static void write_table(u32 tier, u64 first, const u64 *owner, u64 id)
{
	static u64 block[512];

	for (u32 k = 0; k < TERRACE_TABLE_BLOCKS; k++) {
		struct tr_table table = {
			.place = tr_place(tier, first + TABLE_AT + k), .record_seq = nr_records,
			.shelf_id = id, .first_offset = k * TERRACE_TABLE_OWNERS,
		};

		if (table.first_offset < TABLE_AT)
			table.nr = TABLE_AT - table.first_offset < TERRACE_TABLE_OWNERS ?
				   TABLE_AT - table.first_offset : TERRACE_TABLE_OWNERS;
		tr_table_encode(block, &table, owner + table.first_offset, super.volume_uuid);
		printf("owner-table %u %llu %llu\n", tier, first / TERRACE_CHUNK_BLOCKS,
		       label[tier].data_start + first + TABLE_AT + k);
		write_block(fd[tier], label[tier].data_start + first + TABLE_AT + k, block, 1);
	}
}

static u32 sort_tier;
static u64 sort_first;

static int by_record(const void *a, const void *b)
{
	u64 x = written_at[sort_tier][sort_first + *(const u32 *)a];
	u64 y = written_at[sort_tier][sort_first + *(const u32 *)b];

	return x < y ? -1 : x > y;
}

/* What was written once stays named, in the order of the records. */
static void write_owners(u32 tier, u64 first, const u64 *owner, u64 id)
{
	static u32 offset[TERRACE_CHUNK_BLOCKS];
	static u64 block[512];
	u32 nr = 0, prev = ~0u;

	for (u32 i = 0; i < OWNERS_AT; i++)
		if (owner[i] != TERRACE_NO_OWNER)
			offset[nr++] = i;
	sort_tier = tier;
	sort_first = first;
	qsort(offset, nr, sizeof(offset[0]), by_record);
	for (u32 k = 0, at = OWNERS_AT; k < nr; at++) {
		struct tr_owners head = {
			.place = tr_place(tier, first + at), .shelf_id = id, .prev_offset = prev,
		};
		struct tr_owner list[TERRACE_OWNERS_PER_BLOCK] = { 0 };

		for (; head.nr < TERRACE_OWNERS_PER_BLOCK && k < nr; head.nr++, k++) {
			list[head.nr].block = owner[offset[k]];
			list[head.nr].offset = offset[k];
			head.record_seq = written_at[tier][first + offset[k]];
		}
		tr_owners_encode(block, &head, list, super.volume_uuid);
		printf("owner-block %u %llu %llu\n", tier, first / TERRACE_CHUNK_BLOCKS,
		       label[tier].data_start + first + at);
		write_block(fd[tier], label[tier].data_start + first + at, block, 1);
		prev = at;
	}
}

/* An owner block of an earlier life, which the power ended: its record was lost, and
 * the number given out again, or not yet. It names what is in use by others now.
 */
static void write_earlier_life(u32 tier, u64 first, u64 offset)
{
	struct tr_owners head = {
		.place = tr_place(tier, first + TABLE_AT - 1), .shelf_id = 4711, .prev_offset = ~0u,
		.record_seq = nr_records + 1000, .nr = 1,
	};
	const struct tr_owner named = { .block = owner_of[tier][first + offset] ^ 1, .offset = offset };
	static u64 block[512];

	tr_owners_encode(block, &head, &named, super.volume_uuid);
	write_block(fd[tier], label[tier].data_start + first + TABLE_AT - 1, block, 1);
}

/* No table yet: an owner block that names nothing, and zeros. */
static void reopen(u32 tier, u64 first, u64 id)
{
	struct tr_owners head = {
		.place = tr_place(tier, first + TABLE_AT), .shelf_id = id, .prev_offset = ~0u,
	};
	static u64 block[512];

	for (u32 k = 1; k < TERRACE_TABLE_BLOCKS; k++) {
		memset(block, 0, sizeof(block));
		write_block(fd[tier], label[tier].data_start + first + TABLE_AT + k, block, 1);
	}
	tr_owners_encode(block, &head, NULL, super.volume_uuid);
	write_block(fd[tier], label[tier].data_start + first + TABLE_AT, block, 1);
}

void write_shelves(u32 tier)
{
	u64 size = super.tier[tier].data_blocks, at;
	u64 *owner = owner_of[tier];
	bool open, earlier;

	for (at = 0; at < size && !used[tier][at]; at++)
		;
	if (breaks("owner"))
		owner[at]++;
	open = breaks("earlier-life-open");
	earlier = open || breaks("earlier-life");
	if (breaks("no-owner"))
		owner[at] = TERRACE_NO_OWNER;
	for (u64 first = 0; first < size; first += TERRACE_CHUNK_BLOCKS) {
		u64 id = rnd(~0ull);

		write_owners(tier, first, owner + first, id);
		write_table(tier, first, owner + first, id);
		if (open)
			reopen(tier, first, id);
		if (earlier && first <= at && at < first + TERRACE_CHUNK_BLOCKS)
			write_earlier_life(tier, first, at - first);
	}
}
