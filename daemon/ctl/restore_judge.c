// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl restore: is the dump one that can be written? Somebody may have changed it. Each item is
 * made into bytes once for this, and has a place that is its own: a label's copy, or blocks of a metadata
 * area that a label of the dump names. So nothing that is written later can be refused, or lie beside it.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uuid/uuid.h>

#include "restore.h"
#include "shape.h"

/* "FILE: line 12 (map-page): WHAT; nothing changed"; JSON has items instead of lines. */
static CTL_PRINTF(4, 5) int bad_item(const struct restore *rs, u32 i, struct json_object *at, const char *format, ...)
{
	struct json_object *o = json_object_array_get_idx(rs->items, i);
	u32 line = at ? restore_line(at) : 0;
	char what[240];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	line = line ? line : restore_line(o);
	ctl_error("%s: %s %u (%.20s): %s; nothing changed", rs->file, line ? "line" : "item", line ? line : i + 1,
		  restore_text(o, "item"), what);
	return -EINVAL;
}

const char *restore_text(struct json_object *o, const char *name)
{
	struct json_object *value;

	return json_object_is_type(o, json_type_object) && json_object_object_get_ex(o, name, &value) &&
	       json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}

/* ~0: there is none. */
u64 restore_meta_block(struct json_object *o)
{
	struct json_object *value;
	const char *text;
	u64 number;
	char *end;

	if (!json_object_object_get_ex(o, "meta_block", &value) || !value)
		return ~0ull;
	text = json_object_get_string(value);
	errno = 0;
	number = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno ? number : ~0ull;
}

bool restore_is_label(struct json_object *o)
{
	return !strcmp(restore_text(o, "item"), "label");
}

static int parse(const struct restore *rs, u32 i, void *data, u32 *nr)
{
	struct json_object *o = json_object_array_get_idx(rs->items, i);
	struct shape_fault why;

	if (!json_object_is_type(o, json_type_object))
		return bad_item(rs, i, NULL, "is not a list of fields");
	if (shape_parse(o, restore_text(o, "item"), data, nr, &why))
		return bad_item(rs, i, why.at, "%s", why.text);
	if (restore_meta_block(o) == ~0ull)
		return bad_item(rs, i, NULL, "meta_block is missing, or not a number");
	return 0;
}

/* ---- labels ---------------------------------------------------------------------------- */

static int judge_label(struct restore *rs, u32 i, const struct tr_label *label)
{
	struct json_object *o = json_object_array_get_idx(rs->items, i);
	char area[16];

	snprintf(area, sizeof(area), "label%u", label->tier_index);
	if (strcmp(restore_text(o, "area"), area))
		return bad_item(rs, i, NULL, "area=%.20s, and it is that of tier %u", restore_text(o, "area"), label->tier_index);
	if (restore_meta_block(o) >= TERRACE_LABEL_COPIES)
		return bad_item(rs, i, NULL, "meta_block=%llu: a label is in blocks 0 and 1", restore_meta_block(o));
	return 0;
}

static int add_label(struct restore *rs, u32 i, const void *block)
{
	struct tr_label label;
	int r = tr_label_decode(&label, block);
	u32 k;

	if (r)
		return bad_item(rs, i, NULL, "%s", r == -EPROTONOSUPPORT ? "a label of a newer format" : "a label with numbers that cannot be");
	r = judge_label(rs, i, &label);
	if (r)
		return r;
	for (k = 0; k < rs->nr_devices && rs->label[k].tier_index != label.tier_index; k++)
		;
	if (k == RESTORE_MAX_DEVICES)
		return bad_item(rs, i, NULL, "more devices than a volume has");
	if (k == rs->nr_devices || label.generation > rs->label[k].generation)
		rs->label[k] = label;
	rs->nr_devices += k == rs->nr_devices;
	if (memcmp(label.volume_uuid, rs->label[0].volume_uuid, TERRACE_UUID_BYTES))
		return bad_item(rs, i, NULL, "a label of another volume");
	return 0;
}

static int by_tier(const void *a, const void *b)
{
	const struct tr_label *x = a, *y = b;

	return (int)x->tier_index - (int)y->tier_index;
}

/* ---- places ------------------------------------------------------------------------------ */

bool restore_target(const struct restore *rs, struct json_object *o, bool mirror, u32 *device, u64 *block)
{
	const char *area = restore_text(o, "area");
	u32 flags = mirror ? TERRACE_LABEL_META_SYNC | TERRACE_LABEL_META_LAZY : TERRACE_LABEL_META;
	u32 use = rs->nr_devices;

	if (strcmp(area, "both") && strcmp(area, mirror ? "mirror" : "primary"))
		return false;
	/* By tier, a metadata device last: it counts, whatever a tier still says. */
	for (u32 k = 0; k < rs->nr_devices; k++)
		if (rs->label[k].flags & flags)
			use = k;
	if (use == rs->nr_devices)
		return false;
	*device = use;
	*block = rs->label[use].meta_start + restore_meta_block(o);
	return true;
}

/* What an item takes of a device. */
struct taken {
	u32 device, item;
	u64 block, nr;
};

struct places {
	struct taken *taken;
	size_t nr, room;
};

static void take(struct places *p, u32 device, u32 item, u64 block, u64 nr)
{
	if (p->nr == p->room) {
		p->room = 2 * p->room + 256;
		p->taken = ctl_realloc(p->taken, p->room * sizeof(*p->taken));
	}
	p->taken[p->nr++] = (struct taken){ device, item, block, nr };
}

