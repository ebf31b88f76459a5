/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The journal and its commits. Part of terrace.h, which has the lock table.
 */
#ifndef TR_JOURNAL_H
#define TR_JOURNAL_H

#include <linux/bio.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include "core/journal_block.h"

struct terrace;
struct tr_io;

/*
 * Records are collected in blocks in memory, in the order of publication, and
 * written by the commit worker. Room is reserved before the data I/O:
 *   reserve(n) … append ≤ n times … unreserve(the rest)
 * A credit is room in the memory buffers *and* in the ring.
 */
struct tr_journal_block {
	struct list_head list;
	void *data;			/* TERRACE_BLOCK_BYTES */
	u64 block_seq;
	u64 last_record;		/* set when sealed */
	bool frees;			/* some record has an old place */
};

/* A block is open -> written -> applying -> spare again. */
struct tr_journal {
	spinlock_t lock;
	struct tr_journal_link link;	/* behind the last sealed block */
	struct tr_journal_link durable;	/* behind the last durable block */
	u64 nonce;
	struct tr_journal_block *cur;	/* being filled: the last of open, or NULL */
	struct list_head spare;		/* empty blocks */
	struct list_head open;		/* not yet written, oldest first */
	struct list_head written;	/* durable, not yet applied; commit worker only */
	struct list_head applying;	/* applied, their frees not yet done */
	u32 nr_blocks, nr_spare;
	u32 left;			/* records that cur still takes */
	u32 tiers;			/* mask: where records in open point to */
	u32 frees_pending;		/* blocks whose frees are not yet done */
	s64 reserved;			/* credits given out and not used */
	u64 next_record;		/* number the next record gets */
	u64 first_record;		/* … the first one of this activation got */
	u64 durable_record;		/* every record up to this one is durable; READ_ONCE */
	u64 applied_record;		/* … and in the chunks' committed bitmaps; apply_mutex */
	u64 freed_record;		/* … and what it freed is free; only of blocks with frees */
	u64 tail_block, ring_blocks;
	u32 keep_blocks;		/* of the ring: not for tr_journal_reserve() */
	bool starved;			/* somebody was refused credits */
	bool draining;			/* the commit waits for reserved to fall */
	bool committing;		/* a round is under way */
	bool timer_armed;
	struct task_struct *checkpointer; /* may use all of the ring */
	struct bio_list flushes;	/* empty PREFLUSH bios */
	struct bio_list fuas;		/* data bios that wait for the commit */
	struct tr_commit *commit;	/* commit.c */
	struct mutex apply_mutex;	/* committed bitmaps change; checkpoints read them */
	struct work_struct commit_work;
	struct work_struct free_work;
	struct workqueue_struct *free_wq; /* commits may wait for it, so it is not theirs */
	struct delayed_work timer_work;
	struct wait_queue_head wait;	/* durable_record or credits moved */
};

int tr_journal_init(struct terrace *tr);	/* by tr_open(), which then sets the link */
void tr_journal_exit(struct terrace *tr);
bool tr_journal_reserve(struct terrace *tr, u32 n);	/* never sleeps */
/* Sleeps; -EROFS. May use half of what is kept back of the ring: for freeing
 * (discards), which must go on when new writes have to wait for a checkpoint.
 * A holder of credits waits for no commit and no checkpoint.
 */
int tr_journal_reserve_wait(struct terrace *tr, u32 n);
void tr_journal_unreserve(struct terrace *tr, u32 n);
/* Number of the record. In region->lock, so that the order of records of one
 * block is the order of publication. Consumes one credit.
 */
u64 tr_journal_append(struct terrace *tr, const struct tr_record *record);
/* Queue a bio until everything completed so far is durable. Never sleep. An empty PREFLUSH:
 * true: it was sent nowhere, its drive is set, and tr_commit_flushed() is due at its end.
 */
bool tr_commit_flush(struct terrace *tr, struct tr_io *io, struct bio *bio);
void tr_commit_flushed(struct tr_io *io, blk_status_t status);
void tr_commit_fua(struct terrace *tr, struct bio *bio);	/* ended through bio_endio */
void tr_commit_kick(struct terrace *tr);
/* Commit now and wait: everything appended before the call is durable. */
int tr_commit(struct terrace *tr);

#endif
