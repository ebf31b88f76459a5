// SPDX-License-Identifier: GPL-2.0-or-later
/* Reading and decoding the log; see smart.h. */
#include "sense/smart.h"

#include <errno.h>
#include <libnvme.h>
#include <stdlib.h>
#include <unistd.h>

#include "nvme_disk.h"

#define DATA_UNIT	(1000.0 * 512)

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

int smart_read(unsigned int major, unsigned int minor, struct smart *out)
{
	struct nvme_smart_log *log = calloc(1, sizeof(*log));
	int fd = log ? nvme_disk_open(major, minor) : -ENOMEM;
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
