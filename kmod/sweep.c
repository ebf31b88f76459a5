// SPDX-License-Identifier: GPL-2.0
/*
 * Emptying a shelf of its loose blocks, in the order in which they lie there.
 *
 * Blocks that were written at random lie side by side and belong to as many
 * regions. Region by region, a disk would turn for almost each of them. So the
 * shelf is passed through once, from its beginning to its end:
 *
 *   1. owners    who was written where: the owner table, or the owner blocks
 *   2. begin     a move of each region that has a block there, as far as they
 *                are not too many; one grace period for all. Then, window by
 *                window:
 *   3. look up   which of the blocks still lie where their owner says
 *   4. read      the window, across gaps that are quicker read than skipped
 *   5. write     what lives, one block behind the other; flush the tier
 *   6. publish   each piece under its region's lock, as any move does
 *   7. end       of the moves
 *
 * They are a batch of moves, for which what move.c says of crashes and of
 * writers holds. Owners are hints from an earlier time; the map decides.
 */
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/vmalloc.h>

#include "order.h"
#include "sense.h"

#define WINDOW		2048u	/* blocks of the shelf that are read at once */
#define REGIONS		512u	/* moved at a time, so many stay in memory */
#define PINNED		64u	/* … whatever memory there is (0017) */
#define GENTLE		8u	/* blocks of a piece: published under one lock */
#define WRITTEN		16u	/* blocks in one bio */
#define CREDITS		512u	/* journal records taken at once */
#define FEW_PIECES	16u	/* that use up the end of a shelf */

struct piece {			/* blocks that lie together, before and after */
	struct tr_move *move;
	u64 index;		/* where they go; n blocks */
	u32 offset;		/* in the shelf */
	u16 i, n;
	bool got;		/* has a place that is not published */
	bool bad;		/* could not be read */
};

struct sweep {
	struct terrace *tr;
	struct tr_tier *tier;
	struct tr_order *order;		/* who asks for it hears what stays; NULL: nobody */
	u32 chunk;
	u32 lo;				/* the window begins here */
	u32 nr_moves, nr_pieces;
	void *data;			/* the window, then its pieces one behind the other */
	u64 *loose;			/* what the map says are loose blocks of the shelf */
	s64 moved;
	struct tr_unread bad;		/* blocks */
	bool busy;			/* somebody else is at work on a region */
	int no_place;			/* why the moves have no shelf */
	struct tr_move move[REGIONS];	/* by number */
	struct piece piece[WINDOW];	/* by offset */
};

/* --- 1: owners ------------------------------------------------------------------ */

static int by_offset(const void *a, const void *b)
{
	const struct tr_owner *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->block == y->block ? 0 : x->block < y->block ? -1 : 1;
}

/* Not locked: nothing is added to a closed shelf, and the map has the last word. */
static bool is_used(const struct tr_chunk *bits, u32 offset)
{
	return READ_ONCE(bits->used[offset / 64]) >> (offset % 64) & 1;
}

/* Leaves the owners of what may still live there; by offset, each once. */
static u32 sift(struct sweep *s, struct tr_owner *owner, u32 nr, const struct tr_chunk *bits)
{
	u64 blocks = tr_nr_regions(s->tr) << TERRACE_REGION_SHIFT;
	u32 k, out = 0;

	for (k = 0; k < nr; k++)
		if (owner[k].block < blocks && owner[k].offset < TERRACE_CHUNK_BLOCKS &&
		    is_used(bits, owner[k].offset))
			owner[out++] = owner[k];
	nr = out;
	sort(owner, nr, sizeof(*owner), by_offset, NULL);
	for (k = out = 0; k < nr; k++)
		if (!out || by_offset(&owner[out - 1], &owner[k]))
			owner[out++] = owner[k];
	return out;
}

/* --- 2: moves ------------------------------------------------------------------- */

