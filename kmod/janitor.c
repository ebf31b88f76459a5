// SPDX-License-Identifier: GPL-2.0
/*
 * Room without a policy: when no daemon decides, blocks that were touched
 * longest ago go from a full slots tier home or to the shelves, and shelves with
 * the least in them are emptied, so that nothing fills up with garbage. A drive of
 * homes that is full inside gives blocks on to shelves. By age of regions alone,
 * through the same moves that orders use. On a volume that is larger than its drives what
 * goes to the shelves goes into packs.
 *
 * It starts when a slots tier is janitor_high per mille full, or all in use but its reserve, and
 * stops at janitor_low. Of a window of regions behind its hand it takes the oldest;
 * small volumes fit the window whole.
 */
#include <linux/delay.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/vmalloc.h>

#include "order.h"
#include "sense.h"

#define WINDOW		1024	/* regions with blocks on the tier, looked at per round */
#define SCAN_LIMIT	65536	/* regions looked at to find them */
#define FAILED_MS	20		/* pause when memory is short */
#define AGAIN_MOST	6		/* log2 of the seconds between passes in vain on an idle volume */
#define LOCKED_CHUNKS	256	/* chunks looked at in one go under tier->lock */
#define SHELF_LOW	2	/* free shelves below which cleaning starts, above the reserve */

#define WORTH_CLEANING	(TERRACE_CHUNK_BLOCKS * 9 / 10)
#define WORTH_PACKING	(TERRACE_CHUNK_BLOCKS / 2)
#define GAIN_LEAST	128	/* blocks */
#define PACK_LEAST	64	/* blocks that are worth a header, its copy, and one pack more */

struct candidate {
	u64 number;
	u32 idle;		/* ticks since the last use */
};

/* --- demotion -------------------------------------------------------------------- */

static bool over(struct terrace *tr, const struct tr_tier *tier, enum tr_tune_id mark)
{
	if (tier->missing || !tier->data_blocks)
		return false;
	if (tier->kind == TERRACE_KIND_HOME)
		return mark == TR_TUNE_JANITOR_HIGH ? tr_home_full(tier) : tr_home_surplus(tier);
	return tier->kind == TERRACE_KIND_SLOTS && tr_space_used(tier) >= tr_space_mark(tr, tier, mark);
}

/* May blocks of @tier go down to @below? From homes only to shelves. */
static bool takes_from(struct terrace *tr, const struct tr_tier *below, const struct tr_tier *tier)
{
	if (below->missing || !(tr_space_open(tr) >> below->number & 1))
		return false;
	return below->kind == TERRACE_KIND_SHELVES ||
	       (below->kind == TERRACE_KIND_HOME && tier->kind == TERRACE_KIND_SLOTS &&
		!tr_home_full(below));
}

/* Blocks of a region in memory on tier @t, counted up to @enough. Under RCU. */
static u32 count_blocks(struct tr_region *region, u32 t, u32 enough)
{
	u32 i, n, count = 0;
	unsigned long flags;
	u64 place;

	spin_lock_irqsave(&region->lock, flags);
	for (i = 0; i < TERRACE_REGION_BLOCKS && count < enough; i += n) {
		n = tr_leaf_run(&region->leaf, i, TERRACE_REGION_BLOCKS - i, &place);
		if (place != TR_NO_PLACE && tr_place_tier(place) == t)
			count += n;
	}
	spin_unlock_irqrestore(&region->lock, flags);
	return count;
}

/* How many blocks a region may have on tier @t; more than it has when it is not in memory. */
static u32 blocks_on(struct terrace *tr, u64 number, u32 t)
{
	struct tr_region *region;
	struct tr_entry entry;
	u32 count = TERRACE_REGION_BLOCKS;

	rcu_read_lock();
	region = tr_region_find(tr, number);
	if (region)
		count = region == &tr->empty ? 0 : count_blocks(region, t, count);
	rcu_read_unlock();
	if (!region && tr->tier[t].kind == TERRACE_KIND_SLOTS &&
	    !tr_page_lookup(tr, TERRACE_TREE_MAP, 0, number, &entry))
		count = min_t(u32, count, entry.count);		/* on slots, of whichever tier */
	return count;
}

