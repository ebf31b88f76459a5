// SPDX-License-Identifier: GPL-2.0
/*
 * Labels, superblocks and page entries. Decoding goes from the outside in:
 * is it ours (magic), is it whole (CRC), can we read it (version, features),
 * and only then whether the numbers make sense, each against the others.
 */
#include <linux/crc32c.h>
#include <linux/errno.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <asm/byteorder.h>
#include "format.h"

#define SUPER_BLOCKS	2

u32 tr_block_crc(const void *buf, u32 bytes, u32 crc_at)
{
	static const __le32 zero;
	u32 crc = crc32c(~0u, buf, crc_at);

	crc = crc32c(crc, &zero, sizeof(zero));
	crc_at += sizeof(zero);
	return crc32c(crc, (const u8 *)buf + crc_at, bytes - crc_at);
}

/* [start, start + nr) lies within [from, to). */
static bool in_range(u64 start, u64 nr, u64 from, u64 to)
{
	return start >= from && start <= to && nr <= to - start;
}

static bool overlap(u64 a, u64 nr_a, u64 b, u64 nr_b)
{
	return nr_a && nr_b && a < b + nr_b && b < a + nr_a;
}

/* --- label ----------------------------------------------------------------- */

void tr_label_encode(void *block, const struct tr_label *label)
{
	struct terrace_label_disk *disk = block;
	u32 i;

	memset(disk, 0, sizeof(*disk));
	memcpy(disk->magic, TERRACE_LABEL_MAGIC, sizeof(disk->magic));
	disk->version = cpu_to_le32(label->version);
	memcpy(disk->volume_uuid, label->volume_uuid, TERRACE_UUID_BYTES);
	memcpy(disk->tier_uuid, label->tier_uuid, TERRACE_UUID_BYTES);
	disk->generation = cpu_to_le64(label->generation);
	disk->tier_index = cpu_to_le32(label->tier_index);
	disk->class = cpu_to_le32(label->class);
	disk->kind = cpu_to_le32(label->kind);
	disk->flags = cpu_to_le32(label->flags);
	disk->atomic_bytes = cpu_to_le32(label->atomic_bytes);
	disk->align_blocks = cpu_to_le32(label->align_blocks);
	disk->device_blocks = cpu_to_le64(label->device_blocks);
	disk->data_start = cpu_to_le64(label->data_start);
	disk->data_blocks = cpu_to_le64(label->data_blocks);
	disk->meta_start = cpu_to_le64(label->meta_start);
	disk->meta_blocks = cpu_to_le64(label->meta_blocks);
	memcpy(disk->name, label->name, TERRACE_NAME_BYTES - 1);
	for (i = 0; i < TR_STALE_NOTES; i++)
		disk->stale_until[i] = cpu_to_le64(label->stale_until[i]);
	disk->crc = cpu_to_le32(tr_block_crc(disk, sizeof(*disk),
					     offsetof(struct terrace_label_disk, crc)));
}

static bool label_role_ok(const struct tr_label *label)
{
	if (label->tier_index == TERRACE_META_DEVICE)
		return label->class == TERRACE_CLASS_META && label->kind == TERRACE_KIND_NONE &&
		       !label->data_blocks && label->meta_blocks;
	return label->tier_index < TERRACE_MAX_TIERS &&
	       label->class >= TERRACE_CLASS_OPTANE && label->class <= TERRACE_CLASS_NET &&
	       label->kind >= TERRACE_KIND_SLOTS && label->kind <= TERRACE_KIND_HOME &&
	       label->data_blocks && label->data_blocks <= TERRACE_MAX_PLACE_INDEX + 1;
}

static bool label_ranges_ok(const struct tr_label *label)
{
	u64 end = label->device_blocks;

	if (end > TR_MAX_BLOCKS)
		return false;
	if (label->data_blocks &&
	    !in_range(label->data_start, label->data_blocks, TERRACE_LABEL_COPIES, end))
		return false;
	if (label->meta_blocks &&
	    !in_range(label->meta_start, label->meta_blocks, TERRACE_LABEL_COPIES, end))
		return false;
	return !overlap(label->data_start, label->data_blocks,
			label->meta_start, label->meta_blocks);
}

static bool label_flags_ok(const struct tr_label *label)
{
	u32 meta = label->flags & (TERRACE_LABEL_META | TERRACE_LABEL_META_SYNC |
				   TERRACE_LABEL_META_LAZY);

	if (meta & (meta - 1)) /* at most one role */
		return false;
	if (meta && !label->meta_blocks)
		return false;
	return !(label->flags & TERRACE_LABEL_ATOMIC) || label->atomic_bytes;
}

