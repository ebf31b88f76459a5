// SPDX-License-Identifier: GPL-2.0
/*
 * What happens to a volume, told to those who have its control device open;
 * and the claim to drive it.
 *
 * Each file keeps the last events that fit its ring. What does not fit is
 * counted, and the count is the next event that is read when there is room.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "control.h"
#include "sense.h"

/* --- events ------------------------------------------------------------------------ */

static void put_event__f(struct tr_client *client, const struct terrace_event *event)
{
	if (client->nr_events == TR_MAX_EVENTS) {
		client->lost_events++;
		return;
	}
	client->event[(client->first_event + client->nr_events++) % TR_MAX_EVENTS] = *event;
	wake_up_all(&client->wait);
}

static void tell(struct tr_control *control, struct tr_client *only, enum terrace_event_type type,
		 u32 tier, u64 region, u64 value)
{
	struct terrace_event event = {
		.type = type, .tier = tier, .region = region, .value = value,
		.nanoseconds = ktime_get_ns(),
	};
	struct tr_client *client;
	unsigned long flags;

	spin_lock_irqsave(&control->events_lock, flags);
	list_for_each_entry(client, &control->clients, clients)
		if (!only || client == only)
			put_event__f(client, &event);
	spin_unlock_irqrestore(&control->events_lock, flags);
}

void tr_event(struct terrace *tr, enum terrace_event_type type, u32 tier, u64 region, u64 value)
{
	struct tr_control *control;

	rcu_read_lock();	/* tr_control_remove() waits for it */
	control = READ_ONCE(tr->control);
	if (control)
		tell(control, NULL, type, tier, region, value);
	rcu_read_unlock();
}

static bool take_event(struct tr_client *client, struct terrace_event *event)
{
	struct tr_control *control = client->control;
	bool got = true;

	spin_lock_irq(&control->events_lock);
	if (client->nr_events) {
		*event = client->event[client->first_event++ % TR_MAX_EVENTS];
		client->nr_events--;
	} else if (client->lost_events) {
		*event = (struct terrace_event){
			.type = TERRACE_EVENT_LOST, .tier = TR_NO_TIER, .region = TR_NO_REGION,
			.value = client->lost_events, .nanoseconds = ktime_get_ns(),
		};
		client->lost_events = 0;
	} else {
		got = false;
	}
	spin_unlock_irq(&control->events_lock);
	return got;
}

bool tr_client_has_events(struct tr_client *client)
{
	return READ_ONCE(client->nr_events) || READ_ONCE(client->lost_events);
}

ssize_t tr_client_read(struct file *file, char __user *to, size_t bytes, loff_t *at)
{
	struct tr_client *client = file->private_data;
	struct terrace_event event;
	size_t done = 0;

	if (!client->hello)
		return -EPROTO;
	if (bytes < sizeof(event))
		return -EINVAL;
	for (; bytes - done >= sizeof(event); done += sizeof(event)) {
		while (!take_event(client, &event)) {
			if (done)
				return done;
			if (!READ_ONCE(client->control->tr))
				return -ENODEV;
			if (file->f_flags & O_NONBLOCK)
				return -EAGAIN;
			if (wait_event_interruptible(client->wait, tr_client_has_events(client) ||
						     !READ_ONCE(client->control->tr)))
				return -EINTR;
		}
		if (copy_to_user(to + done, &event, sizeof(event)))
			return done ?: -EFAULT;
	}
	return done;
}

/* --- the claim --------------------------------------------------------------------- */

bool tr_is_driven(struct terrace *tr)
{
	struct tr_control *control;
	bool driven;

	rcu_read_lock();
	control = READ_ONCE(tr->control);
	driven = control && READ_ONCE(control->driver);
	rcu_read_unlock();
	return driven;
}

bool tr_drives(struct terrace *tr, u32 tgid)
{
	struct tr_control *control;
	bool drives;

	rcu_read_lock();
	control = READ_ONCE(tr->control);
	drives = tgid && control && READ_ONCE(control->driver_tgid) == tgid;
	rcu_read_unlock();
	return drives;
}

/* @files: only if it was claimed by that process. NULL: by any. */
static bool end_claim(struct tr_client *client, void *files)
{
	struct tr_control *control = client->control;
	bool ended;

	spin_lock(&control->lock);
	ended = control->driver == client && (!files || client->driver_files == files);
	if (ended) {
		WRITE_ONCE(control->driver, NULL);
		WRITE_ONCE(control->driver_tgid, 0);
	}
	spin_unlock(&control->lock);
	if (!ended)
		return false;
	tell(control, client, TERRACE_EVENT_CLAIM, TR_NO_TIER, TR_NO_REGION, 0);
	return true;
}

/* Nobody drives any more. Not from a call, which holds alive. */
static void hand_over(struct tr_control *control)
{
	down_read(&control->alive);
	if (control->tr)
		tr_janitor_kick(control->tr);
	up_read(&control->alive);
}

static void claim_timeout(struct work_struct *work)
{
	struct tr_client *client = container_of(to_delayed_work(work), struct tr_client, claim_work);

	if (!end_claim(client, NULL))
		return;
	tr_cancel(client->control, client, client->driver_files, 0);
	hand_over(client->control);
}

/* Every call of the driver says that it is alive. */
void tr_client_renew(struct tr_client *client)
{
	if (READ_ONCE(client->control->driver) == client && client->claim_ms)
		mod_delayed_work(system_wq, &client->claim_work, msecs_to_jiffies(client->claim_ms));
}

int tr_client_claim(struct tr_client *client, const struct terrace_claim *ask)
{
	struct tr_control *control = client->control;
	bool busy;

	if (ask->flags || ask->reserved)
		return -EINVAL;
	spin_lock(&control->lock);
	busy = control->driver && control->driver != client;
	if (!busy) {
		client->driver_files = current->files;
		client->claim_ms = ask->timeout_ms;
		WRITE_ONCE(control->driver, client);
		WRITE_ONCE(control->driver_tgid, current->tgid);
	}
	spin_unlock(&control->lock);
	if (busy)
		return -EBUSY;
	if (!ask->timeout_ms)
		cancel_delayed_work(&client->claim_work);
	tr_client_renew(client);
	return 0;
}

int tr_client_release_claim(struct tr_client *client)
{
	if (!end_claim(client, NULL))
		return -ENOENT;
	tr_cancel(client->control, client, client->driver_files, 0);
	tr_janitor_kick(client->control->tr);
	return 0;
}

/* --- a file's life ------------------------------------------------------------------- */

void tr_client_listen(struct tr_client *client)
{
	INIT_DELAYED_WORK(&client->claim_work, claim_timeout);
	spin_lock_irq(&client->control->events_lock);
	list_add(&client->clients, &client->control->clients);
	spin_unlock_irq(&client->control->events_lock);
}

/* The process with @files closes it. */
void tr_client_flush(struct tr_client *client, void *files)
{
	if (end_claim(client, files))
		hand_over(client->control);
}

void tr_client_deafen(struct tr_client *client)
{
	if (end_claim(client, NULL))
		hand_over(client->control);
	cancel_delayed_work_sync(&client->claim_work);
	spin_lock_irq(&client->control->events_lock);
	list_del(&client->clients);
	spin_unlock_irq(&client->control->events_lock);
}