/*
 * Ticks since the last use of a region that has blocks on tier @t, or may have; false: it
 * has none. One that is not in memory has not been used since it left, or since the volume
 * was opened (the ticks begin anew then): it goes before all that are.
 */
static bool slots_idle(struct terrace *tr, u64 number, u32 t, u32 *idle)
{
	u8 tick = READ_ONCE(tr->tick);
	struct tr_region *region;
	struct tr_entry entry;
	bool some = false;

	rcu_read_lock();
	region = tr_region_find(tr, number);
	if (region) {
		*idle = (u8)(tick - READ_ONCE(region->age));
		some = region != &tr->empty && count_blocks(region, t, 1);
	}
	rcu_read_unlock();
	if (region)
		return some;
	if (tr_page_lookup(tr, TERRACE_TREE_MAP, 0, number, &entry))
		return false;
	if (!entry.count && tr->tier[t].kind == TERRACE_KIND_SLOTS)
		return false;		/* it counts those on slots */
	*idle = 256 + (u8)(tick - entry.age);
	return true;
}

static int older_first(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return x->idle == y->idle ? 0 : x->idle > y->idle ? -1 : 1;
}

static u32 find_candidates(struct terrace *tr, u32 t, struct candidate *candidate)
{
	u64 looked, regions = tr_nr_regions(tr), limit = min_t(u64, regions, SCAN_LIMIT);
	u32 nr = 0;

	for (looked = 0; looked < limit && nr < WINDOW; looked++) {
		u64 number = tr->janitor_hand;

		tr->janitor_hand = number + 1 < regions ? number + 1 : 0;
		if (!slots_idle(tr, number, t, &candidate[nr].idle))
			continue;
		candidate[nr++].number = number;
		cond_resched();
	}
	sort(candidate, nr, sizeof(*candidate), older_first, NULL);
	return nr;
}

/* Blocks that must go until the tier is at janitor_low. */
static u64 surplus(struct terrace *tr, const struct tr_tier *tier)
{
	u64 used = tr_space_used(tier), low = tr_space_mark(tr, tier, TR_TUNE_JANITOR_LOW);

	if (tier->kind == TERRACE_KIND_HOME)
		return tr_home_surplus(tier);
	return used > low ? used - low : 0;
}

static struct tr_move move_down(u64 number, const struct tr_tier *from, const struct tr_tier *to)
{
	return (struct tr_move){
		.number = number, .from = from->number, .to = to->number,
		.who = TR_APPEND_WRITES, .chunk = TR_ANY_CHUNK,
	};
}

/*
 * The next moves, of no more regions than it takes to move @need blocks. They
 * append where writers do, who overflow to the same shelves meanwhile: two
 * streams would have a disk go to and fro between them.
 */
static u32 fill_batch(struct terrace *tr, struct tr_tier *from, struct tr_tier *to, u64 need,
		      const struct candidate **next, const struct candidate *end,
		      struct tr_move *move)
{
	u64 expected = 0;
	u32 m = 0;

	for (; m < TR_MOVE_BATCH && *next < end && expected < need; ++*next) {
		u32 blocks = blocks_on(tr, (*next)->number, from->number);

		cond_resched();
		if (!blocks)
			continue;
		expected += blocks;
		move[m++] = move_down((*next)->number, from, to);
	}
	return m;
}

/* Moves the oldest of a window down. Blocks moved, or what stopped it. */
static s64 demote_round(struct terrace *tr, struct tr_tier *from, struct tr_tier *to,
			struct candidate *candidate, struct tr_move *move)
{
	const struct candidate *next = candidate, *end;
	u64 need = surplus(tr, from);
	s64 moved = 0;
	u32 m, i;

