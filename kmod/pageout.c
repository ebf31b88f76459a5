// SPDX-License-Identifier: GPL-2.0
/*
 * Pages on their way to disk: up to 64 are encoded into one arena, get their
 * meta blocks and CRCs, and are written together, neighbours in one bio. So a
 * checkpoint of any size runs in half a MiB.
 */
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "meta.h"

struct tr_batch *tr_batch_create(void)
{
	struct tr_batch *batch = kvzalloc(sizeof(*batch), GFP_KERNEL);

	if (!batch)
		return NULL;
	batch->arena = vmalloc(TR_BATCH_BLOCKS * TERRACE_BLOCK_BYTES);
	if (!batch->arena) {
		kvfree(batch);
		return NULL;
	}
	return batch;
}

void tr_batch_destroy(struct tr_batch *batch)
{
	if (!batch)
		return;
	vfree(batch->arena);
	kvfree(batch);
}

void tr_batch_start(struct tr_batch *batch)
{
	batch->nr = 0;
	batch->blocks = 0;
}

bool tr_batch_full(const struct tr_batch *batch)
{
	return batch->nr == TR_BATCH_PAGES ||
	       batch->blocks + TERRACE_MAP_MAX_BLOCKS > TR_BATCH_BLOCKS;
}

struct tr_out *tr_batch_add(struct tr_batch *batch, u32 blocks)
{
	struct tr_out *out = &batch->out[batch->nr++];

	memset(out, 0, sizeof(*out));
	if (blocks)
		out->page = batch->arena + batch->blocks * TERRACE_BLOCK_BYTES;
	out->entry.blocks = blocks;
	batch->blocks += blocks;
	return out;
}

void tr_batch_trim(struct tr_batch *batch, struct tr_out *out, u32 blocks)
{
	batch->blocks -= out->entry.blocks - blocks;
	out->entry.blocks = blocks;
	if (!blocks)
		out->page = NULL;
}

/* Is there room for the batch, and for the directories that it changes? */
static bool leaves_fit(struct terrace *tr, const struct tr_batch *batch)
{
	u64 dirs = tr_dirs_above(&tr->super, tr_nr_regions(tr),
				 batch->nr + tr->pages->nr_dirty_dirs);

	return tr->pages->space.nr_free >= batch->blocks + dirs + TR_BATCH_SLACK;
}

/*
 * Gives every page its blocks; all or none. Leaves must leave room for the
 * directories above them, so that a checkpoint which runs out of room can
 * still end well, and with it free the blocks of what it did replace.
 */
static int allocate(struct terrace *tr, struct tr_batch *batch, bool leaves)
{
	int err = 0;
	u32 k;

	mutex_lock(&tr->pages_mutex);
	if (leaves && !leaves_fit(tr, batch) && tr_meta_live(tr, TR_COPY_LAZY)) {
		/* Rather than the volume: what the mirror needs is free again. */
		tr_lazy_drop(tr, "no room beside what the lazy mirror still needs", -ENOSPC);
		tr_metaspace_release__f(tr);
	}
	if (leaves && !leaves_fit(tr, batch))
		err = -ENOSPC;
	for (k = 0; k < batch->nr && !err; k++) {
		struct tr_entry *entry = &batch->out[k].entry;

		if (!batch->out[k].page)
			continue;
		entry->block = tr_metaspace_get__f(tr, entry->blocks);
		if (!entry->block)
			err = -ENOSPC;
	}
	mutex_unlock(&tr->pages_mutex);
	return err;
}

/* Blocks of pages that nothing will refer to. */
static void give_back(struct terrace *tr, struct tr_batch *batch)
{
	u32 k;

	mutex_lock(&tr->pages_mutex);
	for (k = 0; k < batch->nr; k++) {
		struct tr_entry *entry = &batch->out[k].entry;

		if (entry->block)
			tr_metaspace_put__f(tr, entry->block, entry->blocks);
		entry->block = 0;
	}
	mutex_unlock(&tr->pages_mutex);
}

/* Pages stand in the arena without gaps, so neighbours on disk are neighbours
 * in memory as well.
 */
static int write_out(struct terrace *tr, struct tr_batch *batch)
{
	struct tr_meta_io io;
	u64 block = 0;
	void *buf = NULL;
	u32 k, n = 0;

	tr_meta_io_start(&io);
	for (k = 0; k < batch->nr; k++) {
		struct tr_out *out = &batch->out[k];

		if (!out->page)
			continue;
		out->entry.crc = tr_page_seal(out->page);
		if (n && block + n == out->entry.block) {
			n += out->entry.blocks;
			continue;
		}
		if (n)
			tr_meta_write(tr, &io, 0, block, buf, n);
		block = out->entry.block;
		buf = out->page;
		n = out->entry.blocks;
	}
	if (n)
		tr_meta_write(tr, &io, 0, block, buf, n);
	return tr_meta_written(tr, &io, "writing metadata pages");
}

int tr_batch_write(struct terrace *tr, struct tr_batch *batch, bool leaves)
{
	int err;

	lockdep_assert_held(&tr->checkpoint_mutex);
	err = allocate(tr, batch, leaves);
	if (!err)
		err = write_out(tr, batch);
	if (err)
		give_back(tr, batch);
	return err;
}
