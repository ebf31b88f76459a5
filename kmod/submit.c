// SPDX-License-Identifier: GPL-2.0
/*
 * Orders on their way in and results on their way out. All files' orders stand
 * in one list; workers take them from it, a batch at a time, and put their
 * results into the rings. No two of them have orders of one region. An order
 * counts until its result has been consumed, so a ring never overflows.
 */
#include <linux/delay.h>
#include <linux/hash.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "control.h"

#define BUSY_MS		2	/* between two looks at a region that is busy */
#define IDLE_MOST	HZ	/* that an order with IDLE waits for users to pause */

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

/* --- workers ------------------------------------------------------------------------ */

static void kick__f(struct tr_control *control)
{
	u32 k;

	lockdep_assert_held(&control->lock);
	for (k = 0; k < TR_ORDER_WORKERS; k++)
		queue_work(control->tr->order_wq, &control->worker[k].work);
}

void tr_workers_kick(struct tr_control *control)
{
	spin_lock(&control->lock);
	kick__f(control);
	spin_unlock(&control->lock);
}

void tr_workers_flush(struct tr_control *control)
{
	u32 k, turn;

	/* One that ends its batch may have queued another meanwhile. */
	for (turn = 0; turn < 2; turn++)
		for (k = 0; k < TR_ORDER_WORKERS; k++)
			flush_work(&control->worker[k].work);
}

/* The same region, or the same shelf: one after the other, as they were given. */
static bool same_object(const struct terrace_move *a, const struct terrace_move *b)
{
	return a->region == b->region && tr_order_of_shelf(a) == tr_order_of_shelf(b);
}

static bool is_taken__f(const struct tr_control *control, const struct terrace_move *ask)
{
	const struct tr_order_worker *worker;
	u32 k;

	for (worker = control->worker; worker < control->worker + TR_ORDER_WORKERS; worker++)
		for (k = 0; k < worker->nr; k++)
			if (same_object(&worker->batch[k]->ask, ask))
				return true;
	return false;
}

static u32 at_work(const struct tr_control *control)
{
	return min_t(u32, tr_flight_most(control->tr) + 1, TR_ORDER_WORKERS);
}

/* May one with IDLE begin? Users have paused, or the last one has begun long ago (order_idle.c). */
static bool idle_may__f(struct tr_control *control)
{
	if (!control->idle_waits) {
		control->idle_waits = true;
		control->idle_since = jiffies;
		control->quiet = 0;
	}
	if (control->quiet < TR_IDLE_LOOKS && time_before(jiffies, control->idle_since + IDLE_MOST))
		return false;
	control->idle_waits = false;
	return true;
}

/* Is there one in front of it that waits, of the same region? */
static bool is_behind__f(const struct tr_control *control, const struct tr_order *order)
{
	const struct tr_order *other;

	list_for_each_entry(other, &control->orders, list) {
		if (other == order)
			break;
		if (same_object(&other->ask, &order->ask))
			return true;
	}
	return false;
}

/* Does it read within a limit? */
static bool is_limited(const struct terrace *tr, const struct terrace_move *ask)
{
	return ask->mode == TERRACE_MOVE_SCRUB && tr_tune(tr, TR_TUNE_SCRUB_MB);
}

/* May one within a limit begin? If not a worker comes back for it: when the limit lets, or the one
 * that is at work has ended.
 */
static bool scrub_may__f(struct tr_control *control)
{
	u64 until = tr_scrub_until(control->tr);

	if (until)
		mod_delayed_work(control->tr->order_wq, &control->scrub_work,
				 nsecs_to_jiffies(until - min(until, ktime_get_ns())) + 1);
	return !until && !control->scrubbing;
}

static void scrub_work_fn(struct work_struct *work)
{
	struct tr_control *control = container_of(to_delayed_work(work), struct tr_control, scrub_work);

	spin_lock(&control->lock);
	if (control->nr_orders)		/* while there are any the volume is there */
		kick__f(control);
	spin_unlock(&control->lock);
}

void tr_scrubs_may(struct terrace *tr)
{
	struct tr_control *control;

	rcu_read_lock();	/* tr_control_remove() waits for it */
	control = READ_ONCE(tr->control);
	if (control) {
		spin_lock(&control->lock);
		if (control->nr_orders)
			kick__f(control);
		spin_unlock(&control->lock);
	}
	rcu_read_unlock();
}

/* Which objects orders that were passed over have, roughly. */
#define PASSED_BITS	8

static u32 passed_bit(const struct terrace_move *ask)
{
	return hash_64(ask->region * 2 + tr_order_of_shelf(ask), PASSED_BITS);
}

