// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl dump owners: what the shelves say about themselves. Owner blocks
 * stand among the data and are found by looking at every block; a closed shelf
 * ends in an owner table. Some may be of an earlier life of the shelf.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dump.h"

#define TABLE_AT (TERRACE_CHUNK_BLOCKS - TERRACE_TABLE_BLOCKS)

static void add_head(struct json_object *o, u64 place, u64 record_seq, u64 shelf_id)
{
	add_u64(o, "tier", tr_place_tier(place));
	add_u64(o, "shelf", tr_place_index(place) / TERRACE_CHUNK_BLOCKS);
	add_u64(o, "offset", tr_place_index(place) % TERRACE_CHUNK_BLOCKS);
	add_u64(o, "record_seq", record_seq);
	add_u64(o, "shelf_id", shelf_id);
}

static void add_owner(struct json_object *list, u32 offset, u64 block)
{
	struct json_object *o = json_object_new_object();

	add_u64(o, "offset", offset);
	add_u64(o, "block", block);
	json_object_array_add(list, o);
}

static void dump_table(struct dump *d, const void *block, u64 place)
{
	struct json_object *o, *list;
	u64 owner[TERRACE_TABLE_OWNERS];
	struct tr_table head;

	if (tr_table_decode(block, &head, owner, place, d->vol.super->volume_uuid))
		return;
	o = json_object_new_object();
	list = json_object_new_array();
	add_head(o, place, head.record_seq, head.shelf_id);
	for (u32 i = 0; i < head.nr; i++)
		if (owner[i] != TERRACE_NO_OWNER)
			add_owner(list, head.first_offset + i, owner[i]);
	json_object_object_add(o, "owner", list);
	dump_item(d, "table", o);
}

static void dump_owner_block(struct dump *d, const void *block, u64 place)
{
	struct json_object *o, *list;
	struct tr_owners head;
	struct tr_owner owner;

	if (tr_owners_decode(block, &head, place, d->vol.super->volume_uuid))
		return;
	o = json_object_new_object();
	list = json_object_new_array();
	add_head(o, place, head.record_seq, head.shelf_id);
	if (head.prev_offset != ~0u)
		add_u64(o, "prev_offset", head.prev_offset);
	for (u32 i = 0; i < head.nr; i++) {
		tr_owners_get(block, i, &owner);
		if (owner.block != TERRACE_NO_OWNER)
			add_owner(list, owner.offset, owner.block);
	}
	json_object_object_add(o, "owner", list);
	dump_item(d, "owners", o);
}

static void dump_shelf(struct dump *d, u32 tier, u64 shelf, u8 *blocks)
{
	u64 first = shelf * TERRACE_CHUNK_BLOCKS;
	int r = volume_read_tier(&d->vol, tier, first, TERRACE_CHUNK_BLOCKS, blocks);

	if (r) {
		problem(&d->findings, where("%s: shelf %llu", volume_tier_name(&d->vol, tier), shelf),
			"cannot be read: %s", strerror(-r));
		return;
	}
	for (u32 i = TABLE_AT; i < TERRACE_CHUNK_BLOCKS; i++)
		dump_table(d, blocks + (u64)i * TERRACE_BLOCK_BYTES,
			   tr_place(tier, first + i));
	for (u32 i = 0; i < TERRACE_CHUNK_BLOCKS; i++)
		dump_owner_block(d, blocks + (u64)i * TERRACE_BLOCK_BYTES, tr_place(tier, first + i));
}

void dump_owners(struct dump *d)
{
	const struct tr_super *super = d->vol.super;
	u8 *blocks = ctl_alloc_blocks(TERRACE_CHUNK_BLOCKS);

	for (u32 i = 0; i < super->nr_tiers; i++) {
		u64 nr = tr_chunks(super->tier[i].data_blocks);

		if (super->tier[i].kind != TERRACE_KIND_SHELVES || d->vol.tier[i] < 0)
			continue;
		for (u64 shelf = d->first; shelf < nr && shelf <= d->last; shelf++)
			dump_shelf(d, i, shelf, blocks);
	}
	free(blocks);
}
