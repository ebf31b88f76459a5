// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From bytes to JSON. See shape.h.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uuid/uuid.h>

#include "shape_table.h"

static u64 get_number(const u8 *at, u32 bytes)
{
	u64 number = 0;

	while (bytes--)
		number = number << 8 | at[bytes];
	return number;
}

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

/* ---- what is there? ------------------------------------------------------------------------ */

static const struct shape *begins_as(const u8 *data)
{
	const struct shape *shape = shapes;

	while (shape < shapes + NR_SHAPES && memcmp(data, shape->magic, shape->magic_bytes))
		shape++;
	return shape < shapes + NR_SHAPES ? shape : NULL;
}

static const struct shape *recognise(const u8 *data, u32 room, const u8 *uuid, u32 *nr)
{
	const struct shape *shape = begins_as(data);

	if (!shape)
		return NULL;
	*nr = shape_is_page(shape) ? get_number(data + offsetof(struct terrace_page_disk, blocks), 2) : 1;
	if (!*nr || *nr > room || *nr > SHAPE_MAX_BLOCKS || memcmp(data + shape->uuid_at, uuid, TERRACE_UUID_BYTES) ||
	    get_number(data + shape->crc_at, 4) != tr_block_crc(data, *nr * TERRACE_BLOCK_BYTES, shape->crc_at))
		return NULL;
	return shape;
}

struct json_object *shape_emit_damaged(const void *data, const char **kind)
{
	const struct shape *shape = begins_as(data);
	struct json_object *o;

	if (!shape)
		return NULL;
	*kind = shape->kind;
	o = json_object_new_object();
	emit_raw(o, data, TERRACE_BLOCK_BYTES);
	return o;
}

struct json_object *shape_emit(const void *data, u32 room, const u8 *volume_uuid,
			       const char **kind, u32 *nr)
{
	const struct shape *shape = recognise(data, room, volume_uuid, nr);
	struct shape_fault why;
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
	if (shape_parse(o, *kind, back, &nr_back, &why) || nr_back != *nr ||
	    memcmp(back, data, *nr * TERRACE_BLOCK_BYTES))
		emit_raw(o, data, *nr * TERRACE_BLOCK_BYTES);
	free(back);
	return o;
}
