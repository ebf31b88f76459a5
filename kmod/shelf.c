// SPDX-License-Identifier: GPL-2.0
/*
 * The append stream of a shelves tier.
 *
 * Blocks are given out in ascending order within an open shelf, so that the
 * drive sees one sequential stream. Once published they are named in owner
 * blocks, which stand in the stream themselves:
 *
 *   | d d d d d d O d d d O d … d O | free … | owner table (33 blocks) |
 *
 * Crash argument: a commit first writes the owner blocks of everything
 * published when it began, then flushes the tier, then writes the journal. So a
 * durable record implies a durable owner block, and a shelf can be read back
 * without the fast tier. An owner block names only writes that have ended
 * well: it never calls a block's data something that is not there.
 *
 *   - Record r of block b is sealed in round R. b was published before r was
 *     appended, r was appended before R sealed it (journal.lock), and R looks
 *     at what is due after that (tier->lock): b is due in R or was named before.
 *   - What is published later has its record in a later round, and is named by
 *     that. R does not wait for it: under a stream there would be no end.
 *   - Power fails after R named b and before r is durable: an owner block too
 *     many. They are hints; a block that the map does not confirm counts for
 *     nothing, and repair takes the newest by record number.
 *
 * Every allocation leaves room behind it for the owner blocks it may need.
 *
 * A drive that maps in units of several blocks (tier->unit) gathers a stream
 * in its buffer, until a flush has it program what it has: going on within
 * that unit later would have it read and program the unit once more. So what
 * is appended before a flush ends at a border: owner blocks have zeros behind
 * them, packs and runs of moves likewise. Nothing maps those blocks and no
 * bitmap knows them, as with owner blocks: they are free with their shelf.
 * Documentation/decisions/0012-shelf-units.md says when not.
 *
 * A full shelf waits for its writes, gets its owners and its table written
 * and is then forgotten. Over a stop or a crash an open shelf is given up; only
 * when cleaning has nowhere to write is one opened again (reopen.c).
 */
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "shelf.h"

#define OPEN_TRIES	3	/* shelves, one after the other */
#define COMMITS		128u	/* while one shelf is cleaned */
#define PATIENCE_SECONDS 60	/* with shelves that cannot be opened */

/* At worst a commit falls between any two publications, and each of them names
 * its few blocks in an owner block of its own; so do what is due to the commit that is
 * under way, and what was published since it began. @more blocks are to come.
 */
static u32 owners_to_come__f(const struct tr_shelf *shelf, u32 more)
{
	return shelf->gets + 2 + tr_shelf_owner_blocks(shelf->unpublished + shelf->nr_unnamed + more);
}

/* Data blocks the shelf can still take, owner blocks for all of them left out. */
static u32 shelf_room__f(const struct tr_tier *tier, const struct tr_shelf *shelf)
{
	u32 room = tr_shelf_end(tier) - shelf->next;
	u32 owners = owners_to_come__f(shelf, room);

	return room > owners ? room - owners : 0;
}

/* --- units ---------------------------------------------------------------------- */

/* While writers still get shelves; later all room is for what is to be kept. */
u32 tr_shelf_unit(const struct tr_tier *tier)
{
	return tier->unit > 1 && tr_shelf_may_open(tier, TR_APPEND_WRITES) ? tier->unit : 1;
}

u32 tr_shelf_skip__f(struct tr_tier *tier, struct tr_shelf *shelf)
{
	u32 next = round_up(shelf->next, tr_shelf_unit(tier)), n = next - shelf->next;

	lockdep_assert_held(&tier->lock);
	if (next + owners_to_come__f(shelf, 0) > tr_shelf_end(tier))
		return 0;
	shelf->next = next;
	tier->padding += n;
	return n;
}

u32 tr_shelf_pad(struct tr_tier *tier, enum tr_appender who, u64 *index)
{
	struct tr_shelf *shelf;
	unsigned long flags;
	u32 n = 0;

	spin_lock_irqsave(&tier->lock, flags);
	shelf = tier->shelf[who];
	if (shelf) {
		*index = ((u64)shelf->chunk->number << TERRACE_CHUNK_SHIFT) + shelf->next;
		n = tr_shelf_skip__f(tier, shelf);
	}
	spin_unlock_irqrestore(&tier->lock, flags);
	return n;
}

