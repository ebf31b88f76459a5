// SPDX-License-Identifier: GPL-2.0
/*
 * What follows a commit. First the durable records are applied to the chunks'
 * committed bitmaps, in order, by the commit worker between its rounds; a
 * block without frees is spare again then. Then, in a worker of its own, the
 * grace period for the old places, after which they are free.
 *
 * A place may be written again only when the record that frees it is durable,
 * and when every bio that was mapped to it before has ended: blocks come here
 * only from a commit, and tr_epoch_wait() stands between the two steps.
 *
 * The worker has a queue of its own: a commit may wait for spare blocks, and
 * a checkpoint for a commit, so it must not stand behind either of them.
 */
#include "meta.h"
#include "packs.h"

/* --- applying -------------------------------------------------------------- */

/* Writes take their places in ascending order, so the records of a block are
 * mostly one long run: it is marked at once.
 */
struct apply_run {
	struct terrace *tr;
	u64 index;
	u32 tier, n;
	bool used;
};

static void apply_flush(struct apply_run *run)
{
	/* A chunk that cannot be loaded has made the volume read-only. */
	if (run->n)
		tr_space_commit(run->tr, run->tier, run->index, run->n, run->used);
	run->n = 0;
}

static void apply_one(u32 tier, u64 index, u32 n, bool used, void *context)
{
	struct apply_run *run = context;

	if (run->n && run->tier == tier && run->used == used && run->index + run->n == index &&
	    index % TERRACE_CHUNK_BLOCKS) {
		run->n += n;
		return;
	}
	apply_flush(run);
	run->tier = tier;
	run->index = index;
	run->n = n;
	run->used = used;
}

static void apply_block(struct terrace *tr, struct tr_journal_block *block)
{
	struct tr_journal *j = &tr->journal;
	struct apply_run run = { .tr = tr };
	struct tr_record record;
	u32 i;

	/* A checkpoint reads the bitmaps between blocks, when they are those of
	 * exactly applied_record.
	 */
	mutex_lock(&j->apply_mutex);
	for (i = 0; i < tr_jblock_nr(block->data); i++) {
		tr_jblock_record(block->data, i, &record);
		tr_record_space(&record, apply_one, &run);
	}
	apply_flush(&run);
	/* Pairs with the acquire in find_tail(). */
	smp_store_release(&j->applied_record, block->last_record);
	mutex_unlock(&j->apply_mutex);
}

bool tr_commit_wanted(const struct tr_journal *j)
{
	return !bio_list_empty(&j->flushes) || !bio_list_empty(&j->fuas);
}

/* Applies what is durable; stops when somebody waits for the next round,
 * unless the pool is running low.
 */
void tr_journal_apply(struct terrace *tr, bool all)
{
	struct tr_journal *j = &tr->journal;
	struct tr_journal_block *block;
	bool frees = false, some = false;
	LIST_HEAD(spare);

	while (!list_empty(&j->written)) {
		if (!all && tr_commit_wanted(j) && READ_ONCE(j->nr_spare) > j->nr_blocks / 2)
			break;
		block = list_first_entry(&j->written, struct tr_journal_block, list);
		apply_block(tr, block);
		some = true;
		if (!block->frees) {
			list_move_tail(&block->list, &spare);
			continue;
		}
		spin_lock_irq(&j->lock);
		list_move_tail(&block->list, &j->applying);
		spin_unlock_irq(&j->lock);
		frees = true;
	}
	tr_journal_recycle(tr, &spare);
	if (frees)
		queue_work(j->free_wq, &j->free_work);
	if (some)
		wake_up_all(&j->wait);
}

/* --- freeing --------------------------------------------------------------- */

#define RECORDS_AT_ONCE	8

struct free_ctx {
	struct terrace *tr;
	u32 tiers;
	struct tr_burst trims;
};

static void free_mask(u32 tier, u64 index, u32 n, bool used, void *context)
{
	struct free_ctx *ctx = context;

	if (!used)
		ctx->tiers |= BIT(tier);
}

