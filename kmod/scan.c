// SPDX-License-Identifier: GPL-2.0
/*
 * Reading superblocks and the journal at activation, per copy: the ring is
 * read in pieces of 256 KiB, the next one while the last is being checked,
 * until the chain of blocks ends. The blocks stay in memory for the replay.
 */
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "meta.h"

/* --- superblocks --------------------------------------------------------- */

int tr_super_read(struct terrace *tr, u32 copy, struct tr_super *super)
{
	struct tr_super *slot = kmalloc(sizeof(*slot), GFP_KERNEL);
	void *block = (void *)__get_free_page(GFP_KERNEL);
	int err = -ENOMEM, found = -ENODATA;
	u32 parity;

	for (parity = 0; slot && block && parity < 2; parity++) {
		err = tr_meta_read(tr, copy, parity, block, 1);
		if (!err)
			err = tr_super_decode(slot, block);
		if (!err && (slot->generation & 1) != parity)
			err = -EUCLEAN;
		if (err) {
			DMWARN("%s: superblock %u of metadata copy %u is not usable (%d)",
			       tr->name, parity, copy, err);
			if (found)
				found = err;
			continue;
		}
		if (found || slot->generation > super->generation)
			*super = *slot;
		found = 0;
	}
	if (!slot || !block)
		found = -ENOMEM;
	free_page((unsigned long)block);
	kfree(slot);
	return found;
}

void tr_super_link(const struct tr_super *super, struct tr_journal_link *link)
{
	link->block_seq = super->tail_block_seq;
	link->record_seq = super->tail_record_seq + 1;
	link->nonce = super->tail_nonce;
	link->crc = super->tail_prev_crc;
}

/* --- the ring ------------------------------------------------------------ */

/* Blocks @first .. of the journal, as far as the ring goes; may wrap once. */
static void transfer(struct terrace *tr, struct tr_meta_io *io, u32 copy, blk_opf_t opf,
		     u64 first, void *buf, u32 nr)
{
	u64 at = first % tr->super.journal_blocks;
	u32 n = min_t(u64, nr, tr->super.journal_blocks - at);

	tr_meta_submit(tr, io, copy, opf, tr->super.journal_start + at, buf, n);
	if (n < nr)
		tr_meta_submit(tr, io, copy, opf, tr->super.journal_start,
			       buf + n * TERRACE_BLOCK_BYTES, nr - n);
}

static u32 piece_blocks(const struct terrace *tr, u32 piece)
{
	u64 done = (u64)piece * TR_PIECE_BLOCKS;

	return min_t(u64, TR_PIECE_BLOCKS, tr->super.journal_blocks - done);
}

/* Sends the read of the next piece, if there is one. */
static int read_ahead(struct terrace *tr, u32 copy, struct tr_scan *scan, struct tr_meta_io *io)
{
	void *buf;

	tr_meta_io_start(io);
	if (scan->nr_pieces == scan->max_pieces)
		return 0;
	buf = kvmalloc(TR_PIECE_BLOCKS * TERRACE_BLOCK_BYTES, GFP_KERNEL);
	if (!buf)
		return -ENOMEM;
	scan->piece[scan->nr_pieces] = buf;
	transfer(tr, io, copy, REQ_OP_READ,
		 tr->super.tail_block_seq + (u64)scan->nr_pieces * TR_PIECE_BLOCKS, buf,
		 piece_blocks(tr, scan->nr_pieces));
	scan->nr_pieces++;
	return 0;
}

/*
 * The block that ended the chain: is it a later lap of the ring? Then the
 * superblock is older than the journal, its tail was overwritten.
 */
static bool lapped(const struct terrace *tr, const struct terrace_journal_disk *disk,
		   const struct tr_journal_link *link)
{
	return le32_to_cpu(disk->magic) == TERRACE_JOURNAL_MAGIC &&
	       !memcmp(disk->volume_uuid, tr->super.volume_uuid, TERRACE_UUID_BYTES) &&
	       le64_to_cpu(disk->block_seq) > link->block_seq &&
	       le32_to_cpu(disk->crc) == tr_block_crc(disk, TERRACE_BLOCK_BYTES,
						      offsetof(struct terrace_journal_disk, crc));
}

/* A piece that cannot be read as one. Its blocks that cannot, as bits; they are zeros. */
static u64 read_singly(struct terrace *tr, u32 copy, struct tr_scan *scan, u32 piece)
{
	u64 first = tr->super.tail_block_seq + (u64)piece * TR_PIECE_BLOCKS, bad = 0;
	u32 i;

	for (i = 0; i < piece_blocks(tr, piece); i++) {
		void *block = scan->piece[piece] + i * TERRACE_BLOCK_BYTES;

		if (!tr_meta_read(tr, copy, tr_ring_block(tr, first + i), block, 1))
			continue;
		memset(block, 0, TERRACE_BLOCK_BYTES);
		bad |= 1ull << i;
	}
	return bad;
}

/*
 * Behind the end of the chain a block may be as it likes. One that cannot be read may
 * hold what was acknowledged: then the journal has an end for readers only.
 */