	end = candidate + find_candidates(tr, from->number, candidate);
	/* The last free shelves are for cleaning. */
	while (moved < need && tr_writable(tr) && takes_from(tr, to, from) &&
	       tr_shelf_may_open(to, TR_APPEND_WRITES)) {
		m = fill_batch(tr, from, to, need - moved, &next, end, move);
		if (!m)
			break;
		tr_moves_run(tr, move, m);
		for (i = 0; i < m; i++)
			moved += move[i].moved;
		if (move[m - 1].err == -ENOSPC)
			break;
	}
	return moved;
}

/* The next of both, likewise: orders, and for what is too little for a pack moves. */
struct next_down {
	struct tr_order *order;
	struct tr_move *move;
	u32 orders, moves;
};

static void fill_down(struct terrace *tr, struct tr_tier *from, struct tr_tier *to, u64 need,
		      const struct candidate **next, const struct candidate *end,
		      struct next_down *down)
{
	bool packs = to->kind == TERRACE_KIND_SHELVES;
	struct tr_order *order;
	u64 expected = 0;

	static_assert(TR_MOVE_BATCH >= TR_ORDER_BATCH);
	down->orders = 0;
	down->moves = 0;
	for (; down->orders < TR_ORDER_BATCH && down->moves < TR_ORDER_BATCH && *next < end &&
	       expected < need; ++*next) {
		u32 blocks = blocks_on(tr, (*next)->number, from->number);

		cond_resched();
		if (!blocks)
			continue;
		expected += blocks;
		if (packs && blocks < PACK_LEAST) {
			down->move[down->moves++] = move_down((*next)->number, from, to);
			continue;
		}
		order = &down->order[down->orders++];
		memset(order, 0, sizeof(*order));
		order->chunk = TR_ANY_CHUNK;
		order->ask.cookie = 1;
		order->ask.mode = TERRACE_MOVE_APPEND;
		order->ask.codec = packs ? TERRACE_CODEC_LZ4 : 0;
		order->ask.region = (*next)->number;
		order->ask.tier_down = to->number;
	}
}

static bool takes_orders(struct terrace *tr, const struct tr_tier *to, const struct tr_tier *from)
{
	return takes_from(tr, to, from) && (to->kind == TERRACE_KIND_HOME ? !tr_home_full(to) :
					    tr_shelf_may_open(to, TR_APPEND_WRITES));
}

/* Blocks that went, or were given back for nothing; *@full: there is no room for more. */
static s64 run_down(struct terrace *tr, struct next_down *down, bool *full)
{
	struct tr_order *batch[TR_ORDER_BATCH];
	s64 packed = 0, moved = 0;
	u32 i;

	for (i = 0; i < down->orders; i++)
		batch[i] = &down->order[i];
	if (down->orders)
		tr_orders_run(tr, batch, down->orders);
	for (i = 0; i < down->orders; i++)
		packed += batch[i]->result.down + batch[i]->result.dropped;
	*full = down->orders && batch[down->orders - 1]->result.error == -ENOSPC;
	this_cpu_add(tr->stats->moved, packed);
	if (down->moves)
		tr_moves_run(tr, down->move, down->moves);
	for (i = 0; i < down->moves; i++)
		moved += down->move[i].moved;
	*full |= down->moves && down->move[down->moves - 1].err == -ENOSPC;
	return packed + moved;
}

/* The oldest of a window go home, or into packs. */
static s64 order_round(struct terrace *tr, struct tr_tier *from, struct tr_tier *to,
		       struct candidate *candidate, struct tr_move *move)
{
	struct next_down down = {
		.order = kvmalloc_array(TR_ORDER_BATCH, sizeof(*down.order), GFP_NOIO),
		.move = move,
	};
	const struct candidate *next = candidate, *end;
	u64 need = surplus(tr, from);
	bool full = false;
	s64 moved = 0;

	if (!down.order)
		return 0;
	end = candidate + find_candidates(tr, from->number, candidate);
	while (moved < need && tr_writable(tr) && takes_orders(tr, to, from) && !full) {
		fill_down(tr, from, to, need - moved, &next, end, &down);
		if (!down.orders && !down.moves)
			break;
		moved += run_down(tr, &down, &full);
	}
	kvfree(down.order);
	return moved;
}

