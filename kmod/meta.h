/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The inside of the metadata side: what meta.c, metaspace.c, pages.c,
 * pageout.c, checkpoint.c, lazy.c and recover.c share and nobody else needs.
 */
#ifndef DM_TERRACE_META_H
#define DM_TERRACE_META_H

#include <linux/completion.h>

#include "core/geometry.h"
#include "terrace.h"

/* --- meta.c: I/O to the metadata area ------------------------------------ */

#define TR_COPIES	2		/* primary and synchronous mirror */
#define TR_COPY_LAZY	2

/* Any number of bios, awaited together; an error is kept per copy. */
struct tr_meta_io {
	atomic_t pending;
	struct completion done;
	struct tr_meta_io_copy {
		struct tr_meta_io *io;
		blk_status_t status;
	} copy[TR_COPIES + 1];
};

int tr_meta_init(struct terrace *tr);
void tr_meta_exit(struct terrace *tr);

struct tr_meta_dev *tr_meta_dev(struct terrace *tr, u32 copy);
bool tr_meta_live(struct terrace *tr, u32 copy);
/* How many of the two synchronous copies are in use. */
u32 tr_meta_nr_live(struct terrace *tr);

void tr_meta_io_start(struct tr_meta_io *io);
/* A bio for @nr blocks from meta block @block: add the pages, then send it. */
struct bio *tr_meta_bio(struct terrace *tr, struct tr_meta_io *io, u32 copy, blk_opf_t opf,
			u64 block, u32 nr);
void tr_meta_add(struct bio *bio, void *data);	/* one block, page aligned */
/* @nr blocks at @buf (page aligned, any kind of memory) to or from one copy. */
void tr_meta_submit(struct terrace *tr, struct tr_meta_io *io, u32 copy, blk_opf_t opf,
		    u64 block, void *buf, u32 nr);
/* The same to every live synchronous copy. */
void tr_meta_write(struct terrace *tr, struct tr_meta_io *io, blk_opf_t opf, u64 block,
		   void *buf, u32 nr);
void tr_meta_flush(struct terrace *tr, struct tr_meta_io *io);
void tr_meta_wait(struct tr_meta_io *io);
/*
 * Waits, then drops the copy that failed while the other did not. 0: every
 * copy still in use has it all. -EIO: none has; the volume is read-only now.
 */
int tr_meta_written(struct terrace *tr, struct tr_meta_io *io, const char *what);
/* One copy, @nr blocks, at once. */
int tr_meta_read(struct terrace *tr, u32 copy, u64 block, void *buf, u32 nr);
void tr_meta_drop(struct terrace *tr, u32 copy, const char *what, int err);
/* Returns when the drives know which copies are out of date: before anything is
 * acknowledged that these lack (label.c).
 */
void tr_labels_note(struct terrace *tr);
/* Every tier's label says what one of them, or the metadata device's, said at the start. */
void tr_labels_agree(struct terrace *tr);

/* --- metaspace.c: blocks of the pages area ------------------------------- */

/*
 * One bit per meta block.
 *   live   the tree in memory, hence the next checkpoint, refers to it
 *   base   the last durable checkpoint refers to it
 *   busy   may not be handed out: live, base, or needed by the lazy mirror
 * All under pages_mutex.
 */
struct tr_metaspace {
	u64 blocks, first;		/* of the area; the first that pages may use */
	unsigned long *live, *base, *busy;
	unsigned long *lazy_has;	/* the lazy mirror's last complete generation */
	unsigned long *lazy_next;	/* … the one being copied */
	unsigned long *lazy_stale;	/* written since the lazy mirror copied it */
	u8 *dirty;			/* per bitmap block: BIT(parity) image is old */
	u64 hand, nr_free;
};

