/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A volume, opened from its devices for reading. The devices may be given in
 * any order: their labels say which is which.
 */
#ifndef TERRACE_CTL_VOLUME_H
#define TERRACE_CTL_VOLUME_H

#include "core/geometry.h"
#include "device.h"
#include "findings.h"

#define VOLUME_MAX_DEVICES (TERRACE_MAX_TIERS + 1)

/* One metadata area: the primary or a mirror. */
struct metadata {
	const struct device *dev;	/* NULL: not there */
	const char *name;		/* "primary", "synchronous mirror", "lazy mirror" */
	bool lazy;
	bool atomic;			/* a superblock is written whole or not at all */
	u64 start, blocks;
	struct tr_super copy[2];
	int state[2];			/* 0, or what tr_super_decode() said */
	int torn;			/* copy that a crash may have torn, -1: none */
	bool stale;			/* the other one was used without it */
	const struct tr_super *super;	/* the one to use; NULL: none is good */
};

struct volume {
	struct device dev[VOLUME_MAX_DEVICES];
	struct tr_label label[VOLUME_MAX_DEVICES];
	int label_bad[VOLUME_MAX_DEVICES][TERRACE_LABEL_COPIES];	/* what is wrong with a copy, where another is good */
	bool relabelled[VOLUME_MAX_DEVICES];	/* it has replaced one that still has a label: perhaps its own was cut off */
	u32 bad_copies;			/* of labels, which are problems; the other copy is good */
	u32 nr_devices;
	int tier[TERRACE_MAX_TIERS];	/* number of the device, -1: missing */
	int meta_device;		/* the same for a metadata device, -1: none */
	struct metadata primary, mirror;
	const struct metadata *meta;	/* the area that is used: the newest that is good */
	const struct tr_super *super;	/* meta->super */
	u8 uuid[TERRACE_UUID_BYTES];
	const char *name;
};

/*
 * Opens the devices, checks labels and superblocks and how they fit together.
 * All that is wrong goes to @findings. 0: the volume can be read, if perhaps
 * with problems; -errno: it cannot.
 */
int volume_open(struct volume *vol, char **paths, int nr, enum device_mode mode,
		struct findings *findings);
void volume_close(struct volume *vol);

/* Meta blocks of one area. 0 or -errno. */
int metadata_read(const struct metadata *meta, u64 block, u64 nr, void *buf);

/* Blocks of a tier's data area. -ENODEV: the tier is missing. */
int volume_read_tier(const struct volume *vol, u32 tier, u64 index, u64 nr, void *buf);

/* The superblock's tier is made of another device than the one that is here: it was replaced, say. */
bool volume_has_stranger(const struct volume *vol, u32 tier);

/* The label of the tier's device and the superblock disagree about what it is and how much room it has. */
bool volume_has_misfit(const struct volume *vol, u32 tier);

/* Do two copies of a label say the same? */
bool volume_same_label(const struct tr_label *a, const struct tr_label *b);

/* The device's path, or "tier N". */
const char *volume_tier_name(const struct volume *vol, u32 tier);

/* What a decoder of core/format.h said, in words. */
const char *decode_strerror(int err);

#endif
