/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The book of regions: what is known of each without asking, which have blocks on the
 * fast tier, when each was last used.  28 bytes a region and 4 more for those with fast blocks: of a TiB 16 MiB at most,
 * and nothing else in the loop grows with the volume (unit/loop).
 *
 * Summaries are estimates (uapi/terrace.h): a scan goes round them a bit each tick, and a region
 * is looked at anew after an order.  Before an order is built, the exact state is asked for.
 *
 * Where the sense does not say whether a read was slow, a small cache of exact masks does.
 */
#ifndef TERRACE_LOOP_BOOK_H
#define TERRACE_LOOP_BOOK_H

#include "decide/region.h"
#include "decide/upmask.h"
#include "port.h"

#define BOOK_MASKS	1024u

struct book_mask {
	uint64_t region;	/* + 1; 0: empty */
	uint32_t tick;
	struct upmask fast;
	struct upmask slow;
};

struct book {
	uint64_t regions;
	struct terrace_summary *summary;
	uint32_t *used_tick;
	uint32_t *listed_at;	/* in fast[], + 1 */
	uint16_t *left_loose;	/* so many loose blocks were not worth packing */
	uint16_t *hot_below;	/* so many hot blocks were not fast, when that was last looked at */
	uint32_t looks;		/* closer ones, this tick: see demote.c */
	uint32_t *fast;		/* regions with fast blocks, in no order */
	uint32_t fast_count;
	uint64_t mapped;	/* blocks that hold something */
	uint64_t hand;
	uint32_t tick;		/* the loop's */
	uint32_t lookups;	/* of exact masks, this tick */
	bool aged;		/* the summaries tell ages */
	bool complete;		/* went round once */
	uint64_t turns;		/* ... and so often since the start */
	struct book_mask *masks;
};

int book_init(struct book *b, uint64_t regions, bool aged);
void book_exit(struct book *b);

/* A new tick: reads on where the last one ended.  0 or -errno. */
int book_tick(struct book *b, struct port *port);

/* Reads one region's summary again; what is known of its blocks is forgotten. */
int book_refresh(struct book *b, struct port *port, uint64_t region);

/* Which of the fast blocks of a STALE region are clean is not known: the dear case. */
static inline uint32_t book_dirty(const struct terrace_summary *s)
{
	return s->flags & TERRACE_SUMMARY_STALE ? s->fast : s->dirty;
}

/* Blocks of a region that hold something; of a STALE one that is not known: 1 at least, and not all. */
uint32_t book_mapped(const struct book *b, uint64_t region);

void book_used(struct book *b, uint64_t block);
void book_view(const struct book *b, uint64_t region, struct region_view *view);

/* Where a block is, PORT_UNKNOWN when too many were asked for in this tick. */
enum port_where book_where(struct book *b, struct port *port, uint64_t block);

/* Exact masks: on the fast tier; below with a copy to promote from.  0 or -errno. */
int book_masks(struct port *port, uint64_t region, struct upmask *fast, struct upmask *slow);
/* At a place that is not fast: loose, where the tier below has shelves; there in so many runs (0: not told). */
int book_loose(struct port *port, uint64_t region, struct upmask *loose, uint32_t *runs);

#endif
