// SPDX-License-Identifier: GPL-2.0-or-later
/* Extents of a file on the volume; see extents.h. */
#include "sense/extents.h"

#include <errno.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define BLOCK	EXTENT_BLOCK
#define AT_ONCE	64u	/* extents asked for */

#define ODD	(FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC | FIEMAP_EXTENT_ENCODED)
#define INLINE	(FIEMAP_EXTENT_NOT_ALIGNED | FIEMAP_EXTENT_DATA_INLINE | FIEMAP_EXTENT_DATA_TAIL)

/* Its part on one piece of the stack, in whole blocks. */
static bool on_piece(const struct fiemap_extent *fe, const struct stack_piece *p, struct extent *out)
{
	uint64_t first = fe->fe_physical > p->from ? fe->fe_physical : p->from;
	uint64_t end = fe->fe_physical + fe->fe_length, to;

	if (end > p->from + p->length)
		end = p->from + p->length;
	if (first >= end)
		return false;
	to = p->to + (first - p->from);
	if (to % BLOCK || (end - first) % BLOCK)
		return false;
	*out = (struct extent){
		.block = to / BLOCK, .nr = (end - first) / BLOCK,
		.offset = fe->fe_logical + (first - fe->fe_physical), .physical = first,
	};
	return true;
}

int extents_place(const struct fiemap_extent *fe, const struct stack *stack, struct extent *out,
		  uint32_t most, struct extents_stats *stats)
{
	uint64_t placed = 0;
	uint32_t n = 0;

	if (fe->fe_flags & FIEMAP_EXTENT_SHARED) {
		stats->shared++;
		return 0;
	}
	if (fe->fe_flags & ODD) {
		stats->odd++;
		return 0;
	}
	if (fe->fe_flags & INLINE || fe->fe_logical % BLOCK) {
		stats->unaligned++;
		return 0;
	}
	for (uint32_t i = 0; i < stack->nr; i++) {
		struct extent one;

		if (!on_piece(fe, &stack->piece[i], &one))
			continue;
		if (n == most)
			return -E2BIG;
		out[n++] = one;
		placed += one.nr * BLOCK;
	}
	if (placed < fe->fe_length)
		stats->unaligned++;
	return (int)n;
}

/* A realtime file of xfs lies on another device than its filesystem, which FIEMAP does not tell. */
static bool is_elsewhere(int fd)
{
	struct fsxattr attr = { 0 };

	return !ioctl(fd, FS_IOC_FSGETXATTR, &attr) && attr.fsx_xflags & FS_XFLAG_REALTIME;
}

int extents_all(int fd, const struct stack *stack, struct extent **out, struct extents_stats *stats)
{
	for (uint32_t room = EXTENTS_FIRST;; room *= 4) {
		struct extents_stats tried = { 0 };
		int nr;

		*out = malloc(room * sizeof(**out));
		if (!*out)
			return -ENOMEM;
		nr = extents_of(fd, stack, *out, room, &tried);
		if (nr > 0 && tried.cut && room < EXTENTS_MOST) {
			free(*out);
			continue;
		}
		extents_count(stats, &tried);
		if (nr > 0)
			return nr;
		free(*out);
		*out = NULL;
		return nr;
	}
}

int extents_of(int fd, const struct stack *stack, struct extent *out, uint32_t most,
	       struct extents_stats *stats)
{
	union {
		struct fiemap map;
		char room[sizeof(struct fiemap) + AT_ONCE * sizeof(struct fiemap_extent)];
	} u;
	uint64_t from = 0;
	uint32_t n = 0;

	if (is_elsewhere(fd)) {
		stats->realtime++;
		return 0;
	}
	for (;;) {
		const struct fiemap_extent *fe = NULL;

		memset(&u, 0, sizeof(u));
		u.map.fm_start = from;
		u.map.fm_length = FIEMAP_MAX_OFFSET - from;
		u.map.fm_extent_count = AT_ONCE;
		if (ioctl(fd, FS_IOC_FIEMAP, &u.map))
			return -errno;
		for (uint32_t i = 0; i < u.map.fm_mapped_extents; i++) {
			int got;

			fe = &u.map.fm_extents[i];
			got = extents_place(fe, stack, out + n, most - n, stats);
			if (got < 0) {
				stats->cut++;
				return (int)most;
			}
			n += (uint32_t)got;
		}
		if (!fe || fe->fe_flags & FIEMAP_EXTENT_LAST)
			return (int)n;
		from = fe->fe_logical + fe->fe_length;
	}
}
