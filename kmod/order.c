// SPDX-License-Identifier: GPL-2.0
/*
 * The one order: in a region, these blocks up, the others down.
 *
 *   begin      the region's flag, one grace period for the whole batch
 *   snapshot   of every block: its place, and the pack it is live in; RAISE is about
 *              what it names alone, and most of its orders name a block or two
 *   classify   into = goes into the new pack; up = gets a place on tier_up;
 *              drop = a clean slot that is given back
 *   read       places and packs; compress; write the pack's run and the slots
 *   flush      each tier that was written, once for the batch
 *   commit     under the region's lock: what is still as in the snapshot
 *
 * What a crash in between leaves is in Documentation/decisions/0003-packs.md:
 * until the records are durable the old placement, which is not reused before.
 *
 * Raced blocks. A block at a place that was written since `begin` (its bit is
 * in move->raced) stays where it is: what was read may be half of it. A packed
 * block cannot be half written: its pack never changes, and a write takes its
 * live bit away when it ends. So packed blocks are judged by their live bit
 * alone, and a write under way ends in a MAP record behind ours.
 *
 * They are looked for twice. At the commit, which decides; and when everything was
 * read, before the pack is made, for its header says which blocks it has, and a
 * rebuild from shelves alone believes that. What is written between the two is in
 * the pack with the value it had, whole: an older one, as such a rebuild says.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "order_state.h"
#include "sense.h"

/* --- is it possible? ----------------------------------------------------------- */

static bool mode_packs(u32 mode)
{
	return mode == TERRACE_MOVE_APPEND || mode == TERRACE_MOVE_MERGE;
}

int tr_order_check(const struct terrace_move *ask)
{
	bool packs = mode_packs(ask->mode);

	if (!ask->cookie || ask->reserved0 || ask->reserved1 ||
	    ask->flags & ~TERRACE_MOVE_FLAGS)
		return -EINVAL;
	if (ask->mode < TERRACE_MOVE_APPEND || ask->mode > TERRACE_MOVE_SCRUB)
		return -EINVAL;
	if (ask->codec == TERRACE_CODEC_NONE && ask->level)
		return -EINVAL;
	if (ask->mode == TERRACE_MOVE_SCRUB &&
	    (!tr_bits_none(ask->up) || ask->flags & TERRACE_MOVE_ADVISE))
		return -EINVAL;
	if (!packs && (ask->codec || ask->level || ask->shift || !tr_bits_none(ask->warm)))
		return -EINVAL;
	if (packs && (ask->codec > TERRACE_CODEC_ZSTD || ask->shift > TERRACE_PACK_MAX_SHIFT ||
		      ask->shift & 1))
		return -EINVAL;
	if (ask->mode == TERRACE_MOVE_CLEAN &&
	    (!tr_bits_none(ask->up) || ask->tier_up || ask->flags & TERRACE_MOVE_ADVISE))
		return -EINVAL;
	if ((ask->mode == TERRACE_MOVE_DROP || ask->mode == TERRACE_MOVE_SCRUB) && ask->tier_up)
		return -EINVAL;
	if (ask->mode == TERRACE_MOVE_DROP && ask->tier_down)
		return -EINVAL;
	if (ask->mode == TERRACE_MOVE_RAISE && ask->tier_down)
		return -EINVAL;
	return 0;
}

static int tier_usable(struct terrace *tr, u32 t, u32 kind)
{
	if (t >= tr->nr_tiers)
		return -EINVAL;
	if (tr->tier[t].missing)
		return -ENODEV;
	return tr->tier[t].kind == kind ? 0 : -EOPNOTSUPP;
}

static bool goes_home(const struct terrace *tr, const struct terrace_move *ask)
{
	return mode_packs(ask->mode) && tr->tier[ask->tier_down].kind == TERRACE_KIND_HOME;
}

