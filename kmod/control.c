// SPDX-License-Identifier: GPL-2.0
/*
 * The control device /dev/terrace/NAME; uapi/terrace.h is its manual.
 *
 * Here: a file's life, its calls, and the device's life with its volume. What
 * the calls do is in submit.c, uring.c and query.c.
 *
 * Lives: the device goes when the volume stops, files may stay. Both hold the
 * control; control->tr is NULL once the volume has gone, under its rwsem, and
 * calls then end in ENODEV. A stop waits for the batch that runs.
 */
#include <linux/mm.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "control.h"
#include "sense.h"

#define FEATURES	(TERRACE_FEATURE_LZ4 | TERRACE_FEATURE_ZSTD | TERRACE_FEATURE_SUMMARY | \
			 TERRACE_FEATURE_RANGES | TERRACE_FEATURE_EVENTS | TERRACE_FEATURE_CLAIM | \
			 TERRACE_FEATURE_AVOID | TERRACE_FEATURE_RUNS | \
			 (IS_ENABLED(CONFIG_IO_URING) ? TERRACE_FEATURE_URING : 0))

/* --- lives ----------------------------------------------------------------------- */

static void control_free(struct kref *kref)
{
	struct tr_control *control = container_of(kref, struct tr_control, users);

	kvfree(control->pins);
	kfree(control);
}

static void control_put(struct tr_control *control)
{
	kref_put(&control->users, control_free);
}

static int control_open(struct inode *inode, struct file *file)
{
	struct tr_control *control = container_of(file->private_data, struct tr_control, misc);
	struct tr_client *client = kvzalloc(sizeof(*client), GFP_KERNEL);

	if (!client)
		return -ENOMEM;
	client->ring = vmalloc_user(TR_RESULTS_BYTES);
	if (!client->ring) {
		kvfree(client);
		return -ENOMEM;
	}
	client->ring->mask = TR_MAX_ORDERS - 1;
	client->ring->entry_bytes = sizeof(struct terrace_result);
	client->ring->entries_offset = PAGE_SIZE;
	client->ring->version = TERRACE_ABI_MAX;
	init_waitqueue_head(&client->wait);
	INIT_LIST_HEAD(&client->hinting);
	/* misc_open() and misc_deregister() exclude each other: it is there. */
	kref_get(&control->users);
	client->control = control;
	tr_client_listen(client);
	file->private_data = client;
	return nonseekable_open(inode, file);
}

/* --- calls ----------------------------------------------------------------------------- */

static int call_hello(struct tr_client *client, void __user *arg)
{
	struct terrace *tr = client->control->tr;
	struct terrace_hello hello;
	int err = 0;

	if (copy_from_user(&hello, arg, sizeof(hello)))
		return -EFAULT;
	if (hello.bytes != sizeof(hello) || hello.flags ||
	    memchr_inv(hello.reserved, 0, sizeof(hello.reserved)))
		return -EINVAL;
	if (hello.min_version > TERRACE_ABI_MAX || hello.max_version < TERRACE_ABI_MIN)
		err = -EPROTONOSUPPORT;
	else
		hello.version = min_t(u32, hello.max_version, TERRACE_ABI_MAX);
	hello.min_version = TERRACE_ABI_MIN;
	hello.max_version = TERRACE_ABI_MAX;
	hello.nr_tiers = tr->nr_tiers;
	hello.features = FEATURES;
	hello.virtual_blocks = READ_ONCE(tr->virtual_blocks);
	hello.regions = tr_nr_regions(tr);
	hello.region_blocks = TERRACE_REGION_BLOCKS;
	hello.max_orders = TR_MAX_ORDERS;
	hello.max_batch = TR_MAX_BATCH;
	hello.max_ranges = TR_MAX_RANGES;
	hello.results_bytes = TR_RESULTS_BYTES;
	hello.summary_bytes = tr_summary_bytes(tr);
	memcpy(hello.volume_uuid, tr->super.volume_uuid, sizeof(hello.volume_uuid));
	if (copy_to_user(arg, &hello, sizeof(hello)))
		return -EFAULT;
	if (!err)
		client->hello = true;
	return err;
}