int tr_metaspace_init(struct terrace *tr);
void tr_metaspace_exit(struct terrace *tr);
/* Reads the bitmap of the superblock's generation. */
int tr_metaspace_load(struct terrace *tr);
/* 0: no room. */
u64 tr_metaspace_get__f(struct terrace *tr, u32 nr);
void tr_metaspace_put__f(struct terrace *tr, u64 block, u32 nr);
/* Writes the bitmap images that @generation needs. */
int tr_metaspace_write(struct terrace *tr, u64 generation);
/* @super is durable: it becomes tr->super, what only older ones used is free. */
void tr_metaspace_durable(struct terrace *tr, const struct tr_super *super);
void tr_metaspace_release__f(struct terrace *tr);

/* --- pages.c: the trees and their directories ---------------------------- */

struct tr_tree {
	struct tr_entry root;
	u32 depth;
	u8 id;				/* enum terrace_tree */
	u8 tier;
	u8 slot;			/* in tr_meta.tree, and in the cache's keys */
};

struct tr_dir {
	struct list_head list;		/* tr_meta.clean (LRU) or tr_meta.dirty[level] */
	struct tr_tree *tree;
	u64 index;
	u8 level;
	bool is_dirty;
	struct terrace_dir_disk *disk;	/* entries; the header is filled when written */
	mempool_t *pool;		/* its; NULL: the allocator's */
};

struct tr_meta {
	struct terrace *tr;
	bool ready;			/* opened, not yet stopped: checkpoints may begin */
	bool held;			/* suspended: none does; changes under checkpoint_mutex */
	struct bio_set bios;
	struct tr_metaspace space;
	struct tr_tree tree[1 + TERRACE_MAX_TIERS];
	struct xarray dirs;
	struct list_head clean;
	struct list_head dirty[TR_MAX_DEPTH + 1];
	u32 nr_dirty_dirs;
	struct tr_batch *batch;		/* under checkpoint_mutex */
	u64 nr_put;			/* pages named, or taken out of the tree */
	struct tr_super next_super;	/* the one it makes */
	void *super_block;		/* … encoded; all under checkpoint_mutex */
	unsigned long failing_since;	/* jiffies; 0: the last one succeeded */
	bool retry;			/* a checkpoint did not get to its end; its tail: */
	struct tr_journal_link retry_tail; /* both under checkpoint_mutex */
	struct delayed_work idle_work;
	struct mutex lazy_mutex;	/* one lazy copy at a time; pages_mutex nests in it */
	struct work_struct lazy_work;
	void *lazy_block;		/* for tr_lazy_unclean(); under lazy_mutex */
	struct tr_super lazy_read;	/* … read for it, from one of the two places */
	struct tr_super lazy_super;	/* complete on the lazy mirror; generation 0: nothing */
	bool lazy_clean;		/* one of its two superblocks is marked CLEAN, or may be */
	bool lazy_noted;		/* the labels know that it is out of date */
	u64 lazy_next_try;		/* to take that mark away, in jiffies_64; 0: at once */
	bool lazy_stop;
};

struct tr_tree *tr_tree_of(struct terrace *tr, enum terrace_tree id, u32 tier);
int tr_trees_init(struct terrace *tr);
void tr_trees_exit(struct terrace *tr);
/* Under pages_mutex. Lookup: -ENOENT without a page. */
int tr_tree_lookup__f(struct terrace *tr, struct tr_tree *tree, u64 number,
		      struct tr_entry *entry);
/* @entry->block 0: no page. The old page's blocks are given back. */
int tr_tree_set__f(struct terrace *tr, struct tr_tree *tree, u64 number,
		   const struct tr_entry *entry);
/* Directory @level on the way to @number, loaded; NULL: there is none. */
struct tr_dir *tr_dir_get__f(struct terrace *tr, struct tr_tree *tree, u32 level, u64 number,
			     bool create);
