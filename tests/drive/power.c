// SPDX-License-Identifier: GPL-2.0
/*
 * Power: cut for all drives of a group in one instant, restored by "revive".
 *
 * The instant is one atomic increment of the group's epoch, possible in any
 * context. Every command carries the epoch it came in, and every decision
 * about it (may it touch the medium, is it complete, is it durable) is made
 * by comparing the two under the drive's locks. So no drive of the group can
 * acknowledge anything after another one of it has gone dark. What remains,
 * failing what was under way and rolling the drives back, is not urgent and
 * done by a worker, before revive at the latest.
 */
#include <linux/slab.h>

#include "drive.h"

/**
 * drive_power_cut() - all drives of the group are off from now on
 * @p: the group
 *
 * Context: any; nothing happens if they are off already.
 */
void drive_power_cut(struct drive_power *p)
{
	int epoch = atomic_read(&p->epoch);

	if (!(epoch & 1) && atomic_cmpxchg(&p->epoch, epoch, epoch + 1) == epoch)
		queue_work(system_unbound_wq, &p->off);
}

static void roll_back_all(struct work_struct *work)
{
	struct drive_power *p = container_of(work, struct drive_power, off);
	struct drive *d;

	mutex_lock(&p->mutex);
	list_for_each_entry(d, &p->members, member)
		drive_queue_fail_all(d);
	list_for_each_entry(d, &p->members, member) {
		if (drive_cache_roll_back(d))
			DMERR("%s: out of memory, contents after the power cut are wrong",
			      d->name);
		DMINFO("%s: power cut %u: %llu unflushed writes lost, %llu torn, %llu survived",
		       d->name, p->cuts + 1, d->counters.lost,
		       d->counters.torn, d->counters.survived);
	}
	p->cuts++;
	mutex_unlock(&p->mutex);
}

static enum hrtimer_restart cut_timer(struct hrtimer *timer)
{
	drive_power_cut(container_of(timer, struct drive_power, timer));
	return HRTIMER_NORESTART;
}

/* Cut after @delay_ns; U64_MAX takes that back. */
void drive_power_cut_at(struct drive_power *p, u64 delay_ns)
{
	hrtimer_cancel(&p->timer);
	if (delay_ns != U64_MAX)
		hrtimer_start(&p->timer, ns_to_ktime(delay_ns),
			      HRTIMER_MODE_REL_HARD);
}

/* Wait until a cut that has happened is worked off. */
void drive_power_settle(struct drive_power *p)
{
	flush_work(&p->off);
}

/**
 * drive_power_revive() - power on again
 * @p: the group
 *
 * Return: 0, or -EBUSY if the power is on.
 */
int drive_power_revive(struct drive_power *p)
{
	int r = -EBUSY;

	hrtimer_cancel(&p->timer);
	drive_power_settle(p);
	mutex_lock(&p->mutex);
	if (atomic_read(&p->epoch) & 1) {
		atomic_inc(&p->epoch);
		r = 0;
	}
	mutex_unlock(&p->mutex);
	return r;
}

static LIST_HEAD(groups);

static struct drive_power *new_power(const char *group)
{
	struct drive_power *p = kzalloc(sizeof(*p), GFP_KERNEL);

	if (!p)
		return NULL;
	strscpy(p->name, group, sizeof(p->name));
	INIT_LIST_HEAD(&p->members);
	mutex_init(&p->mutex);
	atomic_set(&p->epoch, 0);
	INIT_WORK(&p->off, roll_back_all);
	hrtimer_init(&p->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	p->timer.function = cut_timer;
	list_add(&p->node, &groups);
	return p;
}

/**
 * drive_power_get() - the mains of a group
 * @group: its name; empty for a drive that stands alone
 *
 * Context: under the registry mutex.
 * Return: the mains, or NULL for lack of memory.
 */
struct drive_power *drive_power_get(const char *group)
{
	struct drive_power *p;

	if (group[0]) {
		list_for_each_entry(p, &groups, node)
			if (!strcmp(p->name, group))
				goto found;
	}
	p = new_power(group);
	if (!p)
		return NULL;
found:
	p->users++;
	return p;
}

/* Under the registry mutex. */
void drive_power_put(struct drive_power *p)
{
	if (--p->users)
		return;
	hrtimer_cancel(&p->timer);
	flush_work(&p->off);
	list_del(&p->node);
	mutex_destroy(&p->mutex);
	kfree(p);
}

void drive_power_join(struct drive_power *p, struct drive *d)
{
	d->power = p;
	mutex_lock(&p->mutex);
	list_add_tail(&d->member, &p->members);
	mutex_unlock(&p->mutex);
}

void drive_power_leave(struct drive *d)
{
	struct drive_power *p = d->power;

	flush_work(&p->off);
	mutex_lock(&p->mutex);
	list_del(&d->member);
	mutex_unlock(&p->mutex);
}