static int call_submit(struct tr_client *client, void __user *arg)
{
	struct terrace_submit submit;
	int err;

	if (copy_from_user(&submit, arg, sizeof(submit)))
		return -EFAULT;
	err = tr_submit(client, &submit, NULL);
	if (copy_to_user(arg, &submit, sizeof(submit)))
		return -EFAULT;
	return err;
}

static int call_cancel(struct tr_client *client, void __user *arg)
{
	struct terrace_cancel ask;

	if (copy_from_user(&ask, arg, sizeof(ask)))
		return -EFAULT;
	if (ask.flags)
		return -EINVAL;
	ask.cancelled = tr_cancel(client->control, client, NULL, ask.cookie);
	return copy_to_user(arg, &ask, sizeof(ask)) ? -EFAULT : 0;
}

static int call_consume(struct tr_client *client, void __user *arg)
{
	struct terrace_consume ask;

	if (copy_from_user(&ask, arg, sizeof(ask)))
		return -EFAULT;
	return ask.reserved ? -EINVAL : tr_consume(client, ask.tail);
}

static int call(struct tr_client *client, unsigned int cmd, void __user *arg)
{
	if (cmd == TERRACE_IOC_HELLO)
		return call_hello(client, arg);
	if (!client->hello)
		return -EPROTO;
	tr_client_renew(client);
	switch (cmd) {
	case TERRACE_IOC_SUBMIT:
		return call_submit(client, arg);
	case TERRACE_IOC_CANCEL:
		return call_cancel(client, arg);
	case TERRACE_IOC_CONSUME:
		return call_consume(client, arg);
	case TERRACE_IOC_REGIONS:
		return tr_query_regions(client->control->tr, arg);
	case TERRACE_IOC_RANGE:
		return tr_client_range(client, arg);
	case TERRACE_IOC_CLAIM:
		return tr_client_claim(client, arg);
	case TERRACE_IOC_RELEASE:
		return tr_client_release_claim(client);
	}
	return -ENOTTY;
}

/* Does @cmd, with these arguments, wait for the orders it has given? */
static bool waits(unsigned int cmd, void __user *arg)
{
	const struct terrace_submit __user *submit = arg;
	u32 flags;

	return cmd == TERRACE_IOC_SUBMIT && !get_user(flags, &submit->flags) &&
	       flags & TERRACE_SUBMIT_WAIT;
}

static long control_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct tr_client *client = file->private_data;
	struct tr_control *control = client->control;
	int err = -ENODEV;

	down_read(&control->alive);
	if (control->tr)
		err = call(client, cmd, (void __user *)arg);
	up_read(&control->alive);
	/* Not under alive: the volume may stop meanwhile, which ends the orders. */
	if (!err && waits(cmd, (void __user *)arg))
		err = wait_event_interruptible(client->wait, !READ_ONCE(client->waiting)) ? -EINTR : 0;
	return err;
}

static int map_summary(struct tr_control *control, struct vm_area_struct *vma)
{
	int err = -ENODEV;

	/* Under mmap_lock, which a call that copies takes inside alive: so only
	 * if it can be had. Else the volume is about to go.
	 */
	if (!down_read_trylock(&control->alive))
		return err;
	if (control->tr) {
		mutex_lock(&control->summary_mutex);
		err = tr_summary_map(control->tr, vma,
				     vma->vm_pgoff - (TERRACE_MAP_SUMMARY >> PAGE_SHIFT));
		mutex_unlock(&control->summary_mutex);
	}
	up_read(&control->alive);
	return err;
}

static int control_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct tr_client *client = file->private_data;

	if (vma->vm_flags & VM_WRITE)
		return -EINVAL;
	tr_vm_never_write(vma);
	if (vma->vm_pgoff >= TERRACE_MAP_SUMMARY >> PAGE_SHIFT)
		return map_summary(client->control, vma);
	return remap_vmalloc_range(vma, client->ring, vma->vm_pgoff);
}

