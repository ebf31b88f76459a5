// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the shelves say about themselves: claims "block b is at offset o, by
 * record n or before". Which claims count:
 *
 *   - Only those of a shelf's present life. A shelf is opened again only when
 *     nothing on it is mapped any more, with a new id; what owner blocks of an
 *     earlier life say is long superseded, and perhaps overwritten. Which life is
 *     the present one says what stands where its table begins (life.h); where nothing
 *     does, it is the life whose owner block has the newest record number.
 *   - An owner block says when its blocks were written. The table of a closed
 *     shelf names the same blocks, but carries the number of the moment when
 *     the shelf was closed: it serves only where an owner block is damaged.
 *   - Of two claims of a block the one with the higher record number is newer.
 *     With equal numbers the one further on in the same shelf is; between two
 *     shelves nothing tells, and that is counted.
 *
 *   - Packs claim the blocks that their header has, at the record number that
 *     stands there: the next one when the pack was made. A loose claim up to that
 *     number was there before. Of two packs of a region the higher id is newer.
 *   - A shelf is filled from its front: while a pack's header and bytes have their
 *     CRCs, nothing was written over it. A loose claim inside is of an earlier
 *     life then. Is the pack damaged, the claim counts if it is the newer one, and
 *     the pack is of an earlier life.
 *
 * No claim is ever certain: the block may have been written to a slot later. And a
 * pack may contain a block that was written while the pack was made, as zeros or
 * half old, half new: the move left it out, and only map and journal know.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <asm/byteorder.h>

#include "life.h"
#include "rebuild_packs.h"
#include "term.h"

#define PIECE_BLOCKS	256u
#define NOT_NAMED	(~0ull)

struct claim {
	u64 block;
	u64 seq;
	bool table;
};

struct found {
	struct tr_pack_head head;
	u32 crc;
	bool whole;		/* so are all blocks in it */
	u64 good[TR_LEAF_WORDS];
};

