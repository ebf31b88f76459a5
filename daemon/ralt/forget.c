// SPDX-License-Identifier: GPL-2.0-or-later
/* A sorted list of disjoint ranges with generations; see forget.h. */
#include "ralt/forget.h"

#include <errno.h>
#include <string.h>

size_t forget_find(const struct forget *f, uint64_t block)
{
	size_t lo = 0, hi = f->count;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (f->ranges[mid].end <= block)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

uint32_t forget_generation(const struct forget *f, uint64_t block)
{
	size_t i = forget_find(f, block);

	if (i < f->count && f->ranges[i].first <= block)
		return f->ranges[i].generation;
	return 0;
}

/* Replaces ranges [from, to) by @n others. */
static void splice(struct forget *f, size_t from, size_t to,
		   const struct forget_range *with, size_t n)
{
	memmove(&f->ranges[from + n], &f->ranges[to], (f->count - to) * sizeof(*f->ranges));
	memcpy(&f->ranges[from], with, n * sizeof(*with));
	f->count = f->count + n - (to - from);
}

int forget_add(struct forget *f, uint64_t first, uint64_t end, uint32_t generation)
{
	struct forget_range with[3];
	size_t n = 0, from, to;

	if (first >= end)
		return -EINVAL;
	/* Splitting one range makes two more at worst. */
	if (f->count + 2 > f->limit)
		return -ENOSPC;
	from = to = forget_find(f, first);
	if (from < f->count && f->ranges[from].first < first)
		with[n++] = (struct forget_range){ f->ranges[from].first, first,
						   f->ranges[from].generation };
	with[n++] = (struct forget_range){ first, end, generation };
	while (to < f->count && f->ranges[to].first < end)
		to++;
	if (to > from && f->ranges[to - 1].end > end)
		with[n++] = (struct forget_range){ end, f->ranges[to - 1].end,
						   f->ranges[to - 1].generation };
	splice(f, from, to, with, n);
	return 0;
}

void forget_purge(struct forget *f, uint32_t applied)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->count; i++)
		if (f->ranges[i].generation > applied)
			f->ranges[kept++] = f->ranges[i];
	f->count = kept;
}
