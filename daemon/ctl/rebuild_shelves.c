// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the shelves say about themselves: claims "block b is at offset o, by
 * record n or before". Which claims count:
 *
 *   - Only those of a shelf's present life. A shelf is opened again only when
 *     nothing on it is mapped any more, with a new id; what owner blocks of an
 *     earlier life say is long superseded, and perhaps overwritten. The life
 *     whose owner block has the newest record number is the present one.
 *   - An owner block says when its blocks were written. The table of a closed
 *     shelf names the same blocks, but carries the number of the moment when
 *     the shelf was closed: it serves only where an owner block is damaged.
 *   - Of two claims of a block the one with the higher record number is newer.
 *     With equal numbers the one further on in the same shelf is; between two
 *     shelves nothing tells, and that is counted.
 *
 * No claim is ever certain: the block may have been written to a slot later.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rebuild.h"
#include "term.h"

#define PIECE_BLOCKS	256u
#define NOT_NAMED	(~0ull)

struct claim {
	u64 block;
	u64 seq;
	bool table;
};

struct shelf {
	struct claim claim[TERRACE_CHUNK_BLOCKS];
	u64 id;			/* of the present life */
	u64 newest;		/* record number that makes it so */
	bool alive;
};

/* ---- one shelf -------------------------------------------------------------------- */

static void new_life(struct shelf *shelf, u64 id, u64 seq)
{
	for (u32 i = 0; i < TERRACE_CHUNK_BLOCKS; i++)
		shelf->claim[i] = (struct claim){ .block = NOT_NAMED };
	shelf->id = id;
	shelf->newest = seq;
	shelf->alive = true;
}

/* A structure of life @id, written at record @seq: does it count? */
static bool of_present_life(struct shelf *shelf, u64 id, u64 seq)
{
	if (shelf->alive && id == shelf->id) {
		shelf->newest = seq > shelf->newest ? seq : shelf->newest;
		return true;
	}
	if (shelf->alive && seq < shelf->newest)
		return false;
	new_life(shelf, id, seq);
	return true;
}

static void take_owners(struct shelf *shelf, const void *block, const struct tr_owners *head)
{
	struct tr_owner owner;

	if (!of_present_life(shelf, head->shelf_id, head->record_seq))
		return;
	for (u32 i = 0; i < head->nr; i++) {
		struct claim *claim;

		tr_owners_get(block, i, &owner);
		claim = &shelf->claim[owner.offset];
		if (claim->block == NOT_NAMED || claim->table || head->record_seq >= claim->seq)
			*claim = (struct claim){ .block = owner.block, .seq = head->record_seq };
	}
}

static void take_table(struct shelf *shelf, const struct tr_table *head, const u64 *owner)
{
	if (!of_present_life(shelf, head->shelf_id, head->record_seq))
		return;
	for (u32 i = 0; i < head->nr; i++) {
		struct claim *claim = &shelf->claim[head->first_offset + i];

		if (owner[i] != TERRACE_NO_OWNER && claim->block == NOT_NAMED)
			*claim = (struct claim){
				.block = owner[i], .seq = head->record_seq, .table = true,
			};
	}
}

static void take_block(const struct rebuild *rb, struct shelf *shelf, const void *block, u64 place)
{
	const u8 *uuid = rb->super->volume_uuid;
	u64 owner[TERRACE_TABLE_OWNERS];
	struct tr_owners owners;
	struct tr_table table;

	if (!tr_owners_decode(block, &owners, place, uuid))
		take_owners(shelf, block, &owners);
	else if (!tr_table_decode(block, &table, owner, place, uuid))
		take_table(shelf, &table, owner);
}

/* Owner blocks stand anywhere: every block is looked at, and one that cannot
 * be read is left out.
 */
static u32 read_shelf(const struct rebuild *rb, u32 tier, u64 first, struct shelf *shelf, u8 *buf)
{
	u32 bad = 0;

	memset(shelf, 0, sizeof(*shelf));
	for (u32 at = 0; at < TERRACE_CHUNK_BLOCKS; at += PIECE_BLOCKS) {
		bool whole = !volume_read_tier(rb->vol, tier, first + at, PIECE_BLOCKS, buf);

		for (u32 i = 0; i < PIECE_BLOCKS; i++) {
			void *block = buf + (u64)i * TERRACE_BLOCK_BYTES;

			if (!whole && volume_read_tier(rb->vol, tier, first + at + i, 1, block))
				bad++;
			else
				take_block(rb, shelf, block, tr_place(tier, first + at + i));
		}
	}
	return bad;
}

/* ---- what it means for the blocks ---------------------------------------------------- */

struct reader {
	struct rebuild *rb;
	bool alone, missing;
};

