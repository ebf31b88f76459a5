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
 *
 * A program's memory is copied outside of the rwsem: a fault there may take as
 * long as whoever serves it likes, and a stop holds up all volumes.
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

/* The argument of any call. */
union argument {
	struct terrace_hello hello;
	struct terrace_submit submit;
	struct terrace_cancel cancel;
	struct terrace_consume consume;
	struct terrace_regions regions;
	struct terrace_range range;
	struct terrace_claim claim;
};

/* Versions first: what another one's fields mean is not for us to judge. */
static int call_hello(struct tr_client *client, struct terrace_hello *hello)
{
	struct terrace *tr = client->control->tr;
	int err = 0;

	if (hello->min_version > TERRACE_ABI_MAX || hello->max_version < TERRACE_ABI_MIN)
		err = -EPROTONOSUPPORT;
	else if (hello->flags || memchr_inv(hello->reserved, 0, sizeof(hello->reserved)))
		return -EINVAL;
	if (!err)
		hello->version = min_t(u32, hello->max_version, TERRACE_ABI_MAX);
	hello->min_version = TERRACE_ABI_MIN;
	hello->max_version = TERRACE_ABI_MAX;
	hello->nr_tiers = tr->nr_tiers;
	hello->features = FEATURES;
	hello->virtual_blocks = READ_ONCE(tr->virtual_blocks);
	hello->regions = tr_nr_regions(tr);
	hello->region_blocks = TERRACE_REGION_BLOCKS;
	hello->max_orders = TR_MAX_ORDERS;
	hello->max_batch = TR_MAX_BATCH;
	hello->max_ranges = TR_MAX_RANGES;
	hello->results_bytes = TR_RESULTS_BYTES;
	hello->summary_bytes = tr_summary_bytes(tr);
	memcpy(hello->volume_uuid, tr->super.volume_uuid, sizeof(hello->volume_uuid));
	if (!err)
		client->hello = true;
	return err;
}

static int call_cancel(struct tr_client *client, struct terrace_cancel *ask)
{
	if (ask->flags)
		return -EINVAL;
	ask->cancelled = tr_cancel(client->control, client, NULL, ask->cookie);
	return 0;
}

static int call(struct tr_client *client, unsigned int cmd, union argument *arg,
		struct list_head *orders)
{
	if (cmd == TERRACE_IOC_HELLO)
		return call_hello(client, &arg->hello);
	tr_client_renew(client);
	switch (cmd) {
	case TERRACE_IOC_SUBMIT:
		return tr_submit(client, &arg->submit, NULL, orders);
	case TERRACE_IOC_CANCEL:
		return call_cancel(client, &arg->cancel);
	case TERRACE_IOC_CONSUME:
		return arg->consume.reserved ? -EINVAL : tr_consume(client, arg->consume.tail);
	case TERRACE_IOC_RANGE:
		return tr_client_range(client, &arg->range);
	case TERRACE_IOC_CLAIM:
		return tr_client_claim(client, &arg->claim);
	case TERRACE_IOC_RELEASE:
		return tr_client_release_claim(client);
	}
	return -ENOTTY;
}

static int call_alive(struct tr_client *client, unsigned int cmd, union argument *arg,
		      struct list_head *orders)
{
	struct tr_control *control = client->control;
	int err = -ENODEV;

	down_read(&control->alive);
	if (control->tr)
		err = call(client, cmd, arg, orders);
	up_read(&control->alive);
	return err;
}

static int call_submit(struct tr_client *client, union argument *arg)
{
	LIST_HEAD(orders);
	int err = tr_submit_copy(client, &arg->submit, NULL, &orders);

	err = err ?: call_alive(client, TERRACE_IOC_SUBMIT, arg, &orders);
	tr_submit_free(&orders);
	/* Not under alive: the volume may stop meanwhile, which ends the orders. */
	if (!err && arg->submit.flags & TERRACE_SUBMIT_WAIT)
		err = wait_event_interruptible(client->wait, !READ_ONCE(client->waiting)) ? -EINTR : 0;
	return err;
}