static int place_label(struct restore *rs, u32 i, const void *block, struct places *p)
{
	struct json_object *o = json_object_array_get_idx(rs->items, i);
	struct tr_label label;
	u32 k = 0;

	tr_label_decode(&label, block);
	while (rs->label[k].tier_index != label.tier_index)
		k++;
	take(p, k, i, restore_meta_block(o), 1);
	return 0;
}

static int place_item(struct restore *rs, u32 i, u32 nr, struct places *p)
{
	struct json_object *o = json_object_array_get_idx(rs->items, i);
	const char *area = restore_text(o, "area");
	u64 at = restore_meta_block(o), block;
	u32 targets = 0, k;

	for (u32 mirror = 0; mirror < 2; mirror++) {
		if (!restore_target(rs, o, mirror, &k, &block))
			continue;
		if (at >= rs->label[k].meta_blocks || nr > rs->label[k].meta_blocks - at)
			return bad_item(rs, i, NULL, "meta_block=%llu: the %u from there on are not in the area of %llu that the label of tier %u names",
					at, nr, rs->label[k].meta_blocks, rs->label[k].tier_index);
		take(p, k, i, block, nr);
		targets++;
	}
	if (targets != (strcmp(area, "both") ? 1 : 2))
		return bad_item(rs, i, NULL, "area=%.20s: no label of the dump has that (it is primary, mirror or both)", area);
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct taken *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	return x->item < y->item ? -1 : 1;
}

static int judge_places(const struct restore *rs, struct places *p)
{
	if (p->nr)
		qsort(p->taken, p->nr, sizeof(*p->taken), by_place);
	for (size_t k = 1; k < p->nr; k++) {
		const struct taken *a = &p->taken[k - 1], *b = &p->taken[k];
		u32 later = a->item > b->item ? a->item : b->item, other = a->item + b->item - later;
		u32 line = restore_line(json_object_array_get_idx(rs->items, other));

		if (a->device == b->device && b->block < a->block + a->nr)
			return bad_item(rs, later, NULL, "it is where that of %s %u is", line ? "line" : "item",
					line ? line : other + 1);
	}
	return 0;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static int judge_super(struct restore *rs, u32 i, const void *block)
{
	struct tr_super super;
	int r = tr_super_decode(&super, block);

	if (r == -EPROTONOSUPPORT)
		return bad_item(rs, i, NULL, "a superblock of a newer format");
	rs->supers += r != -EBADMSG;	/* a crash has torn it */
	return 0;
}

/* A damaged one may say anything. */
static bool of_this_volume(const struct restore *rs, struct json_object *o)
{
	const char *says = restore_text(o, "volume_uuid");
	u8 uuid[TERRACE_UUID_BYTES];

	return !*says || (!uuid_parse(says, uuid) && !memcmp(uuid, rs->label[0].volume_uuid, TERRACE_UUID_BYTES));
}

static int judge_labels(struct restore *rs, void *data)
{
	int r = 0;
	u32 nr;

	for (u32 i = 0; i < json_object_array_length(rs->items) && !r; i++) {
		r = parse(rs, i, data, &nr);
		if (!r && restore_is_label(json_object_array_get_idx(rs->items, i)))
			r = add_label(rs, i, data);
	}
	qsort(rs->label, rs->nr_devices, sizeof(rs->label[0]), by_tier);
	return r;
}

/* Which device is which is told by it. */
static int judge_tiers(const struct restore *rs)
{
	for (u32 k = 1; k < rs->nr_devices; k++)
		for (u32 i = 0; i < k; i++)
			if (!memcmp(rs->label[i].tier_uuid, rs->label[k].tier_uuid, TERRACE_UUID_BYTES)) {
				ctl_error("%s: the labels of tiers %u and %u have the same tier_uuid; nothing changed", rs->file,
					  rs->label[i].tier_index, rs->label[k].tier_index);
				return -EINVAL;
			}
	return 0;
}

static int judge_item(struct restore *rs, u32 i, void *data, struct places *p)
{
	struct json_object *o = json_object_array_get_idx(rs->items, i);
	u32 nr;
	int r = parse(rs, i, data, &nr);

	if (r)
		return r;
	if (restore_is_label(o))
		return place_label(rs, i, data, p);
	if (!of_this_volume(rs, o))
		return bad_item(rs, i, NULL, "volume_uuid is that of another volume than the label's");
	if (!strcmp(restore_text(o, "item"), "superblock"))
		r = judge_super(rs, i, data);
	return r ? r : place_item(rs, i, nr, p);
}

static int missing(const struct restore *rs, const char *what)
{
	ctl_error("%s: the dump has no %s: was it made with dump --all?", rs->file, what);
	return -EINVAL;
}

int restore_judge(struct restore *rs)
{
	void *data = ctl_alloc_blocks(SHAPE_MAX_BLOCKS);
	struct places p = { 0 };
	int r = judge_labels(rs, data);

	if (!r && !rs->nr_devices)
		r = missing(rs, "label");
	if (!r)
		r = judge_tiers(rs);
	for (u32 i = 0; i < json_object_array_length(rs->items) && !r; i++)
		r = judge_item(rs, i, data, &p);
	if (!r && !rs->supers)
		r = missing(rs, "superblock");
	if (!r)
		r = judge_places(rs, &p);
	free(p.taken);
	free(data);
	return r;
}