static int possible(struct terrace *tr, const struct tr_order *order)
{
	const struct terrace_move *ask = &order->ask;
	bool packs = mode_packs(ask->mode);
	bool promotes = order->chunk == TR_ANY_CHUNK &&
			(packs || ask->mode == TERRACE_MOVE_RAISE);
	int err = 0;

	if (!tr_writable(tr))
		return -EROFS;
	if (tr_order_of_shelf(ask)) {
		err = tier_usable(tr, ask->tier_down, TERRACE_KIND_SHELVES);
		if (!err && ask->region >= tr->tier[ask->tier_down].nr_chunks)
			err = -ERANGE;
		return err;
	}
	if (ask->region >= tr_nr_regions(tr))
		return -ERANGE;
	if (ask->codec == TERRACE_CODEC_ZSTD && ask->level > TR_ZSTD_MAX_LEVEL)
		return -EINVAL;
	if (packs) {
		err = tier_usable(tr, ask->tier_down, TERRACE_KIND_SHELVES);
		if (err == -EOPNOTSUPP && goes_home(tr, ask))
			err = 0;
	}
	if (!err && promotes && !tr_bits_none(ask->up))
		err = tier_usable(tr, ask->tier_up, TERRACE_KIND_SLOTS);
	if (!err && packs && ask->tier_up > ask->tier_down)
		err = -EXDEV;
	return err;
}

/* --- snapshot and classes ---------------------------------------------------------- */

static void snapshot_packs__f(struct tr_order_state *s)
{
	struct tr_region *region = s->move.region;
	struct tr_packs *packs = tr_region_packs(region);
	u32 k;

	lockdep_assert_held(&region->lock);
	s->nr_refs = packs ? packs->nr : 0;
	for (k = 0; k < s->nr_refs; k++)
		s->ref[k] = (struct tr_pack_ref){
			.id = packs->pack[k].id, .region = region->number,
			.place = packs->pack[k].place, .index_place = packs->pack[k].index_place,
			.header_crc = packs->pack[k].header_crc, .blocks = packs->pack[k].blocks,
			.index_blocks = packs->pack[k].index_blocks,
		};
}

static void snapshot_blocks__f(struct tr_order_state *s, u32 w)
{
	struct tr_region *region = s->move.region;
	struct tr_packs *packs = tr_region_packs(region);
	u64 word;
	u32 i, k;

	lockdep_assert_held(&region->lock);
	for (word = s->about[w]; word; word &= word - 1) {
		i = w * 64 + __ffs64(word);
		s->place[i] = tr_leaf_get(&region->leaf, i);
		k = packs ? tr_packs_find(packs, i) : TR_NO_PACK;
		s->pack[i] = k == TR_NO_PACK ? 0 : packs->pack[k].id;
	}
}

/*
 * 64 blocks at a time: a whole region would keep interrupts off for too long. Each
 * block is compared again, by itself, at the commit. While the region is MOVING it may
 * lose packs, and gets none: so each that a block is in has been noted.
 */
void tr_order_snapshot(struct tr_order_state *s)
{
	struct tr_region *region = s->move.region;
	unsigned long flags;
	u32 w;

	for (w = 0; w < TR_LEAF_WORDS; w++) {
		if (w && !s->about[w])
			continue;
		spin_lock_irqsave(&region->lock, flags);
		if (!w) {
			s->seq = read_seqcount_begin(&region->seq);
			snapshot_packs__f(s);
		}
		snapshot_blocks__f(s, w);
		spin_unlock_irqrestore(&region->lock, flags);
		tr_give_way();
	}
}

static void goes_up(struct tr_order_state *s, const struct terrace_move *ask, u32 i)
{
	if (s->avoid >> ask->tier_up & 1) {
		s->refused = true;
		return;
	}
	tr_bit_set(s->up, i);
	if (s->unclean && s->pack[i])
		tr_bit_set(s->unpack, i);
}

/* Home, from faster tiers; and a merge empties the packs into homes. */
static void classify_home(struct tr_order_state *s, const struct terrace_move *ask, u32 i)
{
	u64 block = (s->move.number << TERRACE_REGION_SHIFT) + i;
	bool wanted = tr_bit(ask->up, i) && !tr_bit(s->slow, i);
	bool live = s->pack[i], placed = s->place[i] != TR_NO_PLACE;
	bool leaves = tr_avoids(s, s->place[i]);
	u32 t = placed ? tr_place_tier(s->place[i]) : 0;

	if (wanted) {
		if ((live && !placed) || (placed && !live && (t > ask->tier_up || leaves)))
			goes_up(s, ask, i);
		return;
	}
	if (placed && tr_bit(s->move.stay, i) && !leaves)
		return;
	if (placed && live && ask->mode == TERRACE_MOVE_APPEND)
		tr_bit_set(s->drop, i);
	else if (block < s->home->data_blocks &&
		 (live ? ask->mode == TERRACE_MOVE_MERGE : placed && (t < ask->tier_down || leaves)))
		tr_bit_set(s->into, i);
}

