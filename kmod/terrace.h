/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The inside of dm-terrace: the objects, the lock table and what each file
 * offers the others, in the order in which data flow.
 *
 * A bio enters in map.c. A hit is remapped there and then. Everything that
 * may sleep goes through defer.c. endio.c publishes new mappings when their
 * data are down; journal.c makes them durable; checkpoint.c writes them into
 * the pages so that the journal can move on; recover.c reads all that back.
 *
 * LOCK TABLE (outer first; irq = taken with interrupts off)
 *   resize_mutex      one change of a size at a time; dmsetup message
 *   checkpoint_mutex  one checkpoint at a time; taken in worker context
 *   tier->clean_mutex one shelf is cleaned at a time; worker context
 *   tier->open_mutex  opening and closing shelves, taking homes while others are
 *                     swept; worker context
 *   load_mutex[]      one load per region at a time (by hash); worker context
 *   tier->load_mutex  one chunk load at a time; worker context
 *   pages_mutex       the cache of directory pages; nests in the above
 *   epoch_mutex       one grace period at a time
 *   labels.note_mutex, labels.mutex  what the labels say; nest in the above
 *   discard_lock      open range discards; inserting a loaded region, taking
 *                     empty pages out of the table
 *   table_lock irq    inserting and removing regions in the table
 *   region->lock irq  one region's leaf, flags and counters
 *   dirty_lock irq    the lists of dirty regions; nests in region->lock
 *   credits.lock irq  room for map pages, who waits for it; nests in region->lock
 *   journal.lock irq  open journal block, credits; nests in region->lock
 *   tier->lock irq    a tier's free space, runs, open shelf, chunk bitmaps
 *   promotion->lock irq  the promotion cache (promotion.c); in region->lock
 *   flight_lock       orders in flight at each tier, their idle memory
 *   packing->lock     indexes, work areas and stretches of packs' readers
 * Those of the control device are in Documentation/locking.md.
 * Readers of the map take none of them: rcu_read_lock and the region's
 * sequence counter.
 */
#ifndef DM_TERRACE_H
#define DM_TERRACE_H

#include <linux/bio.h>
#include <linux/device-mapper.h>
#include <linux/mempool.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/semaphore.h>
#include <linux/seqlock.h>
#include <linux/spinlock.h>
#include <linux/sysfs.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "args.h"
#include "compat.h"
#include "core/format.h"
#include "core/journal_block.h"
#include "core/leaf.h"
#include "core/replay.h"
#include "journal.h"
#include "space.h"

#define DM_MSG_PREFIX "terrace"

struct terrace;
struct tr_region;
struct tr_order;

/* --- regions (region.c load.c) --------------------------------------------------- */

enum tr_region_flag {
	TR_REGION_DEAD		= 1 << 0, /* no longer in the table: look up again */
	TR_REGION_DIRTY		= 1 << 1, /* on dirty_regions: newer than its page */
	TR_REGION_WRITING	= 1 << 2, /* its page image is on the way to disk */
	TR_REGION_MOVING	= 1 << 3, /* a move runs: writers mark region->move */
	TR_REGION_LOST		= 1 << 4, /* its page is damaged: EIO, for good */
	TR_REGION_PAGED		= 1 << 5, /* the tree in memory names its page */
	TR_REGION_CREDIT	= 1 << 6, /* it does not, but room for one is promised */
};

struct tr_region {
	struct tr_leaf leaf;		/* changes under lock, inside seq */
	seqcount_t seq;
	spinlock_t lock;
	u16 flags;			/* enum tr_region_flag; changes under lock */
	u16 reserved;			/* places promised to writes under way */
	u16 pins;			/* users that need this very object */
	u8 age;				/* tick of last use; written lock-free, on change only */
	u64 number;
	u64 last_seq;			/* newest record of this region */
	u64 first_dirty_seq;		/* oldest record not yet in its page */
	union {
		struct list_head dirty;	/* tr->dirty_regions */
		mempool_t *pool;	/* once DEAD */
	};
	union {
		struct tr_move *move;	/* while MOVING */
		struct rcu_head rcu;	/* once DEAD */
	};
};
/* DESIGN: RAM per loaded region; locks that are watched are larger. */
static_assert(IS_ENABLED(CONFIG_DEBUG_SPINLOCK) || sizeof(struct tr_region) <= 256);

/* Lock-free; under rcu_read_lock. NULL: not in memory. &tr->empty: known to
 * have no places and no page (its lock is never taken, it never changes).
 */
struct tr_region *tr_region_find(struct terrace *tr, u64 number);

/*
 * Region @number, loaded from its page if need be, pinned. May sleep and do
 * metadata I/O. @create: make one when it has no page, otherwise NULL then.
 * ERR_PTR: -EUCLEAN its page is damaged, for good; -EIO it cannot be read,
 * -ENOMEM: the next time it may go well.
 */
