// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl dump --all: every whole structure of the metadata areas, where it
 * stands, in all its fields: what restore needs. Not by the trees but by the
 * blocks, so that a damaged volume is dumped as well.
 *
 * Before the pages, at places of their own, a block that is damaged says something
 * as well: a crash has torn it, or has cut off a copy, and the structure before it
 * counts; where nothing of ours is, there was no crash. Its bytes are kept.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dump.h"
#include "shape.h"

static void place_item(struct dump *d, struct json_object *o, const char *kind, const char *area,
		       u64 block)
{
	struct json_object *placed = json_object_new_object();

	add_text(placed, "area", area);
	add_u64(placed, "meta_block", block);
	json_object_object_foreach(o, key, value) {
		json_object_object_add(placed, key, json_object_get(value));
	}
	json_object_put(o);
	dump_item(d, kind, placed);
}

static void dump_label_copies(struct dump *d)
{
	u8 *block = ctl_alloc_blocks(SHAPE_MAX_BLOCKS);

	for (u32 i = 0; i < d->vol.nr_devices; i++) {
		for (u32 copy = 0; copy < TERRACE_LABEL_COPIES; copy++) {
			struct json_object *o = NULL;
			const char *kind;
			u32 nr;

			if (!device_read(&d->vol.dev[i], copy, 1, block))
				o = shape_emit(block, 1, d->vol.uuid, &kind, &nr);
			if (o)
				place_item(d, o, kind, where("label%u", d->vol.label[i].tier_index), copy);
		}
	}
	free(block);
}

/* Up to SHAPE_MAX_BLOCKS; how many could be read. */
static u32 read_some(const struct metadata *meta, u64 block, u8 *data)
{
	u32 n = 0;

	if (!meta->dev)
		return 0;
	memset(data, 0, SHAPE_MAX_BLOCKS * TERRACE_BLOCK_BYTES);
	while (n < SHAPE_MAX_BLOCKS && block + n < meta->blocks &&
	       !metadata_read(meta, block + n, 1, data + n * TERRACE_BLOCK_BYTES))
		n++;
	return n;
}

static bool before_pages(const struct dump *d, u64 block)
{
	return block < (d->vol.super ? tr_first_page(d->vol.super) : TR_JOURNAL_START);
}

static void dump_one(struct dump *d, const u8 *data, u32 room, const char *area, u64 block)
{
	const char *kind;
	u32 nr;
	struct json_object *o = room ? shape_emit(data, room, d->vol.uuid, &kind, &nr) : NULL;

	if (room && !o && before_pages(d, block))
		o = shape_emit_damaged(data, &kind);
	if (o)
		place_item(d, o, kind, area, block);
}

/* Most blocks are the same on a synchronous mirror: one item for both. */
static bool same_structure(struct dump *d, const u8 *a, u32 room_a, const u8 *b, u32 room_b)
{
	const char *kind;
	u32 nr;
	struct json_object *o;

	if (!room_a || !room_b || memcmp(a, b, TERRACE_BLOCK_BYTES))
		return false;
	o = shape_emit(a, room_a, d->vol.uuid, &kind, &nr);
	json_object_put(o);
	return o && nr <= room_b && !memcmp(a, b, nr * TERRACE_BLOCK_BYTES);
}

/* Text that was cut off at a line looks whole without it, and restore clears what it restores. */
static void dump_end(struct dump *d)
{
	struct json_object *end = json_object_new_object();

	add_u64(end, "items", d->nr_items);
	dump_item(d, "end", end);
}

void dump_all(struct dump *d)
{
	u64 nr = d->vol.primary.dev ? d->vol.primary.blocks : 0;
	u8 *a = ctl_alloc_blocks(SHAPE_MAX_BLOCKS), *b = ctl_alloc_blocks(SHAPE_MAX_BLOCKS);

	if (d->vol.mirror.dev && d->vol.mirror.blocks > nr)
		nr = d->vol.mirror.blocks;
	dump_label_copies(d);
	for (u64 block = 0; block < nr; block++) {
		u32 room_a = read_some(&d->vol.primary, block, a);
		u32 room_b = read_some(&d->vol.mirror, block, b);

		if (same_structure(d, a, room_a, b, room_b)) {
			dump_one(d, a, room_a, "both", block);
			continue;
		}
		dump_one(d, a, room_a, "primary", block);
		dump_one(d, b, room_b, "mirror", block);
	}
	dump_end(d);
	free(a);
	free(b);
}
