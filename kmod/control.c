// SPDX-License-Identifier: GPL-2.0
/*
 * The control device /dev/terrace/NAME; uapi/terrace.h is its manual.
 *
 * A file has a list of orders that wait, and a ring of results that it maps.
 * One worker per volume takes orders from all files, a batch at a time, and
 * puts their results into the rings. An order counts until its result has been
 * consumed, so a ring never overflows.
 *
 * Lives: the device goes when the volume stops, files may stay. Both hold the
 * control; control->tr is NULL once the volume has gone, under its rwsem, and
 * calls then end in ENODEV. A stop waits for the batch that runs.
 */
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "order.h"
#include "packs.h"

#define MAX_ORDERS	256		/* under way, of one file; a power of two */
#define MAX_BATCH	256
#define MAX_REGIONS	256u
#define RESULTS_BYTES	PAGE_ALIGN(PAGE_SIZE + MAX_ORDERS * sizeof(struct terrace_result))

struct tr_control {
	struct kref users;
	struct rw_semaphore alive;
	struct terrace *tr;		/* NULL: the volume has gone */
	struct miscdevice misc;
	char name[TERRACE_NAME_BYTES + 16], node[TERRACE_NAME_BYTES + 16];
	spinlock_t lock;		/* the list, counts and rings of all files */
	struct list_head orders;
	struct work_struct work;
	struct client *driver;		/* who has claimed it */
};

struct client {
	struct tr_control *control;
	struct terrace_ring *ring;	/* RESULTS_BYTES, mapped read-only */
	bool hello;
	u32 under_way;			/* orders without a consumed result */
	u32 waiting;			/* … without a result */
	wait_queue_head_t wait;
};

/* --- lives ----------------------------------------------------------------------- */

static void control_free(struct kref *kref)
{
	kfree(container_of(kref, struct tr_control, users));
}

static void control_put(struct tr_control *control)
{
	kref_put(&control->users, control_free);
}

static int control_open(struct inode *inode, struct file *file)
{
	struct tr_control *control = container_of(file->private_data, struct tr_control, misc);
	struct client *client = kzalloc(sizeof(*client), GFP_KERNEL);

	if (!client)
		return -ENOMEM;
	client->ring = vmalloc_user(RESULTS_BYTES);
	if (!client->ring) {
		kfree(client);
		return -ENOMEM;
	}
	client->ring->mask = MAX_ORDERS - 1;
	client->ring->entry_bytes = sizeof(struct terrace_result);
	client->ring->entries_offset = PAGE_SIZE;
	client->ring->version = TERRACE_ABI_MAX;
	init_waitqueue_head(&client->wait);
	/* misc_open() and misc_deregister() exclude each other: it is there. */
	kref_get(&control->users);
	client->control = control;
	file->private_data = client;
	return nonseekable_open(inode, file);
}

/* --- orders and results ------------------------------------------------------------ */

static void put_result__f(struct client *client, const struct terrace_result *result)
{
	struct terrace_ring *ring = client->ring;
	struct terrace_result *entry = (void *)ring + ring->entries_offset;

	entry[ring->head & (MAX_ORDERS - 1)] = *result;
	/* Pairs with the program's load-acquire of head. */
	smp_store_release(&ring->head, ring->head + 1);
	client->waiting--;
}

/* Ends @order, whose result is there. */
static void order_end(struct tr_control *control, struct tr_order *order)
{
	struct client *client = order->owner;

	spin_lock(&control->lock);
	put_result__f(client, &order->result);
	/* Woken under the lock: the file may be closed as soon as it is let go. */
	wake_up_all(&client->wait);
	spin_unlock(&control->lock);
	kfree(order);
}

static u32 take_batch(struct tr_control *control, struct tr_order **batch)
{
	struct tr_order *order, *next;
	u32 nr = 0, k;

	spin_lock(&control->lock);
	list_for_each_entry_safe(order, next, &control->orders, list) {
		/* Two orders of one region do not go into one batch. */
		for (k = 0; k < nr && batch[k]->ask.region != order->ask.region; k++)
			;
		if (k < nr)
			break;
		list_del(&order->list);
		batch[nr++] = order;
		if (nr == TR_ORDER_BATCH)
			break;
	}
	spin_unlock(&control->lock);
	return nr;
}