/* Its share of what is there: the others shall have work as well. But what takes
 * no time is not worth a grace period of its own.
 */
static bool take_batch(struct tr_control *control, struct tr_order_worker *worker)
{
	DECLARE_BITMAP(passed, 1 << PASSED_BITS) = {};
	struct tr_order *order, *next;
	u32 most, heavy = 0;
	bool idle = false, scrubs_wait = false;

	spin_lock(&control->lock);
	most = clamp(control->nr_orders / at_work(control), 1u, (u32)TR_ORDER_BATCH);
	list_for_each_entry_safe(order, next, &control->orders, list) {
		bool limited = is_limited(control->tr, &order->ask);
		/* By itself: between two of them there may be much to wait for. */
		bool alone = limited || order->ask.flags & TERRACE_MOVE_IDLE;

		if (is_taken__f(control, &order->ask) ||
		    (test_bit(passed_bit(&order->ask), passed) && is_behind__f(control, order)))
			continue;
		if (limited && (scrubs_wait || !scrub_may__f(control))) {
			scrubs_wait = true;
			__set_bit(passed_bit(&order->ask), passed);
			continue;
		}
		if (alone && worker->nr)
			break;
		if (order->ask.flags & TERRACE_MOVE_IDLE && !idle_may__f(control)) {
			__set_bit(passed_bit(&order->ask), passed);
			idle = true;
			scrubs_wait |= limited;		/* no later one goes first */
			continue;
		}
		worker->scrubs |= limited;
		control->scrubbing |= limited;
		list_del(&order->list);
		control->nr_orders--;
		worker->batch[worker->nr++] = order;
		heavy += order->ask.mode != TERRACE_MOVE_DROP;
		if (alone || heavy == most || worker->nr == TR_ORDER_MOST)
			break;
	}
	if (!worker->nr && !idle)
		control->idle_waits = false;
	/* It may take long: somebody else is to watch for those behind it. */
	if (worker->nr && worker->batch[0]->ask.flags & TERRACE_MOVE_IDLE && control->nr_orders)
		kick__f(control);
	spin_unlock(&control->lock);
	return worker->nr;
}