struct tr_region *tr_region_get(struct terrace *tr, u64 number, bool create);
/* If it is in memory; else ERR_PTR(-EBUSY). Never sleeps, writes nothing. */
struct tr_region *tr_region_get_loaded(struct terrace *tr, u64 number);
void tr_region_put(struct tr_region *region);
bool tr_region_pin(struct tr_region *region);	/* false: DEAD, look up again */

/* Promises room for @n places, the last of which may be @place; under
 * region->lock. false: the leaf is too small (tr_region_grow).
 */
bool tr_region_reserve__f(struct tr_region *region, u32 n, bool high);
/* Makes room for @n more places beyond what is reserved; sleeps. */
void tr_region_grow(struct terrace *tr, struct tr_region *region, u32 n, bool high);

/*
 * Changes under region->lock (asserted). Each writes its record to the
 * journal from @credits (see tr_journal_reserve) and marks the region dirty.
 * tr_region_map__f: blocks i.. become @place.. ; needs reserved room and up
 * to n credits. tr_region_unmap__f: up to n credits. Return credits used.
 */
u32 tr_region_map__f(struct terrace *tr, struct tr_region *region, u32 i, u32 n, u64 place);
u32 tr_region_unmap__f(struct terrace *tr, struct tr_region *region, u32 i, u32 n);

/* Reads as nothing from now on, without a record. Blocks that were live in packs. */
u32 tr_region_forget__f(struct tr_region *region, u32 i, u32 n);

/* The region's packs, NULL: none. Under rcu_read_lock or region->lock. */
struct tr_packs *tr_region_packs(const struct tr_region *region);
/* Room for @cap packs in all; sleeps. */
void tr_region_packs_grow(struct terrace *tr, struct tr_region *region, u32 cap);
/* Drops packs without live blocks, if the journal has room at once (packs.c). */
void tr_region_drop_packs(struct terrace *tr, struct tr_region *region);
/* Appends @record (one credit) and marks the region dirty. */
void tr_region_record__f(struct terrace *tr, struct tr_region *region,
			 const struct tr_record *record);

/* Evicts clean, unused regions until @bytes are freed or none is left. */
u64 tr_regions_evict(struct terrace *tr, u64 bytes);
#define TR_AGE_MOST	192	/* ticks; what is older is no older */
void tr_regions_age(struct terrace *tr);	/* once a tick */
int tr_regions_init(struct terrace *tr);
/* Room for @regions in the table; never less. Under resize_mutex. Sleeps. */
int tr_regions_grow(struct terrace *tr, u64 regions);
void tr_regions_exit(struct terrace *tr);

/* --- I/O under way (map.c, defer.c, endio.c, epoch.c) ----------------------- */

enum tr_io_kind {
	TR_IO_NONE,		/* not counted, nothing to publish */
	TR_IO_READ,
	TR_IO_PLACE,		/* overwrite in place */
	TR_IO_NEW,		/* to a fresh place, published at completion */
	TR_IO_FLUSH,		/* of one tier, sent from map(); in no epoch */
};

/* Per bio of ours, and per piece that the deferred path cuts from one. */
struct tr_io {
	u8 kind;
	u8 tier;
	u8 epoch;		/* of each tier, a bit; once counted: the tier's own */
	bool commit;		/* ends only after the next commit (FUA) */
	bool rescue;		/* a failed read on its second way (rescue.c) */
	bool timed;		/* its end is told, sense.h */
	bool zeros;		/* NEW: only where there is nothing yet (append.c) */
	bool stream;		/* deferred writes: was found to be part of one */
	u8 told_tier;
	u32 thread;		/* who asked (tr_sense_who), if a worker goes on with it; 0: whoever runs */
	u16 i, nr;		/* blocks within the region */
	struct tr_region *region; /* pinned, for NEW */
	u64 index;		/* tier-relative, of the first block; parents: tr_releases() when they looked */
	u64 since;		/* if timed: nanoseconds */

	union {
		struct bvec_iter iter;	/* reads: what was asked for */
		struct {		/* deferred writes without a credit (credits.c) */
			u64 asked;	/* the checkpoint that will tell, 0: none yet */
			u64 looked;	/* … that had told when they last looked */
		};
	};
	struct tr_io *parent;	/* pieces only */
	atomic_t pending;	/* parents: pieces under way */
	blk_status_t status;
	bool bulk;		/* deferred reads: large, or of a stream of such */
	u16 ahead;		/* deferred reads: blocks behind them that will be wanted next */
	struct terrace *tr;
	struct work_struct work;
};

void tr_defer(struct terrace *tr, struct bio *bio);
/* A read that failed with @status: may the packs of its blocks still serve? Then it
 * goes its way again. Any context.
 */
