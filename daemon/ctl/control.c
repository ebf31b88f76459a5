// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The control device of an active volume. See control.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "control.h"
#include "interrupt.h"
#include "sysfs.h"

#define PATIENCE_TENTHS	20	/* a new table takes less; then somebody should know */

int control_open(const struct dm_volume *v, struct terrace_hello *hello)
{
	char path[sizeof(TERRACE_DEVICE_FOLDER) + DM_NAME_BYTES];
	/* activated under another name it keeps the label's here */
	char *name = sysfs_line("/sys/fs/terrace/dm-%u/name", v->minor);
	int fd;

	snprintf(path, sizeof(path), TERRACE_DEVICE_FOLDER "/%.127s", name ? name : v->name);
	free(name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		fd = -errno;
		ctl_error("%s: cannot open: %s", path, strerror(-fd));
		return fd;
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

static bool is_suspended(const struct terrace_regions *ask)
{
	const struct terrace_region *region = (const void *)(uintptr_t)ask->regions;

	for (u32 i = 0; i < ask->nr; i++)
		if ((int)region[i].status == -EBUSY)
			return true;
	return false;
}

/* A suspended volume answers when it is resumed, as it then carries orders out. */
static int ask_regions(int fd, struct terrace_regions *ask)
{
	const struct timespec pause = { .tv_nsec = 100000000 };
	u32 nr = ask->nr, waited = 0;

	while (!ioctl(fd, TERRACE_IOC_REGIONS, ask) && ask->nr == nr) {
		if (!is_suspended(ask))
			return 0;
		if (interrupt_seen())
			return -EINTR;
		if (waited++ == PATIENCE_TENTHS)
			ctl_error("region %llu: the volume is suspended, waiting for its resume",
				  (unsigned long long)ask->first);
		nanosleep(&pause, NULL);
	}
	ctl_error("region %llu: cannot ask where its blocks are: %s", (unsigned long long)ask->first,
		  strerror(errno));
	return -EIO;
}

int control_regions(int fd, u64 first, u32 nr, struct terrace_region *region)
{
	struct terrace_regions ask = {
		.first = first, .nr = nr, .region_bytes = sizeof(*region),
		.regions = (uintptr_t)region,
	};

	return ask_regions(fd, &ask);
}

int control_region_on(int fd, u64 number, u32 tier, struct terrace_region *region)
{
	struct terrace_regions ask = {
		.first = number, .nr = 1, .region_bytes = sizeof(*region),
		.regions = (uintptr_t)region, .flags = TERRACE_REGIONS_TIER, .tier = tier,
	};

	return ask_regions(fd, &ask);
}

const char *const block_where_word[NR_BLOCK_WHERE] = { "nowhere", "fast", "fast+packed", "packed", "shelf" };
const char *const block_where_text[NR_BLOCK_WHERE] = {
	"nowhere (reads as zeros)", "fast", "fast, with its packed original", "packed", "on a shelf as it is",
};

enum block_where block_where(const struct terrace_region *region, u32 bit)
{
	bool packed = control_bit(region->packed, bit);

	if (!control_bit(region->present, bit))
		return packed ? BLOCK_PACKED : BLOCK_NOWHERE;
	if (!control_bit(region->fast, bit))
		return BLOCK_LOOSE;
	return packed ? BLOCK_BOTH : BLOCK_FAST;
}
