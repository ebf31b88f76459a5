// SPDX-License-Identifier: GPL-2.0
/*
 * The journal in memory: credits, blocks being filled, the way of a block
 * from spare to spare. Writing it is commit.c's business.
 *
 * Credits. A record that is appended at the end of a write cannot be refused,
 * so its room is taken before the write begins: in the pool of memory blocks
 * and in the ring. Both are counted in records:
 *
 *   memory  spare blocks * 126 + what the open block still takes
 *   ring    unused blocks * 126 + what the open block still takes
 *   room    min(memory, ring) - credits given out and not used yet
 *
 * What upsets this count is a commit that seals a block which is not full:
 * its rest is lost. Therefore the commit seals only when whole blocks are
 * left for all credits given out (tr_journal_lock_sealed), and new credits are
 * refused while less than keep_blocks of the ring is free. In that state the
 * commit also waits a moment for the writes under way, so that they share one
 * block; after them nobody but the users named below appends:
 *
 *   tr_journal_reserve()       new writes: leaves keep_blocks
 *   tr_journal_reserve_wait()  freeing (discards): leaves half of keep_blocks
 *   the checkpoint itself      open discards: all of it, CHECKPOINT_BLOCKS
 *                              of which nobody else gets, not even by sealing
 *
 * So freeing and checkpoints, which make room, go on when writes must wait.
 */
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "meta.h"

#define PER_BLOCK	((s64)TERRACE_RECORDS_PER_BLOCK)
#define POOL_KEEP	16	/* memory blocks that new writes leave */
/* Of the ring: the two that tr_discards_relog() fills, and what is lost when the
 * commit seals blocks meanwhile.
 */
#define CHECKPOINT_BLOCKS 5

static unsigned int journal_buffers = 512;
module_param(journal_buffers, uint, 0444);
MODULE_PARM_DESC(journal_buffers, "4 KiB journal buffers per volume (64 to 65536)");

/* --- credits ------------------------------------------------------------- */

static u64 ring_free__f(const struct tr_journal *j)
{
	u64 next = j->link.block_seq + (j->cur ? 1 : 0);

	lockdep_assert_held(&j->lock);
	return j->ring_blocks - (next - j->tail_block);
}

static s64 memory_room__f(const struct tr_journal *j)
{
	return j->nr_spare * PER_BLOCK + j->left;
}

static s64 ring_room__f(const struct tr_journal *j)
{
	return ring_free__f(j) * PER_BLOCK + j->left;
}

/* Takes @n credits if that leaves so many blocks of the pool and the ring. */
static bool reserve__f(struct tr_journal *j, u32 n, u32 keep_pool, u32 keep_ring)
{
	s64 need = j->reserved + n;

	if (memory_room__f(j) - keep_pool * PER_BLOCK < need ||
	    ring_room__f(j) - keep_ring * PER_BLOCK < need) {
		j->starved = true;
		return false;
	}
	j->reserved += n;
	return true;
}

/* Somebody was refused: do what brings credits back. */
static void make_room(struct terrace *tr)
{
	struct tr_journal *j = &tr->journal;
	unsigned long flags;
	bool ring;

	spin_lock_irqsave(&j->lock, flags);
	ring = ring_room__f(j) - j->keep_blocks * PER_BLOCK <
	       memory_room__f(j) - POOL_KEEP * PER_BLOCK;
	spin_unlock_irqrestore(&j->lock, flags);
	if (ring)
		tr_checkpoint_kick(tr);
	else
		tr_commit_kick(tr);
}

bool tr_journal_reserve(struct terrace *tr, u32 n)
{
	struct tr_journal *j = &tr->journal;
	unsigned long flags;
	bool ok;

	if (unlikely(!tr_writable(tr)))
		return false;
	spin_lock_irqsave(&j->lock, flags);
	ok = reserve__f(j, n, POOL_KEEP, j->keep_blocks);
	spin_unlock_irqrestore(&j->lock, flags);
	if (unlikely(!ok))
		make_room(tr);
	return ok;
}

static bool reserve_kept(struct terrace *tr, u32 n)
{
	struct tr_journal *j = &tr->journal;
	bool all = READ_ONCE(j->checkpointer) == current, ok;

	spin_lock_irq(&j->lock);
	ok = reserve__f(j, n, 0, all ? 0 : j->keep_blocks / 2);
	spin_unlock_irq(&j->lock);
	if (!ok)
		make_room(tr);
	return ok;
}

int tr_journal_reserve_wait(struct terrace *tr, u32 n)
{
	struct tr_journal *j = &tr->journal;
	bool ok = false;

	might_sleep();
	wait_event(j->wait, !tr_writable(tr) || (ok = reserve_kept(tr, n)));
	return ok ? 0 : -EROFS;
}

/* Credits were used or given back: the commit may be waiting for that. */
static bool drained__f(const struct tr_journal *j)
{
	return unlikely(j->draining);
}

