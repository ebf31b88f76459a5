/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How long the requests of each tier's drive take, as terraced's BPF sense
 * counts them: one in 16, in buckets of doubling width.
 */
#ifndef TERRACE_CTL_LATENCY_H
#define TERRACE_CTL_LATENCY_H

#include <stdio.h>

#include "ctl.h"

#define LATENCY_BUCKETS	24	/* bucket b: up to 2^b µs, the last: all above */

struct latency {
	u32 nr_tiers;		/* 0: nobody counts */
	char sense[32];		/* of terraced, "": it does not drive the volume */
	u64 count[TERRACE_MAX_TIERS][2][LATENCY_BUCKETS];	/* reads, writes */
};

/* From terraced's status, which may be NULL. */
void latency_read(struct json_object *status, const char *volume, struct latency *out);

/* What came between; all of @b if @a is of another terraced. */
void latency_between(const struct latency *a, const struct latency *b, struct latency *out);

/* One line for each tier and direction that had requests; or why there is none. */
void latency_print(FILE *out, const struct latency *l);
struct json_object *latency_json(const struct latency *l);

#endif
