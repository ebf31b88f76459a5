// SPDX-License-Identifier: GPL-2.0
/*
 * The commit of an order, in one go under the region's lock: which blocks are
 * still as they were read, and what the journal says of them. The order of
 * the records is that of Documentation/decisions/0003-packs.md.
 */
#include "order_state.h"
#include "sense.h"

/* --- commit -------------------------------------------------------------------------- */

/* Is block @i as the snapshot says, so that what was read is its value? */
static bool unchanged__f(const struct tr_order_state *s, const struct tr_packs *packs, u32 i)
{
	const struct tr_region *region = s->move.region;
	u32 k = packs ? tr_packs_find(packs, i) : TR_NO_PACK;

	if (s->pack[i])
		return k != TR_NO_PACK && packs->pack[k].id == s->pack[i];
	return k == TR_NO_PACK && s->place[i] != TR_NO_PLACE && !tr_bit(s->move.raced, i) &&
	       tr_leaf_get(&region->leaf, i) == s->place[i];
}

/*
 * Of 64 blocks: those of `into` that are as in the snapshot. For most regions nobody has changed the
 * map since, and one look tells: to compare each block takes a fifth of a millisecond a
 * region, with interrupts off.
 */
static u64 unchanged_word__f(const struct tr_order_state *s, u32 w)
{
	const struct tr_packs *packs = tr_region_packs(s->move.region);
	u64 same = 0;
	u32 i;

	lockdep_assert_held(&s->move.region->lock);
	if (!read_seqcount_retry(&s->move.region->seq, s->seq))
		return s->into[w] & ~s->move.raced[w];
	for (i = 0; i < 64; i++)
		if (s->into[w] >> i & 1 && unchanged__f(s, packs, w * 64 + i))
			same |= 1ull << i;
	return same;
}

void tr_order_read_ended(struct tr_order_state *s, struct terrace_result *result)
{
	struct tr_region *region = s->move.region;
	unsigned long flags;
	u64 same;
	u32 w;

	for (w = 0; w < TR_LEAF_WORDS; w++) {
		if (!s->into[w])
			continue;
		spin_lock_irqsave(&region->lock, flags);
		same = unchanged_word__f(s, w);
		spin_unlock_irqrestore(&region->lock, flags);
		result->raced += hweight64(s->into[w] & ~same);
		s->into[w] = same;
		tr_give_way();
	}
}

static u32 next_bit(const u64 *map, u32 i)
{
	return find_next_bit((const unsigned long *)map, BLOCKS, i);
}

static u32 run_in(const u64 *map, u32 i)
{
	return find_next_zero_bit((const unsigned long *)map, BLOCKS, i) - i;
}

/* The new pack: who is in it lives there now. Credits used. */
static u32 commit_pack__f(struct terrace *tr, struct tr_order_state *s, const struct terrace_move *ask,
			  struct terrace_result *result)
{
	struct tr_region *region = s->move.region;
	u64 gone[TR_LEAF_WORDS], masked[TR_LEAF_WORDS], kept[TR_LEAF_WORDS] = {};
	u32 i, n, w, used = 0, ok = 0;
	u64 place, same;

	for (w = 0; w < TR_LEAF_WORDS; w++) {
		same = unchanged_word__f(s, w);
		ok += hweight64(same);
		result->raced += hweight64(s->into[w] & ~same);
		masked[w] = same & ~region->leaf.present[w];
		gone[w] = same & region->leaf.present[w];
	}
	if (!ok)
		return 0;
	for (i = next_bit(gone, 0); s->nr_refs && i < BLOCKS; i = next_bit(gone, i + 1)) {
		if (!s->pack[i] || tr_avoids(s, s->place[i]) ||
		    !(tr_bit(s->move.stay, i) || (tr_bit(ask->up, i) && !tr_bit(s->slow, i))))
			continue;
		tr_bit_set(kept, i);
		tr_bit_clear(gone, i);
	}
	used += tr_pack_add__f(tr, region, &s->made);
	s->taken = true;
	if (s->index_place != TR_NO_PLACE) {
		struct tr_record record = {
			.type = TERRACE_RECORD_INDEX_ADD, .nr = s->header_blocks,
			.block = region->number, .new = s->index_place, .old = s->made.id,
		};

		tr_region_record__f(tr, region, &record);
		write_seqcount_begin(&region->seq);
		tr_packs_index(tr_region_packs(region), s->made.id, s->index_place,
			       s->header_blocks);
		write_seqcount_end(&region->seq);
		this_cpu_add(tr->stats->hidden, s->header_blocks);
		used++;
	}
	for (i = next_bit(gone, 0); i < BLOCKS; i = next_bit(gone, i + n)) {
		n = run_in(gone, i);
		used += tr_packed__f(tr, region, s->made.id, i, n);
		result->down += n;
	}
	for (i = next_bit(kept, 0); i < BLOCKS; i = next_bit(kept, i + n)) {
		n = tr_leaf_run(&region->leaf, i, run_in(kept, i), &place);
		used += tr_clean__f(tr, region, s->made.id, i, n, place, true);
	}
	return used + tr_packed_mask__f(tr, region, s->made.id, masked);
}

