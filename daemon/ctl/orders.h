/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Many move orders, one after the other: keeps some under way, waits for
 * their results, and stops in order on Ctrl-C.
 */
#ifndef TERRACE_CTL_ORDERS_H
#define TERRACE_CTL_ORDERS_H

#include "control.h"

#define ORDERS_UNDER_WAY 16

struct orders {
	int fd;
	struct terrace_hello hello;
	const struct terrace_ring *ring;
	u64 tail, cookie;
	u64 live[ORDERS_UNDER_WAY];	/* cookies; 0: free */
	u32 under_way, most;		/* 1 to ORDERS_UNDER_WAY; may be lowered after orders_open() */
};

/* 0, or -errno after a message; then nothing is open. */
int orders_open(struct orders *o, const struct dm_volume *v);
void orders_close(struct orders *o);

/*
 * @next fills an order (the cookie is ours): 1, 0: no more, -errno: stop.
 * @ended sees each result once. 0, -EINTR: interrupted, all that was under
 * way has ended; or -errno, after a message if it came from here.
 */
int orders_run(struct orders *o, int (*next)(void *ctx, struct terrace_move *move),
	       void (*ended)(void *ctx, const struct terrace_result *result), void *ctx);

/* Why an order failed, in words for @error of its result. */
const char *orders_strerror(int error);

#endif
