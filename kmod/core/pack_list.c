// SPDX-License-Identifier: GPL-2.0
/*
 * The packs of a region and their live bitmaps. Writers keep two things true:
 * ids fall from one pack to the next, and no block is live in two of them.
 */
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include "pack_list.h"

void tr_packs_init(struct tr_packs *packs, u32 cap)
{
	memset(packs, 0, tr_packs_bytes(cap));
	packs->cap = cap;
}

int tr_packs_copy(struct tr_packs *to, const struct tr_packs *from)
{
	if (from->nr > to->cap)
		return -ENOSPC;
	memcpy(to->pack, from->pack, from->nr * sizeof(to->pack[0]));
	to->nr = from->nr;
	return 0;
}

/* A torn read of nr is at most cap, which never changes. */
static u32 nr_packs(const struct tr_packs *packs)
{
	return packs ? READ_ONCE(packs->nr) : 0;
}

u32 tr_packs_find(const struct tr_packs *packs, u32 i)
{
	u32 k, nr = nr_packs(packs);

	for (k = 0; k < nr; k++)
		if (READ_ONCE(packs->pack[k].live[i / 64]) >> (i % 64) & 1)
			return k;
	return TR_NO_PACK;
}

static u64 live_word(const struct tr_packs *packs, u32 nr, u32 w)
{
	u64 word = 0;
	u32 k;

	for (k = 0; k < nr; k++)
		word |= READ_ONCE(packs->pack[k].live[w]);
	return word;
}

u32 tr_packs_run(const struct tr_packs *packs, u32 i, u32 max, u32 *pack)
{
	u32 nr = nr_packs(packs), at = i, end = i + max;
	u64 differ;

	*pack = tr_packs_find(packs, i);
	for (; at < end; at = (at | 63) + 1) {
		differ = *pack == TR_NO_PACK ? live_word(packs, nr, at / 64) :
			 ~READ_ONCE(packs->pack[*pack].live[at / 64]);
		differ >>= at % 64;
		if (differ)
			return max_t(u32, min_t(u32, at + __ffs64(differ), end) - i, 1);
	}
	return max;
}

u32 tr_packs_by_id(const struct tr_packs *packs, u64 id)
{
	u32 k, nr = nr_packs(packs);

	for (k = 0; k < nr; k++)
		if (packs->pack[k].id == id)
			return k;
	return TR_NO_PACK;
}

u32 tr_pack_live(const struct tr_pack *pack)
{
	u32 w, nr = 0;

	for (w = 0; w < TR_LEAF_WORDS; w++)
		nr += hweight64(pack->live[w]);
	return nr;
}

u32 tr_packs_live(const struct tr_packs *packs)
{
	u32 k, live = 0;

	for (k = 0; k < nr_packs(packs); k++)
		live += tr_pack_live(&packs->pack[k]);
	return live;
}

void tr_packs_mask(const struct tr_packs *packs, u64 *mask)
{
	u32 w;

	for (w = 0; w < TR_LEAF_WORDS; w++)
		mask[w] = live_word(packs, nr_packs(packs), w);
}

/* --- changes ----------------------------------------------------------------- */

int tr_packs_add(struct tr_packs *packs, const struct tr_pack *pack)
{
	u32 k;

	if (tr_packs_by_id(packs, pack->id) != TR_NO_PACK)
		return -EEXIST;
	if (packs->nr == packs->cap)
		return -ENOSPC;
	for (k = 0; k < packs->nr && packs->pack[k].id > pack->id; k++)
		;
	memmove(&packs->pack[k + 1], &packs->pack[k], (packs->nr - k) * sizeof(*pack));
	packs->pack[k] = *pack;
	WRITE_ONCE(packs->nr, packs->nr + 1);
	return 0;
}

int tr_packs_drop(struct tr_packs *packs, u64 id)
{
	u32 k = tr_packs_by_id(packs, id);

	if (k == TR_NO_PACK)
		return -ENOENT;
	if (tr_pack_live(&packs->pack[k]))
		return -EBUSY;
	WRITE_ONCE(packs->nr, packs->nr - 1);
	memmove(&packs->pack[k], &packs->pack[k + 1], (packs->nr - k) * sizeof(packs->pack[0]));
	return 0;
}

int tr_packs_index(struct tr_packs *packs, u64 id, u64 place, u32 nr)
{
	u32 k = tr_packs_by_id(packs, id);

	if (k == TR_NO_PACK)
		return -ENOENT;
	packs->pack[k].index_place = place;
	packs->pack[k].index_blocks = nr;
	return 0;
}

/* Bits of word @w that belong to blocks [@i, @i + @n). */
static u64 word_mask(u32 w, u32 i, u32 n)
{
	u32 from = max(i, w * 64), to = min(i + n, w * 64 + 64);

	return from < to ? (~0ull >> (64 - (to - from))) << (from % 64) : 0;
}

u32 tr_packs_clear(struct tr_packs *packs, u32 i, u32 n)
{
	u32 k, w, cleared = 0;
	u64 mask, *live;

	if (!packs || !n)
		return 0;
	for (w = i / 64; w <= (i + n - 1) / 64; w++) {
		mask = word_mask(w, i, n);
		for (k = 0; k < packs->nr; k++) {
			live = &packs->pack[k].live[w];
			cleared += hweight64(*live & mask);
			WRITE_ONCE(*live, *live & ~mask);
		}
	}
	return cleared;
}

int tr_packs_put(struct tr_packs *packs, u64 id, u32 i, u32 n)
{
	u32 w, k = tr_packs_by_id(packs, id);
	u64 *live;

	if (k == TR_NO_PACK)
		return -ENOENT;
	if (!n)
		return 0;
	tr_packs_clear(packs, i, n);
	for (w = i / 64; w <= (i + n - 1) / 64; w++) {
		live = &packs->pack[k].live[w];
		WRITE_ONCE(*live, *live | word_mask(w, i, n));
	}
	return 0;
}
