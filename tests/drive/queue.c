// SPDX-License-Identifier: GPL-2.0
/*
 * When commands complete: a tree by completion time and one timer.
 *
 * Without NCQ the completion time of a command is known when it arrives, so
 * it goes straight into the tree. With NCQ it waits in a list until the head
 * is free and it is the nearest of those waiting.
 *
 * Completion is where promises are made. It decides, under queue_lock and
 * before the bio is ended, whether the power is still on and what the
 * command's completion makes durable; both sides of a cut follow from that.
 */
#include "drive.h"

/* a command that waited this long goes first, however far away it is */
#define NCQ_STARVED_NS	(500 * NSEC_PER_MSEC)

static struct drive_op *first_running(struct drive *d)
{
	struct rb_node *node = rb_first_cached(&d->running);

	return rb_entry_safe(node, struct drive_op, node);
}

/* ---- triggers: the n-th of something cuts the power ---- */

static bool count_down(struct drive_trigger *t, u64 n)
{
	if (!t->left)
		return false;
	if (t->left > n) {
		t->left -= n;
		return false;
	}
	t->left = 0;
	return true;
}

static void pull(struct drive *d, struct drive_op *op,
		 enum drive_trigger_kind kind, u64 n)
{
	struct drive_trigger *t = &d->triggers[kind];

	if (!count_down(t, n))
		return;
	if (t->after)
		op->cut_after = true;
	else
		drive_power_cut(d->power);
}

static void pull_triggers(struct drive *d, struct drive_op *op)
{
	switch (op->cmd.kind) {
	case DRIVE_WRITE:
		pull(d, op, TRIGGER_WRITE, 1);
		pull(d, op, TRIGGER_BYTES, op->cmd.bytes);
		if (op->fua) {
			pull(d, op, TRIGGER_FUA, 1);
			pull(d, op, TRIGGER_BARRIER, 1);
		}
		break;
	case DRIVE_FLUSH:
		pull(d, op, TRIGGER_FLUSH, 1);
		pull(d, op, TRIGGER_BARRIER, 1);
		break;
	case DRIVE_DISCARD:
	case DRIVE_ZEROES:
		pull(d, op, TRIGGER_DISCARD, 1);
		break;
	default:
		break;
	}
}

/* ---- completion ---- */

u64 drive_queue_dirty_bytes(const struct drive *d)
{
	return min(d->done_bytes - d->flushed_bytes, d->config.cache_bytes);
}

static void complete_write(struct drive *d, struct drive_op *op)
{
	struct drive_write *w = op->write;
	/* a drive that died in between may not have got to it: it is in the cache */
	bool durable = !d->config.cache || (op->fua && !d->config.lie_fua && !d->dead);

	d->done_seq++;
	if (!durable)
		d->done_bytes += op->cmd.bytes;
	drive_record_done(d, op, durable);
	if (!w)
		return;
	w->done_seq = d->done_seq;
	list_add_tail(&w->done, durable ? &d->settled : &d->done);
}

static void complete_flush(struct drive *d, const struct drive_op *op)
{
	if (d->config.lie_flush)
		return;
	d->flushed_seq = max(d->flushed_seq, op->covers);
	d->flushed_bytes = max(d->flushed_bytes, op->covers_bytes);
	drive_record_done(d, op, true);
}

/* Settle how @op ends. Its bio is ended after the lock is dropped. */
static void finish(struct drive *d, struct drive_op *op)
{
	lockdep_assert_held(&d->queue_lock);
	if (!drive_op_powered(d, op)) {
		op->status = BLK_STS_IOERR;
		return;
	}
	if (op->status == BLK_STS_OK) {
		if (op->cmd.kind == DRIVE_FLUSH && !d->dead)
			complete_flush(d, op);
		else if (op->cmd.kind != DRIVE_READ)
			complete_write(d, op);
	}
	if (d->dead) {
		op->status = BLK_STS_IOERR;
		d->counters.struck++;
	}
	if (op->cut_after)
		drive_power_cut(d->power);
}

static void end(struct drive_op *op)
{
	op->bio->bi_status = op->status;
	bio_endio(op->bio);
}

static void end_list(struct list_head *list)
{
	struct drive_op *op, *next;

	list_for_each_entry_safe(op, next, list, list)
		end(op);
}

/* ---- the timed queue ---- */

static void run(struct drive *d, struct drive_op *op, u64 now)
{
	struct rb_node **link = &d->running.rb_root.rb_node, *parent = NULL;
	bool first = true;

	op->done_ns = drive_time(&d->config.model, &d->clock, &op->cmd, now) +
		      op->delay_ns;
	d->counters.busy_ns += op->done_ns - op->arrival_ns;
	while (*link) {
		parent = *link;
		if (op->done_ns < rb_entry(parent, struct drive_op, node)->done_ns) {
			link = &parent->rb_left;
		} else {
			link = &parent->rb_right;
			first = false;
		}
	}
	rb_link_node(&op->node, parent, link);
	rb_insert_color_cached(&op->node, &d->running, first);
	d->active++;
}