void tr_shelf_padded(struct tr_tier *tier, u32 n)
{
	unsigned long flags;

	spin_lock_irqsave(&tier->lock, flags);
	tier->padding += n;
	spin_unlock_irqrestore(&tier->lock, flags);
}

/* --- giving out ----------------------------------------------------------------- */

bool tr_shelf_is_open__f(struct tr_tier *tier, u32 number)
{
	struct tr_shelf *shelf;
	u32 who;

	lockdep_assert_held(&tier->lock);
	for (who = 0; who < TR_NR_APPENDERS; who++) {
		if (tier->shelf[who] && tier->shelf[who]->chunk->number == number)
			return true;
		if (tier->next_shelf[who] && tier->next_shelf[who]->chunk->number == number)
			return true;
	}
	list_for_each_entry(shelf, &tier->full_shelves, list)
		if (shelf->chunk->number == number)
			return true;
	return false;
}

u32 tr_shelf_left(const struct tr_tier *tier, const struct tr_shelf *shelf)
{
	return shelf_room__f(tier, shelf);
}

static struct tr_shelf *shelf_of__f(struct tr_tier *tier, u64 index)
{
	u32 number = index >> TERRACE_CHUNK_SHIFT;
	struct tr_shelf *shelf;
	u32 who;

	for (who = 0; who < TR_NR_APPENDERS; who++)
		if (tier->shelf[who] && tier->shelf[who]->chunk->number == number)
			return tier->shelf[who];
	list_for_each_entry(shelf, &tier->full_shelves, list)
		if (shelf->chunk->number == number)
			return shelf;
	return NULL;
}

/* The open shelf is full: the next one takes its place. */
static void shelf_advance__f(struct tr_tier *tier, enum tr_appender who)
{
	list_add_tail(&tier->shelf[who]->list, &tier->full_shelves);
	tier->shelf[who] = tier->next_shelf[who];
	tier->next_shelf[who] = NULL;
}

u32 tr_shelf_get(struct terrace *tr, struct tr_tier *tier, enum tr_appender who, u32 n,
		 u64 *index)
{
	struct tr_shelf *shelf;
	bool refill = false;
	unsigned long flags;
	u32 room, i;

	spin_lock_irqsave(&tier->lock, flags);
	if (tier->shelf[who] && !shelf_room__f(tier, tier->shelf[who]))
		shelf_advance__f(tier, who);
	shelf = tier->shelf[who];
	room = shelf ? shelf_room__f(tier, shelf) : 0;
	n = min(n, room);
	if (n) {
		*index = ((u64)shelf->chunk->number << TERRACE_CHUNK_SHIFT) + shelf->next;
		for (i = shelf->next; i < shelf->next + n; i++)
			shelf->chunk->used[i / 64] |= 1ull << (i % 64);
		tier->chunks[shelf->chunk->number].used += n;
		tier->free_blocks -= n;
		shelf->next += n;
		shelf->unpublished += n;
		shelf->gets++;
	}
	refill = !shelf || !tier->next_shelf[who] || !list_empty(&tier->full_shelves);
	spin_unlock_irqrestore(&tier->lock, flags);
	if (refill)
		queue_work(tr->room_wq, &tr->refill_work);
	return n;
}

u32 tr_shelf_room(struct tr_tier *tier, enum tr_appender who)
{
	unsigned long flags;
	u32 room = 0;

	spin_lock_irqsave(&tier->lock, flags);
	if (tier->shelf[who])
		room = shelf_room__f(tier, tier->shelf[who]);
	spin_unlock_irqrestore(&tier->lock, flags);
	return room;
}

bool tr_shelf_spares(struct tr_tier *tier, u32 n)
{
	u32 keep = tier->reserve_blocks / TERRACE_CHUNK_BLOCKS;

	return READ_ONCE(tier->free_shelves) >= keep + (tr_shelf_room(tier, TR_APPEND_MOVES) < n);
}

bool tr_shelf_fits(u32 room, u32 n, u32 packed)
{
	/* A pack that does not fit what is left of a shelf goes to the next one whole. */
	u32 slack = clamp_t(u32, packed, min(n, COMMITS), TERRACE_REGION_BLOCKS);

	return room >= n + n / TERRACE_OWNERS_PER_BLOCK + 1 + slack;
}

bool tr_shelf_takes(struct tr_tier *tier, u32 n)
{
	return READ_ONCE(tier->free_shelves) ||
	       tr_shelf_fits(tr_shelf_room(tier, TR_APPEND_MOVES), n, n);
}

