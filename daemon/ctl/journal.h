/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The journal of one metadata area, as far as its chain reaches, in memory.
 */
#ifndef TERRACE_CTL_JOURNAL_H
#define TERRACE_CTL_JOURNAL_H

#include "core/replay.h"
#include "volume.h"

struct journal {
	u8 *blocks;		/* nr_blocks of them, oldest first */
	u64 nr_blocks;
	u64 nr_records;
	u64 first_record;	/* number of the oldest record, if there is one */
	u64 last_record;	/* of the newest one, or the superblock's tail */
	u64 virtual_blocks;	/* after RESIZE records */
	struct tr_journal_link end;	/* what the next block would have to continue */
	int error;		/* -EUCLEAN: ended by an impossible record; -ESTALE: its tail is
				 * overwritten, the superblock is too old; -EIO … */
	bool torn;		/* the block behind the end is a broken one of ours */
};

/* Reads the chain from the superblock's tail. 0 or -errno (also in ->error). */
int journal_read(struct journal *journal, const struct metadata *meta);
void journal_free(struct journal *journal);

/* Number of a block in the ring of @meta that proves that more followed the chain's end:
 * a block was damaged. 0: there is none.
 */
u64 journal_more(const struct journal *journal, const struct metadata *meta);

/* Does activation take @a rather than @b, the other copy's from the same tail? */
bool journal_wins(const struct journal *a, const struct journal *b);

/* Ring position of block @i of the chain, as a meta block. */
u64 journal_meta_block(const struct tr_super *super, u64 i);

/* Calls @fn for every record, oldest first. */
typedef void (*journal_fn)(void *ctx, const struct tr_record *record, u64 seq, u64 block, u32 i);
void journal_each(const struct journal *journal, journal_fn fn, void *ctx);

/* Record @i of block @block. */
void journal_record(const struct journal *journal, u64 block, u32 i, struct tr_record *record,
		    u64 *seq);

/* "map", "discard", …; "?" for an unknown type. */
const char *record_name(u32 type);

#endif
