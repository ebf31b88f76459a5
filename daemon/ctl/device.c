// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Drives and image files. See device.h.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <linux/fs.h>

#include "ctl.h"
#include "device.h"
#include "nvme.h"

#define ZERO_BLOCKS 256u

/* ---- who uses it ------------------------------------------------------------ */

/* The first mount point of @rdev, or NULL; to be freed. */
static char *find_mount(dev_t rdev)
{
	char *line = NULL, *found = NULL;
	FILE *f = fopen("/proc/self/mountinfo", "re");
	size_t room = 0;

	while (f && !found && getline(&line, &room, f) > 0) {
		unsigned int maj, min;
		char point[4096];

		if (sscanf(line, "%*d %*d %u:%u %*s %4095s", &maj, &min, point) == 3 &&
		    makedev(maj, min) == rdev)
			found = ctl_text("mounted at %s", point);
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}

/* The first device that is stacked on @rdev, or NULL; to be freed. */
static char *find_holder(dev_t rdev)
{
	char *path = ctl_text("/sys/dev/block/%u:%u/holders", major(rdev), minor(rdev));
	DIR *dir = opendir(path);
	char *found = NULL;
	struct dirent *entry;

	while (dir && !found) {
		entry = readdir(dir);
		if (!entry)
			break;
		if (entry->d_name[0] != '.')
			found = ctl_text("part of /dev/%s", entry->d_name);
	}
	if (dir)
		closedir(dir);
	free(path);
	return found;
}

static void print_busy(const char *path, dev_t rdev)
{
	char *why = find_mount(rdev);

	if (!why)
		why = find_holder(rdev);
	ctl_error("%s is in use: %s", path,
		  why ? why : "mounted, swap, or held by another program");
	free(why);
}

/* ---- what it is like ----------------------------------------------------------- */

/* A number from the drive's queue folder in sysfs, 0 if it is not there. */
static u64 queue_number(dev_t rdev, const char *name)
{
	static const char *const format[] = {
		"/sys/dev/block/%u:%u/queue/%s", "/sys/dev/block/%u:%u/../queue/%s",
	};
	unsigned long long number = 0;

	for (int i = 0; i < 2 && !number; i++) {
		char *path = NULL;
		FILE *f;

		if (asprintf(&path, format[i], major(rdev), minor(rdev), name) < 0)
			return 0;
		f = fopen(path, "re");
		if (f && fscanf(f, "%llu", &number) != 1)
			number = 0;
		if (f)
			fclose(f);
		free(path);
	}
	return number;
}

static u32 power_of_two_below(u64 n)
{
	u32 power = 1;

	while (2ull * power <= n && power < TERRACE_CHUNK_BLOCKS)
		power *= 2;
	return power;
}

/*
 * A sector is written whole or not at all, so a drive with 4 KiB sectors is
 * atomic as it stands; one with smaller sectors only if it says so: to the
 * kernel (6.11 and later), or by NVMe's own means.
 */
static void read_limits(struct device *dev)
{
	u64 physical = queue_number(dev->rdev, "physical_block_size");
	u64 unit = queue_number(dev->rdev, "minimum_io_size");
	u64 atomic = queue_number(dev->rdev, "atomic_write_unit_max_bytes");
	int logical = 512;

	if (!atomic)
		atomic = nvme_atomic_bytes(dev->fd);
	ioctl(dev->fd, BLKSSZGET, &logical);
	dev->logical_bytes = logical;
	if (unit > physical && unit <= TERRACE_BLOCK_BYTES * 256)
		physical = unit;
	dev->align_blocks = power_of_two_below(physical / TERRACE_BLOCK_BYTES);
	dev->atomic_bytes = atomic > dev->logical_bytes ? atomic : dev->logical_bytes;
}

static int read_size(struct device *dev, const struct stat *st)
{
	u64 bytes = st->st_size;

	if (dev->is_block && ioctl(dev->fd, BLKGETSIZE64, &bytes))
		return -errno;
	dev->blocks = bytes / TERRACE_BLOCK_BYTES;
	return 0;
}

/* ---- open, close ------------------------------------------------------------------ */

static int open_flags(bool is_block, enum device_mode mode)
{
	int flags = O_CLOEXEC | (mode == DEVICE_WRITE ? O_RDWR : O_RDONLY);

	if (is_block)
		flags |= O_DIRECT | (mode == DEVICE_SHARED ? 0 : O_EXCL);
	return flags;
}

/* An image file has no exclusive open; a lock keeps two of us apart. */
static int lock_file(const struct device *dev, enum device_mode mode)
{
	int how = mode == DEVICE_WRITE ? LOCK_EX : LOCK_SH;

	if (dev->is_block || mode == DEVICE_SHARED || !flock(dev->fd, how | LOCK_NB))
		return 0;
	return errno == EWOULDBLOCK ? -EBUSY : 0;
}

int device_open(struct device *dev, const char *path, enum device_mode mode)
{
	struct stat st;
	int r;

	memset(dev, 0, sizeof(*dev));
	dev->path = path;
	dev->fd = -1;
	dev->align_blocks = 1;
	dev->logical_bytes = 512;
	dev->atomic_bytes = 512;
	if (stat(path, &st)) {
		r = -errno;
		ctl_error("%s: %s%s", path, strerror(-r), r != -ENOENT || strchr(path, '/') ? "" :
			  " (a device is wanted here; terracectl list names those of a volume)");
		return r;
	}
	if (!S_ISBLK(st.st_mode) && !S_ISREG(st.st_mode)) {
		ctl_error("%s is neither a block device nor an image file", path);
		return -ENOTBLK;
	}
	dev->is_block = S_ISBLK(st.st_mode);
	dev->rdev = st.st_rdev;
	dev->dev = st.st_dev;
	dev->ino = st.st_ino;
	dev->fd = open(path, open_flags(dev->is_block, mode));
	r = dev->fd < 0 ? -errno : read_size(dev, &st);
	if (!r)
		r = lock_file(dev, mode);
	if (r == -EBUSY)
		print_busy(path, dev->is_block ? dev->rdev : 0);
	else if (r)
		ctl_error("%s: cannot open: %s", path, strerror(-r));
	if (r)
		device_close(dev);
	else if (dev->is_block)
		read_limits(dev);
	return r;
}

void device_close(struct device *dev)
{
	if (dev->fd >= 0)
		close(dev->fd);
	dev->fd = -1;
}

bool device_same(const struct device *a, const struct device *b)
{
	if (a->is_block != b->is_block)
		return false;
	return a->is_block ? a->rdev == b->rdev : a->dev == b->dev && a->ino == b->ino;
}

/* ---- reading and writing ------------------------------------------------------------- */

static bool in_range(const struct device *dev, u64 block, u64 nr)
{
	return block <= dev->blocks && nr <= dev->blocks - block;
}

int device_read(const struct device *dev, u64 block, u64 nr, void *buf)
{
	off_t offset = block << TERRACE_BLOCK_SHIFT;
	size_t left = nr << TERRACE_BLOCK_SHIFT;
	char *to = buf;

	if (!in_range(dev, block, nr))
		return -ENXIO;
	while (left) {
		ssize_t n = pread(dev->fd, to, left, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		to += n;
		offset += n;
		left -= n;
	}
	return 0;
}

int device_write(const struct device *dev, u64 block, u64 nr, const void *buf)
{
	off_t offset = block << TERRACE_BLOCK_SHIFT;
	size_t left = nr << TERRACE_BLOCK_SHIFT;
	const char *from = buf;

	if (!in_range(dev, block, nr))
		return -ENXIO;
	while (left) {
		ssize_t n = pwrite(dev->fd, from, left, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		from += n;
		offset += n;
		left -= n;
	}
	return 0;
}

int device_zero(const struct device *dev, u64 block, u64 nr)
{
	void *zeros = ctl_alloc_blocks(nr < ZERO_BLOCKS ? nr : ZERO_BLOCKS);
	int r = 0;

	while (nr && !r) {
		u64 n = nr < ZERO_BLOCKS ? nr : ZERO_BLOCKS;

		r = device_write(dev, block, n, zeros);
		block += n;
		nr -= n;
	}
	free(zeros);
	return r;
}

int device_flush(const struct device *dev)
{
	return fsync(dev->fd) ? -errno : 0;
}

void device_discard(const struct device *dev, u64 block, u64 nr)
{
	u64 range[2] = { block << TERRACE_BLOCK_SHIFT, nr << TERRACE_BLOCK_SHIFT };

	if (dev->is_block)
		(void)!ioctl(dev->fd, BLKDISCARD, range);
}
