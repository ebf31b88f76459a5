// SPDX-License-Identifier: GPL-2.0-or-later
/* Orders as io_uring commands, and what the kernel must say to bad ones. */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orders.h"

#define PATIENCE_S	60
#define BATCH_S		600	/* a batch of cleanings, on a machine that has half a CPU */

struct command {
	int fd;
	unsigned int op, setup;
	unsigned char flags;		/* IOSQE_* */
	unsigned int patience_s;	/* 0: PATIENCE_S */
	struct terrace_submit submit;
};

/* One command in a ring of its own; waits for its completion. */
static int issue(const struct command *c)
{
	struct io_uring_params params = { .flags = c->setup };
	struct __kernel_timespec patience = { .tv_sec = c->patience_s ? c->patience_s : PATIENCE_S };
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;
	struct io_uring ring;
	int err = io_uring_queue_init_params(4, &ring, &params);

	if (err) {
		errno = -err;
		die("io_uring_queue_init");
	}
	sqe = io_uring_get_sqe(&ring);
	memset(sqe, 0, c->setup & IORING_SETUP_SQE128 ? 128 : 64);
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = c->fd;
	sqe->cmd_op = c->op;
	sqe->flags = c->flags;
	memcpy(sqe->cmd, &c->submit, c->setup & IORING_SETUP_SQE128 ? sizeof(c->submit) : 16);
	err = io_uring_submit(&ring);
	if (err == 1)
		err = io_uring_wait_cqe_timeout(&ring, &cqe, &patience);
	if (!err)
		err = cqe->res;
	else if (err == -ETIME)
		die("a command never completed");
	io_uring_queue_exit(&ring);
	return err;
}

int uring_submit(struct volume *v, const struct terrace_submit *submit)
{
	struct command c = {
		.fd = v->fd, .op = TERRACE_URING_SUBMIT, .setup = IORING_SETUP_SQE128, .submit = *submit,
		.patience_s = BATCH_S,
	};

	return issue(&c);
}

static int says(const char *what, int got, int wanted)
{
	if (got == wanted)
		return 0;
	printf("%s: %d %s instead of %d %s\n", what, got, got < 0 ? strerrorname_np(-got) : "",
	       wanted, wanted < 0 ? strerrorname_np(-wanted) : "");
	return 1;
}

/* Each order has its result, whoever waited for it. */
static void drain(struct volume *v, unsigned int nr)
{
	unsigned int tries;
	struct terrace_consume consume;

	for (tries = 0; nr && tries < 6000; tries++) {
		while (nr && next_result(v))
			nr--;
		usleep(10000);
	}
	if (nr)
		die("results are missing");
	consume = (struct terrace_consume){ .tail = v->tail };
	if (ioctl(v->fd, TERRACE_IOC_CONSUME, &consume))
		die("CONSUME");
}

/* A child that has the file and ends must not take its parent's orders along. */
static int child_ends(struct volume *v, struct terrace_submit *submit)
{
	uint64_t from = v->tail;
	unsigned int k, cancelled = 0;
	pid_t child;

	submit->flags = 0;
	if (says("256 at once", uring_submit(v, submit), (int)submit->nr))
		return 1;
	child = fork();
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	drain(v, submit->nr);
	for (k = 0; k < submit->nr; k++) {
		const struct terrace_result *r = (const void *)((const char *)v->ring + v->ring->entries_offset);

		cancelled += r[(from + k) & v->ring->mask].status == TERRACE_RESULT_CANCELLED;
	}
	if (cancelled)
		printf("a child's end cancelled %u orders\n", cancelled);
	return cancelled != 0;
}

