// SPDX-License-Identifier: GPL-2.0
/*
 * Pins and hints on ranges of blocks: TERRACE_IOC_RANGE. Pins are the volume's,
 * hints a file's. Whoever looks something up reads one array, tr->ranges, in
 * which all are laid over each other; each change makes a new one. A change does
 * not wait until nobody reads the old one: a policy makes hundreds when a database
 * has compacted, and each wait would take it tens of milliseconds.
 */
#include <linux/slab.h>

#include "control.h"
#include "core/ranges.h"
#include "sense.h"

struct tr_ranges {
	struct rcu_head rcu;
	u32 nr;
	struct tr_range range[TR_MAX_RANGES];	/* of the one in use: only so many */
};

#define CHANGES_AT_ONCE	64u	/* whose old arrays may wait to be freed */

#define PINS	(BIT(TERRACE_RANGE_PIN_FAST) | BIT(TERRACE_RANGE_PIN_SLOW))
#define HINTS	(BIT(TERRACE_RANGE_HINT_COLD) | BIT(TERRACE_RANGE_HINT_NOHEAT) | \
		 BIT(TERRACE_RANGE_DEAD) | BIT(TERRACE_RANGE_PIN_FAST))	/* of a file: HINT_FAST */

/* --- looking up -------------------------------------------------------------------- */

u32 tr_ranges_marks(struct terrace *tr, u64 block)
{
	const struct tr_ranges *ranges;
	u32 marks = 0;
	u64 n = 1;

	rcu_read_lock();
	ranges = READ_ONCE(tr->ranges);
	if (ranges)
		marks = tr_ranges_find(ranges->range, ranges->nr, block, &n);
	rcu_read_unlock();
	return marks;
}

bool tr_ranges_mask(struct terrace *tr, u64 region, u32 marks, u64 *mask)
{
	u64 block = region << TERRACE_REGION_SHIFT, n;
	const struct tr_ranges *ranges;
	bool any = false;
	u32 i;

	bitmap_zero((unsigned long *)mask, TERRACE_REGION_BLOCKS);
	rcu_read_lock();
	ranges = READ_ONCE(tr->ranges);
	for (i = 0; ranges && i < TERRACE_REGION_BLOCKS; i += n) {
		n = TERRACE_REGION_BLOCKS - i;
		if (!(tr_ranges_find(ranges->range, ranges->nr, block + i, &n) & marks))
			continue;
		bitmap_set((unsigned long *)mask, i, n);
		any = true;
	}
	rcu_read_unlock();
	return any;
}

/* --- a write lifts DEAD ------------------------------------------------------------ */

/* Whoever writes only notes it: to take marks away sleeps. Under rcu_read_lock. */
static void note_written(struct tr_control *control, u64 first, u64 end)
{
	struct tr_lifts *lifts = &control->lifts;
	struct tr_lift *last;
	unsigned long flags;

	spin_lock_irqsave(&lifts->lock, flags);
	last = lifts->nr ? &lifts->lift[lifts->nr - 1] : NULL;
	if (last && first <= last->end && end >= last->first) {
		last->first = min(last->first, first);
		last->end = max(last->end, end);
	} else if (lifts->nr < TR_MAX_LIFTS) {
		lifts->lift[lifts->nr++] = (struct tr_lift){ first, end };
	} else {
		/* Too many to tell apart: what lies between loses its marks as well. */
		last->first = min(last->first, first);
		last->end = max(last->end, end);
	}
	spin_unlock_irqrestore(&lifts->lock, flags);
	queue_work(system_wq, &control->lift_work);
}

void tr_ranges_written(struct terrace *tr, u64 block, u32 nr)
{
	const struct tr_ranges *ranges;
	struct tr_control *control;
	u64 at, n;

	rcu_read_lock();	/* tr_control_remove() waits for it */
	ranges = READ_ONCE(tr->ranges);
	control = READ_ONCE(tr->control);
	for (at = block; ranges && control && at < block + nr; at += n) {
		n = block + nr - at;
		if (tr_ranges_find(ranges->range, ranges->nr, at, &n) & BIT(TERRACE_RANGE_DEAD))
			note_written(control, at, at + n);
	}
	rcu_read_unlock();
}

