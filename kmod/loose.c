// SPDX-License-Identifier: GPL-2.0
/*
 * A read of one loose block of a disk. Whatever else wants the disk waits for its head
 * meanwhile, so what was read is kept in the promotion cache: who reads it again, and the
 * order that brings it up, need not move the head a second time. Drives without one
 * serve many at once, and a second read is left to them.
 *
 * The drive reads into the cache's own memory, and the reader gets a copy. Not the other way: he
 * may write to his page as soon as the drive has, and what is kept may become the
 * block for good.
 *
 * Without memory, map() goes on as with all other reads. An error is the reader's, as if the
 * drive had been asked for him directly. Until all that is done, the bio counts in the epoch
 * of the tier.
 */
#include "io.h"
#include "loose.h"
#include "packing.h"

static void loose_end_io(struct bio *bio)
{
	struct tr_loose *loose = container_of(bio, struct tr_loose, bio);
	struct tr_cached *entry = loose->entry;
	struct bio *to = loose->to;
	struct terrace *tr = tr_io_of(to)->tr;

	to->bi_status = bio->bi_status;
	bio_uninit(bio);
	if (to->bi_status) {
		tr_cached_put(tr, entry);
	} else {
		tr_unpack_copy(to, tr_cached_data(entry));
		tr_promotion_loose_keep(tr, entry);
	}
	bio_endio(to);			/* leaves the epoch */
}

/* What the drive is asked for instead of @to, which is ready to be sent. */
static void send(struct terrace *tr, struct bio *to, struct tr_cached *entry)
{
	struct tr_loose *loose = dm_per_bio_data(to, tr_per_bio_bytes);
	void *room = tr_promotion_loose_room(entry);

	loose->to = to;
	loose->entry = entry;
	bio_init(&loose->bio, to->bi_bdev, &loose->vec, 1,
		 REQ_OP_READ | (to->bi_opf & (REQ_SYNC | REQ_META | REQ_PRIO | REQ_NOWAIT)));
	bio_clone_blkg_association(&loose->bio, to);
	loose->bio.bi_iter.bi_sector = to->bi_iter.bi_sector;
	loose->bio.bi_ioprio = to->bi_ioprio;
	loose->bio.bi_end_io = loose_end_io;
	__bio_add_page(&loose->bio, virt_to_page(room), TERRACE_BLOCK_BYTES, offset_in_page(room));
	submit_bio_noacct(&loose->bio);
}

bool tr_loose_read(struct terrace *tr, struct bio *bio)
{
	struct tr_io *io = tr_io_of(bio);
	u64 place = tr_place(io->tier, io->index);
	struct tr_cached *entry = tr_promotion_loose_find(tr, place);

	if (entry) {
		tr_unpack_copy(bio, tr_cached_data(entry));
		tr_cached_put(tr, entry);
		this_cpu_inc(tr->stats->cache_hits);
		io->timed = false;	/* says nothing of the disk */
		bio_endio(bio);
		return true;
	}
	entry = tr_promotion_loose_new(tr, place);
	if (!entry)
		return false;
	send(tr, bio, entry);
	return true;
}
