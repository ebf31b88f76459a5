/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of structures, for both directions of shape.h. Private to:
 *   shape_table.c  the table itself
 *   shape.c        from bytes to JSON
 *   shape_parse.c  and back
 */
#ifndef TERRACE_CTL_SHAPE_TABLE_H
#define TERRACE_CTL_SHAPE_TABLE_H

#include "shape.h"

enum field_type { NUMBER, UUID, TEXT };

struct field {
	const char *name;
	u32 at, bytes;
	enum field_type type;
};

struct list {
	const char *name;
	u32 at, stride, max;
	const struct field *field;
};

struct bits {
	const char *name;
	u32 at, bits;
};

struct shape {
	const char *kind;
	const char *magic;
	u32 magic_bytes;
	u16 crc_at, uuid_at;
	const struct field *field;
	struct list list;	/* elements that are not all zero */
	struct bits bits;
	bool places;		/* a map page: its PLACES section as runs */
};

#define NR_SHAPES 7u

extern const struct shape shapes[NR_SHAPES];

/* The PLACES section of a map page, which comes first. */
#define PRESENT_AT 80
#define PLACES_AT (PRESENT_AT + TERRACE_REGION_BLOCKS / 8)
#define PLACE_BYTES 5

/* It is as long as its header says, all others are one block. */
bool shape_is_page(const struct shape *shape);

#endif
