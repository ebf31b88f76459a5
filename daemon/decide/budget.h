/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much I/O moves may do on one tier: a token bucket for bandwidth, a count for
 * orders in flight.
 *
 * An order is admitted while tokens are left, however large it is, and may leave a debt: so
 * one larger than the bucket is possible, and the rate holds on average.  What it was
 * taken for is an estimate; budget_settle() puts the true figure in its place.
 *
 * Without a limit on bytes a share below 1 is one of the intervals in which orders are taken, and in these of
 * the orders in flight.
 *
 * What may be saved up is the share's part of the bucket: a brake holds at once, however long a rest went before.
 *
 * A clock that jumps back gives nothing, one that jumps ahead no more than a full bucket.
 */
#ifndef DECIDE_BUDGET_H
#define DECIDE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "decide/tunable.h"

struct budget_tunables {
	double bytes_per_second;	/* 0: no limit */
	double net_bytes_per_second;	/* who knows the class takes that instead: loop/limits.c */
	double burst_seconds;
	uint32_t in_flight;
};

extern const struct tunable_table budget_tunable_table;

struct budget {
	double tokens;			/* bytes; below 0: debt */
	uint64_t last_ns;
	uint32_t under_way;
	double share;			/* of the last refill */
	double turn;			/* without a limit on bytes: from 1 on orders are taken */
};

/* A full bucket. */
void budget_init(struct budget *b, const struct budget_tunables *t, uint64_t now_ns);

/* @share: of the rate, 0 and up: the brake's and the idle boost's product. */
void budget_refill(struct budget *b, const struct budget_tunables *t, uint64_t now_ns, double share);

/* Takes one order of about @bytes; false: not now. */
bool budget_take(struct budget *b, const struct budget_tunables *t, double bytes);

/* What an order that was taken elsewhere did here. */
void budget_charge(struct budget *b, const struct budget_tunables *t, double bytes);
/* In debt: nothing is to be done here for a while. */
bool budget_is_spent(const struct budget *b, const struct budget_tunables *t);

/* An order that was taken has ended: it was @taken and came to @used bytes. */
void budget_settle(struct budget *b, const struct budget_tunables *t, double taken, double used);

#endif