bool tr_rescuable(const struct tr_io *io, const struct bio *bio, blk_status_t status);
void tr_rescue(struct terrace *tr, struct bio *bio);
void tr_rescued(const struct tr_io *io);	/* it went well */
/* Parks it until tr_room_made(); @full: it found no place, and may learn that there will be none. */
void tr_defer_room(struct terrace *tr, struct bio *bio, bool full);
void tr_room_made(struct terrace *tr);
void tr_orders_ended(struct terrace *tr);	/* a batch that was at work */
void tr_requeue_waiters(struct terrace *tr);
void tr_defer_end(struct terrace *tr, struct bio *bio, blk_status_t status);	/* one that waited */
bool tr_room_is_waited_for(struct terrace *tr);
bool tr_frees_pending(struct terrace *tr);	/* journal.c: records whose frees are to come */
/* Commits, and waits (a second at most) until what was freed before the call is free. */
bool tr_frees_wait(struct terrace *tr);	/* a second at most; true: what was freed so far is */
int tr_defer_init(struct terrace *tr);
void tr_defer_exit(struct terrace *tr);
int tr_map(struct terrace *tr, struct bio *bio);

/* --- room for map pages (credits.c) -------------------------------------------- */

struct tr_credits {
	spinlock_t lock;
	bool scarce;			/* not every region can have its page */
	u64 area, kept, durable;	/* blocks: of the area, …, that the last superblock uses */
	u64 regions;
	u64 taken;			/* regions that it has no page of … */
	u64 named;			/* … and the next one will */
	u64 begun, ended;		/* checkpoints; the last that proves something */
	bool proves;			/* the one that runs will, if it ends well */
	bool told;			/* the log says that there is no room */
	struct bio_list waiters;
	struct delayed_work again;
};

/* All under region->lock. A credit for the region's page, for one that has neither. false: no
 * room; force: whether it has one, and whether there is room or not.
 */
bool tr_credit_take__f(struct terrace *tr, struct tr_region *region);
void tr_credit_force__f(struct terrace *tr, struct tr_region *region);
/* Gives it back if nothing is left to need it: after promises were taken back. */
void tr_credit_settle__f(struct terrace *tr, struct tr_region *region);
/* The tree names its @page now, or none any more; it is no longer WRITING. */
void tr_credit_named__f(struct terrace *tr, struct tr_region *region, bool page);
/* The tree names the page of a region that recovery found, before that forgets it. */
void tr_credit_settled(struct terrace *tr);
/* @super is durable, and uses so many blocks. */
void tr_credits_durable(struct terrace *tr, const struct tr_super *super, u64 blocks);

/* Parks a write that got none: it looks again, or hears that there is no room. For
 * io->looked: the number to be asked for before it looks.
 */
void tr_credits_wait(struct terrace *tr, struct bio *bio);
u64 tr_credits_looked(struct terrace *tr);
void tr_credits_wake(struct terrace *tr);
struct bio_list tr_credits_waiters(struct terrace *tr);	/* takes them all */
/* Around each checkpoint. */
void tr_credits_begin(struct terrace *tr);
void tr_credits_end(struct terrace *tr, int err);
void tr_credits_init(struct terrace *tr);
void tr_credits_exit(struct terrace *tr);

/* --- moves (move.c janitor.c) ------------------------------------------------ */

/*
 * Blocks of one region on their way to the append stream of another tier (or,
 * when a shelf is cleaned, of the same one). raced: blocks written since it
 * began; under region->lock.
 */
struct tr_move {
	u64 raced[TR_LEAF_WORDS];
	u64 number;			/* region */
	u64 stay[TR_LEAF_WORDS];	/* pinned to the fast tiers when it began */
	u8 from, to;			/* tiers */
	enum tr_appender who;		/* whose shelf it writes to */
	bool drop_only;			/* clean slots and copies of indexes go, on any tier */
	u32 chunk;			/* orders: only packs of this chunk; TR_ANY_CHUNK: all */
	struct tr_region *region;	/* while it runs */
	u32 moved, left_out;		/* result, in blocks */
	int err;
};

#define TR_ANY_CHUNK	(~0u)
#define TR_MOVE_BATCH	16

/* Pins the region and marks it MOVING. -ENOENT: nothing there; -EBUSY. After
 * it a grace period; then every write is in raced.
 */
int tr_move_begin(struct terrace *tr, struct tr_move *move);
void tr_move_end(struct terrace *tr, struct tr_move *move);
/* Blocks @i.. were copied from place @old to @index of the target: those that nobody
 * wrote since get there, the others leave it. Under region->lock; credits used.
 */
u32 tr_move_publish__f(struct terrace *tr, struct tr_move *move, u32 i, u32 n, u64 old, u64 index);
/* Runs @nr moves of different regions, one grace period for all. Sleeps. */
void tr_moves_run(struct terrace *tr, struct tr_move *move, u32 nr);

