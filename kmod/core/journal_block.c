// SPDX-License-Identifier: GPL-2.0
/*
 * Journal blocks: filling one, sealing it, and the test that extends the
 * chain by one block when the journal is scanned. See journal_block.h for
 * why the chain cannot reach beyond a hole.
 */
#include <linux/errno.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <asm/byteorder.h>
#include "format.h"
#include "journal_block.h"

#define CRC_AT		offsetof(struct terrace_journal_disk, crc)
#define MAX_LAG		255u
#define MAX_REGIONS	(TR_MAX_BLOCKS >> TERRACE_REGION_SHIFT)

void tr_jblock_start(void *block, const struct tr_journal_link *link, u64 nonce, const u8 *uuid)
{
	struct terrace_journal_disk *disk = block;

	memset(disk, 0, sizeof(*disk));
	disk->magic = cpu_to_le32(TERRACE_JOURNAL_MAGIC);
	disk->block_seq = cpu_to_le64(link->block_seq);
	disk->first_record_seq = cpu_to_le64(link->record_seq);
	disk->nonce = cpu_to_le64(nonce);
	disk->prev_nonce = cpu_to_le64(link->nonce);
	disk->prev_crc = cpu_to_le32(link->crc);
	disk->flags = nonce != link->nonce ? TERRACE_JOURNAL_FIRST : 0;
	memcpy(disk->volume_uuid, uuid, TERRACE_UUID_BYTES);
}

void tr_jblock_relink(void *block, const struct tr_journal_link *link)
{
	struct terrace_journal_disk *disk = block;

	disk->block_seq = cpu_to_le64(link->block_seq);
	disk->first_record_seq = cpu_to_le64(link->record_seq);
	disk->prev_nonce = cpu_to_le64(link->nonce);
	disk->prev_crc = cpu_to_le32(link->crc);
	disk->flags = disk->nonce != disk->prev_nonce ? TERRACE_JOURNAL_FIRST : 0;
}

u32 tr_jblock_append(void *block, const struct tr_record *record)
{
	struct terrace_journal_disk *disk = block;
	u32 nr = le16_to_cpu(disk->nr_records);
	struct terrace_record_disk *to = &disk->record[nr];

	to->type = record->type;
	to->flags = 0;
	to->nr = cpu_to_le16(record->nr);
	to->aux = cpu_to_le32(record->aux);
	to->block = cpu_to_le64(record->block);
	to->new = cpu_to_le64(record->new);
	to->old = cpu_to_le64(record->old);
	disk->nr_records = cpu_to_le16(nr + 1);
	return nr + 1;
}

void tr_jblock_follow(void *block, u64 durable)
{
	struct terrace_journal_disk *disk = block;
	u64 lag = le64_to_cpu(disk->block_seq) + 1 - durable;

	disk->lag = lag <= MAX_LAG ? lag : 0;
}

void tr_jblock_seal(void *block, struct tr_journal_link *link)
{
	struct terrace_journal_disk *disk = block;
	u32 crc = tr_block_crc(disk, sizeof(*disk), CRC_AT);

	disk->crc = cpu_to_le32(crc);
	link->block_seq++;
	link->record_seq += le16_to_cpu(disk->nr_records);
	link->nonce = le64_to_cpu(disk->nonce);
	link->crc = crc;
}

u32 tr_jblock_nr(const void *block)
{
	const struct terrace_journal_disk *disk = block;

	return le16_to_cpu(disk->nr_records);
}

u64 tr_jblock_first_record(const void *block)
{
	const struct terrace_journal_disk *disk = block;

	return le64_to_cpu(disk->first_record_seq);
}

void tr_jblock_record(const void *block, u32 i, struct tr_record *record)
{
	const struct terrace_journal_disk *disk = block;
	const struct terrace_record_disk *from = &disk->record[i];

	record->type = from->type;
	record->nr = le16_to_cpu(from->nr);
	record->aux = le32_to_cpu(from->aux);
	record->block = le64_to_cpu(from->block);
	record->new = le64_to_cpu(from->new);
	record->old = le64_to_cpu(from->old);
}

/* The rule of journal_block.h; the CRC is known to be right. */
static bool continues(const struct terrace_journal_disk *disk, const struct tr_journal_link *link,
		      const u8 *uuid)
{
	bool first = disk->flags & TERRACE_JOURNAL_FIRST;
	u64 nonce = le64_to_cpu(disk->nonce);

	if (memcmp(disk->volume_uuid, uuid, TERRACE_UUID_BYTES) ||
	    le64_to_cpu(disk->block_seq) != link->block_seq ||
	    le32_to_cpu(disk->prev_crc) != link->crc ||
	    le64_to_cpu(disk->prev_nonce) != link->nonce)
		return false;
	if (link->record_seq && le64_to_cpu(disk->first_record_seq) != link->record_seq)
		return false;
	return first || nonce == link->nonce;
}