/*
 * RAISE off a tier that is to be left. What is live in packs there gets a slot that needs no
 * pack; a clean slot there is given back, the pack has the block. Pins and marks say which
 * tiers are fast or slow enough, not that one that is to be left is. false: none of these.
 */
static bool classify_leaving(struct tr_order_state *s, const struct terrace_move *ask, u32 i)
{
	u64 pack = TR_NO_PLACE;
	u32 k;

	if (!s->avoid || ask->mode != TERRACE_MOVE_RAISE || !tr_bit(ask->up, i))
		return false;
	for (k = 0; s->pack[i] && k < s->nr_refs; k++)
		if (s->ref[k].id == s->pack[i])
			pack = s->ref[k].place;
	if (tr_avoids(s, pack)) {
		tr_bit_set(s->unpack, i);
		goes_up(s, ask, i);
	} else if (tr_avoids(s, s->place[i])) {
		if (s->pack[i])
			tr_bit_set(s->drop, i);
		else
			goes_up(s, ask, i);
	} else {
		return false;
	}
	return true;
}

static void classify_block(struct tr_order_state *s, const struct terrace_move *ask, u32 i)
{
	bool wanted = tr_bit(ask->up, i) && (!tr_bit(s->slow, i) || ask->mode == TERRACE_MOVE_DROP);
	bool live = s->pack[i], placed = s->place[i] != TR_NO_PLACE;
	bool leaves = tr_avoids(s, s->place[i]);
	u32 t = placed ? tr_place_tier(s->place[i]) : 0;

	if (classify_leaving(s, ask, i))
		return;
	if (wanted && ask->mode != TERRACE_MOVE_DROP) {
		if ((live && !placed) || (placed && !live && (t > ask->tier_up || leaves)))
			goes_up(s, ask, i);
		if (s->merge && live)
			tr_bit_set(s->into, i);
		return;
	}
	if (placed && tr_bit(s->move.stay, i) && !leaves) {
		if (s->merge && live)
			tr_bit_set(s->into, i);
		return;
	}
	switch (ask->mode) {
	case TERRACE_MOVE_APPEND:
	case TERRACE_MOVE_MERGE:
		/* Loose on tier_down already: only a merge has something else to do there. */
		if ((placed && !live &&
		     (leaves || t < ask->tier_down + (ask->mode == TERRACE_MOVE_MERGE))) ||
		    (s->merge && live))
			tr_bit_set(s->into, i);
		else if (placed && live)
			tr_bit_set(s->drop, i);
		break;
	case TERRACE_MOVE_DROP:
		if (!wanted && placed && live)
			tr_bit_set(s->drop, i);
		break;
	}
}

static bool lies_on(const struct tr_order_state *s, const struct tr_pack_ref *ref, u32 chunk)
{
	return tr_place_tier(ref->place) == s->move.from &&
	       tr_place_index(ref->place) >> TERRACE_CHUNK_SHIFT == chunk;
}

static u32 classify_pack(struct tr_order_state *s, const struct tr_pack_ref *ref, u64 *map)
{
	u32 i, nr = 0;

	for (i = 0; i < BLOCKS; i++)
		if (s->pack[i] == ref->id) {
			tr_bit_set(map, i);
			nr++;
		}
	return nr;
}

/*
 * Cleaning: what is live in packs of one shelf, and nothing else. But a pack of which something cannot
 * be read stays, and the new one comes on top: cleaned one by one, damaged packs would leave a
 * region with as many packs as it can have. So when it has more than it should the newest
 * of the others there, which the last cleaning made, goes into the new one as well, unless
 * cleaning has no room for more than it was promised.
 */
