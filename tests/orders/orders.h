/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inside of tests/orders: a volume's control device, opened and greeted. */
#ifndef ORDERS_H
#define ORDERS_H

#include <stdbool.h>
#include <stdint.h>

#include "terrace.h"
#include "terrace_format.h"

struct volume {
	int fd;
	struct terrace_hello hello;
	const struct terrace_ring *ring;
	uint64_t tail;
	bool by_uring;
};

void die(const char *what);
void usage(void);
unsigned long long now_ns(void);
void volume_open(struct volume *v, const char *path);
/* Gives the orders, waits for them. Returns 0 or -errno of the call. */
int submit(struct volume *v, struct terrace_move *move, unsigned int nr);
/* NULL: no more */
const struct terrace_result *next_result(struct volume *v);

/* uring.c: 0 or more: the completion's result; or -errno. */
int uring_submit(struct volume *v, const struct terrace_submit *submit);
/* Every way in which a command can be refused; and that none of them hangs. */
int do_uring(struct volume *v, const char *path);
/* On a suspended volume, whose orders wait. */
int do_cancel(struct volume *v);

/* random.c: exit status */
int do_random(struct volume *v, int argc, char **argv);

/* odd.c: exit status. The order that lies at the beginning of the file; it is mapped, not read. */
int do_given(struct volume *v, const char *path);
/* Gives the order and sleeps until it is killed. */
int do_left(struct volume *v, const struct terrace_move *move);

/* abi.c: exit status. Versions, sizes, flags and reserved fields of each call. */
int do_abi(struct volume *v, const char *path);

/* sense.c: exit status */
int do_summary(struct volume *v, int argc, char **argv);
int do_range(struct volume *v, int argc, char **argv);
int do_marks(struct volume *v, int argc, char **argv);
int do_events(struct volume *v, int argc, char **argv);
int do_claim(struct volume *v, const char *path);
/* Drives; who drives still has 60 s to leave. */
void take_over(struct volume *v);
int do_look(struct volume *v, int argc, char **argv);
int do_hold(struct volume *v, int argc, char **argv);

#endif