/*
 * Around work in a worker that nobody waits for (yet); tr_moves_run() and
 * tr_orders_run() begin it for each region, their callers end it. A worker that has slept
 * may run for some milliseconds before the scheduler lets anybody else on its
 * CPU, and who is woken by a fast drive meanwhile waits as long: unless it is
 * nice. When writers wait for room, or are slowed down, it must not be.
 */
void tr_work_gently(struct terrace *tr);
void tr_work_normally(void);
/* Between two pieces of work that nobody waits for, each some microseconds. Sleeps. */
void tr_give_way(void);

/* Gives back the memory that moves, orders and readers of packs keep for the next ones. */
void tr_unpackers_forget(struct terrace *tr);
void tr_moves_forget(struct terrace *tr);
void tr_orders_forget(struct terrace *tr, bool all);	/* or what no order has used since the last time */

/* Limits of orders in flight (order_flight.c). */
void tr_flight_init(struct terrace *tr);
void tr_flight_changed(struct terrace *tr);	/* wakes those that wait for room */
u32 tr_flight_most(const struct terrace *tr);	/* the largest limit of a tier */

/* The region's summary is no longer right (summary.c). Any context. */
void tr_summary_touch(struct terrace *tr, u64 region);
void tr_summary_touch_later(struct terrace *tr, u64 region);	/* ... most likely it is */
/* It is there now. @changed: and not as it was. */
void tr_summary_loaded(struct terrace *tr, u64 region, bool changed);

/* /dev/terrace/NAME, from a start to a stop of the volume (control.c). Sleep. */
void tr_control_add(struct terrace *tr);
void tr_control_remove(struct terrace *tr);
void tr_control_pause(struct terrace *tr);	/* the order that runs is done, the others wait */
void tr_control_resume(struct terrace *tr);
/* `stopping` is set: no query loads a region from here on. Waits for those that do. */
void tr_queries_quiesce(struct terrace *tr);
void tr_scrubs_may(struct terrace *tr);		/* begin earlier than they thought, or later (submit.c) */

/*
 * Writes all that lives on a closed shelf elsewhere (clean.c), so that it is
 * free after the next commit. Blocks moved, or -ENOSPC, -ENOMEM, -ENOENT
 * (nothing lives on it), -ETXTBSY (it is open), -EBUSY (somebody is at work on a
 * region that has blocks there). @order: for this one, which may be told to stop and hears
 * of what cannot be read; NULL: none. Sleeps.
 */
s64 tr_clean_shelf(struct terrace *tr, struct tr_tier *tier, u32 chunk, struct tr_order *order);
/* Is the volume larger than its drives? Then the janitor packs. */
bool tr_overcommitted(const struct terrace *tr);
/* Packs what lies loose on it (pack_shelf.c). Blocks that are packed now, or an error likewise; 0:
 * there is nothing that could be. @must: even with the last free shelf, no other is worth cleaning.
 */
s64 tr_pack_shelf(struct terrace *tr, struct tr_tier *tier, u32 chunk, bool must);
/* Its loose blocks only (sweep.c). @loose, TR_CHUNK_WORDS, gets which they were. @order: likewise. */
s64 tr_sweep_shelf(struct terrace *tr, struct tr_tier *tier, u32 chunk, u64 *loose,
		   struct tr_order *order);

/* Room that no count of used blocks shows (hidden_room.c): is a search wanted? It drops
 * copies and finds out which shelves are worth cleaning. Blocks that it found, 0: none.
 */
bool tr_hidden_room_wanted(struct terrace *tr);
bool tr_hidden_room_none(struct terrace *tr);	/* is it sure that there is none? */
u64 tr_hidden_room_find(struct terrace *tr);

/* Makes room by age when nobody else does (janitor.c). */
void tr_janitor_init(struct terrace *tr);
void tr_janitor_kick(struct terrace *tr);	/* never sleeps */
/* Are there so few free shelves that it cleans some? */
bool tr_shelves_low(struct terrace *tr, const struct tr_tier *tier);
/* Is it sure that there is nothing to make room from? */
bool tr_janitor_gave_up(struct terrace *tr);
u64 tr_releases(struct terrace *tr);	/* changes with all that it may have failed for */

/* New writes wait a little when room runs out (throttle.c). */
struct tr_throttle {
	u32 us;				/* how long; READ_ONCE */
	spinlock_t lock;
	struct bio_list bios;
	struct work_struct work;
};

void tr_throttle_init(struct terrace *tr);
void tr_throttle(struct terrace *tr, struct bio *bio);	/* later; never sleeps */
void tr_throttle_update(struct terrace *tr);	/* room has changed */

/* Places ahead of appends (append.c). */
u32 tr_append_tiers(const struct terrace *tr);
int tr_appends_init(struct terrace *tr);
void tr_appends_quiesce(struct terrace *tr);
void tr_appends_exit(struct terrace *tr);