struct shelf {
	struct claim claim[TERRACE_CHUNK_BLOCKS];
	struct found *found;	/* headers of packs */
	u32 nr_found, cap_found;
	u64 id;			/* of the present life */
	u64 newest;		/* record number that makes it so */
	bool alive;
	bool known;		/* by what stands where its table begins */
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
	if (shelf->known || (shelf->alive && seq < shelf->newest))
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

/* A header can be two blocks long; what follows @block need not be in memory. */
static void take_header(const struct rebuild *rb, struct shelf *shelf, u64 place)
{
	u32 left = TERRACE_CHUNK_BLOCKS - tr_place_index(place) % TERRACE_CHUNK_BLOCKS;
	u32 nr = left < TERRACE_PACK_HEADER_BLOCKS ? left : TERRACE_PACK_HEADER_BLOCKS;
	const struct tr_pack_id id = { .volume_uuid = rb->super->volume_uuid };
	u8 *header = ctl_alloc_blocks(TERRACE_PACK_HEADER_BLOCKS);
	struct tr_pack_head head;

	if (!volume_read_tier(rb->vol, tr_place_tier(place), tr_place_index(place), nr, header) &&
	    !tr_pack_parse(header, nr * TERRACE_BLOCK_BYTES, &id, &head) && head.place == place &&
	    head.blocks <= left) {
		if (shelf->nr_found == shelf->cap_found) {
			shelf->cap_found = 2 * shelf->cap_found + 64;
			shelf->found = ctl_realloc(shelf->found,
						   shelf->cap_found * sizeof(*shelf->found));
		}
		shelf->found[shelf->nr_found++] = (struct found){
			.head = head, .crc = __le32_to_cpu(((struct terrace_pack_disk *)header)->crc),
		};
	}
	free(header);
}

static void take_block(const struct rebuild *rb, struct shelf *shelf, const void *block, u64 place)
{
	const u8 *uuid = rb->super->volume_uuid;
	u64 owner[TERRACE_TABLE_OWNERS];
	struct tr_owners owners;
	struct tr_table table;

	if (*(const __le32 *)block == __cpu_to_le32(TERRACE_PACK_MAGIC))
		take_header(rb, shelf, place);
	else if (!tr_owners_decode(block, &owners, place, uuid))
		take_owners(shelf, block, &owners);
	else if (!tr_table_decode(block, &table, owner, place, uuid))
		take_table(shelf, &table, owner);
}

/* Owner blocks stand anywhere: every block is looked at, and one that cannot
 * be read is left out.
 */
static u32 read_shelf(const struct rebuild *rb, u32 tier, u64 first, struct shelf *shelf, u8 *buf)
{
	u64 life;
	u32 bad = 0;

	free(shelf->found);
	memset(shelf, 0, sizeof(*shelf));
	if (life_read(rb->vol, rb->super->volume_uuid, tier, first, buf, &life)) {
		new_life(shelf, life, 0);
		shelf->known = true;
	}
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

static bool missing(const struct rebuild *rb, u64 place)
{
	return place == TR_NO_PLACE || rb->vol->tier[tr_place_tier(place)] < 0;
}

/* … all of it, place and pack. */
static bool on_missing_tier(const struct rebuild *rb, const struct rb_region *region, u64 at)
{
	u32 number = rb_pack(at);

	return rb_somewhere(at) && missing(rb, rb_place(at)) &&
	       (!number || missing(rb, region->pack[number - 1].ref.place));
}

static bool is_claim(u64 at)
{
	return rb_source(at) == RB_SHELF || rb_source(at) == RB_TABLE || rb_source(at) == RB_PACK;
}

/* Does a claim have a say about this block? */
static bool needs_claim(const struct reader *r, const struct rb_region *region, u64 at, u64 seq)
{
	if (r->alone || is_claim(at))
		return true;
	if (rb_state(at) == RB_CERTAIN)
		return r->missing && on_missing_tier(r->rb, region, at);
	if (rb_somewhere(at) || rb_state(at) == RB_LOST)
		return true;	/* confirmed; better than nothing */
	return seq > region->seq;	/* else: unmapped since */
}

/* The region that a claim is about, if it needs one. NULL: it says nothing new. */
static struct rb_region *claimed_region(struct reader *r, u64 number, u64 seq)
{
	struct rebuild *rb = r->rb;
	struct rb_region *region;

	if (seq > rb->newest_claim)
		rb->newest_claim = seq;
	if (number >= rb->nr_regions) {
		rb->beyond++;
		return NULL;
	}
	region = rb->region[number];
	if (!region && !r->alone && rb->unmapped_certain)
		return NULL;
	if (!region)
		region = rb_region(rb, number);
	if (!region->claim_seq)
		region->claim_seq = ctl_alloc(TERRACE_REGION_BLOCKS * sizeof(u64));
	return region;
}

/* Is the claim that the block has already newer than a pack's? */
static bool beats_pack(const struct rb_region *region, u32 i, const struct found *f)
{
	u32 number = rb_pack(region->at[i]);
	u64 have = region->claim_seq[i], newer = f->head.record_seq + 1;

	if (have && number)
		return region->pack[number - 1].ref.id > f->head.id;
	return have > newer;
}

static void offer_pack(struct reader *r, const struct found *f)
{
	const struct tr_pack ref = {
		.id = f->head.id, .place = f->head.place, .blocks = f->head.blocks,
		.header_crc = f->crc, .index_place = TR_NO_PLACE,
	};
	struct rb_region *region = claimed_region(r, f->head.region, f->head.record_seq);
	struct rebuild *rb = r->rb;
	u32 number = region ? rb_pack_number(rb, region, &ref) : 0;

	rb->packs_found++;
	for (u32 i = 0; number && i < TERRACE_REGION_BLOCKS; i++) {
		if (!bit_test(f->good, i) ||
		    f->head.region * TERRACE_REGION_BLOCKS + i >= rb->virtual_blocks ||
		    !needs_claim(r, region, region->at[i], f->head.record_seq))
			continue;
		rb->claims++;
		if (region->claim_seq[i])
			rb->superseded++;
		if (beats_pack(region, i, f))
			continue;
		region->claim_seq[i] = f->head.record_seq + 1;
		region->at[i] = rb_make_packed(RB_OLDER, RB_PACK, TR_NO_PLACE, number);
	}
}

static void take_claim(struct reader *r, u64 place, const struct claim *claim)
{
	struct rebuild *rb = r->rb;
	u32 i = claim->block % TERRACE_REGION_BLOCKS;
	struct rb_region *region;
	u64 newer;

	rb->claims++;
	region = claimed_region(r, claim->block / TERRACE_REGION_BLOCKS, claim->seq);
	if (!region || claim->block >= rb->virtual_blocks ||
	    !needs_claim(r, region, region->at[i], claim->seq))
		return;
	newer = claim->seq + 1;		/* 0 stands for none */
	if (region->claim_seq[i])
		rb->superseded++;
	if (region->claim_seq[i] == newer && rb_pack(region->at[i]))
		return;		/* it was there before the pack */
	if (region->claim_seq[i] == newer &&
	    tr_place_index(rb_place(region->at[i])) / TERRACE_CHUNK_BLOCKS !=
	    tr_place_index(place) / TERRACE_CHUNK_BLOCKS)
		rb->ties++;
	if (region->claim_seq[i] > newer)
		return;
	region->claim_seq[i] = newer;
	region->at[i] = rb_make(RB_OLDER, claim->table ? RB_TABLE : RB_SHELF, place);
}

/* Its header would have been found, and had the last word on the block. */
static void drop_unconfirmed_pack(const struct rebuild *rb, const struct rb_region *region, u64 *at)
{
	u64 run = region->pack[rb_pack(*at) - 1].ref.place;

	if (run == TR_NO_PLACE || !missing(rb, run))
		rb_pack_lose_block(at, RB_PACK_HEADER);
}

/* Outdated places on shelves that no shelf confirms are somebody else's now. */
static void drop_unconfirmed(struct rebuild *rb)
{
	for (u64 r = 0; r < rb->nr_regions; r++) {
		for (u32 i = 0; rb->region[r] && i < TERRACE_REGION_BLOCKS; i++) {
			u64 *at = &rb->region[r]->at[i], place = rb_place(*at);

			if (rb_state(*at) == RB_DOUBTFUL && rb_pack(*at))
				drop_unconfirmed_pack(rb, rb->region[r], at);
			else if (rb_state(*at) == RB_DOUBTFUL && place != TR_NO_PLACE &&
			    rb->super->tier[tr_place_tier(place)].kind == TERRACE_KIND_SHELVES &&
			    rb->vol->tier[tr_place_tier(place)] >= 0)
				*at = rb_make(RB_LOST, RB_REUSED, TR_NO_PLACE);
		}
	}
}

/* ---- packs of one shelf ---------------------------------------------------------------- */

static int newest_first(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return x->head.id == y->head.id ? 0 : x->head.id > y->head.id ? -1 : 1;
}

/* Which of its blocks have their CRCs. */
static void prove(const struct rebuild *rb, struct found *f)
{
	const struct tr_pack ref = {
		.id = f->head.id, .place = f->head.place, .blocks = f->head.blocks,
		.header_crc = f->crc, .index_place = TR_NO_PLACE,
	};
	struct rb_run run;
	u32 nr = 0;

	if (!rb_run_open(rb, f->head.region, &ref, &run))
		for (u32 i = 0; i < TERRACE_REGION_BLOCKS; i++)
			if (tr_pack_has(run.header, i) && rb_run_block_good(&run, i)) {
				bit_set(f->good, i);
				nr++;
			}
	f->whole = nr == f->head.nr_blocks;
	rb_run_close(&run);
}

/* Is it still there, and what loose claims are not? */
static bool settle(struct shelf *shelf, struct found *f, u64 *taken)
{
	u32 from = tr_place_index(f->head.place) % TERRACE_CHUNK_BLOCKS;

	for (u32 i = from; i < from + f->head.blocks; i++) {
		const struct claim *claim = &shelf->claim[i];

		if (bit_test(taken, i) || (shelf->alive && !f->whole && claim->block != NOT_NAMED &&
					   claim->seq >= f->head.record_seq))
			return false;
	}
	for (u32 i = from; i < from + f->head.blocks; i++) {
		bit_set(taken, i);
		shelf->claim[i].block = NOT_NAMED;
	}
	return true;
}

static void take_packs(struct reader *r, struct shelf *shelf)
{
	u64 *taken = ctl_alloc(TERRACE_CHUNK_BLOCKS / 8);

	if (shelf->nr_found)
		qsort(shelf->found, shelf->nr_found, sizeof(*shelf->found), newest_first);
	for (u32 k = 0; k < shelf->nr_found; k++) {
		prove(r->rb, &shelf->found[k]);
		if (settle(shelf, &shelf->found[k], taken))
			offer_pack(r, &shelf->found[k]);
	}
	free(taken);
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
		take_packs(r, shelf);
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
	free(shelf->found);
	free(shelf);
}
