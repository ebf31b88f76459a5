/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * terracectl restore:
 *   restore.c        the devices, writing
 *   restore_read.c   the dump, from text or JSON
 *   restore_judge.c  can all of it be written?
 *   restore_mark.c   what stands on a device meanwhile
 */
#ifndef TERRACE_CTL_RESTORE_H
#define TERRACE_CTL_RESTORE_H

#include "ctl.h"
#include "device.h"

#define RESTORE_MAX_DEVICES (TERRACE_MAX_TIERS + 1)

struct restore {
	const char *file;
	struct json_object *items;
	struct tr_label label[RESTORE_MAX_DEVICES];	/* of the dump, by tier */
	u32 nr_devices, supers;
	struct device dev[RESTORE_MAX_DEVICES];		/* as given */
	int at[RESTORE_MAX_DEVICES];			/* which of dev[] takes label[] */
	bool own[RESTORE_MAX_DEVICES];			/* it says that it is this very tier */
	bool force, dry_run;
};

/* The items of a dump, each with its "item"; NULL after a message. */
struct json_object *restore_read(const char *path);

/* Of an item, or of an element of one of its lists: its line, counted from 1; 0: it is of JSON. */
u32 restore_line(struct json_object *o);

/* Fills in the labels; 0, or -EINVAL after a message: then not all of the dump can be written. */
int restore_judge(struct restore *rs);

/* Of an item: a text, "" where there is none; where it is; whether it is a label. */
const char *restore_text(struct json_object *o, const char *name);
u64 restore_meta_block(struct json_object *o);
bool restore_is_label(struct json_object *o);

/* Where an item belongs: the label of its device, and the block there; false: not in that copy of the metadata. */
bool restore_target(const struct restore *rs, struct json_object *o, bool mirror, u32 *label, u64 *block);

#endif
