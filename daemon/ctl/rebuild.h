/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where each block of a volume is, as far as that can still be told, and how
 * sure it is. For repair and salvage.
 *
 *   rebuild.c          the table of blocks; the order of it all; double claims
 *   rebuild_map.c      from the trees and the journal, damaged pages included
 *                      (see rebuild_map.h)
 *   rebuild_shelves.c  from what the shelves say about themselves
 *   rebuild_packs.c    the packs of a region; reading and proving one (rebuild_packs.h)
 *   rebuild_report.c   ranges of blocks, in words and as JSON
 *
 * A block is
 *   certain   there, or certainly nowhere: what a healthy volume would read
 *   older     there is a value of this block, perhaps not its last one
 *   doubtful  an outdated map says it was there; the place may have been given
 *             to another block since, and nothing tells whose the data are
 *   lost      nothing is known
 * Nothing outdated is ever called certain: a block is certain only if the page
 * of its region is known to be current, or the journal reaches without a gap
 * from what an older page contains to the newest record there is any trace of.
 *
 * A block may have a place, be live in a pack, or both: then it is a clean
 * slot, the two hold the same value, and one of them is enough.
 *
 * Packs, crash by crash, and what may be called what (decision 0010):
 *   - a pack that the map, known to be current, calls live for a block: certain,
 *     if header and bytes have their CRCs. An id is never used again, so such
 *     bytes cannot be another pack's, wherever they are found;
 *   - a pack that contains a block and is not live for it, or of which only its
 *     header tells: never certain. The block may have been overwritten since, in
 *     a slot, and it may have been written while it was packed: the move then
 *     left it out, and what the pack holds of it is perhaps no value at all;
 *   - a pack outdated as the map that names it: its bytes still prove that they
 *     are its own, so they are an older value at worst, not another block's.
 *
 * Memory: 8 bytes for each block of a region that has any, 16 when shelves
 * are read.
 */
#ifndef TERRACE_CTL_REBUILD_H
#define TERRACE_CTL_REBUILD_H

#include "journal.h"
#include "trees.h"

/* What repair makes has a generation so far ahead that no checkpoint of the volume ever comes to it. */
#define RB_GENERATIONS_AHEAD (1ull << 32)

enum rb_state { RB_CERTAIN, RB_OLDER, RB_DOUBTFUL, RB_LOST, RB_NR_STATES };

enum rb_source {
	RB_NONE,	/* nothing says where it is */
	RB_MAP,		/* its page in the map */
	RB_OLD_PAGE,	/* an outdated page */
	RB_JOURNAL,
	RB_SHELF,	/* an owner block */
	RB_TABLE,	/* an owner table: its record number is an upper bound */
	RB_TWICE,	/* two blocks claimed its place */
	RB_NO_SUCH,	/* its place does not exist */
	RB_REUSED,	/* its place on a shelf is not its own any more */
	RB_PACK,	/* a pack on a shelf: its header says that it contains the block */
	RB_PACK_HEADER,	/* its pack cannot be read, or is no longer there */
	RB_PACK_BYTES,	/* its bytes in the pack are damaged */
	RB_PACK_ROOM,	/* more packs than a region can have */
};

/* One block: place in bits 0-39, number of its pack in 40-47, source in 48-55,
 * state in 56-63.
 */
static inline u64 rb_make(enum rb_state state, enum rb_source source, u64 place)
{
	return (u64)state << 56 | (u64)source << 48 | place;
}

/* @pack: of the region's, counted from 1; 0: none. */
static inline u64 rb_make_packed(enum rb_state state, enum rb_source source, u64 place, u32 pack)
{
	return rb_make(state, source, place) | (u64)pack << 40;
}

static inline u64 rb_place(u64 at)
{
	return at & TERRACE_NO_PLACE;
}

static inline u32 rb_pack(u64 at)
{
	return at >> 40 & 0xff;
}

/* At a place, or live in a pack? */
static inline bool rb_somewhere(u64 at)
{
	return rb_place(at) != TR_NO_PLACE || rb_pack(at);
}

static inline enum rb_state rb_state(u64 at)
{
	return at >> 56;
}

static inline enum rb_source rb_source(u64 at)
{
	return at >> 48 & 0xff;
}

#define RB_MAX_PACKS	255u

struct rb_pack {
	struct tr_pack ref;	/* place TR_NO_PLACE: only the id is known; live: not used */
	u64 record_seq;		/* of its header, where that was read */
	bool found;		/* on its shelf, whole */
	bool mend;		/* its header is damaged, the copy of it is not */
};

