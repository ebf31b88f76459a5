// SPDX-License-Identifier: GPL-2.0
/*
 * A volume's life: start, adopt (table reload), quiesce (suspend), wake, stop.
 * tr_volumes_mutex guards the list of live volumes and all of these.
 */
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "packs.h"
#include "sense.h"

DEFINE_MUTEX(tr_volumes_mutex);
static LIST_HEAD(volumes);

struct terrace *tr_volume_find(const u8 *uuid)
{
	struct terrace *tr;

	lockdep_assert_held(&tr_volumes_mutex);
	list_for_each_entry(tr, &volumes, volumes)
		if (!memcmp(tr->super.volume_uuid, uuid, TERRACE_UUID_BYTES))
			return tr;
	return NULL;
}

/* --- background ----------------------------------------------------------------- */

static void tick_fn(struct work_struct *work)
{
	struct terrace *tr = container_of(to_delayed_work(work), struct terrace, tick_work);

	WRITE_ONCE(tr->tick, tr->tick + 1);
	tr_regions_age(tr);
	tr_summary_tick(tr);
	tr_moves_forget(tr);
	tr_orders_forget(tr, false);
	tr_unpackers_forget(tr);
	tr_stretches_forget(tr);
	tr_arrays_trim();
	queue_delayed_work(tr->meta_wq, &tr->tick_work, tr_tune(tr, TR_TUNE_AGE_S) * HZ);
}

/*
 * What can be read back leaves until memory is @spare below its limit:
 * chunks that nobody used for a while, regions by age, then what is quickly
 * there again: the other chunks and directories.
 */
void tr_memory_keep(struct terrace *tr, s64 spare)
{
	s64 target = tr_memory_limit(tr) - spare, over;

	over = atomic64_read(&tr->memory) - target;
	if (over > 0)
		over -= tr_stretches_forget(tr);
	if (over > 0)
		tr_promotion_evict(tr, over / 2);
	over = atomic64_read(&tr->memory) - target;
	if (over > 0)
		tr_chunks_evict(tr, over, 1);
	over = atomic64_read(&tr->memory) - target;
	if (over > 0)
		over -= tr_indexes_evict(tr, over / 2);
	if (over > 0)
		tr_regions_evict(tr, over);
	over = atomic64_read(&tr->memory) - target;
	if (over > 0)
		tr_chunks_evict(tr, over, 0);
	over = atomic64_read(&tr->memory) - target;
	if (over > 0)
		tr_pages_evict(tr, over);
}

/*
 * The map stays under its limit, and the reserve filled: clean parts leave,
 * dirty ones are written. Half of the map for a reserve that the allocator does
 * not fill: its elements are in any part of it.
 */
static void evict_fn(struct work_struct *work)
{
	struct terrace *tr = container_of(work, struct terrace, evict_work);
	s64 limit = tr_memory_limit(tr), before = atomic64_read(&tr->memory);
	bool filled = tr_reserve_fill(tr);

	if (before <= limit && filled)
		return;
	tr_memory_keep(tr, filled ? limit / 16 : max(limit / 16, limit - before / 2));
	if (!filled) {
		/* What left the map is the allocator's only when its slabs are. */
		rcu_barrier();
		tr_arrays_shrink();
		filled = tr_reserve_fill(tr);
	}
	if ((atomic64_read(&tr->memory) > limit || !filled) && READ_ONCE(tr->nr_dirty_regions))
		tr_checkpoint_kick(tr);
}

void tr_memory_check(struct terrace *tr)
{
	if (unlikely(atomic64_read(&tr->memory) > tr_memory_limit(tr) || tr_reserve_low(tr)))
		queue_work(tr->room_wq, &tr->evict_work);
}

/* --- start --------------------------------------------------------------------------- */

static void init_meta_dev(struct tr_meta_dev *meta, const struct tr_arg_device *device, u8 tier)
{
	meta->bdev = device->dev->bdev;
	meta->start_sector = device->label.meta_start * TERRACE_BLOCK_SECTORS;
	meta->tier = tier;
}