static void control_fn(struct work_struct *work)
{
	struct tr_control *control = container_of(work, struct tr_control, work);
	struct tr_order *batch[TR_ORDER_BATCH];
	u32 nr, k;

	/* A suspended volume keeps its orders for later. */
	while (!READ_ONCE(control->tr->stopping) && (nr = take_batch(control, batch))) {
		/* Not NULL: a stop takes the orders away and waits for this work. */
		tr_orders_run(control->tr, batch, nr);
		for (k = 0; k < nr; k++)
			order_end(control, batch[k]);
	}
}

static void cancelled(struct tr_order *order)
{
	memset(&order->result, 0, sizeof(order->result));
	order->result.cookie = order->ask.cookie;
	order->result.region = order->ask.region;
	order->result.mode = order->ask.mode;
	order->result.bad_block = ~0ull;
	order->result.status = TERRACE_RESULT_CANCELLED;
	order->result.error = -ECANCELED;
}

/* Ends the orders that wait, of @client (NULL: of all) with @cookie (0: any). */
static u32 cancel(struct tr_control *control, struct client *client, u64 cookie)
{
	struct tr_order *order, *next;
	LIST_HEAD(list);
	u32 nr = 0;

	spin_lock(&control->lock);
	list_for_each_entry_safe(order, next, &control->orders, list)
		if ((!client || order->owner == client) && (!cookie || order->ask.cookie == cookie))
			list_move_tail(&order->list, &list);
	spin_unlock(&control->lock);
	list_for_each_entry_safe(order, next, &list, list) {
		cancelled(order);
		order_end(control, order);
		nr++;
	}
	return nr;
}

static void consume__f(struct client *client, u64 tail)
{
	struct terrace_ring *ring = client->ring;

	if (tail <= ring->consumed || tail > ring->head)
		return;
	client->under_way -= tail - ring->consumed;
	WRITE_ONCE(ring->consumed, tail);
}

static void free_orders(struct list_head *orders)
{
	struct tr_order *order, *next;

	list_for_each_entry_safe(order, next, orders, list)
		kfree(order);
}

/* Copies and checks the orders of @submit into @orders. */
static int copy_orders(struct client *client, struct terrace_submit *submit,
		       struct list_head *orders)
{
	const struct terrace_move __user *from = u64_to_user_ptr(submit->orders);
	struct tr_order *order;
	u32 k;

	for (k = 0; k < submit->nr; k++) {
		submit->done = k;
		order = kzalloc(sizeof(*order), GFP_KERNEL);
		if (!order)
			return -ENOMEM;
		list_add_tail(&order->list, orders);
		order->owner = client;
		order->chunk = TR_ANY_CHUNK;
		order->submitted = ktime_get_ns();
		if (copy_from_user(&order->ask, &from[k], sizeof(order->ask)))
			return -EFAULT;
		if (tr_order_check(&order->ask))
			return -EINVAL;
	}
	submit->done = k;
	return 0;
}

static int submit_orders(struct client *client, struct terrace_submit *submit)
{
	struct tr_control *control = client->control;
	LIST_HEAD(orders);
	int err;

	if (submit->flags & ~TERRACE_SUBMIT_FLAGS || submit->order_bytes != sizeof(struct terrace_move) ||
	    !submit->nr || submit->nr > MAX_BATCH ||
	    memchr_inv(submit->reserved, 0, sizeof(submit->reserved)))
		return -EINVAL;
	err = copy_orders(client, submit, &orders);
	if (!err) {
		spin_lock(&control->lock);
		consume__f(client, submit->consumed);
		if (client->under_way + submit->nr > MAX_ORDERS) {
			err = -EAGAIN;
		} else {
			client->under_way += submit->nr;
			client->waiting += submit->nr;
			list_splice_tail_init(&orders, &control->orders);
		}
		spin_unlock(&control->lock);
	}
	if (err) {
		free_orders(&orders);
		return err;
	}
	queue_work(control->tr->order_wq, &control->work);
	return 0;
}

/* --- calls ----------------------------------------------------------------------------- */

