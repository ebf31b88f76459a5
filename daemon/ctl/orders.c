// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Orders and their results. See orders.h; uapi/terrace.h is the manual.
 *
 * Each order is whole or not done, so an end at any point leaves a sound
 * volume: what is left can be ordered again.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "interrupt.h"
#include "orders.h"

int orders_open(struct orders *o, const struct dm_volume *v)
{
	memset(o, 0, sizeof(*o));
	o->fd = control_open(v, &o->hello);
	if (o->fd < 0)
		return o->fd;
	o->ring = mmap(NULL, o->hello.results_bytes, PROT_READ, MAP_SHARED, o->fd, TERRACE_MAP_RESULTS);
	if (o->ring == MAP_FAILED) {
		int r = -errno;

		ctl_error("volume '%s': no ring of results: %s", v->name, strerror(-r));
		close(o->fd);
		return r;
	}
	o->tail = o->ring->consumed;
	o->most = o->hello.max_orders < ORDERS_UNDER_WAY ? o->hello.max_orders : ORDERS_UNDER_WAY;
	fcntl(o->fd, F_SETFL, O_RDWR | O_NONBLOCK);	/* for reading events */
	return 0;
}

void orders_close(struct orders *o)
{
	munmap((void *)o->ring, o->hello.results_bytes);
	close(o->fd);
}

static bool take_live(struct orders *o, u64 cookie)
{
	for (u32 i = 0; i < ORDERS_UNDER_WAY; i++) {
		if (o->live[i] != cookie)
			continue;
		o->live[i] = 0;
		o->under_way--;
		return true;
	}
	return false;	/* a second one, of an order that had no room at first */
}

static void collect(struct orders *o, void (*ended)(void *ctx, const struct terrace_result *), void *ctx)
{
	const struct terrace_result *entry = (const void *)((const char *)o->ring + o->ring->entries_offset);
	u64 head = __atomic_load_n(&o->ring->head, __ATOMIC_ACQUIRE);
	struct terrace_consume consume = { 0 };

	if (o->tail == head)
		return;
	for (; o->tail < head; o->tail++) {
		const struct terrace_result *result = &entry[o->tail & o->ring->mask];

		if (take_live(o, result->cookie))
			ended(ctx, result);
	}
	consume.tail = o->tail;
	ioctl(o->fd, TERRACE_IOC_CONSUME, &consume);
}

static int wait_for_results(struct orders *o)
{
	struct pollfd p = { .fd = o->fd, .events = POLLIN };
	struct terrace_event event;

	if (poll(&p, 1, 500) == 1 && p.revents & (POLLHUP | POLLERR)) {
		ctl_error("the volume has been deactivated");
		return -ENODEV;
	}
	/* Events would end every further wait at once. */
	if (o->ring->head == o->tail && p.revents & POLLIN)
		return read(o->fd, &event, sizeof(event)) < 0 && errno == ENODEV ? -ENODEV : 0;
	return 0;
}

static void make_live(struct orders *o, struct terrace_move *move)
{
	u32 i;

	for (i = 0; o->live[i]; i++)
		;
	move->cookie = o->live[i] = ++o->cookie;
	o->under_way++;
}

static int submit(struct orders *o, struct terrace_move *move, u32 nr)
{
	struct terrace_submit ask = {
		.orders = (uintptr_t)move, .nr = nr, .order_bytes = sizeof(*move), .consumed = o->tail,
	};
	int r;

	if (!ioctl(o->fd, TERRACE_IOC_SUBMIT, &ask))
		return 0;
	r = -errno;
	ctl_error("the orders were not taken: %s", strerror(-r));
	for (u32 i = 0; i < nr; i++)
		take_live(o, move[i].cookie);
	return r;
}

/* As many as may be under way; *@more: there may be others. */
static int feed(struct orders *o, int (*next)(void *ctx, struct terrace_move *), void *ctx, bool *more)
{
	struct terrace_move move[ORDERS_UNDER_WAY];
	u32 nr = 0;
	int r = 1, err;

	while (o->under_way < o->most && !interrupt_seen()) {
		memset(&move[nr], 0, sizeof(move[nr]));
		r = next(ctx, &move[nr]);
		if (r <= 0)
			break;
		make_live(o, &move[nr++]);
	}
	err = nr ? submit(o, move, nr) : 0;
	*more = r > 0 && !err;
	return r < 0 ? r : err;
}

int orders_run(struct orders *o, int (*next)(void *ctx, struct terrace_move *move),
	       void (*ended)(void *ctx, const struct terrace_result *result), void *ctx)
{
	struct terrace_cancel cancel = { 0 };
	bool more = true, stopped = false;
	int r = 0, waited;

	interrupt_watch();
	while (more || o->under_way) {
		if (more) {
			int err = feed(o, next, ctx, &more);

			r = r ? r : err;
		}
		if ((interrupt_seen() || r) && !stopped) {
			ioctl(o->fd, TERRACE_IOC_CANCEL, &cancel);
			stopped = true;
			more = false;
		}
		waited = o->under_way ? wait_for_results(o) : 0;
		collect(o, ended, ctx);
		if (waited)
			return waited;
	}
	return r ? r : stopped ? -EINTR : 0;
}

const char *orders_strerror(int error)
{
	switch (-error) {
	case ENOSPC:
		return "no room on the target";
	case EOPNOTSUPP:
		return "this version of the module cannot do that with a tier of that kind";
	case EBUSY:
		return "another order is busy with the region";
	case EROFS:
		return "the volume is read-only";
	case ENODEV:
		return "the tier is missing";
	case EIO:
		return "blocks cannot be read";
	case EXDEV:
		return "the target of what stays is slower than the tier";
	default:
		return strerror(-error);
	}
}
