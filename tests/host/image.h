/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What image.c writes and image_model.c has made up. */
#ifndef TERRACE_TESTS_IMAGE_H
#define TERRACE_TESTS_IMAGE_H

#include <stdbool.h>
#include "core/geometry.h"
#include "core/journal_block.h"
#include "core/pack.h"

#define MAX_RECORDS	200000
#define NO_BLOCK	(~0ull)
#define TABLE_AT	(TERRACE_CHUNK_BLOCKS - TERRACE_TABLE_BLOCKS)
#define OWNERS_AT	(TABLE_AT - 70)

extern struct tr_label label[TERRACE_MAX_TIERS];
extern struct tr_super super;
extern int fd[TERRACE_MAX_TIERS];
extern u32 primary, mirror;

extern u64 *map, *old_map;	/* place of each block now, and when the tail was set */
extern bool *pending;		/* discarded by a range record, not yet unmapped */
extern u64 *pending_seq;	/* per region: newest range discard not yet resolved */
extern u8 *used[TERRACE_MAX_TIERS];
extern u64 *owner_of[TERRACE_MAX_TIERS];	/* who wrote a place last; NO_BLOCK: nobody */
extern u64 *written_at[TERRACE_MAX_TIERS];	/* … by which record */
extern u64 regions;

extern struct tr_packs **packs, **old_packs;	/* of each region, now and then; NULL: none */
extern u64 *value_of;		/* of each block: the record that wrote it */
extern u32 packing;		/* per cent of operations that are about packs */

extern struct tr_record *records;
extern u64 nr_records;		/* record n is records[n - 1] */

extern const char *broken;
extern u64 random_state;

void die(const char *what);
bool breaks(const char *what);
u64 rnd(u64 below);
void record(u8 type, u64 block, u32 nr, u64 new, u64 old);
u32 run_of(u64 block, u32 max);
void set_used(u64 place, bool is);
void set_owner(u64 place, u64 block);
void put(u64 block, u32 nr, u64 new);
void load(u64 region);
bool somewhere(u64 block);
void add_pack(u64 region, const struct tr_pack *pack);
void set_run(u64 place, u32 nr, bool is);
u64 shelf_tier(void);
void write_pack(struct tr_pack *pack, u64 region, const u64 *into);
void operate_pack(u64 region);
bool is_table(u32 tier, u64 at);
void write_block(int file, u64 block, const void *data, u32 nr);
void write_shelves(u32 tier);
u64 allocate(u32 tier, u32 nr);
void operate(void);

#endif
