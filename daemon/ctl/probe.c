// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What is on a device already? See probe.h.
 */
#include <blkid/blkid.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl.h"
#include "names.h"
#include "probe.h"
#include "restore_mark.h"

#define FIRST_BLOCKS 256u

static char *probe_label(const u8 *blocks)
{
	struct restore_mark mark;
	struct tr_label label;

	for (u32 copy = 0; copy < TERRACE_LABEL_COPIES; copy++)
		if (restore_mark_decode(&mark, blocks + copy * TERRACE_BLOCK_BYTES))
			return ctl_text("holds what a restore that was stopped has left of Terrace volume %s",
					uuid_text(mark.volume_uuid));
	for (u32 copy = 0; copy < TERRACE_LABEL_COPIES; copy++) {
		int r = tr_label_decode(&label, blocks + copy * TERRACE_BLOCK_BYTES);

		if (r == -ENODATA)
			continue;
		if (r)
			return ctl_text("holds the label of a Terrace volume (damaged or of a newer version)");
		if (label.tier_index == TERRACE_META_DEVICE)
			return ctl_text("holds the metadata of Terrace volume '%s' (%s)",
					label.name, uuid_text(label.volume_uuid));
		return ctl_text("holds tier %u of Terrace volume '%s' (%s)", label.tier_index,
				label.name, uuid_text(label.volume_uuid));
	}
	return NULL;
}

static const char *usage_words(blkid_probe probe)
{
	const char *usage = "";

	blkid_probe_lookup_value(probe, "USAGE", &usage, NULL);
	if (!strcmp(usage, "filesystem"))
		return "a filesystem";
	if (!strcmp(usage, "raid"))
		return "a part of a RAID or volume group";
	if (!strcmp(usage, "crypto"))
		return "an encrypted volume";
	return "data";
}

static char *describe(blkid_probe probe)
{
	const char *type, *label = NULL;

	if (!blkid_probe_lookup_value(probe, "TYPE", &type, NULL)) {
		blkid_probe_lookup_value(probe, "LABEL", &label, NULL);
		return ctl_text("holds %s (%s%s%s%s)", usage_words(probe), type,
				label ? " '" : "", label ? label : "", label ? "'" : "");
	}
	if (!blkid_probe_lookup_value(probe, "PTTYPE", &type, NULL))
		return ctl_text("holds a %s partition table", type);
	return NULL;
}

/* libblkid wants small reads at odd places: it gets a descriptor of its own. */
static int probe_signatures(const struct device *dev, char **found)
{
	blkid_probe probe = blkid_new_probe();
	int fd = open(dev->path, O_RDONLY | O_CLOEXEC);
	int r = -errno;

	if (fd >= 0 && probe && !blkid_probe_set_device(probe, fd, 0, 0)) {
		blkid_probe_enable_superblocks(probe, 1);
		blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_USAGE |
						  BLKID_SUBLKS_LABEL);
		blkid_probe_enable_partitions(probe, 1);
		r = blkid_do_safeprobe(probe);
		if (r == 0)
			*found = describe(probe);
		else if (r == -2)
			*found = ctl_text("holds more than one known kind of data");
		r = r == -1 ? -EIO : 0;
	}
	if (probe)
		blkid_free_probe(probe);
	if (fd >= 0)
		close(fd);
	return r;
}

static char *probe_data(const u8 *blocks, u64 nr)
{
	for (u64 i = 0; i < nr * TERRACE_BLOCK_BYTES; i++)
		if (blocks[i])
			return ctl_text("holds data of an unknown kind (first byte that is not zero: %llu)",
					(unsigned long long)i);
	return NULL;
}

int probe_contents(const struct device *dev, char **found)
{
	u64 nr = dev->blocks < FIRST_BLOCKS ? dev->blocks : FIRST_BLOCKS;
	u8 *blocks = ctl_alloc_blocks(nr < 2 ? 2 : nr);
	int r = device_read(dev, 0, nr, blocks);

	*found = NULL;
	if (!r)
		*found = probe_label(blocks);
	if (!r && !*found)
		r = probe_signatures(dev, found);
	if (!r && !*found)
		*found = probe_data(blocks, nr);
	free(blocks);
	return r;
}

int probe_units(const struct device *dev, u32 *bytes, char **table)
{
	blkid_probe probe = blkid_new_probe();
	int fd = open(dev->path, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 ? -errno : 0;
	const char *text;

	*bytes = 0;
	*table = NULL;
	if (!r && probe && !blkid_probe_set_device(probe, fd, 0, 0)) {
		blkid_probe_enable_superblocks(probe, 1);
		blkid_probe_enable_partitions(probe, 1);
		if (!blkid_do_fullprobe(probe)) {
			if (!blkid_probe_lookup_value(probe, "BLOCK_SIZE", &text, NULL))
				*bytes = (u32)strtoul(text, NULL, 10);
			if (!blkid_probe_lookup_value(probe, "PTTYPE", &text, NULL))
				*table = ctl_text("%s", text);
		}
	}
	if (probe)
		blkid_free_probe(probe);
	if (fd >= 0)
		close(fd);
	return r;
}