void tr_journal_unreserve(struct terrace *tr, u32 n)
{
	struct tr_journal *j = &tr->journal;
	unsigned long flags;
	bool wake, room = false;

	if (!n)
		return;
	spin_lock_irqsave(&j->lock, flags);
	j->reserved -= n;
	wake = drained__f(j);
	if (unlikely(j->starved)) {
		j->starved = false;
		room = true;
	}
	spin_unlock_irqrestore(&j->lock, flags);
	if (unlikely(wake || room))
		wake_up_all(&j->wait);
	if (unlikely(room))
		tr_room_made(tr);
}

u64 tr_journal_fill(struct terrace *tr)
{
	struct tr_journal *j = &tr->journal;
	u64 used;

	spin_lock_irq(&j->lock);
	used = j->ring_blocks - ring_free__f(j);
	spin_unlock_irq(&j->lock);
	return used;
}

bool tr_journal_half_full(struct terrace *tr)
{
	return tr_journal_fill(tr) > tr->journal.ring_blocks / 2;
}

/* --- appending ----------------------------------------------------------- */

/* Where a record's new data are: the tiers to flush before it is written. */
static u32 points_to(const struct tr_record *record)
{
	switch (record->type) {
	case TERRACE_RECORD_MAP:
	case TERRACE_RECORD_PACK_ADD:
	case TERRACE_RECORD_INDEX_ADD:
	case TERRACE_RECORD_CLEAN:
		return BIT(tr_place_tier(record->new));
	case TERRACE_RECORD_HOME_SET:
		return BIT(record->aux % TERRACE_MAX_TIERS);
	default:
		return 0;
	}
}

static bool frees(const struct tr_record *record)
{
	switch (record->type) {
	case TERRACE_RECORD_MAP:
	case TERRACE_RECORD_UNMAP:
	case TERRACE_RECORD_PACKED:
	case TERRACE_RECORD_HOME_SET:
		return record->old != TR_NO_PLACE;
	case TERRACE_RECORD_PACK_DROP:
	case TERRACE_RECORD_INDEX_DROP:
		return true;
	default:
		return false;
	}
}

/* A block is sealed as soon as it is full: the next one needs its CRC. */
void tr_journal_seal__f(struct tr_journal *j)
{
	lockdep_assert_held(&j->lock);
	tr_jblock_follow(j->cur->data, j->durable.block_seq);
	tr_jblock_seal(j->cur->data, &j->link);
	j->cur->last_record = j->link.record_seq - 1;
	j->cur = NULL;
	j->left = 0;
}

static bool open_block__f(struct terrace *tr)
{
	struct tr_journal *j = &tr->journal;

	j->cur = list_first_entry_or_null(&j->spare, struct tr_journal_block, list);
	if (!j->cur)
		return false;
	list_move_tail(&j->cur->list, &j->open);
	j->nr_spare--;
	j->cur->block_seq = j->link.block_seq;
	j->cur->frees = false;
	j->left = TERRACE_RECORDS_PER_BLOCK;
	tr_jblock_start(j->cur->data, &j->link, j->nonce, tr->super.volume_uuid);
	return true;
}

/*
 * The first record of a block that frees something has it committed if somebody waits for room:
 * who began to wait after it has asked for that himself (tr_defer_room()).
 */
u64 tr_journal_append(struct terrace *tr, const struct tr_record *record)
{
	struct tr_journal *j = &tr->journal;
	bool kick = false, timer = false, wake;
	unsigned long flags;
	u64 seq;

	spin_lock_irqsave(&j->lock, flags);
	seq = j->next_record;
	j->reserved--;
	wake = drained__f(j);
	if (!j->cur && !open_block__f(tr)) {
		spin_unlock_irqrestore(&j->lock, flags);
		/* Its writer had no credit. The record is lost, so nothing may
		 * become durable any more.
		 */
		WARN_ON_ONCE(1);
		tr_mode_lower(tr, TR_MODE_FAIL, "journal buffers overrun", -ENOBUFS);
		return seq;
	}
	j->next_record++;
	tr_jblock_append(j->cur->data, record);
	j->tiers |= points_to(record);
	if (!j->cur->frees && frees(record)) {
		j->cur->frees = true;
		j->frees_pending++;
		kick = tr_room_is_waited_for(tr);
	}
	if (!--j->left) {
		tr_journal_seal__f(j);
		kick |= j->nr_spare < j->nr_blocks / 2;
	}
	if (!j->timer_armed) {
		j->timer_armed = true;
		timer = true;
	}
	spin_unlock_irqrestore(&j->lock, flags);
	if (unlikely(wake))
		wake_up_all(&j->wait);
	if (unlikely(timer) && tr_writable(tr))
		queue_delayed_work(tr->commit_wq, &j->timer_work, tr_commit_delay(tr));
	if (unlikely(kick))
		tr_commit_kick(tr);
	return seq;
}

bool tr_frees_pending(struct terrace *tr)
{
	return READ_ONCE(tr->journal.frees_pending);
}

/* --- back again ---------------------------------------------------------- */

/*
 * May the commit seal the open block although it is not full? Only if all
 * credits given out still find whole blocks, beside those of the checkpoint.
 * When the ring is low: better not before the writes under way have appended.
 */