static void init_meta_devs(struct terrace *tr, const struct tr_args *args)
{
	const struct tr_arg_device *device;
	u32 t, c;

	for (t = 0; t <= args->nr_tiers; t++) {
		u8 tier = t < args->nr_tiers ? t : TERRACE_META_DEVICE;

		device = t < args->nr_tiers ? &args->tier[t] : &args->meta;
		if (!device->dev)
			continue;
		for (c = 0; c < ARRAY_SIZE(tr->labels.stale_until); c++)
			tr->labels.stale_until[c] = max(tr->labels.stale_until[c],
							device->label.stale_until[c]);
		if (device->label.flags & TERRACE_LABEL_META)
			init_meta_dev(&tr->meta[0], device, tier);
		else if (device->label.flags & TERRACE_LABEL_META_SYNC)
			init_meta_dev(&tr->meta[1], device, tier);
		else if (device->label.flags & TERRACE_LABEL_META_LAZY)
			init_meta_dev(&tr->lazy, device, tier);
	}
	for (t = 0; t < args->nr_tiers; t++)
		for (c = 0; c < ARRAY_SIZE(tr->labels.stale_until); c++)
			if (args->tier[t].dev &&
			    args->tier[t].label.stale_until[c] < tr->labels.stale_until[c])
				tr->labels.behind |= BIT(t);
}

/*
 * Crash scenario: a drive was replaced, its tier copied to a new one, and the old one
 * kept; or a clone of one tier was made. It carries the volume's UUID and the tier's
 * number, and what it holds is old.
 */
static int check_uuid(const struct terrace *tr, const struct tr_arg_device *device, u32 t)
{
	if (!memcmp(device->label.tier_uuid, tr->super.tier[t].uuid, TERRACE_UUID_BYTES))
		return 0;
	DMERR("%s: %s is not the device that tier %u is made of: uuid %pU, expected %pU", tr->name,
	      device->dev->name, t, device->label.tier_uuid, tr->super.tier[t].uuid);
	return -EUCLEAN;
}

static bool is_atomic(const struct tr_args *args, u32 t)
{
	const struct tr_label *label = &args->tier[t].label;

	return args->tier[t].dev && label->flags & TERRACE_LABEL_ATOMIC &&
	       label->atomic_bytes >= TERRACE_BLOCK_BYTES && !args->out_of_place[t];
}

static int init_tier(struct terrace *tr, const struct tr_args *args, u32 t)
{
	const struct tr_arg_device *device = &args->tier[t];
	struct tr_tier *tier = &tr->tier[t];

	tier->number = t;
	tier->class = device->class;
	tier->kind = device->kind;
	tier->missing = !device->dev;
	tr->tier_missing |= tier->missing;
	/* Of a missing tier, too: its blocks stay mapped, and can be freed.
	 * A label that says more is of a grow_tier that did not get to its end.
	 */
	tier->data_blocks = tr->super.tier[t].data_blocks;
	tier->reserve_blocks = tr->super.tier[t].reserve_blocks;
	tier->next_blocks = tier->data_blocks;
	tier->next_reserve = tier->reserve_blocks;
	tier->unit = 1;
	if (!tier->missing) {
		int err = check_uuid(tr, device, t);

		if (err)
			return err;
		if (device->label.align_blocks <= TR_MOST_UNIT &&
		    is_power_of_2(device->label.align_blocks))
			tier->unit = device->label.align_blocks;
		tier->bdev = device->dev->bdev;
		tier->data_sector = device->label.data_start * TERRACE_BLOCK_SECTORS;
		if (device->label.data_blocks < tier->data_blocks) {
			DMERR("%s: tier %u has %llu blocks, the superblock says %llu", tr->name, t,
			      device->label.data_blocks, tier->data_blocks);
			return -EUCLEAN;
		}
		tier->atomic = is_atomic(args, t);
	}
	if (tier->data_blocks >= 1ull << (32 - TERRACE_PLACE_TIER_BITS))
		tr->high_places = true;
	if (tier->kind != TERRACE_KIND_SLOTS && !tier->missing && tr->stream_tier == tr->nr_tiers)
		tr->stream_tier = t;
	return tr_space_init(tr, tier);
}

