// SPDX-License-Identifier: GPL-2.0
/*
 * Orders by io_uring: IORING_OP_URING_CMD with a struct terrace_submit in the
 * SQE. They are copied and queued at issue, as the ioctl does it.
 *
 * -EAGAIN must never be returned from here: io_uring would take it for "would
 * block", wait for poll() to say that the file is ready, which no result may
 * ever make it, and issue the command again. It is posted as a completion. So
 * is the number of orders taken: a number above 0 that is returned to one of
 * io_uring's own threads (IOSQE_ASYNC) is lost in 6.1, and the program waits
 * for ever.
 *
 * With WAIT the completion is posted by the submitter's task work when the
 * last order has ended, from whichever worker ends it. The command holds the
 * file until then. A killed client's file is flushed, which ends the orders
 * that wait; those that run end by themselves; io_uring posts to nobody then.
 */
#include <linux/slab.h>

#include "control.h"

struct uring_waiter {
	struct tr_waiter waiter;
	struct io_uring_cmd *cmd;
};

/* What the command keeps until its task has time for it. */
struct uring_done {
	u32 nr;
};

static struct uring_done *done_of(struct io_uring_cmd *cmd)
{
	static_assert(sizeof(struct uring_done) <= sizeof(cmd->pdu));
	return (struct uring_done *)cmd->pdu;
}

static void post(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	io_uring_cmd_done(cmd, done_of(cmd)->nr, 0, issue_flags);
}

static void ended(struct tr_waiter *waiter)
{
	struct uring_waiter *uring = container_of(waiter, struct uring_waiter, waiter);
	struct io_uring_cmd *cmd = uring->cmd;

	done_of(cmd)->nr = waiter->nr;
	kfree(uring);
	io_uring_cmd_complete_in_task(cmd, post);
}

static int submit_alive(struct tr_client *client, const struct terrace_submit *ask,
			struct tr_waiter *waiter, struct list_head *orders)
{
	struct tr_control *control = client->control;
	int err = -ENODEV;

	down_read(&control->alive);
	if (control->tr) {
		tr_client_renew(client);
		err = tr_submit(client, ask, waiter, orders);
	}
	up_read(&control->alive);
	return err;
}

/* Orders taken, or -EIOCBQUEUED: they are waited for; or an error. */
static int submit(struct tr_client *client, struct io_uring_cmd *cmd)
{
	struct terrace_submit ask;
	struct uring_waiter *uring = NULL;
	struct tr_waiter *waiter;
	LIST_HEAD(orders);
	int err;

	/* It lies in memory that the program can change: read once. */
	memcpy(&ask, tr_uring_payload(cmd), sizeof(ask));
	if (ask.done)
		return -EINVAL;
	if (ask.flags & TERRACE_SUBMIT_WAIT) {
		uring = kzalloc(sizeof(*uring), GFP_KERNEL);
		if (!uring)
			return -ENOMEM;
		uring->waiter.ended = ended;
		uring->waiter.nr = ask.nr;
		uring->cmd = cmd;
	}
	waiter = uring ? &uring->waiter : NULL;
	err = tr_submit_copy(client, &ask, waiter, &orders) ?:
	      submit_alive(client, &ask, waiter, &orders);
	tr_submit_free(&orders);
	if (err) {
		kfree(uring);
		return err;
	}
	return uring ? -EIOCBQUEUED : ask.nr;
}

int tr_control_uring(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct tr_client *client = cmd->file->private_data;
	int err;

	static_assert(sizeof(struct terrace_submit) == 80);
	if (!(issue_flags & IO_URING_F_SQE128))
		return -EINVAL;
	if (cmd->cmd_op != TERRACE_URING_SUBMIT)
		return -ENOTTY;
	if (!client->hello)
		return -EPROTO;
	if (!READ_ONCE(client->control->tr))
		return -ENODEV;
	err = submit(client, cmd);
	if (err == -EAGAIN || err > 0) {
		io_uring_cmd_done(cmd, err, 0, issue_flags);
		return -EIOCBQUEUED;
	}
	return err;
}