static bool may_go_on(struct terrace *tr)
{
	return tr_writable(tr) && !READ_ONCE(tr->stopping);
}

/* What was moved is free again only after its commit and a grace period. */
static void settle(struct terrace *tr)
{
	tr_frees_wait(tr);
	tr_throttle_update(tr);
}

/* --- cleaning ---------------------------------------------------------------------- */

/* One that is to be left is not cleaned, which would be writing to it. */
bool tr_shelves_low(struct terrace *tr, const struct tr_tier *tier)
{
	return tier->kind == TERRACE_KIND_SHELVES && !tier->missing &&
	       tr_space_open(tr) >> tier->number & 1 &&
	       READ_ONCE(tier->free_shelves) <
	       tr_shelves_kept(tier) + SHELF_LOW;
}

/*
 * Does cleaning a shelf with @alive blocks leave more behind than its copy takes? One that
 * was closed early, since the next pack did not fit, has a copy that ends there as well.
 */
static bool gains(const struct tr_chunk_info *info, u32 alive)
{
	u32 filled = info->filled ?: TERRACE_CHUNK_BLOCKS - TERRACE_TABLE_BLOCKS;

	return alive + alive / TERRACE_OWNERS_PER_BLOCK + GAIN_LEAST < filled;
}

static u32 alive_in(struct tr_tier *tier, u32 chunk)
{
	u32 alive;

	spin_lock_irq(&tier->lock);
	alive = tr_chunk_alive(&tier->chunks[chunk]);
	spin_unlock_irq(&tier->lock);
	return alive;
}

/*
 * To be cleaned, the closed shelf with the least alive in it; TR_ANY_CHUNK: none worth it.
 * While writers have shelves, one that is nearly full is not: cleaning it wears the
 * drive for little. When they have none, whatever gains anything is: a volume within its
 * virtual size must not refuse a write. To be packed, the one with the most alive.
 */
static u32 pick_shelf(struct tr_tier *tier, bool pack)
{
	u32 c, best = TR_ANY_CHUNK, most = WORTH_PACKING;
	u32 least = tr_shelf_may_open(tier, TR_APPEND_WRITES) ? WORTH_CLEANING : TERRACE_CHUNK_BLOCKS;

	spin_lock_irq(&tier->lock);
	for (c = 0; c < tier->nr_chunks; c++) {
		const struct tr_chunk_info *info;
		u32 alive;

		/* There may be tens of thousands, and writers wait for the lock. */
		if (c % LOCKED_CHUNKS == LOCKED_CHUNKS - 1) {
			spin_unlock_irq(&tier->lock);
			cond_resched();
			spin_lock_irq(&tier->lock);
		}
		info = &tier->chunks[c];
		alive = tr_chunk_alive(info);
		if (!info->used || tr_shelf_is_open__f(tier, c) ||
		    info->flags & (pack ? TR_CHUNK_DENSE | TR_CHUNK_UNREAD : TR_CHUNK_VAIN) ||
		    (pack ? alive <= most : alive >= least || !gains(info, alive)))
			continue;
		least = alive;
		most = alive;
		best = c;
	}
	spin_unlock_irq(&tier->lock);
	return best;
}

/* One shelf with loose blocks that can be packed; the others that are looked at have none. */
static s64 pack_round(struct terrace *tr, struct tr_tier *tier, bool must, bool *failed)
{
	u32 chunk = pick_shelf(tier, true);
	s64 moved = 0;

	for (; chunk != TR_ANY_CHUNK && may_go_on(tr); chunk = pick_shelf(tier, true)) {
		moved = tr_pack_shelf(tr, tier, chunk, must);
		*failed |= moved == -ENOMEM;
		if (moved > 0 || moved == -EBUSY || moved == -ETXTBSY || moved == -ENOSPC ||
		    moved == -ENOMEM || !may_go_on(tr))
			break;
		if (moved == -EAGAIN && !must)
			break;		/* says nothing of the shelf: more may be free next time */
		spin_lock_irq(&tier->lock);
		tier->chunks[chunk].flags |= moved ? TR_CHUNK_UNREAD : TR_CHUNK_DENSE;
		spin_unlock_irq(&tier->lock);
		if (!must)
			break;		/* another is emptied meanwhile: writers may be waiting */
	}
	if (moved > 0)
		settle(tr);
	return max_t(s64, moved, 0);
}