static int call_hello(struct client *client, void __user *arg)
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
	hello.features = TERRACE_FEATURE_LZ4 | TERRACE_FEATURE_ZSTD;
	hello.virtual_blocks = READ_ONCE(tr->virtual_blocks);
	hello.regions = tr_nr_regions(tr);
	hello.region_blocks = TERRACE_REGION_BLOCKS;
	hello.max_orders = MAX_ORDERS;
	hello.max_batch = MAX_BATCH;
	hello.max_ranges = 0;
	hello.results_bytes = RESULTS_BYTES;
	hello.summary_bytes = 0;
	memcpy(hello.volume_uuid, tr->super.volume_uuid, sizeof(hello.volume_uuid));
	if (copy_to_user(arg, &hello, sizeof(hello)))
		return -EFAULT;
	if (!err)
		client->hello = true;
	return err;
}

static int call_submit(struct client *client, void __user *arg)
{
	struct terrace_submit submit;
	int err;

	if (copy_from_user(&submit, arg, sizeof(submit)))
		return -EFAULT;
	submit.done = 0;
	err = submit_orders(client, &submit);
	if (copy_to_user(arg, &submit, sizeof(submit)))
		return -EFAULT;
	return err;
}

static int call_cancel(struct client *client, void __user *arg)
{
	struct terrace_cancel ask;

	if (copy_from_user(&ask, arg, sizeof(ask)))
		return -EFAULT;
	if (ask.flags)
		return -EINVAL;
	ask.cancelled = cancel(client->control, client, ask.cookie);
	return copy_to_user(arg, &ask, sizeof(ask)) ? -EFAULT : 0;
}

static int call_consume(struct client *client, void __user *arg)
{
	struct terrace_consume ask;
	int err = 0;

	if (copy_from_user(&ask, arg, sizeof(ask)))
		return -EFAULT;
	spin_lock(&client->control->lock);
	if (ask.reserved || ask.tail > client->ring->head || ask.tail < client->ring->consumed)
		err = -EINVAL;
	else
		consume__f(client, ask.tail);
	spin_unlock(&client->control->lock);
	return err;
}

