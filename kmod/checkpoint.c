// SPDX-License-Identifier: GPL-2.0
/*
 * Checkpoints: what the journal says goes into the pages, and the journal's
 * tail moves up. One at a time.
 *
 *   1  commit; tail = the end of the durable journal
 *   2  wait until the records up to there are applied to the chunks
 *   3  write the open range discards to the journal once more, behind tail
 *   4  put what recovery left into pages (settle.c); capture everything that
 *      is dirty, write it, name it in the trees
 *   5  commit again
 *   6  directories, meta bitmap, flush, superblock
 *   7  free what only the superblock before referred to; the ring up to tail
 *
 * Why nothing is lost that lies before the new tail. Let r be a record up to
 * tail, X its region. X was marked dirty before r was appended, in the same
 * critical section under X's lock. That r is durable was learnt under
 * journal.lock, which the append took after the mark: so in step 4 X is on the
 * dirty list, or a checkpoint has captured it since. Captures take X's lock, so
 * they wait for that section and the image holds r as well. No grace period is
 * needed: it would be the longest part of a checkpoint, some 8 ms, in which
 * fsyncs fill a small journal. (Chunks are dirty when their records have been
 * applied, which step 2 awaits.) Step 4 fails as a whole (and the tail stays)
 * unless every image reached the disk. Range discards change no region when
 * they are recorded; step 3 keeps them in the journal until they have. They are
 * recorded and listed in one section under discard_lock, which step 3 takes.
 *
 * Why it needs no journal room that is not there. It makes the room, so it must
 * not wait for it. It appends in step 3 only: two blocks at most (discard.c),
 * which the ring keeps for it (journal.c). A checkpoint that fails or runs out
 * of room for pages leaves the tail where it is; the next one then takes the
 * same tail as this one, and has not to repeat step 3.
 *
 * Why a superblock never refers to what the journal does not hold. An image
 * of step 4 may hold a record that is not yet durable. It was appended before
 * step 5, and step 5 makes everything durable that was. Otherwise the next
 * activation would give the number to another record, which the page would
 * claim to contain. Chunk images hold durable records only.
 *
 * Images may be newer than the tail, each by a different amount. Replay does
 * not mind: of each block the newest record decides, and it is in the image
 * or in the journal; chunks skip records up to their page's sequence.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "meta.h"

#define IDLE_SECONDS	30
#define PATIENCE_SECONDS 60	/* with a checkpoint that cannot read a page */

/* --- the steps ----------------------------------------------------------- */

static int find_tail(struct terrace *tr, struct tr_journal_link *tail)
{
	struct tr_journal *j = &tr->journal;
	int err = tr_commit(tr);

	if (err)
		return err;
	spin_lock_irq(&j->lock);
	*tail = j->durable;
	spin_unlock_irq(&j->lock);
	/* Pairs with the release in apply_block(). */
	wait_event(j->wait, smp_load_acquire(&j->applied_record) + 1 >= tail->record_seq ||
		   !tr_writable(tr));
	return tr_writable(tr) ? 0 : -EROFS;
}

/* What recovery left in deltas is older than any tail of ours. */
static int capture_all(struct terrace *tr, u64 generation)
{
	int err;

	err = tr_settle_deltas(tr, generation);
	if (!err)
		err = tr_settle_discards(tr, generation);
	if (!err)
		err = tr_capture_regions(tr, generation);
	if (err)
		return err;
	tr_memory_keep(tr, 0);
	return tr_recover_load_chunks(tr) ?: tr_capture_chunks(tr, generation);
}

static bool all_clean(struct terrace *tr, const struct tr_journal_link *tail)
{
	struct tr_journal *j = &tr->journal;
	bool clean;
	u32 t;

	spin_lock_irq(&j->lock);
	clean = !j->cur && list_empty(&j->open) && j->link.block_seq == tail->block_seq;
	spin_unlock_irq(&j->lock);
	for (t = 0; t < tr->nr_tiers; t++)
		clean &= list_empty(&tr->tier[t].dirty_chunks);
	return clean && !READ_ONCE(tr->nr_dirty_regions);
}