/* Those that are still as they were read are at home now. Credits used. */
static u32 commit_home__f(struct terrace *tr, struct tr_order_state *s, struct terrace_result *result)
{
	struct tr_region *region = s->move.region;
	struct tr_packs *packs = tr_region_packs(region);
	u32 i, n, k, used = 0;

	for (i = 0; i < BLOCKS; i += n) {
		n = 1;
		if (!tr_bit(s->into, i))
			continue;
		if (!unchanged__f(s, packs, i)) {
			result->raced++;
			continue;
		}
		while (i + n < BLOCKS && tr_bit(s->into, i + n) && unchanged__f(s, packs, i + n))
			n++;
		used += tr_region_map__f(tr, region, i, n, s->fresh[i]);
		for (k = i; k < i + n; k++)
			s->fresh[k] = TR_NO_PLACE;
		result->down += n;
	}
	return used;
}

static void promoted(struct terrace *tr, const struct tr_order_state *s, u32 i)
{
	trace_terrace_promote(tr_dev(tr), (s->move.number << TERRACE_REGION_SHIFT) + i, 1,
			      tr_place_tier(s->fresh[i]));
}

/*
 * Out of its pack, and off the clean slot that it may have had: as a write does. A MAP record of the
 * new place, whose data have been flushed, takes it out of the pack:
 *
 *  - a crash before the record is durable leaves it packed; the slot is nobody's;
 *  - one after it leaves it in the slot. If it was the last of its pack, that is dropped by a
 *    later record (of this order, or of whoever meets it), and its run is not reused before
 *    that is durable, too.
 *
 * Credits used.
 */
static u32 commit_unpacked__f(struct terrace *tr, struct tr_order_state *s, u32 i,
			      struct terrace_result *result)
{
	struct tr_region *region = s->move.region;
	u32 used;

	if (!unchanged__f(s, tr_region_packs(region), i)) {
		result->raced++;
		return 0;
	}
	used = tr_region_map__f(tr, region, i, 1, s->fresh[i]);
	promoted(tr, s, i);
	s->fresh[i] = TR_NO_PLACE;
	result->up++;
	return used;
}

static u32 commit_up__f(struct terrace *tr, struct tr_order_state *s, struct terrace_result *result)
{
	struct tr_region *region = s->move.region;
	struct tr_packs *packs = tr_region_packs(region);
	u32 i, k, used = 0;

	for (i = next_bit(s->up, 0); i < BLOCKS; i = next_bit(s->up, i + 1)) {
		if (s->fresh[i] == TR_NO_PLACE)
			continue;
		if (tr_bit(s->unpack, i)) {
			used += commit_unpacked__f(tr, s, i, result);
			continue;
		}
		k = packs ? tr_packs_find(packs, i) : TR_NO_PACK;
		/* A packed block may by now live in the pack that this order made. */
		if (s->pack[i] ? k == TR_NO_PACK || (packs->pack[k].id != s->pack[i] &&
						     packs->pack[k].id != s->made.id) ||
				 tr_leaf_has(&region->leaf, i)
			       : !unchanged__f(s, packs, i)) {
			result->raced++;
			continue;
		}
		if (s->pack[i])
			used += tr_clean__f(tr, region, packs->pack[k].id, i, 1, s->fresh[i], false);
		else
			used += tr_region_map__f(tr, region, i, 1, s->fresh[i]);
		promoted(tr, s, i);
		s->fresh[i] = TR_NO_PLACE;
		result->up++;
	}
	return used;
}

