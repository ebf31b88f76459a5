// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table of blocks. See rebuild.h.
 */
#include <stdlib.h>
#include <string.h>

#include "rebuild_packs.h"

#define CHUNK_WORDS (TERRACE_CHUNK_BLOCKS / 64)

bool rb_borrow_super(struct volume *vol, struct tr_super *borrowed)
{
	const struct tr_super *p = vol->primary.super, *m = vol->mirror.super;

	if (!vol->primary.dev || !vol->mirror.lazy || !m || vol->mirror.stale || (p && p->generation >= m->generation) ||
	    vol->primary.blocks != vol->mirror.blocks)
		return false;
	*borrowed = *m;
	borrowed->flags &= ~(u32)TERRACE_SUPER_LAZY;
	vol->primary.super = borrowed;
	vol->meta = &vol->primary;
	vol->super = borrowed;
	return true;
}

void rb_init(struct rebuild *rb, struct volume *vol, const struct tr_super *super,
	     struct findings *findings)
{
	memset(rb, 0, sizeof(*rb));
	rb->vol = vol;
	rb->super = super;
	rb->findings = findings;
	rb->virtual_blocks = super->virtual_blocks;
	rb->nr_regions = (super->virtual_blocks + TERRACE_REGION_BLOCKS - 1) / TERRACE_REGION_BLOCKS;
	rb->region = ctl_alloc(rb->nr_regions * sizeof(struct rb_region *));
	rb->avoid = ctl_alloc((super->meta_blocks / 64 + 1) * sizeof(u64));
	rb->newest_record = super->tail_record_seq;
	rb->newest_journal_block = super->tail_block_seq;
}

void rb_free(struct rebuild *rb)
{
	for (u64 r = 0; r < rb->nr_regions; r++) {
		if (rb->region[r]) {
			free(rb->region[r]->claim_seq);
			free(rb->region[r]->pack);
		}
		free(rb->region[r]);
	}
	for (u32 t = 0; rb->super && t < rb->super->nr_tiers; t++)
		for (u32 k = 0; k < 2 && rb->used[k][t]; k++) {
			for (u64 c = 0; c < tr_chunks(rb->super->tier[t].data_blocks); c++)
				free(rb->used[k][t][c]);
			free(rb->used[k][t]);
		}
	free(rb->region);
	free(rb->avoid);
	memset(rb, 0, sizeof(*rb));
}

struct rb_region *rb_region(struct rebuild *rb, u64 number)
{
	struct rb_region *region = rb->region[number];

	if (region)
		return region;
	region = ctl_alloc(sizeof(*region));
	region->seq = rb->super->tail_record_seq;
	region->end_known = rb->end_known;
	for (u32 i = 0; i < TERRACE_REGION_BLOCKS; i++)
		region->at[i] = rb_make(rb->unmapped_certain ? RB_CERTAIN : RB_DOUBTFUL, RB_NONE,
					TR_NO_PLACE);
	rb->region[number] = region;
	return region;
}

bool rb_uncertain(const struct rebuild *rb)
{
	if (!rb->unmapped_certain)
		return true;
	for (u64 r = 0; r < rb->nr_regions; r++)
		for (u32 i = 0; rb->region[r] && i < TERRACE_REGION_BLOCKS; i++)
			if (rb_state(rb->region[r]->at[i]) != RB_CERTAIN)
				return true;
	return false;
}

/* ---- double claims --------------------------------------------------------------- */

static bool test_place(u64 **chunks, u64 index)
{
	u64 *bits = chunks[index / TERRACE_CHUNK_BLOCKS];

	return bits && bit_test(bits, index % TERRACE_CHUNK_BLOCKS);
}

static void set_place(u64 **chunks, u64 index)
{
	u64 **bits = &chunks[index / TERRACE_CHUNK_BLOCKS];

	if (!*bits)
		*bits = ctl_alloc(CHUNK_WORDS * sizeof(u64));
	bit_set(*bits, index % TERRACE_CHUNK_BLOCKS);
}

bool rb_used(const struct rebuild *rb, u32 tier, u64 index)
{
	return test_place(rb->used[0][tier], index);
}

static bool exists(const struct rebuild *rb, u64 place, u32 nr)
{
	u32 tier = tr_place_tier(place);

	return tier < rb->super->nr_tiers && nr &&
	       tr_place_index(place) + nr <= rb->super->tier[tier].data_blocks;
}

/* ---- what claims places: blocks, and packs ------------------------------------------- */

typedef void (*at_fn)(struct rebuild *rb, u64 *at);
typedef void (*pack_fn)(struct rebuild *rb, struct rb_region *region, u32 number);

/* Packs are as sure as the surest block that is live in them. */
static void each_claim(struct rebuild *rb, enum rb_state state, at_fn fn, pack_fn pack)
{
	for (u64 r = 0; r < rb->nr_regions; r++) {
		struct rb_region *region = rb->region[r];

		for (u32 i = 0; region && i < TERRACE_REGION_BLOCKS; i++)
			if (rb_place(region->at[i]) != TR_NO_PLACE &&
			    rb_state(region->at[i]) == state)
				fn(rb, &region->at[i]);
		for (u32 k = 1; region && k <= region->nr_packs; k++)
			if (rb_pack_state(region, k) == state)
				pack(rb, region, k);
	}
}

