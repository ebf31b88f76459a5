// SPDX-License-Identifier: GPL-2.0
/* Where the blocks of regions are, block by block: TERRACE_IOC_REGIONS. */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "control.h"
#include "packs.h"

#define MAX_REGIONS	256u		/* of one call */

static void set_bit_if(__u64 *map, u32 i, bool on)
{
	if (on)
		map[i / 64] |= 1ull << (i % 64);
}

/* What is on tier @t alone. */
static void fill_tier__f(struct tr_region *region, u32 t, struct terrace_region *out)
{
	struct tr_packs *packs = tr_region_packs(region);
	u32 i, k;
	u64 place;

	lockdep_assert_held(&region->lock);
	for (i = 0; i < TERRACE_REGION_BLOCKS; i++) {
		place = tr_leaf_get(&region->leaf, i);
		set_bit_if(out->present, i, place != TR_NO_PLACE);
		set_bit_if(out->fast, i, place != TR_NO_PLACE && tr_place_tier(place) == t);
		k = tr_packs_find(packs, i);
		set_bit_if(out->packed, i, k != TR_NO_PACK && tr_place_tier(packs->pack[k].place) == t);
	}
	for (k = 0; packs && k < packs->nr; k++) {
		out->nr_packs += tr_place_tier(packs->pack[k].place) == t;
		out->copies += packs->pack[k].index_place != TR_NO_PLACE &&
			       tr_place_tier(packs->pack[k].index_place) == t;
	}
}

/* Blocks on shelves that lie one behind the other, whatever blocks between them are elsewhere. */
static u64 loose_runs__f(const struct terrace *tr, const struct tr_region *region)
{
	u64 place, behind = TR_NO_PLACE, runs = 0;
	u32 i, n;

	lockdep_assert_held(&region->lock);
	for (i = 0; i < TERRACE_REGION_BLOCKS; i += n) {
		n = tr_leaf_run(&region->leaf, i, TERRACE_REGION_BLOCKS - i, &place);
		if (place == TR_NO_PLACE ||
		    tr->tier[tr_place_tier(place)].kind != TERRACE_KIND_SHELVES)
			continue;
		runs += place != behind;
		behind = tr_place_add(place, n);
	}
	return runs;
}

static void fill_packs(struct terrace_region *out, const struct tr_packs *packs)
{
	u32 k;

	memset(out->pack_codec, 255, sizeof(out->pack_codec));
	out->nr_packs = packs ? packs->nr : 0;
	for (k = 0; k < out->nr_packs; k++) {
		out->pack_live[k] = tr_pack_live(&packs->pack[k]);
		out->pack_blocks[k] = packs->pack[k].blocks;
		out->pack_id[k] = packs->pack[k].id;
	}
}

/* Of packs whose index is in memory. */
static void fill_codecs(struct terrace *tr, struct terrace_region *out)
{
	u32 k, nr;

	for (k = 0; k < out->nr_packs; k++)
		tr_index_peek(tr, out->pack_id[k], &nr, &out->pack_codec[k]);
}

static void fill_everywhere__f(struct terrace *tr, struct tr_region *region,
			       const struct terrace_regions *ask, struct terrace_region *out)
{
	struct tr_packs *packs = tr_region_packs(region);

	lockdep_assert_held(&region->lock);
	memcpy(out->present, region->leaf.present, sizeof(out->present));
	tr_leaf_on_tiers(&region->leaf, tr_slots_tiers(tr), out->fast);
	if (packs)
		tr_packs_mask(packs, out->packed);
	fill_packs(out, packs);
	if (ask->flags & TERRACE_REGIONS_RUNS)
		out->copies = loose_runs__f(tr, region);
}

static void fill_region(struct terrace *tr, u64 number, const struct terrace_regions *ask,
			struct terrace_region *out)
{
	struct tr_region *region;

	tr_reserve_wait(tr);
	region = tr_region_get(tr, number, false);
	memset(out, 0, sizeof(*out));
	out->region = number;
	if (IS_ERR(region))
		out->status = PTR_ERR(region);
	if (IS_ERR_OR_NULL(region))
		return;
	spin_lock_irq(&region->lock);
	if (ask->flags & TERRACE_REGIONS_TIER)
		fill_tier__f(region, ask->tier, out);
	else
		fill_everywhere__f(tr, region, ask, out);
	spin_unlock_irq(&region->lock);
	tr_region_put(region);
	if (!(ask->flags & TERRACE_REGIONS_TIER))
		fill_codecs(tr, out);
}

int tr_query_regions(struct terrace *tr, void __user *arg)
{
	struct terrace_region __user *to;
	struct terrace_region *one;
	struct terrace_regions ask;
	int err = 0;
	u32 k;

	if (copy_from_user(&ask, arg, sizeof(ask)))
		return -EFAULT;
	if ((ask.flags && ask.flags != TERRACE_REGIONS_TIER && ask.flags != TERRACE_REGIONS_RUNS) ||
	    ask.region_bytes != sizeof(*one) || ask.nr > MAX_REGIONS)
		return -EINVAL;
	if (ask.flags & TERRACE_REGIONS_TIER ? ask.tier >= tr->nr_tiers : ask.tier)
		return -EINVAL;
	if (ask.first >= tr_nr_regions(tr))
		return -ERANGE;
	one = kmalloc(sizeof(*one), GFP_KERNEL);
	if (!one)
		return -ENOMEM;
	to = u64_to_user_ptr(ask.regions);
	ask.nr = min_t(u64, ask.nr, tr_nr_regions(tr) - ask.first);
	for (k = 0; k < ask.nr && !err; k++) {
		fill_region(tr, ask.first + k, &ask, one);
		err = copy_to_user(&to[k], one, sizeof(*one)) ? -EFAULT : 0;
	}
	kfree(one);
	return err ?: copy_to_user(arg, &ask, sizeof(ask)) ? -EFAULT : 0;
}