static int label_check(const struct tr_label *label)
{
	if (label->version > TERRACE_FORMAT_VERSION)
		return -EPROTONOSUPPORT;
	if (!label->version || !label_role_ok(label) || !label_ranges_ok(label) ||
	    !label_flags_ok(label))
		return -EUCLEAN;
	if (label->atomic_bytes % 512 || !label->align_blocks ||
	    label->align_blocks > TERRACE_CHUNK_BLOCKS || label->name[TERRACE_NAME_BYTES - 1])
		return -EUCLEAN;
	return 0;
}

int tr_label_decode(struct tr_label *label, const void *block)
{
	const struct terrace_label_disk *disk = block;
	u32 i;

	if (memcmp(disk->magic, TERRACE_LABEL_MAGIC, sizeof(disk->magic)))
		return -ENODATA;
	if (le32_to_cpu(disk->crc) != tr_block_crc(disk, sizeof(*disk),
						   offsetof(struct terrace_label_disk, crc)))
		return -EBADMSG;

	label->version = le32_to_cpu(disk->version);
	memcpy(label->volume_uuid, disk->volume_uuid, TERRACE_UUID_BYTES);
	memcpy(label->tier_uuid, disk->tier_uuid, TERRACE_UUID_BYTES);
	label->generation = le64_to_cpu(disk->generation);
	label->tier_index = le32_to_cpu(disk->tier_index);
	label->class = le32_to_cpu(disk->class);
	label->kind = le32_to_cpu(disk->kind);
	label->flags = le32_to_cpu(disk->flags);
	label->atomic_bytes = le32_to_cpu(disk->atomic_bytes);
	label->align_blocks = le32_to_cpu(disk->align_blocks);
	label->device_blocks = le64_to_cpu(disk->device_blocks);
	label->data_start = le64_to_cpu(disk->data_start);
	label->data_blocks = le64_to_cpu(disk->data_blocks);
	label->meta_start = le64_to_cpu(disk->meta_start);
	label->meta_blocks = le64_to_cpu(disk->meta_blocks);
	memcpy(label->name, disk->name, TERRACE_NAME_BYTES);
	for (i = 0; i < TR_STALE_NOTES; i++)
		label->stale_until[i] = le64_to_cpu(disk->stale_until[i]);
	return label_check(label);
}

/* --- page entry ------------------------------------------------------------ */

void tr_entry_encode(struct terrace_entry_disk *to, const struct tr_entry *from)
{
	u64 addr = from->block & TERRACE_ENTRY_BLOCK_MASK;

	addr |= (from->blocks & TERRACE_ENTRY_LEN_MASK) << TERRACE_ENTRY_LEN_SHIFT;
	addr |= (u64)from->age << TERRACE_ENTRY_AGE_SHIFT;
	to->addr = cpu_to_le64(addr);
	to->crc = cpu_to_le32(from->crc);
	to->count = cpu_to_le32(from->count);
	to->seq = cpu_to_le64(from->seq);
}

void tr_entry_decode(struct tr_entry *to, const struct terrace_entry_disk *from)
{
	u64 addr = le64_to_cpu(from->addr);

	to->block = addr & TERRACE_ENTRY_BLOCK_MASK;
	to->blocks = addr >> TERRACE_ENTRY_LEN_SHIFT & TERRACE_ENTRY_LEN_MASK;
	to->age = addr >> TERRACE_ENTRY_AGE_SHIFT;
	to->crc = le32_to_cpu(from->crc);
	to->count = le32_to_cpu(from->count);
	to->seq = le64_to_cpu(from->seq);
}

/* --- superblock ------------------------------------------------------------ */

static void encode_tier(struct terrace_super_tier_disk *disk, const struct tr_super_tier *tier)
{
	memcpy(disk->tier_uuid, tier->uuid, TERRACE_UUID_BYTES);
	disk->class = cpu_to_le32(tier->class);
	disk->kind = cpu_to_le32(tier->kind);
	disk->data_blocks = cpu_to_le64(tier->data_blocks);
	disk->reserve_blocks = cpu_to_le64(tier->reserve_blocks);
	tr_entry_encode(&disk->space_root, &tier->space_root);
}

