// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What moves would have done, for image.c: blocks of a region go into a pack
 * (with any codec, cluster and with what is in other packs), some come back as
 * clean slots, clean slots are dropped, packs without live blocks as well. A
 * pack is written at once, as its contents are of that moment; one that a later
 * one overwrites was free by then.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "image.h"
#include "pack_codec.h"

static u64 first_of(u64 region)
{
	return region * TERRACE_REGION_BLOCKS;
}

static bool has(const u64 *bits, u32 i)
{
	return bits[i / 64] >> i % 64 & 1;
}

u64 shelf_tier(void)
{
	for (u32 t = 0; t < super.nr_tiers; t++)
		if (super.tier[t].kind == TERRACE_KIND_SHELVES)
			return t;
	abort();
}

void add_pack(u64 region, const struct tr_pack *pack)
{
	if (!packs[region]) {
		packs[region] = calloc(1, tr_packs_bytes(TERRACE_PACK_SLOTS));
		tr_packs_init(packs[region], TERRACE_PACK_SLOTS);
	}
	if (tr_packs_add(packs[region], pack))
		abort();
}

/* Its number and the record that wrote it, then what compresses half, or not at all. */
static void contents(u64 *block, u64 number)
{
	u64 keep = random_state;
	u32 filled = number % 5 ? 256 : 512;

	memset(block, 0, TERRACE_BLOCK_BYTES);
	block[0] = number;
	block[1] = value_of[number];
	for (u32 w = 2; w < filled; w++)
		block[w] = rnd(~0ull);
	random_state = keep;
}

/* The run of a pack of the blocks @into, somewhere on the shelves; @pack gets what
 * its PACK_ADD record needs.
 */
void write_pack(struct tr_pack *pack, u64 region, const u64 *into)
{
	static u64 image[(TERRACE_REGION_BLOCKS + 4) * 512], cluster[16 * 512];
	static struct tr_pack_build build;
	struct pack_codec *codec = pack_codec_create(0);
	u32 kind = rnd(3), tier = shelf_tier(), nr = 0;
	u16 block[TERRACE_REGION_BLOCKS];

	for (u32 i = 0; i < TERRACE_REGION_BLOCKS; i++)
		if (has(into, i))
			block[nr++] = i;
	build.head = (struct tr_pack_head){
		.id = pack->id, .region = region, .record_seq = nr_records + 1,
		.nr_blocks = nr, .codec = kind, .shift = 2 * rnd(3),
	};
	if (tr_pack_start(&build, image, sizeof(image), super.volume_uuid))
		abort();
	for (u32 at = 0, n; at < nr; at += n) {
		n = nr - at < 1u << build.head.shift ? nr - at : 1u << build.head.shift;
		for (u32 k = 0; k < n; k++)
			contents(cluster + k * 512, first_of(region) + block[at + k]);
		if (tr_pack_add(&build, block + at, n, cluster, pack_codec_ops(kind), codec))
			abort();
	}
	if (tr_pack_finish(&build, label[tier].align_blocks, &pack->header_crc))
		abort();
	pack->blocks = build.head.blocks;
	pack->place = allocate(tier, pack->blocks);
	tr_pack_place(&build, pack->place, &pack->header_crc);
	if (pwrite(fd[tier], image, pack->blocks * TERRACE_BLOCK_BYTES,
		   (label[tier].data_start + tr_place_index(pack->place)) * TERRACE_BLOCK_BYTES) < 0)
		die("pack");
	for (u32 i = 0; i < pack->blocks; i++)
		set_owner(tr_place_add(pack->place, i), NO_BLOCK);
	set_run(pack->place, pack->blocks, true);
	if (rnd(2)) {
		pack->index_blocks = build.payload_at / TERRACE_BLOCK_BYTES;
		pack->index_place = allocate(0, pack->index_blocks);
		set_run(pack->index_place, pack->index_blocks, true);
		for (u32 i = 0; i < pack->index_blocks; i++)
			set_owner(tr_place_add(pack->index_place, i), NO_BLOCK);
		if (pwrite(fd[0], image, pack->index_blocks * TERRACE_BLOCK_BYTES,
			   (label[0].data_start + tr_place_index(pack->index_place)) * TERRACE_BLOCK_BYTES) < 0)
			die("index");
	}
	pack_codec_destroy(codec);
}