static void fill_super(struct terrace *tr, struct tr_super *super,
		       const struct tr_journal_link *tail, u64 generation, bool clean)
{
	u32 t;

	*super = tr->super;
	super->generation = generation;
	super->flags &= ~(TERRACE_SUPER_CLEAN | TERRACE_SUPER_LAZY);
	if (clean)
		super->flags |= TERRACE_SUPER_CLEAN;
	super->flags &= ~TERRACE_SUPER_LAZY_LOST;
	if (tr_lazy_lost(tr))
		super->flags |= TERRACE_SUPER_LAZY_LOST;
	super->virtual_blocks = READ_ONCE(tr->virtual_blocks);
	super->next_id = atomic64_read(&tr->next_pack);
	super->tail_block_seq = tail->block_seq;
	super->tail_nonce = tail->nonce;
	super->tail_prev_crc = tail->crc;
	super->tail_record_seq = tail->record_seq - 1;
	super->map_root = tr->pages->tree[0].root;
	super->map_depth = tr->pages->tree[0].depth;
	for (t = 0; t < tr->nr_tiers; t++) {
		super->tier[t].space_root = tr->pages->tree[1 + t].root;
		super->tier[t].data_blocks = tr->tier[t].next_blocks;
		super->tier[t].reserve_blocks = tr->tier[t].next_reserve;
	}
}

/* Steps 5 to 7. */
static int finish(struct terrace *tr, const struct tr_journal_link *tail, u64 generation,
		  bool clean)
{
	struct tr_super *super = &tr->pages->next_super;
	int err;

	err = tr_commit(tr);
	/* Who made it read-only did so to keep the tail where it is. */
	if (!err && !tr_writable(tr))
		err = -EROFS;
	if (!err)
		err = tr_dirs_write(tr, generation, READ_ONCE(tr->journal.durable_record));
	if (!err)
		err = tr_metaspace_write(tr, generation);
	if (err)
		return err;
	fill_super(tr, super, tail, generation, clean && all_clean(tr, tail));
	err = tr_writable(tr) ? tr_super_write(tr, super) : -EROFS;
	if (!err) {
		tr_metaspace_durable(tr, super);
		tr_journal_advance(tr, tail);
	}
	return err;
}

/* Sizes change under checkpoint_mutex (resize.c). */
static bool sizes_changed(struct terrace *tr)
{
	const struct tr_super *super = &tr->super;
	bool changed = super->virtual_blocks != tr->virtual_blocks;
	u32 t;

	lockdep_assert_held(&tr->checkpoint_mutex);
	for (t = 0; t < tr->nr_tiers; t++)
		changed |= super->tier[t].data_blocks != tr->tier[t].next_blocks;
	return changed;
}

/* Is there anything that the last superblock does not say? */
static bool worth_it(struct terrace *tr, const struct tr_journal_link *tail, bool clean)
{
	const struct tr_super *super = &tr->super;
	bool alone = tr_meta_nr_live(tr) < 2;

	return !all_clean(tr, tail) || super->tail_block_seq != tail->block_seq ||
	       tr->pages->nr_dirty_dirs || sizes_changed(tr) ||
	       alone != !!(super->flags & TERRACE_SUPER_ALONE) ||
	       (clean && !(super->flags & TERRACE_SUPER_CLEAN)) ||
	       (clean && tr_lazy_lost(tr) != !!(super->flags & TERRACE_SUPER_LAZY_LOST));
}

/*
 * One generation. 1: it ran out of room and wrote what it could, with the old
 * tail; the blocks this frees are the next one's room. Each has a batch's room at
 * least when it begins (credits.c), so each leaves less to be written: records that
 * writers add meanwhile are bounded by the ring, whose tail stands still.
 */