static void decode_tier(struct tr_super_tier *tier, const struct terrace_super_tier_disk *disk)
{
	memcpy(tier->uuid, disk->tier_uuid, TERRACE_UUID_BYTES);
	tier->class = le32_to_cpu(disk->class);
	tier->kind = le32_to_cpu(disk->kind);
	tier->data_blocks = le64_to_cpu(disk->data_blocks);
	tier->reserve_blocks = le64_to_cpu(disk->reserve_blocks);
	tr_entry_decode(&tier->space_root, &disk->space_root);
}

void tr_super_encode(void *block, const struct tr_super *super)
{
	struct terrace_super_disk *disk = block;
	u32 i;

	memset(disk, 0, sizeof(*disk));
	memcpy(disk->magic, TERRACE_SUPER_MAGIC, sizeof(disk->magic));
	disk->version = cpu_to_le32(TERRACE_FORMAT_VERSION);
	memcpy(disk->volume_uuid, super->volume_uuid, TERRACE_UUID_BYTES);
	disk->generation = cpu_to_le64(super->generation);
	disk->compat = cpu_to_le64(super->compat);
	disk->compat_ro = cpu_to_le64(super->compat_ro);
	disk->incompat = cpu_to_le64(super->incompat);
	disk->flags = cpu_to_le32(super->flags);
	disk->nr_tiers = cpu_to_le32(super->nr_tiers);
	disk->region_shift = cpu_to_le32(super->region_shift);
	disk->chunk_shift = cpu_to_le32(super->chunk_shift);
	disk->virtual_blocks = cpu_to_le64(super->virtual_blocks);
	disk->meta_blocks = cpu_to_le64(super->meta_blocks);
	disk->journal_start = cpu_to_le64(super->journal_start);
	disk->journal_blocks = cpu_to_le64(super->journal_blocks);
	disk->bitmap_start[0] = cpu_to_le64(super->bitmap_start[0]);
	disk->bitmap_start[1] = cpu_to_le64(super->bitmap_start[1]);
	disk->bitmap_blocks = cpu_to_le64(super->bitmap_blocks);
	disk->tail_block_seq = cpu_to_le64(super->tail_block_seq);
	disk->tail_nonce = cpu_to_le64(super->tail_nonce);
	disk->tail_prev_crc = cpu_to_le32(super->tail_prev_crc);
	disk->map_depth = cpu_to_le32(super->map_depth);
	disk->tail_record_seq = cpu_to_le64(super->tail_record_seq);
	disk->next_id = cpu_to_le64(super->next_id);
	disk->activations = cpu_to_le64(super->activations);
	tr_entry_encode(&disk->map_root, &super->map_root);
	disk->overcommit_blocks = cpu_to_le64(super->overcommit_blocks);
	for (i = 0; i < super->nr_tiers && i < TERRACE_MAX_TIERS; i++)
		encode_tier(&disk->tiers[i], &super->tier[i]);
	disk->crc = cpu_to_le32(tr_block_crc(disk, sizeof(*disk),
					     offsetof(struct terrace_super_disk, crc)));
}

static void decode_super(struct tr_super *super, const struct terrace_super_disk *disk)
{
	u32 i;

	memset(super, 0, sizeof(*super));	/* the gaps as well: two are compared as a whole */
	memcpy(super->volume_uuid, disk->volume_uuid, TERRACE_UUID_BYTES);
	super->generation = le64_to_cpu(disk->generation);
	super->compat = le64_to_cpu(disk->compat);
	super->compat_ro = le64_to_cpu(disk->compat_ro);
	super->incompat = le64_to_cpu(disk->incompat);
	super->flags = le32_to_cpu(disk->flags);
	super->nr_tiers = le32_to_cpu(disk->nr_tiers);
	super->region_shift = le32_to_cpu(disk->region_shift);
	super->chunk_shift = le32_to_cpu(disk->chunk_shift);
	super->virtual_blocks = le64_to_cpu(disk->virtual_blocks);
	super->meta_blocks = le64_to_cpu(disk->meta_blocks);
	super->journal_start = le64_to_cpu(disk->journal_start);
	super->journal_blocks = le64_to_cpu(disk->journal_blocks);
	super->bitmap_start[0] = le64_to_cpu(disk->bitmap_start[0]);
	super->bitmap_start[1] = le64_to_cpu(disk->bitmap_start[1]);
	super->bitmap_blocks = le64_to_cpu(disk->bitmap_blocks);
	super->tail_block_seq = le64_to_cpu(disk->tail_block_seq);
	super->tail_nonce = le64_to_cpu(disk->tail_nonce);
	super->tail_prev_crc = le32_to_cpu(disk->tail_prev_crc);
	super->map_depth = le32_to_cpu(disk->map_depth);
	super->tail_record_seq = le64_to_cpu(disk->tail_record_seq);
	super->next_id = le64_to_cpu(disk->next_id);
	super->activations = le64_to_cpu(disk->activations);
	tr_entry_decode(&super->map_root, &disk->map_root);
	super->overcommit_blocks = le64_to_cpu(disk->overcommit_blocks);
	for (i = 0; i < super->nr_tiers && i < TERRACE_MAX_TIERS; i++)
		decode_tier(&super->tier[i], &disk->tiers[i]);
}

