/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How fast a volume fills: what was used at moments that are spread over up to a week, few of
 * them whatever the time.  Pure: time comes in.
 */
#ifndef TERRACE_DECIDE_GROWTH_H
#define TERRACE_DECIDE_GROWTH_H

#include <stdint.h>

#define GROWTH_MOMENTS	64
#define GROWTH_DAY_NS	(86400ull * 1000000000ull)
#define GROWTH_FIRST_NS	(10ull * 1000000000ull)
#define GROWTH_WEEK_NS	(7 * GROWTH_DAY_NS)

struct growth {
	uint64_t at_ns[GROWTH_MOMENTS], used[GROWTH_MOMENTS];
	uint32_t nr;
	uint64_t apart_ns;	/* moments are kept at least so far apart; 0: nothing yet */
};

void growth_note(struct growth *g, uint64_t now_ns, uint64_t used);

/* Over how long the moments reach. */
uint64_t growth_window_ns(const struct growth *g);

/* Days until @room more blocks are used, at the pace of the window; <0: not at this pace. */
double growth_days_left(const struct growth *g, uint64_t room);

#endif
