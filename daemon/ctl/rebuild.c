// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table of blocks. See rebuild.h.
 */
#include <stdlib.h>
#include <string.h>

#include "rebuild.h"

#define CHUNK_WORDS (TERRACE_CHUNK_BLOCKS / 64)

bool rb_borrow_super(struct volume *vol, struct tr_super *borrowed)
{
	const struct tr_super *p = vol->primary.super, *m = vol->mirror.super;

	if (!vol->primary.dev || !vol->mirror.lazy || !m || (p && p->generation >= m->generation) ||
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
		if (rb->region[r])
			free(rb->region[r]->claim_seq);
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

static bool exists(const struct rebuild *rb, u64 place)
{
	u32 tier = tr_place_tier(place);

	return tier < rb->super->nr_tiers &&
	       tr_place_index(place) < rb->super->tier[tier].data_blocks;
}

typedef void (*at_fn)(struct rebuild *rb, u64 *at, enum rb_state state);

static void each_placed(struct rebuild *rb, enum rb_state state, at_fn fn)
{
	for (u64 r = 0; r < rb->nr_regions; r++) {
		for (u32 i = 0; rb->region[r] && i < TERRACE_REGION_BLOCKS; i++) {
			u64 *at = &rb->region[r]->at[i];

			if (rb_place(*at) != TR_NO_PLACE && rb_state(*at) == state)
				fn(rb, at, state);
		}
	}
}

static void drop_impossible(struct rebuild *rb, u64 *at, enum rb_state state)
{
	(void)state;
	if (!exists(rb, rb_place(*at)))
		*at = rb_make(RB_LOST, RB_NO_SUCH, TR_NO_PLACE);
}

/* A surer claim was made before: this one goes. Else it is noted. */
static void claim(struct rebuild *rb, u64 *at, enum rb_state state)
{
	u32 tier = tr_place_tier(rb_place(*at));
	u64 index = tr_place_index(rb_place(*at));

	(void)state;
	if (test_place(rb->used[1][tier], index))
		return;
	if (test_place(rb->used[0][tier], index))
		set_place(rb->used[1][tier], index);
	else
		set_place(rb->used[0][tier], index);
}

static void yield(struct rebuild *rb, u64 *at, enum rb_state state)
{
	u32 tier = tr_place_tier(rb_place(*at));

	(void)state;
	if (test_place(rb->used[0][tier], tr_place_index(rb_place(*at))))
		*at = rb_make(RB_LOST, RB_REUSED, TR_NO_PLACE);
}

static void drop_double(struct rebuild *rb, u64 *at, enum rb_state state)
{
	u32 tier = tr_place_tier(rb_place(*at));

	(void)state;
	if (test_place(rb->used[1][tier], tr_place_index(rb_place(*at))))
		*at = rb_make(RB_LOST, RB_TWICE, TR_NO_PLACE);
}

/* What nobody holds in the end is free again. */
static void forget_double(struct rebuild *rb)
{
	for (u32 t = 0; t < rb->super->nr_tiers; t++)
		for (u64 c = 0; c < tr_chunks(rb->super->tier[t].data_blocks); c++)
			for (u32 w = 0; rb->used[1][t][c] && w < CHUNK_WORDS; w++)
				rb->used[0][t][c][w] &= ~rb->used[1][t][c][w];
}

void rb_resolve(struct rebuild *rb)
{
	for (u32 t = 0; t < rb->super->nr_tiers; t++)
		for (u32 k = 0; k < 2; k++)
			rb->used[k][t] = ctl_alloc(tr_chunks(rb->super->tier[t].data_blocks) *
						   sizeof(u64 *));
	for (enum rb_state state = RB_CERTAIN; state < RB_LOST; state++) {
		each_placed(rb, state, drop_impossible);
		each_placed(rb, state, yield);
		each_placed(rb, state, claim);
		each_placed(rb, state, drop_double);
	}
	forget_double(rb);
}
