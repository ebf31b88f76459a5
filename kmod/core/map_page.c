// SPDX-License-Identifier: GPL-2.0
/*
 * Map pages: the places of a region's blocks and its packs, as sections of one
 * page. A page is walked once, every offset checked before it is used, and
 * only then read; what it says must be possible, and packs must agree with
 * each other: ids fall, and no block is live in two.
 */
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <asm/byteorder.h>
#include "format.h"

#define BITMAP_BYTES	(TERRACE_REGION_BLOCKS / 8)
#define PACK_BYTES	sizeof(struct terrace_pack_ref_disk)
#define SECTION_BYTES	sizeof(struct terrace_section_disk)

static u32 padded(u32 bytes)
{
	return (bytes + 7) & ~7u;
}

static u32 places_bytes(u32 nr)
{
	return BITMAP_BYTES + nr * TR_PLACE_BYTES;
}

static u32 nr_packs(const struct tr_packs *packs)
{
	return packs ? packs->nr : 0;
}

/* All sections; a region without packs has no section for them. */
static u32 sections_bytes(const struct tr_leaf *leaf, const struct tr_packs *packs)
{
	u32 bytes = SECTION_BYTES + padded(places_bytes(leaf->nr));

	if (nr_packs(packs))
		bytes += SECTION_BYTES + nr_packs(packs) * PACK_BYTES;
	return bytes;
}

u32 tr_map_page_blocks(const struct tr_leaf *leaf, const struct tr_packs *packs)
{
	u32 bytes = sizeof(struct terrace_map_disk) + sections_bytes(leaf, packs);

	return (bytes + TERRACE_BLOCK_BYTES - 1) / TERRACE_BLOCK_BYTES;
}

/* --- writing ----------------------------------------------------------------- */

static void *start_section(void *at, u32 type, u32 nr, u32 bytes)
{
	struct terrace_section_disk *section = at;

	section->type = cpu_to_le16(type);
	section->aux = cpu_to_le16(nr);
	section->bytes = cpu_to_le32(bytes);
	return section + 1;
}

static void encode_places(void *at, const struct tr_leaf *leaf)
{
	__le64 *present = start_section(at, TERRACE_SECTION_PLACES, leaf->nr,
					places_bytes(leaf->nr));
	u32 w;

	for (w = 0; w < TR_LEAF_WORDS; w++)
		present[w] = cpu_to_le64(leaf->present[w]);
	tr_leaf_write(leaf, (u8 *)present + BITMAP_BYTES);
}

static void encode_packs(void *at, const struct tr_packs *packs)
{
	struct terrace_pack_ref_disk *ref = start_section(at, TERRACE_SECTION_PACKS, packs->nr,
							  packs->nr * PACK_BYTES);
	const struct tr_pack *pack;
	u32 w;

	for (pack = packs->pack; pack < packs->pack + packs->nr; pack++, ref++) {
		ref->id = cpu_to_le64(pack->id);
		ref->place = cpu_to_le64(pack->place);
		ref->index_place = cpu_to_le64(pack->index_place);
		ref->blocks = cpu_to_le16(pack->blocks);
		ref->index_blocks = cpu_to_le16(pack->index_blocks);
		ref->header_crc = cpu_to_le32(pack->header_crc);
		for (w = 0; w < TR_LEAF_WORDS; w++)
			ref->live[w] = cpu_to_le64(pack->live[w]);
	}
}

void tr_map_encode(void *page, const struct tr_leaf *leaf, const struct tr_packs *packs, u8 age)
{
	struct terrace_map_disk *map = page;

	map->bytes = cpu_to_le32(sections_bytes(leaf, packs));
	map->sections = cpu_to_le16(nr_packs(packs) ? 2 : 1);
	map->age = age;
	encode_places(map->payload, leaf);
	if (nr_packs(packs))
		encode_packs(map->payload + SECTION_BYTES + padded(places_bytes(leaf->nr)), packs);
}

u32 tr_map_gone_blocks(const struct tr_leaf *leaf, const struct tr_packs *packs)
{
	u32 bytes = sizeof(struct terrace_map_disk) + sections_bytes(leaf, packs) +
		    SECTION_BYTES + BITMAP_BYTES;

	return (bytes + TERRACE_BLOCK_BYTES - 1) / TERRACE_BLOCK_BYTES;
}

