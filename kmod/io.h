/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of the data path (map.c, endio.c, defer.c, discard.c) share
 * and nobody else needs.
 */
#ifndef DM_TERRACE_IO_H
#define DM_TERRACE_IO_H

#include "packs.h"

enum tr_verdict {
	TR_GO,		/* io says where; counted in the epoch */
	TR_ZERO,	/* a read of nothing */
	TR_PACKED,	/* a read of packed blocks, counted in the epoch */
	TR_ERROR,	/* tier missing, volume not writable */
	TR_LOAD,	/* the region must be loaded, created, or looked up again */
	TR_GROW,	/* its leaf must grow */
	TR_SLOW,	/* to be delayed, see throttle.c */
	TR_ROOM,	/* no place right now */
	TR_BUSY,	/* no journal room right now, which says nothing of places */
	TR_PAGES,	/* no room for the region's page */
};

#define TR_HOW_WRITE	(1u << 0)
#define TR_HOW_FUA	(1u << 1)
#define TR_HOW_STREAM	(1u << 2)
#define TR_HOW_DEFERRED	(1u << 3)	/* may end after a commit */
#define TR_HOW_PACK	(1u << 4)	/* from the pack, even if there is a clean copy */
#define TR_HOW_ONE	(1u << 5)	/* a read of one block: TR_PACKED may be answered by map() */
#define TR_HOW_AHEAD	(1u << 6)	/* zeros, for an append to come (append.c) */

/*
 * Routes up to *@nr blocks from @block, which lie in one region; *@nr becomes
 * how many the verdict holds for. Under rcu_read_lock; never sleeps. *@ref
 * gets the pack with TR_PACKED.
 */
enum tr_verdict tr_route(struct terrace *tr, struct tr_io *io, u64 block, u32 *nr, u32 how,
			 struct tr_pack_ref *ref);
/* Places for up to @nr blocks that have none, before anybody writes them; io->zeros is set.
 * TR_GO, TR_GROW, or not now. The same conditions.
 */
enum tr_verdict tr_route_ahead(struct terrace *tr, struct tr_io *io, u64 block, u32 *nr);
/* One that is answered, in statistics. */
void tr_count_packed(struct terrace *tr, const struct tr_io *io);
bool tr_is_stream(struct terrace *tr, u64 block, u32 nr);
bool tr_is_cold(struct terrace *tr, u64 block);

/* Ends what TR_GO began: publishes a NEW write that went well. Any context. */
void tr_io_end(struct tr_io *io, blk_status_t status);

void tr_discard(struct terrace *tr, struct bio *bio);	/* in a worker */

static inline struct tr_io *tr_io_of(struct bio *bio)
{
	return dm_per_bio_data(bio, sizeof(struct tr_io));
}

static inline sector_t tr_io_sector(const struct terrace *tr, const struct tr_io *io)
{
	return tr->tier[io->tier].data_sector + io->index * TERRACE_BLOCK_SECTORS;
}

#endif
