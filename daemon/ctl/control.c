// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The control device of an active volume. See control.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "control.h"

int control_open(const struct dm_volume *v, struct terrace_hello *hello)
{
	char path[sizeof(TERRACE_DEVICE_FOLDER) + DM_NAME_BYTES];
	int fd;

	snprintf(path, sizeof(path), TERRACE_DEVICE_FOLDER "/%s", v->name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		ctl_error("%s: cannot open: %s", path, strerror(errno));
		return -errno;
	}
	memset(hello, 0, sizeof(*hello));
	hello->bytes = sizeof(*hello);
	hello->min_version = TERRACE_ABI_MIN;
	hello->max_version = TERRACE_ABI_MAX;
	if (!ioctl(fd, TERRACE_IOC_HELLO, hello))
		return fd;
	if (errno == EPROTONOSUPPORT)
		ctl_error("the module speaks versions %u to %u of this device, terracectl %u to %u: install the two together",
			  hello->min_version, hello->max_version, TERRACE_ABI_MIN, TERRACE_ABI_MAX);
	else
		ctl_error("%s: %s", path, strerror(errno));
	close(fd);
	return -EPROTO;
}

int control_regions(int fd, u64 first, u32 nr, struct terrace_region *region)
{
	struct terrace_regions ask = {
		.first = first, .nr = nr, .region_bytes = sizeof(*region),
		.regions = (uintptr_t)region,
	};

	if (!ioctl(fd, TERRACE_IOC_REGIONS, &ask) && ask.nr == nr)
		return 0;
	ctl_error("region %llu: cannot ask where its blocks are: %s", (unsigned long long)first,
		  strerror(errno));
	return -EIO;
}
