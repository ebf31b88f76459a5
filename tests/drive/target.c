// SPDX-License-Identifier: GPL-2.0
/*
 * Device-mapper glue of the drive model.
 *
 *	0 SECTORS drive NAME PRESET [KEY=VALUE...]
 *
 * NAME is the drive's own; tables that name the same drive share it. Data move
 * between bio and medium in the map function, in process context, without
 * sleeping; what happens after that is a matter of time (queue.c).
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "compat.h"
#include "drive.h"

/* keeps one discard from holding media_lock for long */
#define DISCARD_SECTORS	((64U << 20) >> SECTOR_SHIFT)

static struct workqueue_struct *feed_queue;

/* ---- table line ---- */

static int parse_table(struct dm_target *ti, struct drive_config *c,
		       unsigned int argc, char **argv)
{
	const struct drive_config *preset;
	unsigned int i;

	if (argc < 2) {
		ti->error = "Usage: NAME PRESET [KEY=VALUE...]";
		return -EINVAL;
	}
	if (!argv[0][0] || strlen(argv[0]) >= NAME_LEN) {
		ti->error = "Drive name must have 1 to 31 characters";
		return -EINVAL;
	}
	preset = drive_preset(argv[1]);
	if (!preset) {
		ti->error = "Unknown preset (ram optane nvme-tlc qlc hdd hdd-simple hdd-7200 net)";
		return -EINVAL;
	}
	*c = *preset;
	for (i = 2; i < argc; i++)
		if (drive_config_set(c, argv[i], &ti->error))
			return -EINVAL;
	return drive_config_check(c, ti->len << SECTOR_SHIFT, &ti->error);
}

static int drive_ctr(struct dm_target *ti, unsigned int argc, char **argv)
{
	struct drive_target *t = kzalloc(sizeof(*t), GFP_KERNEL);
	int r;

	if (!t) {
		ti->error = "Out of memory for a target";
		return -ENOMEM;
	}
	r = parse_table(ti, &t->config, argc, argv);
	if (r)
		goto bad;
	r = -ENOMEM;
	t->drive = drive_open(argv[0], ti->len << SECTOR_SHIFT, &t->config,
			      &ti->error);
	if (!t->drive)
		goto bad;
	ti->private = t;
	ti->per_io_data_size = sizeof(struct drive_op);
	ti->num_flush_bios = t->config.cache ? 1 : 0;
	ti->flush_supported = t->config.cache;
	ti->num_discard_bios = t->config.discard;
	ti->discards_supported = t->config.discard;
	ti->num_write_zeroes_bios = 1;
	return 0;
bad:
	kfree(t);
	return r;
}

static void drive_dtr(struct dm_target *ti)
{
	struct drive_target *t = ti->private;

	drive_close(t->drive);
	kfree(t);
}

static int drive_preresume(struct dm_target *ti)
{
	struct drive_target *t = ti->private;

	drive_apply(t->drive, &t->config, ti->len << SECTOR_SHIFT);
	return 0;
}

static void drive_resume(struct dm_target *ti)
{
	struct drive_target *t = ti->private;

	compat_rotational(ti, t->config.rotational);
}

static void drive_io_hints(struct dm_target *ti, struct queue_limits *limits)
{
	const struct drive_config *c = &((struct drive_target *)ti->private)->config;

	limits->logical_block_size = c->lbs;
	limits->physical_block_size = c->pbs;
	limits->io_min = c->pbs;
	limits->io_opt = c->io_opt;
	limits->discard_granularity = max_t(u64, c->pbs, BLOCK_BYTES);
	compat_limits(limits, c->rotational, DISCARD_SECTORS);
}

/* There are none, but device-mapper wants to ask before it allows zeroing. */
static int drive_iterate_devices(struct dm_target *ti,
				 iterate_devices_callout_fn fn, void *data)
{
	return 0;
}

/* ---- commands ---- */

static int kind_of(const struct bio *bio)
{
	if (bio->bi_opf & REQ_PREFLUSH)
		return DRIVE_FLUSH;	/* always empty: device-mapper splits */
	switch (bio_op(bio)) {
	case REQ_OP_READ:
		return DRIVE_READ;
	case REQ_OP_WRITE:
		return DRIVE_WRITE;
	case REQ_OP_DISCARD:
		return DRIVE_DISCARD;
	case REQ_OP_WRITE_ZEROES:
		return DRIVE_ZEROES;
	default:
		return -EOPNOTSUPP;
	}
}

static void init_op(struct drive_op *op, struct drive *d, struct bio *bio,
		    enum drive_kind kind)
{
	op->arrival_ns = ktime_get_ns();
	op->epoch = atomic_read(&d->power->epoch);
	op->bio = bio;
	op->write = NULL;
	op->iter = bio->bi_iter;
	op->cmd.kind = kind;
	op->cmd.start = (u64)bio->bi_iter.bi_sector << SECTOR_SHIFT;
	op->cmd.bytes = bio->bi_iter.bi_size;
	op->delay_ns = 0;
	op->recorded = 0;
	op->status = BLK_STS_OK;
	op->fua = kind == DRIVE_WRITE && (bio->bi_opf & REQ_FUA);
	op->cut_after = false;
	op->hold = false;
}

