/* SPDX-License-Identifier: GPL-2.0 */
/* Where the tables of a pack's header stand: for pack_*.c only. */
#ifndef TERRACE_CORE_PACK_TABLES_H
#define TERRACE_CORE_PACK_TABLES_H

#include <linux/types.h>
#include <asm/byteorder.h>
#include "pack.h"

struct pack_tables {
	u32 offset;	/* bytes from the start of the header */
	u32 crc;
	u32 length;
	u32 slot;
	u32 end;
};

static inline u32 pack_segments(u32 shift)
{
	return shift / 2 + 1;
}

/* The first slot of segment @s: 0 1 4 16. */
static inline u32 segment_start(u32 s)
{
	return s ? 1u << (2 * (s - 1)) : 0;
}

/* The same, in a cluster of @nr blocks. */
static inline u32 segment_from(u32 s, u32 nr)
{
	u32 from = segment_start(s);

	return from < nr ? from : nr;
}

static inline u32 segment_of_slot(u32 slot)
{
	return slot >= 4 ? 2 : slot >= 1;
}

/* How many segments a cluster of @nr blocks has. */
static inline u32 segments_of(u32 nr)
{
	return segment_of_slot(nr - 1) + 1;
}

static inline u32 cluster_blocks(u32 nr_blocks, u32 shift, u32 cluster)
{
	u32 left = nr_blocks - (cluster << shift);

	return left < 1u << shift ? left : 1u << shift;
}

static inline void pack_tables(struct pack_tables *t, u32 nr_blocks, u32 shift)
{
	u32 clusters = (nr_blocks + (1u << shift) - 1) >> shift;
	u32 cells = clusters * pack_segments(shift);
	u32 groups = (clusters + TERRACE_PACK_GROUP - 1) / TERRACE_PACK_GROUP;

	t->offset = sizeof(struct terrace_pack_disk);
	t->crc = t->offset + groups * sizeof(__le32);
	t->length = t->crc + cells * sizeof(__le32);
	t->slot = t->length + cells * sizeof(__le16);
	t->end = t->slot + (shift ? nr_blocks * sizeof(__le16) : 0);
}

/* All tables are aligned to their items: the fixed part is 256 bytes long. */
static inline u32 table_u32(const void *index, u32 table, u32 i)
{
	return le32_to_cpu(((const __le32 *)((const u8 *)index + table))[i]);
}

static inline u32 table_u16(const void *index, u32 table, u32 i)
{
	return le16_to_cpu(((const __le16 *)((const u8 *)index + table))[i]);
}

#endif
