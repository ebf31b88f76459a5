/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A drive or an image file, opened for reading or exclusively for writing.
 * Block devices are read and written past the page cache: a volume that was
 * in use a moment ago has changed them below it.
 */
#ifndef TERRACE_CTL_DEVICE_H
#define TERRACE_CTL_DEVICE_H

#include <stdbool.h>
#include <sys/types.h>

#include "core/place.h"

enum device_mode {
	DEVICE_SHARED,		/* read, also while in use */
	DEVICE_READ,		/* read, refused while in use */
	DEVICE_WRITE,		/* read and write, refused while in use */
};

struct device {
	const char *path;
	int fd;
	bool is_block;
	dev_t rdev;		/* of a block device */
	dev_t dev;		/* of a file: its filesystem */
	ino_t ino;
	u64 blocks;
	u32 logical_bytes;
	u32 align_blocks;	/* from the drive's physical block, a power of two */
	u32 atomic_bytes;	/* what the drive promises to write whole */
};

/* On failure prints why and returns -errno; @dev is then closed. */
int device_open(struct device *dev, const char *path, enum device_mode mode);
void device_close(struct device *dev);
bool device_same(const struct device *a, const struct device *b);

/*
 * Whole blocks, buffers from ctl_alloc_blocks(). 0 or -errno; -ENXIO beyond
 * the end. They print nothing.
 */
int device_read(const struct device *dev, u64 block, u64 nr, void *buf);
int device_write(const struct device *dev, u64 block, u64 nr, const void *buf);
int device_zero(const struct device *dev, u64 block, u64 nr);
int device_flush(const struct device *dev);
/* Best effort: nothing needs the contents. */
void device_discard(const struct device *dev, u64 block, u64 nr);

#endif
