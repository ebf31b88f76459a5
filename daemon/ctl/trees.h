/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Walking the map and the space trees of one metadata area: the superblock
 * names roots, directories name pages.
 */
#ifndef TERRACE_CTL_TREES_H
#define TERRACE_CTL_TREES_H

#include "volume.h"

struct trees {
	const struct metadata *meta;
	const struct tr_super *super;
	struct findings *findings;
	const struct metadata *other;	/* a page that is damaged may be good there; NULL: none */
	u64 newest_record;	/* no page may know a newer one; ~0: not checked */
	u64 regions;		/* of the volume */

	/* results */
	u64 *claimed;		/* bit per meta block: named by an entry */
	u64 map_pages, space_pages, directories;
	bool broken;		/* something could not be read: what is below is unknown */

	/* Called for each leaf that an entry names; may be NULL. The page itself
	 * has not been read. Returns how many blocks it counts, for the sums, or
	 * entry->count if it has not looked.
	 */
	u32 (*leaf)(struct trees *trees, u32 tree, u32 tier, u64 number,
		    const struct tr_entry *entry);
	/* Called for each good directory page; may be NULL. */
	void (*directory)(struct trees *trees, u32 tree, u32 tier, u32 level, u64 index,
			  const struct tr_entry *entry);
	/* Called for each directory, or entry, that leads nowhere; may be NULL. */
	void (*lost)(struct trees *trees, u32 tree, u32 tier, u32 level, u64 index,
		     const struct tr_entry *entry);
	void *ctx;
};

void trees_init(struct trees *trees, const struct metadata *meta, struct findings *findings);
void trees_walk_map(struct trees *trees);
void trees_walk_space(struct trees *trees, u32 tier);
void trees_free(struct trees *trees);

/*
 * Reads the page that @entry names and checks that it is that page. Returns
 * a buffer to be freed, or NULL after a problem line.
 */
void *trees_read_page(struct trees *trees, const struct tr_page_id *id,
		      const struct tr_entry *entry);

/* "DEV: map page of region 5 (meta block 33)" */
const char *page_where(const struct metadata *meta, const struct tr_page_id *id, u64 block);

static inline bool bit_test(const u64 *bits, u64 i)
{
	return bits[i / 64] >> (i % 64) & 1;
}

static inline void bit_set(u64 *bits, u64 i)
{
	bits[i / 64] |= 1ull << (i % 64);
}

#endif
