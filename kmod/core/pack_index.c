// SPDX-License-Identifier: GPL-2.0
/*
 * The index of a pack: its header, checked once and then asked.
 *
 * A block is found in three steps: its rank in the bitmap, from there its slot
 * (the same number if clusters have one block), and from the slot its cluster
 * and segment. A cluster's offset is that of its group plus the lengths of the
 * up to 15 clusters before it. tr_pack_parse() proves that all of this stays
 * within header and run, whatever the bytes say.
 */
#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include "format.h"
#include "pack_tables.h"

#define CRC_AT	offsetof(struct terrace_pack_disk, crc)
#define WORDS	(TERRACE_REGION_BLOCKS / 64)

u32 tr_pack_header_bytes(u32 nr_blocks, u32 shift)
{
	struct pack_tables t;

	pack_tables(&t, nr_blocks, shift);
	return t.end;
}

u32 tr_pack_image_bytes(u32 nr_blocks, u32 shift)
{
	return (tr_pack_header_blocks(tr_pack_header_bytes(nr_blocks, shift)) + nr_blocks) *
	       TERRACE_BLOCK_BYTES;
}

void tr_pack_head(const void *index, struct tr_pack_head *head)
{
	const struct terrace_pack_disk *disk = index;

	head->id = le64_to_cpu(disk->id);
	head->place = le64_to_cpu(disk->place);
	head->region = le64_to_cpu(disk->region);
	head->record_seq = le64_to_cpu(disk->record_seq);
	head->bytes = le32_to_cpu(disk->bytes);
	head->payload_bytes = le32_to_cpu(disk->payload_bytes);
	head->blocks = le16_to_cpu(disk->blocks);
	head->nr_blocks = le16_to_cpu(disk->nr_blocks);
	head->nr_clusters = le16_to_cpu(disk->nr_clusters);
	head->codec = disk->codec;
	head->level = disk->level;
	head->shift = disk->shift;
}

/* --- lookups, in an index that was parsed ------------------------------------ */

static u64 bitmap_word(const void *index, u32 w)
{
	return le64_to_cpu(((const struct terrace_pack_disk *)index)->bitmap[w]);
}

bool tr_pack_has(const void *index, u32 i)
{
	return bitmap_word(index, i / 64) >> (i % 64) & 1;
}

static u32 rank_of(const void *index, u32 i)
{
	u32 w, rank = hweight64(bitmap_word(index, i / 64) & ((1ull << (i % 64)) - 1));

	for (w = 0; w < i / 64; w++)
		rank += hweight64(bitmap_word(index, w));
	return rank;
}

/* What the lookups need to know of the header. */
struct shape {
	const void *index;
	struct pack_tables t;
	u32 nr_blocks, shift, segments, payload_at;
};

static void shape_of(struct shape *s, const void *index)
{
	const struct terrace_pack_disk *disk = index;

	s->index = index;
	s->nr_blocks = le16_to_cpu(disk->nr_blocks);
	s->shift = disk->shift;
	s->segments = pack_segments(s->shift);
	s->payload_at = tr_pack_header_blocks(le32_to_cpu(disk->bytes)) * TERRACE_BLOCK_BYTES;
	pack_tables(&s->t, s->nr_blocks, s->shift);
}

static bool cluster_raw(const struct shape *s, u32 cluster)
{
	return !table_u16(s->index, s->t.length, cluster * s->segments);
}

/* Stored bytes of the segments before @segment. */
static u32 cluster_prefix(const struct shape *s, u32 cluster, u32 segment)
{
	u32 k, bytes = 0;

	if (cluster_raw(s, cluster))
		return segment_from(segment, cluster_blocks(s->nr_blocks, s->shift, cluster)) *
		       TERRACE_BLOCK_BYTES;
	for (k = 0; k < segment; k++)
		bytes += table_u16(s->index, s->t.length, cluster * s->segments + k);
	return bytes;
}

static u32 cluster_offset(const struct shape *s, u32 cluster)
{
	u32 c = cluster / TERRACE_PACK_GROUP * TERRACE_PACK_GROUP;
	u32 offset = s->payload_at + table_u32(s->index, s->t.offset, cluster / TERRACE_PACK_GROUP);

	if (!s->shift) {	/* the same, shorter: every cold read comes by */
		for (; c < cluster; c++)
			offset += table_u16(s->index, s->t.length, c) ?: TERRACE_BLOCK_BYTES;
		return offset;
	}
	for (; c < cluster; c++)
		offset += cluster_prefix(s, c, s->segments);
	return offset;
}

static u32 slot_of(const struct shape *s, u32 i)
{
	/* In the pack of a whole region nothing is missing in front of it. */
	u32 rank = s->nr_blocks == TERRACE_REGION_BLOCKS ? i : rank_of(s->index, i);

	return s->shift ? table_u16(s->index, s->t.slot, rank) : rank;
}