static bool on_missing_tier(const struct rebuild *rb, u64 at)
{
	u64 place = rb_place(at);

	return place != TR_NO_PLACE && rb->vol->tier[tr_place_tier(place)] < 0;
}

/* Does a claim have a say about this block? */
static bool needs_claim(const struct reader *r, const struct rb_region *region, u64 at,
			const struct claim *claim, u64 place)
{
	if (r->alone || rb_source(at) == RB_SHELF || rb_source(at) == RB_TABLE)
		return true;
	if (rb_state(at) == RB_CERTAIN)
		return r->missing && on_missing_tier(r->rb, at);
	if (rb_place(at) == place || rb_state(at) == RB_LOST)
		return true;	/* confirmed; better than nothing */
	if (rb_place(at) == TR_NO_PLACE)
		return claim->seq > region->seq;	/* else: unmapped since */
	return true;
}

static void take_claim(struct reader *r, u64 place, const struct claim *claim)
{
	struct rebuild *rb = r->rb;
	u32 i = claim->block % TERRACE_REGION_BLOCKS;
	struct rb_region *region;
	u64 newer;

	rb->claims++;
	if (claim->seq > rb->newest_claim)
		rb->newest_claim = claim->seq;
	if (claim->block >= rb->virtual_blocks) {
		rb->beyond++;
		return;
	}
	region = rb->region[claim->block / TERRACE_REGION_BLOCKS];
	if (!region && !r->alone && rb->unmapped_certain)
		return;
	if (!region)
		region = rb_region(rb, claim->block / TERRACE_REGION_BLOCKS);
	if (!needs_claim(r, region, region->at[i], claim, place))
		return;
	if (!region->claim_seq)
		region->claim_seq = ctl_alloc(TERRACE_REGION_BLOCKS * sizeof(u64));
	newer = claim->seq + 1;		/* 0 stands for none */
	if (region->claim_seq[i])
		rb->superseded++;
	if (region->claim_seq[i] == newer &&
	    tr_place_index(rb_place(region->at[i])) / TERRACE_CHUNK_BLOCKS !=
	    tr_place_index(place) / TERRACE_CHUNK_BLOCKS)
		rb->ties++;
	if (region->claim_seq[i] > newer)
		return;
	region->claim_seq[i] = newer;
	region->at[i] = rb_make(RB_OLDER, claim->table ? RB_TABLE : RB_SHELF, place);
}

/* Outdated places on shelves that no shelf confirms are somebody else's now. */
static void drop_unconfirmed(struct rebuild *rb)
{
	for (u64 r = 0; r < rb->nr_regions; r++) {
		for (u32 i = 0; rb->region[r] && i < TERRACE_REGION_BLOCKS; i++) {
			u64 *at = &rb->region[r]->at[i], place = rb_place(*at);

			if (rb_state(*at) == RB_DOUBTFUL && place != TR_NO_PLACE &&
			    rb->super->tier[tr_place_tier(place)].kind == TERRACE_KIND_SHELVES &&
			    rb->vol->tier[tr_place_tier(place)] >= 0)
				*at = rb_make(RB_LOST, RB_REUSED, TR_NO_PLACE);
		}
	}
}

static void read_tier(struct reader *r, u32 tier, struct shelf *shelf, u8 *buf)
{
	u64 chunks = r->rb->super->tier[tier].data_blocks / TERRACE_CHUNK_BLOCKS;

	for (u64 c = 0; c < chunks; c++) {
		u64 first = c * TERRACE_CHUNK_BLOCKS;
		u32 bad = read_shelf(r->rb, tier, first, shelf, buf);

		if (bad)
			problem(r->rb->findings, where("%s: shelf %llu", volume_tier_name(r->rb->vol, tier), c),
				"%u blocks cannot be read", bad);
		for (u32 i = 0; shelf->alive && i < TERRACE_CHUNK_BLOCKS; i++)
			if (shelf->claim[i].block != NOT_NAMED)
				take_claim(r, tr_place(tier, first + i), &shelf->claim[i]);
		term_progress("reading shelves", c + 1, chunks);
	}
}

void rb_read_shelves(struct rebuild *rb, bool alone, bool missing)
{
	struct reader r = { .rb = rb, .alone = alone, .missing = missing };
	struct shelf *shelf = ctl_alloc(sizeof(*shelf));
	u8 *buf = ctl_alloc_blocks(PIECE_BLOCKS);

	for (u32 t = 0; t < rb->super->nr_tiers; t++)
		if (rb->super->tier[t].kind == TERRACE_KIND_SHELVES && rb->vol->tier[t] >= 0)
			read_tier(&r, t, shelf, buf);
	if (!alone)
		drop_unconfirmed(rb);
	free(buf);
	free(shelf);
}