/* The move of region @number, or where it belongs among the others. */
static u32 move_at(const struct sweep *s, u64 number)
{
	u32 lo = 0, hi = s->nr_moves, mid;

	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (s->move[mid].number < number)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* false: there are enough. */
static bool add_move(struct sweep *s, u64 number)
{
	u32 at = move_at(s, number);

	if (at < s->nr_moves && s->move[at].number == number)
		return true;
	if (s->nr_moves == REGIONS)
		return false;
	memmove(&s->move[at + 1], &s->move[at], (s->nr_moves - at) * sizeof(s->move[0]));
	s->move[at] = (struct tr_move){
		.number = number, .from = s->tier->number, .to = s->tier->number,
		.who = TR_APPEND_MOVES,
	};
	s->nr_moves++;
	return true;
}

/* The moves for owners from @owner on; for how many of them. */
static u32 add_moves(struct sweep *s, const struct tr_owner *owner, u32 nr)
{
	u32 k;

	s->nr_moves = 0;
	for (k = 0; k < nr && add_move(s, owner[k].block >> TERRACE_REGION_SHIFT); k++)
		;
	return k;
}

static void begin(struct sweep *s)
{
	u32 m;

	tr_reserve_wait(s->tr);		/* while none of them is pinned */
	for (m = 0; m < s->nr_moves; m++) {
		/* Those begun are pinned: without memory the rest is for another time. */
		s->move[m].err = m >= PINNED && tr_reserve_low(s->tr) ? -EBUSY :
				 tr_move_begin(s->tr, &s->move[m]);
		s->busy |= s->move[m].err == -EBUSY;
		if (s->move[m].err != -ENOENT)	/* nothing of the region is anywhere */
			tr_order_leaves(s->order, s->move[m].err);
	}
	tr_epoch_wait(s->tr, BIT(s->tr->nr_tiers) - 1);
}

static void end(struct sweep *s, int err)
{
	struct terrace *tr = s->tr;
	u32 m;

	for (m = 0; m < s->nr_moves; m++) {
		struct tr_move *move = &s->move[m];

		s->moved += move->moved;
		if (s->order)
			s->order->result.raced += move->left_out;
		this_cpu_add(tr->stats->moved, move->moved);
		this_cpu_add(tr->stats->left_out, move->left_out);
		trace_terrace_move(tr_dev(tr), move->number, 0, move->err ?: err, move->moved, 0, 0,
				   move->left_out);
		tr_move_end(tr, move);
	}
}

/* --- 3: what lives -------------------------------------------------------------- */

/* Of the owners from @owner on those in the next window; how many. */
static u32 window(struct sweep *s, const struct tr_owner *owner, u32 nr)
{
	u32 k;

	s->lo = owner[0].offset;
	for (k = 0; k < nr && k < WINDOW && owner[k].offset < s->lo + WINDOW; k++)
		;
	return k;
}

static u64 place_of(const struct sweep *s, u32 offset)
{
	return tr_place(s->tier->number, ((u64)s->chunk << TERRACE_CHUNK_SHIFT) + offset);
}

static void look_up(struct sweep *s, const struct tr_owner *owner, u32 nr)
{
	struct piece *last = NULL;
	unsigned long flags;
	u32 k, i;
	bool here;

	s->nr_pieces = 0;
	for (k = 0; k < nr; k++) {
		struct tr_move *move = &s->move[move_at(s, owner[k].block >> TERRACE_REGION_SHIFT)];

		if (move->err)
			continue;
		i = owner[k].block % TERRACE_REGION_BLOCKS;
		spin_lock_irqsave(&move->region->lock, flags);
		here = tr_leaf_get(&move->region->leaf, i) == place_of(s, owner[k].offset);
		spin_unlock_irqrestore(&move->region->lock, flags);
		cond_resched();
		if (!here)
			continue;
		s->loose[owner[k].offset / 64] |= 1ull << (owner[k].offset % 64);
		if (last && last->move == move && last->i + last->n == i && last->n < GENTLE &&
		    last->offset + last->n == owner[k].offset) {
			last->n++;
			continue;
		}
		last = &s->piece[s->nr_pieces++];
		*last = (struct piece){ .move = move, .offset = owner[k].offset, .i = i, .n = 1 };
	}
}

/* --- 4: reading ----------------------------------------------------------------- */

static void *window_at(const struct sweep *s, u32 offset)
{
	return s->data + (offset - s->lo) * TERRACE_BLOCK_BYTES;
}

static sector_t sector_of(const struct sweep *s, u64 index)
{
	return s->tier->data_sector + index * TERRACE_BLOCK_SECTORS;
}

/* Blocks that a disk passes while it would look for the next one. */
static u32 bridge(const struct tr_tier *tier)
{
	return tier->class == TERRACE_CLASS_HDD ? 64 : 4;
}

static void read_span(struct sweep *s, struct tr_burst *burst, u32 from, u32 to)
{
	tr_burst_rw(burst, s->tier->bdev, sector_of(s, tr_place_index(place_of(s, from))),
		    window_at(s, from), (to - from) * TERRACE_BLOCK_BYTES, REQ_OP_READ);
}

static int read_all(struct sweep *s)
{
	struct tr_burst burst;
	u32 k, from, to;

	tr_burst_begin(&burst);
	for (k = 0; k < s->nr_pieces;) {
		from = s->piece[k].offset;
		to = from + s->piece[k].n;
		while (++k < s->nr_pieces && s->piece[k].offset <= to + bridge(s->tier))
			to = s->piece[k].offset + s->piece[k].n;
		read_span(s, &burst, from, to);
	}
	return tr_burst_wait(&burst);
}

/* Splits piece @k behind its first @n blocks. There are no more pieces than blocks. */
static void split_piece(struct sweep *s, u32 k, u32 n)
{
	struct piece *piece = &s->piece[k];

	memmove(piece + 2, piece + 1, (s->nr_pieces - k - 1) * sizeof(*piece));
	s->nr_pieces++;
	piece[1] = (struct piece){
		.move = piece->move, .offset = piece->offset + n, .i = piece->i + n, .n = piece->n - n,
	};
	piece->n = n;
}

static void note_bad(struct sweep *s, const struct piece *piece)
{
	struct terrace_result *result = s->order ? &s->order->result : NULL;

	tr_unread_note(&s->bad);
	if (!result)
		return;
	if (!result->unreadable++)
		result->bad_block = (piece->move->number << TERRACE_REGION_SHIFT) + piece->i;
}

/* Some of it cannot be read, perhaps only what lies between: what can be moves, to the block. */
static void read_singly(struct sweep *s)
{
	struct tr_burst burst;
	u32 k;

	for (k = 0; k < s->nr_pieces;) {
		struct piece *piece = &s->piece[k];

		piece->bad = tr_gave_up_reading(s->tr, &s->bad);
		if (piece->bad) {
			tr_order_leaves(s->order, -EIO);
		} else {
			tr_burst_begin(&burst);
			read_span(s, &burst, piece->offset, piece->offset + piece->n);
			piece->bad = tr_burst_wait(&burst);
			if (piece->bad && piece->n > 1) {
				split_piece(s, k, 1);
				continue;
			}
			if (piece->bad)
				note_bad(s, piece);
		}
		k++;
	}
}

/* Closes the gaps. */
static void close_up(struct sweep *s)
{
	u32 k, nr = 0, blocks = 0;

	for (k = 0; k < s->nr_pieces; k++) {
		struct piece *piece = &s->piece[k];

		if (piece->bad)
			continue;
		memmove(s->data + blocks * TERRACE_BLOCK_BYTES, window_at(s, piece->offset),
			piece->n * TERRACE_BLOCK_BYTES);
		blocks += piece->n;
		s->piece[nr++] = *piece;
		cond_resched();
	}
	s->nr_pieces = nr;
}

/* --- 5: writing ----------------------------------------------------------------- */

static u32 get_place(struct sweep *s, struct piece *piece)
{
	u32 got = 0, tries;

	for (tries = 0; !got && tries < 2; tries++) {
		got = tr_shelf_get(s->tr, s->tier, TR_APPEND_MOVES, piece->n, &piece->index);
		s->no_place = got ? 0 : tr_shelf_open_for(s->tr, s->tier, TR_APPEND_MOVES);
		if (s->no_place)
			break;
	}
	return got;
}

/*
 * Places for pieces from @k on; the first without. Each that is not published
 * keeps room for an owner block of its own, so a shelf is filled in steps that
 * become shorter towards its end: else that room would be lost.
 */
static u32 get_places(struct sweep *s, u32 k)
{
	u32 from = k, got;

	for (; k < s->nr_pieces; k++) {
		struct piece *piece = &s->piece[k];

		if (k - from >= FEW_PIECES &&
		    tr_shelf_room(s->tier, TR_APPEND_MOVES) < piece->n)
			break;
		got = get_place(s, piece);
		if (!got)
			break;
		if (got < piece->n)
			split_piece(s, k, got);
		piece->got = true;
	}
	return k;
}

/* Pieces @k to @end, whose data begin at *@data; which is then behind them. */
static int write_pieces(struct sweep *s, u32 k, u32 end, void **data)
{
	struct tr_burst burst;
	struct blk_plug plug;
	u32 next, n;
	u64 pad;
	int err;

	tr_burst_begin(&burst);
	blk_start_plug(&plug);		/* a drive with a queue puts them together again */
	for (; k < end; k = next) {
		u64 index = s->piece[k].index;

		for (next = k, n = 0; next < end && n < WRITTEN && s->piece[next].index == index + n;
		     next++)
			n += s->piece[next].n;
		tr_burst_rw(&burst, s->tier->bdev, sector_of(s, index), *data,
			    n * TERRACE_BLOCK_BYTES, REQ_OP_WRITE);
		*data += n * TERRACE_BLOCK_BYTES;
	}
	n = tr_shelf_pad(s->tier, TR_APPEND_MOVES, &pad);	/* a flush comes next */
	if (n)
		tr_burst_rw(&burst, s->tier->bdev, sector_of(s, pad), s->tr->zeros,
			    n * TERRACE_BLOCK_BYTES, REQ_OP_WRITE);
	blk_finish_plug(&plug);
	err = tr_burst_wait(&burst);
	WRITE_ONCE(s->tier->unflushed, true);	/* before the records are published */
	/* It was durable, so it must be so at its new place, even if the drive
	 * should fail its next flushes.
	 */
	return err ?: tr_tier_flush(s->tr, s->tier);
}

/* --- 6: publishing -------------------------------------------------------------- */

static u32 publish_piece(struct sweep *s, struct piece *piece)
{
	struct tr_region *region = piece->move->region;
	unsigned long flags;
	u32 used;

	/* Its tier may have grown since the sweep began, beyond what short places reach. */
	if (s->tr->high_places && !READ_ONCE(region->leaf.high))
		tr_region_grow(s->tr, region, 0, true);
	spin_lock_irqsave(&region->lock, flags);
	used = tr_move_publish__f(s->tr, piece->move, piece->i, piece->n,
				  place_of(s, piece->offset), piece->index);
	spin_unlock_irqrestore(&region->lock, flags);
	piece->got = false;
	cond_resched();
	return used;
}

static int publish(struct sweep *s, u32 k, u32 end)
{
	u32 next, credits, used;
	int err;

	for (; k < end; k = next) {
		for (next = k, credits = 0; next < end && credits + GENTLE <= CREDITS; next++)
			credits += s->piece[next].n;
		err = tr_journal_reserve_wait(s->tr, credits);
		if (err)
			return err;
		for (used = 0; k < next; k++)
			used += publish_piece(s, &s->piece[k]);
		tr_journal_unreserve(s->tr, credits - used);
	}
	return 0;
}

static void give_back(struct sweep *s, u32 k, u32 end)
{
	for (; k < end; k++)
		if (s->piece[k].got)
			tr_shelf_abandoned(s->tr, s->tier, s->piece[k].index, s->piece[k].n, true);
}

static int write_and_publish(struct sweep *s)
{
	void *data = s->data;
	u32 k, end;
	int err;

	for (k = 0; k < s->nr_pieces; k = end) {
		end = get_places(s, k);
		if (end == k)
			return s->no_place ?: -ENOSPC;
		err = write_pieces(s, k, end, &data) ?: publish(s, k, end);
		if (err) {
			give_back(s, k, end);
			return err;
		}
	}
	return 0;
}

/* --- a shelf -------------------------------------------------------------------- */

static bool may_go_on(const struct sweep *s)
{
	return tr_writable(s->tr) && !READ_ONCE(s->tr->stopping) &&
	       !(s->order && tr_order_stops(s->tr, s->order));
}

static int sweep_window(struct sweep *s, const struct tr_owner *owner, u32 nr)
{
	look_up(s, owner, nr);
	if (read_all(s))
		read_singly(s);
	close_up(s);
	return write_and_publish(s);
}

static int sweep_windows(struct sweep *s, const struct tr_owner *owner, u32 nr)
{
	u32 k, n;
	int err = 0;

	begin(s);
	for (k = 0; k < nr && !err && may_go_on(s); k += n) {
		n = window(s, &owner[k], nr - k);
		err = sweep_window(s, &owner[k], n);
	}
	end(s, err);
	return err;
}

static int sweep_all(struct sweep *s, struct tr_owner *owner)
{
	struct tr_chunk *bits = tr_chunk_get(s->tr, s->tier, s->chunk);
	int err = 0, named;
	u32 k, n, nr = 0;
	bool bad = false;

	if (IS_ERR(bits))
		return PTR_ERR(bits);
	named = tr_shelf_owners(s->tr, s->tier, s->chunk, owner, &bad);
	if (named > 0)
		nr = sift(s, owner, named, bits);
	tr_chunk_put(bits);
	if (s->order)
		s->order->unsure = bad;
	if (named < 0)
		return named;
	for (k = 0; k < nr && !err && may_go_on(s); k += n) {
		n = add_moves(s, &owner[k], nr - k);
		err = sweep_windows(s, &owner[k], n);
	}
	return err;
}

s64 tr_sweep_shelf(struct terrace *tr, struct tr_tier *tier, u32 chunk, u64 *loose,
		   struct tr_order *order)
{
	struct sweep *s = kvzalloc(sizeof(*s), GFP_NOIO);
	struct tr_owner *owner = kvmalloc_array(TERRACE_CHUNK_BLOCKS, sizeof(*owner), GFP_NOIO);
	s64 moved = -ENOMEM;
	int err;

	if (s)
		s->data = kvmalloc(WINDOW * TERRACE_BLOCK_BYTES, GFP_NOIO);
	if (s && owner && s->data) {
		s->tr = tr;
		s->tier = tier;
		s->chunk = chunk;
		s->loose = loose;
		s->order = order;
		err = sweep_all(s, owner);
		if (!err && s->busy)
			err = -EBUSY;
		moved = s->moved ?: err;
	} else {
		err = -ENOMEM;
	}
	if (err != -EIO || !order || !order->unsure)
		tr_order_leaves(order, err);
	if (s)
		kvfree(s->data);
	kvfree(s);
	kvfree(owner);
	return moved;
}
