// SPDX-License-Identifier: GPL-2.0
/*
 * Where the blocks of regions are, block by block: TERRACE_IOC_REGIONS.
 *
 * A region that is loaded gives the places of its discarded blocks back, by records.
 * So on a suspended volume, whose drives nobody writes to, none is loaded for a query:
 * its status is EBUSY, and who asked asks again.
 */
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

static struct tr_region *get_region(struct tr_control *control, u64 number)
{
	struct terrace *tr = control->tr;
	struct tr_region *region;

	down_read(&control->loading);
	if (READ_ONCE(tr->stopping)) {
		region = tr_region_get_loaded(tr, number);
	} else {
		tr_reserve_wait(tr);
		region = tr_region_get(tr, number, false);
	}
	up_read(&control->loading);
	return region;
}

void tr_queries_quiesce(struct terrace *tr)
{
	if (!tr->control)
		return;
	down_write(&tr->control->loading);
	up_write(&tr->control->loading);
}

static void fill_region(struct tr_control *control, u64 number, const struct terrace_regions *ask,
			struct terrace_region *out)
{
	struct tr_region *region = get_region(control, number);
	struct terrace *tr = control->tr;

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

/* Is it well-formed? Lowers ask->nr to the regions that there are. */
static int check(struct terrace *tr, struct terrace_regions *ask)
{
	if ((ask->flags && ask->flags != TERRACE_REGIONS_TIER &&
	     ask->flags != TERRACE_REGIONS_RUNS) || ask->nr > MAX_REGIONS ||
	    ask->region_bytes != sizeof(struct terrace_region))
		return -EINVAL;
	if (ask->flags & TERRACE_REGIONS_TIER ? ask->tier >= tr->nr_tiers : ask->tier)
		return -EINVAL;
	if (ask->first >= tr_nr_regions(tr))
		return -ERANGE;
	ask->nr = min_t(u64, ask->nr, tr_nr_regions(tr) - ask->first);
	return 0;
}

/* Checks if @out is NULL, else fills in the region @k of those asked for. */
static int query_alive(struct tr_client *client, struct terrace_regions *ask, u32 k,
		       struct terrace_region *out)
{
	struct tr_control *control = client->control;
	int err = -ENODEV;

	down_read(&control->alive);
	if (control->tr && !out) {
		tr_client_renew(client);
		err = check(control->tr, ask);
	} else if (control->tr) {
		fill_region(control, ask->first + k, ask, out);
		err = 0;
	}
	up_read(&control->alive);
	return err;
}

int tr_query_regions(struct tr_client *client, struct terrace_regions *ask)
{
	struct terrace_region __user *to = u64_to_user_ptr(ask->regions);
	struct terrace_region *one;
	int err = query_alive(client, ask, 0, NULL);
	u32 k;

	if (err)
		return err;
	one = kmalloc(sizeof(*one), GFP_KERNEL);
	if (!one)
		return -ENOMEM;
	for (k = 0; k < ask->nr && !err; k++) {
		err = query_alive(client, ask, k, one);
		if (!err && copy_to_user(&to[k], one, sizeof(*one)))
			err = -EFAULT;
	}
	kfree(one);
	return err;
}
