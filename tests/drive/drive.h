/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dm-drive: a block device in RAM that behaves, and misbehaves, like a drive.
 * Documentation/drive-model.md is the manual; this is the map of the code.
 *
 *	target.c     device-mapper glue: table line in, bios in
 *	config.c     key=value parameters     preset.c  named sets of them
 *	registry.c   drives by name: one may outlive its tables
 *	fault.c      errors and delays asked for by the tester
 *	media.c      what is on the platters: a sparse tree of pages
 *	cache.c      what a power cut would take away again
 *	queue.c      when commands complete   model_time.c  the arithmetic of it
 *	power.c      groups that lose power together   cut.c  what a cut leaves
 *	message.c    dmsetup message          status.c  dmsetup status
 *	record.c     what reached all drives, in order
 *
 * A command passes fault -> media/cache (data move at once, in process
 * context) -> queue (waits for its virtual time) -> completion, in hard
 * interrupt context of a timer, or at once if the drive takes no time.
 *
 * Locks, outermost first:
 *
 *	registry mutex	   the list of drives, the list of groups, members
 *	power->mutex	   revive against roll-back against reload
 *	drive->media_lock  pages, undo log. Process context only
 *	drive->queue_lock  clock, queues, counters, faults. Taken in interrupts
 *	record_lock	   the record of all drives (record.c). Taken in interrupts
 */
#ifndef DM_DRIVE_H
#define DM_DRIVE_H

#include <linux/bio.h>
#include <linux/device-mapper.h>
#include <linux/hrtimer.h>
#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "model_time.h"

#define DM_MSG_PREFIX	"drive"

#define BLOCK_SHIFT	12
#define BLOCK_BYTES	((unsigned int)BIT(BLOCK_SHIFT))
#define BLOCK_SECTORS	(BLOCK_BYTES >> SECTOR_SHIFT)
#define ALL_SECTORS	((1U << BLOCK_SECTORS) - 1)

#define NAME_LEN	32

/**
 * struct drive_config - everything a table line can say
 * @model: timing
 * @cache: 1 if the drive has a volatile write cache
 * @powercut: 1 if pre-images are kept so that a cut can take writes back
 * @cache_bytes: size of the undo log; beyond it the oldest write is destaged
 * @atom: bytes the drive writes atomically when power fails
 * @reorder: 1 if each unflushed write has its own fate, 0 if a cut leaves a
 *	prefix of them in order of arrival
 * @survive: percentage of the unflushed writes that survive a cut whole
 * @tear: percentage of them that are torn
 * @seed: of all choices at a cut
 * @lbs: logical block size
 * @pbs: physical block size, also minimum_io_size
 * @io_opt: optimal_io_size
 * @rotational: 1 if it shows as rotational
 * @erase_bytes: erase unit, for the wear counter only
 * @discard: 1 if it can discard
 * @lie_flush: 1 if it acknowledges flushes but does nothing
 * @lie_fua: 1 if it acknowledges FUA writes but only caches them
 * @keep: 1 if the contents stay when the last table is gone
 * @preset: name of the preset this came from
 * @group: drives of the same group lose power together; empty: alone
 */
struct drive_config {
	struct drive_model model;
	u64 cache;
	u64 powercut;
	u64 cache_bytes;
	u64 atom;
	u64 reorder;
	u64 survive;
	u64 tear;
	u64 seed;
	u64 lbs;
	u64 pbs;
	u64 io_opt;
	u64 rotational;
	u64 erase_bytes;
	u64 discard;
	u64 lie_flush;
	u64 lie_fua;
	u64 keep;
	char preset[NAME_LEN];
	char group[NAME_LEN];
};

/* ---- power (power.c) ---- */

