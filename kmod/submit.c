// SPDX-License-Identifier: GPL-2.0
/*
 * Orders on their way in and results on their way out. All files' orders stand
 * in one list; one worker per volume takes them from it, a batch at a time, and
 * puts their results into the rings. An order counts until its result has been
 * consumed, so a ring never overflows.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "control.h"

/* --- results ----------------------------------------------------------------------- */

static void put_result__f(struct tr_client *client, const struct terrace_result *result)
{
	struct terrace_ring *ring = client->ring;
	struct terrace_result *entry = (void *)ring + ring->entries_offset;

	entry[ring->head & (TR_MAX_ORDERS - 1)] = *result;
	/* Pairs with the program's load-acquire of head. */
	smp_store_release(&ring->head, ring->head + 1);
	client->waiting--;
}

/* Ends @order, whose result is there. */
static void order_end(struct tr_control *control, struct tr_order *order)
{
	struct tr_client *client = order->owner;
	struct tr_waiter *waiter = order->waiter;

	spin_lock(&control->lock);
	put_result__f(client, &order->result);
	/* Woken under the lock: the file may be closed as soon as it is let go. */
	wake_up_all(&client->wait);
	spin_unlock(&control->lock);
	kfree(order);
	if (waiter && refcount_dec_and_test(&waiter->pending))
		waiter->ended(waiter);
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

/* Once more, when what was on its way to be free is free. */
static void try_again(struct terrace *tr, struct tr_order **batch, u32 nr)
{
	struct tr_order *again[TR_ORDER_BATCH];
	u32 k, n = 0;

	for (k = 0; k < nr; k++)
		if (batch[k]->result.status == TERRACE_RESULT_NO_ROOM)
			again[n++] = batch[k];
	if (!n || !tr_frees_pending(tr))
		return;
	tr_frees_wait(tr);
	tr_orders_run(tr, again, n);
}

void tr_control_work(struct work_struct *work)
{
	struct tr_control *control = container_of(work, struct tr_control, work);
	struct tr_order *batch[TR_ORDER_BATCH];
	u32 nr, k;

	/* A suspended volume keeps its orders for later. */
	while (!READ_ONCE(control->paused) && (nr = take_batch(control, batch))) {
		/* Not NULL: a stop takes the orders away and waits for this work. */
		tr_orders_run(control->tr, batch, nr);
		try_again(control->tr, batch, nr);
		for (k = 0; k < nr; k++)
			order_end(control, batch[k]);
	}
	tr_work_normally();
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

u32 tr_cancel(struct tr_control *control, struct tr_client *client, fl_owner_t files, u64 cookie)
{
	struct tr_order *order, *next;
	LIST_HEAD(list);
	u32 nr = 0;

	spin_lock(&control->lock);
	list_for_each_entry_safe(order, next, &control->orders, list)
		if ((!client || order->owner == client) && (!files || order->files == files) &&
		    (!cookie || order->ask.cookie == cookie))
			list_move_tail(&order->list, &list);
	spin_unlock(&control->lock);
	list_for_each_entry_safe(order, next, &list, list) {
		cancelled(order);
		order_end(control, order);
		nr++;
	}
	return nr;
}

static void consume__f(struct tr_client *client, u64 tail)
{
	struct terrace_ring *ring = client->ring;

	if (tail <= ring->consumed || tail > ring->head)
		return;
	client->under_way -= tail - ring->consumed;
	WRITE_ONCE(ring->consumed, tail);
}

int tr_consume(struct tr_client *client, u64 tail)
{
	int err = 0;

	spin_lock(&client->control->lock);
	if (tail > client->ring->head || tail < client->ring->consumed)
		err = -EINVAL;
	else
		consume__f(client, tail);
	spin_unlock(&client->control->lock);
	return err;
}

/* --- orders ------------------------------------------------------------------------ */

static void free_orders(struct list_head *orders)
{
	struct tr_order *order, *next;

	list_for_each_entry_safe(order, next, orders, list)
		kfree(order);
}

/* Copies and checks the orders of @submit into @orders. */
static int copy_orders(struct tr_client *client, struct terrace_submit *submit,
		       struct tr_waiter *waiter, struct list_head *orders)
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
		order->files = current->files;
		order->waiter = waiter;
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

int tr_submit(struct tr_client *client, struct terrace_submit *submit, struct tr_waiter *waiter)
{
	struct tr_control *control = client->control;
	LIST_HEAD(orders);
	int err;

	submit->done = 0;
	if (submit->flags & ~TERRACE_SUBMIT_FLAGS || submit->order_bytes != sizeof(struct terrace_move) ||
	    !submit->nr || submit->nr > TR_MAX_BATCH ||
	    memchr_inv(submit->reserved, 0, sizeof(submit->reserved)))
		return -EINVAL;
	err = copy_orders(client, submit, waiter, &orders);
	if (!err) {
		spin_lock(&control->lock);
		consume__f(client, submit->consumed);
		if (client->under_way + submit->nr > TR_MAX_ORDERS) {
			err = -EAGAIN;
		} else {
			client->under_way += submit->nr;
			client->waiting += submit->nr;
			if (waiter)
				refcount_set(&waiter->pending, submit->nr);
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