static void classify_shelf(struct terrace *tr, struct tr_order_state *s, u32 chunk)
{
	u32 i, k;

	for (k = 0; k < s->nr_refs; k++)
		if (lies_on(s, &s->ref[k], chunk))
			classify_pack(s, &s->ref[k], s->into);
	if (tr_bits_none(s->into) || tr_order_live_packs(s) <= TERRACE_MAX_PACKS ||
	    READ_ONCE(tr->tier[s->move.from].free_shelves) < 2)
		return;
	for (k = 0; k < s->nr_refs; k++)
		if (tr_place_tier(s->ref[k].place) == s->move.from &&
		    !lies_on(s, &s->ref[k], chunk) && classify_pack(s, &s->ref[k], s->along))
			break;
	for (i = 0; i < TR_LEAF_WORDS; i++)
		s->into[i] |= s->along[i];
}

/* Of what was asked for nothing could be read. */
static bool only_along(const struct tr_order_state *s)
{
	u32 w;

	for (w = 0; w < TR_LEAF_WORDS && !(s->into[w] & ~s->along[w]); w++)
		;
	return w == TR_LEAF_WORDS;
}

/* What lies loose on one shelf; with the packs, when they would be too many. */
static void classify_loose(struct tr_order_state *s, u32 chunk)
{
	bool here;
	u32 i;

	s->merge = s->nr_refs >= TERRACE_MAX_PACKS;
	for (i = 0; i < BLOCKS; i++) {
		here = s->place[i] != TR_NO_PLACE && tr_place_tier(s->place[i]) == s->move.from &&
		       tr_place_index(s->place[i]) >> TERRACE_CHUNK_SHIFT == chunk;
		if (s->pack[i] ? s->merge : here)
			tr_bit_set(s->into, i);
	}
}

/* On a tier that is missing: not read, and a clean copy of it is not given up. */
static bool out_of_reach(struct terrace *tr, const struct tr_order_state *s, u32 i)
{
	u64 place = s->place[i];
	u32 k;

	for (k = 0; s->pack[i] && k < s->nr_refs; k++)
		if (s->ref[k].id == s->pack[i])
			place = s->ref[k].place;
	return place != TR_NO_PLACE && tier_of(tr, place)->missing;
}

static void classify_word(struct terrace *tr, struct tr_order_state *s,
			  const struct terrace_move *ask, u32 w)
{
	u64 word;
	u32 i;

	for (word = s->about[w]; word; word &= word - 1) {
		i = w * 64 + __ffs64(word);
		if (out_of_reach(tr, s, i))
			continue;
		if (s->home)
			classify_home(s, ask, i);
		else
			classify_block(s, ask, i);
	}
}

static void classify(struct terrace *tr, struct tr_order_state *s, const struct terrace_move *ask)
{
	u32 w;

	if (s->move.chunk != TR_ANY_CHUNK) {
		if (s->loose)
			classify_loose(s, s->move.chunk);
		else
			classify_shelf(tr, s, s->move.chunk);
		return;
	}
	s->home = goes_home(tr, ask) ? &tr->tier[ask->tier_down] : NULL;
	s->merge = ask->mode == TERRACE_MOVE_MERGE ||
		   (ask->mode == TERRACE_MOVE_APPEND && s->nr_refs >= TERRACE_MAX_PACKS);
	tr_ranges_mask(tr, s->move.number, BIT(TERRACE_RANGE_PIN_SLOW) | BIT(TERRACE_RANGE_DEAD),
		       s->slow);
	for (w = 0; w < TR_LEAF_WORDS; w++)
		if (s->about[w]) {
			tr_give_way();
			classify_word(tr, s, ask, w);
		}
}

/* --- one order ------------------------------------------------------------------------- */

static void give_back_fresh(struct terrace *tr, struct tr_order_state *s, u32 i)
{
	if (s->fresh[i] == TR_NO_PLACE)
		return;
	if (tier_of(tr, s->fresh[i])->kind == TERRACE_KIND_HOME)
		tr_home_put(tr, tier_of(tr, s->fresh[i]), tr_place_index(s->fresh[i]), 1);
	else
		tr_space_put(tr, tier_of(tr, s->fresh[i]), tr_place_index(s->fresh[i]), 1);
	s->fresh[i] = TR_NO_PLACE;
}

