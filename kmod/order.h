/* SPDX-License-Identifier: GPL-2.0 */
/* Move orders: what order.c offers control.c. */
#ifndef DM_TERRACE_ORDER_H
#define DM_TERRACE_ORDER_H

#include "../uapi/terrace.h"
#include "terrace.h"

#define TR_ORDER_BATCH	16	/* orders that share a grace period and a flush … */
#define TR_ORDER_MOST	64	/* … if most of them read and write nothing */

struct tr_order {
	struct terrace_move ask;
	struct terrace_result result;
	u64 submitted;			/* ktime_get_ns() */
	bool cancelled;			/* told to stop: it ends if it has not begun, waits, or can */
	bool again;			/* out: not carried out, the volume is about to be suspended */
	u64 seen;			/* IDLE: users' reads and writes so far */
	u32 cleaned;			/* CLEAN: blocks, if it is carried out in several goes */
	int left;			/* CLEAN: why some of what could be moved stays, or may; 0: none does */
	bool unsure;			/* CLEAN: owners could not be read: blocks may be loose, and not known */
	u32 chunk;			/* only packs of this shelf (clean.c); TR_ANY_CHUNK */
	bool loose;			/* … not the packs: what lies loose there (pack_shelf.c) */
	void *owner, *files;		/* file and process that gave it (submit.c) */
	struct tr_waiter *waiter;
	struct list_head list;
};

/* Does `region` name a shelf of tier_down? */
static inline bool tr_order_of_shelf(const struct terrace_move *ask)
{
	return ask->mode == TERRACE_MOVE_CLEAN ||
	       (ask->mode == TERRACE_MOVE_SCRUB && ask->tier_down);
}

/* Is it, one that a client gave, to stop where it can? */
static inline bool tr_order_stops(const struct terrace *tr, const struct tr_order *order)
{
	return READ_ONCE(order->cancelled) || (order->owner && READ_ONCE(tr->orders_held));
}

/* It has: what it ends with, or it is to be carried out again. */
static inline int tr_order_stopped(struct tr_order *order)
{
	order->again = !READ_ONCE(order->cancelled);
	return order->again ? -EBUSY : -ECANCELED;
}

/* A cleaning leaves something behind, for @err. @order: NULL if nobody hears of it.
 * -EBUSY before all else: who waits shall hear that another go is worth it.
 */
static inline void tr_order_leaves(struct tr_order *order, int err)
{
	if (order && err && (!order->left || err == -EBUSY))
		order->left = err;
}

/* --- order_idle.c: orders that yield to users ---------------------------------- */

/* Reads and writes of users so far. */
u64 tr_user_ios(struct terrace *tr);
#define TR_IDLE_LOOKS	5
#define TR_IDLE_STEP_US	2000	/* between two looks */
/* Sleeps so long. Has nobody come since *@seen? Which becomes how many there are. */
bool tr_idle_look(struct terrace *tr, u64 *seen);
/* Between two pieces of @order: if it is IDLE, until users have paused, for a moment at most. */
void tr_order_idle(struct terrace *tr, struct tr_order *order);

/* --- order_scrub.c: the limit ---------------------------------------------------- */

/* When scrubs may read again: ktime_get_ns(); 0: at once. */
u64 tr_scrub_until(struct terrace *tr);
/* The tunable may have: what was read is worth another time. */
void tr_scrub_limit_changed(struct terrace *tr);

/* May @ask be carried out on this volume at all? 0 or -EINVAL: malformed. */
int tr_order_check(const struct terrace_move *ask);
/* Carries out @nr orders, at most TR_ORDER_MOST; each has its result then. Sleeps. */
void tr_orders_run(struct terrace *tr, struct tr_order **order, u32 nr);

#endif
