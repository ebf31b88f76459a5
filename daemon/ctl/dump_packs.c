// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl dump packs: the packs that the map's pages name, as their headers
 * describe them. What the journal says beyond the pages is not in it.
 */
#include <stdlib.h>
#include <asm/byteorder.h>

#include "core/pack.h"
#include "dump.h"
#include "trees.h"

static const char *codec_name(u32 codec)
{
	static const char *const names[] = { "none", "lz4", "zstd" };

	return codec < 3 ? names[codec] : "?";
}

static u32 count_raw(const void *header, u32 nr_clusters)
{
	struct tr_pack_where where;
	u32 nr = 0;

	for (u32 k = 0; k < nr_clusters; k++) {
		tr_pack_cluster(header, k, &where);
		nr += where.raw;
	}
	return nr;
}

static void add_head(struct json_object *o, const void *header, const struct tr_pack_head *head)
{
	const struct terrace_pack_disk *disk = header;
	u64 bitmap[TR_LEAF_WORDS];

	add_u64(o, "record_seq", head->record_seq);
	add_text(o, "codec", codec_name(head->codec));
	add_u64(o, "level", head->level);
	add_u64(o, "cluster_blocks", 1u << head->shift);
	add_u64(o, "packed_blocks", head->nr_blocks);
	add_u64(o, "clusters", head->nr_clusters);
	add_u64(o, "raw_clusters", count_raw(header, head->nr_clusters));
	add_u64(o, "header_bytes", head->bytes);
	add_u64(o, "payload_bytes", head->payload_bytes);
	for (u32 w = 0; w < TR_LEAF_WORDS; w++)
		bitmap[w] = __le64_to_cpu(disk->bitmap[w]);
	add_runs(o, "contains", bitmap, TERRACE_REGION_BLOCKS,
		 head->region * TERRACE_REGION_BLOCKS);
}

static void dump_pack(struct dump *d, u64 region, const struct tr_pack *pack)
{
	const struct tr_pack_id id = {
		.volume_uuid = d->vol.super->volume_uuid, .id = pack->id, .place = pack->place,
		.region = region, .blocks = pack->blocks, .header_crc = &pack->header_crc,
	};
	u32 tier = tr_place_tier(pack->place), nr = TERRACE_PACK_HEADER_BLOCKS;
	u8 *header = ctl_alloc_blocks(nr);
	struct json_object *o = json_object_new_object();
	struct tr_pack_head head;
	int r;

	if (pack->blocks < nr)
		nr = pack->blocks;
	add_u64(o, "region", region);
	add_u64(o, "id", pack->id);
	add_place(o, "", pack->place);
	add_u64(o, "blocks", pack->blocks);
	add_place(o, "index_", pack->index_place);
	add_u64(o, "live_blocks", tr_pack_live(pack));
	r = volume_read_tier(&d->vol, tier, tr_place_index(pack->place), nr, header);
	if (!r)
		r = tr_pack_parse(header, nr * TERRACE_BLOCK_BYTES, &id, &head);
	if (r)
		problem(&d->findings, where("%s: tier %u place %llu: pack %llu of region %llu",
					    volume_tier_name(&d->vol, tier), tier,
					    tr_place_index(pack->place), pack->id, region),
			"%s", decode_strerror(r));
	else
		add_head(o, header, &head);
	dump_item(d, "pack", o);
	free(header);
}

static u32 leaf_page(struct trees *trees, u32 tree, u32 tier, u64 number,
		     const struct tr_entry *entry)
{
	const struct tr_page_id id = {
		.magic = TERRACE_MAP_MAGIC, .index = number, .tree = tree,
	};
	static u32 low[TERRACE_REGION_BLOCKS];
	static u8 high[TERRACE_REGION_BLOCKS];
	struct tr_leaf leaf = { .low = low, .high = high, .cap = TERRACE_REGION_BLOCKS };
	struct tr_packs *packs = ctl_alloc(tr_packs_bytes(TERRACE_PACK_SLOTS));
	u64 data_blocks[TERRACE_MAX_TIERS];
	void *page = NULL;
	u8 age;

	(void)tier;
	for (u32 i = 0; i < TERRACE_MAX_TIERS; i++)
		data_blocks[i] = trees->super->tier[i].data_blocks;
	tr_packs_init(packs, TERRACE_PACK_SLOTS);
	if (dump_wanted(trees->ctx, number))
		page = trees_read_page(trees, &id, entry);
	if (page && tr_map_decode(page, entry->blocks * TERRACE_BLOCK_BYTES, &leaf, packs, &age,
				  data_blocks, trees->super->nr_tiers))
		problem(trees->findings, page_where(trees->meta, &id, entry->block),
			"its sections or places are impossible");
	else if (page)
		for (u32 k = 0; k < packs->nr; k++)
			dump_pack(trees->ctx, number, &packs->pack[k]);
	free(page);
	free(packs);
	return entry->count;
}

void dump_packs(struct dump *d)
{
	struct trees trees;

	trees_init(&trees, d->vol.meta, &d->findings);
	trees.leaf = leaf_page;
	trees.ctx = d;
	trees_walk_map(&trees);
	trees_free(&trees);
}
