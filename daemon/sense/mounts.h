/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The filesystems (ext4, xfs) that lie on a volume, and how: looked for in the list of mounts, and looked at again,
 * since a logical volume may move, and a filesystem may stay mounted elsewhere only.
 *
 * No folder stays open: that would keep a filesystem from being unmounted.
 */
#ifndef TERRACE_SENSE_MOUNTS_H
#define TERRACE_SENSE_MOUNTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "sense/extents.h"

#define MOUNTS		16	/* filesystems of a volume */
#define MOUNT_PATH	256

struct mount {
	unsigned int major, minor;
	char path[MOUNT_PATH];	/* "": free */
	char other[MOUNT_PATH];	/* where it is seen as well, while the list is read */
	bool xfs, told;
	uint8_t seen;
	uint64_t round;		/* when its stack was looked at */
	struct stack stack;
};

struct mounts_tell {
	/* 0, or -errno: it is not to be followed. */
	int (*mounted)(void *ctx, const struct mount *m);
	void (*unmounted)(void *ctx, const struct mount *m);
	/* Its blocks lie elsewhere on the volume now. */
	void (*restacked)(void *ctx, const struct mount *m);
	/* It lies on the volume, but will not be followed: once. */
	void (*refused)(void *ctx, const char *path, const char *why);
	void *ctx;
};

struct mounts {
	struct mounts_tell tell;
	unsigned int major, minor;	/* of the volume */
	uint64_t round;
	uint32_t nr_refused;
	uint32_t refused[MOUNTS];	/* the last ones that were told */
	struct mount mount[MOUNTS];
};

/* @ms is zeroed memory. */
void mounts_init(struct mounts *ms, unsigned int major, unsigned int minor, const struct mounts_tell *tell);
/* Reads the list of mounts. */
void mounts_look(struct mounts *ms);
/* A new moment: what lies below a filesystem is looked at again when it is next asked for. */
void mounts_round(struct mounts *ms);
/* The filesystem, as it lies on the volume in this moment; NULL: it does not, or not any more. */
const struct mount *mounts_now(struct mounts *ms, uint32_t dev);
uint32_t mounts_count(const struct mounts *ms);

static inline uint32_t mount_dev(const struct mount *m)
{
	return m->major << 20 | m->minor;
}

/* --- for their test ------------------------------------------------------------------ */

void mounts_read(struct mounts *ms, FILE *f);

#endif