static int init_queues(struct terrace *tr)
{
	tr->io_wq = alloc_workqueue("terrace_io", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	/* Not io_wq: discards that wait there for the journal may wait for the end of a cold read. */
	tr->cold_wq = alloc_workqueue("terrace_cold", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	tr->commit_wq = alloc_ordered_workqueue("terrace_commit", WQ_MEM_RECLAIM | WQ_HIGHPRI);
	tr->checkpoint_wq = alloc_ordered_workqueue("terrace_checkpoint", WQ_MEM_RECLAIM);
	tr->room_wq = alloc_workqueue("terrace_room", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	tr->meta_wq = alloc_workqueue("terrace_meta", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	tr->order_wq = alloc_workqueue("terrace_order", WQ_UNBOUND, 0);
	return tr->io_wq && tr->cold_wq && tr->commit_wq && tr->checkpoint_wq && tr->room_wq &&
	       tr->meta_wq && tr->order_wq ? 0 : -ENOMEM;
}

static bool is_read_only(const struct tr_args *args, struct dm_target *ti)
{
	return args->read_only || !(dm_table_get_mode(ti->table) & TR_MODE_MAY_WRITE);
}

static int init_volume(struct terrace *tr, const struct tr_args *args, struct dm_target *ti,
		       const char **error)
{
	int err;
	u32 t;

	tr->ti = ti;
	tr->md = dm_table_get_md(ti->table);
	strscpy(tr->name, args->name[0] ? args->name : dm_device_name(tr->md), sizeof(tr->name));
	tr->tunes = args->tunes;
	tr->nr_tiers = args->nr_tiers;
	tr->stream_tier = args->nr_tiers;
	tr->read_only = is_read_only(args, ti);
	memcpy(tr->super.volume_uuid, args->uuid, TERRACE_UUID_BYTES);
	mutex_init(&tr->resize_mutex);
	mutex_init(&tr->checkpoint_mutex);
	mutex_init(&tr->pages_mutex);
	mutex_init(&tr->epoch_mutex);
	INIT_LIST_HEAD(&tr->volumes);
	INIT_LIST_HEAD(&tr->watched);
	INIT_DELAYED_WORK(&tr->tick_work, tick_fn);
	INIT_DELAYED_WORK(&tr->aside_work, tr_shelves_aside_fn);
	INIT_WORK(&tr->evict_work, evict_fn);
	tr_discards_init(tr);
	tr_space_start(tr);
	tr_janitor_init(tr);
	tr_homes_init(tr);
	tr_trim_init(tr);
	tr_throttle_init(tr);
	tr_flight_init(tr);
	init_meta_devs(tr, args);
	err = init_queues(tr);
	if (!err)
		err = tr_labels_init(tr);
	if (!err)
		err = tr_reserve_init(tr);
	if (!err)
		err = tr_super_open(tr, error);	/* now the sizes are known */
	if (err)
		return err;
	*error = "out of memory, or a tier is smaller than it was";
	for (t = 0; t < tr->nr_tiers && !err; t++)
		err = init_tier(tr, args, t);
	if (!err)
		err = tr_shelves_init(tr);
	if (!err)
		err = tr_defer_init(tr);
	if (!err)
		err = tr_regions_init(tr);
	if (!err)
		err = tr_packing_init(tr);
	if (!err)
		err = tr_appends_init(tr);
	tr->stats = alloc_percpu(struct tr_stats);
	tr->streams = alloc_percpu(struct tr_streams);
	tr->read_streams = alloc_percpu(struct tr_streams);
	tr->owner_blocks = kvmalloc((TR_OWNER_BURST + TR_MOST_UNIT) * TERRACE_BLOCK_BYTES,
				    GFP_KERNEL);
	tr->table_blocks = kvmalloc((TERRACE_TABLE_BLOCKS + TR_MOST_UNIT) * TERRACE_BLOCK_BYTES,
				    GFP_KERNEL);
	tr->zeros = kvzalloc(TR_MOST_UNIT * TERRACE_BLOCK_BYTES, GFP_KERNEL);
	if (!tr->stats || !tr->streams || !tr->read_streams || !tr->owner_blocks ||
	    !tr->table_blocks || !tr->zeros)
		err = -ENOMEM;
	return err;
}

static void free_volume(struct terrace *tr)
{
	u32 t;

	/* What queues work on the other queues goes first. */
	WRITE_ONCE(tr->stopping, true);
	if (tr->refill_work.func) {
		cancel_delayed_work_sync(&tr->tick_work);
		cancel_work_sync(&tr->discard_work);
		cancel_work_sync(&tr->janitor_work);
		cancel_work_sync(&tr->throttle.work);
		cancel_delayed_work_sync(&tr->trim_work);
		cancel_delayed_work_sync(&tr->aside_work);
		cancel_work_sync(&tr->refill_work);
		cancel_work_sync(&tr->evict_work);
		cancel_work_sync(&tr->sweep_work);
	}
	tr_stop(tr);
	tr_appends_exit(tr);
	if (tr->commit_wq)
		destroy_workqueue(tr->commit_wq);
	/* Last: any of these may have looked at `stopping` just before, and kicked. */
	if (tr->refill_work.func) {
		cancel_delayed_work_sync(&tr->janitor_again);
		cancel_delayed_work_sync(&tr->aside_work);
	}
	if (tr->checkpoint_wq)
		destroy_workqueue(tr->checkpoint_wq);
	if (tr->cold_wq)
		destroy_workqueue(tr->cold_wq);
	if (tr->io_wq)
		destroy_workqueue(tr->io_wq);
	if (tr->meta_wq)
		destroy_workqueue(tr->meta_wq);
	if (tr->order_wq)
		destroy_workqueue(tr->order_wq);
	if (tr->room_wq)
		destroy_workqueue(tr->room_wq);
	tr_close(tr);
	tr_regions_exit(tr);
	tr_discards_exit(tr);
	tr_defer_exit(tr);
	tr_packing_exit(tr);
	for (t = 0; t < tr->nr_tiers; t++)
		tr_space_exit(tr, &tr->tier[t]);
	tr_ranges_exit(tr);
	tr_moves_forget(tr);
	tr_orders_forget(tr, true);
	free_percpu(tr->stats);
	free_percpu(tr->streams);
	free_percpu(tr->read_streams);
	kvfree(tr->owner_blocks);
	kvfree(tr->table_blocks);
	kvfree(tr->zeros);
	tr_labels_exit(tr);
	tr_reserve_exit(tr);
	kvfree(tr);
}

struct terrace *tr_volume_start(const struct tr_args *args, struct dm_target *ti, const char **error)
{
	struct terrace *tr = kvzalloc(sizeof(*tr), GFP_KERNEL);
	u64 began = ktime_get_ns();
	int err;

	*error = "out of memory";
	if (!tr)
		return ERR_PTR(-ENOMEM);
	err = init_volume(tr, args, ti, error);
	if (!err)
		err = tr_open(tr, error);
	if (err) {
		free_volume(tr);
		return ERR_PTR(err);
	}
	if (tr->read_only)
		WRITE_ONCE(tr->mode, TR_MODE_READ_ONLY);
	list_add(&tr->volumes, &volumes);
	tr_sysfs_add(tr);
	tr_failing_watch(tr);
	tr_control_add(tr);
	DMINFO("%s: activated in %llu us", tr->name, (ktime_get_ns() - began) / NSEC_PER_USEC);
	return tr;
}

/* --- reload, suspend, stop ------------------------------------------------------------- */

/* NULL: the metadata are on tiers alone. */
static const struct block_device *metadata_device(const struct terrace *tr)
{
	u32 c;

	for (c = 0; c < ARRAY_SIZE(tr->meta); c++)
		if (tr->meta[c].bdev && tr->meta[c].tier == TERRACE_META_DEVICE)
			return tr->meta[c].bdev;
	return NULL;
}

static int unfit(const char **error, const char *why)
{
	*error = why;
	return -EINVAL;
}

int tr_volume_fits(const struct terrace *tr, const struct tr_args *args, struct dm_target *ti,
		   const char **error)
{
	const struct block_device *meta = args->meta.dev ? args->meta.dev->bdev : NULL;
	u32 t;

	if (args->nr_tiers != tr->nr_tiers)
		return unfit(error, "Number of tiers is not the running volume's");
	if (meta != metadata_device(tr))
		return unfit(error, "Metadata device is not the running volume's");
	for (t = 0; t < tr->nr_tiers; t++) {
		if (!args->tier[t].dev == tr->tier[t].missing &&
		    (!args->tier[t].dev || args->tier[t].dev->bdev == tr->tier[t].bdev))
			continue;
		DMERR("%s: tier %u is %s in the table, %s in the running volume", tr->name, t,
		      args->tier[t].dev ? args->tier[t].dev->name : "missing",
		      tr->tier[t].missing ? "missing" : "another device");
		return unfit(error, "Device of a tier is not the running volume's");
	}
	if (is_read_only(args, ti) != tr->read_only)
		return unfit(error, tr->read_only ? "The running volume is read-only, the table is not" :
						    "The table is read-only, the running volume is not");
	return 0;
}

void tr_volume_adopt(struct terrace *tr, const struct tr_args *args, struct dm_target *ti)
{
	u32 t;

	/* Same devices, now held open by the new table. */
	tr->ti = ti;
	flush_work(&tr->event_work);	/* it may still look at the old one */
	tr->tunes = args->tunes;
	for (t = 0; t < tr->nr_tiers; t++)
		tr->tier[t].atomic = is_atomic(args, t);
}

void tr_volume_quiesce(struct terrace *tr)
{
	/* Every bio has ended, but who ended one, or let it wait until it was sent back, may not
	 * be through: he kicks others yet (tr_defer_room()).
	 */
	flush_workqueue(tr->io_wq);
	WRITE_ONCE(tr->stopping, true);
	mutex_lock(&tr->resize_mutex);		/* one that did not see it yet has ended */
	mutex_unlock(&tr->resize_mutex);
	tr_queries_quiesce(tr);
	tr_event(tr, TERRACE_EVENT_SUSPEND, TR_NO_TIER, TR_NO_REGION, 1);
	cancel_delayed_work_sync(&tr->tick_work);
	cancel_delayed_work_sync(&tr->aside_work);
	cancel_delayed_work_sync(&tr->janitor_again);
	cancel_work_sync(&tr->janitor_work);
	WRITE_ONCE(tr->janitor_busy, false);
	cancel_delayed_work_sync(&tr->trim_work);
	flush_work(&tr->refill_work);
	flush_work(&tr->evict_work);
	cancel_work_sync(&tr->sweep_work);
	tr_stretches_quiesce(tr);
	tr_appends_quiesce(tr);
	if (tr_writable(tr)) {
		flush_work(&tr->discard_work);
		tr_checkpoint(tr, true);
	}
	tr_checkpoint_hold(tr);
	/* A checkpoint that failed before, for want of a page, takes the same tail again and may
	 * have committed nothing; one that fails now has written discards to the journal once
	 * more. A stop would lose what is open, a suspended volume would write it later.
	 */
	if (tr_writable(tr))
		tr_commit(tr);
	/* Commits free places, which may trim homes, and have full shelves closed: nobody
	 * writes to the drives after this. In the order in which one queues the next.
	 */
	flush_work(&tr->journal.commit_work);
	flush_work(&tr->journal.free_work);
	flush_work(&tr->refill_work);
	cancel_delayed_work_sync(&tr->aside_work);
	WRITE_ONCE(tr->noflush, false);
}

void tr_volume_wake(struct terrace *tr)
{
	WRITE_ONCE(tr->stopping, false);
	WRITE_ONCE(tr->noflush, false);
	tr_shelves_put_back(tr);
	if (tr_writable(tr))
		queue_work(tr->room_wq, &tr->refill_work);
	if (tr_writable(tr))
		tr_homes_kick(tr);
	tr_trim_kick(tr);
	tr_checkpoint_release(tr);
	if (tr_writable(tr) && !list_empty(&tr->discards))
		tr_discard_work(tr);
	queue_delayed_work(tr->meta_wq, &tr->tick_work, tr_tune(tr, TR_TUNE_AGE_S) * HZ);
	tr_summary_wake(tr);
	tr_control_resume(tr);
	tr_event(tr, TERRACE_EVENT_SUSPEND, TR_NO_TIER, TR_NO_REGION, 0);
}

void tr_volume_stop(struct terrace *tr)
{
	list_del(&tr->volumes);
	tr_control_remove(tr);
	tr_failing_unwatch(tr);
	tr_sysfs_remove(tr);
	cancel_delayed_work_sync(&tr->tick_work);
	free_volume(tr);
}
