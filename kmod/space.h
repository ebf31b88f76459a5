/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tiers and their free space: slots, chunks, shelves; I/O of kernel buffers.
 * Part of terrace.h, which has the lock table.
 */
#ifndef TR_SPACE_H
#define TR_SPACE_H

#include <linux/blk_types.h>
#include <linux/completion.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/xarray.h>

#include "args.h"
#include "core/format.h"

struct terrace;
struct tr_shelf;

struct tr_run {			/* free blocks taken from a tier in one piece */
	u64 index;
	u32 nr;
};

/*
 * A chunk in memory. `used`: may not be handed out: allocated, reserved or
 * waiting for its grace period. `committed`: what the durable records say;
 * this is what a space page holds. Both under tier->lock.
 *
 * A chunk leaves memory when nobody has it pinned, its page says what it says,
 * and all that is used is committed: not while a block of it is handed out,
 * waits for its grace period, or lies in a ready run.
 */
#define TR_CHUNK_WORDS	(TERRACE_CHUNK_BLOCKS / 64)

struct tr_chunk {
	u64 *used;			/* TR_CHUNK_WORDS; these two share a page */
	u64 *committed;
	mempool_t *pool;		/* of their page; NULL: the allocator's */
	struct list_head dirty;		/* tier->dirty_chunks */
	struct tr_tier *tier;
	u32 number;
	u16 pins;			/* under tier->lock, like what follows */
	u8 age;				/* tick of last use */
	bool is_dirty;
	bool is_writing;		/* its page is on the way to disk: stays in memory */
	u64 *stale;			/* freed and not trimmed; NULL: nobody trims here (trim.c) */
};

/* What the journal says of a chunk that is not loaded yet (recover.c). */
struct tr_chunk_delta {
	u64 touched[TERRACE_CHUNK_BLOCKS / 64];
	u64 used[TERRACE_CHUNK_BLOCKS / 64];	/* within touched */
	u64 newest_seq;
};

#define TR_CHUNK_VAIN	(1u << 0)	/* the janitor could not empty it as it is */
#define TR_CHUNK_STALE	(1u << 1)	/* something in it was freed and not trimmed */
#define TR_CHUNK_TRIMMING (1u << 2)	/* a free shelf, not to be opened now */
#define TR_CHUNK_SHUT	(1u << 3)	/* nothing to be opened again (reopen.c) */
#define TR_CHUNK_ASIDE	(1u << 5)	/* a free shelf that could not be opened (shelf.c) */
#define TR_CHUNK_DENSE	(1u << 4)	/* nothing loose in it that could be packed (pack_shelf.c) */
#define TR_CHUNK_UNREAD	(1u << 6)	/* what is could not be, for errors that may pass */
#define TR_CHUNK_CLEANED (1u << 7)	/* an order cleans it, and it has not been free since */

struct tr_chunk_info {			/* always in memory, 16 bytes per 64 MiB */
	struct tr_chunk *chunk;		/* NULL: not loaded */
	u16 used;			/* population of used (== committed when not loaded) */
	u16 flags;
	u16 dead;			/* of used, at least: dead blocks inside packs (hidden_room.c) */
	u16 filled;			/* a shelf's end when it was closed; 0: not known, or none */
};

/* Under tier->lock. */
static inline u32 tr_chunk_alive(const struct tr_chunk_info *info)
{
	return info->used - min(info->dead, info->used);
}

struct tr_epoch_cpu {
	long count[2];
};

#define TR_READY_RUNS	256
#define TR_RUN_BLOCKS	256

#define TR_OWNER_BURST	16	/* owner blocks written at once */
#define TR_MOST_UNIT	32	/* blocks; a larger unit is no drive's, and not padded to */

/* Who appends: each has a shelf of its own, so that what is cleaned or packed
 * together stays together, and writers cannot use up what that needs. What the
 * janitor takes down goes with the writes: they overflow at the same time.
 */
enum tr_appender { TR_APPEND_WRITES, TR_APPEND_MOVES, TR_NR_APPENDERS };

struct tr_tier {
	struct block_device *bdev;
	sector_t data_sector;
	u64 data_blocks;
	u64 reserve_blocks;
	u64 next_blocks, next_reserve;	/* what the next superblock says; checkpoint_mutex */
	u32 class, kind;
	u8 number;
	bool atomic;			/* 4 KiB power-fail atomic: overwrite in place */
	bool missing;			/* not there at activation */
	bool unflushed;			/* written since the last flush was issued */
	u32 flushing;			/* direct flushes under way (commit.c); journal.lock */
	bool low;			/* as the last ROOM event said */
	unsigned long failed_at;	/* jiffies, at the last error of its drive; 0: none yet (failing.c) */
	atomic64_t io_errors;
	u8 unit;			/* blocks that the drive maps as one (shelves), 1: any */

