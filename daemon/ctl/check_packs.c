// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Packs: the run is in use and nobody else's, its header is the one that the
 * map names, it contains every block that is live in it, and all its bytes
 * have the CRCs that the header says.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/pack.h"
#include "check.h"

static const char *pack_where(const struct check *c, u64 region, const struct tr_pack *pack)
{
	u32 tier = tr_place_tier(pack->place);

	return where("%s: tier %u place %llu: pack %llu of region %llu",
		     volume_tier_name(&c->vol, tier), tier, tr_place_index(pack->place), pack->id,
		     region);
}

static bool run_exists(const struct check *c, u64 place, u32 nr)
{
	u32 tier = tr_place_tier(place);

	return tier < c->vol.super->nr_tiers && nr &&
	       tr_place_index(place) + nr <= c->vol.super->tier[tier].data_blocks;
}

/* Takes note of who uses the blocks of a run. */
static void check_run(struct check *c, const struct tr_pack *pack, u64 place, u32 nr)
{
	for (u32 i = 0; i < nr; i++) {
		u64 at = tr_place_add(place, i);

		if (c->walk == CHECK_SUSPECTS)
			check_suspects_user(c, CHECK_PACK | pack->id, at);
		else if (c->walk == CHECK_MAP && !check_space_reference(c, at))
			check_suspect(c, at, true);
	}
}

/* The index copy must be the header, byte for byte. */
static void check_copy(struct check *c, u64 region, const struct tr_pack *pack, const u8 *header,
		       u32 bytes)
{
	u8 *copy = ctl_alloc_blocks(TERRACE_PACK_HEADER_BLOCKS);
	u32 tier = tr_place_tier(pack->index_place);
	int r;

	r = volume_read_tier(&c->vol, tier, tr_place_index(pack->index_place), pack->index_blocks,
			     copy);
	if (r)
		note(&c->findings, pack_where(c, region, pack), "its index copy cannot be read: %s",
		     strerror(-r));
	else if (bytes > pack->index_blocks * TERRACE_BLOCK_BYTES || memcmp(copy, header, bytes))
		problem(&c->findings, pack_where(c, region, pack),
			"its index copy, at place %llu of tier %u, is not its header",
			tr_place_index(pack->index_place), tier);
	free(copy);
}

static void check_clusters(struct check *c, u64 region, const struct tr_pack *pack, const u8 *run,
			   u32 nr_clusters)
{
	u16 block[16];

	for (u32 k = 0; k < nr_clusters; k++) {
		struct tr_pack_where at;
		u32 nr = tr_pack_members(run, k, block);

		tr_pack_cluster(run, k, &at);
		if (!tr_pack_check(run, &at, run + at.offset))
			continue;
		for (u32 i = 0; i < nr; i++) {
			tr_pack_find(run, block[i], &at);
			if (!tr_pack_check(run, &at, run + at.offset))
				continue;
			if (bit_test(pack->live, block[i]))
				problem(&c->findings, pack_where(c, region, pack),
					"block %llu: the bytes at %u-%u of the run are damaged",
					region * TERRACE_REGION_BLOCKS + block[i], at.offset,
					at.offset + at.length - 1);
			else
				note(&c->findings, pack_where(c, region, pack),
				     "block %llu, no longer used, is damaged",
				     region * TERRACE_REGION_BLOCKS + block[i]);
		}
	}
}

static void check_contents(struct check *c, u64 region, const struct tr_pack *pack, u8 *run)
{
	const struct tr_pack_id id = {
		.volume_uuid = c->vol.super->volume_uuid, .id = pack->id, .place = pack->place,
		.region = region, .blocks = pack->blocks, .header_crc = &pack->header_crc,
	};
	u32 tier = tr_place_tier(pack->place);
	struct tr_pack_head head;
	int r = volume_read_tier(&c->vol, tier, tr_place_index(pack->place), pack->blocks, run);

	if (r) {
		problem(&c->findings, pack_where(c, region, pack), "cannot be read: %s", strerror(-r));
		return;
	}
	r = tr_pack_parse(run, pack->blocks * TERRACE_BLOCK_BYTES, &id, &head);
	if (r) {
		problem(&c->findings, pack_where(c, region, pack), "its header: %s",
			r == -ESTALE ? "a good one, but not that of this pack" : decode_strerror(r));
		return;
	}
	for (u32 i = 0; i < TERRACE_REGION_BLOCKS; i++)
		if (bit_test(pack->live, i) && !tr_pack_has(run, i))
			problem(&c->findings, pack_where(c, region, pack),
				"the map has block %llu in it, its header has not",
				region * TERRACE_REGION_BLOCKS + i);
	check_clusters(c, region, pack, run, head.nr_clusters);
	if (pack->index_blocks)
		check_copy(c, region, pack, run, head.bytes);
}

/* Live blocks beyond the volume's end, and those that a discard has left. */
static void check_live(struct check *c, u64 region, const struct tr_pack *pack, const u64 *kept)
{
	for (u32 i = 0; i < TERRACE_REGION_BLOCKS; i++) {
		u64 block = region * TERRACE_REGION_BLOCKS + i;

		if (!bit_test(pack->live, i))
			continue;
		if (kept && !bit_test(kept, i)) {
			c->discarded_blocks++;
			continue;
		}
		c->packed_blocks++;
		if (block >= c->virtual_blocks)
			problem(&c->findings, pack_where(c, region, pack),
				"block %llu is live in it, but the volume ends at block %llu", block,
				c->virtual_blocks);
	}
}

void check_packs(struct check *c, u64 region, const struct tr_packs *packs, const u64 *kept)
{
	for (u32 k = 0; k < packs->nr; k++) {
		const struct tr_pack *pack = &packs->pack[k];
		u8 *run;

		if (!run_exists(c, pack->place, pack->blocks) ||
		    (pack->index_blocks && !run_exists(c, pack->index_place, pack->index_blocks))) {
			if (c->walk == CHECK_MAP)
				problem(&c->findings, pack_where(c, region, pack),
					"its run or index copy does not exist");
			continue;
		}
		check_run(c, pack, pack->place, pack->blocks);
		check_run(c, pack, pack->index_place, pack->index_blocks);
		if (c->walk != CHECK_MAP)
			continue;
		c->packs++;
		check_live(c, region, pack, kept);
		run = ctl_alloc_blocks(pack->blocks);
		check_contents(c, region, pack, run);
		free(run);
	}
	if (packs->nr > TERRACE_MAX_PACKS && c->walk == CHECK_MAP)
		note(&c->findings, where("volume '%s': region %llu", c->vol.name, region),
		     "has %u packs: a crash has cut off a move", packs->nr);
}
