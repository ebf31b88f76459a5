// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Structures by table. See shape.h.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <asm/byteorder.h>
#include <uuid/uuid.h>

#include "shape.h"
#include "trees.h"

enum field_type { NUMBER, UUID, TEXT };

struct field {
	const char *name;
	u32 at, bytes;
	enum field_type type;
};

struct list {
	const char *name;
	u32 at, stride, max;
	const struct field *field;
};

struct bits {
	const char *name;
	u32 at, bits;
};

struct shape {
	const char *kind;
	const char *magic;
	u32 magic_bytes;
	u16 crc_at, uuid_at;
	const struct field *field;
	struct list list;	/* elements that are not all zero */
	struct bits bits;
	bool places;		/* a map page: its PLACES section as runs */
};

#define F(type, member) \
	{ #member, offsetof(struct type, member), sizeof(((struct type *)0)->member), NUMBER }
#define U(type, member) { #member, offsetof(struct type, member), TERRACE_UUID_BYTES, UUID }
#define H(member) F(terrace_page_disk, member)
#define END { NULL, 0, 0, NUMBER }

static const struct field label_fields[] = {
	F(terrace_label_disk, version), U(terrace_label_disk, volume_uuid),
	U(terrace_label_disk, tier_uuid), F(terrace_label_disk, generation),
	F(terrace_label_disk, tier_index), F(terrace_label_disk, class),
	F(terrace_label_disk, kind), F(terrace_label_disk, flags),
	F(terrace_label_disk, atomic_bytes), F(terrace_label_disk, align_blocks),
	F(terrace_label_disk, device_blocks), F(terrace_label_disk, data_start),
	F(terrace_label_disk, data_blocks), F(terrace_label_disk, meta_start),
	F(terrace_label_disk, meta_blocks),
	{ "name", offsetof(struct terrace_label_disk, name), TERRACE_NAME_BYTES, TEXT },
	{ "stale_until0", 184, 8, NUMBER }, { "stale_until1", 192, 8, NUMBER }, END,
};

#define E(type, name, member) \
	{ name "_addr", offsetof(struct type, member), 8, NUMBER }, \
	{ name "_crc", offsetof(struct type, member) + 8, 4, NUMBER }, \
	{ name "_count", offsetof(struct type, member) + 12, 4, NUMBER }, \
	{ name "_seq", offsetof(struct type, member) + 16, 8, NUMBER }

static const struct field super_fields[] = {
	F(terrace_super_disk, version), U(terrace_super_disk, volume_uuid),
	F(terrace_super_disk, generation), F(terrace_super_disk, compat),
	F(terrace_super_disk, compat_ro), F(terrace_super_disk, incompat),
	F(terrace_super_disk, flags), F(terrace_super_disk, nr_tiers),
	F(terrace_super_disk, region_shift), F(terrace_super_disk, chunk_shift),
	F(terrace_super_disk, virtual_blocks), F(terrace_super_disk, meta_blocks),
	F(terrace_super_disk, journal_start), F(terrace_super_disk, journal_blocks),
	{ "bitmap0_start", 112, 8, NUMBER }, { "bitmap1_start", 120, 8, NUMBER },
	F(terrace_super_disk, bitmap_blocks), F(terrace_super_disk, tail_block_seq),
	F(terrace_super_disk, tail_nonce), F(terrace_super_disk, tail_prev_crc),
	F(terrace_super_disk, map_depth), F(terrace_super_disk, tail_record_seq),
	F(terrace_super_disk, next_id), F(terrace_super_disk, activations),
	E(terrace_super_disk, "map_root", map_root), F(terrace_super_disk, overcommit_blocks), END,
};

static const struct field super_tier_fields[] = {
	U(terrace_super_tier_disk, tier_uuid), F(terrace_super_tier_disk, class),
	F(terrace_super_tier_disk, kind), F(terrace_super_tier_disk, data_blocks),
	F(terrace_super_tier_disk, reserve_blocks),
	E(terrace_super_tier_disk, "space_root", space_root), END,
};

static const struct field journal_fields[] = {
	F(terrace_journal_disk, block_seq), F(terrace_journal_disk, first_record_seq),
	F(terrace_journal_disk, nonce), F(terrace_journal_disk, prev_nonce),
	F(terrace_journal_disk, prev_crc), F(terrace_journal_disk, nr_records),
	F(terrace_journal_disk, flags), U(terrace_journal_disk, volume_uuid), END,
};

static const struct field record_fields[] = {
	F(terrace_record_disk, type), F(terrace_record_disk, flags), F(terrace_record_disk, nr),
	F(terrace_record_disk, aux), F(terrace_record_disk, block), F(terrace_record_disk, new),
	F(terrace_record_disk, old), END,
};

static const struct field page_fields[] = {
	H(index), H(seq), H(generation), H(blocks), H(level), H(tier), H(tree),
	U(terrace_page_disk, volume_uuid), END,
};

static const struct field space_fields[] = {
	H(index), H(seq), H(generation), H(blocks), H(level), H(tier), H(tree),
	U(terrace_page_disk, volume_uuid), F(terrace_space_disk, used), END,
};

static const struct field map_fields[] = {
	H(index), H(seq), H(generation), H(blocks), H(level), H(tier), H(tree),
	U(terrace_page_disk, volume_uuid), F(terrace_map_disk, bytes),
	F(terrace_map_disk, sections), F(terrace_map_disk, age),
	{ "section_type", 72, 2, NUMBER }, { "section_items", 74, 2, NUMBER },
	{ "section_bytes", 76, 4, NUMBER }, END,
};

static const struct field entry_fields[] = {
	{ "addr", 0, 8, NUMBER }, { "crc", 8, 4, NUMBER }, { "count", 12, 4, NUMBER },
	{ "seq", 16, 8, NUMBER }, END,
};

#define PAGE_CRC offsetof(struct terrace_page_disk, crc)
#define PAGE_UUID offsetof(struct terrace_page_disk, volume_uuid)

static const struct shape shapes[] = {
	{ "label", TERRACE_LABEL_MAGIC, 8, 12, 16, label_fields, .list = { 0 } },
	{ "superblock", TERRACE_SUPER_MAGIC, 8, 12, 16, super_fields,
	  { "tiers", offsetof(struct terrace_super_disk, tiers), 128, TERRACE_MAX_TIERS,
	    super_tier_fields }, .bits = { 0 } },
	{ "journal", "TJNL", 4, 4, 48, journal_fields,
	  { "record", 64, 32, TERRACE_RECORDS_PER_BLOCK, record_fields }, .bits = { 0 } },
	{ "directory", "TDIR", 4, PAGE_CRC, PAGE_UUID, page_fields,
	  { "entry", 64, 24, TERRACE_DIR_ENTRIES, entry_fields }, .bits = { 0 } },
	{ "space-page", "TSPC", 4, PAGE_CRC, PAGE_UUID, space_fields, .bits = {
	  "places", offsetof(struct terrace_space_disk, bitmap), TERRACE_CHUNK_BLOCKS } },
	{ "meta-bitmap", "TBIT", 4, PAGE_CRC, PAGE_UUID, page_fields, .bits = {
	  "blocks_used", offsetof(struct terrace_mbit_disk, bitmap), TERRACE_MBIT_BITS } },
	{ "map-page", "TMAP", 4, PAGE_CRC, PAGE_UUID, map_fields, .places = true },
};

#define NR_SHAPES (sizeof(shapes) / sizeof(shapes[0]))
#define PRESENT_AT 80
#define PLACES_AT (PRESENT_AT + TERRACE_REGION_BLOCKS / 8)
#define PLACE_BYTES 5

/* ---- numbers ---------------------------------------------------------------------- */

static u64 get_number(const u8 *at, u32 bytes)
{
	u64 number = 0;

	while (bytes--)
		number = number << 8 | at[bytes];
	return number;
}

static void put_number(u8 *at, u32 bytes, u64 number)
{
	for (; bytes--; number >>= 8)
		*at++ = number;
}

/* ---- to JSON ------------------------------------------------------------------------ */

static void emit_fields(struct json_object *o, const struct field *field, const u8 *data)
{
	char text[TERRACE_NAME_BYTES + 1];

	for (; field->name; field++) {
		struct json_object *value;

		if (field->type == NUMBER) {
			value = json_object_new_uint64(get_number(data + field->at, field->bytes));
		} else if (field->type == UUID) {
			uuid_unparse_lower(data + field->at, text);
			value = json_object_new_string(text);
		} else {
			snprintf(text, sizeof(text), "%.*s", (int)field->bytes, data + field->at);
			value = json_object_new_string(text);
		}
		json_object_object_add(o, field->name, value);
	}
}

static void emit_list(struct json_object *o, const struct list *list, const u8 *data)
{
	static const u8 zero[128];
	struct json_object *array = json_object_new_array();

	for (u32 i = 0; i < list->max; i++) {
		const u8 *at = data + list->at + i * list->stride;
		struct json_object *element;

		if (!memcmp(at, zero, list->stride))
			continue;
		element = json_object_new_object();
		json_object_object_add(element, "i", json_object_new_uint64(i));
		emit_fields(element, list->field, at);
		json_object_array_add(array, element);
	}
	json_object_object_add(o, list->name, array);
}

static bool get_bit(const u8 *data, u64 i)
{
	return data[i / 8] >> (i % 8) & 1;
}

static void emit_bits(struct json_object *o, const struct bits *bits, const u8 *data)
{
	struct json_object *array = json_object_new_array();
	char text[64];

	for (u64 i = 0, end; i < bits->bits; i = end + 1) {
		for (end = i; end < bits->bits && get_bit(data + bits->at, end); end++)
			;
		if (end == i)
			continue;
		snprintf(text, sizeof(text), "%llu-%llu", i, end - 1);
		json_object_array_add(array, json_object_new_string(text));
	}
	json_object_object_add(o, bits->name, array);
}

/* Consecutive blocks at consecutive places. */
static void emit_places(struct json_object *o, const u8 *data, u32 bytes)
{
	struct json_object *array = json_object_new_array(), *run = NULL;
	u64 last = 0, nr = 0, place;
	u32 rank = 0;

	for (u32 i = 0; i < TERRACE_REGION_BLOCKS; i++) {
		if (!get_bit(data + PRESENT_AT, i)) {
			run = NULL;
			continue;
		}
		if (PLACES_AT + (rank + 1) * PLACE_BYTES > bytes)
			break;		/* the bytes say more places than there are */
		place = get_number(data + PLACES_AT + rank++ * PLACE_BYTES, PLACE_BYTES);
		if (run && place == last + (1 << TERRACE_PLACE_TIER_BITS)) {
			json_object_set_int64(json_object_object_get(run, "blocks"), ++nr);
		} else {
			nr = 1;
			run = json_object_new_object();
			json_object_object_add(run, "i", json_object_new_uint64(i));
			json_object_object_add(run, "blocks", json_object_new_int64(1));
			json_object_object_add(run, "tier", json_object_new_uint64(
					       place % TERRACE_MAX_TIERS));
			json_object_object_add(run, "place", json_object_new_uint64(
					       place >> TERRACE_PLACE_TIER_BITS));
			json_object_array_add(array, run);
		}
		last = place;
	}
	json_object_object_add(o, "run", array);
}

static void emit_raw(struct json_object *o, const u8 *data, u32 bytes)
{
	char *text = ctl_alloc(2 * (size_t)bytes + 1);

	for (u32 i = 0; i < bytes; i++)
		sprintf(text + 2 * i, "%02x", data[i]);
	json_object_object_add(o, "raw", json_object_new_string(text));
	free(text);
}

/* ---- from JSON ------------------------------------------------------------------------- */

static bool take_number(struct json_object *o, const char *name, u64 *number)
{
	struct json_object *value;

	const char *text;
	char *end;

	if (!json_object_object_get_ex(o, name, &value))
		return false;
	text = json_object_get_string(value);	/* in the text form all are strings */
	errno = 0;
	*number = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno;
}

static int parse_fields(struct json_object *o, const struct field *field, u8 *data)
{
	for (; field->name; field++) {
		struct json_object *value;
		u64 number;

		if (field->type == NUMBER) {
			if (!take_number(o, field->name, &number) ||
			    (field->bytes < 8 && number >> (8 * field->bytes)))
				return -EINVAL;
			put_number(data + field->at, field->bytes, number);
			continue;
		}
		if (!json_object_object_get_ex(o, field->name, &value))
			return -EINVAL;
		if (field->type == TEXT)
			memcpy(data + field->at, json_object_get_string(value),
			       strnlen(json_object_get_string(value), field->bytes));
		else if (uuid_parse(json_object_get_string(value), data + field->at))
			return -EINVAL;
	}
	return 0;
}

static int parse_list(struct json_object *o, const struct list *list, u8 *data)
{
	struct json_object *array;

	if (!json_object_object_get_ex(o, list->name, &array))
		return 0;
	for (size_t k = 0; k < json_object_array_length(array); k++) {
		struct json_object *element = json_object_array_get_idx(array, k);
		u64 i;

		if (!take_number(element, "i", &i) || i >= list->max ||
		    parse_fields(element, list->field, data + list->at + i * list->stride))
			return -EINVAL;
	}
	return 0;
}

static int parse_bits(struct json_object *o, const struct bits *bits, u8 *data)
{
	struct json_object *array;

	if (!json_object_object_get_ex(o, bits->name, &array))
		return 0;
	for (size_t k = 0; k < json_object_array_length(array); k++) {
		unsigned long long from, to;
		struct json_object *run = json_object_array_get_idx(array, k);

		if (sscanf(json_object_get_string(run), "%llu-%llu", &from, &to) != 2 ||
		    to >= bits->bits || from > to)
			return -EINVAL;
		for (; from <= to; from++)
			data[bits->at + from / 8] |= 1 << (from % 8);
	}
	return 0;
}

static int parse_places(struct json_object *o, u8 *data)
{
	struct json_object *array;
	u32 rank = 0;

	if (!json_object_object_get_ex(o, "run", &array))
		return 0;
	for (size_t k = 0; k < json_object_array_length(array); k++) {
		struct json_object *run = json_object_array_get_idx(array, k);
		u64 i, nr, tier, place;

		if (!take_number(run, "i", &i) || !take_number(run, "blocks", &nr) ||
		    !take_number(run, "tier", &tier) || !take_number(run, "place", &place) ||
		    nr > TERRACE_REGION_BLOCKS || i + nr > TERRACE_REGION_BLOCKS ||
		    tier >= TERRACE_MAX_TIERS)
			return -EINVAL;
		for (; nr; nr--, i++, place++, rank++) {
			data[PRESENT_AT + i / 8] |= 1 << (i % 8);
			put_number(data + PLACES_AT + rank * PLACE_BYTES, PLACE_BYTES,
				   place << TERRACE_PLACE_TIER_BITS | tier);
		}
	}
	return 0;
}

static int parse_raw(const char *text, u8 *data, u32 *nr)
{
	size_t bytes = strlen(text) / 2;
	unsigned int byte;

	if (!bytes || bytes % TERRACE_BLOCK_BYTES || bytes > SHAPE_MAX_BLOCKS * TERRACE_BLOCK_BYTES)
		return -EINVAL;
	for (size_t i = 0; i < bytes; i++) {
		if (sscanf(text + 2 * i, "%2x", &byte) != 1)
			return -EINVAL;
		data[i] = byte;
	}
	*nr = bytes / TERRACE_BLOCK_BYTES;
	return 0;
}

static bool is_page(const struct shape *shape)
{
	return shape->uuid_at == PAGE_UUID && shape->field != journal_fields;
}

int shape_parse(struct json_object *o, const char *kind, void *data, u32 *nr)
{
	const struct shape *shape = shapes;
	struct json_object *raw;
	u64 blocks = 1;
	int r;

	memset(data, 0, SHAPE_MAX_BLOCKS * TERRACE_BLOCK_BYTES);
	if (json_object_object_get_ex(o, "raw", &raw))
		return parse_raw(json_object_get_string(raw), data, nr);
	while (shape < shapes + NR_SHAPES && strcmp(shape->kind, kind))
		shape++;
	if (shape == shapes + NR_SHAPES)
		return -EINVAL;
	if (is_page(shape) && (!take_number(o, "blocks", &blocks) || !blocks ||
			       blocks > SHAPE_MAX_BLOCKS))
		return -EINVAL;
	memcpy(data, shape->magic, shape->magic_bytes);
	r = parse_fields(o, shape->field, data);
	if (!r && shape->list.name)
		r = parse_list(o, &shape->list, data);
	if (!r && shape->bits.name)
		r = parse_bits(o, &shape->bits, data);
	if (!r && shape->places)
		r = parse_places(o, data);
	*nr = blocks;
	put_number((u8 *)data + shape->crc_at, 4,
		   tr_block_crc(data, blocks * TERRACE_BLOCK_BYTES, shape->crc_at));
	return r;
}

/* ---- what is there? ------------------------------------------------------------------------ */

static const struct shape *recognise(const u8 *data, u32 room, const u8 *uuid, u32 *nr)
{
	for (const struct shape *shape = shapes; shape < shapes + NR_SHAPES; shape++) {
		if (memcmp(data, shape->magic, shape->magic_bytes))
			continue;
		*nr = is_page(shape) ? get_number(data + offsetof(struct terrace_page_disk, blocks), 2) : 1;
		if (!*nr || *nr > room || *nr > SHAPE_MAX_BLOCKS ||
		    memcmp(data + shape->uuid_at, uuid, TERRACE_UUID_BYTES) ||
		    get_number(data + shape->crc_at, 4) !=
		    tr_block_crc(data, *nr * TERRACE_BLOCK_BYTES, shape->crc_at))
			return NULL;
		return shape;
	}
	return NULL;
}

struct json_object *shape_emit(const void *data, u32 room, const u8 *volume_uuid,
			       const char **kind, u32 *nr)
{
	const struct shape *shape = recognise(data, room, volume_uuid, nr);
	struct json_object *o;
	void *back;
	u32 nr_back;

	if (!shape)
		return NULL;
	*kind = shape->kind;
	o = json_object_new_object();
	emit_fields(o, shape->field, data);
	if (shape->list.name)
		emit_list(o, &shape->list, data);
	if (shape->bits.name)
		emit_bits(o, &shape->bits, data);
	if (shape->places)
		emit_places(o, data, *nr * TERRACE_BLOCK_BYTES);
	back = ctl_alloc_blocks(SHAPE_MAX_BLOCKS);
	if (shape_parse(o, *kind, back, &nr_back) || nr_back != *nr ||
	    memcmp(back, data, *nr * TERRACE_BLOCK_BYTES))
		emit_raw(o, data, *nr * TERRACE_BLOCK_BYTES);
	free(back);
	return o;
}