/* Blocks moved; *@failed: memory was short. */
static s64 clean_round(struct terrace *tr, struct tr_tier *tier, bool *failed)
{
	u32 chunk = pick_shelf(tier, false);
	s64 moved;

	/* Packed, there is less of it. */
	if (tr_overcommitted(tr) && (chunk == TR_ANY_CHUNK || alive_in(tier, chunk) > WORTH_PACKING)) {
		moved = pack_round(tr, tier, chunk == TR_ANY_CHUNK, failed);
		if (moved)
			return moved;
	}
	if (chunk == TR_ANY_CHUNK)
		return 0;
	tr_work_normally();	/* shelves are low: it is in a hurry, whatever went before */
	moved = tr_clean_shelf(tr, tier, chunk, NULL);
	settle(tr);
	*failed |= moved == -ENOMEM;
	if (moved <= 0 && moved != -EBUSY && moved != -ETXTBSY && moved != -ENOSPC && moved != -ENOMEM &&
	    may_go_on(tr)) {
		/* Owners that cannot be read, or a lost region: leave it alone until
		 * something in it is freed, or hidden room is looked for. What passes by
		 * itself is no reason: an order at work on one of its regions, no room.
		 */
		spin_lock_irq(&tier->lock);
		tier->chunks[chunk].flags |= TR_CHUNK_VAIN;
		spin_unlock_irq(&tier->lock);
	}
	return max_t(s64, moved, 0);
}

/* --- the worker ---------------------------------------------------------------------- */

static bool made(s64 moved, bool *progress)
{
	*progress |= moved > 0;
	return moved > 0;
}

/* Down from @tier to @below, until there is room or no progress. */
static void make_room(struct terrace *tr, struct tr_tier *tier, struct tr_tier *below,
		      struct candidate *candidate, struct tr_move *move, bool *progress)
{
	u32 idle = 0;
	s64 moved;

	/* Two rounds without a move: what is left is in use or pinned. */
	while (over(tr, tier, TR_TUNE_JANITOR_LOW) && takes_from(tr, below, tier) && idle < 2 &&
	       may_go_on(tr)) {
		if (below->kind == TERRACE_KIND_HOME || tr_overcommitted(tr))
			moved = order_round(tr, tier, below, candidate, move);
		else
			moved = demote_round(tr, tier, below, candidate, move);
		idle = made(moved, progress) ? 0 : idle + 1;
		settle(tr);
		if (tier->kind == TERRACE_KIND_HOME && moved > 0)
			tr_home_moved_away(tier, moved);
	}
}

/* What it may have failed for has changed: room, or orders that held regions. */
u64 tr_releases(struct terrace *tr)
{
	u64 sum = 1 + atomic64_read(&tr->orders_ended);
	u32 t;

	for (t = 0; t < tr->nr_tiers; t++)
		sum += READ_ONCE(tr->tier[t].releases);
	return sum;
}

static bool has_work(struct terrace *tr)
{
	u32 t;

	for (t = 0; t < tr->nr_tiers; t++)
		if (over(tr, &tr->tier[t], TR_TUNE_JANITOR_HIGH) || tr_shelves_low(tr, &tr->tier[t]))
			return true;
	return false;
}