/* --- changing ---------------------------------------------------------------------- */

static void free_ranges_rcu(struct rcu_head *head)
{
	kvfree(container_of(head, struct tr_ranges, rcu));
}

/* Nobody new reads @old. */
static void retire(struct tr_control *control, struct tr_ranges *old)
{
	if (!old)
		return;
	call_rcu(&old->rcu, free_ranges_rcu);
	if (++control->retired % CHANGES_AT_ONCE == 0)
		synchronize_rcu();
}

/* Empty; NULL: no memory. */
static struct tr_ranges *new_ranges(void)
{
	struct tr_ranges *ranges = kvmalloc(sizeof(*ranges), GFP_KERNEL);

	if (ranges)
		ranges->nr = 0;		/* the rest, 24 KiB, need not be cleared */
	return ranges;
}

/* *@to with all of @over laid over it, in *@to; *@spare is its room. */
static int lay_over(struct tr_ranges **to, struct tr_ranges **spare, const struct tr_ranges *over)
{
	u32 k;
	int nr;

	for (k = 0; over && k < over->nr; k++) {
		nr = tr_ranges_change((*to)->range, (*to)->nr, (*spare)->range, TR_MAX_RANGES,
				      over->range[k].first, over->range[k].end, 0,
				      over->range[k].marks);
		if (nr < 0)
			return nr;
		(*spare)->nr = nr;
		swap(*to, *spare);
	}
	return 0;
}

/* All that is laid over each other, as long as it is; NULL: nothing. */
static int lay_all(struct tr_control *control, struct tr_ranges **out)
{
	struct tr_ranges *all = new_ranges(), *spare = new_ranges();
	struct tr_client *client;
	int err = all && spare ? lay_over(&all, &spare, control->pins) : -ENOMEM;

	list_for_each_entry(client, &control->hinting, hinting)
		err = err ?: lay_over(&all, &spare, client->hints);
	*out = NULL;
	if (!err && all->nr) {
		size_t bytes = offsetof(struct tr_ranges, range) + all->nr * sizeof(all->range[0]);

		*out = kvmalloc(bytes, GFP_KERNEL);
		if (*out)
			memcpy(*out, all, bytes);
		else
			err = -ENOMEM;
	}
	kvfree(all);
	kvfree(spare);
	return err;
}

/* Makes tr->ranges anew from the pins and all files' hints. */
static int publish(struct tr_control *control)
{
	struct terrace *tr = control->tr;
	struct tr_ranges *fresh, *old = tr->ranges;
	int err = lay_all(control, &fresh);

	lockdep_assert_held(&control->ranges_mutex);
	if (err)
		return err;
	/* Pairs with the dependent loads of those who look up. */
	smp_store_release(&tr->ranges, fresh);
	retire(control, old);
	return 0;
}

/* Changes *@which, and what is made of it; or neither. */
static int change(struct tr_control *control, struct tr_ranges **which, u64 first, u64 end,
		  u32 clear, u32 set)
{
	struct tr_ranges *fresh = new_ranges(), *old = *which;
	int nr;

	if (!fresh)
		return -ENOMEM;
	nr = tr_ranges_change(old ? old->range : NULL, old ? old->nr : 0, fresh->range,
			      TR_MAX_RANGES, first, end, clear, set);
	if (nr >= 0) {
		fresh->nr = nr;
		*which = fresh;
		nr = publish(control);
	}
	if (nr) {
		*which = old;
		kvfree(fresh);
		return nr;
	}
	kvfree(old);
	return 0;
}

/* The blocks of @lift are no longer DEAD for this file. true: something changed. */
static bool lift_one(struct tr_client *client, const struct tr_lift *lift)
{
	struct tr_ranges *fresh = client->hints ? new_ranges() : NULL;
	struct tr_ranges *old = client->hints;
	int nr;

	if (!fresh)
		return false;
	nr = tr_ranges_change(old->range, old->nr, fresh->range, TR_MAX_RANGES, lift->first,
			      lift->end, BIT(TERRACE_RANGE_DEAD), 0);
	if (nr < 0)	/* no room to split one: rather none than a ban that stays */
		nr = tr_ranges_change(old->range, old->nr, fresh->range, TR_MAX_RANGES, 0, ~0ull,
				      BIT(TERRACE_RANGE_DEAD), 0);
	if (nr < 0) {
		kvfree(fresh);
		return false;
	}
	fresh->nr = nr;
	client->hints = fresh;
	kvfree(old);
	return true;
}

