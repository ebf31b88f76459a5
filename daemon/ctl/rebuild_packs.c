// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Packs, for rebuild.h: which a region has, and whether the bytes are there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rebuild_packs.h"
#include "term.h"

/* ---- the packs of a region ---------------------------------------------------------- */

u32 rb_pack_by_id(const struct rb_region *region, u64 id)
{
	for (u32 k = 0; k < region->nr_packs; k++)
		if (region->pack[k].ref.id == id)
			return k + 1;
	return 0;
}

enum rb_state rb_pack_state(const struct rb_region *region, u32 number)
{
	enum rb_state best = RB_LOST;

	for (u32 i = 0; i < TERRACE_REGION_BLOCKS; i++)
		if (rb_pack(region->at[i]) == number && rb_state(region->at[i]) < best)
			best = rb_state(region->at[i]);
	return best;
}

/* Those that no block is live in any more make room. */
static void collect(struct rb_region *region)
{
	u8 number[RB_MAX_PACKS + 1] = { 0 };
	u32 nr = 0;

	for (u32 k = 0; k < region->nr_packs; k++) {
		if (rb_pack_state(region, k + 1) == RB_LOST)
			continue;
		region->pack[nr++] = region->pack[k];
		number[k + 1] = nr;
	}
	region->nr_packs = nr;
	for (u32 i = 0; i < TERRACE_REGION_BLOCKS; i++) {
		u64 at = region->at[i];

		region->at[i] = rb_make_packed(rb_state(at), rb_source(at), rb_place(at),
					       number[rb_pack(at)]);
	}
}

static void learn(struct rb_pack *pack, const struct tr_pack *ref)
{
	if (pack->ref.place != TR_NO_PLACE)
		return;
	pack->ref.place = ref->place;
	pack->ref.blocks = ref->blocks;
	pack->ref.header_crc = ref->header_crc;
}

u32 rb_pack_number(struct rebuild *rb, struct rb_region *region, const struct tr_pack *ref)
{
	u32 number = rb_pack_by_id(region, ref->id);

	if (ref->id > rb->newest_pack)
		rb->newest_pack = ref->id;
	if (number) {
		learn(&region->pack[number - 1], ref);
		return number;
	}
	if (region->nr_packs == RB_MAX_PACKS)
		collect(region);
	if (region->nr_packs == RB_MAX_PACKS)
		return 0;
	if (region->nr_packs == region->cap_packs) {
		region->cap_packs = 2 * region->cap_packs + 4;
		region->pack = ctl_realloc(region->pack, region->cap_packs * sizeof(*region->pack));
	}
	region->pack[region->nr_packs++] = (struct rb_pack){ .ref = *ref };
	return region->nr_packs;
}

void rb_pack_lose_block(u64 *at, enum rb_source source)
{
	*at = rb_place(*at) == TR_NO_PLACE ? rb_make(RB_LOST, source, TR_NO_PLACE) :
	      rb_make(rb_state(*at), rb_source(*at), rb_place(*at));
}

void rb_pack_lose(struct rb_region *region, u32 number, enum rb_source source)
{
	for (u32 i = 0; i < TERRACE_REGION_BLOCKS; i++)
		if (rb_pack(region->at[i]) == number)
			rb_pack_lose_block(&region->at[i], source);
}

void rb_pack_forget_index(struct tr_pack *ref)
{
	ref->index_place = TR_NO_PLACE;
	ref->index_blocks = 0;
}

/* ---- from the shelf ----------------------------------------------------------------- */

/* A bad sector costs the blocks that need it: their CRCs will say so. */
static void read_run(const struct rebuild *rb, const struct tr_pack *ref, u8 *bytes)
{
	u32 tier = tr_place_tier(ref->place);
	u64 index = tr_place_index(ref->place);

	if (!volume_read_tier(rb->vol, tier, index, ref->blocks, bytes))
		return;
	for (u32 i = 0; i < ref->blocks; i++)
		if (volume_read_tier(rb->vol, tier, index + i, 1, bytes + (u64)i * TERRACE_BLOCK_BYTES))
			memset(bytes + (u64)i * TERRACE_BLOCK_BYTES, 0, TERRACE_BLOCK_BYTES);
}