static int end_at(struct terrace *tr, u32 copy, const struct tr_scan *scan, bool unread)
{
	if (!unread)
		return 1;
	DMERR("%s: journal block %llu of metadata copy %u cannot be read%s", tr->name,
	      scan->end.block_seq, copy, tr_writable(tr) ? "" : ": what follows it is not seen");
	return tr_writable(tr) ? -EIO : 1;
}

/* Checks one piece, whose blocks @bad could not be read. 1: the journal ends in it. */
static int check_piece(struct terrace *tr, u32 copy, struct tr_scan *scan, u32 piece, u64 bad)
{
	u32 i;
	int err;

	for (i = 0; i < piece_blocks(tr, piece); i++) {
		void *block = scan->piece[piece] + i * TERRACE_BLOCK_BYTES;

		err = tr_jblock_check(block, &scan->end, tr->super.volume_uuid);
		if (err == -ENODATA)
			return lapped(tr, block, &scan->end) ? -ESTALE :
			       end_at(tr, copy, scan, bad >> i & 1);
		if (err)
			return err;
		scan->nr_blocks++;
	}
	return 0;
}

int tr_scan(struct terrace *tr, u32 copy, struct tr_scan *scan)
{
	struct tr_meta_io io;
	u32 piece;
	int r = 0;
	u64 bad;

	memset(scan, 0, sizeof(*scan));
	tr_super_link(&tr->super, &scan->end);
	scan->max_pieces = DIV_ROUND_UP_ULL(tr->super.journal_blocks, TR_PIECE_BLOCKS);
	scan->piece = kvcalloc(scan->max_pieces, sizeof(*scan->piece), GFP_KERNEL);
	if (!scan->piece)
		return -ENOMEM;
	r = read_ahead(tr, copy, scan, &io);
	for (piece = 0; !r && piece < scan->nr_pieces; piece++) {
		tr_meta_wait(&io);
		bad = io.copy[copy].status ? read_singly(tr, copy, scan, piece) : 0;
		r = read_ahead(tr, copy, scan, &io);
		if (!r)
			r = check_piece(tr, copy, scan, piece, bad);
	}
	tr_meta_wait(&io);
	return min(r, 0);
}

/* --- behind the end ------------------------------------------------------- */

#define PIECES_BEHIND	16	/* 4 MiB: damage is seldom longer */

/* The number of a block that proves that more followed @end; 0: none of these @nr does. */
static u64 more_in(const struct terrace *tr, const struct tr_journal_link *end, u64 first,
		   const void *buf, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		const void *block = buf + i * TERRACE_BLOCK_BYTES;

		if (tr_jblock_proves_more(block, end, tr->super.volume_uuid) &&
		    tr_ring_block(tr, tr_jblock_number(block)) == tr_ring_block(tr, first + i))
			return tr_jblock_number(block);
	}
	return 0;
}

int tr_scan_behind(struct terrace *tr, u32 copy, const struct tr_scan *scan, u64 *more)
{
	u64 left = min_t(u64, tr->super.journal_blocks - scan->nr_blocks,
			 PIECES_BEHIND * TR_PIECE_BLOCKS);
	void *buf = kvmalloc(TR_PIECE_BLOCKS * TERRACE_BLOCK_BYTES, GFP_KERNEL);
	u64 at = scan->end.block_seq;
	struct tr_meta_io io;
	u32 n, i;

	if (!buf)
		return -ENOMEM;
	for (*more = 0; left && !*more; left -= n, at += n) {
		n = min_t(u64, left, TR_PIECE_BLOCKS);
		tr_meta_io_start(&io);
		transfer(tr, &io, copy, REQ_OP_READ, at, buf, n);
		tr_meta_wait(&io);
		if (!io.copy[copy].status)
			*more = more_in(tr, &scan->end, at, buf, n);
		else	/* what cannot be read here proves nothing, and is nobody's business */
			for (i = 0; i < n && !*more; i++)
				if (!tr_meta_read(tr, copy, tr_ring_block(tr, at + i), buf, 1))
					*more = more_in(tr, &scan->end, at + i, buf, 1);
	}
	kvfree(buf);
	return 0;
}

void tr_scan_free(struct tr_scan *scan)
{
	u32 piece;

	for (piece = 0; piece < scan->nr_pieces; piece++)
		kvfree(scan->piece[piece]);
	kvfree(scan->piece);
	memset(scan, 0, sizeof(*scan));
}

int tr_scan_copy(struct terrace *tr, const struct tr_scan *scan, u64 have, u32 copy)
{
	struct tr_meta_io io;

	tr_meta_io_start(&io);
	while (have < scan->nr_blocks) {
		u32 in_piece = TR_PIECE_BLOCKS - have % TR_PIECE_BLOCKS;
		u32 n = min_t(u64, in_piece, scan->nr_blocks - have);

		transfer(tr, &io, copy, REQ_OP_WRITE | REQ_FUA, tr->super.tail_block_seq + have,
			 tr_scan_block(scan, have), n);
		have += n;
	}
	tr_meta_wait(&io);
	return blk_status_to_errno(io.copy[copy].status);
}
