/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which volumes do the labels on this machine's drives make?
 */
#ifndef TERRACE_CTL_FIND_H
#define TERRACE_CTL_FIND_H

#include <sys/types.h>

#include "dm.h"

#define FOUND_MAX_DEVICES (TERRACE_MAX_TIERS + 1)

struct found_device {
	char *path;
	struct tr_label label;
};

struct found_volume {
	u8 uuid[TERRACE_UUID_BYTES];
	char name[TERRACE_NAME_BYTES];
	struct found_device device[FOUND_MAX_DEVICES];	/* tiers in order, metadata device last */
	u32 nr_devices;
	char *twice[2];			/* two devices that say they are the same one */
};

struct found {
	struct found_volume *volume;
	u32 nr;
};

/* All block devices, or just @paths. What cannot be read is left out. */
void find_volumes(struct found *found, char **paths, int nr_paths);
void find_free(struct found *found);

/*
 * The one that @word names: a volume's name, its UUID, or a device of it.
 * NULL after a message when there is none, or more than one.
 */
struct found_volume *find_named(struct found *found, const char *word);

/* The device whose metadata area has this role (TERRACE_LABEL_META…); NULL: it is not there. */
const struct found_device *found_holder(const struct found_volume *v, u32 flag);

/*
 * Active volumes, sorted by name, to be freed. One that was made with dmsetup
 * by hand is known by its devices. 0 or -errno after a message.
 */
int find_active(const struct found *found, struct dm_volume **list, u32 *nr);

/* The path of /sys/class/block/@name: /dev/mapper/… where there is one. To be
 * freed; NULL without a node.
 */
char *find_node(const char *name);

/* The same of a device number; NULL also when that is gone. */
char *find_path(dev_t dev);

/* It, or what it stands on, is suspended: reading it would wait for ever. */
bool find_suspended(dev_t dev);

#endif