/* Orders wait for users to pause: one worker looks whether they do. false: not this one. */
static bool watch(struct tr_control *control)
{
	bool mine, quiet;

	spin_lock(&control->lock);
	mine = control->idle_waits && !control->watched;
	control->watched |= mine;
	spin_unlock(&control->lock);
	if (!mine)
		return false;
	quiet = tr_idle_look(control->tr, &control->seen);
	spin_lock(&control->lock);
	control->quiet = quiet ? control->quiet + 1 : 0;
	control->watched = false;
	spin_unlock(&control->lock);
	return true;
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

/* Those that are to be carried out again are the first when the volume is resumed. */
static void end_batch(struct tr_control *control, struct tr_order_worker *worker)
{
	u32 k, nr = worker->nr;

	spin_lock(&control->lock);
	worker->nr = 0;
	control->scrubbing &= !worker->scrubs;
	worker->scrubs = false;
	for (k = nr; k--;) {
		struct tr_order *order = worker->batch[k];

		if (order->again && order->cancelled) {
			cancelled(order);
			order->again = false;
		}
		if (!order->again)
			continue;
		list_add(&order->list, &control->orders);
		control->nr_orders++;
		worker->batch[k] = NULL;
	}
	if (control->nr_orders)		/* somebody may have waited for a region of ours */
		kick__f(control);
	spin_unlock(&control->lock);
	for (k = 0; k < nr; k++)
		if (worker->batch[k])
			order_end(control, worker->batch[k]);
}

/* Once more, when what was on its way to be free is free. */
static void try_again(struct terrace *tr, struct tr_order **batch, u32 nr)
{
	struct tr_order *again[TR_ORDER_MOST];
	u32 k, n = 0;

	for (k = 0; k < nr; k++)
		if (batch[k]->result.status == TERRACE_RESULT_NO_ROOM && !batch[k]->again)
			again[n++] = batch[k];
	if (!n)
		return;
	tr_janitor_kick(tr);	/* a shelf may be worth emptying, and nobody writes */
	if (!tr_frees_pending(tr))
		return;
	tr_frees_wait(tr);
	tr_orders_run(tr, again, n);
}

/* The janitor is busy with its region, or the cleaning of a shelf is. */
static void wait_for_region(struct tr_control *control, struct tr_order *order)
{
	while (order->ask.flags & TERRACE_MOVE_WAIT && order->result.error == -EBUSY && !order->again) {
		if (READ_ONCE(order->cancelled)) {
			cancelled(order);
			return;
		}
		order->again = READ_ONCE(control->tr->orders_held);
		if (order->again)
			return;
		msleep(BUSY_MS);
		tr_orders_run(control->tr, &order, 1);
	}
}

static void worker_fn(struct work_struct *work)
{
	struct tr_order_worker *worker = container_of(work, struct tr_order_worker, work);
	struct tr_control *control = worker->control;
	/* Not NULL: a stop takes the orders away and waits for this work. */
	struct terrace *tr = control->tr;
	u32 k;

	/* A suspended volume keeps its orders for later. */
	while (worker - control->worker < at_work(control) && !READ_ONCE(tr->orders_held)) {
		if (!take_batch(control, worker)) {
			if (!watch(control))
				break;
			continue;
		}
		atomic_inc(&tr->orders_at_work);
		tr_orders_run(tr, worker->batch, worker->nr);
		try_again(tr, worker->batch, worker->nr);
		for (k = 0; k < worker->nr; k++)
			wait_for_region(control, worker->batch[k]);
		tr_orders_ended(tr);
		end_batch(control, worker);
	}
	/* One too many since a limit was lowered: it may have been the one that watched. */
	if (worker - control->worker >= at_work(control) && READ_ONCE(control->idle_waits))
		queue_work(tr->order_wq, &control->worker[0].work);
	tr_work_normally();
}

void tr_workers_init(struct tr_control *control)
{
	u32 k;

	INIT_DELAYED_WORK(&control->scrub_work, scrub_work_fn);
	for (k = 0; k < TR_ORDER_WORKERS; k++) {
		INIT_WORK(&control->worker[k].work, worker_fn);
		control->worker[k].control = control;
	}
}

/* --- cancelling ------------------------------------------------------------------------ */

static bool is_meant(const struct tr_order *order, const struct tr_client *client,
		     fl_owner_t files, u64 cookie)
{
	return (!client || order->owner == client) && (!files || order->files == files) &&
	       (!cookie || order->ask.cookie == cookie);
}

/* Those that a worker has: it ends them before they begin, or while they wait. */
static u32 cancel_taken__f(struct tr_control *control, const struct tr_client *client,
			   fl_owner_t files, u64 cookie)
{
	struct tr_order_worker *worker;
	u32 k, nr = 0;

	for (worker = control->worker; worker < control->worker + TR_ORDER_WORKERS; worker++)
		for (k = 0; k < worker->nr; k++) {
			if (!is_meant(worker->batch[k], client, files, cookie))
				continue;
			WRITE_ONCE(worker->batch[k]->cancelled, true);
			nr++;
		}
	return nr;
}

u32 tr_cancel(struct tr_control *control, struct tr_client *client, fl_owner_t files, u64 cookie)
{
	struct tr_order *order, *next;
	LIST_HEAD(list);
	u32 nr = 0;

	spin_lock(&control->lock);
	list_for_each_entry_safe(order, next, &control->orders, list)
		if (is_meant(order, client, files, cookie)) {
			list_move_tail(&order->list, &list);
			control->nr_orders--;
		}
	nr = cancel_taken__f(control, client, files, cookie);
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

void tr_submit_free(struct list_head *orders)
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

int tr_submit_copy(struct tr_client *client, struct terrace_submit *submit,
		   struct tr_waiter *waiter, struct list_head *orders)
{
	submit->done = 0;
	if (submit->flags & ~TERRACE_SUBMIT_FLAGS || submit->order_bytes != sizeof(struct terrace_move) ||
	    !submit->nr || submit->nr > TR_MAX_BATCH ||
	    memchr_inv(submit->reserved, 0, sizeof(submit->reserved)))
		return -EINVAL;
	return copy_orders(client, submit, waiter, orders);
}

int tr_submit(struct tr_client *client, const struct terrace_submit *submit,
	      struct tr_waiter *waiter, struct list_head *orders)
{
	struct tr_control *control = client->control;
	int err = 0;

	spin_lock(&control->lock);
	consume__f(client, submit->consumed);
	if (client->under_way + submit->nr > TR_MAX_ORDERS) {
		err = -EAGAIN;
	} else {
		client->under_way += submit->nr;
		client->waiting += submit->nr;
		if (waiter)
			refcount_set(&waiter->pending, submit->nr);
		list_splice_tail_init(orders, &control->orders);
		control->nr_orders += submit->nr;
		kick__f(control);
	}
	spin_unlock(&control->lock);
	return err;
}
