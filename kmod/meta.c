// SPDX-License-Identifier: GPL-2.0
/*
 * I/O to the metadata area and its copies; the superblock; the mode ladder.
 *
 * Up to two copies are written synchronously: what is acknowledged is on all
 * copies in use. A copy that fails while the other works is dropped, and the
 * next superblock of the survivor says that it stands ALONE, so that the
 * dropped one is not believed when it comes back. When the last copy fails,
 * the volume goes read-only: memory may then be ahead of the disk, which is
 * what a crash would show as well.
 *
 * See also recover.c, which decides which copies belong together.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "meta.h"
#include "sense.h"

struct tr_meta_dev *tr_meta_dev(struct terrace *tr, u32 copy)
{
	return copy < TR_COPIES ? &tr->meta[copy] : &tr->lazy;
}

bool tr_meta_live(struct terrace *tr, u32 copy)
{
	struct tr_meta_dev *dev = tr_meta_dev(tr, copy);

	return dev->bdev && !READ_ONCE(dev->failed);
}

u32 tr_meta_nr_live(struct terrace *tr)
{
	return tr_meta_live(tr, 0) + tr_meta_live(tr, 1);
}

const char *tr_mirror_state(struct terrace *tr)
{
	if (tr_meta_nr_live(tr) == 2)
		return "sync";
	if ((tr->meta[0].bdev && tr->meta[1].bdev) || (tr->lazy.bdev && tr->lazy.failed))
		return "degraded";
	return tr_meta_live(tr, TR_COPY_LAZY) ? "lazy" : "none";
}

/* --- bios ---------------------------------------------------------------- */

static void meta_end(struct bio *bio)
{
	struct tr_meta_io_copy *copy = bio->bi_private;
	struct tr_meta_io *io = copy->io;

	if (bio->bi_status) {
		WRITE_ONCE(copy->status, bio->bi_status);
		tr_bio_failed(bio);
	}
	bio_put(bio);
	if (atomic_dec_and_test(&io->pending))
		complete(&io->done);
}

void tr_meta_io_start(struct tr_meta_io *io)
{
	u32 c;

	atomic_set(&io->pending, 1);	/* ours, until tr_meta_wait() */
	init_completion(&io->done);
	for (c = 0; c < ARRAY_SIZE(io->copy); c++) {
		io->copy[c].io = io;
		io->copy[c].status = BLK_STS_OK;
	}
}

struct bio *tr_meta_bio(struct terrace *tr, struct tr_meta_io *io, u32 c, blk_opf_t opf,
			u64 block, u32 nr)
{
	struct tr_meta_dev *dev = tr_meta_dev(tr, c);
	/* From a mempool, and each bio is on its way before the next is
	 * allocated: this waits under memory pressure but does not fail.
	 */
	struct bio *bio = bio_alloc_bioset(dev->bdev, nr, opf | REQ_META, GFP_NOIO,
					   &tr->pages->bios);

	bio->bi_iter.bi_sector = dev->start_sector + block * TERRACE_BLOCK_SECTORS;
	bio->bi_end_io = meta_end;
	bio->bi_private = &io->copy[c];
	atomic_inc(&io->pending);
	return bio;
}

void tr_meta_add(struct bio *bio, void *data)
{
	struct page *page = is_vmalloc_addr(data) ? vmalloc_to_page(data) : virt_to_page(data);

	/* Cannot fail: the bio was made with a vector per block. */
	__bio_add_page(bio, page, TERRACE_BLOCK_BYTES, offset_in_page(data));
}

void tr_meta_submit(struct terrace *tr, struct tr_meta_io *io, u32 c, blk_opf_t opf,
		    u64 block, void *buf, u32 nr)
{
	while (nr) {
		u32 n = min_t(u32, nr, BIO_MAX_VECS), i;
		struct bio *bio = tr_meta_bio(tr, io, c, opf, block, n);

		for (i = 0; i < n; i++)
			tr_meta_add(bio, buf + i * TERRACE_BLOCK_BYTES);
		submit_bio(bio);
		block += n;
		buf += n * TERRACE_BLOCK_BYTES;
		nr -= n;
	}
}

void tr_meta_write(struct terrace *tr, struct tr_meta_io *io, blk_opf_t opf, u64 block,
		   void *buf, u32 nr)
{
	u32 c;

	for (c = 0; c < TR_COPIES; c++)
		if (tr_meta_live(tr, c))
			tr_meta_submit(tr, io, c, REQ_OP_WRITE | opf, block, buf, nr);
}

void tr_meta_flush(struct terrace *tr, struct tr_meta_io *io)
{
	u32 c;

	for (c = 0; c < TR_COPIES; c++)
		if (tr_meta_live(tr, c))
			submit_bio(tr_meta_bio(tr, io, c, REQ_OP_WRITE | REQ_PREFLUSH, 0, 0));
}

void tr_meta_wait(struct tr_meta_io *io)
{
	if (!atomic_dec_and_test(&io->pending))
		wait_for_completion_io(&io->done);
}

static void copy_name(struct terrace *tr, u32 c, char *name, size_t size)
{
	u8 tier = tr_meta_dev(tr, c)->tier;

	if (tier == TERRACE_META_DEVICE)
		snprintf(name, size, "the metadata device");
	else
		snprintf(name, size, "tier %u", tier);
}

void tr_meta_drop(struct terrace *tr, u32 c, const char *what, int err)
{
	struct tr_meta_dev *dev = tr_meta_dev(tr, c);
	char name[32];

	if (READ_ONCE(dev->failed))
		return;
	/* Who sees that it failed sees that there is something to note. */
	set_bit(c, &tr->labels.to_note);
	if (xchg(&dev->failed, true))
		return;
	copy_name(tr, c, name, sizeof(name));
	DMERR("%s: %s on %s failed (%d): metadata there is no longer kept up, the volume goes on without its mirror",
	      tr->name, what, name, err);
	/* The sooner the survivor says that it is alone the better. */
	tr_checkpoint_kick(tr);
}

