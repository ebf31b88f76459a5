// SPDX-License-Identifier: GPL-2.0
/*
 * Sizes go up while the volume works: the virtual size (message resize) and
 * that of a tier whose device became larger (message grow_tier).
 *
 * The superblock alone says what a size is. It is one block with a CRC, in
 * two alternating copies, so after a crash there is the old size or the new:
 *
 *   resize
 *   1  the region table gets its room, in memory
 *   2  virtual_blocks rises, between two checkpoints
 *   3  a checkpoint: deeper map tree and new size in one superblock
 *   4  acknowledged; now a longer table is accepted, and only then can a
 *      block beyond the old size be written
 *   - crash before 3 is durable: old size. The deeper tree is in no superblock.
 *   - crash after it: new size; nothing lies beyond the old one yet.
 *
 *   grow_tier
 *   1  the label's two copies, one after the other, each durable before the
 *      next step: they say only how much the tier may be
 *   2  next_blocks rises, between two checkpoints
 *   3  a checkpoint: deeper space tree and new size in one superblock
 *   4  blocks beyond the old size are handed out
 *   - crash within 1: one copy may be torn, the other is whole; both whole:
 *     the higher generation counts. Either allows what the superblock says.
 *   - crash before 3 is durable: old size; the label says more, which nobody
 *     heeds. The message may be sent again.
 *   - crash after 3, before 4: new size, all of what is new is free.
 *   - no journal record names a place beyond what the superblock that its
 *     replay starts from says: 4 comes after 3.
 *
 * If the checkpoint of step 3 fails the message does, too; a later checkpoint
 * may make the size durable all the same, and the message may be repeated.
 */
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "core/geometry.h"
#include "meta.h"
#include "sense.h"

static int check_state(struct terrace *tr, const char *what)
{
	if (!tr_writable(tr)) {
		DMERR("%s: %s: the volume is read-only", tr->name, what);
		return -EROFS;
	}
	if (READ_ONCE(tr->stopping)) {
		DMERR("%s: %s: the volume is suspended", tr->name, what);
		return -EBUSY;
	}
	return 0;
}

/* Would the map of a full volume find room? The pages area is as it is. */
static int check_pages(struct terrace *tr, const struct tr_super *super, const char *what)
{
	u64 have = super->meta_blocks - tr_first_page(super);
	u64 need = tr_pages_needed(super);

	if (need <= have)
		return 0;
	DMERR("%s: %s: needs %llu metadata blocks for pages, %llu were formatted", tr->name, what,
	      need, have);
	return -ENOSPC;
}

static struct tr_super *copy_super(struct terrace *tr)
{
	struct tr_super *super = kmalloc(sizeof(*super), GFP_KERNEL);

	if (super) {
		mutex_lock(&tr->checkpoint_mutex);
		*super = tr->super;
		mutex_unlock(&tr->checkpoint_mutex);
	}
	return super;
}

/* --- virtual size -------------------------------------------------------- */

static int check_size(struct terrace *tr, struct tr_super *super, u64 sectors)
{
	u64 room = tr_room(super) + super->overcommit_blocks;
	u64 have = super->virtual_blocks;

	if (sectors % TERRACE_BLOCK_SECTORS) {
		DMERR("%s: resize: %llu sectors are not a multiple of 8", tr->name, sectors);
		return -EINVAL;
	}
	super->virtual_blocks = sectors / TERRACE_BLOCK_SECTORS;
	if (super->virtual_blocks <= have) {
		DMERR("%s: resize: %llu sectors are not more than the %llu there are", tr->name,
		      sectors, have * TERRACE_BLOCK_SECTORS);
		return -EINVAL;
	}
	/* Also with what an earlier message has not yet made durable. */
	if (super->virtual_blocks < tr->virtual_blocks) {
		DMERR("%s: resize: %llu sectors are less than the %llu under way", tr->name,
		      sectors, tr->virtual_blocks * TERRACE_BLOCK_SECTORS);
		return -EINVAL;
	}
	if (super->virtual_blocks > min_t(u64, room, TR_MAX_VIRTUAL_BLOCKS)) {
		DMERR("%s: resize: %llu sectors asked for, the tiers have room for %llu",
		      tr->name, sectors,
		      min_t(u64, room, TR_MAX_VIRTUAL_BLOCKS) * TERRACE_BLOCK_SECTORS);
		return -ENOSPC;
	}
	return check_pages(tr, super, "resize");
}

static int set_size(struct terrace *tr, u64 sectors)
{
	struct tr_super *super = copy_super(tr);
	u64 blocks = sectors / TERRACE_BLOCK_SECTORS;
	int err = -ENOMEM;

	if (super)
		err = check_size(tr, super, sectors);
	kfree(super);
	if (!err)
		err = tr_regions_grow(tr, DIV_ROUND_UP_ULL(blocks, TERRACE_REGION_BLOCKS));
	if (err)
		return err;
	mutex_lock(&tr->checkpoint_mutex);
	WRITE_ONCE(tr->virtual_blocks, blocks);
	mutex_unlock(&tr->checkpoint_mutex);
	err = tr_checkpoint(tr, false);
	if (err)
		DMERR("%s: resize to %llu sectors: not durable (%d)", tr->name, sectors, err);
	else
		DMINFO("%s: resized to %llu sectors", tr->name, sectors);
	if (!err)
		tr_event(tr, TERRACE_EVENT_GROWN, TR_NO_TIER, TR_NO_REGION, blocks);
	return err;
}

