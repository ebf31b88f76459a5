/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * terracectl restore:
 *   restore.c        judging dump and devices, writing
 *   restore_read.c   the dump, from text or JSON
 */
#ifndef TERRACE_CTL_RESTORE_H
#define TERRACE_CTL_RESTORE_H

#include "ctl.h"
#include "device.h"

#define RESTORE_MAX_DEVICES (TERRACE_MAX_TIERS + 1)

struct restore {
	struct json_object *items;
	struct tr_label label[RESTORE_MAX_DEVICES];	/* of the dump, in its order */
	u32 nr_devices, supers;
	struct device dev[RESTORE_MAX_DEVICES];		/* as given */
	int at[RESTORE_MAX_DEVICES];			/* which of dev[] takes label[] */
	bool own[RESTORE_MAX_DEVICES];			/* it holds this very tier already */
	bool force, dry_run;
};

/* The items of a dump, each with its "item"; NULL after a message. */
struct json_object *restore_read(const char *path);

#endif
