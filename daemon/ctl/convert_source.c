// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The device whose data a new volume takes. Nothing is written to it, by us or
 * by others:
 *
 *	not mounted	it is opened exclusively, so that nobody can mount it
 *	mounted ro	it stays so, and can be read
 *	anyone else	(dd, a remount) shows in its count of writes
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <linux/fs.h>

#include "convert.h"
#include "ctl.h"
#include "names.h"
#include "probe.h"
#include "sysfs.h"

/* Its filesystem is mounted, and nowhere such that it could be written. */
static bool mounted_read_only(dev_t rdev)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL, *rest;
	bool mounted = false, writable = false;
	size_t room = 0;

	while (f && getline(&line, &room, f) > 0) {
		unsigned int maj, min;
		char options[16];

		rest = strstr(line, " - ");
		if (sscanf(line, "%*d %*d %u:%u ", &maj, &min) != 2 || makedev(maj, min) != rdev || !rest ||
		    sscanf(rest, " - %*s %*s %15s", options) != 1)
			continue;
		mounted = true;
		writable |= strncmp(options, "ro", 2) || (options[2] && options[2] != ',');
	}
	free(line);
	if (f)
		fclose(f);
	return mounted && !writable;
}

/* Writes and discards that ended; an image file has its time of change. */
static u64 count_writes(const struct device *dev)
{
	unsigned long long writes = 0, discards = 0;
	struct stat st;
	char *line;

	if (!dev->is_block)
		return fstat(dev->fd, &st) ? 0 : (u64)st.st_mtim.tv_sec * 1000000000u + (u64)st.st_mtim.tv_nsec;
	line = sysfs_line("/sys/dev/block/%u:%u/stat", major(dev->rdev), minor(dev->rdev));
	if (line)
		sscanf(line, "%*u %*u %*u %*u %llu %*u %*u %*u %*u %*u %*u %llu", &writes, &discards);
	free(line);
	return writes + discards;
}

static int read_bytes(struct source *s)
{
	struct stat st;

	s->bytes = 0;
	if (s->dev.is_block && ioctl(s->dev.fd, BLKGETSIZE64, &s->bytes))
		return -errno;
	if (!s->dev.is_block && !fstat(s->dev.fd, &st))
		s->bytes = (u64)st.st_size;
	s->blocks = (s->bytes + TERRACE_BLOCK_BYTES - 1) / TERRACE_BLOCK_BYTES;
	return s->blocks ? 0 : -ENODATA;
}

int source_open(struct source *s, const char *path)
{
	struct stat st;
	int r;

	s->mounted = !stat(path, &st) && S_ISBLK(st.st_mode) && mounted_read_only(st.st_rdev);
	r = device_open(&s->dev, path, s->mounted ? DEVICE_SHARED : DEVICE_READ);
	if (r == -EBUSY)
		ctl_error("what is copied must not change: unmount it, or mount -o remount,ro; then the same call");
	if (r)
		return r;
	r = read_bytes(s);
	if (r) {
		ctl_error("%s: cannot tell its size: %s", path, strerror(-r));
		device_close(&s->dev);
		return r;
	}
	s->writes = count_writes(&s->dev);
	return 0;
}

bool source_written(const struct source *s)
{
	bool written = count_writes(&s->dev) != s->writes;

	if (!written && s->mounted && !mounted_read_only(s->dev.rdev))
		written = true;	/* unmounted, or remounted */
	if (written)
		ctl_error("%s was written to, or unmounted, while it was copied: leave it alone, then the same call",
			  s->dev.path);
	return written;
}

static bool has_label(const struct device *dev)
{
	void *block = ctl_alloc_blocks(1);
	struct tr_label label;
	bool has = dev->blocks && !device_read(dev, 0, 1, block) && !tr_label_decode(&label, block);

	free(block);
	return has;
}

int source_refuse(const struct source *s)
{
	const char *path = s->dev.path;
	char *table = NULL;
	u32 unit = 0;
	int r;

	if (has_label(&s->dev)) {
		ctl_error("%s is a device of a Terrace volume already: terracectl label %s says of which", path, path);
		return CTL_PROBLEM;
	}
	r = probe_units(&s->dev, &unit, &table);
	if (r)
		ctl_error("%s: cannot be read: %s", path, strerror(-r));
	else if (table)
		ctl_error("%s has a %s partition table, which counts in sectors of %u bytes; a volume has sectors of %u: convert its partitions one by one",
			  path, table, s->dev.logical_bytes, TERRACE_BLOCK_BYTES);
	else if (unit && unit < TERRACE_BLOCK_BYTES)
		ctl_error("what is on %s reads and writes units of %u bytes; a volume has sectors of %u, where it could not be mounted: terracectl create, a new filesystem, and copy the files",
			  path, unit, TERRACE_BLOCK_BYTES);
	r = r || table || (unit && unit < TERRACE_BLOCK_BYTES);
	free(table);
	return r ? CTL_PROBLEM : CTL_OK;
}
