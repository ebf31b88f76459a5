// SPDX-License-Identifier: GPL-2.0
/*
 * Opening a shelf again. A stop or a crash gives up the open shelves with what was
 * still free in them. Cleaning leaves a shelf or two for itself, but some crashes in
 * a row, each while it was writing into one, use them up; then no shelf could be
 * emptied any more, since that needs a place to write to, and writers stood still
 * although blocks die. So when cleaning finds neither an open nor a free shelf, it goes
 * on behind what lives on one that was given up.
 *
 * Which one was? In place of its owner table it has an owner block without owners, with the
 * id of its life, written before the first record of that life was durable.
 *
 * Where is its end? Behind the last block that its bitmap has, which follows the
 * durable records, and behind the last owner block of this life that names such a
 * block. What comes after those is part of nothing: it was written, but its records were
 * lost with the crash. So what the interrupted cleaning had copied in vain costs no room, and
 * the rest of the shelf that it was emptying fits once more.
 *
 * Crash argument for the owner blocks in that part. One of them, O, says "P holds B".
 *   - a new block C gets place P, and its record, and an owner block, are durable
 *   - the fast drive is lost; the shelves are read back
 *   - O still stands behind P, of the same life: P might be read as B
 * Therefore they are erased, and the drive is flushed, before anything is appended. A crash in
 * between leaves fewer of them. Packs in that part say what they are by checksums of
 * header and bytes, as those of earlier lives do.
 *
 * Runs in workers, under clean_mutex and open_mutex. Reads the shelf whole.
 * See Documentation/decisions/0018-shelves-opened-again.md.
 */
#include <linux/blkdev.h>
#include <linux/slab.h>

#include "sense.h"
#include "shelf.h"

#define PIECE_BLOCKS	32u

struct survey {
	u64 id;				/* of its life */
	u64 used[TR_CHUNK_WORDS];	/* what lives on it */
	u64 owners[TR_CHUNK_WORDS];	/* owner blocks of this life */
	u32 next;			/* behind what is to stay */
	u32 prev_owner;
	void *buf;			/* PIECE_BLOCKS */
};

static bool bit(const u64 *words, u32 i)
{
	return words[i / 64] >> (i % 64) & 1;
}

static int read_piece(struct tr_tier *tier, u32 chunk, u32 at, u32 n, void *buf)
{
	return tr_rw(tier->bdev, tr_shelf_sector(tier, chunk, at), buf, n * TERRACE_BLOCK_BYTES,
		     REQ_OP_READ);
}

static u64 place_of(const struct tr_tier *tier, u32 chunk, u32 at)
{
	return tr_place(tier->number, ((u64)chunk << TERRACE_CHUNK_SHIFT) + at);
}

/* Was it given up while it was open? */
static bool given_up(struct terrace *tr, struct tr_tier *tier, u32 chunk, struct survey *s)
{
	struct tr_owners head;

	if (read_piece(tier, chunk, SHELF_DATA, 1, s->buf) ||
	    tr_owners_decode(s->buf, &head, place_of(tier, chunk, SHELF_DATA),
			     tr->super.volume_uuid) || head.nr)
		return false;
	s->id = head.shelf_id;
	return true;
}

/* An owner block at @at: its blocks that are still there go into @shelf. */
static void take_owners(struct survey *s, struct tr_shelf *shelf, const void *block,
			const struct tr_owners *head, u32 at)
{
	struct tr_owner owner;
	u32 k;

	s->owners[at / 64] |= 1ull << (at % 64);
	for (k = 0; k < head->nr; k++) {
		tr_owners_get(block, k, &owner);
		if (owner.block == TERRACE_NO_OWNER || !bit(s->used, owner.offset))
			continue;
		shelf->owner[owner.offset] = owner.block;
		s->next = max(s->next, at + 1);
		s->prev_owner = at;
	}
}

static int survey(struct terrace *tr, struct tr_tier *tier, struct survey *s,
		  struct tr_shelf *shelf)
{
	u32 chunk = shelf->chunk->number, at, k, n;
	struct tr_owners head;
	int err;

	spin_lock_irq(&tier->lock);
	memcpy(s->used, shelf->chunk->used, sizeof(s->used));
	spin_unlock_irq(&tier->lock);
	memset(s->owners, 0, sizeof(s->owners));
	s->next = 0;
	s->prev_owner = SHELF_NO_OFFSET;
	for (at = 0; at < SHELF_DATA; at++)
		if (bit(s->used, at))
			s->next = at + 1;
	for (at = 0; at < SHELF_DATA; at += n) {
		n = min(PIECE_BLOCKS, SHELF_DATA - at);
		err = read_piece(tier, chunk, at, n, s->buf);
		if (err)
			return err;	/* what stands there is not known */
		for (k = 0; k < n; k++) {
			const void *block = s->buf + k * TERRACE_BLOCK_BYTES;

			if (!tr_owners_decode(block, &head, place_of(tier, chunk, at + k),
					      tr->super.volume_uuid) && head.shelf_id == s->id)
				take_owners(s, shelf, block, &head, at + k);
		}
		cond_resched();
	}
	s->next = round_up(s->next, tier->unit);
	return 0;
}

