// SPDX-License-Identifier: GPL-2.0
/*
 * The lazy mirror: a copy of the metadata on a slow tier, some generations
 * behind, which no commit waits for. After a checkpoint a worker copies the
 * pages it wrote; then the bitmap, a flush, the superblock (marked LAZY, its
 * journal counts as empty). While it copies, checkpoints go on; generations
 * that end meanwhile are skipped.
 *
 * The copy on the mirror is complete at any time, if old: its pages stand at
 * the same meta blocks as the primary's, and none of them is reused on the
 * primary, hence never copied over, before the mirror's next generation is
 * complete (metaspace.c). When that leaves too little room, the mirror is
 * given up. As long as it is not in step the superblocks say LAZY_LOST, and
 * the next activation copies it anew as a whole.
 *
 * After a clean stop the mirror is up to date and marked CLEAN: then it is
 * certain. It loses the mark before the first record that follows, in both of
 * its places (tr_lazy_unclean).
 */
#include <linux/bitmap.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "meta.h"

#define PIECE_BLOCKS	64

bool tr_lazy_lost(struct terrace *tr)
{
	return !tr_meta_live(tr, TR_COPY_LAZY) || !READ_ONCE(tr->pages->lazy_super.generation);
}

void tr_lazy_drop(struct terrace *tr, const char *why, int err)
{
	if (!xchg(&tr->lazy.failed, true))
		DMWARN("%s: lazy metadata mirror on tier %u given up: %s (%d)",
		       tr->name, tr->lazy.tier, why, err);
}

/* --- one generation ------------------------------------------------------ */

/*
 * May @generation be copied beside the one that the mirror has? Bitmap and
 * superblock stand at two places in turn. When generations were skipped, the
 * next one may stand where the mirror's only complete one does: then it is left
 * out as well, or a power cut in the middle would leave neither.
 */
static bool beside(u64 generation, u64 has)
{
	return !has || (generation ^ has) & 1;
}

/* What is to be copied, and of which generation. false: nothing. */
static bool lazy_begin(struct terrace *tr, struct tr_super *super, bool force)
{
	struct tr_metaspace *space = &tr->pages->space;
	bool some;

	mutex_lock(&tr->pages_mutex);
	*super = tr->super;
	some = force || beside(super->generation, tr->pages->lazy_super.generation);
	if (some)
		bitmap_copy(space->lazy_next, space->base, space->blocks);
	mutex_unlock(&tr->pages_mutex);
	return some;
}

/* The next run of stale blocks at or behind *@at; returns its length. */
static u32 stale_run(struct terrace *tr, u64 *at)
{
	struct tr_metaspace *space = &tr->pages->space;
	u32 n = 0;

	mutex_lock(&tr->pages_mutex);
	*at = find_next_and_bit(space->lazy_stale, space->lazy_next, space->blocks, *at);
	while (*at + n < space->blocks && n < PIECE_BLOCKS &&
	       test_bit(*at + n, space->lazy_stale) && test_bit(*at + n, space->lazy_next))
		n++;
	mutex_unlock(&tr->pages_mutex);
	return n;
}

static int write_lazy(struct terrace *tr, u64 block, void *buf, u32 n, blk_opf_t opf)
{
	struct tr_meta_io io;

	tr_meta_io_start(&io);
	tr_meta_submit(tr, &io, TR_COPY_LAZY, REQ_OP_WRITE | opf, block, buf, n);
	tr_meta_wait(&io);
	return blk_status_to_errno(io.copy[TR_COPY_LAZY].status);
}

static int copy_run(struct terrace *tr, u64 at, u32 n, void *buf)
{
	int err = -EIO;
	u32 c;

	for (c = 0; c < TR_COPIES && err; c++)
		if (tr_meta_live(tr, c))
			err = tr_meta_read(tr, c, at, buf, n);
	return err ?: write_lazy(tr, at, buf, n, REQ_BACKGROUND);
}

static int copy_pages(struct terrace *tr, void *buf)
{
	struct tr_metaspace *space = &tr->pages->space;
	u64 at = space->first;
	int err = 0;
	u32 n;

	while (!err && (n = stale_run(tr, &at))) {
		if (READ_ONCE(tr->pages->lazy_stop) || !tr_meta_live(tr, TR_COPY_LAZY))
			return -EINTR;
		err = copy_run(tr, at, n, buf);
		if (!err) {
			/* Nobody can write these blocks: the mirror needs them. */
			mutex_lock(&tr->pages_mutex);
			bitmap_clear(space->lazy_stale, at, n);
			mutex_unlock(&tr->pages_mutex);
		}
		at += n;
	}
	return err;
}