void tr_map_add_gone(void *page, const u64 *gone)
{
	struct terrace_map_disk *map = page;
	u32 bytes = le32_to_cpu(map->bytes), w;
	__le64 *bits = start_section(map->payload + bytes, TERRACE_SECTION_GONE, 0, BITMAP_BYTES);

	map->bytes = cpu_to_le32(bytes + SECTION_BYTES + BITMAP_BYTES);
	map->sections = cpu_to_le16(le16_to_cpu(map->sections) + 1);
	for (w = 0; w < TR_LEAF_WORDS; w++)
		bits[w] = cpu_to_le64(gone[w]);
}

/* --- reading ----------------------------------------------------------------- */

/* What a map page holds. */
struct content {
	const __le64 *present;	/* NULL: no places */
	const u8 *place;
	const struct terrace_pack_ref_disk *ref; /* NULL: no packs */
	u32 nr, nr_packs;
	const __le64 *gone;	/* NULL: none */
};

static int find_places(struct content *content, const struct terrace_section_disk *section,
		       u32 bytes)
{
	u32 w, nr = 0;

	if (content->present || bytes < BITMAP_BYTES)
		return -EUCLEAN;
	content->present = (const void *)(section + 1);
	content->place = (const u8 *)content->present + BITMAP_BYTES;
	for (w = 0; w < TR_LEAF_WORDS; w++)
		nr += hweight64(le64_to_cpu(content->present[w]));
	content->nr = nr;
	return nr == le16_to_cpu(section->aux) && bytes == places_bytes(nr) ? 0 : -EUCLEAN;
}

static int find_packs(struct content *content, const struct terrace_section_disk *section,
		      u32 bytes)
{
	u32 nr = le16_to_cpu(section->aux);

	if (content->ref || !nr || nr > TERRACE_PACK_SLOTS || bytes != nr * PACK_BYTES)
		return -EUCLEAN;
	content->ref = (const void *)(section + 1);
	content->nr_packs = nr;
	return 0;
}

static int find_gone(struct content *content, const struct terrace_section_disk *section,
		     u32 bytes)
{
	if (content->gone || bytes != BITMAP_BYTES)
		return -EUCLEAN;
	content->gone = (const void *)(section + 1);
	return 0;
}

/* Only a block that is somewhere can be gone. */
static bool gone_ok(const struct content *content)
{
	__le64 there;
	u32 w, k;

	for (w = 0; content->gone && w < TR_LEAF_WORDS; w++) {
		there = content->present ? content->present[w] : 0;
		for (k = 0; k < content->nr_packs; k++)
			there |= content->ref[k].live[w];
		if (content->gone[w] & ~there)
			return false;
	}
	return true;
}

static int find_section(struct content *content, const struct terrace_section_disk *section,
			u32 bytes)
{
	switch (le16_to_cpu(section->type)) {
	case TERRACE_SECTION_PLACES:
		return find_places(content, section, bytes);
	case TERRACE_SECTION_PACKS:
		return find_packs(content, section, bytes);
	case TERRACE_SECTION_GONE:
		return find_gone(content, section, bytes);
	}
	return -EPROTONOSUPPORT;
}

/* Walks the sections; every offset is checked before it is used. */
static int find_content(const void *page, u32 bytes, struct content *content)
{
	const struct terrace_map_disk *map = page;
	const struct terrace_section_disk *section;
	u32 left, at = 0, i, length;
	int err;

	memset(content, 0, sizeof(*content));
	if (bytes < sizeof(*map) || le32_to_cpu(map->bytes) > bytes - sizeof(*map))
		return -EUCLEAN;
	left = le32_to_cpu(map->bytes);
	for (i = 0; i < le16_to_cpu(map->sections); i++) {
		if (left < sizeof(*section))
			return -EUCLEAN;
		section = (const void *)(map->payload + at);
		length = le32_to_cpu(section->bytes);
		left -= sizeof(*section);
		if (length > left || padded(length) > left)
			return -EUCLEAN;
		err = find_section(content, section, length);
		if (err)
			return err;
		at += sizeof(*section) + padded(length);
		left -= padded(length);
	}
	return left || !gone_ok(content) ? -EUCLEAN : 0;
}

static u64 get_place(const u8 *at)
{
	return (u64)at[4] << 32 | (u32)at[3] << 24 | (u32)at[2] << 16 | (u32)at[1] << 8 | at[0];
}

int tr_map_room(const void *page, u32 bytes, u32 *nr, bool *high, u32 *packs)
{
	struct content content;
	int err = find_content(page, bytes, &content);
	u32 rank;

	if (err)
		return err;
	*nr = content.nr;
	*packs = content.nr_packs;
	*high = false;
	for (rank = 0; rank < content.nr && !*high; rank++)
		*high = tr_place_is_high(get_place(content.place + rank * TR_PLACE_BYTES));
	return 0;
}

