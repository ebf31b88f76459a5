// SPDX-License-Identifier: GPL-2.0
/*
 * Drives by name. A drive is more than the table that refers to it: it keeps
 * its contents, wear, faults and power state while a new table is loaded, and
 * with keep=on also while there is none.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "drive.h"

static DEFINE_MUTEX(registry_mutex);
static LIST_HEAD(drives);

static struct drive *find_drive(const char *name)
{
	struct drive *d;

	list_for_each_entry(d, &drives, node)
		if (!strcmp(d->name, name))
			return d;
	return NULL;
}

/* Also of a drive that is not finished. */
static void free_drive(struct drive *d)
{
	if (d->power) {
		drive_power_leave(d);
		hrtimer_cancel(&d->timer);
		flush_work(&d->feed);
		drive_cache_forget_all(d);
		drive_fault_clear(d);
		drive_media_free(d);
		drive_power_put(d->power);
	}
	kvfree(d->undo);
	kfree(d);
}

static void init_drive(struct drive *d, const char *name,
		       const struct drive_config *c)
{
	strscpy(d->name, name, sizeof(d->name));
	d->config = *c;
	spin_lock_init(&d->media_lock);
	xa_init(&d->pages);
	INIT_LIST_HEAD(&d->log);
	INIT_LIST_HEAD(&d->destaged);
	spin_lock_init(&d->queue_lock);
	d->running = RB_ROOT_CACHED;
	INIT_LIST_HEAD(&d->waiting);
	hrtimer_init(&d->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_HARD);
	d->timer.function = drive_queue_timer;
	INIT_LIST_HEAD(&d->done);
	INIT_LIST_HEAD(&d->settled);
	INIT_LIST_HEAD(&d->faults);
	INIT_LIST_HEAD(&d->held);
	INIT_LIST_HEAD(&d->starved);
	INIT_WORK(&d->feed, drive_feed);
}

static struct drive *new_drive(const char *name, const struct drive_config *c)
{
	struct drive *d = kzalloc(sizeof(*d), GFP_KERNEL);
	struct drive_power *p;

	if (!d)
		return NULL;
	init_drive(d, name, c);
	d->undo = kvcalloc(1 << UNDO_BUCKETS_SHIFT, sizeof(*d->undo), GFP_KERNEL);
	p = d->undo ? drive_power_get(c->group) : NULL;
	if (!p) {
		free_drive(d);
		return NULL;
	}
	drive_power_join(p, d);
	list_add(&d->node, &drives);
	return d;
}

/*
 * Device-mapper leaves the queue limits of a live device alone when the new
 * table has no devices below, so they must not change under it.
 */
static bool same_limits(const struct drive_config *a,
			const struct drive_config *b)
{
	return a->lbs == b->lbs && a->pbs == b->pbs && a->io_opt == b->io_opt &&
	       a->discard == b->discard && a->cache == b->cache &&
	       a->rotational == b->rotational;
}

static bool may_join(const struct drive *d, const struct drive_config *c,
		     char **error)
{
	if (strcmp(d->config.group, c->group))
		*error = "The drive exists and is in another group";
	else if (d->tables && !same_limits(&d->config, c))
		*error = "A reload cannot change queue limits: remove the drive first (keep=on)";
	else
		return true;
	return false;
}

/**
 * drive_open() - find or make a drive
 * @name: its name
 * @bytes: its size according to the table
 * @c: its configuration if it is new
 * @error: what went wrong
 *
 * Return: the drive, for drive_close(), or NULL.
 */
struct drive *drive_open(const char *name, u64 bytes,
			 const struct drive_config *c, char **error)
{
	struct drive *d;

	mutex_lock(&registry_mutex);
	d = find_drive(name);
	if (d && !may_join(d, c, error)) {
		d = NULL;
		goto out;
	}
	if (!d) {
		d = new_drive(name, c);
		if (!d) {
			*error = "Out of memory for a drive";
			goto out;
		}
		d->bytes = bytes;
	}
	d->tables++;
out:
	mutex_unlock(&registry_mutex);
	return d;
}

static void destroy(struct drive *d)
{
	list_del(&d->node);
	free_drive(d);
}

void drive_close(struct drive *d)
{
	mutex_lock(&registry_mutex);
	if (!--d->tables && !d->config.keep)
		destroy(d);
	mutex_unlock(&registry_mutex);
}

/* The module goes, and with it the drives that were kept. */
void drive_registry_exit(void)
{
	struct drive *d, *next;

	list_for_each_entry_safe(d, next, &drives, node)
		destroy(d);
}

/**
 * drive_apply() - let a configuration take effect
 * @d: the drive
 * @c: the configuration, checked
 * @bytes: size of the drive
 *
 * Context: process, may sleep.
 */
void drive_apply(struct drive *d, const struct drive_config *c, u64 bytes)
{
	spin_lock(&d->media_lock);
	spin_lock_irq(&d->queue_lock);
	d->bytes = bytes;
	d->config = *c;
	if (!d->config.model.stroke_bytes)
		d->config.model.stroke_bytes = bytes;
	if (!d->config.cache) {
		d->flushed_seq = d->done_seq;
		d->flushed_bytes = d->done_bytes;
	}
	spin_unlock_irq(&d->queue_lock);
	spin_unlock(&d->media_lock);
}
