/* SPDX-License-Identifier: GPL-2.0 */
/* Inside of control.c, submit.c, uring.c, query.c, ranges.c and events.c: the control device. */
#ifndef DM_TERRACE_CONTROL_H
#define DM_TERRACE_CONTROL_H

#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/miscdevice.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "order.h"

#define TR_MAX_ORDERS	256		/* under way, of one file; a power of two */
#define TR_MAX_BATCH	256
#define TR_MAX_RANGES	1024		/* all pins and hints, laid over each other */
#define TR_MAX_EVENTS	64		/* kept for one file */
#define TR_RESULTS_BYTES PAGE_ALIGN(PAGE_SIZE + TR_MAX_ORDERS * sizeof(struct terrace_result))

/* Carries out a batch at a time. As many are at work as the tiers' limits let, and
 * one more: while one waits for a flush and its commit, the drives have work.
 */
struct tr_order_worker {
	struct work_struct work;
	struct tr_control *control;
	bool scrubs;			/* within the limit: no other does */
	u32 nr;				/* orders in batch; control->lock */
	struct tr_order *batch[TR_ORDER_MOST];
};

#define TR_ORDER_WORKERS	9	/* limits go up to 8 */

/* Blocks that were written while they were marked DEAD: the marks are to be lifted. */
#define TR_MAX_LIFTS	16

struct tr_lift {
	u64 first, end;
};

struct tr_lifts {
	spinlock_t lock;		/* irq; innermost */
	u32 nr;
	struct tr_lift lift[TR_MAX_LIFTS];
};

struct tr_control {
	struct kref users;
	struct rw_semaphore alive;
	struct rw_semaphore loading;	/* read: a query may load a region; in alive */
	struct terrace *tr;		/* NULL: the volume has gone */
	struct miscdevice misc;
	char name[TERRACE_NAME_BYTES + 16], node[TERRACE_NAME_BYTES + 16];
	spinlock_t lock;		/* the list, counts and rings of all files */
	struct list_head orders;	/* that no worker has taken */
	u32 nr_orders;			/* … how many */
	struct tr_order_worker worker[TR_ORDER_WORKERS];
	bool scrubbing;			/* a worker is, within the limit */
	struct delayed_work scrub_work;	/* others may when it runs */
	bool idle_waits;		/* orders with IDLE wait for a quiet moment … */
	bool watched;			/* … that a worker looks for */
	u32 quiet;			/* looks in which no user came */
	u64 seen;			/* their reads and writes so far; of who watches */
	unsigned long idle_since;	/* jiffies: the last one began, or began to wait */
	struct tr_client *driver;	/* changes under lock */
	u32 driver_tgid;		/* process that claimed, 0: none */
	spinlock_t events_lock;		/* irq: clients, their events */
	struct list_head clients;
	struct mutex ranges_mutex;	/* pins, hints of all files */
	struct tr_ranges *pins;
	u32 retired;			/* arrays of ranges, so far */
	struct list_head hinting;	/* clients with hints */
	struct tr_lifts lifts;
	struct work_struct lift_work;
	struct mutex summary_mutex;	/* makes the array */
};

struct tr_client {
	struct tr_control *control;
	struct terrace_ring *ring;	/* TR_RESULTS_BYTES, mapped read-only */
	bool hello;
	u32 under_way;			/* orders without a consumed result */
	u32 waiting;			/* … without a result */
	wait_queue_head_t wait;
	struct list_head clients;	/* control->clients */
	struct terrace_event event[TR_MAX_EVENTS];	/* a ring; events_lock */
	u32 first_event, nr_events, lost_events;
	void *driver_files;		/* process that claimed by this file */
	u32 claim_ms;			/* 0: the claim does not run out */
	struct delayed_work claim_work;
	struct list_head hinting;	/* empty: has none */
	struct tr_ranges *hints;
};

/* Somebody who is told when the last of the orders of one call has ended. */
struct tr_waiter {
	refcount_t pending;		/* orders */
	u32 nr;
	void (*ended)(struct tr_waiter *waiter);	/* frees it */
};

/* --- submit.c: orders on their way in, results on their way out -------------- */

void tr_workers_init(struct tr_control *control);
void tr_workers_kick(struct tr_control *control);
/* Those that run come to the end of their batch. */
void tr_workers_flush(struct tr_control *control);
/* Copies and checks; submit->done as the manual says. Not under alive: it is the
 * program's memory. tr_submit() takes all of @orders, or none; tr_submit_free()
 * is for what is left, also of a copy that failed. @waiter may be NULL; it is
 * only told of orders that were taken. Sleep.
 */
int tr_submit_copy(struct tr_client *client, struct terrace_submit *submit,
		   struct tr_waiter *waiter, struct list_head *orders);
int tr_submit(struct tr_client *client, const struct terrace_submit *submit,
	      struct tr_waiter *waiter, struct list_head *orders);
void tr_submit_free(struct list_head *orders);
/* Ends orders that wait, and tells those to stop that a worker has: of @client
 * (NULL: of all), given by @files (NULL: by any), with @cookie (0: any). How many.
 */
u32 tr_cancel(struct tr_control *control, struct tr_client *client, fl_owner_t files, u64 cookie);
int tr_consume(struct tr_client *client, u64 tail);

/* --- ranges.c: TERRACE_IOC_RANGE ------------------------------------------------ */

int tr_client_range(struct tr_client *client, const struct terrace_range *ask);
void tr_client_ranges_end(struct tr_client *client);
void tr_lifts_init(struct tr_control *control);

/* --- events.c: events, and the claim to drive ------------------------------------ */

void tr_client_listen(struct tr_client *client);
void tr_client_deafen(struct tr_client *client);
void tr_client_flush(struct tr_client *client, void *files);
bool tr_client_has_events(struct tr_client *client);
ssize_t tr_client_read(struct file *file, char __user *to, size_t bytes, loff_t *at);
int tr_client_claim(struct tr_client *client, const struct terrace_claim *ask);
int tr_client_release_claim(struct tr_client *client);
void tr_client_renew(struct tr_client *client);

/* --- uring.c: the same as io_uring command ------------------------------------- */

struct io_uring_cmd;
int tr_control_uring(struct io_uring_cmd *cmd, unsigned int issue_flags);

/* --- query.c: where blocks are --------------------------------------------------- */

/* Not under alive. */
int tr_query_regions(struct tr_client *client, struct terrace_regions *ask);

#endif