static u32 commit_drop__f(struct terrace *tr, struct tr_order_state *s, struct terrace_result *result)
{
	struct tr_region *region = s->move.region;
	u32 i, n, used = 0;

	for (i = next_bit(s->drop, 0); i < BLOCKS; i = next_bit(s->drop, i + n)) {
		n = 1;
		if (!unchanged__f(s, tr_region_packs(region), i) || !tr_leaf_has(&region->leaf, i))
			continue;
		while (i + n < BLOCKS && tr_bit(s->drop, i + n) && s->pack[i + n] == s->pack[i] &&
		       unchanged__f(s, tr_region_packs(region), i + n) &&
		       tr_leaf_has(&region->leaf, i + n))
			n++;
		used += tr_packed__f(tr, region, s->pack[i], i, n);
		result->dropped += n;
	}
	return used;
}

/* Copies of indexes on tiers that are to be left: the packs have the originals. Credits used. */
static u32 drop_copies__f(struct terrace *tr, struct tr_order_state *s)
{
	struct tr_packs *packs = tr_region_packs(s->move.region);
	u32 k, used = 0;

	for (k = 0; packs && s->avoid && k < packs->nr; k++)
		if (tr_avoids(s, packs->pack[k].index_place))
			used += tr_pack_drop_copy__f(tr, s->move.region, &packs->pack[k]);
	return used;
}

u32 tr_order_nr_fresh(const struct tr_order_state *s)
{
	u32 i, n = 0;

	for (i = tr_order_next(s, 0); i < BLOCKS; i = tr_order_next(s, i + 1))
		n += s->fresh[i] != TR_NO_PLACE;
	return n;
}

/* Room in the leaf for what goes up. */
static void reserve_leaf(struct terrace *tr, struct tr_region *region, u32 n)
{
	unsigned long flags;
	bool ok;

	do {
		spin_lock_irqsave(&region->lock, flags);
		ok = tr_region_reserve__f(region, n, tr->high_places);
		spin_unlock_irqrestore(&region->lock, flags);
		if (!ok)
			tr_region_grow(tr, region, n, tr->high_places);
	} while (!ok);
}

int tr_order_commit(struct terrace *tr, struct tr_order_state *s, const struct terrace_move *ask,
		  struct terrace_result *result)
{
	struct tr_region *region = s->move.region;
	u32 fresh = tr_order_nr_fresh(s), used = 0;
	u32 credits = tr_bits_count(s->into) + tr_bits_count(s->drop) + fresh + 16 + 2 +
		      2 * TERRACE_PACK_SLOTS;
	struct tr_packs *packs;
	unsigned long flags;
	int err;

	if (s->made.id)
		tr_region_packs_grow(tr, region, min(s->nr_refs + 1, (u32)TERRACE_PACK_SLOTS));
	reserve_leaf(tr, region, fresh);
	err = tr_journal_reserve_wait(tr, credits);
	spin_lock_irqsave(&region->lock, flags);
	packs = tr_region_packs(region);
	/* Crashes leave packs that nothing lives in: their slots are for this one. */
	if (!err && s->made.id && packs->nr == packs->cap) {
		used += tr_packs_drop_dead__f(tr, region);
		packs = tr_region_packs(region);
		if (packs->nr == packs->cap)
			err = -EIO;
	}
	if (!err) {
		if (s->made.id)
			used += commit_pack__f(tr, s, ask, result);
		else if (s->home)
			used += commit_home__f(tr, s, result);
		used += commit_up__f(tr, s, result);
		used += commit_drop__f(tr, s, result);
		used += tr_packs_drop_dead__f(tr, region);
		used += drop_copies__f(tr, s);
		packs = tr_region_packs(region);
		result->packs = packs ? packs->nr : 0;
	}
	region->reserved -= fresh;
	tr_credit_settle__f(tr, region);
	spin_unlock_irqrestore(&region->lock, flags);
	if (err != -EROFS)
		tr_journal_unreserve(tr, credits - used);
	return err;
}