/**
 * struct drive_power - one machine's mains; its drives go dark together
 * @node: in the list of groups, under the registry mutex
 * @name: of the group, or empty
 * @users: drives holding it, under the registry mutex
 * @members: those drives, under @mutex
 * @mutex: serialises roll-back, revival and membership
 * @epoch: odd while off; a command belongs to the epoch it came in
 * @cuts: how many so far, for the choices to differ from cut to cut
 * @off: rolls the drives back after a cut
 * @timer: cuts at a given time
 */
struct drive_power {
	struct list_head node;
	char name[NAME_LEN];
	unsigned int users;
	struct list_head members;
	struct mutex mutex;	/* members, revival, roll-back */
	atomic_t epoch;
	u32 cuts;
	struct work_struct off;
	struct hrtimer timer;
};

enum drive_trigger_kind {
	TRIGGER_WRITE, TRIGGER_BYTES, TRIGGER_FLUSH, TRIGGER_FUA,
	TRIGGER_BARRIER, TRIGGER_DISCARD, TRIGGER_KINDS
};

/**
 * struct drive_trigger - when to cut the power, for one enum drive_trigger_kind
 * @left: how many more of it, 0 = not armed
 * @after: of flushes and FUAs: when it is complete, not before it takes effect
 */
struct drive_trigger {
	u64 left;
	bool after;
};

/* ---- faults (fault.c) ---- */

/**
 * struct drive_fault - an error or a delay on some commands
 * @node: in drive->faults
 * @kinds: mask of 1 << enum drive_kind
 * @start: first byte
 * @end: byte after the last
 * @skip: matching commands still to let pass
 * @left: how often it still strikes, 0 = for ever
 * @delay_ns: extra time
 * @status: what the command ends with, BLK_STS_OK for a delay only
 * @hold: it waits for the message release before its data move
 */
struct drive_fault {
	struct list_head node;
	unsigned int kinds;
	u64 start;
	u64 end;
	u64 skip;
	u64 left;
	u64 delay_ns;
	blk_status_t status;
	bool hold;
};

/* ---- the undo log (cache.c) ---- */

/**
 * struct drive_write - a write, or discard, that a power cut may undo
 * @log: in drive->log, oldest first, or in drive->destaged
 * @done: in drive->done or drive->settled once it is complete
 * @blocks: its struct drive_undo
 * @id: counts from 1
 * @done_seq: position in the order of completion, 0 = in flight
 */
struct drive_write {
	struct list_head log;
	struct list_head done;
	struct list_head blocks;
	u64 id;
	u64 done_seq;
};

/**
 * struct drive_undo - what one write replaced in one block
 * @bucket: in drive->undo, newest first
 * @of_write: in drive_write->blocks
 * @block: its number
 * @page: what was there before, NULL = zeros
 * @mask: the sectors to be undone
 */
struct drive_undo {
	struct hlist_node bucket;
	struct list_head of_write;
	u64 block;
	struct page *page;
	u8 mask;
};

/**
 * struct drive_op - a command on its way, in the bio's private data
 * @node: in drive->running
 * @list: in drive->waiting, drive->starved, drive->held or a list of finished ones
 * @bio: the bio
 * @write: its undo record, NULL if nothing can be undone
 * @iter: what is still to be written of @bio
 * @cmd: where and what, for the clock
 * @covers: of a flush: the completions before it
 * @covers_bytes: the same in bytes
 * @arrival_ns: when it came
 * @delay_ns: extra time by a fault
 * @done_ns: when it completes
 * @epoch: of the power when it came
 * @recorded: its number in the record, 0 = it is not there
 * @status: how it ends
 * @fua: durable before it completes
 * @cut_after: the power goes when it is complete
 * @hold: a fault holds it
 */
struct drive_op {
	struct rb_node node;
	struct list_head list;
	struct bio *bio;
	struct drive_write *write;
	struct bvec_iter iter;
	struct drive_cmd cmd;
	u64 covers;
	u64 covers_bytes;
	u64 arrival_ns;
	u64 delay_ns;
	u64 done_ns;
	u64 recorded;
	u32 epoch;
	blk_status_t status;
	bool fua;
	bool cut_after;
	bool hold;
};

