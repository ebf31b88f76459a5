// SPDX-License-Identifier: GPL-2.0
/*
 * Reading and writing kernel buffers at device addresses: many at once, then
 * waiting for all of them. For metadata and moves; the data path sends its
 * own bios.
 */
#include <linux/mm.h>
#include <linux/vmalloc.h>

#include "sense.h"
#include "terrace.h"

/*
 * Not the block layer's own set: swap and filesystems take their bios from that, and
 * theirs may be waiting for ours. Each bio is on its way before the next is allocated.
 */
static struct bio_set bursts;

#define GENTLE_PAGES	8	/* in one bio */
#define MOST_BAD	64	/* blocks that were tried; a drive may take half a minute for each … */
#define PATIENCE_SECONDS 60	/* … or no time */

int tr_rw_init(void)
{
	return bioset_init(&bursts, 16, 0, BIOSET_NEED_BVECS);
}

void tr_rw_exit(void)
{
	bioset_exit(&bursts);
}

static struct page *page_of(const void *p)
{
	return is_vmalloc_addr(p) ? vmalloc_to_page(p) : virt_to_page(p);
}

void tr_burst_begin(struct tr_burst *burst)
{
	atomic_set(&burst->pending, 1);		/* ours, until tr_burst_wait() */
	init_completion(&burst->done);
	burst->err = 0;
}

static void burst_put(struct tr_burst *burst)
{
	if (atomic_dec_and_test(&burst->pending))
		complete(&burst->done);
}

static void burst_end_io(struct bio *bio)
{
	struct tr_burst *burst = bio->bi_private;

	/* In whichever of its words a drive says that it failed: the same to us. */
	if (bio->bi_status)
		WRITE_ONCE(burst->err, tr_bio_failed(bio) ? -EIO : blk_status_to_errno(bio->bi_status));
	bio_put(bio);
	burst_put(burst);
}

/* Who works gently prepares little without a pause, and a drive copies no more at once. */
static u32 most_pages(void)
{
	return task_nice(current) > 0 ? GENTLE_PAGES : BIO_MAX_VECS;
}

void tr_burst_rw(struct tr_burst *burst, struct block_device *bdev, sector_t sector,
		 void *buf, u32 bytes, blk_opf_t opf)
{
	u32 done = 0, most = most_pages();

	while (done < bytes) {
		u32 pages = min_t(u32, DIV_ROUND_UP(offset_in_page(buf + done) + bytes - done,
						    PAGE_SIZE), most);
		struct bio *bio = bio_alloc_bioset(bdev, pages, opf, GFP_NOIO, &bursts);

		bio->bi_iter.bi_sector = sector + (done >> SECTOR_SHIFT);
		bio->bi_end_io = burst_end_io;
		bio->bi_private = burst;
		/* Pages that follow one another in memory share an entry of the bio. */
		while (done < bytes && bio->bi_iter.bi_size < pages * PAGE_SIZE) {
			u32 at = offset_in_page(buf + done);
			u32 n = min_t(u32, bytes - done, PAGE_SIZE - at);

			if (bio_add_page(bio, page_of(buf + done), n, at) != n)
				break;
			done += n;
		}
		atomic_inc(&burst->pending);
		submit_bio(bio);
		if (done < bytes)
			tr_give_way();
	}
}

void tr_burst_discard(struct tr_burst *burst, struct block_device *bdev, sector_t sector, u32 bytes)
{
	struct bio *bio = bio_alloc_bioset(bdev, 0, REQ_OP_DISCARD, GFP_NOIO, &bursts);

	bio->bi_iter.bi_sector = sector;
	bio->bi_iter.bi_size = bytes;
	bio->bi_end_io = burst_end_io;
	bio->bi_private = burst;
	atomic_inc(&burst->pending);
	submit_bio(bio);
}

int tr_burst_wait(struct tr_burst *burst)
{
	burst_put(burst);
	wait_for_completion_io(&burst->done);
	return READ_ONCE(burst->err);
}

int tr_rw(struct block_device *bdev, sector_t sector, void *buf, u32 bytes, blk_opf_t opf)
{
	struct tr_burst burst;

	tr_burst_begin(&burst);
	tr_burst_rw(&burst, bdev, sector, buf, bytes, opf);
	return tr_burst_wait(&burst);
}

void tr_unread_note(struct tr_unread *bad)
{
	if (!bad->nr++)
		bad->since = jiffies;
}

bool tr_gave_up_reading(const struct terrace *tr, const struct tr_unread *bad)
{
	return READ_ONCE(tr->stopping) || (bad->nr && READ_ONCE(tr->orders_held)) ||
	       (bad->nr >= MOST_BAD && time_after(jiffies, bad->since + PATIENCE_SECONDS * HZ));
}

int tr_read_each(struct terrace *tr, struct block_device *bdev, sector_t sector, void *buf, u32 n,
		 struct tr_unread *bad)
{
	int err = tr_rw(bdev, sector, buf, n * TERRACE_BLOCK_BYTES, REQ_OP_READ), r;
	u32 k;

	bad->which = 0;
	if (!err)
		return 0;
	for (err = 0, k = 0; k < n; k++, sector += TERRACE_BLOCK_SECTORS, buf += TERRACE_BLOCK_BYTES) {
		r = tr_gave_up_reading(tr, bad) ? -EIO :
		    tr_rw(bdev, sector, buf, TERRACE_BLOCK_BYTES, REQ_OP_READ);
		if (r) {
			memset(buf, 0, TERRACE_BLOCK_BYTES);
			tr_unread_note(bad);
			bad->which |= k < 64 ? BIT_ULL(k) : 0;
		}
		err = err ?: r;
	}
	return err;
}