/* Whether the region took the pack is what the commit did. The region itself may
 * have dropped it since, all its blocks overwritten: then the record of that
 * frees the run, and it must not be freed here as well.
 */
static void settle_pack(struct terrace *tr, struct tr_order_state *s)
{
	struct tr_tier *tier = tier_of(tr, s->made.place);

	if (s->taken) {
		tr_shelf_sealed(tier, s->index, s->made.blocks);
		tr_index_store(tr, s->made.id, s->header, s->header_bytes);
		return;
	}
	tr_shelf_abandoned(tr, tier, s->index, s->made.blocks, true);
	if (s->index_place != TR_NO_PLACE)
		tr_space_put(tr, &tr->tier[0], tr_place_index(s->index_place), s->header_blocks);
}

/* The tiers that it will read and write. */
static u32 tiers_of(const struct tr_order_state *s, const struct terrace_move *ask)
{
	u32 i, k, tiers = 0;

	if (!tr_bits_none(s->into))
		tiers |= BIT(ask->tier_down);
	if (!tr_bits_none(s->up))
		tiers |= BIT(ask->tier_up);
	for (i = tr_order_next(s, 0); i < BLOCKS; i = tr_order_next(s, i + 1)) {
		if (!s->pack[i])
			tiers |= BIT(tr_place_tier(s->place[i]));
		for (k = 0; s->pack[i] && k < s->nr_refs; k++)
			if (s->ref[k].id == s->pack[i])
				tiers |= BIT(tr_place_tier(s->ref[k].place));
	}
	return tiers;
}

static int write_up(struct terrace *tr, struct tr_order *order, struct tr_order_state *s,
		    struct tr_order_area *area)
{
	if (tr_bits_none(s->up))
		return 0;
	tr_order_idle(tr, order);
	return tr_order_up(tr, s, &order->ask, area, &order->result);
}

/* Who has a slot, and leaves his pack, needs no other one: a merge packs only those that got none. */
static void leave_out_unpacked(struct tr_order_state *s)
{
	u32 i;

	for (i = tr_order_next(s, 0); i < BLOCKS; i = tr_order_next(s, i + 1))
		if (tr_bit(s->unpack, i) && tr_bit(s->up, i) && s->fresh[i] != TR_NO_PLACE)
			tr_bit_clear(s->into, i);
}

static int read_and_write(struct terrace *tr, struct tr_order *order, struct tr_order_state *s,
			  struct tr_order_area *area)
{
	const struct terrace_move *ask = &order->ask;
	struct terrace_result *result = &order->result;
	int err, up = 0;

	if (!area)
		return -ENOMEM;
	err = tr_order_read(tr, s, area, result);
	if (!err && result->unreadable && !tr_bits_none(s->along) && only_along(s))
		err = -EIO;
	if (!err)
		tr_order_read_ended(s, result);
	if (!err && s->unclean) {
		up = write_up(tr, order, s, area);
		err = up == -ENOSPC ? 0 : up;
		leave_out_unpacked(s);
	}
	tr_order_idle(tr, order);
	if (!err && !tr_bits_none(s->into))
		err = s->home ? tr_order_home(tr, s, area, result) :
				tr_order_pack(tr, s, ask, area, result);
	if (err)
		return err;
	if (!s->unclean)
		up = write_up(tr, order, s, area);
	/* What else it did counts, and may be what makes room: slots that go down, or back. */
	if (up == -ENOSPC && (s->made.id || tr_order_nr_fresh(s) || !tr_bits_none(s->drop))) {
		s->refused = true;
		return 0;
	}
	return up;
}