u32 tr_shelf_get_run(struct terrace *tr, struct tr_tier *tier, u32 n, u64 *index)
{
	struct tr_shelf *shelf;
	unsigned long flags;
	bool short_of;
	u64 skipped;
	u32 got;

	/* Loose blocks that were swept, and are not named yet, may stand before it. */
	tr_shelf_pad(tier, TR_APPEND_MOVES, &skipped);
	/* What is left of this shelf is too short: its owners, and cleaning. With none to follow it
	 * stays: nothing could be cleaned without it.
	 */
	spin_lock_irqsave(&tier->lock, flags);
	shelf = tier->shelf[TR_APPEND_MOVES];
	short_of = shelf && shelf_room__f(tier, shelf) < n;
	if (short_of && tier->free_shelves)
		shelf_advance__f(tier, TR_APPEND_MOVES);
	else if (short_of)
		n = 0;
	spin_unlock_irqrestore(&tier->lock, flags);
	if (!n)
		return 0;
	got = tr_shelf_get(tr, tier, TR_APPEND_MOVES, n, index);
	if (got && got < n)
		tr_shelf_abandoned(tr, tier, *index, got, true);
	return got == n ? n : 0;
}

/* A run that says itself what it is: no owner block names it. */
void tr_shelf_sealed(struct tr_tier *tier, u64 index, u32 n)
{
	struct tr_shelf *shelf;
	unsigned long flags;

	spin_lock_irqsave(&tier->lock, flags);
	shelf = shelf_of__f(tier, index);
	if (!WARN_ON_ONCE(!shelf)) {
		shelf->unpublished -= n;
		shelf->gets--;
	}
	spin_unlock_irqrestore(&tier->lock, flags);
}

void tr_shelf_published(struct terrace *tr, struct tr_tier *tier, u64 index, u64 block, u32 n,
			bool last)
{
	struct tr_shelf *shelf;
	unsigned long flags;
	u32 i, offset = index % TERRACE_CHUNK_BLOCKS;

	spin_lock_irqsave(&tier->lock, flags);
	shelf = shelf_of__f(tier, index);
	if (!WARN_ON_ONCE(!shelf)) {
		for (i = 0; i < n; i++) {
			shelf->owner[offset + i] = block + i;
			shelf->unnamed[shelf->nr_unnamed++] = offset + i;
		}
		shelf->unpublished -= n;
		shelf->gets -= last;
	}
	spin_unlock_irqrestore(&tier->lock, flags);
}

void tr_shelf_abandoned(struct terrace *tr, struct tr_tier *tier, u64 index, u32 n, bool last)
{
	struct tr_shelf *shelf;
	unsigned long flags;
	bool full;

	spin_lock_irqsave(&tier->lock, flags);
	shelf = shelf_of__f(tier, index);
	if (shelf) {
		shelf->unpublished -= n;
		shelf->gets -= last;
	}
	full = !list_empty(&tier->full_shelves);
	spin_unlock_irqrestore(&tier->lock, flags);
	tr_space_put(tr, tier, index, n);
	if (full)
		queue_work(tr->room_wq, &tr->refill_work);	/* no commit need come that has it closed */
}

/* --- opening and closing ---------------------------------------------------------- */

/*
 * The table of the chunk's earlier life must not be taken for this one's: it
 * is spoilt, durably, before the first block of the new life is written. In its place stands
 * an owner block that names nothing but the new life: a shelf whose table begins so
 * was never closed, and can be opened again (reopen.c). Not a word of it is needed.
 *
 *   - Were it only written: blocks of the new life come after it, the drive has its
 *     cache to itself, power fails. The blocks are there and the old table is whole:
 *     who reads the shelf back without metadata takes them for what it names.
 *   - So it is FUA, and a shelf where it fails is not opened.
 */
