// SPDX-License-Identifier: GPL-2.0
/*
 * A read that failed, of blocks with a clean copy: their pack has the same
 * value on another drive, and serves (contract 4).
 *
 * The bio is walked through a second time, the deferred way, with TR_HOW_PACK:
 * what is live in a pack comes from there, the rest is asked for again at its
 * place, so that exactly the blocks are lost which are only there. Once: what
 * fails then, fails.
 */
#include "io.h"

static bool is_clean(const struct tr_region *region, u32 i)
{
	struct tr_pack_ref ref;
	unsigned int seq;
	bool clean;

	do {
		seq = read_seqcount_begin(&region->seq);
		tr_region_find_pack(region, i, 1, &ref);
		clean = ref.id && tr_leaf_has(&region->leaf, i);
	} while (read_seqcount_retry(&region->seq, seq));
	return clean;
}

/* Is there a block with a clean copy in it? A bio lies in one region. */
static bool some_clean(struct terrace *tr, const struct bvec_iter *iter)
{
	u64 block = iter->bi_sector / TERRACE_BLOCK_SECTORS;
	u32 i = block % TERRACE_REGION_BLOCKS;
	u32 end = min_t(u32, i + iter->bi_size / TERRACE_BLOCK_BYTES, TERRACE_REGION_BLOCKS);
	struct tr_region *region;
	bool some = false;

	rcu_read_lock();
	region = tr_region_find(tr, block >> TERRACE_REGION_SHIFT);
	if (region && region != &tr->empty && tr_region_packs(region))
		for (; i < end && !some; i++)
			some = is_clean(region, i);
	rcu_read_unlock();
	return some;
}

void tr_rescued(const struct tr_io *io)
{
	u32 nr = io->iter.bi_size / TERRACE_BLOCK_BYTES;

	this_cpu_add(io->tr->stats->rescued, nr);
	DMWARN_LIMIT("%s: blocks %llu+%u could not be read at their place: where they have packs, these served",
		     io->tr->name, (u64)io->iter.bi_sector / TERRACE_BLOCK_SECTORS, nr);
}

bool tr_rescuable(const struct tr_io *io, const struct bio *bio, blk_status_t status)
{
	return bio_op(bio) == REQ_OP_READ && !io->rescue && status != BLK_STS_AGAIN &&
	       status != BLK_STS_DM_REQUEUE && some_clean(io->tr, &io->iter);
}