/* All directories of level 1 that lie below the same one as that on the way to @number. */
void tr_dirs_ahead__f(struct terrace *tr, struct tr_tree *tree, u64 number);
/* Makes the trees deep enough for the sizes of now. */
int tr_trees_grow(struct terrace *tr);
/* Writes every dirty directory, children before parents, up to the roots. */
int tr_dirs_write(struct terrace *tr, u64 generation, u64 seq);
/* So many are dirty that they should be written before the end. */
bool tr_dirs_many(struct terrace *tr);

/* --- pageout.c: pages on their way to disk ------------------------------- */

struct tr_out {
	struct tr_tree *tree;
	u64 number;
	void *page;			/* NULL: the page goes away */
	struct tr_entry entry;
	union {
		struct tr_region *region;
		struct tr_chunk *chunk;
		struct tr_dir *dir;
	};
	u64 first_dirty_seq;
};

struct tr_batch {
	u32 nr, blocks;
	void *arena;			/* TR_BATCH_BLOCKS blocks */
	struct tr_out out[TR_BATCH_PAGES];
};

struct tr_batch *tr_batch_create(void);
void tr_batch_destroy(struct tr_batch *batch);
void tr_batch_start(struct tr_batch *batch);
bool tr_batch_full(const struct tr_batch *batch);
/* The next page, with room for @blocks (0: a page that goes away). */
struct tr_out *tr_batch_add(struct tr_batch *batch, u32 blocks);
/* A page of the batch turned out shorter than asked for. */
void tr_batch_trim(struct tr_batch *batch, struct tr_out *out, u32 blocks);
/* Allocates, seals and writes all of them, and waits. -ENOSPC, -EIO. */
int tr_batch_write(struct terrace *tr, struct tr_batch *batch, bool leaves);

/* --- checkpoint.c, capture.c, settle.c, lazy.c ---------------------------- */

/* Captures and writes all dirty regions (chunks) of now. */
int tr_capture_regions(struct terrace *tr, u64 generation);
int tr_capture_chunks(struct terrace *tr, u64 generation);
/* Writes the batch and names its pages in the tree; @captured is told of each. */
int tr_put_out(struct terrace *tr, struct tr_batch *batch, u64 generation,
	       void (*captured)(struct terrace *tr, struct tr_out *out, int err));
/* settle.c: what recovery left, and range discards that are to end, into pages. */
int tr_settle_deltas(struct terrace *tr, u64 generation);
int tr_settle_discards(struct terrace *tr, u64 generation);
/* Makes the superblock say that its copy is alone, before the first record. */
int tr_checkpoint_alone(struct terrace *tr);
/* After a commit: is it time for a checkpoint? */
void tr_checkpoint_poke(struct terrace *tr);
void tr_checkpoint_init(struct terrace *tr);
void tr_checkpoint_exit(struct terrace *tr);

int tr_super_write(struct terrace *tr, struct tr_super *super);

void tr_lazy_init(struct terrace *tr);
void tr_lazy_exit(struct terrace *tr);
/* Nothing is copied any more (what is under way ends after a piece of it); on with it. */
void tr_lazy_hold(struct terrace *tr);
void tr_lazy_release(struct terrace *tr);
int tr_lazy_open(struct terrace *tr);	/* what does the lazy mirror hold? */
bool tr_lazy_lost(struct terrace *tr);	/* not in step: it must be copied anew, whole */
void tr_lazy_kick(struct terrace *tr);
void tr_lazy_drop(struct terrace *tr, const char *why, int err);
int tr_lazy_sync(struct terrace *tr);	/* bring it fully up to date, now */
/* Before the first record after a clean stop: the lazy copy is no longer certain. */
void tr_lazy_unclean(struct terrace *tr);

/* --- commit.c, apply.c, journal.c ---------------------------------------- */

int tr_apply_init(struct terrace *tr);
void tr_apply_exit(struct terrace *tr);
/* Applies what is durable; unless @all, only until a bio wants a commit. */
void tr_journal_apply(struct terrace *tr, bool all);
bool tr_commit_wanted(const struct tr_journal *j);
int tr_commit_init(struct terrace *tr);
void tr_commit_exit(struct terrace *tr);
void tr_journal_seal__f(struct tr_journal *j);
bool tr_journal_may_seal(struct tr_journal *j);
/* Takes journal.lock, with no block open: its records are in sealed ones. May
 * sleep. If the volume is not writable one may stay open.
 */