#define TR_STREAMS	4
struct tr_stream {
	u64 next;
	u32 nr;
	u32 flushes;		/* tr->flushes when it was last gone on with … */
	u32 since;		/* … and blocks since that has changed */
	bool bulk;		/* there was a large one among them */
};

struct tr_streams {
	struct tr_stream stream[TR_STREAMS];
	u32 hand;
};

/* Range discards whose regions are not all emptied yet (discard.c). */
#define TR_OPEN_RANGES	252	/* two journal blocks of records */
void tr_discards_init(struct terrace *tr);
void tr_discards_exit(struct terrace *tr);
/* From recovery: regions [@first, @end) are empty since record @seq. */
void tr_discard_add(struct terrace *tr, u64 first, u64 end, u64 seq);
/* Writes the ranges that are still open to the journal once more, so that the
 * tail may pass their records: their `old` holds the record they stand for.
 * Those that are too many are to be closed before it passes them:
 * tr_discard_closing() names the next one, tr_discard_close() takes it away.
 */
int tr_discards_relog(struct terrace *tr);
bool tr_discard_closing(struct terrace *tr, u64 *first, u64 *end, u64 *seq);
void tr_discard_close(struct terrace *tr, u64 first, u64 end, u64 seq);
void tr_discards_kick(struct terrace *tr);	/* go on emptying */
void tr_discard_work(struct terrace *tr);	/* queues discard_work */
/* No region is left that may yet be emptied; under discard_lock. */
bool tr_discards_walked__f(struct terrace *tr);
/* The newest open range discard over @region, 0: none. */
u64 tr_discard_pending(struct terrace *tr, u64 region);
u64 tr_discard_pending__f(struct terrace *tr, u64 region);	/* under discard_lock */

/*
 * Grace period: every bio that was mapped before this call has ended, on the
 * tiers in @mask. Sleeps. Packed reads hold theirs through decompression.
 */
void tr_epoch_wait(struct terrace *tr, u32 mask);

/* --- metadata pages, checkpoint, recovery (meta.c pages.c checkpoint.c recover.c) */

struct tr_meta_dev {
	struct block_device *bdev;	/* NULL: none */
	sector_t start_sector;
	bool failed;
	u8 tier;			/* tier number, or TERRACE_META_DEVICE */
};

/* Labels while the volume works (label.c). */
int tr_labels_init(struct terrace *tr);
void tr_labels_exit(struct terrace *tr);
/* Both copies of one label, durably. Sleeps; allocates nothing. */
int tr_label_change(struct terrace *tr, struct block_device *bdev, u32 tier,
		    void (*change)(struct tr_label *label, const void *arg), const void *arg);

/* One leaf page (map or space) by number. -ENOENT: no page. -EUCLEAN: damaged on
 * every copy, or a directory above it is. -EIO: it cannot be read now. @buf: TERRACE_MAP_MAX_BLOCKS blocks; *@entry as the parent says.
 */
int tr_page_read(struct terrace *tr, enum terrace_tree tree, u32 tier, u64 number,
		 void *buf, struct tr_entry *entry);
/* Does the region have a page? Reads directory pages if need be. */
int tr_page_lookup(struct terrace *tr, enum terrace_tree tree, u32 tier, u64 number,
		   struct tr_entry *entry);

/* All that is dirty now goes to pages; the journal's tail moves up. */
int tr_checkpoint(struct terrace *tr, bool clean);
void tr_checkpoint_kick(struct terrace *tr);
/* None from here on (one under way is awaited), and again; who asks meanwhile gets -EBUSY. */
void tr_checkpoint_hold(struct terrace *tr);
void tr_checkpoint_release(struct terrace *tr);

/* Gives back memory of clean directory pages, least recently used first. */
u64 tr_pages_evict(struct terrace *tr, u64 bytes);

/*
 * Reads the superblock, scans and replays the journal into deltas, fills the
 * tiers' chunk counts and starts a new activation; the journal is ready then.
 * tr->meta[], lazy, read_only and the tiers are set up before. With read_only
 * nothing is ever written. *@error gets a phrase for the log on failure.
 *
 * tr_super_open() is its first half, which needs only meta[], lazy, read_only
 * and nr_tiers: it fills tr->super, virtual_blocks and nr_regions as they are
 * after the journal (a resize may lie in it). Optional: who calls it sets up
 * regions by these numbers and calls tr_open() then.
 */
int tr_super_open(struct terrace *tr, const char **error);
int tr_open(struct terrace *tr, const char **error);
/* Ends the workers and timers of the metadata side; before the queues go. */
void tr_stop(struct terrace *tr);
/* Frees what tr_open() made, also after it failed half-way; workers are gone. */
void tr_close(struct terrace *tr);
/* For the status line. */
u64 tr_journal_fill(struct terrace *tr);	/* ring blocks in use */
const char *tr_mirror_state(struct terrace *tr);	/* "sync", "lazy", "none", "degraded" */
/* Region deltas found by recovery: taken (and owned) by the first load. */
struct tr_delta *tr_recover_find_delta(struct terrace *tr, u64 region);
void tr_recover_drop_delta(struct terrace *tr, u64 region, struct tr_delta *delta);
void tr_recover_free_delta(struct terrace *tr, struct tr_delta *delta);	/* NULL is fine */