int tr_resize(struct terrace *tr, const char *word)
{
	u64 sectors;
	int err;

	if (kstrtou64(word, 10, &sectors)) {
		DMERR("%s: resize %s: not a number of sectors", tr->name, word);
		return -EINVAL;
	}
	mutex_lock(&tr->resize_mutex);
	err = check_state(tr, "resize") ?: set_size(tr, sectors);
	mutex_unlock(&tr->resize_mutex);
	return err;
}

/* --- the label ----------------------------------------------------------- */

struct new_size {
	u64 device_blocks, data_blocks;
};

static void set_label_size(struct tr_label *label, const void *arg)
{
	const struct new_size *size = arg;

	label->device_blocks = size->device_blocks;
	label->data_blocks = size->data_blocks;
}

/* --- a tier -------------------------------------------------------------- */

/* How many data blocks the device has room for: *@blocks. */
static int check_device(struct terrace *tr, struct tr_tier *tier, u64 *device_blocks, u64 *blocks)
{
	u64 start = tier->data_sector / TERRACE_BLOCK_SECTORS;

	if (tier->missing) {
		DMERR("%s: grow_tier: tier %u is missing", tr->name, tier->number);
		return -ENXIO;
	}
	*device_blocks = bdev_nr_sectors(tier->bdev) / TERRACE_BLOCK_SECTORS;
	*blocks = min_t(u64, *device_blocks - min(start, *device_blocks),
			TERRACE_MAX_PLACE_INDEX + 1);
	if (tier->kind == TERRACE_KIND_SHELVES)
		*blocks -= *blocks % TERRACE_CHUNK_BLOCKS;
	if (*blocks > tier->data_blocks)
		return 0;
	DMERR("%s: grow_tier: the device of tier %u has room for %llu data blocks, not more than the %llu there are",
	      tr->name, tier->number, *blocks, tier->data_blocks);
	return -EINVAL;
}

static int check_room(struct terrace *tr, struct tr_tier *tier, u64 blocks)
{
	struct tr_super *super = copy_super(tr);
	int err;

	if (!super)
		return -ENOMEM;
	super->tier[tier->number].data_blocks = blocks;
	err = check_pages(tr, super, "grow_tier");
	kfree(super);
	return err;
}

/* Steps 2 to 4, with @chunks for the new size. */
static int raise(struct terrace *tr, struct tr_tier *tier, u64 blocks,
		 struct tr_chunk_info *chunks)
{
	u64 reserve = tr_reserve_grown(tier->kind, tier->data_blocks, tier->reserve_blocks, blocks);
	int err;

	if (blocks >= 1ull << (32 - TERRACE_PLACE_TIER_BITS)) {
		/* Who promised room in a leaf by what it said before has its place. */
		WRITE_ONCE(tr->high_places, true);
		synchronize_rcu();
	}
	mutex_lock(&tr->checkpoint_mutex);
	tier->next_blocks = blocks;
	tier->next_reserve = reserve;
	mutex_unlock(&tr->checkpoint_mutex);
	err = tr_checkpoint(tr, false);
	if (err) {
		DMERR("%s: grow_tier %u: not durable (%d)", tr->name, tier->number, err);
		kvfree(chunks);
		return err;
	}
	tr_space_grow(tr, tier, chunks);
	return 0;
}

static int grow_tier(struct terrace *tr, struct tr_tier *tier)
{
	u64 device_blocks, blocks, before = tier->data_blocks;
	struct tr_chunk_info *chunks;
	struct new_size size;
	int err;

	err = check_device(tr, tier, &device_blocks, &blocks);
	if (!err)
		err = check_room(tr, tier, blocks);
	if (err)
		return err;
	chunks = kvcalloc(DIV_ROUND_UP_ULL(blocks, TERRACE_CHUNK_BLOCKS), sizeof(*chunks),
			  GFP_KERNEL);
	if (!chunks)
		return -ENOMEM;
	size = (struct new_size){ device_blocks, blocks };
	err = tr_label_change(tr, tier->bdev, tier->number, set_label_size, &size);
	if (err) {
		DMERR("%s: grow_tier: label of tier %u not changed (%d)", tr->name, tier->number,
		      err);
		kvfree(chunks);
		return err;
	}
	err = raise(tr, tier, blocks, chunks);
	if (!err)
		DMINFO("%s: tier %u has %llu data blocks, %llu more than before", tr->name,
		       tier->number, blocks, blocks - before);
	return err;
}

int tr_grow_tier(struct terrace *tr, const char *word)
{
	u32 number;
	int err;

	if (kstrtou32(word, 10, &number) || number >= tr->nr_tiers) {
		DMERR("%s: grow_tier %s: the tiers are 0 to %u", tr->name, word, tr->nr_tiers - 1);
		return -EINVAL;
	}
	mutex_lock(&tr->resize_mutex);
	err = check_state(tr, "grow_tier") ?: grow_tier(tr, &tr->tier[number]);
	mutex_unlock(&tr->resize_mutex);
	return err;
}
