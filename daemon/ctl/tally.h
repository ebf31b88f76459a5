/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What came of many orders.
 */
#ifndef TERRACE_CTL_TALLY_H
#define TERRACE_CTL_TALLY_H

#include "orders.h"

struct tally {
	u64 orders, up, down, dropped, raced, unreadable, no_room, failed;
	u64 read_bytes, written_bytes;
	u64 bad_region, bad_block;	/* ~0: none */
	u64 first_unreadable;		/* … either */
	int error;			/* the first that is no lack of room */
};

void tally_init(struct tally *t);
/* A region with nothing to do (ENOENT) is no failure. */
void tally_add(struct tally *t, const struct terrace_result *result);

/* Prints what was done, or adds it to @o; then what was not, on stderr. */
int tally_report(const struct tally *t, int err, const char *what, struct json_object *o);

#endif
