// SPDX-License-Identifier: GPL-2.0
/*
 * Capturing dirty regions and chunks in page images, batch by batch.
 *
 * An image is made under the object's lock, so it holds all records of the
 * object up to the page's sequence number and none beyond. From then on the
 * object is clean (or dirty anew) and WRITING, until the tree in memory names
 * the page: a region that leaves memory after that is read back from there.
 *
 * An image may hold records that are not yet durable. That is no harm as long
 * as no superblock refers to it: tr_checkpoint() commits before it writes one.
 *
 * In order of their numbers, so that a directory is finished soon after it
 * was begun, and the number of dirty ones stays small.
 */
#include <linux/list_sort.h>
#include <linux/slab.h>

#include "meta.h"
#include "region.h"

/* --- regions ------------------------------------------------------------- */

static int by_region(void *unused, const struct list_head *a, const struct list_head *b)
{
	const struct tr_region *x = list_entry(a, struct tr_region, dirty);
	const struct tr_region *y = list_entry(b, struct tr_region, dirty);

	return x->number > y->number;
}

static u32 on_slots(const struct terrace *tr, const struct tr_leaf *leaf)
{
	u64 on[TR_LEAF_WORDS] = {};

	tr_leaf_on_tiers(leaf, tr_slots_tiers(tr), on);
	return bitmap_weight((unsigned long *)on, TERRACE_REGION_BLOCKS);
}

void tr_region_encode__f(struct terrace *tr, struct tr_region *region, struct tr_out *out,
			 u64 generation)
{
	struct tr_page_id id = {
		.magic = TERRACE_MAP_MAGIC, .index = region->number, .tree = TERRACE_TREE_MAP,
	};

	lockdep_assert_held(&region->lock);
	tr_page_start(out->page, &id, out->entry.blocks, region->last_seq, generation,
		      tr->super.volume_uuid);
	tr_map_encode(out->page, &region->leaf, tr_region_packs(region), region->age);
	out->entry.age = region->age;
	out->entry.seq = region->last_seq;
	out->entry.count = on_slots(tr, &region->leaf);
}

static void capture_region(struct terrace *tr, struct tr_batch *batch, struct tr_region *region,
			   u64 generation)
{
	struct tr_out *out = tr_batch_add(batch, TERRACE_MAP_MAX_BLOCKS);
	struct tr_packs *packs;
	unsigned long flags;

	tr_region_drop_packs(tr, region);
	out->tree = tr_tree_of(tr, TERRACE_TREE_MAP, 0);
	out->number = region->number;
	out->region = region;
	spin_lock_irqsave(&region->lock, flags);
	/* The list is ours; as soon as DIRTY is off the region may be put on
	 * tr->dirty_regions again, so it leaves our list before.
	 */
	list_del_init(&region->dirty);
	spin_lock(&tr->dirty_lock);
	tr->nr_dirty_regions--;
	spin_unlock(&tr->dirty_lock);
	region->flags &= ~TR_REGION_DIRTY;
	region->flags |= TR_REGION_WRITING;
	out->first_dirty_seq = region->first_dirty_seq;
	packs = tr_region_packs(region);
	if (region->leaf.nr || (packs && packs->nr)) {
		tr_batch_trim(batch, out, tr_map_page_blocks(&region->leaf, packs));
		tr_region_encode__f(tr, region, out, generation);
	} else {
		tr_batch_trim(batch, out, 0);
	}
	spin_unlock_irqrestore(&region->lock, flags);
}

/* The page of @out is in the tree, or (@err) it is not. */
static void region_captured(struct terrace *tr, struct tr_out *out, int err)
{
	struct tr_region *region = out->region;
	unsigned long flags;

	spin_lock_irqsave(&region->lock, flags);
	region->flags &= ~TR_REGION_WRITING;
	if (!err) {
		tr_credit_named__f(tr, region, out->page);
		spin_unlock_irqrestore(&region->lock, flags);
		return;
	}
	if (region->flags & TR_REGION_DIRTY) {
		region->first_dirty_seq = min(region->first_dirty_seq, out->first_dirty_seq);
	} else {
		region->flags |= TR_REGION_DIRTY;
		region->first_dirty_seq = out->first_dirty_seq;
		spin_lock(&tr->dirty_lock);
		list_add_tail(&region->dirty, &tr->dirty_regions);
		tr->nr_dirty_regions++;
		spin_unlock(&tr->dirty_lock);
	}
	spin_unlock_irqrestore(&region->lock, flags);
}

static u64 last_record(struct terrace *tr)
{
	struct tr_journal *j = &tr->journal;
	u64 last;

	spin_lock_irq(&j->lock);
	last = j->next_record - 1;
	spin_unlock_irq(&j->lock);
	return last;
}

int tr_put_out(struct terrace *tr, struct tr_batch *batch, u64 generation,
	       void (*captured)(struct terrace *tr, struct tr_out *out, int err))
{
	int err = batch->nr ? tr_batch_write(tr, batch, true) : 0, failed;
	u32 k;

	for (k = 0; k < batch->nr; k++) {
		struct tr_out *out = &batch->out[k];

		mutex_lock(&tr->pages_mutex);
		failed = err ?: tr_tree_set__f(tr, out->tree, out->number, &out->entry);
		/* Those behind one that failed have blocks, too; without a write nobody has. */
		if (failed && out->entry.block)
			tr_metaspace_put__f(tr, out->entry.block, out->entry.blocks);
		mutex_unlock(&tr->pages_mutex);
		captured(tr, out, failed);
		tr->pages->nr_put += !failed;
		err = err ?: failed;
	}
	/* The pages just written may hold records that are not durable yet, so
	 * that is not what their directories say. The commit in front of the
	 * superblock makes it true.
	 */
	if (!err && tr_dirs_many(tr))
		err = tr_dirs_write(tr, generation, last_record(tr));
	return err;
}

