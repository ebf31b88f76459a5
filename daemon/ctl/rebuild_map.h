/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading the map for rebuild.h, in three files:
 *   rebuild_map.c      pages that the trees lead to; how sure it all is
 *   rebuild_orphans.c  pages that they do not lead to any more
 *   rebuild_journal.c  the journal laid over them
 */
#ifndef TERRACE_CTL_REBUILD_MAP_H
#define TERRACE_CTL_REBUILD_MAP_H

#include "rebuild.h"

struct event {
	u64 seq;		/* the record's, or that of the one it repeats */
	u64 order;		/* position in the journal */
	struct tr_record record;
};

struct map_reader {
	struct rebuild *rb;
	struct trees trees;
	struct journal journal;
	u64 *lost;		/* bit per region: its page must be looked for */
	u64 *leaf_lost;		/* … and it is there, but damaged */
	u64 nr_lost;
	u64 *known_bad;		/* bit per meta block: a damaged page is there */
	u64 *accounted;		/* … a good one */
	u64 *bits;		/* the meta bitmap; NULL: damaged */
	struct event *event;
	u64 nr_events, room;
	u64 first;		/* oldest record of event[] */
	u64 last;		/* newest one that the journal reaches without a gap */
	bool journal_good;
};

static inline void note_seq(struct rebuild *rb, u64 seq)
{
	if (seq > rb->newest_record)
		rb->newest_record = seq;
}

/*
 * Did a repair in place write this page that was stopped before its superblock was durable? Its record
 * numbers are far ahead of what it contains (repair_write.c). Nor is it worth anything as a page:
 * what it was made of is still there, and says more.
 */
bool rb_of_cut_repair(const struct rebuild *rb, const struct terrace_page_disk *head);

/* The copy of the metadata beside the one in use: good for pages that an entry proves. */
const struct metadata *rb_other_copy(const struct volume *vol);

/*
 * Does that copy hold what the one in use does, but for what a crash cut off? Only then
 * the meta bitmap and the journal's tail speak of it as well. One that the volume went on
 * without holds whole pages where the bitmap has some: old ones.
 */
bool rb_in_step(const struct volume *vol, const struct metadata *other);

/* The places of a map page. false: it holds impossible ones. */
bool rb_take_page(struct rebuild *rb, u64 number, const void *page, u32 blocks, u64 seq,
		  enum rb_source source);

/* For the regions in ->lost. */
void rb_find_orphans(struct map_reader *m);

void rb_read_journal(struct map_reader *m);
void rb_apply_journal(struct map_reader *m);

#endif