	struct tr_epoch_cpu __percpu *epoch_cpu;

	spinlock_t lock;
	u64 free_blocks;		/* not `used` in any chunk */
	u64 releases;			/* times that some became free, or can be made so */
	u32 nr_chunks;
	struct tr_chunk_info *chunks;
	struct list_head dirty_chunks;
	struct tr_run __percpu *cpu_run;
	struct tr_run ready[TR_READY_RUNS];	/* refilled by a worker */
	u32 nr_ready, ready_head;
	u64 ready_blocks;		/* in ready: `used` to their chunks, yet free */
	u64 ready_most;			/* of them are wanted: a part of the tier */
	u32 hand, hand_block;		/* where the refill worker looks next */
	struct tr_shelf *shelf[TR_NR_APPENDERS];	/* open shelves, kind shelves */
	struct tr_shelf *next_shelf[TR_NR_APPENDERS];	/* opened ahead by the refill worker */
	struct list_head full_shelves;	/* waiting for their writes, owners, table */
	u32 free_shelves;		/* chunks with nothing used in them … */
	u32 aside;			/* … but for those that could not be opened */
	unsigned long aside_since;	/* jiffies when the first could not, and none has been since; 0 */
	unsigned long aside_last;	/* … and the last */
	u64 padding;			/* blocks of shelves left out to end at units */
	struct mutex load_mutex;	/* one chunk load at a time */
	struct mutex clean_mutex;	/* one shelf is cleaned at a time */
	struct mutex open_mutex;	/* opening and closing shelves; taking and sweeping homes */
	struct xarray deltas;		/* chunk number -> tr_chunk_delta, after recovery */

	u32 orders, orders_most;	/* in flight here, and at most so far; flight_lock */

	/* kinds slots and shelves (trim.c) */
	bool stale;			/* some chunk is */
	bool no_trim;			/* it failed */
	bool trimming_shelf;
	u32 trim_from;			/* of these chunks all that is free counts as stale */
	u64 trimming;			/* slots taken from the free ones for it; lock */
	u64 trimmed;			/* blocks since the activation */

	/* kind home (home.c) */
	u64 physical_used, physical_limit;	/* as the drive reports; limit 0: unknown */
	u32 wanted_chunk;		/* + 1: missed by a writer; under lock */
	u32 sweep;			/* the next chunk whose free homes are trimmed */
};

/* Is less ready than one @share-th of what is wanted? Strewn slots: than of the runs that there is room for. */
static inline bool tr_ready_below(const struct tr_tier *tier, u32 share)
{
	return READ_ONCE(tier->nr_ready) < TR_READY_RUNS / share &&
	       READ_ONCE(tier->ready_blocks) < tier->ready_most / share;
}

/*
 * Up to @n blocks in one piece from a slots tier, for this CPU; never sleeps.
 * Returns how many, 0: none ready (a refill has been kicked).
 */
u32 tr_space_get(struct terrace *tr, struct tr_tier *tier, u32 n, u64 *index);
/* Gives back blocks that were got and never became part of the map. */
void tr_space_put(struct terrace *tr, struct tr_tier *tier, u64 index, u32 n);
/* Blocks of the tier that hold something, or are about to. */
u64 tr_space_used(const struct tr_tier *tier);
/* … of so many: without its reserve. */
static inline u64 tr_space_most(const struct tr_tier *tier)
{
	return tier->data_blocks - min(tier->reserve_blocks, tier->data_blocks);
}

/*
 * So many used blocks of a slots tier are janitor_high or janitor_low. Where there can never be as
 * many as janitor_high both are lower, so that it is when all is in use; at 1000 it is never.
 */