/* What its place held is still live in a pack. */
static void lose_place(u64 *at, enum rb_source source)
{
	*at = rb_pack(*at) ? rb_make_packed(rb_state(*at), rb_source(*at), TR_NO_PLACE, rb_pack(*at)) :
	      rb_make(RB_LOST, source, TR_NO_PLACE);
}

static void drop_impossible(struct rebuild *rb, u64 *at)
{
	if (!exists(rb, rb_place(*at), 1))
		lose_place(at, RB_NO_SUCH);
}

static bool run_test(struct rebuild *rb, u32 which, const struct tr_pack *ref)
{
	for (u32 i = 0; i < ref->blocks; i++)
		if (test_place(rb->used[which][tr_place_tier(ref->place)],
			       tr_place_index(ref->place) + i))
			return true;
	return false;
}

/* The copy of its header is only worth its place where nobody else is. */
static void drop_impossible_pack(struct rebuild *rb, struct rb_region *region, u32 number)
{
	struct tr_pack *ref = &region->pack[number - 1].ref;

	if (ref->index_place != TR_NO_PLACE && !exists(rb, ref->index_place, ref->index_blocks))
		rb_pack_forget_index(ref);
	if (ref->place == TR_NO_PLACE)
		rb_pack_lose(region, number, RB_PACK_HEADER);
	else if (!exists(rb, ref->place, ref->blocks))
		rb_pack_lose(region, number, RB_NO_SUCH);
}

/* A surer claim was made before: this one goes. Else it is noted. */
static void claim_place(struct rebuild *rb, u64 place)
{
	u32 tier = tr_place_tier(place);
	u64 index = tr_place_index(place);

	if (test_place(rb->used[0][tier], index))
		set_place(rb->used[1][tier], index);
	else
		set_place(rb->used[0][tier], index);
}

static void claim(struct rebuild *rb, u64 *at)
{
	claim_place(rb, rb_place(*at));
}

static void claim_run(struct rebuild *rb, struct rb_region *region, u32 number)
{
	const struct tr_pack *ref = &region->pack[number - 1].ref;

	for (u32 i = 0; i < ref->blocks; i++)
		claim_place(rb, tr_place_add(ref->place, i));
}

static void yield(struct rebuild *rb, u64 *at)
{
	u32 tier = tr_place_tier(rb_place(*at));

	if (test_place(rb->used[0][tier], tr_place_index(rb_place(*at))))
		lose_place(at, RB_REUSED);
}

static void yield_run(struct rebuild *rb, struct rb_region *region, u32 number)
{
	if (run_test(rb, 0, &region->pack[number - 1].ref))
		rb_pack_lose(region, number, RB_REUSED);
}

static void drop_double(struct rebuild *rb, u64 *at)
{
	u32 tier = tr_place_tier(rb_place(*at));

	if (test_place(rb->used[1][tier], tr_place_index(rb_place(*at))))
		lose_place(at, RB_TWICE);
}

static void drop_double_run(struct rebuild *rb, struct rb_region *region, u32 number)
{
	if (run_test(rb, 1, &region->pack[number - 1].ref))
		rb_pack_lose(region, number, RB_TWICE);
}

/* What nobody holds in the end is free again. */
static void forget_double(struct rebuild *rb)
{
	for (u32 t = 0; t < rb->super->nr_tiers; t++)
		for (u64 c = 0; c < tr_chunks(rb->super->tier[t].data_blocks); c++)
			for (u32 w = 0; rb->used[1][t][c] && w < CHUNK_WORDS; w++)
				rb->used[0][t][c][w] &= ~rb->used[1][t][c][w];
}

/* Copies of headers are worth nothing beside anybody's data: last of all. */
static void resolve_indexes(struct rebuild *rb)
{
	for (u64 r = 0; r < rb->nr_regions; r++) {
		struct rb_region *region = rb->region[r];

		for (u32 k = 0; region && k < region->nr_packs; k++) {
			struct tr_pack *ref = &region->pack[k].ref;
			u64 place = ref->index_place;
			bool taken = place == TR_NO_PLACE || rb_pack_state(region, k + 1) == RB_LOST;

			/* whether that of a lost one exists nobody has asked */
			for (u32 i = 0; !taken && i < ref->index_blocks; i++)
				taken = rb_used(rb, tr_place_tier(place), tr_place_index(place) + i);
			if (taken) {
				rb_pack_forget_index(ref);
				continue;
			}
			for (u32 i = 0; i < ref->index_blocks; i++)
				set_place(rb->used[0][tr_place_tier(place)], tr_place_index(place) + i);
		}
	}
}

void rb_resolve(struct rebuild *rb)
{
	for (u32 t = 0; t < rb->super->nr_tiers; t++)
		for (u32 k = 0; k < 2; k++)
			rb->used[k][t] = ctl_alloc(tr_chunks(rb->super->tier[t].data_blocks) *
						   sizeof(u64 *));
	for (enum rb_state state = RB_CERTAIN; state < RB_LOST; state++) {
		each_claim(rb, state, drop_impossible, drop_impossible_pack);
		each_claim(rb, state, yield, yield_run);
		each_claim(rb, state, claim, claim_run);
		each_claim(rb, state, drop_double, drop_double_run);
	}
	forget_double(rb);
	resolve_indexes(rb);
}
