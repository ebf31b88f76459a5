// SPDX-License-Identifier: GPL-2.0
/*
 * Changes of a region's packs, each written to the journal as it is made. What
 * the records mean and in which order a move writes them is in
 * Documentation/decisions/0003-packs.md.
 *
 * A pack whose last block was overwritten or discarded is dropped when the
 * region is next written to its page: whoever took the block away may not
 * sleep, and has no journal credits to spare.
 */
#include "packs.h"

u32 tr_region_find_pack(const struct tr_region *region, u32 i, u32 n, struct tr_pack_ref *ref)
{
	struct tr_packs *packs = tr_region_packs(region);
	const struct tr_pack *pack;
	u32 at;

	ref->id = 0;
	if (likely(!packs))
		return n;
	n = tr_packs_run(packs, i, n, &at);
	if (at == TR_NO_PACK)
		return n;
	pack = &packs->pack[min_t(u32, at, packs->cap - 1)];	/* a torn read */
	*ref = (struct tr_pack_ref){
		.id = READ_ONCE(pack->id), .region = region->number,
		.place = READ_ONCE(pack->place), .index_place = READ_ONCE(pack->index_place),
		.header_crc = READ_ONCE(pack->header_crc), .blocks = READ_ONCE(pack->blocks),
		.index_blocks = READ_ONCE(pack->index_blocks),
	};
	return n;
}

void tr_packs_forgotten__f(struct terrace *tr, struct tr_region *region, u32 i, u32 n)
{
	struct tr_packs *packs = tr_region_packs(region);
	u32 k;

	lockdep_assert_held(&region->lock);
	for (k = 0; packs && k < packs->nr; k++)
		tr_promotion_forget(tr, packs->pack[k].id, i, n);
}

u32 tr_pack_add__f(struct terrace *tr, struct tr_region *region, const struct tr_pack *pack)
{
	struct tr_record record = {
		.type = TERRACE_RECORD_PACK_ADD, .nr = pack->blocks, .block = region->number,
		.new = pack->place, .old = pack->id, .aux = pack->header_crc,
	};
	int err;

	lockdep_assert_held(&region->lock);
	tr_region_record__f(tr, region, &record);
	write_seqcount_begin(&region->seq);
	err = tr_packs_add(tr_region_packs(region), pack);
	write_seqcount_end(&region->seq);
	WARN_ON_ONCE(err);
	return 1;
}

u32 tr_pack_drop_copy__f(struct terrace *tr, struct tr_region *region, const struct tr_pack *pack)
{
	struct tr_record record = {
		.type = TERRACE_RECORD_INDEX_DROP, .nr = pack->index_blocks,
		.block = region->number, .new = pack->index_place, .old = pack->id,
	};

	lockdep_assert_held(&region->lock);
	tr_region_record__f(tr, region, &record);
	write_seqcount_begin(&region->seq);
	tr_packs_index(tr_region_packs(region), pack->id, TR_NO_PLACE, 0);
	write_seqcount_end(&region->seq);
	return 1;
}

static u32 drop__f(struct terrace *tr, struct tr_region *region, const struct tr_pack *pack)
{
	struct tr_record record = {
		.type = TERRACE_RECORD_PACK_DROP, .nr = pack->blocks, .block = region->number,
		.new = pack->place, .old = pack->id,
	};
	u32 credits = 1;

	if (pack->index_place != TR_NO_PLACE)
		credits += tr_pack_drop_copy__f(tr, region, pack);
	tr_region_record__f(tr, region, &record);
	write_seqcount_begin(&region->seq);
	tr_packs_drop(tr_region_packs(region), pack->id);
	write_seqcount_end(&region->seq);
	tr_promotion_forget(tr, pack->id, 0, TERRACE_REGION_BLOCKS);
	return credits;
}

