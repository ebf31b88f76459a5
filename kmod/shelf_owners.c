// SPDX-License-Identifier: GPL-2.0
/*
 * Reading back what a shelf says of its loose blocks: from its owner table, or, when there is
 * none, from the owner blocks that stand among them. Hints from an earlier time, whoever asks:
 * the map has the last word.
 */
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "shelf.h"

/* From the owner table; 0: there is none, or only parts of one. */
static u32 owners_of_table(struct terrace *tr, struct tr_tier *tier, u32 chunk, void *buf,
			   struct tr_owner *owner)
{
	u64 first = ((u64)chunk << TERRACE_CHUNK_SHIFT) + SHELF_DATA, id = 0;
	u64 *block = buf + TERRACE_TABLE_BLOCKS * TERRACE_BLOCK_BYTES;
	struct tr_table head;
	u32 k, i, nr = 0;

	if (tr_rw(tier->bdev, tier->data_sector + first * TERRACE_BLOCK_SECTORS, buf,
		  TERRACE_TABLE_BLOCKS * TERRACE_BLOCK_BYTES, REQ_OP_READ))
		return 0;
	for (k = 0; k < TERRACE_TABLE_BLOCKS; k++) {
		if (tr_table_decode(buf + k * TERRACE_BLOCK_BYTES, &head, block,
				    tr_place(tier->number, first + k), tr->super.volume_uuid))
			return 0;
		if (k && head.shelf_id != id)
			return 0;		/* half of it is from an earlier life */
		id = head.shelf_id;
		for (i = 0; i < head.nr && nr < TERRACE_CHUNK_BLOCKS; i++)
			if (block[i] != TERRACE_NO_OWNER)
				owner[nr++] = (struct tr_owner){
					.block = block[i], .offset = head.first_offset + i,
				};
	}
	return nr;
}

/* From the owner blocks: the whole shelf is read. An error only if nothing was found; *@some_bad:
 * parts of it could not be read.
 */
static int owners_of_blocks(struct terrace *tr, struct tr_tier *tier, u32 chunk, void *buf,
			    struct tr_owner *owner, bool *some_bad)
{
	u64 first = (u64)chunk << TERRACE_CHUNK_SHIFT;
	struct tr_owners head;
	struct tr_unread bad = {};
	u32 at, k, i, nr = 0;

	for (at = 0; at < SHELF_DATA && !tr_gave_up_reading(tr, &bad); at += TERRACE_TABLE_BLOCKS) {
		u32 n = min_t(u32, TERRACE_TABLE_BLOCKS, SHELF_DATA - at);

		/* What cannot be read is no owner block; what lies beside it may be one. */
		tr_read_each(tr, tier->bdev,
			     tier->data_sector + (first + at) * TERRACE_BLOCK_SECTORS, buf, n, &bad);
		for (k = 0; k < n; k++) {
			void *b = buf + k * TERRACE_BLOCK_BYTES;

			if (tr_owners_decode(b, &head, tr_place(tier->number, first + at + k),
					     tr->super.volume_uuid))
				continue;
			for (i = 0; i < head.nr && nr < TERRACE_CHUNK_BLOCKS; i++) {
				tr_owners_get(b, i, &owner[nr]);
				nr += owner[nr].block != TERRACE_NO_OWNER;
			}
		}
	}
	*some_bad = bad.nr;
	return nr || !(bad.nr || READ_ONCE(tr->stopping)) ? nr : -EIO;
}

int tr_shelf_owners(struct terrace *tr, struct tr_tier *tier, u32 chunk, struct tr_owner *owner,
		    bool *some_bad)
{
	void *buf = kvmalloc((TERRACE_TABLE_BLOCKS + 1) * TERRACE_BLOCK_BYTES, GFP_NOIO);
	int nr;

	static_assert(TERRACE_TABLE_OWNERS * sizeof(u64) <= TERRACE_BLOCK_BYTES);
	if (!buf)
		return -ENOMEM;
	*some_bad = false;
	nr = owners_of_table(tr, tier, chunk, buf, owner);
	if (!nr)
		nr = owners_of_blocks(tr, tier, chunk, buf, owner, some_bad);
	kvfree(buf);
	return nr;
}
