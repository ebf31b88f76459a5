// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a drive says of itself: in sysfs, and, if it is an NVMe drive, to Identify. What that
 * speaks for is judged in suggest.c.
 */
#include <endian.h>
#include <libnvme.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "classify.h"
#include "sysfs.h"

#define NVME_2_0	0x20000u

/* What an account points to. */
struct answers {
	char *name, *model, *transport, *zoned;
	struct nvme_id_ctrl ctrl;
	struct nvme_id_ns ns;
	struct nvme_id_independent_id_ns any_ns;
};

/* The whole disk's folder in sysfs, with what stands for it there. To be freed. */
static char *disk_folder(const struct device *dev)
{
	char *folder = ctl_text("/sys/dev/block/%u:%u", major(dev->rdev), minor(dev->rdev));
	char *queue = ctl_text("%s/queue", folder), *parent;

	if (!access(queue, F_OK)) {
		free(queue);
		return folder;
	}
	free(queue);
	parent = ctl_text("%s/..", folder);	/* a partition */
	free(folder);
	return parent;
}

static char *kernel_name(const char *folder)
{
	char *real = realpath(folder, NULL);
	char *name = real ? ctl_text("%s", strrchr(real, '/') + 1) : ctl_text("%s", "");

	free(real);
	return name;
}

static enum rotation rotation_of(const char *folder)
{
	switch (sysfs_number(2, "%s/queue/rotational", folder)) {
	case 0:
		return ROTATION_NONE;
	case 1:
		return ROTATION_SPINS;
	default:
		return ROTATION_UNTOLD;
	}
}

static void ask_kernel(const struct device *dev, struct answers *got, struct drive_account *drive)
{
	char *folder = disk_folder(dev);

	drive->name = got->name = kernel_name(folder);
	drive->model = got->model = sysfs_line("%s/device/model", folder);
	drive->transport = got->transport = sysfs_line("%s/device/transport", folder);
	drive->zoned = got->zoned = sysfs_line("%s/queue/zoned", folder);
	drive->rotation = rotation_of(folder);
	free(folder);
}

/* A drive older than NVMe 2.0 would note in its error log that it was asked what it does not know. */
static void ask_drive(const struct device *dev, struct answers *got, struct drive_account *drive)
{
	__u32 nsid;

	if (strncmp(drive->name, "nvme", 4) || nvme_identify_ctrl(dev->fd, &got->ctrl))
		return;
	drive->ctrl = &got->ctrl;
	if (nvme_get_nsid(dev->fd, &nsid))
		return;
	if (!nvme_identify_ns(dev->fd, nsid, &got->ns))
		drive->ns = &got->ns;
	if (le32toh(got->ctrl.ver) >= NVME_2_0 && !nvme_identify_independent_identify_ns(dev->fd, nsid, &got->any_ns))
		drive->any_ns = &got->any_ns;
}

struct suggestion classify(const struct device *dev)
{
	struct suggestion s = { .why = "not a block device" };
	struct drive_account drive = { 0 };
	struct answers *got;

	if (!dev->is_block)
		return s;
	got = ctl_alloc(sizeof(*got));
	ask_kernel(dev, got, &drive);
	ask_drive(dev, got, &drive);
	s = suggest(&drive);
	free(got->name);
	free(got->model);
	free(got->transport);
	free(got->zoned);
	free(got);
	return s;
}