/* Everything before the commit. */
static int prepare(struct terrace *tr, struct tr_order *order, struct tr_order_state *s)
{
	const struct terrace_move *ask = &order->ask;
	struct terrace_result *result = &order->result;
	struct tr_order_area *area;
	u32 tiers;
	int err;

	s->avoid = tr_tune(tr, TR_TUNE_AVOID_TIERS);
	s->unclean = !tr_tune(tr, TR_TUNE_CLEAN_SLOTS);
	if (mode_packs(ask->mode) && order->chunk == TR_ANY_CHUNK && s->avoid >> ask->tier_down & 1)
		return -ENOSPC;
	tr_order_snapshot(s);
	classify(tr, s, ask);
	if (tr_bits_none(s->into) && tr_bits_none(s->up) && tr_bits_none(s->drop))
		return s->refused ? -ENOSPC :
		       tr_order_drops_pack(s) ? 0 : -ENOENT;	/* the commit drops it */
	/* So many only where packs are damaged: what cannot be read stays in them. */
	if (!tr_bits_none(s->into) && !s->home && tr_order_live_packs(s) == TERRACE_PACK_SLOTS)
		return -EIO;
	if (ask->flags & TERRACE_MOVE_ADVISE) {
		result->down = tr_bits_count(s->into);
		result->up = tr_bits_count(s->up);
		result->dropped = tr_bits_count(s->drop);
		return 0;
	}
	tiers = tiers_of(s, ask);
	if (!tiers)
		return 0;
	tr_flight_enter(tr, tiers);
	area = tr_order_area_get(tr);
	err = read_and_write(tr, order, s, area);
	tr_order_area_put(tr, area);
	tr_flight_leave(tr, tiers);
	return err;
}

static void finish(struct terrace *tr, struct tr_order *order, struct tr_order_state *s, int err)
{
	struct terrace_result *result = &order->result;
	u32 i;

	/* Not flushed for: a copy that is lost is no loss. */
	if (s->made.id && s->index_place != TR_NO_PLACE)
		result->written_bytes[tr_place_tier(s->index_place)] +=
			s->header_blocks * TERRACE_BLOCK_BYTES;
	if (!err && !(order->ask.flags & TERRACE_MOVE_ADVISE))
		err = tr_order_commit(tr, s, &order->ask, result);
	if (s->made.id)
		settle_pack(tr, s);
	for (i = tr_order_next(s, 0); i < BLOCKS; i = tr_order_next(s, i + 1))
		give_back_fresh(tr, s, i);
	kfree(s->header);
	result->error = err;
	result->status = err == -ENOSPC ? TERRACE_RESULT_NO_ROOM :
			 err == -ECANCELED ? TERRACE_RESULT_CANCELLED : err ? TERRACE_RESULT_FAILED :
			 result->raced || result->unreadable || s->refused ? TERRACE_RESULT_PARTLY : TERRACE_RESULT_DONE;
}

/* --- batches ------------------------------------------------------------------------------- */

static void result_begin(struct tr_order *order)
{
	order->result = (struct terrace_result){
		.cookie = order->ask.cookie, .region = order->ask.region, .mode = order->ask.mode,
		.bad_block = ~0ull, .status = TERRACE_RESULT_FAILED,
	};
}

static struct tr_order_state *begin(struct terrace *tr, struct tr_order *order)
{
	struct tr_order_state *s;
	int err;

	result_begin(order);
	err = possible(tr, order);
	s = err ? NULL : kvzalloc(sizeof(*s), GFP_KERNEL);
	if (!err && !s)
		err = -ENOMEM;
	if (!err) {
		memset64(s->fresh, TR_NO_PLACE, BLOCKS);
		memset64(s->place, TR_NO_PLACE, BLOCKS);
		if (order->ask.mode == TERRACE_MOVE_RAISE)
			memcpy(s->about, order->ask.up, sizeof(s->about));
		else
			memset(s->about, 0xff, sizeof(s->about));
		s->move.number = order->ask.region;
		s->move.from = order->ask.tier_down;
		s->move.chunk = order->chunk;
		s->loose = order->loose;
		err = tr_move_begin(tr, &s->move);
	}
	if (err) {
		kvfree(s);
		order->result.error = err;
		return NULL;
	}
	return s;
}

