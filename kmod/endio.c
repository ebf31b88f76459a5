// SPDX-License-Identifier: GPL-2.0
/*
 * The end of an I/O, in whatever context the drive ends it. A write to a
 * fresh place becomes visible here, before the layer above hears of its end:
 * whoever reads after that sees the new data. It becomes durable with the
 * next commit.
 *
 * The tier is marked unflushed *before* the layer above sees the end, so a
 * flush that is sent after it finds the mark (partner: the exchange in the
 * commit worker).
 */
#include "io.h"

static void leave_epoch(struct tr_io *io)
{
	this_cpu_dec(io->tr->tier[io->tier].epoch_cpu->count[io->epoch]);
}

/* Zeros: what has got a place, or a pack, meanwhile keeps it. */
static u32 publish_zeros__f(struct tr_io *io)
{
	struct tr_region *region = io->region;
	struct terrace *tr = io->tr;
	u32 done, n, used = 0;
	struct tr_pack_ref ref;
	u64 place;

	for (done = 0; done < io->nr; done += n) {
		n = tr_leaf_run(&region->leaf, io->i + done, io->nr - done, &place);
		n = tr_region_find_pack(region, io->i + done, n, &ref);
		if (place == TR_NO_PLACE && !ref.id)
			used += tr_region_map__f(tr, region, io->i + done, n,
						 tr_place(io->tier, io->index + done));
		else
			tr_space_put(tr, &tr->tier[io->tier], io->index + done, n);
	}
	return used;
}

static void publish(struct tr_io *io)
{
	struct tr_region *region = io->region;
	struct terrace *tr = io->tr;
	struct tr_tier *tier = &tr->tier[io->tier];
	unsigned long flags;
	u32 used;

	spin_lock_irqsave(&region->lock, flags);
	if (tier->kind == TERRACE_KIND_SHELVES)
		tr_shelf_published(tr, tier, io->index,
				   (region->number << TERRACE_REGION_SHIFT) + io->i, io->nr, true);
	if (unlikely(io->zeros))
		used = publish_zeros__f(io);
	else
		used = tr_region_map__f(tr, region, io->i, io->nr, tr_place(io->tier, io->index));
	region->reserved -= io->nr;
	region->pins--;
	if (unlikely(!used))
		tr_credit_settle__f(tr, region);
	spin_unlock_irqrestore(&region->lock, flags);
	tr_journal_unreserve(tr, io->nr - used);
}

static void give_back(struct tr_io *io)
{
	struct tr_region *region = io->region;
	struct terrace *tr = io->tr;
	struct tr_tier *tier = &tr->tier[io->tier];
	unsigned long flags;

	spin_lock_irqsave(&region->lock, flags);
	region->reserved -= io->nr;
	region->pins--;
	tr_credit_settle__f(tr, region);
	spin_unlock_irqrestore(&region->lock, flags);
	tr_journal_unreserve(tr, io->nr);
	if (tier->kind == TERRACE_KIND_SHELVES)
		tr_shelf_abandoned(tr, tier, io->index, io->nr, true);
	else
		tr_space_put(tr, tier, io->index, io->nr);
}

void tr_io_end(struct tr_io *io, blk_status_t status)
{
	struct tr_tier *tier;

	if (io->kind == TR_IO_NONE)
		return;
	if (io->kind == TR_IO_FLUSH) {
		tr_commit_flushed(io, status);
		io->kind = TR_IO_NONE;
		return;
	}
	tier = &io->tr->tier[io->tier];
	if (io->kind != TR_IO_READ && !READ_ONCE(tier->unflushed))
		WRITE_ONCE(tier->unflushed, true);
	if (io->kind == TR_IO_NEW) {
		if (status)
			give_back(io);
		else
			publish(io);
	}
	leave_epoch(io);
	io->kind = TR_IO_NONE;
}
