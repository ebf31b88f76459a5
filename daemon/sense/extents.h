/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From bytes of a file to blocks of the volume: FIEMAP gives places in the filesystem's device, and
 * the stack of devices between it and the volume (partitions, dm-linear, dm-crypt) moves them by
 * offsets.  Only whole blocks that this file has for itself count.
 */
#ifndef TERRACE_SENSE_EXTENTS_H
#define TERRACE_SENSE_EXTENTS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct fiemap_extent;

#define STACK_PIECES	64u
#define EXTENT_BLOCK	4096u	/* bytes */

/* [from, from + length) of a device is [to, ...) of the volume; bytes. */
struct stack_piece {
	uint64_t from, length, to;
};

struct stack {
	struct stack_piece piece[STACK_PIECES];
	uint32_t nr;
};

/*
 * How a device lies on the volume.  -ENODEV: not at all, or not only; -EOPNOTSUPP: through a device
 * that does more than add offsets; -E2BIG: more pieces than fit.
 */
int stack_find(unsigned int major, unsigned int minor, unsigned int volume_major,
	       unsigned int volume_minor, struct stack *out);

static inline bool stack_same(const struct stack *a, const struct stack *b)
{
	return a->nr == b->nr && !memcmp(a->piece, b->piece, a->nr * sizeof(a->piece[0]));
}

struct extent {
	uint64_t block;		/* of the volume */
	uint64_t nr;
	uint64_t offset;	/* bytes, in the file */
	uint64_t physical;	/* bytes, in the filesystem's device: what FITRIM wants */
};

struct extents_stats {
	uint64_t shared, unaligned, odd;	/* extents that were left out: reflinked; inline, or not whole blocks; not placed or encoded */
	uint64_t cut;				/* files that have more extents than fit */
	uint64_t realtime;			/* files that do not lie on their filesystem's device (xfs) */
};

/*
 * The first @most extents of an open file.  Waits for nothing: what is not placed yet is left out.
 * Their number or -errno.
 */
int extents_of(int fd, const struct stack *stack, struct extent *out, uint32_t most,
	       struct extents_stats *stats);

#define EXTENTS_FIRST	256u	/* most files have fewer */
#define EXTENTS_MOST	4096u

/* All of them, EXTENTS_MOST at most, in memory of their own if there are any. */
int extents_all(int fd, const struct stack *stack, struct extent **out, struct extents_stats *stats);

static inline void extents_count(struct extents_stats *to, const struct extents_stats *from)
{
	to->shared += from->shared;
	to->unaligned += from->unaligned;
	to->odd += from->odd;
	to->cut += from->cut;
	to->realtime += from->realtime;
}

/* --- for their test ------------------------------------------------------------------ */

/* @table: a line of a device-mapper table, without its start and length.  @offset: bytes. */
int stack_parse(const char *type, const char *table, unsigned int *major, unsigned int *minor,
		uint64_t *offset);
/* How many extents one of FIEMAP's becomes; 0: left out, and why in @stats.  -E2BIG: more than @most, which are there. */
int extents_place(const struct fiemap_extent *fe, const struct stack *stack, struct extent *out,
		  uint32_t most, struct extents_stats *stats);

#endif