static int one_generation(struct terrace *tr, bool clean)
{
	u64 generation = tr->super.generation + 1;
	struct tr_journal_link tail, old;
	u64 free_before, put_before = tr->pages->nr_put;
	int err;

	err = tr->pages->retry ? 0 : find_tail(tr, &tail);
	if (err || !(tr->pages->retry || worth_it(tr, &tail, clean)))
		return err;
	if (tr->pages->retry)
		tail = tr->pages->retry_tail;
	else
		err = tr_discards_relog(tr);
	if (!err) {
		tr->pages->retry = true;
		tr->pages->retry_tail = tail;
		err = tr_trees_grow(tr);
	}
	if (!err)
		err = capture_all(tr, generation);
	if (!err) {
		err = finish(tr, &tail, generation, clean);
		tr->pages->retry = err;
		return err;
	}
	if (err != -ENOSPC)
		return err;
	tr_super_link(&tr->super, &old);
	free_before = tr->pages->space.nr_free;
	err = finish(tr, &old, generation, false);
	if (err)
		return err;
	return tr->pages->space.nr_free > free_before || tr->pages->nr_put > put_before ?
	       1 : -ENOSPC;
}

/*
 * A generation that says nothing but that its copy is alone. The journal may
 * be full of what is still to be replayed, so it keeps the old tail, and
 * writes no pages but the directories that a larger volume needs.
 */
int tr_checkpoint_alone(struct terrace *tr)
{
	struct tr_journal_link old;
	unsigned int noio;
	int err;

	mutex_lock(&tr->checkpoint_mutex);
	noio = memalloc_noio_save();
	tr_super_link(&tr->super, &old);
	err = tr_trees_grow(tr) ?: finish(tr, &old, tr->super.generation + 1, false);
	memalloc_noio_restore(noio);
	mutex_unlock(&tr->checkpoint_mutex);
	return err;
}

/*
 * A page that must be changed and cannot be read stops every checkpoint, and with it the
 * journal's tail: writers would wait for ever. A drive may be away for a moment.
 */
static void judge_failure(struct terrace *tr, int err)
{
	struct tr_meta *m = tr->pages;
	unsigned long now = jiffies ?: 1;

	if (!err)
		m->failing_since = 0;
	else if (!m->failing_since)
		m->failing_since = now;
	else if (time_after(now, m->failing_since + PATIENCE_SECONDS * HZ))
		tr_mode_lower(tr, TR_MODE_READ_ONLY,
			      "no checkpoint has succeeded for a minute", err);
}

int tr_checkpoint(struct terrace *tr, bool clean)
{
	unsigned int noio;
	u32 tries = 0;
	int r;

	if (!tr_writable(tr))
		return -EROFS;
	mutex_lock(&tr->checkpoint_mutex);
	if (tr->pages->held) {
		mutex_unlock(&tr->checkpoint_mutex);
		return -EBUSY;
	}
	noio = memalloc_noio_save();
	WRITE_ONCE(tr->journal.checkpointer, current);
	tr_credits_begin(tr);
	do {
		r = one_generation(tr, clean);
		if (!r && (!clean || (tr->super.flags & TERRACE_SUPER_CLEAN) || ++tries == 4))
			break;
	} while (r >= 0);
	if (!r && clean) {
		/* A mirror that is in step only now: let the superblock know. */
		r = tr_lazy_sync(tr) ?: one_generation(tr, true);
		if (!r)
			r = tr_lazy_sync(tr);
	}
	WRITE_ONCE(tr->journal.checkpointer, NULL);
	tr_credits_end(tr, r);
	if (!r || r == -EIO || r == -EUCLEAN)
		judge_failure(tr, r);
	memalloc_noio_restore(noio);
	mutex_unlock(&tr->checkpoint_mutex);
	if (r == -ENOSPC)
		tr_mode_lower(tr, TR_MODE_READ_ONLY, "no room left for metadata pages", r);
	else if (r && r != -EROFS && tr_writable(tr))
		DMWARN_LIMIT("%s: checkpoint failed (%d), trying again later", tr->name, r);
	if (!clean && tr_reserve_low(tr))
		tr_memory_check(tr);	/* what was dirty may leave now */
	if (!r) {
		tr_lazy_kick(tr);
		tr_discards_kick(tr);
	}
	return r;
}

