// SPDX-License-Identifier: GPL-2.0
/*
 * Orders in flight: how many of them read and write a tier at once, and the
 * memory that each of these works in.
 *
 * The limit of tier N is the tunable orders_tierN. An order knows from its
 * snapshot which tiers it will read and write. It waits until all of them have
 * room, and then counts at all of them: so none keeps a tier's room while it
 * waits for another's, and whoever counts does its I/O and compresses, waits for
 * no other order but its turn to compress, and leaves. A limit that is lowered
 * takes nothing away from those in flight.
 *
 * As many compress at once as there were CPUs at the volume's start, in the order in
 * which they come. More would share the CPUs, get ready together, and leave the drive
 * idle until then. Who has the turn waits for nothing but the CPU.
 */
#include <linux/cpumask.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "order_state.h"

/* --- limits ------------------------------------------------------------------------ */

static u32 limit_of(const struct terrace *tr, u32 t)
{
	return tr_tune(tr, TR_TUNE_ORDERS_TIER0 + t);
}

static bool try_enter(struct terrace *tr, u32 tiers)
{
	bool room = true;
	u32 t;

	spin_lock(&tr->flight_lock);
	for (t = 0; t < tr->nr_tiers; t++)
		if (tiers & BIT(t) && tr->tier[t].orders >= limit_of(tr, t))
			room = false;
	for (t = 0; room && t < tr->nr_tiers; t++) {
		struct tr_tier *tier = &tr->tier[t];

		if (!(tiers & BIT(t)))
			continue;
		tier->orders++;
		tier->orders_most = max(tier->orders_most, tier->orders);
	}
	spin_unlock(&tr->flight_lock);
	return room;
}

void tr_flight_enter(struct terrace *tr, u32 tiers)
{
	if (tiers)
		wait_event(tr->flight_wait, try_enter(tr, tiers));
}

void tr_flight_leave(struct terrace *tr, u32 tiers)
{
	u32 t;

	spin_lock(&tr->flight_lock);
	for (t = 0; t < tr->nr_tiers; t++)
		tr->tier[t].orders -= tiers >> t & 1;
	spin_unlock(&tr->flight_lock);
	tr_flight_changed(tr);
}

void tr_flight_changed(struct terrace *tr)
{
	wake_up_all(&tr->flight_wait);
}

u32 tr_flight_most(const struct terrace *tr)
{
	u32 t, most = 0;

	for (t = 0; t < tr->nr_tiers; t++)
		most = max(most, limit_of(tr, t));
	return most;
}

/* --- memory ------------------------------------------------------------------------ */

static void area_free(struct tr_order_area *area)
{
	tr_codec_destroy(area->codec);
	kvfree(area->data);
	kvfree(area->image);
	kvfree(area->cluster);
	kvfree(area);
}

static struct tr_order_area *area_new(void)
{
	struct tr_order_area *area = kvzalloc(sizeof(*area), GFP_KERNEL);

	if (!area)
		return NULL;
	area->image_bytes = (BLOCKS + TERRACE_PACK_HEADER_BLOCKS + TR_MOST_UNIT) * TERRACE_BLOCK_BYTES;
	area->codec = tr_codec_create(true);
	/* Page by page: nobody else gets this CPU while one piece of it is cleared. */
	area->data = vmalloc(BLOCKS * TERRACE_BLOCK_BYTES);
	area->image = vmalloc(area->image_bytes);
	area->cluster = kvmalloc(TERRACE_BLOCK_BYTES << TERRACE_PACK_MAX_SHIFT, GFP_KERNEL);
	if (area->codec && area->data && area->image && area->cluster)
		return area;
	area_free(area);
	return NULL;
}

struct tr_order_area *tr_order_area_get(struct terrace *tr)
{
	struct tr_order_area *area;

	spin_lock(&tr->flight_lock);
	area = list_first_entry_or_null(&tr->order_areas, struct tr_order_area, list);
	if (area)
		list_del(&area->list);
	spin_unlock(&tr->flight_lock);
	return area ?: area_new();
}

/* Kept for the next order, until a tick finds that none has used it since the one before. */
void tr_order_area_put(struct terrace *tr, struct tr_order_area *area)
{
	if (!area)
		return;
	area->unused = false;
	spin_lock(&tr->flight_lock);
	list_add(&area->list, &tr->order_areas);
	spin_unlock(&tr->flight_lock);
}

void tr_orders_forget(struct terrace *tr, bool all)
{
	struct tr_order_area *area, *next;
	LIST_HEAD(idle);

	spin_lock(&tr->flight_lock);
	list_for_each_entry_safe(area, next, &tr->order_areas, list)
		if (all || area->unused)
			list_move(&area->list, &idle);
		else
			area->unused = true;
	spin_unlock(&tr->flight_lock);
	list_for_each_entry_safe(area, next, &idle, list)
		area_free(area);
}

void tr_flight_init(struct terrace *tr)
{
	spin_lock_init(&tr->flight_lock);
	init_waitqueue_head(&tr->flight_wait);
	sema_init(&tr->packing_turns, num_online_cpus());
	INIT_LIST_HEAD(&tr->order_areas);
}
