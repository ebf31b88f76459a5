// SPDX-License-Identifier: GPL-2.0
/*
 * What is on the medium: a sparse tree of 4 KiB pages, absent = zeros. A
 * block discarded while a power cut could still bring it back is not absent
 * but erased: so a later discard of it is not mistaken for one of nothing.
 *
 * The model owns its memory instead of sitting on a ram disk because a power
 * cut needs the old contents of every unflushed write in the same instant as
 * the new ones go in. Here that is a swap of two page pointers under a lock;
 * over another block device it would be a second, asynchronous I/O with
 * ordering rules of its own.
 */
#include <linux/highmem.h>
#include <linux/slab.h>

#include "drive.h"

#define ERASED	xa_mk_value(0)

static struct page *to_page(void *entry)
{
	return xa_is_value(entry) ? NULL : entry;
}

struct page *drive_media_page(struct drive *d, u64 block)
{
	return to_page(xa_load(&d->pages, block));
}

/**
 * drive_media_swap() - put a page in, get the one that was there
 * @d: the drive
 * @block: its number
 * @page: the page to put in or NULL to erase; receives the old one or NULL
 * @gfp: for the tree's nodes
 *
 * Return: 0, or -ENOMEM with nothing changed.
 */
int drive_media_swap(struct drive *d, u64 block, struct page **page, gfp_t gfp)
{
	void *old = xa_store(&d->pages, block, *page ? (void *)*page : ERASED, gfp);

	if (xa_is_err(old))
		return xa_err(old);
	*page = to_page(old);
	return 0;
}

/* Nobody needs to know any more that there was something. */
void drive_media_forget(struct drive *d, u64 block)
{
	struct page *page = to_page(xa_erase(&d->pages, block));

	if (page)
		__free_page(page);
}

static void give(struct bio *bio, struct bvec_iter *iter, const void *from,
		 unsigned int bytes)
{
	while (bytes) {
		struct bio_vec bv = bio_iter_iovec(bio, *iter);
		unsigned int n = min(bytes, bv.bv_len);
		void *to = bvec_kmap_local(&bv);

		if (from) {
			memcpy(to, from, n);
			from += n;
		} else {
			memset(to, 0, n);
		}
		flush_dcache_page(bv.bv_page);
		kunmap_local(to);
		bio_advance_iter(bio, iter, n);
		bytes -= n;
	}
}

/**
 * drive_media_take() - copy data out of a bio
 * @to: where to
 * @bio: where from
 * @iter: position in @bio, moved on
 * @bytes: how much
 */
void drive_media_take(void *to, struct bio *bio, struct bvec_iter *iter,
		      unsigned int bytes)
{
	while (bytes) {
		struct bio_vec bv = bio_iter_iovec(bio, *iter);
		unsigned int n = min(bytes, bv.bv_len);
		void *from = bvec_kmap_local(&bv);

		memcpy(to, from, n);
		kunmap_local(from);
		bio_advance_iter(bio, iter, n);
		to += n;
		bytes -= n;
	}
}

/**
 * drive_media_read() - fill a read from the medium
 * @d: the drive
 * @op: the read
 */
void drive_media_read(struct drive *d, struct drive_op *op)
{
	lockdep_assert_held(&d->media_lock);
	while (op->iter.bi_size) {
		u64 sector = op->iter.bi_sector;
		unsigned int offset = (sector % BLOCK_SECTORS) << SECTOR_SHIFT;
		unsigned int n = min(op->iter.bi_size, BLOCK_BYTES - offset);
		struct page *page;
		void *from;

		page = drive_media_page(d, sector / BLOCK_SECTORS);
		if (!page) {
			give(op->bio, &op->iter, NULL, n);
			continue;
		}
		from = kmap_local_page(page);
		give(op->bio, &op->iter, from + offset, n);
		kunmap_local(from);
	}
}

void drive_media_free(struct drive *d)
{
	struct page *page;
	unsigned long block;

	xa_for_each(&d->pages, block, page) {
		if (to_page(page))
			__free_page(page);
		cond_resched();
	}
	xa_destroy(&d->pages);
}
