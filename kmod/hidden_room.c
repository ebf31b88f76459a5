// SPDX-License-Identifier: GPL-2.0
/*
 * Room that no count of used blocks shows:
 *
 *  - clean slots, and copies of packs' indexes on slots. The packs have what they hold;
 *  - dead blocks inside packs: a run is used until the last block in it has died, and its
 *    pack has been dropped.
 *
 * A volume within its virtual size may have all its room behind these, and must not refuse
 * a write then. So before a writer hears that there is none, all regions are gone through.
 * What is a copy is dropped, without I/O and whatever is pinned, and dead packs are. Of other
 * packs it is noted, by shelf, how much of them is dead: the janitor cleans the shelf with the
 * least alive (janitor.c).
 *
 * That is a look at each region, and on a large volume at each page: not to be repeated
 * before something has died, or has been copied, since. So all that does is counted.
 */
#include <linux/delay.h>
#include <linux/slab.h>

#include "packs.h"

#define LEAST		128	/* fewer blocks are not worth a search */
#define NO_ORDERS	(~0ull)
#define FAILED_MS	20	/* pause when memory is short */
#define PATIENCE_SECONDS 60	/* with pages that cannot be read */

/* What has come to take room for nothing, ever; from 1 on. */
static u64 hidden(struct terrace *tr)
{
	u64 sum = 1;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(tr->stats, cpu)->hidden);
	return sum;
}

/*
 * The last search dropped all there was, but for regions that orders held: those have not
 * ended since. Who acts on this looks at the janitor's own verdict after it: one from before
 * that search does not count.
 */
bool tr_hidden_room_none(struct terrace *tr)
{
	u64 known = smp_load_acquire(&tr->hidden_known);	/* pairs with end_search() */
	u64 orders = READ_ONCE(tr->hidden_orders);

	if (tr->stream_tier == tr->nr_tiers)
		return true;		/* no shelves, no packs */
	return known && hidden(tr) - known < LEAST &&
	       (orders == NO_ORDERS || orders == atomic64_read(&tr->orders_ended));
}

static bool is_needed(struct terrace *tr)
{
	return tr_room_is_waited_for(tr) && tr_space_tight(tr);
}

/* Some of it is worth a search for dead blocks before anybody waits. */
bool tr_hidden_room_wanted(struct terrace *tr)
{
	u64 worth = max_t(u64, TERRACE_CHUNK_BLOCKS / 2, tr->virtual_blocks / 64);
	u32 t;

	if (is_needed(tr))
		return !tr_hidden_room_none(tr);
	if (hidden(tr) - READ_ONCE(tr->hidden_counted) < worth)
		return false;
	for (t = 0; t < tr->nr_tiers; t++)
		if (tr_shelves_low(tr, &tr->tier[t]))
			return true;
	return false;
}

/* --- dead blocks ------------------------------------------------------------------ */

/* Also that shelves could not be emptied, or packed: a drive may read by now what it could not. How many. */
static u32 forget_dead(struct terrace *tr)
{
	u32 t, c, vain = 0;

	for (t = 0; t < tr->nr_tiers; t++) {
		struct tr_tier *tier = &tr->tier[t];

		if (tier->kind != TERRACE_KIND_SHELVES)
			continue;
		for (c = 0; c < tier->nr_chunks; c++) {
			spin_lock_irq(&tier->lock);
			tier->chunks[c].dead = 0;
			vain += !!(tier->chunks[c].flags & (TR_CHUNK_VAIN | TR_CHUNK_UNREAD));
			/* less may be enough now */
			tier->chunks[c].flags &= ~(TR_CHUNK_SHUT | TR_CHUNK_VAIN | TR_CHUNK_UNREAD);
			spin_unlock_irq(&tier->lock);
			cond_resched();
		}
	}
	return vain;
}

/*
 * As much of a pack's run is dead, at least, as is more than its live blocks take in a new
 * one if they do not compress. So nothing is promised that cleaning does not keep; and
 * a volume within its virtual size, whose blocks count whole, gets back what it is short of.
 */
static u32 dead_in(const struct tr_tier *tier, const struct tr_pack *pack)
{
	u32 most = tr_pack_live(pack);

	if (most)
		most += TERRACE_PACK_HEADER_BLOCKS + tier->unit - 1;
	return pack->blocks > most ? pack->blocks - most : 0;
}

/* Under the region's lock: its packs' runs are nobody else's. How many blocks can be had. */
static u32 note_dead__f(struct terrace *tr, struct tr_region *region, const struct tr_pack *pack)
{
	struct tr_tier *tier = &tr->tier[tr_place_tier(pack->place)];
	u32 c = tr_place_index(pack->place) >> TERRACE_CHUNK_SHIFT;
	u32 dead = dead_in(tier, pack);
	struct tr_chunk_info *info;

	lockdep_assert_held(&region->lock);
	if (!dead)
		return 0;
	spin_lock(&tier->lock);
	if (c < tier->nr_chunks) {
		info = &tier->chunks[c];
		info->dead = min_t(u32, info->dead + dead, info->used);
	}
	spin_unlock(&tier->lock);
	return dead;
}

/* --- what can be dropped ------------------------------------------------------------ */