static int begin_life(struct terrace *tr, struct tr_tier *tier, struct tr_shelf *shelf)
{
	u32 before = SHELF_DATA - tr_shelf_end(tier);
	u32 n = round_up(SHELF_DATA + 1, tier->unit) - tr_shelf_end(tier);
	struct tr_owners head = {
		.record_seq = READ_ONCE(tr->journal.durable_record), .shelf_id = shelf->id,
		.prev_offset = SHELF_NO_OFFSET,
		.place = tr_place(tier->number, ((u64)shelf->chunk->number << TERRACE_CHUNK_SHIFT) +
				  SHELF_DATA),
	};
	void *buf = kvzalloc(n * TERRACE_BLOCK_BYTES, TR_GFP_MAY);
	int err;

	if (buf)
		tr_owners_encode(buf + before * TERRACE_BLOCK_BYTES, &head, NULL,
				 tr->super.volume_uuid);
	/* a unit that holds its first block */
	err = tr_rw(tier->bdev, tr_shelf_sector(tier, shelf->chunk->number, tr_shelf_end(tier)),
		    buf ?: tr->zeros, n * TERRACE_BLOCK_BYTES, REQ_OP_WRITE | REQ_FUA);
	kvfree(buf);

	WRITE_ONCE(tier->unflushed, true);
	if (err)
		DMWARN_LIMIT("%s: old owner table of shelf %u on tier %u not erased (%d), not opened for now",
			     tr->name, shelf->chunk->number, tier->number, err);
	return err;
}

/* Counts as no free shelf until tr_shelves_put_back(): the next one is tried. */
static void set_aside(struct terrace *tr, struct tr_tier *tier, u32 number)
{
	spin_lock_irq(&tier->lock);
	tier->chunks[number].flags |= TR_CHUNK_ASIDE;
	tier->free_shelves--;
	tier->aside++;
	/* A refusal of long ago says nothing of the drive as it is now. */
	if (!tier->aside_since || time_after(jiffies, tier->aside_last + PATIENCE_SECONDS * HZ))
		tier->aside_since = jiffies ?: 1;
	tier->aside_last = jiffies;
	spin_unlock_irq(&tier->lock);
	if (!READ_ONCE(tr->stopping))
		queue_delayed_work(tr->room_wq, &tr->aside_work, HZ);
}

void tr_shelves_put_back(struct terrace *tr)
{
	u32 t, c;

	for (t = 0; t < tr->nr_tiers; t++) {
		struct tr_tier *tier = &tr->tier[t];

		for (c = 0; READ_ONCE(tier->aside) && c < tier->nr_chunks; c++) {
			spin_lock_irq(&tier->lock);
			if (tier->chunks[c].flags & TR_CHUNK_ASIDE) {
				tier->chunks[c].flags &= ~TR_CHUNK_ASIDE;
				tier->free_shelves++;
				tier->aside--;
				WRITE_ONCE(tier->releases, tier->releases + 1);
			}
			spin_unlock_irq(&tier->lock);
			cond_resched();
		}
	}
}

/* Soon, for a drive that refused everything for a moment had all of them set aside. */
void tr_shelves_aside_fn(struct work_struct *work)
{
	struct terrace *tr = container_of(to_delayed_work(work), struct terrace, aside_work);

	if (READ_ONCE(tr->stopping))
		return;
	tr_shelves_put_back(tr);
	queue_work(tr->room_wq, &tr->refill_work);
}

struct tr_shelf *tr_shelf_create(struct terrace *tr, struct tr_chunk *chunk)
{
	struct tr_shelf *shelf = kvmalloc(sizeof(*shelf), TR_GFP_MAY);

	/* Not waiting: they come back when shelves are closed, by this very worker,
	 * which then goes on to open the next.
	 */
	if (!shelf)
		shelf = mempool_alloc(&tr->reserve.shelf, GFP_NOWAIT | __GFP_NOWARN);
	if (!shelf) {
		tr_chunk_put(chunk);
		return NULL;
	}
	memset(shelf, 0, offsetof(struct tr_shelf, unnamed));
	memset(shelf->owner, 0xff, sizeof(shelf->owner));
	shelf->chunk = chunk;
	shelf->id = get_random_u64();
	shelf->prev_owner = SHELF_NO_OFFSET;
	atomic64_add(sizeof(*shelf), &tr->memory);
	return shelf;
}

void tr_shelf_destroy(struct terrace *tr, struct tr_shelf *shelf)
{
	if (!shelf)
		return;
	atomic64_sub(sizeof(*shelf), &tr->memory);
	tr_chunk_put(shelf->chunk);
	mempool_free(shelf, &tr->reserve.shelf);
}

static struct tr_shelf *shelf_open(struct terrace *tr, struct tr_tier *tier)
{
	struct tr_chunk *chunk = tr_space_take_shelf(tr, tier);
	struct tr_shelf *shelf;

