// SPDX-License-Identifier: GPL-2.0
/*
 * Which blocks of the pages area are in use.
 *
 * Pages are never overwritten. A checkpoint writes new ones beside the old;
 * the old ones become free only when its superblock is durable on every copy
 * in use (base becomes live then). The lazy mirror has the same blocks at the
 * same numbers: one that its last complete generation, or the one being
 * copied, refers to is kept back until the mirror has moved on. Otherwise
 * copying a reused block would damage the only complete generation there.
 *
 * On disk the bitmap has an image per generation parity. An image block is
 * written when it changed in this or the previous generation.
 */
#include <linux/bitmap.h>
#include <linux/vmalloc.h>

#include "meta.h"

static unsigned long *map_alloc(const struct tr_metaspace *space)
{
	u64 mbits = DIV_ROUND_UP_ULL(space->blocks, TERRACE_MBIT_BITS);

	return kvcalloc(mbits * TERRACE_MBIT_WORDS, sizeof(u64), GFP_KERNEL);
}

int tr_metaspace_init(struct terrace *tr)
{
	struct tr_metaspace *space = &tr->pages->space;
	const struct tr_super *super = &tr->super;

	space->blocks = super->meta_blocks;
	space->first = tr_first_page(super);
	space->hand = space->first;
	if (space->blocks > U32_MAX)
		return -EFBIG;		/* 16 TiB of metadata; lib/bitmap counts in 32 bits */
	space->live = map_alloc(space);
	space->base = map_alloc(space);
	space->busy = map_alloc(space);
	space->dirty = kvcalloc(super->bitmap_blocks, 1, GFP_KERNEL);
	if (!space->live || !space->base || !space->busy || !space->dirty)
		return -ENOMEM;
	if (!tr->lazy.bdev)
		return 0;
	space->lazy_has = map_alloc(space);
	space->lazy_next = map_alloc(space);
	space->lazy_stale = map_alloc(space);
	return space->lazy_has && space->lazy_next && space->lazy_stale ? 0 : -ENOMEM;
}

void tr_metaspace_exit(struct terrace *tr)
{
	struct tr_metaspace *space = &tr->pages->space;

	kvfree(space->live);
	kvfree(space->base);
	kvfree(space->busy);
	kvfree(space->lazy_has);
	kvfree(space->lazy_next);
	kvfree(space->lazy_stale);
	kvfree(space->dirty);
	memset(space, 0, sizeof(*space));
}

/* --- in memory ----------------------------------------------------------- */

static u64 nr_base(const struct tr_metaspace *space)
{
	return bitmap_weight(space->base, space->blocks);
}

/* Says anew what is busy. */
void tr_metaspace_release__f(struct terrace *tr)
{
	struct tr_metaspace *space = &tr->pages->space;
	u64 words = BITS_TO_LONGS(space->blocks), w, used = 0;
	bool lazy = space->lazy_has && tr_meta_live(tr, TR_COPY_LAZY);

	lockdep_assert_held(&tr->pages_mutex);
	for (w = 0; w < words; w++) {
		unsigned long busy = space->live[w] | space->base[w];

		if (lazy)
			busy |= space->lazy_has[w] | space->lazy_next[w];
		space->busy[w] = busy;
		used += hweight_long(busy);
	}
	WRITE_ONCE(space->nr_free, space->blocks - used);
}

static void mark_image(struct tr_metaspace *space, u64 block, u32 nr)
{
	space->dirty[block / TERRACE_MBIT_BITS] = BIT(0) | BIT(1);
	space->dirty[(block + nr - 1) / TERRACE_MBIT_BITS] = BIT(0) | BIT(1);
}

static u64 find_room(const struct tr_metaspace *space, u32 nr)
{
	unsigned long at;

	at = bitmap_find_next_zero_area(space->busy, space->blocks, space->hand, nr, 0);
	if (at >= space->blocks)
		at = bitmap_find_next_zero_area(space->busy, space->blocks, space->first, nr, 0);
	return at < space->blocks ? at : 0;
}

u64 tr_metaspace_get__f(struct terrace *tr, u32 nr)
{
	struct tr_metaspace *space = &tr->pages->space;
	u64 at;

	lockdep_assert_held(&tr->pages_mutex);
	at = find_room(space, nr);
	if (!at && tr_meta_live(tr, TR_COPY_LAZY)) {
		tr_lazy_drop(tr, "no room beside what the lazy mirror still needs", -ENOSPC);
		tr_metaspace_release__f(tr);
		at = find_room(space, nr);
	}
	if (!at)
		return 0;
	bitmap_set(space->busy, at, nr);
	bitmap_set(space->live, at, nr);
	if (space->lazy_stale)
		bitmap_set(space->lazy_stale, at, nr);
	mark_image(space, at, nr);
	space->hand = at + nr < space->blocks ? at + nr : space->first;
	WRITE_ONCE(space->nr_free, space->nr_free - nr);
	return at;
}