/* Those that name nothing that is to stay, and might be followed by other blocks. */
static int erase_owners(struct terrace *tr, struct tr_tier *tier, const struct survey *s, u32 chunk)
{
	int err = 0;
	u32 at;

	for (at = s->next; at < SHELF_DATA && !err; at++)
		if (bit(s->owners, at))
			err = tr_rw(tier->bdev, tr_shelf_sector(tier, chunk, at), tr->zeros,
				    TERRACE_BLOCK_BYTES, REQ_OP_WRITE);
	return err ?: tr_tier_flush(tr, tier);
}

/* Blocks on the closed shelf, other than @except, with the fewest alive. */
static u32 least_alive(struct tr_tier *tier, u32 except)
{
	u32 c, alive, least = TERRACE_CHUNK_BLOCKS;

	spin_lock_irq(&tier->lock);
	for (c = 0; c < tier->nr_chunks; c++) {
		alive = tr_chunk_alive(&tier->chunks[c]);
		if (c != except && tier->chunks[c].used && alive < least &&
		    !tr_shelf_is_open__f(tier, c))
			least = alive;
	}
	spin_unlock_irq(&tier->lock);
	return least;
}

/* It is the moves' open shelf from now on, unless the last of it has gone: then it is free. */
static bool install(struct tr_tier *tier, struct tr_shelf *shelf)
{
	bool used;

	spin_lock_irq(&tier->lock);
	used = tier->chunks[shelf->chunk->number].used;
	if (used)
		tier->shelf[TR_APPEND_MOVES] = shelf;
	spin_unlock_irq(&tier->lock);
	return used;
}

/* 0, or why @chunk is not reopened. */
static int reopen(struct terrace *tr, struct tr_tier *tier, u32 number, struct survey *s)
{
	struct tr_chunk *chunk = tr_chunk_get(tr, tier, number);
	struct tr_shelf *shelf;
	u32 least = least_alive(tier, number);
	int err;

	if (IS_ERR(chunk))
		return PTR_ERR(chunk);
	shelf = tr_shelf_create(tr, chunk);
	if (!shelf)
		return -ENOMEM;
	err = survey(tr, tier, s, shelf);
	shelf->id = s->id;
	shelf->next = s->next;
	shelf->prev_owner = s->prev_owner;
	if (!err && (s->next >= tr_shelf_end(tier) ||
		     !tr_shelf_fits(tr_shelf_left(tier, shelf), least, least)))
		err = -ENOSPC;
	if (!err)
		err = erase_owners(tr, tier, s, number);
	if (!err && !install(tier, shelf))
		err = -EAGAIN;
	if (err)
		tr_shelf_destroy(tr, shelf);
	else
		DMINFO("%s: goes on at block %u of shelf %u on tier %u, none is free", tr->name,
		       s->next, number, tier->number);
	return err;
}

/* A closed shelf behind @from that may have been given up; nr_chunks: none. */
static u32 next_closed(struct tr_tier *tier, u32 from)
{
	const struct tr_chunk_info *info;
	u32 c;

	spin_lock_irq(&tier->lock);
	for (c = from; c < tier->nr_chunks; c++) {
		info = &tier->chunks[c];
		if (info->used && !(info->flags & TR_CHUNK_SHUT) && !tr_shelf_is_open__f(tier, c))
			break;
	}
	spin_unlock_irq(&tier->lock);
	return c;
}

/* Not looked at again before something in it is freed. */
static void shut(struct tr_tier *tier, u32 number)
{
	spin_lock_irq(&tier->lock);
	tier->chunks[number].flags |= TR_CHUNK_SHUT;
	spin_unlock_irq(&tier->lock);
}

static bool wanted(const struct tr_tier *tier)
{
	return !READ_ONCE(tier->free_shelves) && !READ_ONCE(tier->shelf[TR_APPEND_MOVES]);
}

void tr_shelf_reopen(struct terrace *tr, struct tr_tier *tier)
{
	struct survey *s = NULL;
	int err = -ENOENT;
	u32 c;

	mutex_lock(&tier->open_mutex);
	if (wanted(tier))
		s = kvzalloc(sizeof(*s), TR_GFP_MAY);
	if (s)
		s->buf = kvmalloc(PIECE_BLOCKS * TERRACE_BLOCK_BYTES, TR_GFP_MAY);
	for (c = 0; s && s->buf && err && err != -ENOMEM && tr_writable(tr); c++) {
		c = next_closed(tier, c);
		if (c >= tier->nr_chunks)
			break;
		err = given_up(tr, tier, c, s) ? reopen(tr, tier, c, s) : -ENOENT;
		if (err && err != -ENOMEM)
			shut(tier, c);
	}
	mutex_unlock(&tier->open_mutex);
	if (s)
		kvfree(s->buf);
	kvfree(s);
}