static void drop_empty(u64 region)
{
	struct tr_packs *list = packs[region];

	for (u32 k = 0; list && k < list->nr; k++) {
		struct tr_pack pack = list->pack[k];

		if (tr_pack_live(&pack))
			continue;
		if (pack.index_blocks)
			record(TERRACE_RECORD_INDEX_DROP, region, pack.index_blocks, pack.index_place, pack.id);
		record(TERRACE_RECORD_PACK_DROP, region, pack.blocks, pack.place, pack.id);
		set_run(pack.place, pack.blocks, false);
		set_run(pack.index_place, pack.index_blocks, false);
		tr_packs_drop(list, pack.id);
		k = ~0u;
	}
}

static void pack_records(u64 region, const struct tr_pack *pack, const u64 *into)
{
	u64 first = first_of(region), mask[TR_LEAF_WORDS] = { 0 };

	record(TERRACE_RECORD_PACK_ADD, region, pack->blocks, pack->place, pack->id);
	records[nr_records - 1].aux = pack->header_crc;
	if (pack->index_blocks)
		record(TERRACE_RECORD_INDEX_ADD, region, pack->index_blocks, pack->index_place, pack->id);
	for (u32 i = 0; i < TERRACE_REGION_BLOCKS; i++) {
		/* one of a hundred was written meanwhile, and is left out */
		if (!has(into, i) || !rnd(100))
			continue;
		if (map[first + i] == TR_NO_PLACE) {
			mask[i / 64] |= 1ull << i % 64;
		} else {
			record(TERRACE_RECORD_PACKED, first + i, 1, pack->id, map[first + i]);
			set_used(map[first + i], false);
			map[first + i] = TR_NO_PLACE;
		}
		tr_packs_put(packs[region], pack->id, i, 1);
	}
	for (u32 w = 0; w < TR_LEAF_WORDS; w++)
		if (mask[w])
			record(TERRACE_RECORD_PACKED_MASK, first + 64 * w, 64, pack->id, mask[w]);
}

/* Up to the whole region, what is in other packs included, or only what is not. */
static void pack_down(u64 region)
{
	bool merge = rnd(2) || (packs[region] && packs[region]->nr > TERRACE_MAX_PACKS);
	u32 from = rnd(2) ? 0 : rnd(TERRACE_REGION_BLOCKS), to = from + 1 + rnd(600), nr = 0;
	struct tr_pack pack = { .id = super.next_id++, .index_place = TR_NO_PLACE };
	u64 into[TR_LEAF_WORDS] = { 0 };

	for (u32 i = from; i < to && i < TERRACE_REGION_BLOCKS; i++) {
		bool packed = tr_packs_find(packs[region], i) != TR_NO_PACK;

		if (!somewhere(first_of(region) + i) || (packed && !merge))
			continue;
		into[i / 64] |= 1ull << i % 64;
		nr++;
	}
	if (!nr || (packs[region] && packs[region]->nr == TERRACE_PACK_SLOTS))
		return;
	write_pack(&pack, region, into);
	add_pack(region, &pack);
	pack_records(region, &pack, into);
}

/* Copies of packed blocks go up, or are dropped. */
static void raise_or_drop(u64 region)
{
	struct tr_packs *list = packs[region];
	u64 first = first_of(region);

	for (u32 i = rnd(TERRACE_REGION_BLOCKS), nr = rnd(40); nr && i < TERRACE_REGION_BLOCKS; i++, nr--) {
		u32 k = tr_packs_find(list, i);

		if (k == TR_NO_PACK)
			continue;
		if (map[first + i] == TR_NO_PLACE) {
			map[first + i] = allocate(0, 1);
			record(TERRACE_RECORD_CLEAN, first + i, 1, map[first + i], list->pack[k].id);
			set_used(map[first + i], true);
			set_owner(map[first + i], first + i);
			written_at[0][tr_place_index(map[first + i])] = value_of[first + i];
		} else {
			record(TERRACE_RECORD_PACKED, first + i, 1, list->pack[k].id, map[first + i]);
			set_used(map[first + i], false);
			map[first + i] = TR_NO_PLACE;
		}
	}
}

void operate_pack(u64 region)
{
	if (rnd(2))
		pack_down(region);
	else if (packs[region])
		raise_or_drop(region);
	drop_empty(region);
}