static __poll_t control_poll(struct file *file, struct poll_table_struct *wait)
{
	struct tr_client *client = file->private_data;
	__poll_t mask = 0;

	poll_wait(file, &client->wait, wait);
	if (READ_ONCE(client->ring->head) != READ_ONCE(client->ring->consumed) ||
	    tr_client_has_events(client))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (!READ_ONCE(client->control->tr))
		mask |= EPOLLHUP;
	return mask;
}

/* A process closes the file, or ends: the orders that it gave end with it,
 * those that run excepted. Another's that has the file as well go on.
 */
static int control_flush(struct file *file, fl_owner_t id)
{
	struct tr_client *client = file->private_data;

	tr_client_flush(client, id);
	tr_cancel(client->control, client, id, 0);
	return 0;
}

static int control_release(struct inode *inode, struct file *file)
{
	struct tr_client *client = file->private_data;
	struct tr_control *control = client->control;

	tr_client_deafen(client);
	tr_cancel(control, client, NULL, 0);
	wait_event(client->wait, !READ_ONCE(client->waiting));
	spin_lock(&control->lock);	/* whoever woke us has let go */
	spin_unlock(&control->lock);
	tr_client_ranges_end(client);
	vfree(client->ring);
	kvfree(client);
	control_put(control);
	return 0;
}

static const struct file_operations control_fops = {
	.owner = THIS_MODULE,
	.open = control_open,
	.flush = control_flush,
	.release = control_release,
	.read = tr_client_read,
	.unlocked_ioctl = control_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.uring_cmd = tr_control_uring,
	.mmap = control_mmap,
	.poll = control_poll,
};

/* --- with the volume ---------------------------------------------------------------------- */

void tr_control_add(struct terrace *tr)
{
	struct tr_control *control = kzalloc(sizeof(*control), GFP_KERNEL);

	if (!control)
		goto none;
	kref_init(&control->users);
	init_rwsem(&control->alive);
	spin_lock_init(&control->lock);
	INIT_LIST_HEAD(&control->orders);
	spin_lock_init(&control->events_lock);
	INIT_LIST_HEAD(&control->clients);
	mutex_init(&control->ranges_mutex);
	INIT_LIST_HEAD(&control->hinting);
	mutex_init(&control->summary_mutex);
	control->tr = tr;
	tr_workers_init(control);
	tr_lifts_init(control);
	snprintf(control->name, sizeof(control->name), "terrace-%s", tr->name);
	snprintf(control->node, sizeof(control->node), "terrace/%s", tr->name);
	control->misc = (struct miscdevice){
		.minor = MISC_DYNAMIC_MINOR, .name = control->name, .nodename = control->node,
		.fops = &control_fops, .mode = 0600,
	};
	if (misc_register(&control->misc)) {
		control_put(control);
		goto none;
	}
	tr->control = control;
	return;
none:
	DMWARN("%s: no control device: orders cannot be given", tr->name);
}

/* They find that the volume has gone. */
static void wake_clients(struct tr_control *control)
{
	struct tr_client *client;

	spin_lock_irq(&control->events_lock);
	list_for_each_entry(client, &control->clients, clients)
		wake_up_all(&client->wait);
	spin_unlock_irq(&control->events_lock);
}

void tr_control_remove(struct terrace *tr)
{
	struct tr_control *control = tr->control;

	if (!control)
		return;
	misc_deregister(&control->misc);
	down_write(&control->alive);
	tr_cancel(control, NULL, NULL, 0);	/* and nobody queues a worker again */
	tr_workers_flush(control);
	tr_summary_exit(tr);
	WRITE_ONCE(control->tr, NULL);
	up_write(&control->alive);
	WRITE_ONCE(tr->control, NULL);
	synchronize_rcu();		/* tr_event(), tr_ranges_written() */
	cancel_work_sync(&control->lift_work);
	wake_clients(control);
	control_put(control);
}

void tr_control_pause(struct terrace *tr)
{
	if (!tr->control)
		return;
	WRITE_ONCE(tr->control->paused, true);
	tr_workers_flush(tr->control);
}

void tr_control_resume(struct terrace *tr)
{
	if (!tr->control)
		return;
	WRITE_ONCE(tr->control->paused, false);
	tr_workers_kick(tr->control);
}
