/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * terracectl check, in the order in which it runs:
 *   volume.c         labels, superblocks, how the devices fit together
 *   check.c          the command line, the order, the summary
 *   check_meta.c     journal chain, directories, meta bitmap
 *   check_space.c    --full: space pages, and the journal's word on them
 *   check_map.c      --full: map pages and the journal laid over them, every
 *                    place against the space pages
 *   check_packs.c    --full: each pack against the map, byte by byte
 *   check_suspects.c --full: who lives at the places that are wrong
 *   check_owners.c   --owners: what the shelves say about themselves
 *   check_mirror.c   the mirror against the primary
 */
#ifndef TERRACE_CTL_CHECK_H
#define TERRACE_CTL_CHECK_H

#include "journal.h"
#include "trees.h"

/* Of one tier: what the space pages and the journal say is used, and what is
 * referenced. A bitmap per chunk, NULL while it would be all zeros.
 */
struct check_tier {
	u64 data_blocks;
	u64 nr_chunks;
	u64 **used;
	u64 **referenced;
	bool *unknown;		/* the chunk's page could not be read */
	u64 used_blocks;
};

/* A place that something is wrong with; its users are looked up at the end. */
struct suspect {
	u64 place;
	u64 user[2];		/* the first two blocks that live there */
	u32 users;
	bool twice;		/* claimed twice; else: used but marked free */
	u64 run;		/* consecutive places of the same kind */
};

/* A record and the region it is about, sorted by region, newest first. */
struct region_record {
	u64 region;
	u64 seq;
	u32 block;		/* of the journal chain */
	u32 i;
};

struct check_discard {
	struct tr_record record;
	u64 seq;
};

/* What a walk over the map is for. */
enum check_walk {
	CHECK_MAP,		/* the first: everything about the regions */
	CHECK_SUSPECTS,		/* who uses the suspects? */
	CHECK_OWNERS,		/* who uses a window of shelves? */
};

struct check {
	struct volume vol;
	struct findings findings;
	bool full, owners;

	struct journal journal;
	struct trees trees;

	u64 virtual_blocks;	/* after replay */
	struct check_tier tier[TERRACE_MAX_TIERS];
	struct region_record *records;	/* of all regions */
	u64 nr_records;
	struct check_discard *discards;	/* newest first */
	u64 nr_discards;
	bool map_unknown;	/* a map page could not be read: no word about leaks */

	struct suspect *suspects;
	u64 nr_suspects, room_suspects;
	bool clean;		/* CLEAN, and nothing came after it */
	enum check_walk walk;

	u32 window_tier;	/* CHECK_OWNERS: shelves whose users are collected */
	u64 window_first;
	u64 **window;

	u64 mapped_blocks, discarded_blocks, regions;
	u64 packs, packed_blocks;
};

/*
 * The quick check, for who is about to activate the volume of these devices:
 * findings go to stderr. 0 and *@super, or CTL_PROBLEM. Tiers that are missing
 * count as problems unless @degraded.
 */
int check_before_use(char **paths, u32 nr, bool degraded, struct tr_super *super);

void check_journal(struct check *c);
void check_trees(struct check *c);	/* directories; with full also leaves */
void check_meta_bitmap(struct check *c, const struct trees *trees);
void check_mirror(struct check *c);

/* Sets up c->tier, called before the walk. */
void check_space_init(struct check *c);
/* A leaf of a space tree; returns how many blocks are used. */
u32 check_space_page(struct check *c, u32 tier, u64 chunk, const struct tr_entry *entry);
void check_space_replay(struct check *c);
/* Takes note that a block lives at @place; false: somebody does already. */
bool check_space_reference(struct check *c, u64 place);
/* Used against referenced. */
void check_space_compare(struct check *c);
void check_space_free(struct check *c);

void check_map_init(struct check *c);
/* A leaf of the map tree; returns how many blocks are on slots. */
u32 check_map_page(struct check *c, u64 region, const struct tr_entry *entry);
/* Regions that are in the journal only. */
void check_map_rest(struct check *c);
/* Another walk; prints nothing. */
void check_map_again(struct check *c, enum check_walk walk);
void check_map_free(struct check *c);

/* A region's packs after replay. @kept: not NULL if a discard took all other
 * blocks of it.
 */
void check_packs(struct check *c, u64 region, const struct tr_packs *packs, const u64 *kept);

struct suspect *check_suspect(struct check *c, u64 place, bool twice);
/* Finds the users of all suspects and prints the problems. */
void check_suspects(struct check *c);
/* Block @block lives at @place: its number, or CHECK_PACK and a pack's id. */
#define CHECK_PACK	(1ull << 63)
void check_suspects_user(struct check *c, u64 block, u64 place);

void check_owners(struct check *c);
void check_owners_user(struct check *c, u64 block, u64 place);

#endif
