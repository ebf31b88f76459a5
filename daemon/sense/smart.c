// SPDX-License-Identifier: GPL-2.0-or-later
/* Reading and decoding the log; see smart.h. */
#include "sense/smart.h"

#include <errno.h>
#include <fcntl.h>
#include <libnvme.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DATA_UNIT	(1000.0 * 512)
#define NODE_BYTES	136

/* 128 bits, little-endian: more than any drive will write in a double's 53 is only rounded. */
static double big(const uint8_t *bytes)
{
	double value = 0;

	for (int i = 15; i >= 0; i--)
		value = value * 256 + bytes[i];
	return value;
}

void smart_decode(const struct nvme_smart_log *log, struct smart *out)
{
	*out = (struct smart){
		.written_bytes = big(log->data_units_written) * DATA_UNIT,
		.percent_used = log->percent_used,
		.spare_percent = log->avail_spare, .spare_threshold = log->spare_thresh,
		.critical = log->critical_warning,
	};
}

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

bool smart_tells(unsigned int major, unsigned int minor)
{
	char node[NODE_BYTES];

	return !node_of(major, minor, node);
}

static int open_disk(unsigned int major, unsigned int minor)
{
	char node[NODE_BYTES];
	int err = node_of(major, minor, node);
	int fd = err ? err : open(node, O_RDONLY | O_CLOEXEC);

	return fd == -1 ? -errno : fd;
}

int smart_read(unsigned int major, unsigned int minor, struct smart *out)
{
	struct nvme_smart_log *log = calloc(1, sizeof(*log));
	int fd = log ? open_disk(major, minor) : -ENOMEM;
	int err = fd < 0 ? fd : nvme_get_log_smart(fd, NVME_NSID_ALL, true, log);

	/* Positive: a status of the drive. */
	if (err > 0)
		err = -EOPNOTSUPP;
	else if (err == -1)
		err = -errno;
	if (!err)
		smart_decode(log, out);
	if (fd >= 0)
		close(fd);
	free(log);
	return err;
}