u64 tr_space_mark(struct terrace *tr, const struct tr_tier *tier, enum tr_tune_id mark);
/* May sleep: after a record is durable; loads the chunk. */
int tr_space_commit(struct terrace *tr, u32 tier, u64 index, u32 n, bool used);
/* May sleep: after the grace period; the blocks may be handed out again. */
int tr_space_free(struct terrace *tr, u32 tier, u64 index, u32 n);
/* The chunk, loaded (page laid under its recovery delta) and pinned. May sleep. */
struct tr_chunk *tr_chunk_get(struct terrace *tr, struct tr_tier *tier, u32 number);
void tr_chunk_put(struct tr_chunk *chunk);
/* Evicts chunks not used for @min_idle ticks until @bytes are freed. May sleep. */
u64 tr_chunks_evict(struct terrace *tr, u64 bytes, u8 min_idle);
int tr_space_init(struct terrace *tr, struct tr_tier *tier);
/* The tier has its next_blocks now; @chunks (zeroed, one for each) becomes its. */
void tr_space_grow(struct terrace *tr, struct tr_tier *tier, struct tr_chunk_info *chunks);
void tr_space_start(struct terrace *tr);	/* once per volume, after tr_open() */
/* A free chunk of a shelves tier, pinned; NULL: none. Refill worker only. */
struct tr_chunk *tr_space_take_shelf(struct terrace *tr, struct tr_tier *tier);
void tr_space_exit(struct terrace *tr, struct tr_tier *tier);
/* Free blocks that map() may still take from slots / from shelves. */
bool tr_space_tight(struct terrace *tr);
/*
 * The tiers, as bits, that new blocks may go to: all but those that are avoided (tunable
 * avoid_tiers), as long as there is room on these, or will be as soon as it is made ready.
 */
u32 tr_space_open(struct terrace *tr);

/* The append stream of a shelves tier. Never sleeps; 0: no open shelf ready. */
u32 tr_shelf_get(struct terrace *tr, struct tr_tier *tier, enum tr_appender who, u32 n,
		 u64 *index);
/* Blocks that the open shelf can still give out, 0: there is none. */
u32 tr_shelf_room(struct tr_tier *tier, enum tr_appender who);
/* May a run of @n blocks be appended that is not cleaning's? It leaves that its reserve. */
bool tr_shelf_spares(struct tr_tier *tier, u32 n);
/* Is there room to clean a shelf with @n blocks to its end? */
bool tr_shelf_takes(struct tr_tier *tier, u32 n);
/* … in one that has @room? @packed of them, at most, are in packs. There is room for some commits
 * meanwhile, too: each ends with an owner block of its own.
 */
bool tr_shelf_fits(u32 room, u32 n, u32 packed);
/* All @n in one piece for a move, or none: then the next shelf may have room. */
u32 tr_shelf_get_run(struct terrace *tr, struct tr_tier *tier, u32 n, u64 *index);
/* The unit that is padded to now; 1: room is short. */
u32 tr_shelf_unit(const struct tr_tier *tier);
/* Before a flush: the blocks to the next border, as many as it says from *@index on, are the
 * caller's to fill with zeros (tr->zeros). 0: none.
 */
u32 tr_shelf_pad(struct tr_tier *tier, enum tr_appender who, u64 *index);
void tr_shelf_padded(struct tr_tier *tier, u32 n);	/* counts them */
void tr_shelf_sealed(struct tr_tier *tier, u64 index, u32 n);	/* ends a run of a pack */
/* These two end what tr_shelf_get() began; @last with the last of its blocks.
 * Publish *before* the record is appended: a commit that seals the record
 * must already see the blocks as to be named.
 */
void tr_shelf_published(struct terrace *tr, struct tr_tier *tier, u64 index, u64 block, u32 n,
			bool last);
void tr_shelf_abandoned(struct terrace *tr, struct tr_tier *tier, u64 index, u32 n, bool last);
/* Writes owner blocks for every loose block published before the call. Called by the
 * commit before it flushes the tier. Sleeps.
 */
int tr_shelves_write_owners(struct terrace *tr, u64 record_seq);
/* May @who open one more? Some free shelves are kept back for moves. */
bool tr_shelf_may_open(const struct tr_tier *tier, enum tr_appender who);
u32 tr_shelves_kept(const struct tr_tier *tier);
bool tr_shelf_is_open__f(struct tr_tier *tier, u32 number);
void tr_shelves_put_back(struct terrace *tr);	/* those that could not be opened: to be tried anew */
void tr_shelves_aside_fn(struct work_struct *work);
/* Some are full and wait for their last writes, or could not be opened a moment ago. */
bool tr_shelves_to_come(struct terrace *tr);
/* None could be opened for a minute, till now. */
bool tr_shelves_refused(const struct tr_tier *tier);
void tr_shelf_refill(struct terrace *tr, struct tr_tier *tier);	/* refill worker */
/* What shelf @chunk's owner table, or its owner blocks, name: up to a chunk of
 * them into @owner. How many; *@some_bad: there may be more, that could not be read. -EIO:
 * nothing could, -ENOMEM. Sleeps.
 */
int tr_shelf_owners(struct terrace *tr, struct tr_tier *tier, u32 chunk, struct tr_owner *owner,
		    bool *some_bad);
