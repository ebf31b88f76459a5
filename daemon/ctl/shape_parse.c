// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From JSON to bytes. See shape.h. Whatever the object says: what is not possible is refused with the
 * name of it, and nothing is written beside the structure.
 */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uuid/uuid.h>

#include "shape_table.h"

/* ---- what is wrong ---------------------------------------------------------------- */

struct parse {
	struct shape_fault *fault;
	const char *list;		/* in one of its elements, NULL: in the item itself */
	size_t nr;			/* which one, counted from 1 */
	struct json_object *element;
};

static CTL_PRINTF(2, 3) int fault(const struct parse *p, const char *format, ...)
{
	char *text = p->fault->text;
	size_t room = sizeof(p->fault->text);
	int used = 0;
	va_list args;

	if (p->list)
		used = snprintf(text, room, "%s %zu: ", p->list, p->nr);
	va_start(args, format);
	vsnprintf(text + used, room - used, format, args);
	va_end(args);
	p->fault->at = p->list ? p->element : NULL;
	return -EINVAL;
}

/* In the text form all values are strings. */
static const char *word_of(struct json_object *value)
{
	if (json_object_is_type(value, json_type_string) || json_object_is_type(value, json_type_int))
		return json_object_get_string(value);
	return NULL;
}

static bool read_number(const char *text, char **end, u64 *number)
{
	errno = 0;
	*number = *text >= '0' && *text <= '9' ? strtoull(text, end, 10) : 0;
	return *text >= '0' && *text <= '9' && !errno;
}

static int take_number(const struct parse *p, struct json_object *o, const char *name, u64 most, u64 *number)
{
	struct json_object *value;
	const char *text;
	char *end;

	if (!json_object_object_get_ex(o, name, &value))
		return fault(p, "%s is missing", name);
	text = word_of(value);
	if (!text)
		return fault(p, "%s is not a number", name);
	if (!read_number(text, &end, number) || *end)
		return fault(p, "%s=%.30s is not a number from 0 to %llu", name, text, most);
	if (*number > most)
		return fault(p, "%s=%.30s is more than %llu", name, text, most);
	return 0;
}

/* ---- fields -------------------------------------------------------------------------- */

static void put_number(u8 *at, u32 bytes, u64 number)
{
	for (; bytes--; number >>= 8)
		*at++ = number;
}

static int parse_text(const struct parse *p, const struct field *field, struct json_object *value, u8 *data)
{
	const char *text = json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
	size_t bytes = text ? json_object_get_string_len(value) : 0;

	if (!text)
		return fault(p, "%s is not a text", field->name);
	if (field->type == UUID)
		return uuid_parse(text, data + field->at) ? fault(p, "%s=%.40s is not a UUID", field->name, text) : 0;
	if (bytes > field->bytes || strlen(text) != bytes)
		return fault(p, "%s has more than %u bytes, or a zero byte", field->name, field->bytes);
	memcpy(data + field->at, text, bytes);
	return 0;
}

static int parse_field(const struct parse *p, const struct field *field, struct json_object *o, u8 *data)
{
	struct json_object *value;
	u64 number;
	int r;

	if (field->type == NUMBER) {
		r = take_number(p, o, field->name, ~0ull >> (64 - 8 * field->bytes), &number);
		if (!r)
			put_number(data + field->at, field->bytes, number);
		return r;
	}
	if (!json_object_object_get_ex(o, field->name, &value))
		return fault(p, "%s is missing", field->name);
	return parse_text(p, field, value, data);
}

static int parse_fields(const struct parse *p, const struct field *field, struct json_object *o, u8 *data)
{
	int r = 0;

	for (; field->name && !r; field++)
		r = parse_field(p, field, o, data);
	return r;
}

static bool is_one_of(const char *name, const struct field *field, const char *const *others)
{
	for (; field && field->name; field++)
		if (!strcmp(name, field->name))
			return true;
	for (; *others; others++)
		if (!strcmp(name, *others))
			return true;
	return false;
}

/* A name that is spelt wrong would be a value that is left out. */
static int check_names(const struct parse *p, struct json_object *o, const struct field *field, const char *const *others)
{
	json_object_object_foreach(o, name, value) {
		(void)value;
		if (!is_one_of(name, field, others))
			return fault(p, "%.40s is no field of it", name);
	}
	return 0;
}