/* The same as below, shorter: clusters of one block, by which most cold reads come. */
static void find_single(const struct shape *s, u32 slot, struct tr_pack_where *where)
{
	u32 length = table_u16(s->index, s->t.length, slot);

	where->cluster = slot;
	where->slot = 0;
	where->nr_slots = 1;
	where->first = 0;
	where->last = 0;
	where->raw = !length;
	where->length = length ?: TERRACE_BLOCK_BYTES;
	where->offset = cluster_offset(s, slot);
}

bool tr_pack_find(const void *index, u32 i, struct tr_pack_where *where)
{
	struct shape s;
	u32 slot, skipped;

	if (i >= TERRACE_REGION_BLOCKS || !tr_pack_has(index, i))
		return false;
	shape_of(&s, index);
	slot = slot_of(&s, i);
	if (!s.shift) {
		find_single(&s, slot, where);
		return true;
	}
	where->cluster = slot >> s.shift;
	where->slot = slot & ((1u << s.shift) - 1);
	where->nr_slots = cluster_blocks(s.nr_blocks, s.shift, where->cluster);
	where->raw = cluster_raw(&s, where->cluster);
	where->last = segment_of_slot(where->slot);
	where->first = where->raw ? where->last : 0;
	skipped = cluster_prefix(&s, where->cluster, where->first);
	where->offset = cluster_offset(&s, where->cluster) + skipped;
	where->length = cluster_prefix(&s, where->cluster, where->last + 1) - skipped;
	return true;
}

void tr_pack_cluster(const void *index, u32 cluster, struct tr_pack_where *where)
{
	struct shape s;

	shape_of(&s, index);
	where->cluster = cluster;
	where->nr_slots = cluster_blocks(s.nr_blocks, s.shift, cluster);
	where->slot = where->nr_slots - 1;
	where->raw = cluster_raw(&s, cluster);
	where->first = 0;
	where->last = segments_of(where->nr_slots) - 1;
	where->offset = cluster_offset(&s, cluster);
	where->length = cluster_prefix(&s, cluster, s.segments);
}

void tr_pack_order(const void *index, u16 *block)
{
	struct shape s;
	u32 w, rank = 0;
	u64 word;

	shape_of(&s, index);
	for (w = 0; w < WORDS; w++)
		for (word = bitmap_word(index, w); word; word &= word - 1, rank++)
			block[s.shift ? table_u16(index, s.t.slot, rank) : rank] =
				w * 64 + __ffs64(word);
}

/* Clusters are made of blocks that follow each other in the pack, as a rule: then
 * those with the same ranks are its members. false: not so in this one.
 */
static bool members_by_rank(const struct shape *s, u32 first, u32 nr, u16 *block)
{
	u32 w, n, slot, rank = 0;
	u64 word;

	for (w = 0; w < WORDS && rank < first + nr; w++) {
		word = bitmap_word(s->index, w);
		n = hweight64(word);
		if (rank + n <= first) {
			rank += n;
			continue;
		}
		for (; word && rank < first + nr; word &= word - 1, rank++) {
			if (rank < first)
				continue;
			slot = s->shift ? table_u16(s->index, s->t.slot, rank) : rank;
			if (slot < first || slot >= first + nr)
				return false;
			block[slot - first] = w * 64 + __ffs64(word);
		}
	}
	return true;
}

u32 tr_pack_members(const void *index, u32 cluster, u16 *block)
{
	struct shape s;
	u32 w, slot, first, nr, rank = 0;
	u64 word;

	shape_of(&s, index);
	first = cluster << s.shift;
	nr = cluster_blocks(s.nr_blocks, s.shift, cluster);
	if (members_by_rank(&s, first, nr, block))
		return nr;
	for (w = 0; w < WORDS; w++) {
		for (word = bitmap_word(index, w); word; word &= word - 1, rank++) {
			slot = s.shift ? table_u16(index, s.t.slot, rank) : rank;
			if (slot >= first && slot < first + nr)
				block[slot - first] = w * 64 + __ffs64(word);
		}
	}
	return nr;
}

/* --- checking ---------------------------------------------------------------- */

