// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The journal in memory. See journal.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <asm/byteorder.h>

#include "journal.h"

u64 journal_meta_block(const struct tr_super *super, u64 i)
{
	return super->journal_start + (super->tail_block_seq + i) % super->journal_blocks;
}

static u8 *block_at(const struct journal *journal, u64 i)
{
	return journal->blocks + i * TERRACE_BLOCK_BYTES;
}

/*
 * The block that did not continue the chain, if it is one of ours: the very
 * next one, but not whole (torn), or one of a later lap of the ring. With a number
 * of another place it is none that was ever written here.
 */
static void judge_end(struct journal *journal, const u8 *block, const struct tr_super *super)
{
	const struct terrace_journal_disk *disk = (const void *)block;
	u32 crc = tr_block_crc(block, sizeof(*disk), offsetof(struct terrace_journal_disk, crc));
	u64 seq = __le64_to_cpu(disk->block_seq);
	bool whole = __le32_to_cpu(disk->crc) == crc;

	if (__le32_to_cpu(disk->magic) != TERRACE_JOURNAL_MAGIC ||
	    memcmp(disk->volume_uuid, super->volume_uuid, TERRACE_UUID_BYTES))
		return;
	journal->torn = !whole && seq == journal->end.block_seq;
	if (whole && seq > journal->end.block_seq && !((seq - journal->end.block_seq) % super->journal_blocks))
		journal->error = -ESTALE;
}

static void count_records(struct journal *journal)
{
	for (u64 b = 0; b < journal->nr_blocks; b++) {
		u32 nr = tr_jblock_nr(block_at(journal, b));

		if (!journal->nr_records && nr)
			journal->first_record = tr_jblock_first_record(block_at(journal, b));
		journal->nr_records += nr;
	}
}

static void apply_resize(void *ctx, const struct tr_record *record, u64 seq, u64 block, u32 i)
{
	struct journal *journal = ctx;

	(void)block;
	(void)i;
	journal->last_record = seq;
	if (record->type == TERRACE_RECORD_RESIZE)
		journal->virtual_blocks = record->new;
}

int journal_read(struct journal *journal, const struct metadata *meta)
{
	const struct tr_super *super = meta->super;
	struct tr_journal_link link = {
		.block_seq = super->tail_block_seq,
		.nonce = super->tail_nonce,
		.crc = super->tail_prev_crc,
	};
	u64 room = 64;
	int r = 0;

	memset(journal, 0, sizeof(*journal));
	journal->last_record = super->tail_record_seq;
	journal->virtual_blocks = super->virtual_blocks;
	journal->blocks = ctl_alloc_blocks(room);
	while (journal->nr_blocks < super->journal_blocks) {
		u64 i = journal->nr_blocks;

		if (i == room) {
			u8 *more = ctl_alloc_blocks(2 * room);

			memcpy(more, journal->blocks, room * TERRACE_BLOCK_BYTES);
			free(journal->blocks);
			journal->blocks = more;
			room *= 2;
		}
		r = metadata_read(meta, journal_meta_block(super, i), 1, block_at(journal, i));
		if (!r)
			r = tr_jblock_check(block_at(journal, i), &link, super->volume_uuid);
		if (r)
			break;
		journal->nr_blocks++;
	}
	journal->end = link;
	if (r == -ENODATA)
		judge_end(journal, block_at(journal, journal->nr_blocks), super);
	else
		journal->error = r;
	count_records(journal);
	journal_each(journal, apply_resize, journal);
	return journal->error;
}

u64 journal_more(const struct journal *journal, const struct metadata *meta)
{
	u64 ring = meta->super->journal_blocks, end = journal->end.block_seq, more = 0;
	void *block = ctl_alloc_blocks(1);

	for (u64 i = journal->nr_blocks; i < ring && !more; i++) {
		u64 at = journal_meta_block(meta->super, i);

		if (!metadata_read(meta, at, 1, block) &&
		    tr_jblock_proves_more(block, &journal->end, meta->super->volume_uuid) &&
		    (tr_jblock_number(block) - end) % ring == i - journal->nr_blocks)
			more = tr_jblock_number(block);
	}
	free(block);
	return more;
}

void journal_free(struct journal *journal)
{
	free(journal->blocks);
	journal->blocks = NULL;
	journal->nr_blocks = 0;
}

/* A block's CRC stands for all before it as well. */
bool journal_wins(const struct journal *a, const struct journal *b)
{
	u64 most = a->nr_blocks < b->nr_blocks ? a->nr_blocks : b->nr_blocks, n = 0;

	while (n < most && ((struct terrace_journal_disk *)block_at(a, n))->crc ==
			   ((struct terrace_journal_disk *)block_at(b, n))->crc)
		n++;
	return tr_jblock_wins(n < a->nr_blocks ? block_at(a, n) : NULL, a->nr_blocks - n,
			      n < b->nr_blocks ? block_at(b, n) : NULL, b->nr_blocks - n);
}

void journal_record(const struct journal *journal, u64 block, u32 i, struct tr_record *record,
		    u64 *seq)
{
	tr_jblock_record(block_at(journal, block), i, record);
	*seq = tr_jblock_first_record(block_at(journal, block)) + i;
}

void journal_each(const struct journal *journal, journal_fn fn, void *ctx)
{
	struct tr_record record;
	u64 seq;

	for (u64 b = 0; b < journal->nr_blocks; b++) {
		u32 nr = tr_jblock_nr(block_at(journal, b));

		for (u32 i = 0; i < nr; i++) {
			journal_record(journal, b, i, &record, &seq);
			fn(ctx, &record, seq, b, i);
		}
	}
}

const char *record_name(u32 type)
{
	static const char *const names[] = {
		[TERRACE_RECORD_MAP] = "map",
		[TERRACE_RECORD_UNMAP] = "unmap",
		[TERRACE_RECORD_DISCARD] = "discard",
		[TERRACE_RECORD_RESIZE] = "resize",
		[TERRACE_RECORD_PACK_ADD] = "pack-add",
		[TERRACE_RECORD_PACK_DROP] = "pack-drop",
		[TERRACE_RECORD_HOME_SET] = "home-set",
		[TERRACE_RECORD_HOME_CLEAR] = "home-clear",
		[TERRACE_RECORD_CLEAN] = "clean",
		[TERRACE_RECORD_PACKED] = "packed",
		[TERRACE_RECORD_PACKED_MASK] = "packed-mask",
		[TERRACE_RECORD_INDEX_ADD] = "index-add",
		[TERRACE_RECORD_INDEX_DROP] = "index-drop",
	};

	return type && type < sizeof(names) / sizeof(names[0]) ? names[type] : "?";
}
