// SPDX-License-Identifier: GPL-2.0
/*
 * Owner blocks and owner tables: whose the loose blocks of a shelf are. They
 * stand among user data, so each names the place it was written to: a copy of
 * one that a user stored in the volume is not taken for the real thing.
 */
#include <linux/errno.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <asm/byteorder.h>
#include "format.h"

#define NO_OFFSET	(~0u)

static u32 shelf_offset(u64 place)
{
	return tr_place_index(place) & (TERRACE_CHUNK_BLOCKS - 1);
}

static bool place_ok(u64 place)
{
	return place < TERRACE_NO_PLACE && tr_place_index(place) <= TERRACE_MAX_PLACE_INDEX;
}

void tr_owners_encode(void *block, const struct tr_owners *head, const struct tr_owner *owner,
		      const u8 *uuid)
{
	struct terrace_owners_disk *disk = block;
	u32 i;

	memset(disk, 0, sizeof(*disk));
	disk->magic = cpu_to_le32(TERRACE_OWNER_MAGIC);
	memcpy(disk->volume_uuid, uuid, TERRACE_UUID_BYTES);
	disk->place = cpu_to_le64(head->place);
	disk->record_seq = cpu_to_le64(head->record_seq);
	disk->shelf_id = cpu_to_le64(head->shelf_id);
	disk->nr = cpu_to_le16(head->nr);
	disk->prev_offset = cpu_to_le32(head->prev_offset);
	for (i = 0; i < head->nr && i < TERRACE_OWNERS_PER_BLOCK; i++) {
		disk->owner[i].block = cpu_to_le64(owner[i].block);
		disk->owner[i].offset = cpu_to_le32(owner[i].offset);
		disk->owner[i].crc = cpu_to_le32(owner[i].crc);
	}
	disk->crc = cpu_to_le32(tr_block_crc(disk, sizeof(*disk),
					     offsetof(struct terrace_owners_disk, crc)));
}

int tr_owners_decode(const void *block, struct tr_owners *head, u64 place, const u8 *uuid)
{
	const struct terrace_owners_disk *disk = block;
	u32 own, i;

	if (le32_to_cpu(disk->magic) != TERRACE_OWNER_MAGIC)
		return -ENODATA;
	if (le32_to_cpu(disk->crc) != tr_block_crc(disk, sizeof(*disk),
						   offsetof(struct terrace_owners_disk, crc)))
		return -EBADMSG;
	if (memcmp(disk->volume_uuid, uuid, TERRACE_UUID_BYTES) ||
	    le64_to_cpu(disk->place) != place)
		return -ESTALE;

	head->place = place;
	head->record_seq = le64_to_cpu(disk->record_seq);
	head->shelf_id = le64_to_cpu(disk->shelf_id);
	head->prev_offset = le32_to_cpu(disk->prev_offset);
	head->nr = le16_to_cpu(disk->nr);
	own = shelf_offset(place);
	if (!place_ok(place) || head->nr > TERRACE_OWNERS_PER_BLOCK ||
	    (head->prev_offset != NO_OFFSET && head->prev_offset >= own))
		return -EUCLEAN;
	for (i = 0; i < head->nr; i++)
		if (le32_to_cpu(disk->owner[i].offset) >= own)
			return -EUCLEAN;
	return 0;
}

void tr_owners_get(const void *block, u32 i, struct tr_owner *owner)
{
	const struct terrace_owners_disk *disk = block;

	owner->block = le64_to_cpu(disk->owner[i].block);
	owner->offset = le32_to_cpu(disk->owner[i].offset);
	owner->crc = le32_to_cpu(disk->owner[i].crc);
}

void tr_table_encode(void *block, const struct tr_table *head, const u64 *owner, const u8 *uuid)
{
	struct terrace_table_disk *disk = block;
	u32 i;

	memset(disk, 0, sizeof(*disk));
	disk->magic = cpu_to_le32(TERRACE_TABLE_MAGIC);
	memcpy(disk->volume_uuid, uuid, TERRACE_UUID_BYTES);
	disk->place = cpu_to_le64(head->place);
	disk->record_seq = cpu_to_le64(head->record_seq);
	disk->shelf_id = cpu_to_le64(head->shelf_id);
	disk->first_offset = cpu_to_le32(head->first_offset);
	disk->nr = cpu_to_le16(head->nr);
	for (i = 0; i < head->nr && i < TERRACE_TABLE_OWNERS; i++)
		disk->owner[i] = cpu_to_le64(owner[i]);
	disk->crc = cpu_to_le32(tr_block_crc(disk, sizeof(*disk),
					     offsetof(struct terrace_table_disk, crc)));
}

int tr_table_decode(const void *block, struct tr_table *head, u64 *owner, u64 place,
		    const u8 *uuid)
{
	const struct terrace_table_disk *disk = block;
	u32 i;

	if (le32_to_cpu(disk->magic) != TERRACE_TABLE_MAGIC)
		return -ENODATA;
	if (le32_to_cpu(disk->crc) != tr_block_crc(disk, sizeof(*disk),
						   offsetof(struct terrace_table_disk, crc)))
		return -EBADMSG;
	if (memcmp(disk->volume_uuid, uuid, TERRACE_UUID_BYTES) ||
	    le64_to_cpu(disk->place) != place)
		return -ESTALE;

	head->place = place;
	head->record_seq = le64_to_cpu(disk->record_seq);
	head->shelf_id = le64_to_cpu(disk->shelf_id);
	head->first_offset = le32_to_cpu(disk->first_offset);
	head->nr = le16_to_cpu(disk->nr);
	if (!place_ok(place) || head->nr > TERRACE_TABLE_OWNERS ||
	    head->first_offset > TERRACE_CHUNK_BLOCKS - head->nr)
		return -EUCLEAN;
	for (i = 0; i < head->nr; i++)
		owner[i] = le64_to_cpu(disk->owner[i]);
	return 0;
}