/* --- the volume (volume.c) ---------------------------------------------------- */

enum tr_mode { TR_MODE_WRITE, TR_MODE_READ_ONLY, TR_MODE_FAIL };

/* Down the ladder, never up; one log line and a dm event. Any context. */
void tr_mode_lower(struct terrace *tr, enum tr_mode mode, const char *why, int err);

#define TR_DIR_SHIFT	9		/* regions per table page */
#define TR_LOAD_MUTEXES	16

struct tr_stats {
	u64 reads[TERRACE_MAX_TIERS], writes[TERRACE_MAX_TIERS];
	u64 read_zeros, new_writes, deferred, throttled;
	u64 prepared;			/* blocks, ahead of appends (append.c) */
	u64 moved, left_out;
	u64 packed_reads;		/* bios, or parts of them, read from packs */
	u64 pack_reads, index_reads;	/* reads of runs, and of indexes from shelves */
	u64 index_lookups;		/* reads of their copies on the fast tier */
	u64 cache_hits;			/* clusters and blocks found in the promotion cache */
	u64 ahead;			/* blocks that went there before anybody wanted them */
	u64 rescued;			/* … whose other copy served, for one could not be read */
	u64 hidden;			/* blocks that came to take room for nothing (hidden_room.c) */
	u32 accesses;			/* hits since the senses listen */
	u32 slow_accesses;		/* … reads from elsewhere */
	u32 slow_timed;			/* of these, in this jiffy: how many are asked how long they take */
	unsigned long slow_jiffy;
};

struct terrace {
	struct tr_region ***table;	/* RCU: number >> 9 -> page of pointers, RCU too */
	u64 nr_regions;			/* tr_nr_regions() */
	u64 virtual_blocks;		/* changes under checkpoint_mutex */
	struct tr_region empty;		/* stands for every region without places */
	enum tr_mode mode;		/* READ_ONCE; lowered by tr_mode_lower */
	u32 nr_tiers;
	bool tier_missing;		/* one or more; beside what each hit reads */
	u8 epochs;			/* per tier a bit: index new bios count under (epoch.c) */
	struct tr_stats __percpu *stats;
	struct tr_journal journal;
	struct tr_tier tier[TERRACE_MAX_TIERS];

	struct tr_super super;		/* as of the last durable checkpoint */
	struct tr_meta_dev meta[2];	/* primary; synchronous mirror */
	struct tr_meta_dev lazy;
	struct tr_labels {		/* label.c */
		struct mutex mutex, note_mutex;
		struct tr_label *copy;	/* TERRACE_LABEL_COPIES, for changes, as block is */
		void *block;
		u64 stale_until[TR_STALE_NOTES];	/* what the labels said at the start, highest */
		u32 behind;		/* tiers whose label says less than that */
		unsigned long to_note;	/* metadata copies of which they do not know yet */
	} labels;
	struct tr_meta *pages;		/* pages.c: directory cache, meta bitmap */
	struct tr_recovery *recovery;	/* recover.c */

	struct tr_reserve {		/* reserve.c */
		mempool_t map, page, index, shelf;
		wait_queue_head_t wait;
	} reserve;
	mempool_t region_pool;
	spinlock_t table_lock;
	struct mutex load_mutex[TR_LOAD_MUTEXES];
	u8 tick;			/* coarse time for region->age */
	spinlock_t dirty_lock;
	struct list_head dirty_regions;
	u64 nr_dirty_regions;
	struct mutex resize_mutex;
	struct mutex checkpoint_mutex;
	struct mutex pages_mutex;
	struct mutex epoch_mutex;

	struct tr_owner owner_buf[TERRACE_OWNERS_PER_BLOCK];	/* commit worker */
	u16 owner_offset[TR_OWNER_BURST * TERRACE_OWNERS_PER_BLOCK];
	void *owner_blocks;		/* TR_OWNER_BURST, and padding */
	void *table_blocks;		/* refill worker: TERRACE_TABLE_BLOCKS, and padding */
	void *zeros;			/* TR_MOST_UNIT blocks, for padding */

	atomic_t orders_at_work;	/* batches: they hold regions and room */
	bool orders_held;		/* from presuspend to resume: clients' orders do not begin */
	atomic64_t orders_ended;	/* batches */
	atomic64_t next_pack;		/* id of the next pack */
	struct list_head watched;	/* failing.c; RCU */
	struct tr_control *control;	/* NULL: it could not be made; RCU */
	struct tr_ranges *ranges;	/* pins and hints, NULL: none; RCU */
	struct tr_summary *summary;	/* NULL: nobody has mapped it; RCU */
	struct tr_packing *packing;	/* codecs, indexes of packs (unpack.c) */
	struct tr_appends *appends;
	atomic64_t memory;		/* bytes of regions, leaves, chunks, pages */
	struct tr_tunes tunes;

