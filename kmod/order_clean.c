// SPDX-License-Identifier: GPL-2.0
/*
 * The order CLEAN: clean.c empties the shelf, with many orders of regions; here it is found out whether
 * it is empty, and said what stays.
 */
#include "order_state.h"

#define FREES_SECONDS	30	/* for a reader of what was moved */

/* Not beyond the lock: a tier that grows has another array. */
static struct tr_chunk_info *shelf_of__f(struct tr_tier *tier, const struct tr_order *order)
{
	lockdep_assert_held(&tier->lock);
	return &tier->chunks[order->ask.region];
}

/* Is there anything on the shelf? From now on it is known whether it has been free. */
static bool clean_begins(struct terrace *tr, const struct tr_order *order)
{
	struct tr_tier *tier = &tr->tier[order->ask.tier_down];
	struct tr_chunk_info *info;
	bool any;

	spin_lock_irq(&tier->lock);
	any = shelf_of__f(tier, order)->used;
	spin_unlock_irq(&tier->lock);
	tr_frees_wait(tr);		/* what is dead already is nothing that stays */
	spin_lock_irq(&tier->lock);
	info = shelf_of__f(tier, order);
	if (info->used)
		info->flags |= TR_CHUNK_CLEANED;
	spin_unlock_irq(&tier->lock);
	return any;
}

static bool has_been_free(struct terrace *tr, const struct tr_order *order)
{
	struct tr_tier *tier = &tr->tier[order->ask.tier_down];
	bool has;

	spin_lock_irq(&tier->lock);
	has = !(shelf_of__f(tier, order)->flags & TR_CHUNK_CLEANED);
	spin_unlock_irq(&tier->lock);
	return has;
}

/*
 * Does anything stay? The shelf has the last word: there may be what nobody has met. Nothing is added
 * to one that is closed, and what left it is free in a moment, unless somebody reads it, or a
 * write that a move has left out is still on its way.
 */
static int clean_ends(struct terrace *tr, const struct tr_order *order)
{
	bool freed = false;
	u32 tries;

	for (tries = 0; tries < FREES_SECONDS && !freed && !has_been_free(tr, order) &&
	     !tr_order_stops(tr, order); tries++)
		freed = tr_frees_wait(tr);
	if (has_been_free(tr, order))
		return 0;
	return !tr_writable(tr) ? -EROFS : !freed || order->result.raced ? -EBUSY : -EIO;
}

int tr_order_clean(struct terrace *tr, struct tr_order *order)
{
	struct terrace_result *result = &order->result;
	bool any;
	s64 moved;
	int stays;

	order->left = 0;
	any = clean_begins(tr, order);
	moved = tr_clean_shelf(tr, &tr->tier[order->ask.tier_down], order->ask.region, order);
	order->cleaned += max_t(s64, moved, 0);
	result->down = order->cleaned;
	stays = moved >= 0 || moved == -ENOENT || moved == -EIO ? clean_ends(tr, order) : moved;
	if (!stays) {
		result->raced = result->unreadable = 0;	/* they have gone otherwise */
		result->bad_block = ~0ull;
		order->left = 0;
		return any || order->cleaned ? 0 : -ENOENT;	/* whoever emptied it */
	}
	if (tr_order_stops(tr, order))
		return tr_order_stopped(order);
	if (moved < 0 && moved != -ENOENT)
		return order->left ?: moved;
	if (!order->left && result->unreadable)
		return order->cleaned ? 0 : -EIO;
	order->left = order->left ?: stays;
	return order->left;
}