/* --- when ---------------------------------------------------------------- */

static void checkpoint_fn(struct work_struct *work)
{
	struct terrace *tr = container_of(work, struct terrace, checkpoint_work);

	if (tr_writable(tr) && !READ_ONCE(tr->pages->held) && tr_checkpoint(tr, false) &&
	    tr_writable(tr))
		mod_delayed_work(tr->checkpoint_wq, &tr->pages->idle_work, HZ);
}

static void idle_fn(struct work_struct *work)
{
	struct tr_meta *m = container_of(work, struct tr_meta, idle_work.work);

	checkpoint_fn(&m->tr->checkpoint_work);
}

void tr_checkpoint_kick(struct terrace *tr)
{
	if (tr_writable(tr) && READ_ONCE(tr->pages->ready))
		queue_work(tr->checkpoint_wq, &tr->checkpoint_work);
}

/* A dirty region with its leaf, roughly: most of the memory that only a
 * checkpoint can free.
 */
static bool memory_dirty(struct terrace *tr)
{
	s64 dirty = READ_ONCE(tr->nr_dirty_regions) * 1024;
	s64 limit = tr_memory_limit(tr);

	return dirty > limit / 4 * 3 ||
	       (dirty > limit / 16 && atomic64_read(&tr->memory) > limit / 4 * 3);
}

void tr_checkpoint_poke(struct terrace *tr)
{
	if (!READ_ONCE(tr->pages->ready))
		return;
	if (tr_journal_half_full(tr) || memory_dirty(tr))
		tr_checkpoint_kick(tr);
	queue_delayed_work(tr->checkpoint_wq, &tr->pages->idle_work, IDLE_SECONDS * HZ);
}

/*
 * While the volume is suspended, from its last checkpoint on. Not as soon as it is
 * `stopping`: who is still at work then may wait for journal room, which a checkpoint
 * makes. An open range discard is written again by every checkpoint, so they would
 * go on for ever otherwise.
 */
void tr_checkpoint_hold(struct terrace *tr)
{
	mutex_lock(&tr->checkpoint_mutex);	/* one that runs comes to its end */
	WRITE_ONCE(tr->pages->held, true);
	mutex_unlock(&tr->checkpoint_mutex);
	tr_lazy_hold(tr);
}

/* What was asked for meanwhile, or the last one could not do, is due again. */
void tr_checkpoint_release(struct terrace *tr)
{
	bool held;

	mutex_lock(&tr->checkpoint_mutex);
	held = tr->pages->held;
	WRITE_ONCE(tr->pages->held, false);
	if (held)
		tr->pages->failing_since = 0;	/* none was tried for as long as it was held */
	mutex_unlock(&tr->checkpoint_mutex);
	if (!held)
		return;
	tr_lazy_release(tr);
	if (tr_writable(tr))
		tr_checkpoint_poke(tr);
}

void tr_checkpoint_init(struct terrace *tr)
{
	tr->pages->tr = tr;
	INIT_WORK(&tr->checkpoint_work, checkpoint_fn);
	INIT_DELAYED_WORK(&tr->pages->idle_work, idle_fn);
	tr_credits_init(tr);
}

void tr_checkpoint_exit(struct terrace *tr)
{
	tr_credits_exit(tr);
	cancel_delayed_work_sync(&tr->pages->idle_work);
	cancel_work_sync(&tr->checkpoint_work);
}
