/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is on a device already?
 */
#ifndef TERRACE_CTL_PROBE_H
#define TERRACE_CTL_PROBE_H

#include "device.h"

/*
 * Looks for a Terrace label, then for anything libblkid knows (filesystems,
 * partition tables, RAID and LVM members, swap), then for data of no known
 * kind in the first MiB. Returns a phrase for "DEVICE …" in *@found, to be
 * freed ("holds a filesystem (ext4)"), or NULL if there is nothing.
 * 0 or -errno.
 */
int probe_contents(const struct device *dev, char **found);

/*
 * What it would be on a device of other sectors. *@bytes: the smallest unit in
 * which it reads and writes, 0: not known; *@table: the kind of its partition
 * table, to be freed, or NULL. 0 or -errno.
 */
int probe_units(const struct device *dev, u32 *bytes, char **table);

#endif