static DEFINE_SPINLOCK(drop_lock);

int tr_meta_written(struct terrace *tr, struct tr_meta_io *io, const char *what)
{
	bool bad[TR_COPIES] = {};
	int err = 0;
	u32 c;

	tr_meta_wait(io);
	for (c = 0; c < TR_COPIES; c++) {
		if (!io->copy[c].status)
			continue;
		bad[c] = true;
		err = blk_status_to_errno(io->copy[c].status);
	}
	if (!err) {
		tr_labels_note(tr);
		return 0;
	}
	/* Test and drop in one step: two writers that each lost another copy
	 * must not drop both.
	 */
	spin_lock(&drop_lock);
	for (c = 0; c < TR_COPIES; c++) {
		if (bad[c] && tr_meta_live(tr, !c) && !bad[!c]) {
			tr_meta_drop(tr, c, what, err);
			spin_unlock(&drop_lock);
			tr_labels_note(tr);
			return 0;
		}
	}
	spin_unlock(&drop_lock);
	/* Not marked failed: what can still be read of it is served. */
	tr_mode_lower(tr, TR_MODE_READ_ONLY, what, err);
	return -EIO;
}

int tr_meta_read(struct terrace *tr, u32 c, u64 block, void *buf, u32 nr)
{
	struct tr_meta_io io;

	if (!tr_meta_dev(tr, c)->bdev)
		return -ENODEV;
	tr_meta_io_start(&io);
	tr_meta_submit(tr, &io, c, REQ_OP_READ, block, buf, nr);
	tr_meta_wait(&io);
	return blk_status_to_errno(io.copy[c].status);
}

/* --- superblock ---------------------------------------------------------- */

/*
 * Makes @super the volume's state. Everything it refers to has been written
 * to every live copy.
 *
 * Crash argument: the flush is awaited on all copies before any superblock is
 * sent. A superblock that is not ALONE therefore means that both copies hold
 * all its pages, also when power fails before the other's superblock is down.
 * Whether it is ALONE is decided after the flush: a copy that failed up to
 * there is out, one that fails later lacks only a superblock and journal
 * blocks, which recovery gives back to it.
 */
int tr_super_write(struct terrace *tr, struct tr_super *super)
{
	void *block = tr->pages->super_block;
	struct tr_meta_io io;
	int err;

	lockdep_assert_held(&tr->checkpoint_mutex);
	tr_meta_io_start(&io);
	tr_meta_flush(tr, &io);
	err = tr_meta_written(tr, &io, "flush of metadata pages");
	if (err)
		return err;
	super->flags &= ~TERRACE_SUPER_ALONE;
	if (tr_meta_nr_live(tr) < 2)
		super->flags |= TERRACE_SUPER_ALONE;
	tr_super_encode(block, super);
	tr_meta_io_start(&io);
	tr_meta_write(tr, &io, REQ_FUA | REQ_SYNC, super->generation & 1, block, 1);
	return tr_meta_written(tr, &io, "writing the superblock");
}

/* --- the ladder ---------------------------------------------------------- */

static void event_fn(struct work_struct *work)
{
	struct terrace *tr = container_of(work, struct terrace, event_work);
	struct dm_target *ti = READ_ONCE(tr->ti);

	wake_up_all(&tr->journal.wait);
	tr_room_made(tr);		/* parked bios see the mode and fail */
	tr_credits_wake(tr);
	if (ti)
		dm_table_event(ti->table);
}

void tr_mode_lower(struct terrace *tr, enum tr_mode mode, const char *why, int err)
{
	enum tr_mode old = READ_ONCE(tr->mode);

	do {
		if (old >= mode)
			return;
	} while (!try_cmpxchg(&tr->mode, &old, mode));
	DMERR("%s: %s (%d): the volume %s", tr->name, why, err,
	      mode == TR_MODE_READ_ONLY ? "is read-only from now on" : "makes nothing durable from now on, and only reads");
	tr_event(tr, TERRACE_EVENT_MODE, TR_NO_TIER, TR_NO_REGION, mode);
	queue_work(system_wq, &tr->event_work);
}

/* --- set-up -------------------------------------------------------------- */

int tr_meta_init(struct terrace *tr)
{
	struct tr_meta *m = kzalloc(sizeof(*m), GFP_KERNEL);
	u32 level;
	int err;

	if (!m)
		return -ENOMEM;
	INIT_WORK(&tr->event_work, event_fn);
	init_waitqueue_head(&tr->journal.wait);
	xa_init(&m->dirs);
	INIT_LIST_HEAD(&m->clean);
	for (level = 0; level < ARRAY_SIZE(m->dirty); level++)
		INIT_LIST_HEAD(&m->dirty[level]);
	tr->pages = m;
	err = bioset_init(&m->bios, 16, 0, BIOSET_NEED_BVECS);
	m->super_block = (void *)__get_free_page(GFP_KERNEL);
	m->lazy_block = (void *)__get_free_page(GFP_KERNEL);
	if (!err && (!m->super_block || !m->lazy_block))
		err = -ENOMEM;
	if (err)
		tr_meta_exit(tr);
	return err;
}

void tr_meta_exit(struct terrace *tr)
{
	struct tr_meta *m = tr->pages;

	if (!m)
		return;
	bioset_exit(&m->bios);
	free_page((unsigned long)m->lazy_block);
	free_page((unsigned long)m->super_block);
	kfree(m);
	tr->pages = NULL;
}