static void take_dirty_regions(struct terrace *tr, struct list_head *regions)
{
	unsigned long flags;

	spin_lock_irqsave(&tr->dirty_lock, flags);
	list_splice_init(&tr->dirty_regions, regions);
	spin_unlock_irqrestore(&tr->dirty_lock, flags);
	list_sort(NULL, regions, by_region);
}

static void return_dirty_regions(struct terrace *tr, struct list_head *regions)
{
	unsigned long flags;

	spin_lock_irqsave(&tr->dirty_lock, flags);
	list_splice(regions, &tr->dirty_regions);
	spin_unlock_irqrestore(&tr->dirty_lock, flags);
}

int tr_capture_regions(struct terrace *tr, u64 generation)
{
	struct tr_batch *batch = tr->pages->batch;
	LIST_HEAD(regions);
	int err = 0;

	lockdep_assert_held(&tr->checkpoint_mutex);
	take_dirty_regions(tr, &regions);
	while (!err && !list_empty(&regions)) {
		tr_batch_start(batch);
		while (!tr_batch_full(batch) && !list_empty(&regions))
			capture_region(tr, batch, list_first_entry(&regions, struct tr_region,
								   dirty), generation);
		err = tr_put_out(tr, batch, generation, region_captured);
		cond_resched();
	}
	return_dirty_regions(tr, &regions);
	return err;
}

/* --- chunks -------------------------------------------------------------- */

static int by_chunk(void *unused, const struct list_head *a, const struct list_head *b)
{
	const struct tr_chunk *x = list_entry(a, struct tr_chunk, dirty);
	const struct tr_chunk *y = list_entry(b, struct tr_chunk, dirty);

	return x->number > y->number;
}

/*
 * `committed` follows the durable records only, all of them up to
 * applied_record as long as apply_mutex is held: that is the page's sequence.
 */
static void capture_chunk(struct terrace *tr, struct tr_tier *tier, struct tr_batch *batch,
			  struct tr_chunk *chunk, u64 generation)
{
	struct tr_out *out = tr_batch_add(batch, 1);
	u64 seq = tr->journal.applied_record;
	struct tr_page_id id = {
		.magic = TERRACE_SPACE_MAGIC, .index = chunk->number, .tier = tier->number,
		.tree = TERRACE_TREE_SPACE,
	};

	lockdep_assert_held(&tr->journal.apply_mutex);
	out->tree = tr_tree_of(tr, TERRACE_TREE_SPACE, tier->number);
	out->number = chunk->number;
	out->chunk = chunk;
	tr_page_start(out->page, &id, 1, seq, generation, tr->super.volume_uuid);
	spin_lock_irq(&tier->lock);
	list_del_init(&chunk->dirty);
	chunk->is_dirty = false;
	chunk->is_writing = true;
	tr_space_encode(out->page, chunk->committed);
	spin_unlock_irq(&tier->lock);
	out->entry.seq = seq;
	out->entry.count = le32_to_cpu(((struct terrace_space_disk *)out->page)->used);
	if (!out->entry.count) {
		memset(&out->entry, 0, sizeof(out->entry));
		out->page = NULL;
		batch->blocks--;
	}
}

static void chunk_captured(struct terrace *tr, struct tr_out *out, int err)
{
	struct tr_tier *tier = &tr->tier[out->tree->tier];
	struct tr_chunk *chunk = out->chunk;

	spin_lock_irq(&tier->lock);
	chunk->is_writing = false;
	if (err && !chunk->is_dirty) {
		chunk->is_dirty = true;
		list_add_tail(&chunk->dirty, &tier->dirty_chunks);
	}
	spin_unlock_irq(&tier->lock);
}

static int capture_tier(struct terrace *tr, struct tr_tier *tier, u64 generation)
{
	struct tr_batch *batch = tr->pages->batch;
	LIST_HEAD(chunks);
	int err = 0;

	spin_lock_irq(&tier->lock);
	list_splice_init(&tier->dirty_chunks, &chunks);
	spin_unlock_irq(&tier->lock);
	list_sort(NULL, &chunks, by_chunk);
	while (!err && !list_empty(&chunks)) {
		tr_batch_start(batch);
		mutex_lock(&tr->journal.apply_mutex);
		while (!tr_batch_full(batch) && !list_empty(&chunks))
			capture_chunk(tr, tier, batch, list_first_entry(&chunks, struct tr_chunk,
									dirty), generation);
		mutex_unlock(&tr->journal.apply_mutex);
		err = tr_put_out(tr, batch, generation, chunk_captured);
		cond_resched();
	}
	spin_lock_irq(&tier->lock);
	list_splice(&chunks, &tier->dirty_chunks);
	spin_unlock_irq(&tier->lock);
	return err;
}

int tr_capture_chunks(struct terrace *tr, u64 generation)
{
	u32 t;
	int err = 0;

	lockdep_assert_held(&tr->checkpoint_mutex);
	for (t = 0; t < tr->nr_tiers && !err; t++)
		err = capture_tier(tr, &tr->tier[t], generation);
	return err;
}