static bool head_ok(const struct terrace_pack_disk *disk)
{
	u32 nr = le16_to_cpu(disk->nr_blocks), clusters = le16_to_cpu(disk->nr_clusters);
	u32 blocks = le16_to_cpu(disk->blocks), w, population = 0;
	u64 place = le64_to_cpu(disk->place), capacity;

	if (!nr || nr > TERRACE_REGION_BLOCKS || disk->codec > TERRACE_CODEC_ZSTD ||
	    (disk->shift != 0 && disk->shift != 2 && disk->shift != 4) ||
	    clusters != (nr + (1u << disk->shift) - 1) >> disk->shift ||
	    le32_to_cpu(disk->bytes) != tr_pack_header_bytes(nr, disk->shift))
		return false;
	if (!blocks || blocks > TERRACE_PACK_MAX_BLOCKS || !le64_to_cpu(disk->id) ||
	    le64_to_cpu(disk->region) >= TR_MAX_BLOCKS >> TERRACE_REGION_SHIFT ||
	    place >= TERRACE_NO_PLACE ||
	    tr_place_index(place) + blocks - 1 > TERRACE_MAX_PLACE_INDEX)
		return false;
	capacity = (u64)blocks * TERRACE_BLOCK_BYTES;
	if (tr_pack_header_blocks(le32_to_cpu(disk->bytes)) * TERRACE_BLOCK_BYTES +
	    (u64)le32_to_cpu(disk->payload_bytes) > capacity)
		return false;
	for (w = 0; w < WORDS; w++)
		population += hweight64(le64_to_cpu(disk->bitmap[w]));
	return population == nr;
}

/* Raw as a whole or not at all; a cluster that is not raw is smaller for it. */
static bool cluster_ok(const struct shape *s, u32 cluster, u32 codec)
{
	u32 nr = cluster_blocks(s->nr_blocks, s->shift, cluster), k, length;
	u32 used = segments_of(nr), cell = cluster * s->segments;
	bool raw = cluster_raw(s, cluster);

	for (k = 0; k < s->segments; k++) {
		length = table_u16(s->index, s->t.length, cell + k);
		if (!length != (raw || k >= used))
			return false;
		if (k >= used && table_u32(s->index, s->t.crc, cell + k))
			return false;
	}
	if (raw)
		return true;
	return codec != TERRACE_CODEC_NONE &&
	       cluster_prefix(s, cluster, s->segments) < nr * TERRACE_BLOCK_BYTES;
}

/* Offsets are the sums of the lengths, and end with the payload. */
static bool clusters_ok(const struct shape *s, const struct terrace_pack_disk *disk)
{
	u32 c, at = 0;

	for (c = 0; c < le16_to_cpu(disk->nr_clusters); c++) {
		if (c % TERRACE_PACK_GROUP == 0 &&
		    table_u32(s->index, s->t.offset, c / TERRACE_PACK_GROUP) != at)
			return false;
		if (!cluster_ok(s, c, disk->codec))
			return false;
		at += cluster_prefix(s, c, s->segments);
	}
	return at == le32_to_cpu(disk->payload_bytes);
}

/* Each slot is some block's. */
static bool slots_ok(const struct shape *s)
{
	u64 seen[WORDS] = {};
	u32 rank, slot;

	if (!s->shift)
		return true;
	for (rank = 0; rank < s->nr_blocks; rank++) {
		slot = table_u16(s->index, s->t.slot, rank);
		if (slot >= s->nr_blocks || seen[slot / 64] >> (slot % 64) & 1)
			return false;
		seen[slot / 64] |= 1ull << (slot % 64);
	}
	return true;
}

static bool wanted(const struct terrace_pack_disk *disk, const struct tr_pack_id *id)
{
	if (id->volume_uuid && memcmp(disk->volume_uuid, id->volume_uuid, TERRACE_UUID_BYTES))
		return false;
	return (!id->header_crc || *id->header_crc == le32_to_cpu(disk->crc)) &&
	       (!id->id || (id->id == le64_to_cpu(disk->id) &&
			    id->place == le64_to_cpu(disk->place) &&
			    id->region == le64_to_cpu(disk->region))) &&
	       (!id->blocks || id->blocks == le16_to_cpu(disk->blocks));
}

int tr_pack_parse(const void *buf, u32 bytes, const struct tr_pack_id *id,
		  struct tr_pack_head *head)
{
	const struct terrace_pack_disk *disk = buf;
	struct shape s;
	u32 length;

	if (bytes < sizeof(*disk) || le32_to_cpu(disk->magic) != TERRACE_PACK_MAGIC)
		return -ENODATA;
	length = le32_to_cpu(disk->bytes);
	if (length < sizeof(*disk) || length > bytes ||
	    length > TERRACE_PACK_HEADER_BLOCKS * TERRACE_BLOCK_BYTES ||
	    le32_to_cpu(disk->crc) != tr_block_crc(buf, length, CRC_AT))
		return -EBADMSG;
	if (le16_to_cpu(disk->version) > TERRACE_PACK_VERSION)
		return -EPROTONOSUPPORT;
	if (!disk->version || !head_ok(disk))
		return -EUCLEAN;
	shape_of(&s, buf);
	if (!clusters_ok(&s, disk) || !slots_ok(&s))
		return -EUCLEAN;
	if (!wanted(disk, id))
		return -ESTALE;
	tr_pack_head(buf, head);
	return 0;
}