static bool may_seal__f(struct tr_journal *j, bool patient)
{
	s64 blocks = min_t(s64, j->nr_spare, (s64)ring_free__f(j) - CHECKPOINT_BLOCKS);
	bool ok = !j->cur || !j->reserved || blocks * PER_BLOCK >= j->reserved;

	if (patient && j->cur && j->reserved && ring_free__f(j) < j->keep_blocks)
		ok = false;
	j->draining = !ok;
	return ok;
}

static bool may_seal(struct tr_journal *j, bool patient)
{
	bool ok;

	spin_lock_irq(&j->lock);
	ok = may_seal__f(j, patient);
	spin_unlock_irq(&j->lock);
	return ok;
}

bool tr_journal_may_seal(struct tr_journal *j)
{
	return may_seal(j, true);
}

/*
 * Between test and sealing no credit may be given out, so both are one step
 * under the lock.
 */
void tr_journal_lock_sealed(struct terrace *tr) __acquires(&tr->journal.lock)
{
	struct tr_journal *j = &tr->journal;

	if (!may_seal(j, true))
		wait_event_timeout(j->wait, may_seal(j, true) || !tr_writable(tr), HZ / 10);
	spin_lock_irq(&j->lock);
	while (tr_writable(tr) && !may_seal__f(j, false)) {
		spin_unlock_irq(&j->lock);
		/* Credits are used or given back when the writes that hold them
		 * end, spare blocks come from free_work: neither needs a commit.
		 */
		wait_event(j->wait, may_seal(j, false) || !tr_writable(tr));
		spin_lock_irq(&j->lock);
	}
	/* On a volume that is not written any more the block stays open: it will
	 * never be durable, and who holds credits may still append.
	 */
	if (j->cur && tr_writable(tr))
		tr_journal_seal__f(j);
}

void tr_journal_recycle(struct terrace *tr, struct list_head *blocks)
{
	struct tr_journal *j = &tr->journal;
	struct tr_journal_block *block;
	u32 nr = 0, nr_frees = 0;
	bool starved;

	if (list_empty(blocks))
		return;
	list_for_each_entry(block, blocks, list) {
		nr++;
		nr_frees += block->frees;
	}
	spin_lock_irq(&j->lock);
	list_splice_init(blocks, &j->spare);
	j->nr_spare += nr;
	j->frees_pending -= nr_frees;
	starved = j->starved;
	j->starved = false;
	spin_unlock_irq(&j->lock);
	wake_up_all(&j->wait);
	if (starved || nr_frees)
		tr_room_made(tr);
}

void tr_journal_advance(struct terrace *tr, const struct tr_journal_link *link)
{
	struct tr_journal *j = &tr->journal;

	spin_lock_irq(&j->lock);
	j->tail_block = link->block_seq;
	j->starved = false;
	spin_unlock_irq(&j->lock);
	wake_up_all(&j->wait);
	tr_room_made(tr);
}

/* --- set-up -------------------------------------------------------------- */

static int fill_pool(struct tr_journal *j)
{
	u32 nr = clamp(journal_buffers, 64u, 65536u);
	struct tr_journal_block *block;

	while (j->nr_blocks < nr) {
		block = kzalloc(sizeof(*block), GFP_KERNEL);
		if (!block)
			return -ENOMEM;
		list_add(&block->list, &j->spare);
		j->nr_blocks++;
		j->nr_spare++;
		block->data = (void *)__get_free_page(GFP_KERNEL);
		if (!block->data)
			return -ENOMEM;
	}
	return 0;
}

int tr_journal_init(struct terrace *tr)
{
	struct tr_journal *j = &tr->journal;
	int err;

	spin_lock_init(&j->lock);
	mutex_init(&j->apply_mutex);
	INIT_LIST_HEAD(&j->spare);
	INIT_LIST_HEAD(&j->open);
	INIT_LIST_HEAD(&j->written);
	INIT_LIST_HEAD(&j->applying);
	bio_list_init(&j->flushes);
	bio_list_init(&j->fuas);
	j->ring_blocks = tr->super.journal_blocks;
	/* 1/8 of the ring; of a small one at least what two fragmented
	 * regions need to be emptied.
	 */
	j->keep_blocks = clamp_t(u64, j->ring_blocks / 8, 16, 2048);
	err = tr_commit_init(tr);
	return err ?: tr_writable(tr) ? fill_pool(j) : 0;
}

static void free_blocks(struct list_head *blocks)
{
	struct tr_journal_block *block, *next;

	if (!blocks->next)
		return;
	list_for_each_entry_safe(block, next, blocks, list) {
		free_page((unsigned long)block->data);
		kfree(block);
	}
	INIT_LIST_HEAD(blocks);
}

void tr_journal_exit(struct terrace *tr)
{
	struct tr_journal *j = &tr->journal;

	free_blocks(&j->spare);
	free_blocks(&j->open);
	free_blocks(&j->written);
	free_blocks(&j->applying);
}
