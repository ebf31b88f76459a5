/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Geometry: from "these devices, that size" to labels and a superblock.
 *
 *   device         label | copy | (unused) | metadata area | data
 *                  block 0, 1     2 .. 15    from block 16   from data_start
 *   metadata area  super 0 | super 1 | journal | meta bitmap 0 | 1 | pages
 *
 * The metadata area sits on tier 0 or on a device of its own, its mirror at
 * the same place of another device, with the same size and inner layout: a
 * meta block has one number everywhere. In the meta bitmaps everything in
 * front of the pages area counts as used, bits behind the area's end are 0.
 *
 * Pure arithmetic: random numbers (uuids, the first nonce) come in with the
 * arguments. A plan that cannot be made names the device at fault and the
 * two numbers that do not fit.
 */
#ifndef TERRACE_CORE_GEOMETRY_H
#define TERRACE_CORE_GEOMETRY_H

#include "format.h"

#define TR_META_START		16u	/* device block, raised to the device's alignment */
#define TR_DATA_ALIGN		256u	/* data_start is a multiple of this many blocks */
#define TR_JOURNAL_START	2u	/* meta block behind the superblocks */
#define TR_JOURNAL_MIN		256u	/* blocks: 1 MiB */
#define TR_JOURNAL_MAX		65536u	/* blocks: 256 MiB */
#define TR_JOURNAL_SHARE	512u	/* default: one block in this many of tier 0 */
#define TR_RESERVE_PERMILLE	20u
#define TR_RESERVE_MAX_PERMILLE	500u
#define TR_RESERVE_MIN		64u	/* blocks of a slots tier */
#define TR_RESERVE_SHELVES	2u	/* always free on a shelves tier */
#define TR_MIN_TIERS		2u
#define TR_MAX_VIRTUAL_BLOCKS	(1ull << 48)
#define TR_NO_DEVICE		(~0u)

enum tr_mirror {
	TR_MIRROR_AUTO,		/* sync if a device of comparable speed is there, else lazy */
	TR_MIRROR_NONE,
	TR_MIRROR_LAZY,
	TR_MIRROR_SYNC,
};

struct tr_plan_device {
	u64 blocks;
	u32 class;		/* ignored for the metadata device */
	u32 kind;
	u32 align_blocks;	/* a power of two, at most a chunk */
	u32 atomic_bytes;	/* what the drive writes whole or not at all */
	bool atomic;		/* whole 4 KiB blocks */
	u8 uuid[TERRACE_UUID_BYTES];
};

struct tr_plan_args {
	struct tr_plan_device tier[TERRACE_MAX_TIERS];
	u32 nr_tiers;
	bool has_meta;
	struct tr_plan_device meta;
	u64 virtual_blocks;	/* 0: all the room there is, plus overcommit_blocks */
	u64 overcommit_blocks;	/* how far the size may exceed the room */
	u64 journal_blocks;	/* 0: default */
	u32 reserve_permille;	/* 0: default */
	enum tr_mirror mirror;
	u8 uuid[TERRACE_UUID_BYTES];
	u64 first_nonce;	/* random: what the first journal block continues */
	u32 first_crc;
	char name[TERRACE_NAME_BYTES];
};

enum tr_plan_error {
	TR_PLAN_OK,
	TR_PLAN_TIERS,		/* have: tiers given, need: the limit passed */
	TR_PLAN_CLASS,		/* unknown class `have` */
	TR_PLAN_KIND,		/* unknown kind `have` */
	TR_PLAN_ORDER,		/* faster than the tier before it: classes have, need */
	TR_PLAN_NO_SLOTS,	/* no tier is of kind slots */
	TR_PLAN_ALIGN,		/* have: blocks, need: largest */
	TR_PLAN_JOURNAL,	/* have: blocks, need: the limit passed */
	TR_PLAN_RESERVE,	/* have: permille, need: largest */
	TR_PLAN_TOO_SMALL,	/* device blocks have, need */
	TR_PLAN_TOO_BIG,	/* device blocks have, need: largest */
	TR_PLAN_VIRTUAL,	/* virtual blocks have, need: what fits */
	TR_PLAN_VIRTUAL_MAX,	/* virtual blocks have, need: largest of the format */
	TR_PLAN_PAGES,		/* blocks for pages have, need */
};

struct tr_plan_fault {
	enum tr_plan_error error;
	u32 device;		/* tier, nr_tiers: metadata device, or TR_NO_DEVICE */
	u64 have;
	u64 need;
};

/* Device numbers: 0 .. nr_tiers - 1 the tiers, nr_tiers the metadata device. */
struct tr_plan {
	struct tr_label label[TERRACE_MAX_TIERS + 1];
	u32 nr_devices;
	u32 primary;		/* device that holds the metadata */
	u32 mirror;		/* device that holds the mirror, or TR_NO_DEVICE */
	bool mirror_lazy;
	u64 room_blocks;	/* virtual blocks that fit without overcommit */
	struct tr_super super;
};

/* Returns 0, or -EINVAL with the reason in @fault. */
int tr_plan_make(struct tr_plan *plan, const struct tr_plan_args *args,
		 struct tr_plan_fault *fault);

/*
 * One more tier for a volume that stands still: @args->tier[super->nr_tiers],
 * behind the slowest, whose class is in @args as well. Gives its label and the
 * superblock to be written: places hold a tier's number, so no other place
 * in the order could be had without touching the map.
 */
int tr_plan_add(struct tr_plan *plan, const struct tr_plan_args *args, const struct tr_super *super,
		struct tr_plan_fault *fault);

/* Chunks (space pages) of a tier: the last one may be cut. */
u64 tr_chunks(u64 data_blocks);

/* Blocks of a tier that are kept free: for moves, and on shelves for the
 * owner blocks and tables that describe the rest.
 */
u64 tr_reserve(u32 kind, u64 data_blocks, u32 permille);

/* Virtual blocks that the tiers of @super can hold in any case. Homes are
 * fixed, so several home tiers hold no more different blocks than the largest.
 */
u64 tr_room(const struct tr_super *super);

/* The reserve of a tier that grows: the share that it was formatted with. */
u64 tr_reserve_grown(u32 kind, u64 old_blocks, u64 old_reserve, u64 data_blocks);

/* Meta blocks that a volume of these sizes needs for its pages, with every
 * region mapped that can be. The pages area cannot grow: less than a fresh
 * format would take, but room for a checkpoint beside it.
 */
u64 tr_pages_needed(const struct tr_super *super);

/* Could more of @regions be mapped, each in part, than the area has pages for? */
bool tr_pages_scarce(const struct tr_super *super, u64 regions);

/* Pages on their way to disk at a time, and blocks beside these that it may want. */
#define TR_BATCH_PAGES	64
#define TR_BATCH_BLOCKS	(TR_BATCH_PAGES * 2)
#define TR_BATCH_SLACK	32
/* So many places, at least, make a page a block longer (core/map_page.c). */
#define TR_LONGER_PAGE	512

/* At most so many directories are above @pages pages, of whatever tree. */
u64 tr_dirs_above(const struct tr_super *super, u64 regions, u64 pages);
/* What @nr regions that come to have a block need, pages and directories. */
u64 tr_pages_of_new(u64 nr, u64 regions);
/* Blocks that a checkpoint must find whatever is mapped: for all space pages, for
 * pages that grow, and for one batch with its directories beside the old ones.
 */
u64 tr_pages_kept(const struct tr_super *super, u64 regions);

/* Drives of similar latency: the mirror may be synchronous. */
bool tr_comparable(u32 class, u32 other);

#endif