	if (IS_ERR_OR_NULL(chunk))
		return chunk ? ERR_CAST(chunk) : ERR_PTR(-ENOSPC);
	shelf = tr_shelf_create(tr, chunk);
	if (!shelf)
		return ERR_PTR(-ENOMEM);
	if (begin_life(tr, tier, shelf)) {
		set_aside(tr, tier, shelf->chunk->number);
		tr_shelf_destroy(tr, shelf);
		return ERR_PTR(-ENOSPC);	/* it is none that is free, for now */
	}
	spin_lock_irq(&tier->lock);
	tier->aside_since = tier->aside ? jiffies ?: 1 : 0;	/* the others are tried again in a moment */
	spin_unlock_irq(&tier->lock);
	return shelf;
}

/* Writes the owner table. A table that could not be written costs only speed. */
static void shelf_write_table(struct terrace *tr, struct tr_tier *tier, struct tr_shelf *shelf)
{
	struct tr_table head = {
		.record_seq = READ_ONCE(tr->journal.durable_record),
		.shelf_id = shelf->id,
	};
	u32 k, first, before = SHELF_DATA - tr_shelf_end(tier);	/* zeros */
	u32 bytes = (before + TERRACE_TABLE_BLOCKS) * TERRACE_BLOCK_BYTES;
	void *buf = tr->table_blocks, *table = buf + before * TERRACE_BLOCK_BYTES;
	int err;

	memset(buf, 0, before * TERRACE_BLOCK_BYTES);
	for (k = 0; k < TERRACE_TABLE_BLOCKS; k++) {
		first = k * TERRACE_TABLE_OWNERS;
		head.first_offset = first;
		head.nr = first < SHELF_DATA ?
			  min_t(u32, TERRACE_TABLE_OWNERS, SHELF_DATA - first) : 0;
		head.place = tr_place(tier->number,
				      ((u64)shelf->chunk->number << TERRACE_CHUNK_SHIFT) +
				      SHELF_DATA + k);
		tr_table_encode(table + k * TERRACE_BLOCK_BYTES, &head, &shelf->owner[first],
				tr->super.volume_uuid);
	}
	err = tr_rw(tier->bdev, tr_shelf_sector(tier, shelf->chunk->number, tr_shelf_end(tier)), buf, bytes,
		    REQ_OP_WRITE);
	tr_shelf_padded(tier, before);
	WRITE_ONCE(tier->unflushed, true);
	if (err)
		DMWARN_LIMIT("%s: owner table of shelf %u on tier %u not written (%d)",
			     tr->name, shelf->chunk->number, tier->number, err);
}

static void close_full_shelves(struct terrace *tr, struct tr_tier *tier)
{
	struct tr_shelf *shelf, *ready;

	do {
		ready = NULL;
		spin_lock_irq(&tier->lock);
		list_for_each_entry(shelf, &tier->full_shelves, list) {
			if (shelf->unpublished || shelf->nr_unnamed || shelf->naming)
				continue;
			ready = shelf;
			break;
		}
		spin_unlock_irq(&tier->lock);
		if (!ready)
			break;
		shelf_write_table(tr, tier, ready);
		spin_lock_irq(&tier->lock);
		list_del(&ready->list);
		WRITE_ONCE(tier->releases, tier->releases + 1);	/* it can be cleaned */
		if (!tier->chunks[ready->chunk->number].used)
			tier->free_shelves++;
		tier->chunks[ready->chunk->number].flags |= TR_CHUNK_STALE;	/* owners, table */
		tier->chunks[ready->chunk->number].filled = ready->next;
		spin_unlock_irq(&tier->lock);
		tr_shelf_destroy(tr, ready);
	} while (1);
}

/* For so long that nobody waits for it any more: what is free there is no room. */
bool tr_shelves_refused(const struct tr_tier *tier)
{
	unsigned long since = READ_ONCE(tier->aside_since);

	return since && time_after(jiffies, since + PATIENCE_SECONDS * HZ) &&
	       time_before(jiffies, READ_ONCE(tier->aside_last) + PATIENCE_SECONDS * HZ);
}

/*
 * What has died on a full shelf can be had when it is closed. That waits for its writes, and for
 * the next commit, which names them whatever the drive says. And what could not be opened is tried
 * anew; but a shelf whose table can never be written must not keep writers waiting for ever.
 */