u64 tr_first_page(const struct tr_super *super)
{
	return super->bitmap_start[1] + super->bitmap_blocks;
}

/* The fixed areas: one behind the other, the superblocks, the journal, the bitmaps; then pages. */
static bool areas_ok(const struct tr_super *super)
{
	u64 end = super->meta_blocks, nr = super->bitmap_blocks;

	return end <= TERRACE_ENTRY_BLOCK_MASK && super->journal_blocks &&
	       nr == (end + TERRACE_MBIT_BITS - 1) / TERRACE_MBIT_BITS &&
	       in_range(super->journal_start, super->journal_blocks, SUPER_BLOCKS, end) &&
	       super->bitmap_start[0] == super->journal_start + super->journal_blocks &&
	       super->bitmap_start[1] == super->bitmap_start[0] + nr &&
	       tr_first_page(super) <= end;
}

bool tr_entry_ok(const struct tr_super *super, const struct tr_entry *entry)
{
	if (!entry->block)
		return true;
	return entry->blocks >= 1 && entry->blocks <= TERRACE_MAP_MAX_BLOCKS &&
	       in_range(entry->block, entry->blocks, tr_first_page(super), super->meta_blocks);
}

static bool tier_ok(const struct tr_super *super, const struct tr_super_tier *tier)
{
	return tier->class >= TERRACE_CLASS_OPTANE && tier->class <= TERRACE_CLASS_NET &&
	       tier->kind >= TERRACE_KIND_SLOTS && tier->kind <= TERRACE_KIND_HOME &&
	       tier->data_blocks && tier->data_blocks <= TERRACE_MAX_PLACE_INDEX + 1 &&
	       tier->reserve_blocks <= tier->data_blocks &&
	       tr_entry_ok(super, &tier->space_root);
}

static int super_check(const struct tr_super *super)
{
	u64 regions;
	u32 i;

	if (super->region_shift != TERRACE_REGION_SHIFT ||
	    super->chunk_shift != TERRACE_CHUNK_SHIFT)
		return -EPROTONOSUPPORT;
	if (!super->virtual_blocks || super->virtual_blocks > TR_MAX_BLOCKS ||
	    super->overcommit_blocks > super->virtual_blocks ||
	    !super->nr_tiers || super->nr_tiers > TERRACE_MAX_TIERS || !areas_ok(super))
		return -EUCLEAN;
	regions = (super->virtual_blocks + TERRACE_REGION_BLOCKS - 1) >> TERRACE_REGION_SHIFT;
	if (super->map_depth < tr_dir_depth(regions) || super->map_depth > TR_MAX_DEPTH ||
	    !tr_entry_ok(super, &super->map_root))
		return -EUCLEAN;
	for (i = 0; i < super->nr_tiers; i++)
		if (!tier_ok(super, &super->tier[i]))
			return -EUCLEAN;
	return 0;
}

int tr_super_decode(struct tr_super *super, const void *block)
{
	const struct terrace_super_disk *disk = block;

	if (memcmp(disk->magic, TERRACE_SUPER_MAGIC, sizeof(disk->magic)))
		return -ENODATA;
	if (le32_to_cpu(disk->crc) != tr_block_crc(disk, sizeof(*disk),
						   offsetof(struct terrace_super_disk, crc)))
		return -EBADMSG;
	if (le32_to_cpu(disk->version) > TERRACE_FORMAT_VERSION ||
	    le64_to_cpu(disk->incompat) & ~TERRACE_INCOMPAT_KNOWN)
		return -EPROTONOSUPPORT;
	if (!disk->version)
		return -EUCLEAN;
	decode_super(super, disk);
	return super_check(super);
}

const struct tr_super *tr_super_newest(const struct tr_super *a, const struct tr_super *b)
{
	if (!a || !b)
		return a ? a : b;
	return b->generation > a->generation ? b : a;
}