static struct drive_op *nearest_waiting(struct drive *d, u64 now)
{
	struct drive_op *op, *best = NULL;
	u64 best_ns = U64_MAX, depth = d->config.model.ncq;

	list_for_each_entry(op, &d->waiting, list) {
		u64 ns = drive_position_ns(&d->config.model, &d->clock,
					   &op->cmd, now);

		if (!best && now - op->arrival_ns > NCQ_STARVED_NS)
			return op;
		if (ns < best_ns) {
			best_ns = ns;
			best = op;
		}
		if (!--depth)
			break;
	}
	return best;
}

/* With NCQ the head takes its next command when it is done with the last. */
static void run_waiting(struct drive *d, u64 now)
{
	struct drive_op *op;

	while (!d->active) {
		op = nearest_waiting(d, now);
		if (!op)
			return;
		list_del(&op->list);
		run(d, op, now);
	}
}

static void set_timer(struct drive *d)
{
	struct drive_op *op = first_running(d);

	if (op)
		hrtimer_start(&d->timer, ns_to_ktime(op->done_ns),
			      HRTIMER_MODE_ABS_HARD);
}

/**
 * drive_queue_timer() - complete what is due
 * @timer: of the drive
 *
 * Context: hard interrupt, as the completion interrupt of a real drive.
 */
enum hrtimer_restart drive_queue_timer(struct hrtimer *timer)
{
	struct drive *d = container_of(timer, struct drive, timer);
	struct drive_op *op;
	unsigned long flags;
	LIST_HEAD(due);
	u64 now;

	spin_lock_irqsave(&d->queue_lock, flags);
	now = ktime_get_ns();
	while ((op = first_running(d)) && op->done_ns <= now) {
		rb_erase_cached(&op->node, &d->running);
		d->active--;
		d->counters.late_ns = max(d->counters.late_ns, now - op->done_ns);
		finish(d, op);
		list_add_tail(&op->list, &due);
		/* the head was free then, not now: no time is lost on the way */
		run_waiting(d, op->done_ns);
	}
	set_timer(d);
	spin_unlock_irqrestore(&d->queue_lock, flags);
	end_list(&due);
	return HRTIMER_NORESTART;
}

static void count(struct drive *d, const struct drive_op *op)
{
	d->counters.count[op->cmd.kind]++;
	if (op->cmd.kind != DRIVE_FLUSH)
		d->counters.bytes[op->cmd.kind] += op->cmd.bytes;
	d->counters.fua += op->fua;
}

/* True if the command takes no time at all, so that no timer is needed. */
static bool instant(const struct drive *d, const struct drive_op *op)
{
	return drive_model_is_instant(&d->config.model) && !op->delay_ns;
}

static bool uses_ncq(const struct drive *d, const struct drive_op *op)
{
	return d->config.model.ncq && drive_model_is_disk(&d->config.model) &&
	       (op->cmd.kind == DRIVE_READ || op->cmd.kind == DRIVE_WRITE);
}

/* Returns true if @op is finished already. */
static bool enqueue(struct drive *d, struct drive_op *op)
{
	struct drive_op *first = first_running(d);

	if (d->dead || !drive_op_powered(d, op) || instant(d, op)) {
		finish(d, op);
		return true;
	}
	if (uses_ncq(d, op)) {
		list_add_tail(&op->list, &d->waiting);
		run_waiting(d, op->arrival_ns);
	} else {
		run(d, op, op->arrival_ns);
	}
	if (first_running(d) != first)
		set_timer(d);
	return false;
}

/**
 * drive_queue() - a command has moved its data; complete it in due time
 * @d: the drive
 * @op: the command
 */
void drive_queue(struct drive *d, struct drive_op *op)
{
	unsigned long flags;
	bool finished;

	spin_lock_irqsave(&d->queue_lock, flags);
	count(d, op);
	if (op->cmd.kind == DRIVE_FLUSH) {
		op->covers = d->done_seq;
		op->covers_bytes = d->done_bytes;
		drive_record_command(d, op);
		op->cmd.bytes = drive_queue_dirty_bytes(d);
	}
	pull_triggers(d, op);
	finished = enqueue(d, op);
	spin_unlock_irqrestore(&d->queue_lock, flags);
	if (finished)
		end(op);
}

/**
 * drive_queue_fail_all() - the power is off: end everything with an error
 * @d: the drive
 */
void drive_queue_fail_all(struct drive *d)
{
	struct drive_op *op;
	LIST_HEAD(list);

	hrtimer_cancel(&d->timer);
	spin_lock_irq(&d->queue_lock);
	list_splice_init(&d->waiting, &list);
	list_splice_init(&d->held, &list);
	d->nr_held = 0;
	while ((op = first_running(d))) {
		rb_erase_cached(&op->node, &d->running);
		list_add_tail(&op->list, &list);
	}
	d->active = 0;
	list_for_each_entry(op, &list, list)
		op->status = BLK_STS_IOERR;
	/* a drive that lost its power forgets what it was doing, not its wear */
	memset(d->clock.free_ns, 0, sizeof(d->clock.free_ns));
	d->clock.bus_ns = 0;
	d->clock.media_ns = 0;
	spin_unlock_irq(&d->queue_lock);
	end_list(&list);
}
