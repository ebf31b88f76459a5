// SPDX-License-Identifier: GPL-2.0
/*
 * The device-mapper target `terrace`: constructor, life cycle, limits. A table
 * holds a struct tr_live_table, its devices and arguments; the volume itself lives
 * from the first preresume until its last table is gone, so that a reload
 * hands it over instead of closing and recovering it.
 *
 *   ctr        reads and validates; changes nothing, on disk or in a volume
 *   preresume  starts the volume, or takes the live one over
 *   presuspend stops moves, (noflush) gives waiting bios back
 *   postsuspend commits, checkpoints, leaves the volume clean
 *   dtr        stops the volume if this was its table
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "io.h"
#include "sense.h"

struct tr_live_table {
	struct tr_args args;
	struct terrace *tr;		/* from preresume on */
};

static struct terrace *volume_of(struct dm_target *ti)
{
	struct tr_live_table *table = ti->private;

	return table->tr;
}

static void terrace_dtr(struct dm_target *ti)
{
	struct tr_live_table *table = ti->private;

	mutex_lock(&tr_volumes_mutex);
	if (table->tr && table->tr->ti == ti)
		tr_volume_stop(table->tr);
	mutex_unlock(&tr_volumes_mutex);
	tr_args_release(&table->args, ti);
	kfree(table);
}

/* Is the volume live, under another name or with what this table does not fit? */
static int check_live(struct tr_args *args, struct dm_target *ti)
{
	struct terrace *tr;
	int err = 0;

	mutex_lock(&tr_volumes_mutex);
	tr = tr_volume_find(args->uuid);
	if (tr && tr->md != dm_table_get_md(ti->table)) {
		DMERR("volume %pU is already open as %s", args->uuid, dm_device_name(tr->md));
		ti->error = "Volume is already open under another name";
		err = -EBUSY;
	} else if (tr) {
		/* Found now: a table that cannot be resumed would take the running one with it. */
		err = tr_volume_fits(tr, args, ti, (const char **)&ti->error);
	}
	mutex_unlock(&tr_volumes_mutex);
	return err;
}

static int terrace_ctr(struct dm_target *ti, unsigned int argc, char **argv)
{
	struct tr_live_table *table = kzalloc(sizeof(*table), GFP_KERNEL);
	int err;

	if (!table) {
		ti->error = "Out of memory";
		return -ENOMEM;
	}
	ti->private = table;
	err = tr_args_parse(&table->args, ti, argc, argv);
	if (!err)
		err = check_live(&table->args, ti);
	if (!err) {
		err = dm_set_target_max_io_len(ti, TERRACE_REGION_BLOCKS * TERRACE_BLOCK_SECTORS);
		if (err)
			ti->error = "Cannot set the largest I/O";
	}
	if (err) {
		terrace_dtr(ti);
		return err;
	}
	ti->num_flush_bios = 1;
	ti->num_discard_bios = 1;
	ti->num_write_zeroes_bios = 1;
	ti->flush_supported = true;
	/* Swap sends all it has; what waits here would hold all of its bios. */
	ti->limit_swap_bios = true;
	ti->discards_supported = true;
	ti->per_io_data_size = tr_per_bio_bytes;
	return 0;
}

static int terrace_map(struct dm_target *ti, struct bio *bio)
{
	return tr_map(volume_of(ti), bio);
}

static int terrace_end_io(struct dm_target *ti, struct bio *bio, blk_status_t *error)
{
	struct tr_io *io = tr_io_of(bio);
	bool rescue = unlikely(*error) && io->kind == TR_IO_READ && tr_rescuable(io, bio, *error);

	if (unlikely(*error) && io->kind != TR_IO_NONE)		/* others' pieces were counted */
		tr_bio_failed(bio);
	tr_io_end(io, *error);
	if (likely(!rescue)) {
		if (unlikely(io->timed))
			tr_sense_end(io, bio);
		return DM_ENDIO_DONE;
	}
	tr_rescue(io->tr, bio);
	return DM_ENDIO_INCOMPLETE;
}

static int terrace_preresume(struct dm_target *ti)
{
	struct tr_live_table *table = ti->private;
	const char *error = "unknown";
	bool adopted = false;
	struct terrace *tr;
	int err = 0;

	mutex_lock(&tr_volumes_mutex);
	tr = tr_volume_find(table->args.uuid);
	if (tr && tr->md != dm_table_get_md(ti->table)) {
		error = "already open under another name";
		tr = ERR_PTR(-EBUSY);
	} else if (tr && tr != table->tr) {
		err = tr_volume_fits(tr, &table->args, ti, &error);
		if (err)
			tr = ERR_PTR(err);
		else
			tr_volume_adopt(tr, &table->args, ti);
		adopted = !err;
	} else if (!tr) {
		tr = tr_volume_start(&table->args, ti, &error);
	}
	if (IS_ERR(tr)) {
		err = PTR_ERR(tr);
		DMERR("%s: volume %pU not started: %s (%d)", dm_device_name(dm_table_get_md(ti->table)),
		      table->args.uuid, error, err);
	} else {
		table->tr = tr;
		tr_volume_wake(tr);
		if (adopted)
			tr_tunes_changed(tr);
	}
	mutex_unlock(&tr_volumes_mutex);
	return err;
}

static void terrace_presuspend(struct dm_target *ti)
{
	struct terrace *tr = volume_of(ti);

	if (!tr)
		return;
	tr_control_pause(tr);
	if (dm_noflush_suspending(ti)) {
		WRITE_ONCE(tr->noflush, true);
		tr_requeue_waiters(tr);
	}
}