	struct workqueue_struct *io_wq;		/* deferred bios; may load pages */
	atomic_t cold_reads;			/* sent, and not yet decoded (cold.c) */
	struct workqueue_struct *cold_wq;	/* decoding of what cold.c has read; waits for nothing */
	struct workqueue_struct *commit_wq;	/* ordered: commits */
	struct workqueue_struct *checkpoint_wq;	/* others wait for checkpoints: not theirs */
	struct workqueue_struct *order_wq;	/* move orders; wait for commits */
	struct workqueue_struct *room_wq;	/* refill_work, evict_work: wait for no other work */
	struct workqueue_struct *meta_wq;	/* what may take its time */
	struct work_struct refill_work;
	struct work_struct evict_work;
	struct work_struct sweep_work;		/* home.c */
	struct delayed_work trim_work;
	void *move_area;		/* move.c: kept for the next; xchg */
	spinlock_t flight_lock;		/* order_flight.c: tier->orders, order_areas; scrub_until */
	u64 scrub_until;		/* then scrubs may read again (order_scrub.c) … */
	u32 scrub_mb;			/* … by this limit */
	wait_queue_head_t flight_wait;
	struct semaphore packing_turns;	/* of orders that compress */
	struct list_head order_areas;	/* idle */
	struct work_struct checkpoint_work;
	struct work_struct janitor_work;
	struct delayed_work janitor_again;	/* kicked while it rests: afterwards */
	bool janitor_busy;		/* queued or running */
	unsigned long janitor_next;	/* not before, after it could do nothing */
	u32 janitor_vains;		/* passes in a row that could do nothing */
	bool janitor_looked;		/* then: a tier was at its mark */
	u64 janitor_vain;		/* releases when it could do nothing; 0: never yet */
	u64 janitor_hand;		/* region the janitor looks at next */
	u64 hidden_hand;		/* … and in search of hidden room */
	u64 hidden_began;		/* what stats->hidden was when the search began … */
	u64 hidden_counted, hidden_known;	/* … the last, the last that dropped all it found */
	u64 hidden_ended, hidden_orders;	/* orders_ended, then; if one held a region, ~0: none did */
	unsigned long hidden_failing;	/* jiffies since when it met pages that cannot be read; 0: none */
	bool hidden_left;		/* this one has left copies where they are */
	bool hidden_unread;		/* … and met such pages */
	struct work_struct event_work;		/* meta.c: tells dm of a mode change */
	struct bio_set pieces;
	struct tr_throttle throttle;
	struct tr_streams __percpu *streams, *read_streams;	/* written; read from packs */
	u32 stream_tier;		/* first shelves tier; nr_tiers: none */
	u32 flushes;			/* that came; who loses a race loses one */
	bool high_places;		/* some place needs more than 32 bits */
	spinlock_t discard_lock;
	struct list_head discards;
	u32 nr_discards;		/* in the list, or about to be; discard_lock */
	atomic_t discard_walks;		/* no eviction while one goes on */
	struct work_struct discard_work;
	atomic_t discards_at_work;	/* it is queued, or runs: it may free room */
	struct tr_credits credits;
	spinlock_t room_lock;
	struct bio_list room_waiters;

	struct list_head volumes;	/* all volumes, by uuid */
	struct dm_target *ti;		/* of the live table */
	struct mapped_device *md;
	struct tr_sysfs *sysfs;		/* NULL: it could not be made */
	char name[TERRACE_NAME_BYTES];
	bool read_only;			/* by table line: nothing is written at all */
	bool stopping;			/* suspended: background work keeps still */
	bool noflush;			/* suspending without flush: requeue waiters */
	struct delayed_work tick_work;
	struct delayed_work aside_work;	/* shelves that could not be opened are tried anew */
};

static inline u64 tr_nr_regions(const struct terrace *tr)
{
	/* Pairs with tr_regions_grow(): the table is as long. */
	return smp_load_acquire(&tr->nr_regions);
}

/* A bit for each of the tiers with slots. */
static inline u32 tr_slots_tiers(const struct terrace *tr)
{
	u32 t, slots = 0;

	for (t = 0; t < tr->nr_tiers; t++)
		if (tr->tier[t].kind == TERRACE_KIND_SLOTS)
			slots |= BIT(t);
	return slots;
}

static inline u32 tr_tune(const struct terrace *tr, enum tr_tune_id id)
{
	return READ_ONCE(tr->tunes.value[id]);
}

static inline s64 tr_memory_limit(const struct terrace *tr)
{
	return (s64)tr_tune(tr, TR_TUNE_MEMORY_MB) << 20;
}