static int read_copy(const struct rebuild *rb, const struct tr_pack *ref,
		     const struct tr_pack_id *id, struct tr_pack_head *head, u8 *header)
{
	u32 nr = ref->index_blocks;
	int r;

	if (ref->index_place == TR_NO_PLACE || !nr || nr > TERRACE_PACK_HEADER_BLOCKS)
		return -ENOENT;
	r = volume_read_tier(rb->vol, tr_place_tier(ref->index_place),
			     tr_place_index(ref->index_place), nr, header);
	return r ? r : tr_pack_parse(header, nr * TERRACE_BLOCK_BYTES, id, head);
}

int rb_run_open(const struct rebuild *rb, u64 region, const struct tr_pack *ref, struct rb_run *run)
{
	const struct tr_pack_id id = {
		.volume_uuid = rb->super->volume_uuid, .id = ref->id, .place = ref->place,
		.region = region, .blocks = ref->blocks, .header_crc = &ref->header_crc,
	};
	u32 nr = ref->blocks < TERRACE_PACK_HEADER_BLOCKS ? ref->blocks : TERRACE_PACK_HEADER_BLOCKS;
	struct tr_pack_head head;
	int r;

	memset(run, 0, sizeof(*run));
	if (ref->place == TR_NO_PLACE || !ref->blocks || ref->blocks > TERRACE_PACK_MAX_BLOCKS)
		return -ENOENT;
	if (rb->vol->tier[tr_place_tier(ref->place)] < 0)
		return -ENODEV;
	run->bytes = ctl_alloc_blocks(ref->blocks);
	run->header = ctl_alloc_blocks(TERRACE_PACK_HEADER_BLOCKS);
	read_run(rb, ref, run->bytes);
	memcpy(run->header, run->bytes, nr * TERRACE_BLOCK_BYTES);
	r = tr_pack_parse(run->header, nr * TERRACE_BLOCK_BYTES, &id, &head);
	if (r && !read_copy(rb, ref, &id, &head, run->header)) {
		run->from_copy = true;
		r = 0;
	}
	return r;
}

void rb_run_close(struct rb_run *run)
{
	free(run->bytes);
	free(run->header);
	memset(run, 0, sizeof(*run));
}

bool rb_run_block_good(const struct rb_run *run, u32 i)
{
	struct tr_pack_where where;

	return tr_pack_find(run->header, i, &where) &&
	       !tr_pack_check(run->header, &where, run->bytes + where.offset);
}

/* ---- what a new map may name -------------------------------------------------------------- */

static const char *pack_where(const struct rebuild *rb, u64 region, const struct tr_pack *ref)
{
	u32 tier = tr_place_tier(ref->place);

	return where("%s: tier %u place %llu: pack %llu of region %llu", volume_tier_name(rb->vol, tier),
		     tier, tr_place_index(ref->place), ref->id, region);
}

static void prove_blocks(struct rb_region *region, u32 number, const struct rb_run *run)
{
	for (u32 i = 0; i < TERRACE_REGION_BLOCKS; i++)
		if (rb_pack(region->at[i]) == number && !rb_run_block_good(run, i))
			rb_pack_lose_block(&region->at[i], RB_PACK_BYTES);
}

/* A copy that is not the header byte for byte is not kept. */
static void prove_copy(const struct rebuild *rb, struct tr_pack *ref, const struct rb_run *run)
{
	u8 *copy = ctl_alloc_blocks(TERRACE_PACK_HEADER_BLOCKS);
	const struct tr_pack_id id = { .id = 0 };
	struct tr_pack_head head;

	if (read_copy(rb, ref, &id, &head, copy) || memcmp(copy, run->header, head.bytes))
		rb_pack_forget_index(ref);
	free(copy);
}