int do_uring(struct volume *v, const char *path)
{
	static struct terrace_move move[256];
	const struct command good = {
		.fd = v->fd, .op = TERRACE_URING_SUBMIT, .setup = IORING_SETUP_SQE128,
		.submit = { .orders = (uintptr_t)move, .nr = 256, .order_bytes = sizeof(*move),
			    .flags = TERRACE_SUBMIT_WAIT },
	};
	struct command c;
	unsigned int k;
	int n = 0;

	if (!(v->hello.features & TERRACE_FEATURE_URING)) {
		printf("HELLO does not say TERRACE_FEATURE_URING\n");
		return 1;
	}
	for (k = 0; k < 256; k++)
		move[k] = (struct terrace_move){ .cookie = k + 1, .mode = TERRACE_MOVE_SCRUB, .region = k % 8 };
#define BAD(what, wanted, change) (c = good, change, n += says(what, issue(&c), wanted))
	BAD("a short SQE", -EINVAL, c.setup = 0);
	BAD("an unknown command", -ENOTTY, c.op = 77);
	BAD("no orders", -EINVAL, c.submit.nr = 0);
	BAD("another size", -EINVAL, c.submit.order_bytes = 8);
	BAD("done is not zero", -EINVAL, c.submit.done = 1);
	BAD("a reserved field", -EINVAL, c.submit.reserved[5] = 1);
	BAD("an unknown flag", -EINVAL, c.submit.flags = 2);
	BAD("a bad address", -EFAULT, c.submit.orders = 8);
	BAD("before HELLO", -EPROTO, c.fd = open(path, O_RDWR | O_CLOEXEC));
	move[255].reserved0 = 1;
	BAD("one bad order", -EINVAL, (void)0);
	move[255].reserved0 = 0;
	n += says("256 orders", issue(&good), 256);
	BAD("more than may be under way", -EAGAIN, c.submit.nr = 1);	/* none is consumed */
#undef BAD
	drain(v, 256);
	/* as io_uring's own threads give it */
	c = good;
	c.flags = IOSQE_ASYNC;
	n += says("256 orders, asynchronously, waited for", issue(&c), 256);
	c.submit.nr = 1;
	n += says("more than may be under way, asynchronously", issue(&c), -EAGAIN);
	drain(v, 256);
	c.submit.nr = 256;
	c.submit.flags = 0;
	n += says("256 orders, asynchronously", issue(&c), 256);
	drain(v, 256);
	c = good;
	return n + child_ends(v, &c.submit) ? 1 : 0;
}

static unsigned int cancel(struct volume *v, uint64_t cookie)
{
	struct terrace_cancel ask = { .cookie = cookie };

	if (ioctl(v->fd, TERRACE_IOC_CANCEL, &ask))
		die("CANCEL");
	return ask.cancelled;
}

/* How many of the @nr results from @from on say CANCELLED. */
static unsigned int nr_cancelled(const struct volume *v, uint64_t from, unsigned int nr)
{
	const struct terrace_result *ring = (const void *)((const char *)v->ring + v->ring->entries_offset);
	unsigned int k, n = 0;

	for (k = 0; k < nr; k++)
		n += ring[(from + k) & v->ring->mask].status == TERRACE_RESULT_CANCELLED;
	return n;
}

int do_cancel(struct volume *v)
{
	static struct terrace_move move[256];
	struct terrace_submit submit = { .orders = (uintptr_t)move, .nr = 256, .order_bytes = sizeof(*move) };
	uint64_t from = v->tail;
	unsigned int k;
	pid_t child;
	int n = 0;

	for (k = 0; k < 256; k++)
		move[k] = (struct terrace_move){ .cookie = k + 1, .mode = TERRACE_MOVE_SCRUB, .region = k % 8 };
	n += says("256 orders", uring_submit(v, &submit), 256);
	n += says("cancelling a cookie that nobody has", (int)cancel(v, 7777), 0);
	n += says("cancelling one cookie", (int)cancel(v, 200), 1);
	n += says("cancelling it again", (int)cancel(v, 200), 0);
	n += says("cancelling the others", (int)cancel(v, 0), 255);
	drain(v, 256);
	n += says("results that say so", (int)nr_cancelled(v, from, 256), 256);
	/* A process that waits for its orders is told when another takes them away. */
	from = v->tail;
	submit.flags = TERRACE_SUBMIT_WAIT;
	child = fork();
	if (!child) {
		while (!cancel(v, 0))
			usleep(1000);
		_exit(0);
	}
	n += says("256 orders, waited for", uring_submit(v, &submit), 256);
	waitpid(child, NULL, 0);
	drain(v, 256);
	n += says("results that say so", (int)nr_cancelled(v, from, 256), 256);
	return n ? 1 : 0;
}