struct rb_region {
	struct rb_pack *pack;	/* those that at[] names by their numbers, and perhaps more */
	u32 nr_packs, cap_packs;
	u64 seq;		/* records up to this one are in the page */
	u64 page_seq;		/* its own: a range discard since then may still wait for its region */
	bool damaged;		/* its page was lost */
	bool end_known;		/* no newer record of it can be missing */
	u64 *claim_seq;		/* of the newest claim of a shelf; NULL: none yet */
	u64 at[TERRACE_REGION_BLOCKS];
};

struct rebuild {
	struct volume *vol;
	const struct tr_super *super;
	struct findings *findings;
	u64 virtual_blocks, nr_regions;
	struct rb_region **region;	/* NULL: nowhere, all of it */
	bool unmapped_certain;		/* blocks that are nowhere are so for certain */
	bool have_map;
	bool alien;			/* the journal has records that this version does not know */
	bool borrowed;			/* the superblock is the lazy mirror's, the rest the primary's */
	bool torn_end;			/* the journal ends in a block torn by a crash, or damaged */
	bool end_known;			/* for regions without a page: no newer record is missing */
	u64 newest_record;		/* that there is any trace of */
	u64 newest_journal_block;
	u64 *avoid;			/* meta blocks that were a source; bit each */
	u64 first_lost, last_lost;	/* records that are missing; 0: none */
	u64 ties;			/* blocks with two claims of equal age */
	u64 claims, superseded, beyond, newest_claim;
	u64 newest_pack;		/* id */
	u64 packs_found;		/* on shelves */
	u64 **used[2][TERRACE_MAX_TIERS];	/* claimed once, more than once; by chunk */
};

/*
 * A lazy mirror with a newer superblock than the primary's, which is damaged
 * then: pages stand at the same numbers in both, and each is checked by its
 * entry, so that superblock does for the primary's pages and journal. It is
 * put into @borrowed. true: it was.
 */
bool rb_borrow_super(struct volume *vol, struct tr_super *borrowed);

/* Pages of a repair in place that was stopped say that they contain records up to this one, and do not; 0: there are none. */
u64 rb_newest_of_cut_repair(const struct rebuild *rb);

void rb_init(struct rebuild *rb, struct volume *vol, const struct tr_super *super,
	     struct findings *findings);
void rb_free(struct rebuild *rb);

/* The region, made (nowhere, certain or doubtful) if it is not there. */
struct rb_region *rb_region(struct rebuild *rb, u64 number);

static inline u64 rb_at(const struct rebuild *rb, u64 block)
{
	const struct rb_region *region = rb->region[block / TERRACE_REGION_BLOCKS];

	if (!region)
		return rb_make(rb->unmapped_certain ? RB_CERTAIN : RB_DOUBTFUL, RB_NONE,
			       TR_NO_PLACE);
	return region->at[block % TERRACE_REGION_BLOCKS];
}

/* Trees and journal of the metadata in use. */
void rb_read_map(struct rebuild *rb);

/*
 * Reads all shelves. @alone: the newest claim of each block counts, and there
 * is nothing else. Otherwise claims serve blocks that are not certain, and,
 * with @missing, those on a tier that is missing.
 */
void rb_read_shelves(struct rebuild *rb, bool alone, bool missing);

/* Is anything not certain? */
bool rb_uncertain(const struct rebuild *rb);

/* Places that do not exist, and places that two blocks claim: the surer claim
 * stays; of two alike none does.
 */
void rb_resolve(struct rebuild *rb);

/* Is a place marked by rb_resolve()? */
bool rb_used(const struct rebuild *rb, u32 tier, u64 index);

/* Another state and source, at the same place and pack. */
static inline u64 rb_change(u64 at, enum rb_state state, enum rb_source source)
{
	return rb_make_packed(state, source, rb_place(at), rb_pack(at));
}

/* "certain", "possibly older", … and where it comes from. */
const char *rb_state_word(enum rb_state state);
const char *rb_source_text(enum rb_source source);

/* What to say of ->torn_end. */
#define RB_TORN_NOTE "note: the journal ends in a block that a crash tore, as activation would take it, or that is damaged: then what was written last is missing, and what is called certain may lack it"

/* Blocks of each state that have a place (lost ones: all). */
void rb_count(const struct rebuild *rb, u64 *count);

/*
 * Calls @fn for each run of blocks that are alike; @place is the first one's.
 * Blocks that are certainly nowhere are left out.
 */
typedef void (*rb_run_fn)(void *ctx, u64 block, u64 nr, u64 at);
void rb_runs(const struct rebuild *rb, bool by_place, rb_run_fn fn, void *ctx);

#endif