static bool has_copies__f(const struct tr_region *region, const struct tr_packs *packs)
{
	u64 live[TR_LEAF_WORDS];
	bool some = false;
	u32 w;

	tr_packs_mask(packs, live);
	for (w = 0; w < TR_LEAF_WORDS; w++)
		some |= live[w] & region->leaf.present[w];
	return some;
}

/*
 * May it go better the next time? Then the search has not seen everything, and nobody hears
 * that there is no room. A drive may be away for a moment; but what can never be read must not
 * keep writers waiting for ever.
 */
static bool may_pass(struct terrace *tr, int err)
{
	unsigned long now = jiffies ?: 1;

	if (err != -EIO)
		return true;
	tr->hidden_unread = true;
	if (!tr->hidden_failing)
		tr->hidden_failing = now;
	return time_before(now, tr->hidden_failing + PATIENCE_SECONDS * HZ);
}

/* Looks at one region: is there anything to be dropped? Adds up what is dead in its packs. */
static bool look_at(struct terrace *tr, u64 number, u64 *dead)
{
	struct tr_region *region;
	struct tr_packs *packs;
	bool copies = false;
	unsigned long flags;
	u32 k;

	tr_reserve_wait(tr);
	region = tr_region_get(tr, number, false);
	if (IS_ERR_OR_NULL(region)) {
		if (region && PTR_ERR(region) != -EUCLEAN && may_pass(tr, PTR_ERR(region)))
			tr->hidden_left = true;
		return false;
	}
	spin_lock_irqsave(&region->lock, flags);
	packs = tr_region_packs(region);
	if (packs)
		copies = has_copies__f(region, packs);
	for (k = 0; packs && k < packs->nr; k++) {
		copies |= packs->pack[k].index_place != TR_NO_PLACE || !tr_pack_live(&packs->pack[k]);
		*dead += note_dead__f(tr, region, &packs->pack[k]);
	}
	spin_unlock_irqrestore(&region->lock, flags);
	tr_region_put(region);
	return copies;
}

static u64 drop(struct terrace *tr, struct tr_move *move, u32 nr)
{
	u64 dropped = 0;
	u32 k;

	if (!nr)
		return 0;
	tr_moves_run(tr, move, nr);
	for (k = 0; k < nr; k++) {
		dropped += move[k].moved;
		if (move[k].err == -EBUSY)
			WRITE_ONCE(tr->hidden_orders, tr->hidden_ended);
		else if (move[k].err && move[k].err != -ENOENT && move[k].err != -EUCLEAN &&
			 may_pass(tr, move[k].err))
			tr->hidden_left = true;
	}
	return dropped;
}

/* --- the search --------------------------------------------------------------------- */

/* Of all slots, from janitor_low to the end: as much as the janitor makes free at a time. */
static u64 enough(struct terrace *tr)
{
	u64 blocks = 0;
	u32 t;

	for (t = 0; t < tr->nr_tiers; t++)
		if (tr->tier[t].kind == TERRACE_KIND_SLOTS && !tr->tier[t].missing)
			blocks += div_u64(tr->tier[t].data_blocks *
					  (1000 - tr_tune(tr, TR_TUNE_JANITOR_LOW)), 1000);
	return blocks;
}

static u32 begin_search(struct terrace *tr)
{
	tr->hidden_began = hidden(tr);
	tr->hidden_ended = atomic64_read(&tr->orders_ended);
	tr->hidden_left = false;
	tr->hidden_unread = false;
	WRITE_ONCE(tr->hidden_orders, NO_ORDERS);
	return forget_dead(tr);
}

static void end_search(struct terrace *tr)
{
	WRITE_ONCE(tr->hidden_counted, tr->hidden_began);
	if (!tr->hidden_unread)
		tr->hidden_failing = 0;
	if (!tr->hidden_left)
		smp_store_release(&tr->hidden_known, tr->hidden_began);	/* pairs with tr_hidden_room_none() */
}

/*
 * Goes on where the last one ended, to the end of the volume, or until enough was dropped:
 * nothing is, unless somebody waits for room. Who begins to wait meanwhile gets a search of
 * his own. Nothing is held in between.
 */
u64 tr_hidden_room_find(struct terrace *tr)
{
	struct tr_move *move = kcalloc(TR_MOVE_BATCH, sizeof(*move), GFP_NOIO);
	u64 dropped = 0, dead = 0, number = tr->hidden_hand, end = tr_nr_regions(tr);
	bool dropping = is_needed(tr);
	u32 nr = 0, again = 0;

	if (!number)
		again = begin_search(tr);
	tr->hidden_left |= !dropping || !move;
	for (; move && number < end && dropped <= enough(tr) && tr_writable(tr) &&
	       !READ_ONCE(tr->stopping) && (dropping || !is_needed(tr)); number++) {
		if (look_at(tr, number, &dead) && dropping)
			move[nr++] = (struct tr_move){ .number = number, .drop_only = true,
						       .chunk = TR_ANY_CHUNK };
		if (nr == TR_MOVE_BATCH) {
			dropped += drop(tr, move, nr);
			nr = 0;
		}
		cond_resched();
	}
	dropped += drop(tr, move, nr);
	kfree(move);
	if (number >= end)
		end_search(tr);
	if (tr->hidden_left && dropping)
		msleep(FAILED_MS);
	tr->hidden_hand = number < end && !tr->hidden_left ? number : 0;
	return dropped + dead + again;	/* shelves to be tried once more are news, too */
}