/**
 * struct drive_counters - what status reports
 * @count: commands received, by kind
 * @bytes: of these, by kind
 * @fua: writes with FUA
 * @errors: commands failed by a fault
 * @struck: commands that met a fault, also one that only delays or holds, or a dead drive
 * @busy_ns: sum of the times from arrival to virtual completion
 * @late_ns: the longest a completion came after its virtual time
 * @destaged: writes made durable because the undo log was full; this and
 *	the following are not under queue_lock but under media_lock
 * @lost: writes dropped by the last cut
 * @torn: writes torn by it
 * @survived: unflushed writes that survived it
 */
struct drive_counters {
	u64 count[DRIVE_KINDS];
	u64 bytes[DRIVE_KINDS];
	u64 fua;
	u64 errors;
	u64 struck;
	u64 busy_ns;
	u64 late_ns;
	u64 destaged;
	u64 lost;
	u64 torn;
	u64 survived;
};

#define UNDO_BUCKETS_SHIFT	13

/**
 * struct drive - one drive
 * @node: in the registry
 * @name: of the drive
 * @tables: targets that refer to it, under the registry mutex
 * @kept: it stays without tables, under the registry mutex
 * @bytes: its size
 * @config: how it behaves; changes under both locks
 * @power: its mains
 * @member: in power->members
 * @recorded_in: the record that it is in, under record_lock as
 * @recorded_as: its number there
 *
 * @media_lock: protects the following
 * @pages: contents by 4 KiB block, absent = zeros
 * @log: undoable writes, oldest first
 * @destaged: writes that cannot be undone but may be in flight
 * @undo: their blocks by hash of the block number, newest first
 * @undo_blocks: number of these blocks
 * @next_id: of the next write
 *
 * @queue_lock: protects the following; taken in interrupts
 * @clock: timing state
 * @running: commands by completion time
 * @waiting: commands not started yet, only with NCQ
 * @active: number in @running
 * @timer: fires at the first completion in @running
 * @done: completed writes that a flush may cover, in order of completion
 * @settled: completed writes that can no more be undone
 * @done_seq: completions of writes so far
 * @flushed_seq: completions that are durable
 * @done_bytes: bytes of completed cached writes so far
 * @flushed_bytes: those of them that are durable
 * @triggers: armed cuts
 * @faults: injected errors
 * @faulty: @faults is not empty, read without the lock
 * @dead: the tester declared it dead
 * @counters: statistics
 *
 * @held: commands that a fault holds, under @queue_lock
 * @nr_held: number in @held
 * @starved: commands that found no memory, or were released, under @queue_lock
 * @feed: works on them, where it may sleep
 */
struct drive {
	struct list_head node;
	char name[NAME_LEN];
	unsigned int tables;
	bool kept;
	u64 bytes;
	struct drive_config config;
	struct drive_power *power;
	struct list_head member;
	u32 recorded_in;
	u16 recorded_as;

	spinlock_t media_lock;	/* contents and undo log */
	struct xarray pages;
	struct list_head log;
	struct list_head destaged;
	struct hlist_head *undo;
	u64 undo_blocks;
	u64 next_id;

	spinlock_t queue_lock;	/* clock, queues, counters, faults */
	struct drive_clock clock;
	struct rb_root_cached running;
	struct list_head waiting;
	unsigned int active;
	struct hrtimer timer;
	struct list_head done;
	struct list_head settled;
	u64 done_seq;
	u64 flushed_seq;
	u64 done_bytes;
	u64 flushed_bytes;
	struct drive_trigger triggers[TRIGGER_KINDS];
	struct list_head faults;
	bool faulty;
	bool dead;
	struct drive_counters counters;

	struct list_head held;
	unsigned int nr_held;
	struct list_head starved;
	struct work_struct feed;
};

