// SPDX-License-Identifier: GPL-2.0
/*
 * Pins and hints on ranges of blocks: TERRACE_IOC_RANGE. Pins are the volume's,
 * hints a file's. Whoever looks something up reads one array, tr->ranges, in
 * which all are laid over each other; each change makes a new one.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "control.h"
#include "core/ranges.h"
#include "sense.h"

struct tr_ranges {
	u32 nr;
	struct tr_range range[TR_MAX_RANGES];
};

#define PINS	(BIT(TERRACE_RANGE_PIN_FAST) | BIT(TERRACE_RANGE_PIN_SLOW))
#define HINTS	(BIT(TERRACE_RANGE_HINT_COLD) | BIT(TERRACE_RANGE_HINT_NOHEAT) | \
		 BIT(TERRACE_RANGE_DEAD))

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

/* --- changing ---------------------------------------------------------------------- */

/* @base with all of @over laid over it, in @to. */
static int lay_over(struct tr_ranges *to, struct tr_ranges *spare, const struct tr_ranges *over)
{
	u32 k;
	int nr;

	for (k = 0; over && k < over->nr; k++) {
		nr = tr_ranges_change(to->range, to->nr, spare->range, TR_MAX_RANGES,
				      over->range[k].first, over->range[k].end, 0,
				      over->range[k].marks);
		if (nr < 0)
			return nr;
		spare->nr = nr;
		*to = *spare;
	}
	return 0;
}

/* Makes tr->ranges anew from the pins and all files' hints. */
static int publish(struct tr_control *control)
{
	struct terrace *tr = control->tr;
	struct tr_ranges *fresh = kvzalloc(sizeof(*fresh), GFP_KERNEL);
	struct tr_ranges *spare = kvzalloc(sizeof(*spare), GFP_KERNEL), *old;
	struct tr_client *client;
	int err = fresh && spare ? lay_over(fresh, spare, control->pins) : -ENOMEM;

	lockdep_assert_held(&control->ranges_mutex);
	list_for_each_entry(client, &control->hinting, hinting)
		err = err ?: lay_over(fresh, spare, client->hints);
	kvfree(spare);
	if (err || !fresh->nr) {
		kvfree(fresh);
		fresh = NULL;
	}
	if (err)
		return err;
	old = tr->ranges;
	/* Pairs with the dependent loads of those who look up. */
	smp_store_release(&tr->ranges, fresh);
	synchronize_rcu();
	kvfree(old);
	return 0;
}

/* Changes *@which, and what is made of it; or neither. */
static int change(struct tr_control *control, struct tr_ranges **which, u64 first, u64 end,
		  u32 clear, u32 set)
{
	struct tr_ranges *fresh = kvzalloc(sizeof(*fresh), GFP_KERNEL), *old = *which;
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
	case TERRACE_RANGE_CLEAR:
		*clear = HINTS;
		*set = 0;
		return true;
	}
	return false;
}

int tr_client_range(struct tr_client *client, void __user *arg)
{
	struct tr_control *control = client->control;
	u64 blocks = READ_ONCE(control->tr->virtual_blocks);
	struct terrace_range ask;
	u32 clear, set;
	int err;

	if (copy_from_user(&ask, arg, sizeof(ask)))
		return -EFAULT;
	if (ask.flags || ask.reserved || !ask.nr || !meaning(ask.what, &clear, &set))
		return -EINVAL;
	if (ask.block >= blocks || ask.nr > blocks - ask.block)
		return -ERANGE;
	mutex_lock(&control->ranges_mutex);
	if ((clear | set) & PINS) {
		err = change(control, &control->pins, ask.block, ask.block + ask.nr, clear, set);
	} else {
		if (list_empty(&client->hinting))
			list_add(&client->hinting, &control->hinting);
		err = change(control, &client->hints, ask.block, ask.block + ask.nr, clear, set);
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
