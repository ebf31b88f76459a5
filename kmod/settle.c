// SPDX-License-Identifier: GPL-2.0
/*
 * How a checkpoint gets rid of what recovery left, without loading a region
 * and without a journal record: it is the one that makes journal room, so it
 * must need none.
 *
 * The journal's tail may pass the records of a region when they are in its
 * page. So each region with a delta is built (load.c) and its page written;
 * the region never enters the table. If a range discard took blocks of it,
 * freeing their places would take records, up to 1024 for each region, which
 * can be more than the ring holds. The page gets the places as they are
 * instead, with a list of the blocks that are gone (section GONE). Whoever
 * loads the region later frees them, outside of any checkpoint and with
 * credits taken beforehand. A crash at any moment leaves page and records
 * that say the same; see Documentation/decisions/0004-discards-in-pages.md.
 *
 * The same ends open ranges when recovery found more of them than a
 * checkpoint writes to the journal again (discard.c): each region below such
 * a range gets a page that contains the discard.
 *
 * Regions are worked on under their load mutex until their page is named in
 * the tree; those that share a mutex go in one batch. Building them means to
 * read their old pages, so several workers build at a time. They only help: the
 * checkpoint builds as well, and takes back the work that nobody has begun.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "core/deal.h"
#include "meta.h"
#include "region.h"

static bool in_table(struct terrace *tr, u64 number, bool *lost)
{
	struct tr_region *region;
	bool found;

	rcu_read_lock();
	region = tr_region_find(tr, number);
	found = region && region != &tr->empty;
	*lost = found && READ_ONCE(region->flags) & TR_REGION_LOST;
	rcu_read_unlock();
	return found;
}

/* What the journal, or an open range, says of a region whose page is damaged must not be
 * forgotten: should the page be readable next time, it would be believed alone.
 */
static int refuse_lost(struct terrace *tr, int err)
{
	tr_mode_lower(tr, TR_MODE_READ_ONLY,
		      "map page of a region that the journal changes is damaged", err);
	return -EROFS;
}

/* Puts the page of @build into the batch. */
static void add_page(struct terrace *tr, struct tr_batch *batch, struct tr_build *build,
		     bool gone, u64 generation)
{
	struct tr_region *region = build->region;
	struct tr_packs *packs = tr_region_packs(region);
	u32 blocks = gone ? tr_map_gone_blocks(&region->leaf, packs) :
			    tr_map_page_blocks(&region->leaf, packs);
	bool empty = !region->leaf.nr && !(packs && packs->nr);
	struct tr_out *out = tr_batch_add(batch, empty ? 0 : blocks);
	unsigned long flags;

	out->tree = tr_tree_of(tr, TERRACE_TREE_MAP, 0);
	out->number = region->number;
	if (!out->page)
		return;
	spin_lock_irqsave(&region->lock, flags);
	tr_region_encode__f(tr, region, out, generation);
	spin_unlock_irqrestore(&region->lock, flags);
	if (gone)
		tr_map_add_gone(out->page, build->gone);
}

/*
 * The page of region @number, built or not (@err), goes into the batch, if what
 * recovery has, or range discard @discard, is newer than the one there is.
 */
static int settle_built(struct terrace *tr, struct tr_batch *batch, u64 number,
			struct tr_build *build, int err, u64 discard, u64 generation)
{
	bool gone;

	if (err && err != -EIO && err != -ENOMEM) {
		DMERR("%s: map page of region %llu is damaged (%d)", tr->name, number, err);
		if (discard || tr_recover_find_delta(tr, number))
			return refuse_lost(tr, err);
		return tr_writable(tr) ? 0 : -EROFS;
	}
	if (err || !build->region)
		return err;
	if (build->delta || discard > build->page_seq) {
		gone = tr_build_discard(build, discard);
		if (build->delta)
			build->region->last_seq = max(build->page_seq, build->delta->newest_seq);
		build->region->last_seq = max(build->region->last_seq, discard);
		add_page(tr, batch, build, gone, generation);
	}
	tr_region_free(tr, build->region);
	return 0;
}

static int settle_region(struct terrace *tr, struct tr_batch *batch, u64 number, u64 discard,
			 u64 generation)
{
	struct tr_build build;
	int err = tr_region_build(tr, number, false, &build);

	return settle_built(tr, batch, number, &build, err, discard, generation);
}

/* The page of @out is in the tree, or (@err) it is not. */
static void settled(struct terrace *tr, struct tr_out *out, int err)
{
	struct tr_delta *delta;

	if (err)
		return;
	if (out->page)
		tr_credit_settled(tr);
	delta = tr_recover_find_delta(tr, out->number);
	if (!delta)
		return;
	tr_recover_drop_delta(tr, out->number, delta);
	tr_summary_touch(tr, out->number);	/* its page is another one now, or the first, or none any more */
}

/* --- what recovery found ---------------------------------------------------- */

/* Where the walk over the deltas of one load mutex stands. */
struct cursor {
	u32 shard;
	unsigned long number;
};