/* HELLO's number has its structure's size in it, which differs between versions. */
static bool is_hello(unsigned int cmd)
{
	const unsigned int size = _IOC_SIZEMASK << _IOC_SIZESHIFT;

	return (cmd & ~size) == (TERRACE_IOC_HELLO & ~size);
}

/* Of a structure that is shorter than ours its part is read and filled in; what a longer one
 * has behind ours must be zero, like all that has no meaning here.
 */
static long hello_ioctl(struct tr_client *client, void __user *user)
{
	const u32 least = offsetofend(struct terrace_hello, version);
	union argument arg = {};
	u32 bytes, known;
	int zero = 1, err;

	if (get_user(bytes, (u32 __user *)user))
		return -EFAULT;
	if (bytes < least || bytes > PAGE_SIZE)
		return -EINVAL;
	known = min_t(u32, bytes, sizeof(arg.hello));
	if (copy_from_user(&arg.hello, user, known))
		return -EFAULT;
	if (bytes > known)
		zero = check_zeroed_user(user + known, bytes - known);
	if (zero < 0)
		return zero;
	if (!zero)
		arg.hello.reserved[0] = 1;	/* as if it were one of ours */
	arg.hello.bytes = known;
	err = call_alive(client, TERRACE_IOC_HELLO, &arg, NULL);
	/* Of an error as well: it has the versions. */
	if (!zero)
		arg.hello.reserved[0] = 0;
	return copy_to_user(user, &arg.hello, known) ? -EFAULT : err;
}

/* The size of @cmd's argument; -ENOTTY: there is no such call. */
static int argument_bytes(unsigned int cmd)
{
	switch (cmd) {
	case TERRACE_IOC_SUBMIT:
	case TERRACE_IOC_CANCEL:
	case TERRACE_IOC_CONSUME:
	case TERRACE_IOC_REGIONS:
	case TERRACE_IOC_RANGE:
	case TERRACE_IOC_CLAIM:
	case TERRACE_IOC_RELEASE:
		return _IOC_SIZE(cmd);
	}
	return -ENOTTY;
}

static long control_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct tr_client *client = file->private_data;
	void __user *user = (void __user *)arg;
	int bytes = argument_bytes(cmd), err;
	union argument kernel;

	if (!READ_ONCE(client->control->tr))
		return -ENODEV;
	if (is_hello(cmd))
		return hello_ioctl(client, user);
	if (!client->hello)
		return -EPROTO;
	if (bytes < 0)
		return bytes;
	if (copy_from_user(&kernel, user, bytes))
		return -EFAULT;
	if (cmd == TERRACE_IOC_SUBMIT)
		err = call_submit(client, &kernel);
	else if (cmd == TERRACE_IOC_REGIONS)
		err = tr_query_regions(client, &kernel.regions);
	else
		err = call_alive(client, cmd, &kernel, NULL);
	/* Of an error as well: it has which order was bad. */
	if (_IOC_DIR(cmd) & _IOC_READ && copy_to_user(user, &kernel, bytes))
		return -EFAULT;
	return err;
}

static int map_summary(struct tr_control *control, struct vm_area_struct *vma)
{
	int err = -ENODEV;

	/* Under mmap_lock, which nobody shall hold while a stop waits for orders:
	 * so only if it can be had. Else the volume is about to go.
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
	init_rwsem(&control->loading);
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
	cancel_delayed_work_sync(&control->scrub_work);
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
	WRITE_ONCE(tr->orders_held, true);
	tr_workers_flush(tr->control);
}

void tr_control_resume(struct terrace *tr)
{
	if (!tr->control)
		return;
	WRITE_ONCE(tr->orders_held, false);
	tr_workers_kick(tr->control);
}