u32 tr_packs_drop_dead__f(struct terrace *tr, struct tr_region *region)
{
	struct tr_packs *packs = tr_region_packs(region);
	u32 k, credits = 0;

	lockdep_assert_held(&region->lock);
	for (k = 0; packs && k < packs->nr;) {
		struct tr_pack pack = packs->pack[k];

		if (tr_pack_live(&pack))
			k++;
		else
			credits += drop__f(tr, region, &pack);
	}
	return credits;
}

/* By the checkpoint, before the region's image is made: never waits. */
void tr_region_drop_packs(struct terrace *tr, struct tr_region *region)
{
	u32 credits = 2 * TERRACE_PACK_SLOTS, k;
	struct tr_packs *packs;
	unsigned long flags;
	bool dead = false;

	if (!tr_writable(tr))
		return;
	spin_lock_irqsave(&region->lock, flags);
	packs = tr_region_packs(region);
	for (k = 0; packs && k < packs->nr; k++)
		dead |= !tr_pack_live(&packs->pack[k]);
	/* A move adds its pack before it puts blocks into it, in one go: what is
	 * dead under the lock stays dead.
	 */
	spin_unlock_irqrestore(&region->lock, flags);
	if (!dead || !tr_journal_reserve(tr, credits))
		return;
	spin_lock_irqsave(&region->lock, flags);
	credits -= tr_packs_drop_dead__f(tr, region);
	spin_unlock_irqrestore(&region->lock, flags);
	tr_journal_unreserve(tr, credits);
}

u32 tr_packed__f(struct terrace *tr, struct tr_region *region, u64 id, u32 i, u32 n)
{
	u32 done, m, credits = 0;
	u64 old;
	int err;

	lockdep_assert_held(&region->lock);
	for (done = 0; done < n; done += m, credits++) {
		struct tr_record record = {
			.type = TERRACE_RECORD_PACKED, .new = id,
			.block = (region->number << TERRACE_REGION_SHIFT) + i + done,
		};

		m = tr_leaf_run(&region->leaf, i + done, n - done, &old);
		record.nr = m;
		record.old = old;
		tr_region_record__f(tr, region, &record);
	}
	write_seqcount_begin(&region->seq);
	tr_leaf_clear(&region->leaf, i, n);
	err = tr_packs_put(tr_region_packs(region), id, i, n);
	write_seqcount_end(&region->seq);
	WARN_ON_ONCE(err);
	return credits;
}

u32 tr_packed_mask__f(struct terrace *tr, struct tr_region *region, u64 id, const u64 *mask)
{
	u32 w, b, credits = 0;

	lockdep_assert_held(&region->lock);
	for (w = 0; w < TR_LEAF_WORDS; w++) {
		struct tr_record record = {
			.type = TERRACE_RECORD_PACKED_MASK, .new = id, .old = mask[w], .nr = 64,
			.block = (region->number << TERRACE_REGION_SHIFT) + w * 64,
		};

		if (!mask[w])
			continue;
		tr_region_record__f(tr, region, &record);
		credits++;
		write_seqcount_begin(&region->seq);
		for (b = 0; b < 64; b++)
			if (mask[w] >> b & 1)
				tr_packs_put(tr_region_packs(region), id, w * 64 + b, 1);
		write_seqcount_end(&region->seq);
	}
	return credits;
}

u32 tr_clean__f(struct terrace *tr, struct tr_region *region, u64 id, u32 i, u32 n, u64 place,
		bool kept)
{
	struct tr_record record = {
		.type = TERRACE_RECORD_CLEAN, .nr = n, .new = place, .old = id,
		.aux = kept ? TERRACE_CLEAN_KEPT : 0,
		.block = (region->number << TERRACE_REGION_SHIFT) + i,
	};
	int err;

	lockdep_assert_held(&region->lock);
	tr_region_record__f(tr, region, &record);
	write_seqcount_begin(&region->seq);
	err = tr_leaf_set(&region->leaf, i, n, place);
	if (!err)
		err = tr_packs_put(tr_region_packs(region), id, i, n);
	write_seqcount_end(&region->seq);
	this_cpu_add(tr->stats->hidden, n);
	WARN_ON_ONCE(err);
	return 1;
}