static void prove_pack(struct rebuild *rb, u64 number, struct rb_region *region, u32 k, bool mend)
{
	struct rb_pack *pack = &region->pack[k - 1];
	struct rb_run run;
	int r = rb_run_open(rb, number, &pack->ref, &run);

	if (!r && run.from_copy) {
		problem(rb->findings, pack_where(rb, number, &pack->ref), mend ?
			"its header is damaged, the copy on the fast tier is good and is written there" :
			"its header is damaged; the copy on the fast tier is good: --in-place would write it there, salvage reads by it");
		pack->mend = mend;
		r = mend ? 0 : -EBADMSG;
	} else if (r && r != -ENODEV && pack->ref.place != TR_NO_PLACE) {
		problem(rb->findings, pack_where(rb, number, &pack->ref), "its header: %s",
			r == -ESTALE ? "a good one, but not that of this pack" : decode_strerror(r));
	}
	if (!r)
		prove_blocks(region, k, &run);
	else if (r != -ENODEV)	/* what is on a drive that is away may be good */
		rb_pack_lose(region, k, RB_PACK_HEADER);
	if (!r && rb->vol->tier[tr_place_tier(pack->ref.index_place) % TERRACE_MAX_TIERS] >= 0)
		prove_copy(rb, &pack->ref, &run);
	rb_run_close(&run);
}

static u32 count_live(const struct rb_region *region, u32 number)
{
	u32 nr = 0;

	for (u32 i = 0; i < TERRACE_REGION_BLOCKS; i++)
		nr += rb_pack(region->at[i]) == number;
	return nr;
}

/* A page names eight packs. Those with the fewest blocks go. */
static void limit_packs(struct rb_region *region)
{
	for (;;) {
		u32 nr = 0, least = 0, fewest = ~0u;

		for (u32 k = 1; k <= region->nr_packs; k++) {
			u32 live = count_live(region, k);

			nr += live != 0;
			if (live && live < fewest) {
				fewest = live;
				least = k;
			}
		}
		if (nr <= TERRACE_PACK_SLOTS)
			return;
		rb_pack_lose(region, least, RB_PACK_ROOM);
	}
}

void rb_prove_packs(struct rebuild *rb, bool mend)
{
	for (u64 r = 0; r < rb->nr_regions; r++) {
		struct rb_region *region = rb->region[r];

		for (u32 k = 1; region && k <= region->nr_packs; k++)
			if (rb_pack_state(region, k) != RB_LOST)
				prove_pack(rb, r, region, k, mend);
		if (region && region->nr_packs)
			limit_packs(region);
		term_progress("reading packs", r + 1, rb->nr_regions);
	}
}

static int mend_pack(struct rebuild *rb, u64 region, const struct tr_pack *ref)
{
	const struct device *dev = &rb->vol->dev[rb->vol->tier[tr_place_tier(ref->place)]];
	u64 start = rb->vol->label[rb->vol->tier[tr_place_tier(ref->place)]].data_start;
	struct tr_pack_head head;
	struct rb_run run;
	int r = rb_run_open(rb, region, ref, &run);

	if (!r && run.from_copy) {
		tr_pack_head(run.header, &head);
		r = device_write(dev, start + tr_place_index(ref->place),
				 tr_pack_header_blocks(head.bytes), run.header);
		if (!r)
			r = device_flush(dev);
	}
	rb_run_close(&run);
	return r;
}

int rb_mend_packs(struct rebuild *rb)
{
	int r = 0;

	for (u64 n = 0; n < rb->nr_regions; n++)
		for (u32 k = 0; rb->region[n] && k < rb->region[n]->nr_packs && !r; k++)
			if (rb->region[n]->pack[k].mend &&
			    rb_pack_state(rb->region[n], k + 1) != RB_LOST)
				r = mend_pack(rb, n, &rb->region[n]->pack[k].ref);
	return r;
}