void tr_metaspace_put__f(struct terrace *tr, u64 block, u32 nr)
{
	struct tr_metaspace *space = &tr->pages->space;

	lockdep_assert_held(&tr->pages_mutex);
	if (block < space->first || block + nr > space->blocks)
		return;			/* an entry that was damaged before us */
	bitmap_clear(space->live, block, nr);
	mark_image(space, block, nr);
}

void tr_metaspace_durable(struct terrace *tr, const struct tr_super *super)
{
	struct tr_metaspace *space = &tr->pages->space;
	u64 b;

	mutex_lock(&tr->pages_mutex);
	tr->super = *super;
	for (b = 0; b < super->bitmap_blocks; b++)
		space->dirty[b] &= ~BIT(super->generation & 1);
	bitmap_copy(space->base, space->live, space->blocks);
	tr_metaspace_release__f(tr);
	tr_credits_durable(tr, super, nr_base(space));
	mutex_unlock(&tr->pages_mutex);
}

/* --- on disk ------------------------------------------------------------- */

#define IMAGES		64	/* that are read at once */

static u64 *image_of(struct terrace *tr, u64 b)
{
	return (u64 *)tr->pages->space.live + b * TERRACE_MBIT_WORDS;
}

/* So many images at once: how many of them are as they should be. */
static u32 load_images(struct terrace *tr, u64 b, void *buf, u32 nr)
{
	const struct tr_super *super = &tr->super;
	u32 c = tr_meta_live(tr, 0) ? 0 : 1, i;

	if (!tr_meta_live(tr, c) ||
	    tr_meta_read(tr, c, super->bitmap_start[super->generation & 1] + b, buf, nr))
		return 0;
	for (i = 0; i < nr; i++)
		if (tr_mbit_decode(buf + i * TERRACE_BLOCK_BYTES, image_of(tr, b + i),
				   (b + i) * TERRACE_MBIT_BITS, super->generation, super->volume_uuid))
			break;
	return i;
}

static int load_image(struct terrace *tr, u64 b, void *block)
{
	const struct tr_super *super = &tr->super;
	u64 first = b * TERRACE_MBIT_BITS;
	u64 *words = image_of(tr, b);
	int err = -EIO;
	u32 c;

	for (c = 0; c < TR_COPIES && err; c++) {
		if (!tr_meta_live(tr, c))
			continue;
		err = tr_meta_read(tr, c, super->bitmap_start[super->generation & 1] + b,
				   block, 1);
		if (!err)
			err = tr_mbit_decode(block, words, first, super->generation,
					     super->volume_uuid);
		if (err)
			DMWARN("%s: block %llu of the meta bitmap, copy %u: unreadable (%d)",
			       tr->name, b, c, err);
	}
	return err;
}

int tr_metaspace_load(struct terrace *tr)
{
	struct tr_metaspace *space = &tr->pages->space;
	void *buf = kvmalloc(IMAGES * TERRACE_BLOCK_BYTES, GFP_KERNEL);
	u64 b = 0, blocks = tr->super.bitmap_blocks;
	int err = 0;
	u32 good;

	if (!buf)
		return -ENOMEM;
	/* The other parity's image may be of any age. */
	memset(space->dirty, BIT(0) | BIT(1), blocks);
	while (b < blocks && !err) {
		good = load_images(tr, b, buf, min_t(u64, blocks - b, IMAGES));
		b += good;
		if (!good)
			err = load_image(tr, b++, buf);
	}
	kvfree(buf);
	if (err)
		return err;
	mutex_lock(&tr->pages_mutex);
	bitmap_set(space->live, 0, space->first);
	bitmap_copy(space->base, space->live, space->blocks);
	tr_metaspace_release__f(tr);
	tr_credits_durable(tr, &tr->super, nr_base(space));
	mutex_unlock(&tr->pages_mutex);
	return 0;
}

int tr_metaspace_write(struct terrace *tr, u64 generation)
{
	struct tr_metaspace *space = &tr->pages->space;
	void *arena = tr->pages->batch->arena;
	struct tr_meta_io io;
	int err = 0;
	u32 n = 0;
	u64 b;

	lockdep_assert_held(&tr->checkpoint_mutex);
	tr_meta_io_start(&io);
	for (b = 0; b < tr->super.bitmap_blocks && !err; b++) {
		void *block = arena + n * TERRACE_BLOCK_BYTES;

		if (!(space->dirty[b] & BIT(generation & 1)))
			continue;
		tr_mbit_encode(block, (u64 *)space->live + b * TERRACE_MBIT_WORDS,
			       b * TERRACE_MBIT_BITS, generation, tr->super.volume_uuid);
		tr_meta_write(tr, &io, 0, tr->super.bitmap_start[generation & 1] + b, block, 1);
		if (++n < TR_BATCH_BLOCKS)
			continue;
		err = tr_meta_written(tr, &io, "writing the meta bitmap");
		tr_meta_io_start(&io);
		n = 0;
	}
	return tr_meta_written(tr, &io, "writing the meta bitmap") ?: err;
}