static inline bool drive_op_powered(const struct drive *d,
				    const struct drive_op *op)
{
	return !(op->epoch & 1) && op->epoch == (u32)atomic_read(&d->power->epoch);
}

static inline bool drive_is_off(const struct drive *d)
{
	return atomic_read(&d->power->epoch) & 1;
}

/* config.c: -EINVAL and *error set on failure */
int drive_config_set(struct drive_config *c, const char *word, char **error);
int drive_config_check(struct drive_config *c, u64 bytes, char **error);
bool drive_config_reloads(const char *word);
unsigned int drive_config_emit(const struct drive_config *c,
			       const struct drive_config *but,
			       char *result, unsigned int maxlen);
int drive_parse_number(const char *text, u64 *value, bool time);

/* preset.c */
const struct drive_config *drive_preset(const char *name);

/* registry.c */
struct drive *drive_open(const char *name, u64 bytes,
			 const struct drive_config *c, char **error);
void drive_close(struct drive *d);
void drive_apply(struct drive *d, const struct drive_config *c, u64 bytes);
void drive_registry_exit(void);

/* fault.c: all under queue_lock, except message parsing */
void drive_fault_strike(struct drive *d, struct drive_op *op);
int drive_fault_add(struct drive *d, unsigned int argc, char **argv);
void drive_fault_clear(struct drive *d);

/* target.c */
void drive_release(struct drive *d);

/* media.c: under media_lock, or while the power is off */
struct page *drive_media_page(struct drive *d, u64 block);
int drive_media_swap(struct drive *d, u64 block, struct page **page, gfp_t gfp);
void drive_media_forget(struct drive *d, u64 block);
void drive_media_read(struct drive *d, struct drive_op *op);
void drive_media_take(void *to, struct bio *bio, struct bvec_iter *iter,
		      unsigned int bytes);
void drive_media_free(struct drive *d);

/* cache.c */
int drive_cache_write(struct drive *d, struct drive_op *op);
u64 drive_cache_settle(struct drive *d);
void drive_cache_forget_all(struct drive *d);
int drive_cache_init(void);
void drive_cache_exit(void);

/* cut.c */
int drive_cache_roll_back(struct drive *d);

/* queue.c */
void drive_queue(struct drive *d, struct drive_op *op);
void drive_queue_fail_all(struct drive *d);
enum hrtimer_restart drive_queue_timer(struct hrtimer *timer);
u64 drive_queue_dirty_bytes(const struct drive *d);

/* power.c */
struct drive_power *drive_power_get(const char *group);
void drive_power_put(struct drive_power *p);
void drive_power_join(struct drive_power *p, struct drive *d);
void drive_power_leave(struct drive *d);
void drive_power_cut(struct drive_power *p);
void drive_power_cut_at(struct drive_power *p, u64 delay_ns);
void drive_power_settle(struct drive_power *p);
int drive_power_revive(struct drive_power *p);

/* target.c */
void drive_start(struct drive *d, struct drive_op *op);
void drive_feed(struct work_struct *work);

/* record.c */
#define MAX_RECORD_BYTES	BIT_ULL(31)
void drive_record_command(struct drive *d, struct drive_op *op);
void drive_record_done(struct drive *d, const struct drive_op *op, bool durable);
void drive_record_cut(struct drive *d);
int drive_record_init(void);
void drive_record_exit(void);

/* message.c, status.c */
int drive_message(struct dm_target *ti, unsigned int argc, char **argv,
		  char *result, unsigned int maxlen);
void drive_status(struct dm_target *ti, status_type_t type,
		  unsigned int flags, char *result, unsigned int maxlen);

/**
 * struct drive_target - one table's view of a drive
 * @drive: the drive
 * @config: what this table line says; takes effect at resume
 */
struct drive_target {
	struct drive *drive;
	struct drive_config config;
};

#endif