int tr_jblock_check(const void *block, struct tr_journal_link *link, const u8 *uuid)
{
	const struct terrace_journal_disk *disk = block;
	struct tr_record record;
	u32 i, nr = le16_to_cpu(disk->nr_records);
	u32 crc;

	if (le32_to_cpu(disk->magic) != TERRACE_JOURNAL_MAGIC)
		return -ENODATA;
	crc = tr_block_crc(disk, sizeof(*disk), CRC_AT);
	if (le32_to_cpu(disk->crc) != crc || !continues(disk, link, uuid))
		return -ENODATA;

	if (nr > TERRACE_RECORDS_PER_BLOCK ||
	    disk->flags & ~TERRACE_JOURNAL_FIRST)
		return -EUCLEAN;
	for (i = 0; i < nr; i++) {
		tr_jblock_record(block, i, &record);
		if (tr_record_check(&record))
			return -EUCLEAN;
	}
	link->block_seq++;
	link->record_seq = le64_to_cpu(disk->first_record_seq) + nr;
	link->nonce = le64_to_cpu(disk->nonce);
	link->crc = crc;
	return 0;
}

static bool is_first(const struct terrace_journal_disk *disk)
{
	return disk->flags & TERRACE_JOURNAL_FIRST;
}

/* The first block of which @disk does not say that it was durable before. */
static u64 durable_before(const struct terrace_journal_disk *disk)
{
	u64 seq = le64_to_cpu(disk->block_seq), lag = TR_JOURNAL_IN_FLIGHT;

	if (is_first(disk))
		lag = 0;
	else if (disk->lag && disk->lag <= lag)
		lag = disk->lag - 1;
	return seq > lag ? seq - lag : 0;
}

bool tr_jblock_proves_more(const void *block, const struct tr_journal_link *end, const u8 *uuid)
{
	const struct terrace_journal_disk *disk = block;

	return le32_to_cpu(disk->magic) == TERRACE_JOURNAL_MAGIC &&
	       !memcmp(disk->volume_uuid, uuid, TERRACE_UUID_BYTES) &&
	       durable_before(disk) > end->block_seq &&
	       le32_to_cpu(disk->crc) == tr_block_crc(disk, sizeof(*disk), CRC_AT);
}

u64 tr_jblock_number(const void *block)
{
	const struct terrace_journal_disk *disk = block;

	return le64_to_cpu(disk->block_seq);
}

bool tr_jblock_wins(const void *a, u64 a_nr, const void *b, u64 b_nr)
{
	if (!a_nr || !b_nr || is_first(a) == is_first(b))
		return a_nr > b_nr;
	return is_first(a);
}

/* @place .. @place+@nr-1 exist on some tier. */
static bool places_ok(u64 place, u32 nr)
{
	return place < TERRACE_NO_PLACE &&
	       tr_place_index(place) + nr - 1 <= TERRACE_MAX_PLACE_INDEX;
}

static bool old_ok(const struct tr_record *record)
{
	return record->old == TERRACE_NO_PLACE || places_ok(record->old, record->nr);
}

/* Blocks of one region. */
static bool blocks_ok(const struct tr_record *record)
{
	return record->nr && record->block < TR_MAX_BLOCKS &&
	       record->block % TERRACE_REGION_BLOCKS + record->nr <= TERRACE_REGION_BLOCKS;
}

static bool pack_run_ok(const struct tr_record *record, u32 max)
{
	return record->nr && record->nr <= max && record->old && record->block < MAX_REGIONS &&
	       places_ok(record->new, record->nr);
}

/* Bits for its blocks only, and some. */
static bool mask_ok(const struct tr_record *record)
{
	return record->nr <= 64 && record->old &&
	       !(record->nr < 64 && record->old >> record->nr);
}

static bool record_ok(const struct tr_record *record)
{
	switch (record->type) {
	case TERRACE_RECORD_MAP:
		return blocks_ok(record) && places_ok(record->new, record->nr) && old_ok(record);
	case TERRACE_RECORD_UNMAP:
		return blocks_ok(record) && old_ok(record);
	case TERRACE_RECORD_DISCARD:
		return record->new && record->block < MAX_REGIONS &&
		       record->new <= MAX_REGIONS - record->block;
	case TERRACE_RECORD_RESIZE:
		return record->new && record->new <= TR_MAX_BLOCKS;
	case TERRACE_RECORD_PACK_ADD:
	case TERRACE_RECORD_PACK_DROP:
		return pack_run_ok(record, TERRACE_PACK_MAX_BLOCKS);
	case TERRACE_RECORD_INDEX_ADD:
	case TERRACE_RECORD_INDEX_DROP:
		return pack_run_ok(record, TERRACE_PACK_HEADER_BLOCKS);
	case TERRACE_RECORD_PACKED:
		return blocks_ok(record) && record->new && old_ok(record);
	case TERRACE_RECORD_PACKED_MASK:
		return blocks_ok(record) && record->new && mask_ok(record);
	case TERRACE_RECORD_HOME_SET:
	case TERRACE_RECORD_HOME_CLEAR:
		return blocks_ok(record) && record->aux < TERRACE_MAX_TIERS && old_ok(record);
	case TERRACE_RECORD_CLEAN:
		return blocks_ok(record) && places_ok(record->new, record->nr) && record->old &&
		       !(record->aux & ~TERRACE_CLEAN_KEPT);
	}
	return false;
}

int tr_record_check(const struct tr_record *record)
{
	return record_ok(record) ? 0 : -EUCLEAN;
}