static void janitor_fn(struct work_struct *work)
{
	struct terrace *tr = container_of(work, struct terrace, janitor_work);
	u64 began = tr_releases(tr);
	bool looked = has_work(tr);
	struct candidate *candidate = kvmalloc_array(WINDOW, sizeof(*candidate), GFP_NOIO);
	struct tr_move *move = kmalloc_array(TR_MOVE_BATCH, sizeof(*move), GFP_NOIO);
	bool progress = false, failed = !candidate || !move;
	u32 t, b, idle;

	for (t = 0; candidate && move && t < tr->nr_tiers; t++) {
		struct tr_tier *tier = &tr->tier[t];

		for (idle = 0; tr_shelves_low(tr, tier) && idle < 2 && may_go_on(tr);)
			idle = made(clean_round(tr, tier, &failed), &progress) ? 0 : idle + 1;
		if (!over(tr, tier, TR_TUNE_JANITOR_HIGH))
			continue;
		/* What has no home goes to the next tier. */
		for (b = t + 1; b < tr->nr_tiers; b++)
			make_room(tr, tier, &tr->tier[b], candidate, move, &progress);
	}
	/* Before it says that there is none: what no count shows. */
	if (!progress && may_go_on(tr) && tr_hidden_room_wanted(tr)) {
		progress = tr_hidden_room_find(tr);
		settle(tr);
	}
	tr_work_normally();
	kfree(move);
	kvfree(candidate);
	if (failed && !progress && tr_room_is_waited_for(tr))
		msleep(FAILED_MS);	/* they have it begin again at once */
	WRITE_ONCE(tr->janitor_vains, progress ? 0 : tr->janitor_vains + 1);
	if (!progress) {
		WRITE_ONCE(tr->janitor_looked, looked);
		WRITE_ONCE(tr->janitor_next, jiffies + HZ);
	}
	/* What the search for hidden room found need not have been released yet. And what
	 * failed for want of memory says nothing of room, nor does what was stopped.
	 */
	WRITE_ONCE(tr->janitor_vain, progress || failed || !may_go_on(tr) ? 0 : began);
	WRITE_ONCE(tr->janitor_busy, false);
	queue_work(tr->room_wq, &tr->refill_work);
	tr_room_made(tr);	/* whoever waits for room looks again, or learns that there is none */
}

/* It looked at everything, in vain, and nothing has become free since. */
bool tr_janitor_gave_up(struct terrace *tr)
{
	return !READ_ONCE(tr->janitor_busy) && READ_ONCE(tr->janitor_vain) == tr_releases(tr);
}

static bool wanted(struct terrace *tr)
{
	/* Only its verdict ends the waiting of a bio that finds no room. */
	return (!tr_is_driven(tr) && has_work(tr)) || tr_space_tight(tr);
}

/* After a pass in vain it rests, unless a bio waits and there is news. */
static bool rests(struct terrace *tr)
{
	if (!time_before(jiffies, READ_ONCE(tr->janitor_next)))
		return false;
	/* For a moment nothing was ready for writers, but no tier was at its mark:
	 * that pass says nothing of one that is now.
	 */
	if (!READ_ONCE(tr->janitor_looked) && has_work(tr))
		return false;
	if (!tr_room_is_waited_for(tr))
		return true;
	return READ_ONCE(tr->janitor_vain) == tr_releases(tr) && !tr_hidden_room_wanted(tr);
}

/* Not work_busy(): the last lines of a pass, with its verdict given, are no pass. */
void tr_janitor_kick(struct terrace *tr)
{
	if (READ_ONCE(tr->stopping) || READ_ONCE(tr->janitor_busy) || !wanted(tr))
		return;
	/* This may be the last kick: nothing need be written ever after. Each pass kicks once
	 * more when it ends, so on an idle volume they come ever less often.
	 */
	if (rests(tr)) {
		queue_delayed_work(tr->meta_wq, &tr->janitor_again,
				   HZ << min_t(u32, READ_ONCE(tr->janitor_vains), AGAIN_MOST));
		return;
	}
	WRITE_ONCE(tr->janitor_busy, true);
	queue_work(tr->meta_wq, &tr->janitor_work);
}

static void again_fn(struct work_struct *work)
{
	tr_janitor_kick(container_of(work, struct terrace, janitor_again.work));
}

void tr_janitor_init(struct terrace *tr)
{
	INIT_WORK(&tr->janitor_work, janitor_fn);
	INIT_DELAYED_WORK(&tr->janitor_again, again_fn);
}