/* ---- lists ----------------------------------------------------------------------------- */

/* The list of that name, *@nr: how many are in it; 0, also without it. */
static int take_list(const struct parse *p, struct json_object *o, const char *name, struct json_object **array, size_t *nr)
{
	*nr = 0;
	if (!json_object_object_get_ex(o, name, array))
		return 0;
	if (!json_object_is_type(*array, json_type_array))
		return fault(p, "%s is not a list", name);
	*nr = json_object_array_length(*array);
	return 0;
}

static void enter(struct parse *p, const char *list, struct json_object *array, size_t k)
{
	p->list = list;
	p->nr = k + 1;
	p->element = json_object_array_get_idx(array, k);
}

static int parse_element(const struct parse *p, const struct list *list, u64 *next, u8 *data)
{
	static const char *const others[] = { "i", NULL };
	u64 i;
	int r;

	if (!json_object_is_type(p->element, json_type_object))
		return fault(p, "is not a list of fields");
	r = take_number(p, p->element, "i", list->max - 1, &i);
	if (!r && i < *next)
		return fault(p, "i=%llu comes after i=%llu", i, *next - 1);
	*next = i + 1;
	if (!r)
		r = check_names(p, p->element, list->field, others);
	return r ? r : parse_fields(p, list->field, p->element, data + list->at + i * list->stride);
}

static int parse_list(struct parse *p, struct json_object *o, const struct list *list, u8 *data)
{
	struct json_object *array;
	u64 next = 0;
	size_t nr;
	int r = take_list(p, o, list->name, &array, &nr);

	for (size_t k = 0; k < nr && !r; k++) {
		enter(p, list->name, array, k);
		r = parse_element(p, list, &next, data);
	}
	p->list = NULL;
	return r;
}

/* "FROM-TO" */
static int parse_range(const struct parse *p, const struct bits *bits, u64 *next, u8 *data)
{
	const char *text = word_of(p->element);
	u64 from, to;
	char *end;

	if (!text || !read_number(text, &end, &from) || *end != '-' || !read_number(end + 1, &end, &to) || *end)
		return fault(p, "%.40s is not a range of two numbers, as 0-7", text ? text : "what is there");
	if (to < from || from < *next || to >= bits->bits)
		return fault(p, "%.40s: the ranges go up, to at most %u", text, bits->bits - 1);
	for (; from <= to; from++)
		data[bits->at + from / 8] |= 1 << (from % 8);
	*next = to + 1;
	return 0;
}

static int parse_bits(struct parse *p, struct json_object *o, const struct bits *bits, u8 *data)
{
	struct json_object *array;
	u64 next = 0;
	size_t nr;
	int r = take_list(p, o, bits->name, &array, &nr);

	for (size_t k = 0; k < nr && !r; k++) {
		enter(p, bits->name, array, k);
		r = parse_range(p, bits, &next, data);
	}
	p->list = NULL;
	return r;
}

/* ---- places ------------------------------------------------------------------------------ */

struct run {
	u64 i, blocks, tier, place;
};

static int take_run(const struct parse *p, struct run *run)
{
	static const char *const names[] = { "i", "blocks", "tier", "place", NULL };
	struct json_object *o = p->element;
	int r;

	if (!json_object_is_type(o, json_type_object))
		return fault(p, "is not a list of fields");
	r = check_names(p, o, NULL, names);
	if (!r)
		r = take_number(p, o, "i", TERRACE_REGION_BLOCKS - 1, &run->i);
	if (!r)
		r = take_number(p, o, "blocks", TERRACE_REGION_BLOCKS - run->i, &run->blocks);
	if (!r)
		r = take_number(p, o, "tier", TERRACE_MAX_TIERS - 1, &run->tier);
	if (!r)
		r = take_number(p, o, "place", (TERRACE_NO_PLACE >> TERRACE_PLACE_TIER_BITS) + 1 - run->blocks, &run->place);
	return r;
}

