// SPDX-License-Identifier: GPL-2.0
/* Marks on ranges of blocks; see ranges.h. */
#include <linux/errno.h>
#include <linux/minmax.h>

#include "ranges.h"

struct out {
	struct tr_range *to;
	u32 nr, room;
};

/* Appends [@first, @end), joined with its predecessor where they are alike. */
static int emit(struct out *out, u64 first, u64 end, u32 marks)
{
	struct tr_range *last = out->nr ? &out->to[out->nr - 1] : NULL;

	if (first >= end || !marks)
		return 0;
	if (last && last->end == first && last->marks == marks) {
		last->end = end;
		return 0;
	}
	if (out->nr == out->room)
		return -ENOSPC;
	out->to[out->nr++] = (struct tr_range){ .first = first, .end = end, .marks = marks };
	return 0;
}

int tr_ranges_change(const struct tr_range *from, u32 nr, struct tr_range *to, u32 room,
		     u64 first, u64 end, u32 clear, u32 set)
{
	struct out out = { .to = to, .room = room };
	u64 done = first;	/* of [first, end): up to here it is out */
	int err = 0;
	u32 k;

	for (k = 0; k < nr && !err; k++) {
		const struct tr_range *r = &from[k];

		err = emit(&out, r->first, min(r->end, first), r->marks);
		if (!err && r->end > first && done < end) {
			u64 gap = clamp(r->first, done, end), stop = clamp(r->end, gap, end);

			err = emit(&out, done, gap, set);
			if (!err)
				err = emit(&out, gap, stop, (r->marks & ~clear) | set);
			done = stop;
		}
		/* What follows the change comes behind all of it. */
		if (!err && r->end > end) {
			err = emit(&out, done, end, set);
			done = max(done, end);
			if (!err)
				err = emit(&out, max(r->first, end), r->end, r->marks);
		}
	}
	if (!err)
		err = emit(&out, done, end, set);
	return err ?: (int)out.nr;
}

u32 tr_ranges_find(const struct tr_range *range, u32 nr, u64 block, u64 *n)
{
	u32 low = 0, high = nr;

	while (low < high) {		/* the first one that ends behind block */
		u32 mid = low + (high - low) / 2;

		if (range[mid].end <= block)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == nr)
		return 0;
	if (range[low].first > block) {
		*n = min(*n, range[low].first - block);
		return 0;
	}
	*n = min(*n, range[low].end - block);
	return range[low].marks;
}