static int write_bitmap(struct terrace *tr, const struct tr_super *super, void *buf)
{
	u64 b, start = super->bitmap_start[super->generation & 1];
	int err = 0;

	for (b = 0; b < super->bitmap_blocks && !err; b++) {
		tr_mbit_encode(buf, (u64 *)tr->pages->space.lazy_next + b * TERRACE_MBIT_WORDS,
			       b * TERRACE_MBIT_BITS, super->generation, super->volume_uuid);
		err = write_lazy(tr, start + b, buf, 1, 0);
	}
	return err;
}

static int write_super(struct terrace *tr, struct tr_super *super, void *buf)
{
	struct tr_meta_io io;

	/* Pages and bitmap are durable before the superblock that needs them. */
	tr_meta_io_start(&io);
	submit_bio(tr_meta_bio(tr, &io, TR_COPY_LAZY, REQ_OP_WRITE | REQ_PREFLUSH, 0, 0));
	tr_meta_wait(&io);
	if (io.copy[TR_COPY_LAZY].status)
		return blk_status_to_errno(io.copy[TR_COPY_LAZY].status);
	super->flags |= TERRACE_SUPER_LAZY;
	tr_super_encode(buf, super);
	return write_lazy(tr, super->generation & 1, buf, 1, REQ_FUA);
}

static void lazy_done(struct terrace *tr, const struct tr_super *super)
{
	struct tr_metaspace *space = &tr->pages->space;

	mutex_lock(&tr->pages_mutex);
	swap(space->lazy_has, space->lazy_next);
	bitmap_zero(space->lazy_next, space->blocks);
	tr->pages->lazy_super = *super;
	tr_metaspace_release__f(tr);
	mutex_unlock(&tr->pages_mutex);
}

static int lazy_copy(struct terrace *tr, bool clean)
{
	/* A commit may wait for lazy_mutex; the next checkpoint tries again. */
	struct tr_super *super = kmalloc(sizeof(*super), TR_GFP_MAY);
	void *buf = kvmalloc(PIECE_BLOCKS * TERRACE_BLOCK_BYTES, TR_GFP_MAY);
	int err = super && buf ? 0 : -ENOMEM;

	lockdep_assert_held(&tr->pages->lazy_mutex);
	if (err || !lazy_begin(tr, super, clean))	/* a clean stop's must be its last one */
		goto out;
	clean &= !!(super->flags & TERRACE_SUPER_CLEAN);
	if (clean)
		WRITE_ONCE(tr->pages->lazy_clean, true);	/* a write that fails may arrive */
	else
		super->flags &= ~TERRACE_SUPER_CLEAN;
	err = copy_pages(tr, buf) ?: write_bitmap(tr, super, buf) ?: write_super(tr, super, buf);
	if (!err)
		lazy_done(tr, super);
	else if (err != -EINTR)
		tr_lazy_drop(tr, "copying failed", err);
out:
	kvfree(buf);
	kfree(super);
	return err;
}

static void lazy_fn(struct work_struct *work)
{
	struct tr_meta *m = container_of(work, struct tr_meta, lazy_work);

	mutex_lock(&m->lazy_mutex);
	if (!READ_ONCE(m->lazy_stop) && tr_meta_live(m->tr, TR_COPY_LAZY) && tr_writable(m->tr))
		lazy_copy(m->tr, false);
	mutex_unlock(&m->lazy_mutex);
}

/* --- when ---------------------------------------------------------------- */

void tr_lazy_kick(struct terrace *tr)
{
	/* On system_long_wq: it may take minutes and nobody waits for it. */
	if (tr_meta_live(tr, TR_COPY_LAZY))
		queue_work(system_long_wq, &tr->pages->lazy_work);
}

/*
 * The mirror of a clean stop is of its last generation, even if that one stands
 * where the mirror's only complete one does: the primary is durable and CLEAN
 * by now. A power cut in between leaves a bitmap that does not fit, which the
 * next activation notices (load_has) and copies the mirror anew.
 */
int tr_lazy_sync(struct terrace *tr)
{
	struct tr_meta *m = tr->pages;
	int err = 0;

	if (!tr_meta_live(tr, TR_COPY_LAZY) || !(tr->super.flags & TERRACE_SUPER_CLEAN))
		return 0;
	mutex_lock(&m->lazy_mutex);
	/* Also when the worker has just copied this generation. */
	if (!(m->lazy_super.flags & TERRACE_SUPER_CLEAN) ||
	    m->lazy_super.generation != tr->super.generation)
		err = lazy_copy(tr, true);
	mutex_unlock(&m->lazy_mutex);
	return err == -ENOMEM ? err : 0;	/* a mirror that failed stops nothing */
}