bool tr_shelves_to_come(struct terrace *tr)
{
	bool coming = false;
	u32 t;

	for (t = 0; t < tr->nr_tiers && !coming; t++) {
		struct tr_tier *tier = &tr->tier[t];

		/* Locked: who sees that it is closed sees that the janitor has not looked at it. */
		spin_lock_irq(&tier->lock);
		coming = !list_empty(&tier->full_shelves) ||
			  (tier->aside && !tr_shelves_refused(tier));
		spin_unlock_irq(&tier->lock);
	}
	return coming;
}

/*
 * Free shelves that writers leave to moves: enough that one shelf can be
 * cleaned into them. What the moves' open shelf still takes counts as one,
 * or on a small tier it would be lost to everybody while nothing moves.
 */
u32 tr_shelves_kept(const struct tr_tier *tier)
{
	u32 keep = tier->reserve_blocks / TERRACE_CHUNK_BLOCKS;

	return keep > 1 && READ_ONCE(tier->shelf[TR_APPEND_MOVES]) ? keep - 1 : keep;
}

bool tr_shelf_may_open(const struct tr_tier *tier, enum tr_appender who)
{
	return READ_ONCE(tier->free_shelves) > (who == TR_APPEND_WRITES ? tr_shelves_kept(tier) : 0);
}

/* Opens a shelf for @who, and one ahead for writers, while there may be more. 0: did so. */
static int open_one(struct terrace *tr, struct tr_tier *tier, enum tr_appender who)
{
	struct tr_shelf *shelf = ERR_PTR(-ENOSPC);
	u32 tries;
	bool want;

	spin_lock_irq(&tier->lock);
	want = !tier->shelf[who] || (who == TR_APPEND_WRITES && !tier->next_shelf[who]);
	spin_unlock_irq(&tier->lock);
	for (tries = 0; want && IS_ERR(shelf) && tries < OPEN_TRIES && tr_shelf_may_open(tier, who); tries++)
		shelf = shelf_open(tr, tier);
	if (IS_ERR(shelf))
		return PTR_ERR(shelf);
	spin_lock_irq(&tier->lock);
	tier->free_shelves--;
	if (!tier->shelf[who])
		tier->shelf[who] = shelf;
	else
		tier->next_shelf[who] = shelf;
	spin_unlock_irq(&tier->lock);
	return 0;
}

void tr_shelf_refill(struct terrace *tr, struct tr_tier *tier)
{
	mutex_lock(&tier->open_mutex);
	close_full_shelves(tr, tier);
	while (!open_one(tr, tier, TR_APPEND_WRITES))
		;
	mutex_unlock(&tier->open_mutex);
	if (!list_empty(&tier->full_shelves))
		tr_commit_kick(tr);		/* it writes their owner blocks */
}

int tr_shelf_open_for(struct terrace *tr, struct tr_tier *tier, enum tr_appender who)
{
	int err = 0;

	mutex_lock(&tier->open_mutex);
	if (!READ_ONCE(tier->shelf[who]))
		err = open_one(tr, tier, who);
	if (READ_ONCE(tier->shelf[who]))
		err = 0;
	mutex_unlock(&tier->open_mutex);
	return err;
}

/* --- set-up ------------------------------------------------------------------------- */

static void *alloc_shelf(gfp_t gfp, void *unused)
{
	return kvmalloc(sizeof(struct tr_shelf), gfp);
}

static void free_shelf(void *shelf, void *unused)
{
	kvfree(shelf);
}

/* One for each tier beside those that are open: when one is full and its owner
 * blocks are not yet written, the next can be opened.
 */
int tr_shelves_init(struct terrace *tr)
{
	u32 nr = 0, t;

	for (t = 0; t < tr->nr_tiers; t++)
		nr += tr->tier[t].kind == TERRACE_KIND_SHELVES;
	return nr ? mempool_init(&tr->reserve.shelf, nr, alloc_shelf, free_shelf, NULL) : 0;
}

void tr_shelves_exit(struct tr_tier *tier)
{
	struct tr_shelf *shelf, *next;
	u32 who;

	for (who = 0; who < TR_NR_APPENDERS; who++) {
		kvfree(tier->shelf[who]);
		kvfree(tier->next_shelf[who]);
	}
	if (tier->full_shelves.next)
		list_for_each_entry_safe(shelf, next, &tier->full_shelves, list)
			kvfree(shelf);
}