/* The sizes of the tiers, which no place may exceed. */
struct sizes {
	const u64 *data_blocks;
	u32 nr_tiers;
};

static bool places_ok(const struct sizes *sizes, u64 place, u32 nr)
{
	u32 tier = tr_place_tier(place);

	return place < TERRACE_NO_PLACE && tier < sizes->nr_tiers &&
	       nr <= sizes->data_blocks[tier] &&
	       tr_place_index(place) <= sizes->data_blocks[tier] - nr;
}

static int decode_places(const struct content *content, struct tr_leaf *leaf,
			 const struct sizes *sizes)
{
	u32 w, rank, sum = 0;
	u64 place;

	if (content->nr > leaf->cap)
		return -ENOSPC;
	leaf->nr = 0;
	for (rank = 0; rank < content->nr; rank++) {
		place = get_place(content->place + rank * TR_PLACE_BYTES);
		if (!places_ok(sizes, place, 1))
			return -EUCLEAN;
		if (!leaf->high && tr_place_is_high(place))
			return -ENOSPC;
		leaf->low[rank] = place;
		if (leaf->high)
			leaf->high[rank] = place >> 32;
	}
	for (w = 0; w < TR_LEAF_WORDS; w++) {
		leaf->present[w] = content->present ? le64_to_cpu(content->present[w]) : 0;
		leaf->rank[w] = sum;
		sum += hweight64(leaf->present[w]);
	}
	leaf->nr = sum;
	return 0;
}

static bool pack_ok(const struct tr_pack *pack, const struct sizes *sizes)
{
	if (!pack->id || !pack->blocks || pack->blocks > TERRACE_PACK_MAX_BLOCKS ||
	    !places_ok(sizes, pack->place, pack->blocks))
		return false;
	if (!pack->index_blocks)
		return pack->index_place == TR_NO_PLACE;
	return pack->index_blocks <= TERRACE_PACK_HEADER_BLOCKS &&
	       places_ok(sizes, pack->index_place, pack->index_blocks);
}

/* Fails if a block is live in an earlier pack: @seen. */
static int decode_pack(struct tr_pack *pack, const struct terrace_pack_ref_disk *ref, u64 *seen,
		       const struct sizes *sizes)
{
	u32 w;

	pack->id = le64_to_cpu(ref->id);
	pack->place = le64_to_cpu(ref->place);
	pack->index_place = le64_to_cpu(ref->index_place);
	pack->blocks = le16_to_cpu(ref->blocks);
	pack->index_blocks = le16_to_cpu(ref->index_blocks);
	pack->header_crc = le32_to_cpu(ref->header_crc);
	for (w = 0; w < TR_LEAF_WORDS; w++) {
		pack->live[w] = le64_to_cpu(ref->live[w]);
		if (pack->live[w] & seen[w])
			return -EUCLEAN;
		seen[w] |= pack->live[w];
	}
	return pack_ok(pack, sizes) ? 0 : -EUCLEAN;
}

static int decode_packs(const struct content *content, struct tr_packs *packs,
			const struct sizes *sizes)
{
	u64 seen[TR_LEAF_WORDS] = {};
	u32 k;
	int err;

	if (content->nr_packs > (packs ? packs->cap : 0))
		return -ENOSPC;
	for (k = 0; k < content->nr_packs; k++) {
		err = decode_pack(&packs->pack[k], &content->ref[k], seen, sizes);
		if (err)
			return err;
		if (k && packs->pack[k].id >= packs->pack[k - 1].id)
			return -EUCLEAN;
	}
	if (packs)
		packs->nr = content->nr_packs;
	return 0;
}

int tr_map_decode(const void *page, u32 bytes, struct tr_leaf *leaf, struct tr_packs *packs,
		  u8 *age, const u64 *data_blocks, u32 nr_tiers)
{
	const struct sizes sizes = { data_blocks, nr_tiers };
	struct content content;
	int err = find_content(page, bytes, &content);

	if (!err)
		err = decode_places(&content, leaf, &sizes);
	if (!err)
		err = decode_packs(&content, packs, &sizes);
	if (!err)
		*age = ((const struct terrace_map_disk *)page)->age;
	return err;
}

void tr_map_gone(const void *page, u32 bytes, u64 *gone)
{
	struct content content;
	u32 w;

	memset(gone, 0, BITMAP_BYTES);
	if (find_content(page, bytes, &content) || !content.gone)
		return;
	for (w = 0; w < TR_LEAF_WORDS; w++)
		gone[w] = le64_to_cpu(content.gone[w]);
}