/* --- the mark of a clean stop ---------------------------------------------- */

/* Reads the superblock at @place. May it say CLEAN? One that cannot be read may. */
static bool may_say_clean(struct terrace *tr, u32 place, int *err)
{
	struct tr_meta *m = tr->pages;

	*err = tr_meta_read(tr, TR_COPY_LAZY, place, m->lazy_block, 1);
	if (*err)
		return true;
	*err = tr_super_decode(&m->lazy_read, m->lazy_block);
	return !*err && m->lazy_read.flags & TERRACE_SUPER_CLEAN;
}

/* The mark goes, or the whole superblock, if it cannot be read. */
static int unmark(struct terrace *tr, u32 place)
{
	struct tr_meta *m = tr->pages;
	int err;

	if (!may_say_clean(tr, place, &err))
		return 0;
	if (err) {
		memset(m->lazy_block, 0, TERRACE_BLOCK_BYTES);
	} else {
		m->lazy_read.flags &= ~TERRACE_SUPER_CLEAN;
		tr_super_encode(m->lazy_block, &m->lazy_read);
	}
	return write_lazy(tr, place, m->lazy_block, 1, REQ_FUA);
}

/* What the newer one says is known as long as the mirror is in use. */
static int unmark_newer(struct terrace *tr, u32 place)
{
	struct tr_super *super = &tr->pages->lazy_super;

	if (!tr_meta_live(tr, TR_COPY_LAZY))
		return unmark(tr, place);
	if (!(super->flags & TERRACE_SUPER_CLEAN))
		return 0;
	super->flags &= ~TERRACE_SUPER_CLEAN;
	return write_super(tr, super, tr->pages->lazy_block);
}

/* If the older one cannot be written, it is hidden by the newer all the same. */
static int unmark_both(struct terrace *tr)
{
	u32 newer = tr->pages->lazy_super.generation & 1;
	int older_err = unmark(tr, !newer);

	return unmark_newer(tr, newer) ?: older_err;
}

/*
 * Before the first record that follows a clean stop. Both superblocks may say CLEAN:
 *
 *   - after two clean stops without a record between;
 *   - after a clean stop, and a generation that was copied beside it without the mark;
 *   - in the older place for long, where a module took the mark off the newer alone. As
 *     soon as the newer could not be read the older one would be believed.
 *
 * Each in its place, the older first:
 *
 *   - Power fails before the newer one is written: it says CLEAN, and no record has followed.
 *   - The newer one is torn: it takes the mirror with it, which then is copied anew. The
 *     older is not CLEAN any more. Only a power cut that destroys the primary as well
 *     could tell.
 *
 * A mirror that was given up may say CLEAN as well, as long as its drive is there. One
 * that cannot be written is tried again, at once and then once a second; the labels of the
 * other drives say that it is out of date.
 */
void tr_lazy_unclean(struct terrace *tr)
{
	struct tr_meta *m = tr->pages;
	int err;

	if (likely(!READ_ONCE(m->lazy_clean)) || !tr->lazy.bdev ||
	    time_before64(get_jiffies_64(), m->lazy_next_try))
		return;
	mutex_lock(&m->lazy_mutex);
	err = unmark_both(tr);
	if (err) {
		tr_lazy_drop(tr, "its superblocks cannot be written", err);
		err = unmark_both(tr);
	}
	if (!err)
		WRITE_ONCE(m->lazy_clean, false);
	else
		m->lazy_next_try = get_jiffies_64() + HZ;
	mutex_unlock(&m->lazy_mutex);
	if (err && !m->lazy_noted) {
		m->lazy_noted = true;
		set_bit(TR_COPY_LAZY, &tr->labels.to_note);
		tr_labels_note(tr);
	}
}

/* --- at open ------------------------------------------------------------- */

/* The blocks of the mirror's complete generation; they stay as they are. */
static int load_has(struct terrace *tr, const struct tr_super *super)
{
	struct tr_metaspace *space = &tr->pages->space;
	void *buf = (void *)__get_free_page(GFP_KERNEL);
	int err = buf ? 0 : -ENOMEM;
	u64 b;

	for (b = 0; b < super->bitmap_blocks && !err; b++) {
		err = tr_meta_read(tr, TR_COPY_LAZY,
				   super->bitmap_start[super->generation & 1] + b, buf, 1);
		if (!err)
			err = tr_mbit_decode(buf,
					     (u64 *)space->lazy_has + b * TERRACE_MBIT_WORDS,
					     b * TERRACE_MBIT_BITS, super->generation,
					     super->volume_uuid);
	}
	free_page((unsigned long)buf);
	return err;
}