static void set_bit_if(__u64 *map, u32 i, bool on)
{
	if (on)
		map[i / 64] |= 1ull << (i % 64);
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

static void fill_region(struct terrace *tr, u64 number, struct terrace_region *out)
{
	struct tr_region *region = tr_region_get(tr, number, false);
	struct tr_packs *packs;
	u64 place;
	u32 i;

	memset(out, 0, sizeof(*out));
	out->region = number;
	if (IS_ERR(region))
		out->status = PTR_ERR(region);
	if (IS_ERR_OR_NULL(region))
		return;
	spin_lock_irq(&region->lock);
	packs = tr_region_packs(region);
	for (i = 0; i < TERRACE_REGION_BLOCKS; i++) {
		place = tr_leaf_get(&region->leaf, i);
		set_bit_if(out->present, i, place != TR_NO_PLACE);
		set_bit_if(out->fast, i, place != TR_NO_PLACE &&
			   tr->tier[tr_place_tier(place)].kind == TERRACE_KIND_SLOTS);
		set_bit_if(out->packed, i, tr_packs_find(packs, i) != TR_NO_PACK);
	}
	fill_packs(out, packs);
	spin_unlock_irq(&region->lock);
	tr_region_put(region);
}

static int call_regions(struct client *client, void __user *arg)
{
	struct terrace *tr = client->control->tr;
	struct terrace_region __user *to;
	struct terrace_region *one;
	struct terrace_regions ask;
	int err = 0;
	u32 k;

	if (copy_from_user(&ask, arg, sizeof(ask)))
		return -EFAULT;
	if (ask.flags || ask.reserved || ask.region_bytes != sizeof(*one) || ask.nr > MAX_REGIONS)
		return -EINVAL;
	if (ask.first >= tr_nr_regions(tr))
		return -ERANGE;
	one = kmalloc(sizeof(*one), GFP_KERNEL);
	if (!one)
		return -ENOMEM;
	to = u64_to_user_ptr(ask.regions);
	ask.nr = min_t(u64, ask.nr, tr_nr_regions(tr) - ask.first);
	for (k = 0; k < ask.nr && !err; k++) {
		fill_region(tr, ask.first + k, one);
		err = copy_to_user(&to[k], one, sizeof(*one)) ? -EFAULT : 0;
	}
	kfree(one);
	return err ?: copy_to_user(arg, &ask, sizeof(ask)) ? -EFAULT : 0;
}

static int call(struct client *client, unsigned int cmd, void __user *arg)
{
	if (cmd == TERRACE_IOC_HELLO)
		return call_hello(client, arg);
	if (!client->hello)
		return -EPROTO;
	switch (cmd) {
	case TERRACE_IOC_SUBMIT:
		return call_submit(client, arg);
	case TERRACE_IOC_CANCEL:
		return call_cancel(client, arg);
	case TERRACE_IOC_CONSUME:
		return call_consume(client, arg);
	case TERRACE_IOC_REGIONS:
		return call_regions(client, arg);
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
	struct client *client = file->private_data;
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

static int control_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct client *client = file->private_data;

	if (vma->vm_flags & VM_WRITE || vma->vm_pgoff != TERRACE_MAP_RESULTS >> PAGE_SHIFT)
		return -EINVAL;
	tr_vm_never_write(vma);
	return remap_vmalloc_range(vma, client->ring, 0);
}

static __poll_t control_poll(struct file *file, struct poll_table_struct *wait)
{
	struct client *client = file->private_data;
	__poll_t mask = 0;

	poll_wait(file, &client->wait, wait);
	if (READ_ONCE(client->ring->head) != READ_ONCE(client->ring->consumed))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (!READ_ONCE(client->control->tr))
		mask |= EPOLLHUP;
	return mask;
}

/* Its orders end with it: those that wait are dropped, those that run are
 * waited for.
 */
static int control_flush(struct file *file, fl_owner_t id)
{
	struct client *client = file->private_data;

	cancel(client->control, client, 0);
	return 0;
}

static int control_release(struct inode *inode, struct file *file)
{
	struct client *client = file->private_data;
	struct tr_control *control = client->control;

	cancel(control, client, 0);
	wait_event(client->wait, !READ_ONCE(client->waiting));
	spin_lock(&control->lock);	/* whoever woke us has let go */
	spin_unlock(&control->lock);
	vfree(client->ring);
	kfree(client);
	control_put(control);
	return 0;
}

static const struct file_operations control_fops = {
	.owner = THIS_MODULE,
	.open = control_open,
	.flush = control_flush,
	.release = control_release,
	.unlocked_ioctl = control_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = control_mmap,
	.poll = control_poll,
};

/* --- with the volume ---------------------------------------------------------------------- */

void tr_control_add(struct terrace *tr)
{
	struct tr_control *control = kzalloc(sizeof(*control), GFP_KERNEL);

	if (!control)
		return;
	kref_init(&control->users);
	init_rwsem(&control->alive);
	spin_lock_init(&control->lock);
	INIT_LIST_HEAD(&control->orders);
	INIT_WORK(&control->work, control_fn);
	control->tr = tr;
	snprintf(control->name, sizeof(control->name), "terrace-%s", tr->name);
	snprintf(control->node, sizeof(control->node), "terrace/%s", tr->name);
	control->misc = (struct miscdevice){
		.minor = MISC_DYNAMIC_MINOR, .name = control->name, .nodename = control->node,
		.fops = &control_fops, .mode = 0600,
	};
	if (misc_register(&control->misc)) {
		DMWARN("%s: no control device: orders cannot be given", tr->name);
		control_put(control);
		return;
	}
	tr->control = control;
}

void tr_control_remove(struct terrace *tr)
{
	struct tr_control *control = tr->control;

	if (!control)
		return;
	misc_deregister(&control->misc);
	down_write(&control->alive);
	cancel(control, NULL, 0);
	cancel_work_sync(&control->work);	/* a batch that runs comes to its end */
	cancel(control, NULL, 0);
	control->tr = NULL;
	up_write(&control->alive);
	tr->control = NULL;
	control_put(control);
}

void tr_control_pause(struct terrace *tr)
{
	if (tr->control)
		flush_work(&tr->control->work);
}

void tr_control_resume(struct terrace *tr)
{
	if (tr->control)
		queue_work(tr->order_wq, &tr->control->work);
}