static void trim_home(u32 tier, u64 index, u32 n, bool used, void *context)
{
	struct free_ctx *ctx = context;

	if (!used && ctx->tr->tier[tier].kind == TERRACE_KIND_HOME)
		tr_trim(&ctx->tr->tier[tier], index, n, &ctx->trims);
}

static void free_one(u32 tier, u64 index, u32 n, bool used, void *context)
{
	struct free_ctx *ctx = context;

	if (used)
		return;
	/* Nobody reads there any more, so nobody puts it in after this. */
	if (ctx->tr->tier[tier].kind == TERRACE_KIND_SHELVES)
		tr_promotion_loose_forget(ctx->tr, tr_place(tier, index), n);
	tr_space_free(ctx->tr, tier, index, n);
}

static void walk_places(struct list_head *blocks, tr_space_fn fn,
			   struct free_ctx *ctx)
{
	struct tr_journal_block *block;
	struct tr_record record;
	u32 i;

	list_for_each_entry(block, blocks, list) {
		tr_work_gently(ctx->tr);	/* by now somebody may wait */
		for (i = 0; i < tr_jblock_nr(block->data); i++) {
			tr_jblock_record(block->data, i, &record);
			tr_record_space(&record, fn, ctx);
			if (i % RECORDS_AT_ONCE == RECORDS_AT_ONCE - 1)
				tr_give_way();
		}
	}
}

static u32 homes_mask(const struct terrace *tr)
{
	u32 t, mask = 0;

	for (t = 0; t < tr->nr_tiers; t++)
		if (tr->tier[t].kind == TERRACE_KIND_HOME)
			mask |= BIT(t);
	return mask;
}

static void free_fn(struct work_struct *work)
{
	struct tr_journal *j = container_of(work, struct tr_journal, free_work);
	struct terrace *tr = container_of(j, struct terrace, journal);
	struct free_ctx ctx = { .tr = tr };
	LIST_HEAD(blocks);
	u64 last;

	spin_lock_irq(&j->lock);
	list_splice_init(&j->applying, &blocks);
	spin_unlock_irq(&j->lock);
	if (list_empty(&blocks))
		return;
	last = list_last_entry(&blocks, struct tr_journal_block, list)->last_record;
	walk_places(&blocks, free_mask, &ctx);
	tr_epoch_wait(tr, ctx.tiers);
	if (ctx.tiers & homes_mask(tr)) {
		tr_burst_begin(&ctx.trims);
		walk_places(&blocks, trim_home, &ctx);
		tr_burst_wait(&ctx.trims);
	}
	walk_places(&blocks, free_one, &ctx);
	tr_trim_kick(tr);
	/* Pairs with the acquire in have_freed(). */
	smp_store_release(&j->freed_record, last);
	tr_journal_recycle(tr, &blocks);	/* wakes who waits for it */
	tr_work_normally();
}

/* --- waiting for it -------------------------------------------------------- */

static bool have_freed(struct terrace *tr, u64 record)
{
	if (!tr_frees_pending(tr) || !tr_writable(tr))
		return true;
	/* Pairs with the release in free_fn(). */
	return smp_load_acquire(&tr->journal.freed_record) >= record;
}

/*
 * Under load there are always frees to come, of later writes. A journal block
 * without frees does not move freed_record; should the last record stand in
 * one, the next frees end the waiting.
 */
bool tr_frees_wait(struct terrace *tr)
{
	struct tr_journal *j = &tr->journal;
	u64 last;

	spin_lock_irq(&j->lock);
	last = j->next_record - 1;
	spin_unlock_irq(&j->lock);
	return !tr_commit(tr) && wait_event_timeout(j->wait, have_freed(tr, last), HZ);
}

/* --- set-up ---------------------------------------------------------------- */

int tr_apply_init(struct terrace *tr)
{
	struct tr_journal *j = &tr->journal;

	INIT_WORK(&j->free_work, free_fn);
	j->free_wq = alloc_ordered_workqueue("terrace_free", WQ_MEM_RECLAIM);
	return j->free_wq ? 0 : -ENOMEM;
}

void tr_apply_exit(struct terrace *tr)
{
	struct tr_journal *j = &tr->journal;

	if (j->free_wq)
		destroy_workqueue(j->free_wq);
	j->free_wq = NULL;
}