/* The next region with a delta and with load mutex @mutex. */
static bool next_delta(struct terrace *tr, struct cursor *at, u32 mutex)
{
	struct tr_recovery *rec = tr->recovery;

	for (; at->shard < TR_DEAL_SHARDS; at->shard++, at->number = 0)
		for (; xa_find(&rec->regions[at->shard], &at->number, ULONG_MAX, XA_PRESENT);
		     at->number++)
			if (at->number % TR_LOAD_MUTEXES == mutex)
				return true;
	return false;
}

#define BUILDS		32
#define BUILDERS	8

struct settle {
	struct terrace *tr;
	u32 nr;
	atomic_t next;			/* that nobody builds yet */
	u64 number[BUILDS];
	struct tr_build build[BUILDS];
	int err[BUILDS];
	struct builder {
		struct work_struct work;
		struct settle *settle;
	} builder[BUILDERS];
};

static void build_fn(struct work_struct *work)
{
	struct settle *settle = container_of(work, struct builder, work)->settle;
	unsigned int noio = memalloc_noio_save();
	u32 k;

	while ((k = atomic_inc_return(&settle->next) - 1) < settle->nr)
		settle->err[k] = tr_region_build(settle->tr, settle->number[k], false,
						 &settle->build[k]);
	memalloc_noio_restore(noio);
}

static void build_all(struct settle *settle)
{
	u32 nr = min_t(u32, settle->nr, BUILDERS), w;

	atomic_set(&settle->next, 0);
	for (w = 0; w < nr; w++) {
		settle->builder[w].settle = settle;
		INIT_WORK(&settle->builder[w].work, build_fn);
		if (w)
			queue_work(settle->tr->meta_wq, &settle->builder[w].work);
	}
	if (nr)
		build_fn(&settle->builder[0].work);
	for (w = 1; w < nr; w++)
		cancel_work_sync(&settle->builder[w].work);
}

/* Everything that was built goes out, or (@err) away. */
static int put_built(struct settle *settle, u64 generation)
{
	struct terrace *tr = settle->tr;
	struct tr_batch *batch = tr->pages->batch;
	int err = 0;
	u32 k;

	tr_batch_start(batch);
	for (k = 0; k < settle->nr; k++) {
		if (!err && tr_batch_full(batch)) {
			err = tr_put_out(tr, batch, generation, settled);
			tr_batch_start(batch);
		}
		if (!err)
			err = settle_built(tr, batch, settle->number[k], &settle->build[k],
					   settle->err[k], 0, generation);
		else if (settle->build[k].region)
			tr_region_free(tr, settle->build[k].region);
	}
	return err ?: tr_put_out(tr, batch, generation, settled);
}

static int settle_mutex(struct settle *settle, u32 mutex, u64 generation)
{
	struct terrace *tr = settle->tr;
	struct cursor at = {};
	bool more = true;
	int err = 0;

	while (more && !err) {
		mutex_lock(&tr->load_mutex[mutex]);
		settle->nr = 0;
		while (settle->nr < BUILDS && (more = next_delta(tr, &at, mutex)))
			settle->number[settle->nr++] = at.number++;
		build_all(settle);
		err = put_built(settle, generation);
		mutex_unlock(&tr->load_mutex[mutex]);
		cond_resched();
	}
	return err;
}

int tr_settle_deltas(struct terrace *tr, u64 generation)
{
	struct settle *settle;
	u32 mutex;
	int err = 0;

	lockdep_assert_held(&tr->checkpoint_mutex);
	if (!atomic64_read(&tr->recovery->nr_deltas))
		return 0;
	settle = kzalloc(sizeof(*settle), TR_GFP_MUST);	/* bounded: two pages, one at a time */
	settle->tr = tr;
	for (mutex = 0; mutex < TR_LOAD_MUTEXES && !err; mutex++)
		err = settle_mutex(settle, mutex, generation);
	kfree(settle);
	return err;
}

/* --- ranges ------------------------------------------------------------------- */

static int settle_range(struct terrace *tr, u64 first, u64 end, u64 seq, u32 mutex,
			u64 generation)
{
	struct tr_batch *batch = tr->pages->batch;
	u64 number = first + (mutex - first) % TR_LOAD_MUTEXES;
	int err = 0;
	bool lost;

	while (number < end && !err) {
		tr_batch_start(batch);
		mutex_lock(&tr->load_mutex[mutex]);
		for (; number < end && !err && !tr_batch_full(batch); number += TR_LOAD_MUTEXES)
			if (!in_table(tr, number, &lost))
				err = settle_region(tr, batch, number, seq, generation);
			else if (lost)
				err = refuse_lost(tr, -EUCLEAN);
		if (!err)
			err = tr_put_out(tr, batch, generation, settled);
		mutex_unlock(&tr->load_mutex[mutex]);
		cond_resched();
	}
	return err;
}

int tr_settle_discards(struct terrace *tr, u64 generation)
{
	u64 first, end, seq;
	u32 mutex;
	int err = 0;

	lockdep_assert_held(&tr->checkpoint_mutex);
	while (!err && tr_discard_closing(tr, &first, &end, &seq)) {
		for (mutex = 0; mutex < TR_LOAD_MUTEXES && !err; mutex++)
			err = settle_range(tr, first, end, seq, mutex, generation);
		if (!err)
			tr_discard_close(tr, first, end, seq);
	}
	return err;
}
