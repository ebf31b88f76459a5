/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Metadata blocks as JSON objects and back, byte by byte: one table says which
 * fields each structure has, and both directions walk it. What the table does
 * not catch (bytes in unused places, sections it does not know) is kept as
 * hexadecimal beside it, so that the way back is always exact; that counts alone.
 */
#ifndef TERRACE_CTL_SHAPE_H
#define TERRACE_CTL_SHAPE_H

#include "ctl.h"

#define SHAPE_MAX_BLOCKS TERRACE_MAP_MAX_BLOCKS

/*
 * The structure that begins at @data, of which @room blocks can be read; NULL
 * if there is none that is whole. *@kind: its name, *@nr: its length in blocks.
 */
struct json_object *shape_emit(const void *data, u32 room, const u8 *volume_uuid,
			       const char **kind, u32 *nr);

/* A block that begins as a structure does and is none that is whole: its bytes alone. NULL: it does not. */
struct json_object *shape_emit_damaged(const void *data, const char **kind);

/* What is wrong with an object: in words, and which of the elements of its lists it is; NULL: the object itself. */
struct shape_fault {
	char text[160];
	struct json_object *at;
};

/*
 * The bytes of an object of that kind, into @data (SHAPE_MAX_BLOCKS long);
 * *@nr: blocks. 0; -EINVAL: no such kind, or a field that cannot be: see @why.
 */
int shape_parse(struct json_object *object, const char *kind, void *data, u32 *nr, struct shape_fault *why);

#endif