static void run_of_shelf(struct terrace *tr, struct tr_order *order)
{
	struct terrace_result *result = &order->result;
	int err;

	result_begin(order);
	err = possible(tr, order);
	if (!err && tr_order_stops(tr, order))
		err = tr_order_stopped(order);
	if (!err && order->ask.mode == TERRACE_MOVE_CLEAN)
		err = tr_order_clean(tr, order);
	else if (!err)
		err = tr_order_scrub_shelf(tr, order);
	result->error = err;
	result->status = err == -ENOSPC ? TERRACE_RESULT_NO_ROOM :
			 err == -ECANCELED ? TERRACE_RESULT_CANCELLED :
			 result->unreadable || result->raced || (err && result->down) ||
			 (err == -EIO && order->left) ? TERRACE_RESULT_PARTLY :
			 err ? TERRACE_RESULT_FAILED : TERRACE_RESULT_DONE;
}

static u32 tiers_written(const struct terrace *tr, const struct tr_order *order)
{
	u32 t, tiers = 0;

	for (t = 0; t < tr->nr_tiers; t++)
		if (order->result.written_bytes[t])
			tiers |= BIT(t);
	return tiers;
}

/* Once for all of them; the tiers that failed. */
static u32 flush_written(struct terrace *tr, struct tr_order **order, u32 nr)
{
	u32 t, k, written = 0, failed = 0;

	for (k = 0; k < nr; k++)
		written |= tiers_written(tr, order[k]);
	for (t = 0; t < tr->nr_tiers; t++)
		if (written & BIT(t) && tr_tier_flush(tr, &tr->tier[t]))
			failed |= BIT(t);
	return failed;
}

/* One that changes nothing. */
static void scrubbed(struct tr_order *order, int err)
{
	order->result.error = err == -EINTR ? -EIO : err;
	order->result.status = !err ? TERRACE_RESULT_DONE : err == -ECANCELED ? TERRACE_RESULT_CANCELLED :
			       err == -EIO ? TERRACE_RESULT_PARTLY : TERRACE_RESULT_FAILED;
}

static void told(struct terrace *tr, const struct tr_order *order)
{
	const struct terrace_result *r = &order->result;

	trace_terrace_move(tr_dev(tr), order->ask.region, order->ask.mode, r->error, r->down, r->up,
			   r->dropped, r->raced);
}

void tr_orders_run(struct terrace *tr, struct tr_order **order, u32 nr)
{
	struct tr_order_state *state[TR_ORDER_MOST] = {};
	/* The janitor is among the callers, and writers may wait for it. */
	unsigned int noio = memalloc_noio_save();
	int err[TR_ORDER_MOST];
	u32 k, failed;

	for (k = 0; k < nr; k++) {
		order[k]->again = false;
		if (order[k]->ask.flags & TERRACE_MOVE_IDLE)
			order[k]->seen = tr_user_ios(tr);
	}
	tr_reserve_wait(tr);		/* while no region is pinned */
	for (k = 0; k < nr; k++)
		state[k] = tr_order_of_shelf(&order[k]->ask) ? NULL : begin(tr, order[k]);
	tr_epoch_wait(tr, BIT(tr->nr_tiers) - 1);
	for (k = 0; k < nr; k++) {
		if (!state[k])
			continue;
		tr_work_gently(tr);
		if (tr_order_stops(tr, order[k]))
			err[k] = tr_order_stopped(order[k]);
		else if (order[k]->ask.mode == TERRACE_MOVE_SCRUB)
			err[k] = tr_order_scrub(tr, order[k], state[k]);
		else
			err[k] = prepare(tr, order[k], state[k]);
	}
	/* What was moved was durable: so it must be before its old place goes,
	 * even if the drive should fail its next flushes.
	 */
	failed = flush_written(tr, order, nr);
	for (k = 0; k < nr; k++) {
		if (!state[k])
			continue;
		if (!err[k] && failed & tiers_written(tr, order[k]))
			err[k] = -EIO;
		if (order[k]->ask.mode == TERRACE_MOVE_SCRUB)
			scrubbed(order[k], err[k]);
		else
			finish(tr, order[k], state[k], err[k]);
		tr_move_end(tr, &state[k]->move);
		tr_summary_now(tr, order[k]->ask.region);
		told(tr, order[k]);
		kvfree(state[k]);
	}
	for (k = 0; k < nr; k++) {
		if (tr_order_of_shelf(&order[k]->ask))
			run_of_shelf(tr, order[k]);
		order[k]->result.nanoseconds = ktime_get_ns() - order[k]->submitted;
	}
	memalloc_noio_restore(noio);
}
