// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The node is the one that the kernel made: links by number, /dev/block, are udev's, and not everywhere.
 */
#include "nvme_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define NODE_BYTES	136

/* The node of a device number, whatever it is called: /sys/dev/block/M:N/uevent has DEVNAME. */
static int node_of(unsigned int major, unsigned int minor, char node[NODE_BYTES])
{
	char path[96], line[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/uevent", major, minor);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	node[0] = 0;
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "DEVNAME=", 8))
			snprintf(node, NODE_BYTES, "/dev/%s", line + 8);
	}
	fclose(f);
	return strncmp(node, "/dev/nvme", 9) ? -EOPNOTSUPP : 0;
}

bool nvme_disk_is(unsigned int major, unsigned int minor)
{
	char node[NODE_BYTES];

	return !node_of(major, minor, node);
}

int nvme_disk_open(unsigned int major, unsigned int minor)
{
	char node[NODE_BYTES];
	int err = node_of(major, minor, node);
	int fd = err ? err : open(node, O_RDONLY | O_CLOEXEC);

	return fd == -1 ? -errno : fd;
}