/* The live volume of @uuid, NULL: none. Under tr_volumes_mutex. */
struct terrace *tr_volume_find(const u8 *uuid);
extern struct mutex tr_volumes_mutex;
/* Opens: recovery, workers. Nothing on disk changes if it fails. */
struct terrace *tr_volume_start(const struct tr_args *args, struct dm_target *ti, const char **error);
/* Can it go on with this table? -EINVAL and why not; what runs is not touched. */
int tr_volume_fits(const struct terrace *tr, const struct tr_args *args, struct dm_target *ti,
		   const char **error);
/* Takes over the arguments of a table that fits. */
void tr_volume_adopt(struct terrace *tr, const struct tr_args *args, struct dm_target *ti);
/* Everything durable and checkpointed; nothing runs any more afterwards. */
void tr_volume_quiesce(struct terrace *tr);
void tr_volume_wake(struct terrace *tr);
void tr_volume_stop(struct terrace *tr);
void tr_memory_check(struct terrace *tr);	/* after something has grown; never sleeps */
/* Evicts until memory is @spare bytes below its limit, if it can. Sleeps. */
void tr_memory_keep(struct terrace *tr, s64 spare);

/* --- memory for progress (reserve.c) ------------------------------------------- */

/* What must be had: never fails, and may dip into what the system keeps for those
 * that free memory. Each use says why it is bounded, or is in reserve.c.
 */
#define TR_GFP_MUST	(GFP_NOIO | __GFP_MEMALLOC | __GFP_NOFAIL)
/* What can wait, or be done without: never stands in the allocator for long. */
#define TR_GFP_MAY	(GFP_NOIO | __GFP_NORETRY | __GFP_NOWARN)

/* Memory of the map, from @cache or (NULL) kmalloc, for as long as it likes; *@pool is for
 * tr_map_free(), which is for kmalloc's. Sleeps, but waits for nothing of the volume.
 */
void *tr_map_alloc(struct terrace *tr, struct kmem_cache *cache, u32 bytes, mempool_t **pool);
void tr_map_free(void *memory, mempool_t *pool);	/* any context */
u32 tr_map_bytes(const void *memory, const mempool_t *pool);	/* that it really takes */
struct tr_region *tr_reserve_region(struct terrace *tr);
/* Scratch of TERRACE_MAP_MAX_BLOCKS blocks; between the two only I/O is waited for. */
void *tr_page_get(struct terrace *tr);
void tr_page_put(struct terrace *tr, void *page);
/* Until there is memory to load a region with. Nothing is held: no mutex, no pin. */
void tr_reserve_wait(struct terrace *tr);
bool tr_reserve_low(struct terrace *tr);
bool tr_reserve_fill(struct terrace *tr);	/* false: it is low nevertheless. Sleeps */
int tr_reserve_init(struct terrace *tr);
void tr_reserve_exit(struct terrace *tr);

/* The module's slabs (array.c); after the last grace period. */
int tr_arrays_init(void);
void tr_arrays_exit(void);
void tr_arrays_trim(void);	/* once a tick. Sleeps */
void tr_arrays_shrink(void);	/* at once. Sleeps */
int tr_region_pool_init(mempool_t *pool, int nr);
struct tr_region *tr_region_memory(gfp_t gfp);

/* --- sizes (resize.c) ---------------------------------------------------------- */

/* The messages resize <sectors> and grow_tier <n>: durable when they return 0. */
int tr_resize(struct terrace *tr, const char *sectors);
int tr_grow_tier(struct terrace *tr, const char *number);

/* --- what it says of itself (status.c sysfs.c) --------------------------------- */

/* One word of the volume (@tier NULL) or of a tier: a file, a part of the
 * status line. Takes no lock, never sleeps.
 */
struct tr_word {
	struct attribute attr;		/* its file */
	const char *before;		/* … its value in the status line; NULL: not in it */
	u64 (*number)(struct terrace *tr, struct tr_tier *tier);	/* one of these two */
	const char *(*text)(struct terrace *tr, struct tr_tier *tier);
};

/* Both end with a word without a name. */
extern struct tr_word tr_volume_words[], tr_tier_words[];
bool tr_word_applies(const struct tr_word *word, const struct tr_tier *tier);
void tr_status(struct terrace *tr, char *result, unsigned int maxlen);
int tr_message(struct terrace *tr, unsigned int argc, char **argv, char *result, unsigned int maxlen);

/* Its directory in sysfs, from a start to a stop of the volume. Sleep. */
void tr_sysfs_add(struct terrace *tr);
void tr_sysfs_remove(struct terrace *tr);	/* nobody reads a file of it any more */
int tr_sysfs_init(void);
void tr_sysfs_exit(void);

static inline bool tr_writable(const struct terrace *tr)
{
	return READ_ONCE(tr->mode) == TR_MODE_WRITE;
}

#endif
