/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Volumes as device-mapper knows them: the few requests that the online
 * commands need, through libdevmapper.
 */
#ifndef TERRACE_CTL_DM_H
#define TERRACE_CTL_DM_H

#include "ctl.h"

#define DM_FOLDER	"/dev/mapper/"	/* may stand before a name */

#define DM_NAME_BYTES	128
#define DM_PARAMS_BYTES	4096

struct dm_volume {
	char name[DM_NAME_BYTES];
	u8 uuid[TERRACE_UUID_BYTES];	/* zeros: not made by us, so not known here */
	u32 major, minor;
	int open_count;
	bool suspended, read_only;
	u64 sectors;
	char table[DM_PARAMS_BYTES];
	char status[DM_PARAMS_BYTES];	/* "" while suspended: asking would wait */
};

/* Active volumes, sorted by name; *@list is to be freed. 0, or -errno after a
 * message; a system without device-mapper has none.
 */
int dm_volumes(struct dm_volume **list, u32 *nr);

/* By name or UUID; NULL after a message. */
const struct dm_volume *dm_find(const struct dm_volume *list, u32 nr, const char *name);

/* That one alone, copied. 0, or -errno after a message. */
int dm_named(struct dm_volume *volume, const char *name);

/* 1: there, 0: not, -errno after a message. Any device-mapper device. */
int dm_exists(const char *name);

/*
 * Creates NAME from one line of parameters; loads the module if need be. On
 * failure prints why, with what the kernel log says, and nothing is left.
 */
int dm_create(const char *name, const u8 *uuid, u64 sectors, const char *params, bool read_only);

/*
 * Takes away what a call left that was killed while it created the device of
 * that volume: one without a table, or with one that never started. Nobody
 * else may be creating it now.
 */
void dm_drop_unfinished(const u8 *uuid);

/* -EBUSY without a message: somebody has it open, and goes on for seconds. */
int dm_remove(const char *name);

/* The same without waiting for them. */
int dm_remove_now(const char *name);

/* ---- any device, for those that put volumes under others ---- */

struct dm_line {
	u32 major, minor;
	int open_count;
	bool suspended;
	u64 sectors;
	char target[DM_NAME_BYTES];	/* "": no table */
	char params[DM_PARAMS_BYTES];
};

/* The live table of NAME, or its status line. 0, -ENXIO: no such device, or
 * -errno. Prints nothing. A device of more targets: the first.
 */
int dm_table_line(const char *name, struct dm_line *line);
int dm_status_line(const char *name, struct dm_line *line);

/* Line @nr of a device of more targets. */
int dm_table_part(const char *name, u32 nr, struct dm_line *line);
int dm_status_part(const char *name, u32 nr, struct dm_line *line);

/* Each prints why it failed, with what the kernel log says. */
int dm_create_suspended(const char *name, const char *uuid, u64 sectors, const char *target,
			const char *params);
int dm_load(const char *name, u64 sectors, const char *target, const char *params);
struct dm_part {
	u64 sectors;
	const char *target, *params;
};
int dm_load_parts(const char *name, const struct dm_part *part, u32 nr);
int dm_clear(const char *name);		/* drops what was loaded */
/* Filesystems are not frozen. @noflush: what cannot end is kept for later. */
int dm_suspend(const char *name, bool noflush);
int dm_resume(const char *name, bool noflush);	/* with what was loaded, if anything was */

#endif