/* The suspend did not come about: bios wait for room again, orders are taken. */
static void terrace_presuspend_undo(struct dm_target *ti)
{
	struct terrace *tr = volume_of(ti);

	if (!tr)
		return;
	WRITE_ONCE(tr->noflush, false);
	tr_control_resume(tr);
}

static void terrace_postsuspend(struct dm_target *ti)
{
	struct terrace *tr = volume_of(ti);

	if (tr)
		tr_volume_quiesce(tr);
}

static void terrace_status(struct dm_target *ti, status_type_t type, unsigned int flags,
			   char *result, unsigned int maxlen)
{
	struct tr_live_table *table = ti->private;
	unsigned int sz = 0;

	switch (type) {
	case STATUSTYPE_TABLE:
		/* What was set since, as well: who edits this line keeps it. */
		tr_args_emit(&table->args, table->tr ? &table->tr->tunes : &table->args.tunes, result,
			     maxlen);
		break;
	case STATUSTYPE_INFO:
		if (table->tr)
			tr_status(table->tr, result, maxlen);
		else
			DMEMIT("not started");
		break;
	case STATUSTYPE_IMA:
		*result = '\0';
		break;
	}
}

static int terrace_message(struct dm_target *ti, unsigned int argc, char **argv,
			   char *result, unsigned int maxlen)
{
	struct terrace *tr = volume_of(ti);

	return tr ? tr_message(tr, argc, argv, result, maxlen) : -ENXIO;
}

static int terrace_iterate_devices(struct dm_target *ti, iterate_devices_callout_fn fn, void *data)
{
	struct tr_live_table *table = ti->private;
	struct tr_args *args = &table->args;
	int r = 0;
	u32 t;

	for (t = 0; t < args->nr_tiers && !r; t++) {
		struct tr_arg_device *device = &args->tier[t];

		if (device->dev)
			r = fn(ti, device->dev, device->label.data_start * TERRACE_BLOCK_SECTORS,
			       device->label.data_blocks * TERRACE_BLOCK_SECTORS, data);
	}
	return r;
}

/* As many whole regions as a bio can name. */
#define TR_DISCARD_SECTORS \
	(UINT_MAX / (TERRACE_REGION_BLOCKS * TERRACE_BLOCK_BYTES) * \
	 TERRACE_REGION_BLOCKS * TERRACE_BLOCK_SECTORS)

static void terrace_io_hints(struct dm_target *ti, struct queue_limits *limits)
{
	limits->logical_block_size = TERRACE_BLOCK_BYTES;
	limits->physical_block_size = TERRACE_BLOCK_BYTES;
	limits->io_min = TERRACE_BLOCK_BYTES;
	limits->io_opt = TR_RUN_BLOCKS * TERRACE_BLOCK_BYTES;
	limits->discard_granularity = TERRACE_BLOCK_BYTES;
	limits->discard_alignment = 0;
	/* A discard costs its regions, not its blocks: take it whole. */
	tr_limits_discard(limits, TR_DISCARD_SECTORS);
}

/*
 * Device-mapper takes write-zeroes away when one tier lacks it. None of ours
 * ever sees one: it only takes places away, like a discard.
 */
static void terrace_resume(struct dm_target *ti)
{
	struct request_queue *queue = dm_disk(dm_table_get_md(ti->table))->queue;

	queue->limits.max_write_zeroes_sectors = TR_DISCARD_SECTORS;
}

static struct target_type terrace_target = {
	.name = "terrace",
	.version = { 0, 1, 0 },
	.features = DM_TARGET_NOWAIT | DM_TARGET_SINGLETON,
	.module = THIS_MODULE,
	.ctr = terrace_ctr,
	.dtr = terrace_dtr,
	.map = terrace_map,
	.end_io = terrace_end_io,
	.preresume = terrace_preresume,
	.resume = terrace_resume,
	.presuspend = terrace_presuspend,
	.presuspend_undo = terrace_presuspend_undo,
	.postsuspend = terrace_postsuspend,
	.status = terrace_status,
	.message = terrace_message,
	.iterate_devices = terrace_iterate_devices,
	.io_hints = terrace_io_hints,
};

static int __init terrace_init(void)
{
	int err = tr_rw_init();

	if (err)
		return err;
	err = tr_sysfs_init();
	if (err)
		goto no_sysfs;
	err = tr_cold_init();
	if (err)
		goto no_cold;
	err = tr_arrays_init();
	if (err)
		goto no_arrays;
	err = tr_promotion_slabs_init();
	if (err)
		goto no_promotion;
	err = dm_register_target(&terrace_target);
	if (!err)
		return 0;
	tr_promotion_slabs_exit();
no_promotion:
	tr_arrays_exit();
no_arrays:
	tr_cold_exit();
no_cold:
	tr_sysfs_exit();
no_sysfs:
	tr_rw_exit();
	return err;
}

static void __exit terrace_exit(void)
{
	dm_unregister_target(&terrace_target);
	tr_sysfs_exit();
	tr_rw_exit();
	rcu_barrier();
	tr_cold_exit();
	tr_arrays_exit();
	tr_promotion_slabs_exit();
}

module_init(terrace_init);
module_exit(terrace_exit);

MODULE_DESCRIPTION("Terrace: crash-safe block tiering");
MODULE_AUTHOR("The Terrace authors");
MODULE_LICENSE("GPL");
