// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl dump super: labels and superblocks.
 */
#include "dump.h"
#include "names.h"

struct flag_name {
	u32 flag;
	const char *name;
};

static const struct flag_name label_flags[] = {
	{ TERRACE_LABEL_ATOMIC, "atomic" },
	{ TERRACE_LABEL_META, "meta" },
	{ TERRACE_LABEL_META_SYNC, "meta-sync" },
	{ TERRACE_LABEL_META_LAZY, "meta-lazy" },
	{ 0, NULL },
};

static const struct flag_name super_flags[] = {
	{ TERRACE_SUPER_CLEAN, "clean" },
	{ TERRACE_SUPER_LAZY, "lazy" },
	{ TERRACE_SUPER_ALONE, "alone" },
	{ TERRACE_SUPER_LAZY_LOST, "lazy-lost" },
	{ 0, NULL },
};

static void add_flags(struct json_object *o, u32 flags, const struct flag_name *names)
{
	struct json_object *list = json_object_new_array();

	for (; names->name; names++)
		if (flags & names->flag)
			json_object_array_add(list, json_object_new_string(names->name));
	json_object_object_add(o, "flag", list);
}

void dump_labels(struct dump *d)
{
	for (u32 i = 0; i < d->vol.nr_devices; i++) {
		const struct tr_label *label = &d->vol.label[i];
		struct json_object *o;

		if (!label->version)
			continue;	/* none could be read */
		o = json_object_new_object();
		add_text(o, "device", d->vol.dev[i].path);
		add_text(o, "name", label->name);
		add_text(o, "volume_uuid", uuid_text(label->volume_uuid));
		add_text(o, "tier_uuid", uuid_text(label->tier_uuid));
		add_u64(o, "generation", label->generation);
		add_u64(o, "tier", label->tier_index);
		add_text(o, "class", class_name(label->class));
		add_text(o, "kind", kind_name(label->kind));
		add_u64(o, "atomic_bytes", label->atomic_bytes);
		add_u64(o, "align_blocks", label->align_blocks);
		add_u64(o, "device_blocks", label->device_blocks);
		add_u64(o, "data_start", label->data_start);
		add_u64(o, "data_blocks", label->data_blocks);
		add_u64(o, "meta_start", label->meta_start);
		add_u64(o, "meta_blocks", label->meta_blocks);
		add_flags(o, label->flags, label_flags);
		dump_item(d, "label", o);
	}
}

static void add_entry(struct json_object *o, const char *name, const struct tr_entry *entry)
{
	char key[64];

	if (!entry->block)
		return;
	snprintf(key, sizeof(key), "%s_block", name);
	add_u64(o, key, entry->block);
	snprintf(key, sizeof(key), "%s_count", name);
	add_u64(o, key, entry->count);
	snprintf(key, sizeof(key), "%s_seq", name);
	add_u64(o, key, entry->seq);
}

static struct json_object *tier_list(const struct tr_super *super)
{
	struct json_object *list = json_object_new_array();

	for (u32 i = 0; i < super->nr_tiers; i++) {
		const struct tr_super_tier *tier = &super->tier[i];
		struct json_object *o = json_object_new_object();

		add_u64(o, "number", i);
		add_text(o, "uuid", uuid_text(tier->uuid));
		add_text(o, "class", class_name(tier->class));
		add_text(o, "kind", kind_name(tier->kind));
		add_u64(o, "data_blocks", tier->data_blocks);
		add_u64(o, "reserve_blocks", tier->reserve_blocks);
		add_entry(o, "space_root", &tier->space_root);
		json_object_array_add(list, o);
	}
	return list;
}

static void dump_copy(struct dump *d, const struct metadata *meta, u32 copy)
{
	const struct tr_super *super = &meta->copy[copy];
	struct json_object *o = json_object_new_object();

	add_text(o, "device", meta->dev->path);
	add_text(o, "role", meta->name);
	add_u64(o, "copy", copy);
	add_bool(o, "current", super == d->vol.super);
	add_u64(o, "generation", super->generation);
	add_hex(o, "compat", super->compat);
	add_hex(o, "compat_ro", super->compat_ro);
	add_hex(o, "incompat", super->incompat);
	add_u64(o, "virtual_blocks", super->virtual_blocks);
	add_u64(o, "overcommit_blocks", super->overcommit_blocks);
	add_u64(o, "meta_blocks", super->meta_blocks);
	add_u64(o, "journal_start", super->journal_start);
	add_u64(o, "journal_blocks", super->journal_blocks);
	add_u64(o, "bitmap0_start", super->bitmap_start[0]);
	add_u64(o, "bitmap1_start", super->bitmap_start[1]);
	add_u64(o, "bitmap_blocks", super->bitmap_blocks);
	add_u64(o, "tail_block_seq", super->tail_block_seq);
	add_hex(o, "tail_nonce", super->tail_nonce);
	add_hex(o, "tail_prev_crc", super->tail_prev_crc);
	add_u64(o, "tail_record_seq", super->tail_record_seq);
	add_u64(o, "next_id", super->next_id);
	add_u64(o, "activations", super->activations);
	add_u64(o, "map_depth", super->map_depth);
	add_entry(o, "map_root", &super->map_root);
	add_flags(o, super->flags, super_flags);
	json_object_object_add(o, "tier", tier_list(super));
	dump_item(d, "superblock", o);
}

void dump_supers(struct dump *d)
{
	const struct metadata *meta[] = { &d->vol.primary, &d->vol.mirror };

	dump_labels(d);
	for (u32 i = 0; i < 2; i++)
		for (u32 copy = 0; meta[i]->dev && copy < 2; copy++)
			if (!meta[i]->state[copy])
				dump_copy(d, meta[i], copy);
}