static int write_data(struct drive *d, struct drive_op *op)
{
	if (!op->recorded)
		drive_record_command(d, op);
	return drive_cache_write(d, op);
}

static int move_data(struct drive *d, struct drive_op *op)
{
	int r = 0;

	spin_lock(&d->media_lock);
	if (drive_op_powered(d, op) && !READ_ONCE(d->dead)) {
		if (op->cmd.kind == DRIVE_READ)
			drive_media_read(d, op);
		else if (op->cmd.kind != DRIVE_FLUSH)
			r = write_data(d, op);
	}
	spin_unlock(&d->media_lock);
	return r;
}

static void starve(struct drive *d, struct drive_op *op)
{
	spin_lock_irq(&d->queue_lock);
	list_add_tail(&op->list, &d->starved);
	spin_unlock_irq(&d->queue_lock);
	queue_work(feed_queue, &d->feed);
}

static struct drive_op *next_starved(struct drive *d)
{
	struct drive_op *op;

	spin_lock_irq(&d->queue_lock);
	op = list_first_entry_or_null(&d->starved, struct drive_op, list);
	if (op)
		list_del(&op->list);
	spin_unlock_irq(&d->queue_lock);
	return op;
}

/* Waits until the kernel has a page to spare, and leaves it to the map path. */
static void wait_for_memory(void)
{
	__free_page(alloc_page(GFP_NOIO | __GFP_NOFAIL));
	schedule_timeout_uninterruptible(1);
}

/* The worker behind commands that found no memory and may not sleep, or were held. */
void drive_feed(struct work_struct *work)
{
	struct drive *d = container_of(work, struct drive, feed);
	struct drive_op *op;

	while ((op = next_starved(d))) {
		while (op->status == BLK_STS_OK && move_data(d, op))
			wait_for_memory();
		drive_queue(d, op);
	}
}

/* False: the power is off, which ends what is held, so it must not be. */
static bool hold(struct drive *d, struct drive_op *op)
{
	bool held;

	spin_lock_irq(&d->queue_lock);
	held = drive_op_powered(d, op);
	if (held) {
		list_add_tail(&op->list, &d->held);
		WRITE_ONCE(d->nr_held, d->nr_held + 1);
	}
	spin_unlock_irq(&d->queue_lock);
	return held;
}

/**
 * drive_release() - what is held goes on, in the order in which it came
 * @d: the drive
 */
void drive_release(struct drive *d)
{
	spin_lock_irq(&d->queue_lock);
	list_splice_tail_init(&d->held, &d->starved);
	WRITE_ONCE(d->nr_held, 0);
	spin_unlock_irq(&d->queue_lock);
	queue_work(feed_queue, &d->feed);
}

static int drive_map(struct dm_target *ti, struct bio *bio)
{
	struct drive *d = ((struct drive_target *)ti->private)->drive;
	struct drive_op *op = dm_per_bio_data(bio, sizeof(*op));
	int kind = kind_of(bio);

	if (kind < 0)
		return DM_MAPIO_KILL;
	bio->bi_iter.bi_sector = dm_target_offset(ti, bio->bi_iter.bi_sector);
	init_op(op, d, bio, kind);
	if (READ_ONCE(d->faulty))
		drive_fault_strike(d, op);
	if (op->hold && hold(d, op))
		return DM_MAPIO_SUBMITTED;
	if (op->status == BLK_STS_OK && move_data(d, op))
		starve(d, op);
	else
		drive_queue(d, op);
	return DM_MAPIO_SUBMITTED;
}

static struct target_type drive_target_type = {
	.name = "drive",
	.version = { 1, 0, 0 },
	.features = DM_TARGET_NOWAIT,
	.module = THIS_MODULE,
	.ctr = drive_ctr,
	.dtr = drive_dtr,
	.map = drive_map,
	.preresume = drive_preresume,
	.resume = drive_resume,
	.message = drive_message,
	.status = drive_status,
	.io_hints = drive_io_hints,
	.iterate_devices = drive_iterate_devices,
};

static int __init drive_init(void)
{
	int r = drive_cache_init();

	if (r)
		return r;
	feed_queue = alloc_workqueue("drive_feed", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!feed_queue) {
		r = -ENOMEM;
		goto no_queue;
	}
	r = drive_record_init();
	if (r)
		goto no_record;
	r = dm_register_target(&drive_target_type);
	if (r)
		goto no_target;
	return 0;

no_target:
	drive_record_exit();
no_record:
	destroy_workqueue(feed_queue);
no_queue:
	drive_cache_exit();
	return r;
}

static void __exit drive_exit(void)
{
	dm_unregister_target(&drive_target_type);
	drive_registry_exit();
	destroy_workqueue(feed_queue);
	drive_record_exit();
	drive_cache_exit();
}

module_init(drive_init);
module_exit(drive_exit);

MODULE_DESCRIPTION("Model of a drive in RAM: timing, volatile cache, power cuts, faults");
MODULE_LICENSE("GPL");