void tr_journal_lock_sealed(struct terrace *tr) __acquires(&tr->journal.lock);
void tr_journal_recycle(struct terrace *tr, struct list_head *blocks);
/* The ring is free up to @link. */
void tr_journal_advance(struct terrace *tr, const struct tr_journal_link *link);
bool tr_journal_half_full(struct terrace *tr);
/* How long records wait for a commit that nobody asks for, in jiffies. */
static inline unsigned long tr_commit_delay(const struct terrace *tr)
{
	return msecs_to_jiffies(tr_tune(tr, TR_TUNE_COMMIT_MS));
}

/* Where the next block goes, @nr blocks further on. */
static inline u64 tr_ring_block(const struct terrace *tr, u64 block_seq)
{
	return tr->super.journal_start + block_seq % tr->super.journal_blocks;
}

/* --- append.c --------------------------------------------------------------- */

/* The commit worker is about to write these, and somebody waits for them. */
void tr_appends_see(struct terrace *tr, const struct list_head *blocks);

/* --- scan.c, replay.c, recover.c ----------------------------------------- */

#define TR_PIECE_BLOCKS	64

/* The journal as read: from the tail to its provable end. */
struct tr_scan {
	void **piece;
	u32 nr_pieces, max_pieces;
	u64 nr_blocks;
	struct tr_journal_link end;
};

static inline void *tr_scan_block(const struct tr_scan *scan, u64 i)
{
	return scan->piece[i / TR_PIECE_BLOCKS] + i % TR_PIECE_BLOCKS * TERRACE_BLOCK_BYTES;
}

/* For passes that look for a few types among millions of records. */
static inline u8 tr_scan_type(const void *block, u32 i)
{
	return ((const struct terrace_journal_disk *)block)->record[i].type;
}

int tr_scan(struct terrace *tr, u32 copy, struct tr_scan *scan);
/* *@more: a block behind the end of @scan proves that it is damage (tr_jblock_proves_more());
 * 0: none near it. -ENOMEM.
 */
int tr_scan_behind(struct terrace *tr, u32 copy, const struct tr_scan *scan, u64 *more);
/* Gives @copy the blocks from the @have-th on that @scan has. */
int tr_scan_copy(struct terrace *tr, const struct tr_scan *scan, u64 have, u32 copy);
/* Newest valid superblock of a copy; -ENODATA: none. */
int tr_super_read(struct terrace *tr, u32 copy, struct tr_super *super);
void tr_scan_free(struct tr_scan *scan);
void tr_super_link(const struct tr_super *super, struct tr_journal_link *link);

struct tr_recovery {
	struct xarray *regions;		/* TR_DEAL_SHARDS of them: number -> tr_delta */
	atomic64_t nr_deltas;		/* not yet taken */
	u64 nr_records;
	s64 read_us, deal_us, apply_us;
	struct tr_scan scan;		/* until replayed */
	struct tr_super found[TR_COPIES];
	u64 have[TR_COPIES];		/* journal blocks that this copy has */
	bool unread[TR_COPIES];		/* … is not known: none */
	bool behind[TR_COPIES];		/* may be brought up to date from scan */
};

/* copies.c: chooses and sets tr->super; later brings every copy up to date. */
int tr_copies_choose(struct terrace *tr, const char **error);
int tr_copies_equalize(struct terrace *tr);
/* From now on the other copy is out of date. */
void tr_copies_part(struct terrace *tr);
int tr_replay(struct terrace *tr, const char **error);
/* Loads the chunks that recovery left deltas for. */
int tr_recover_load_chunks(struct terrace *tr);

#endif