/* In the order of their blocks; @page_blocks: how long the page says it is. */
static int parse_places(struct parse *p, struct json_object *o, u64 page_blocks, u8 *data)
{
	u64 room = (page_blocks * TERRACE_BLOCK_BYTES - PLACES_AT) / PLACE_BYTES, next = 0, rank = 0;
	struct json_object *array;
	struct run run;
	size_t nr;
	int r = take_list(p, o, "run", &array, &nr);

	for (size_t k = 0; k < nr && !r; k++) {
		enter(p, "run", array, k);
		r = take_run(p, &run);
		if (!r && run.i < next)
			r = fault(p, "i=%llu: the run before it goes to %llu", run.i, next - 1);
		else if (!r && run.blocks > room - rank)
			r = fault(p, "has no room: a page of blocks=%llu has %llu places", page_blocks, room);
		for (; !r && run.blocks; run.blocks--, run.i++, run.place++, rank++) {
			data[PRESENT_AT + run.i / 8] |= 1 << (run.i % 8);
			put_number(data + PLACES_AT + rank * PLACE_BYTES, PLACE_BYTES,
				   run.place << TERRACE_PLACE_TIER_BITS | run.tier);
		}
		next = run.i;
	}
	p->list = NULL;
	return r;
}

/* ---- all of it ------------------------------------------------------------------------------ */

static int hex_digit(char c)
{
	const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c) : NULL;

	return at ? at - digits : -1;
}

/* It counts alone, whatever else the item says. */
static int parse_raw(const struct parse *p, const struct shape *shape, struct json_object *raw, u8 *data, u32 *nr)
{
	const char *text = json_object_is_type(raw, json_type_string) ? json_object_get_string(raw) : "";
	size_t digits = strlen(text), blocks = digits / (2 * TERRACE_BLOCK_BYTES);

	if (!blocks || digits % (2 * TERRACE_BLOCK_BYTES) || blocks > (shape_is_page(shape) ? SHAPE_MAX_BLOCKS : 1))
		return fault(p, "raw has %zu digits, and not two for each byte of a block of %u", digits, TERRACE_BLOCK_BYTES);
	for (size_t i = 0; i < digits; i += 2) {
		int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);

		if (high < 0 || low < 0)
			return fault(p, "raw has '%.2s' where a byte should be", text + i);
		data[i / 2] = high << 4 | low;
	}
	if (memcmp(data, shape->magic, shape->magic_bytes))
		return fault(p, "raw does not begin as a %s does", shape->kind);
	*nr = blocks;
	return 0;
}

static int parse_item(struct parse *p, const struct shape *shape, struct json_object *o, u8 *data, u32 *nr)
{
	const char *const others[] = {
		"item", "area", "meta_block", shape->places ? "run" : "item", shape->list.name ? shape->list.name : "item",
		shape->bits.name ? shape->bits.name : "item", NULL,
	};
	u64 blocks = 1;
	int r = check_names(p, o, shape->field, others);

	memcpy(data, shape->magic, shape->magic_bytes);
	if (!r)
		r = parse_fields(p, shape->field, o, data);
	if (!r && shape_is_page(shape))
		r = take_number(p, o, "blocks", SHAPE_MAX_BLOCKS, &blocks);
	if (!r && !blocks)
		r = fault(p, "blocks=0: there is no such page");
	if (!r && shape->list.name)
		r = parse_list(p, o, &shape->list, data);
	if (!r && shape->bits.name)
		r = parse_bits(p, o, &shape->bits, data);
	if (!r && shape->places)
		r = parse_places(p, o, blocks, data);
	if (r)
		return r;
	*nr = blocks;
	put_number(data + shape->crc_at, 4, tr_block_crc(data, blocks * TERRACE_BLOCK_BYTES, shape->crc_at));
	return 0;
}

int shape_parse(struct json_object *o, const char *kind, void *data, u32 *nr, struct shape_fault *why)
{
	struct parse p = { .fault = why };
	const struct shape *shape = shapes;
	struct json_object *raw;

	memset(data, 0, SHAPE_MAX_BLOCKS * TERRACE_BLOCK_BYTES);
	while (shape < shapes + NR_SHAPES && strcmp(shape->kind, kind))
		shape++;
	if (shape == shapes + NR_SHAPES)
		return fault(&p, "there is no such structure");
	if (json_object_object_get_ex(o, "raw", &raw))
		return parse_raw(&p, shape, raw, data, nr);
	return parse_item(&p, shape, o, data, nr);
}
