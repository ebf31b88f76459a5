// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl dump journal: every block from the tail to the end of the chain.
 */
#include <asm/byteorder.h>

#include "dump.h"
#include "journal.h"

/* Only the fields that mean something for this type. */
static struct json_object *record_object(const struct tr_record *record, u64 seq)
{
	struct json_object *o = json_object_new_object();

	add_u64(o, "seq", seq);
	add_text(o, "type", record_name(record->type));
	switch (record->type) {
	case TERRACE_RECORD_DISCARD:
		add_u64(o, "region", record->block);
		add_u64(o, "regions", record->new);
		if (record->old)
			add_u64(o, "repeats", record->old);
		break;
	case TERRACE_RECORD_RESIZE:
		add_u64(o, "virtual_blocks", record->new);
		break;
	case TERRACE_RECORD_PACK_ADD:
	case TERRACE_RECORD_PACK_DROP:
	case TERRACE_RECORD_INDEX_ADD:
	case TERRACE_RECORD_INDEX_DROP:
		add_u64(o, "region", record->block);
		add_u64(o, "id", record->old);
		add_u64(o, "blocks", record->nr);
		add_place(o, "", record->new);
		if (record->type == TERRACE_RECORD_PACK_ADD)
			add_hex(o, "header_crc", record->aux);
		break;
	case TERRACE_RECORD_PACKED:
		add_u64(o, "block", record->block);
		add_u64(o, "blocks", record->nr);
		add_u64(o, "id", record->new);
		add_place(o, "old_", record->old);
		break;
	case TERRACE_RECORD_PACKED_MASK:
		add_u64(o, "block", record->block);
		add_hex(o, "mask", record->old);
		add_u64(o, "id", record->new);
		break;
	case TERRACE_RECORD_CLEAN:
		add_u64(o, "block", record->block);
		add_u64(o, "blocks", record->nr);
		add_place(o, "", record->new);
		add_u64(o, "id", record->old);
		add_bool(o, "kept", record->aux & TERRACE_CLEAN_KEPT);
		break;
	case TERRACE_RECORD_HOME_SET:
	case TERRACE_RECORD_HOME_CLEAR:
		add_u64(o, "block", record->block);
		add_u64(o, "blocks", record->nr);
		add_u64(o, "tier", record->aux);
		add_place(o, "old_", record->old);
		break;
	default:
		add_u64(o, "block", record->block);
		add_u64(o, "blocks", record->nr);
		if (record->type == TERRACE_RECORD_MAP)
			add_place(o, "", record->new);
		add_place(o, "old_", record->old);
	}
	return o;
}

static void dump_block(struct dump *d, const struct journal *j, u64 b)
{
	const struct terrace_journal_disk *disk = (void *)(j->blocks + b * TERRACE_BLOCK_BYTES);
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();
	struct tr_record record;
	u64 seq;

	add_u64(o, "block_seq", __le64_to_cpu(disk->block_seq));
	add_u64(o, "meta_block", journal_meta_block(d->vol.super, b));
	add_hex(o, "nonce", __le64_to_cpu(disk->nonce));
	add_bool(o, "first", disk->flags & TERRACE_JOURNAL_FIRST);
	add_u64(o, "first_record", __le64_to_cpu(disk->first_record_seq));
	for (u32 i = 0; i < tr_jblock_nr(disk); i++) {
		journal_record(j, b, i, &record, &seq);
		json_object_array_add(list, record_object(&record, seq));
	}
	json_object_object_add(o, "record", list);
	dump_item(d, "journal", o);
}

void dump_journal(struct dump *d)
{
	struct journal j;

	if (journal_read(&j, d->vol.meta))
		problem(&d->findings, where("%s: journal block %llu", d->vol.meta->dev->path,
					    j.end.block_seq),
			"%s", decode_strerror(j.error));
	for (u64 b = 0; b < j.nr_blocks; b++)
		if (dump_wanted(d, b))
			dump_block(d, &j, b);
	journal_free(&j);
}