/*
 * Is it certain that lazy_super is the newer of the two?
 *
 *   - Generation 5 is complete. The primary uses blocks again that 4 had and 5 has not.
 *   - The superblock of 5 cannot be read any more, 4's can, and its bitmap. By that those
 *     blocks would be the same on both, and never be copied.
 *
 * Only beside an older one of this volume, in the right place. Zeros may be all that is left of
 * 5: it was being made void, or its mark could not be taken off (unmark). So a mirror that has
 * had one generation since it was made void is copied anew, too.
 */
static bool is_newer(struct terrace *tr)
{
	struct tr_meta *m = tr->pages;
	int err;

	m->lazy_clean = may_say_clean(tr, !(m->lazy_super.generation & 1), &err) ||
			m->lazy_super.flags & TERRACE_SUPER_CLEAN;
	return !err && m->lazy_read.generation < m->lazy_super.generation &&
	       (m->lazy_read.generation ^ m->lazy_super.generation) & 1 &&
	       !memcmp(m->lazy_read.volume_uuid, m->lazy_super.volume_uuid, TERRACE_UUID_BYTES);
}

/*
 * What the mirror says is not true any more, or will not be while it is copied
 * anew: its superblocks go, before the first commit. The older first, which the
 * newer hides: it may say CLEAN since long ago (tr_lazy_unclean), and if power fails
 * in between it would stand beside zeros, as if it were the only one there has been.
 */
static void invalidate(struct terrace *tr)
{
	struct tr_meta *m = tr->pages;
	u32 newer = m->lazy_super.generation & 1;
	int err;

	/* If the other one may have been the newer, what is left of it goes last. */
	if (!is_newer(tr))
		newer = !newer;
	memset(m->lazy_block, 0, TERRACE_BLOCK_BYTES);
	err = write_lazy(tr, !newer, m->lazy_block, 1, REQ_FUA) ?:
	      write_lazy(tr, newer, m->lazy_block, 1, REQ_FUA);
	m->lazy_clean = err;		/* for all we know: tr_lazy_unclean() */
	if (err)
		tr_lazy_drop(tr, "its superblocks cannot be written", err);
}

int tr_lazy_open(struct terrace *tr)
{
	struct tr_metaspace *space = &tr->pages->space;
	struct tr_meta *m = tr->pages;
	int err;

	if (!tr_writable(tr))
		return 0;
	/* Is it on the tier that is missing? A volume with a synchronous one has none. */
	if (!tr->lazy.bdev && tr->tier_missing && !tr->meta[1].bdev) {
		set_bit(TR_COPY_LAZY, &tr->labels.to_note);
		tr_labels_note(tr);
	}
	if (!tr_meta_live(tr, TR_COPY_LAZY))
		return 0;
	err = tr_super_read(tr, TR_COPY_LAZY, &m->lazy_super);
	if (!err && (tr->super.flags & TERRACE_SUPER_LAZY_LOST ||
		     m->lazy_super.generation > tr->super.generation ||
		     memcmp(m->lazy_super.volume_uuid, tr->super.volume_uuid,
			    TERRACE_UUID_BYTES) || !is_newer(tr)))
		err = -ESTALE;
	if (!err)
		err = load_has(tr, &m->lazy_super);
	if (err == -ENOMEM)
		return err;
	if (err)
		invalidate(tr);
	mutex_lock(&tr->pages_mutex);
	bitmap_copy(space->lazy_stale, space->live, space->blocks);
	if (err) {
		/* Unknown or out of step: copied as a whole, from nothing. */
		memset(&m->lazy_super, 0, sizeof(m->lazy_super));
		bitmap_zero(space->lazy_has, space->blocks);
	} else {
		/* A block of its generation was not reused since: it is the same. */
		bitmap_andnot(space->lazy_stale, space->live, space->lazy_has, space->blocks);
	}
	bitmap_clear(space->lazy_stale, 0, space->first);
	tr_metaspace_release__f(tr);
	mutex_unlock(&tr->pages_mutex);
	return 0;
}

void tr_lazy_init(struct terrace *tr)
{
	mutex_init(&tr->pages->lazy_mutex);
	INIT_WORK(&tr->pages->lazy_work, lazy_fn);
}

void tr_lazy_hold(struct terrace *tr)
{
	WRITE_ONCE(tr->pages->lazy_stop, true);
	cancel_work_sync(&tr->pages->lazy_work);
}

void tr_lazy_release(struct terrace *tr)
{
	WRITE_ONCE(tr->pages->lazy_stop, false);
	tr_lazy_kick(tr);
}

void tr_lazy_exit(struct terrace *tr)
{
	tr_lazy_hold(tr);
}