/* For a move: sees to it that @who has a shelf. -ENOSPC: none is free; -ENOMEM. */
int tr_shelf_open_for(struct terrace *tr, struct tr_tier *tier, enum tr_appender who);
/* For cleaning, when no shelf is free and the moves have none: goes on in one that a stop or
 * a crash gave up, if it can (reopen.c). Sleeps.
 */
void tr_shelf_reopen(struct terrace *tr, struct tr_tier *tier);
int tr_shelves_init(struct terrace *tr);	/* once, when all tiers are known */
void tr_shelves_exit(struct tr_tier *tier);

/*
 * Homes (home.c): blocks of a tier of kind home, where the index is the
 * number of the block in the volume. Got homes end like slots that were got.
 */
/* Homes of the blocks from @block on, up to @n, as far as they are free; never sleeps. */
u32 tr_home_get(struct terrace *tr, struct tr_tier *tier, u64 block, u32 n);
/* The same for moves: loads what it takes, and does not ask for room in the drive. */
u32 tr_home_get_wait(struct terrace *tr, struct tr_tier *tier, u64 block, u32 n);
/* Is @block's own home free, for all that is known? */
bool tr_home_may_be_free(struct terrace *tr, u64 block);
/* For who waits for room already: if it may be, the refill worker is to look, and to wake him. */
void tr_home_want(struct terrace *tr, u64 block);
/* Trims what was got and never became part of the map, and gives it back. Sleeps. */
void tr_home_put(struct terrace *tr, struct tr_tier *tier, u64 index, u32 n);
bool tr_home_refill(struct terrace *tr, struct tr_tier *tier);	/* refill worker */
bool tr_home_full(const struct tr_tier *tier);	/* inside: nothing more goes there */
u64 tr_home_surplus(const struct tr_tier *tier);	/* blocks that should go elsewhere */
void tr_home_moved_away(struct tr_tier *tier, u64 moved);
int tr_home_report(struct terrace *tr, const char *number, const char *used, const char *limit);
void tr_homes_init(struct terrace *tr);
void tr_homes_kick(struct terrace *tr);	/* trims homes that a crash left, in the background */
void tr_homes_sweep(struct terrace *tr);	/* the same from the start */

/* May what is free on the tier be trimmed? */
bool tr_trimmable(const struct tr_tier *tier);
void tr_trim_kick(struct terrace *tr);	/* something became free, or may go on; never sleeps */
void tr_trim_all(struct terrace *tr);	/* everything that is free, in the background */
void tr_trim_init(struct terrace *tr);
/* Slots that were taken from the free ones to trim them are free again (space.c). */
void tr_space_trimmed(struct tr_tier *tier, struct tr_chunk *chunk, u32 i, u32 n);

/* Reading of packs (unpack.c). */
int tr_packing_init(struct terrace *tr);
void tr_packing_exit(struct terrace *tr);

/* I/O of kernel buffers (rw.c): begin, rw as often as needed, wait. */
struct tr_burst {
	atomic_t pending;
	struct completion done;
	int err;			/* any of the errors, 0: all went well */
};

int tr_rw_init(void);			/* for the module */
void tr_rw_exit(void);
void tr_burst_begin(struct tr_burst *burst);
void tr_burst_rw(struct tr_burst *burst, struct block_device *bdev, sector_t sector,
		 void *buf, u32 bytes, blk_opf_t opf);
void tr_burst_discard(struct tr_burst *burst, struct block_device *bdev, sector_t sector, u32 bytes);
int tr_burst_wait(struct tr_burst *burst);
/* Of free blocks; nothing on a tier that cannot (trim.c). */
void tr_trim(const struct tr_tier *tier, u64 index, u32 n, struct tr_burst *burst);
/* One buffer, and wait. */
int tr_rw(struct block_device *bdev, sector_t sector, void *buf, u32 bytes, blk_opf_t opf);
struct tr_unread {
	u32 nr;				/* pieces that could not be read */
	unsigned long since;		/* jiffies at the first of them */
	u64 which;			/* of the last tr_read_each(): bits, of its first 64 blocks */
};

void tr_unread_note(struct tr_unread *bad);
/* They are many, and have taken long, or the volume stops. A drive that says so fast is read whole. */
bool tr_gave_up_reading(const struct terrace *tr, const struct tr_unread *bad);
/* Reads @n blocks; what cannot be read of them becomes zeros, and is counted in *@bad. From
 * tr_gave_up_reading() on the rest is left out. The first error, 0: all were read.
 */
int tr_read_each(struct terrace *tr, struct block_device *bdev, sector_t sector, void *buf, u32 n,
		 struct tr_unread *bad);

#endif