static void take_lifts(struct tr_control *control, struct tr_lifts *to)
{
	spin_lock_irq(&control->lifts.lock);
	to->nr = control->lifts.nr;
	memcpy(to->lift, control->lifts.lift, sizeof(to->lift));
	control->lifts.nr = 0;
	spin_unlock_irq(&control->lifts.lock);
}

static void lift_fn(struct work_struct *work)
{
	struct tr_control *control = container_of(work, struct tr_control, lift_work);
	struct tr_client *client;
	struct tr_lifts lifts;
	bool changed = false;
	u32 k;

	down_read(&control->alive);
	mutex_lock(&control->ranges_mutex);
	take_lifts(control, &lifts);
	list_for_each_entry(client, &control->hinting, hinting)
		for (k = 0; k < lifts.nr; k++)
			changed |= lift_one(client, &lifts.lift[k]);
	if (changed && control->tr)
		publish(control);
	mutex_unlock(&control->ranges_mutex);
	up_read(&control->alive);
}

void tr_lifts_init(struct tr_control *control)
{
	spin_lock_init(&control->lifts.lock);
	INIT_WORK(&control->lift_work, lift_fn);
}

/* What a call clears and sets; false: no such call. */
static bool meaning(u32 what, u32 *clear, u32 *set)
{
	switch (what) {
	case TERRACE_RANGE_PIN_FAST:
	case TERRACE_RANGE_PIN_SLOW:
		*clear = PINS;
		*set = BIT(what);
		return true;
	case TERRACE_RANGE_UNPIN:
		*clear = PINS;
		*set = 0;
		return true;
	case TERRACE_RANGE_HINT_COLD:
	case TERRACE_RANGE_HINT_NOHEAT:
	case TERRACE_RANGE_DEAD:
		*clear = 0;
		*set = BIT(what);
		return true;
	case TERRACE_RANGE_HINT_FAST:
		*clear = 0;
		*set = BIT(TERRACE_RANGE_PIN_FAST);
		return true;
	case TERRACE_RANGE_CLEAR:
		*clear = HINTS;
		*set = 0;
		return true;
	}
	return false;
}

static bool is_pin(u32 what)
{
	return what == TERRACE_RANGE_PIN_FAST || what == TERRACE_RANGE_PIN_SLOW ||
	       what == TERRACE_RANGE_UNPIN;
}

int tr_client_range(struct tr_client *client, const struct terrace_range *ask)
{
	struct tr_control *control = client->control;
	u64 blocks = READ_ONCE(control->tr->virtual_blocks);
	u32 clear, set;
	int err;

	if (ask->flags || ask->reserved || !ask->nr || !meaning(ask->what, &clear, &set))
		return -EINVAL;
	if (ask->block >= blocks || ask->nr > blocks - ask->block)
		return -ERANGE;
	mutex_lock(&control->ranges_mutex);
	if (is_pin(ask->what)) {
		err = change(control, &control->pins, ask->block, ask->block + ask->nr, clear, set);
	} else {
		if (list_empty(&client->hinting))
			list_add(&client->hinting, &control->hinting);
		err = change(control, &client->hints, ask->block, ask->block + ask->nr, clear, set);
	}
	mutex_unlock(&control->ranges_mutex);
	return err;
}

/* Its hints end with it. */
void tr_client_ranges_end(struct tr_client *client)
{
	struct tr_control *control = client->control;

	down_read(&control->alive);
	mutex_lock(&control->ranges_mutex);
	if (!list_empty(&client->hinting)) {
		list_del_init(&client->hinting);
		/* No memory: they last until the next change. */
		if (control->tr)
			publish(control);
	}
	mutex_unlock(&control->ranges_mutex);
	up_read(&control->alive);
	kvfree(client->hints);
}

/* The volume stops, nothing runs any more. */
void tr_ranges_exit(struct terrace *tr)
{
	kvfree(tr->ranges);
	tr->ranges = NULL;
}
