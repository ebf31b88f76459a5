/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One block of the journal, and the rule that says where the journal ends.
 *
 * Block n sits at ring position n % journal_blocks. It carries its number,
 * the CRC of block n-1 and the nonce of the activation that wrote it. Block
 * n+1 continues block n if its number, prev_crc and uuid fit and
 *   - its nonce is n's nonce, or
 *   - it is marked FIRST and its prev_nonce is n's nonce.
 * Why this closes the known hole: suppose 11 and 12 were in flight when power
 * failed, 12 survived and 11 did not. Recovery ends at 10. The next
 * activation writes a new 11, with a new nonce and FIRST. The old 12 has the
 * dead activation's nonce and no FIRST: it never becomes valid again, by
 * rule and not only by the luck of a CRC.
 */
#ifndef TERRACE_CORE_JOURNAL_BLOCK_H
#define TERRACE_CORE_JOURNAL_BLOCK_H

#include "place.h"

/*
 * Blocks that are written without waiting for those before them. So a crash leaves
 * nothing further behind the end of the journal; what is there all the same tells
 * that the end is damage, and that records are missing.
 */
#define TR_JOURNAL_IN_FLIGHT	64u

struct tr_record {
	u8 type;
	u16 nr;
	u32 aux;
	u64 block;
	u64 new;
	u64 old;
};

/* What block n tells about block n+1. */
struct tr_journal_link {
	u64 block_seq;		/* number the next block must have */
	u64 record_seq;		/* its first record's number; 0: not known yet */
	u64 nonce;
	u32 crc;
};

/* Starts an empty block behind @link, written by activation @nonce. */
void tr_jblock_start(void *block, const struct tr_journal_link *link, u64 nonce, const u8 *uuid);

/*
 * Moves a started (and perhaps filled) block behind @link: for blocks that
 * were started before the CRC of the one in front of them was known.
 */
void tr_jblock_relink(void *block, const struct tr_journal_link *link);

/* Appends; the caller knows there is room. Returns how many it holds now. */
u32 tr_jblock_append(void *block, const struct tr_record *record);

/* Blocks before number @durable are so, on every copy in use; before it is sealed. */
void tr_jblock_follow(void *block, u64 durable);

/* Seals the block (CRC) and moves @link on behind it. */
void tr_jblock_seal(void *block, struct tr_journal_link *link);

u32 tr_jblock_nr(const void *block);
u64 tr_jblock_first_record(const void *block);
void tr_jblock_record(const void *block, u32 i, struct tr_record *record);

/*
 * Does @block continue @link? On success moves @link on. -ENODATA: the
 * journal ends here (any reason that a crash explains). -EUCLEAN: it fits
 * and its CRC is right, but a record in it is impossible.
 */
int tr_jblock_check(const void *block, struct tr_journal_link *link, const u8 *uuid);

/*
 * The chain ends at @end. Is @block, which stands elsewhere in the ring, one that was begun
 * when more was durable? Then a crash does not explain that end: a block of it is damaged.
 *
 * Crash scenario: blocks 1 to 200 were written one after the other, what is in them was
 * acknowledged. The power fails, and a bit of block 100 flips. The chain ends at 99, as if
 * 100 had been in flight. But 101 says that it was durable. The old 12 above says no such
 * thing of 11: blocks that are in flight together were sealed when neither was durable.
 */
bool tr_jblock_proves_more(const void *block, const struct tr_journal_link *end, const u8 *uuid);
u64 tr_jblock_number(const void *block);

/*
 * Two journals that start at the same tail have some blocks in common; behind them
 * the one has @a_nr more, from @a on, the other @b_nr, from @b on. Is the first one
 * to be believed? The longer one is (it may have what the other one, in a crash, did not
 * get), but where both go on, the one that does so with a new activation: that one did
 * not have the other's rest, so nobody was told of it since.
 */
bool tr_jblock_wins(const void *a, u64 a_nr, const void *b, u64 b_nr);

/* A record by itself: known type, numbers in range, blocks of one region. */
int tr_record_check(const struct tr_record *record);

#endif
