// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Classes from what sysfs says: the driver's name, the NVMe model and
 * transport, rotation. That flash is QLC no drive tells, only its model name.
 */
#include <libnvme.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "classify.h"
#include "names.h"
#include "sysfs.h"

static const struct {
	const char *model;	/* part of the name */
	u32 class;
} models[] = {
	{ "Optane", TERRACE_CLASS_OPTANE }, { "INTEL SSDPED1", TERRACE_CLASS_OPTANE },
	{ "INTEL SSDPE21", TERRACE_CLASS_OPTANE }, { "SSDPF21", TERRACE_CLASS_OPTANE },
	{ "XL-FLASH", TERRACE_CLASS_OPTANE },
	{ "QLC", TERRACE_CLASS_QLC }, { "SSDPEKNW", TERRACE_CLASS_QLC },
	{ "SSDPEKNU", TERRACE_CLASS_QLC }, { "SSDPEVNV", TERRACE_CLASS_QLC },
	{ "SSDPF2NV", TERRACE_CLASS_QLC }, { "SSDPFWNV", TERRACE_CLASS_QLC },
	{ "QVO", TERRACE_CLASS_QLC }, { "MTFDDAK7T6QDE", TERRACE_CLASS_QLC },
	{ "6500_ION", TERRACE_CLASS_QLC }, { "5210", TERRACE_CLASS_QLC },
	{ "ScaleFlux", TERRACE_CLASS_CSD }, { "CSD", TERRACE_CLASS_CSD },
};

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

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

/* The controller says it even where the namespace hides behind multipath. */
static char *nvme_model(const struct device *dev)
{
	struct nvme_id_ctrl *id = calloc(1, sizeof(*id));
	char *model = NULL;

	if (id && !nvme_identify_ctrl(dev->fd, id))
		model = ctl_text("%.*s", (int)sizeof(id->mn), id->mn);
	free(id);
	return model;
}

static u32 class_of_model(const struct device *dev, const char *folder, bool nvme)
{
	char *model = nvme ? nvme_model(dev) : NULL;
	u32 class = 0;

	if (!model)
		model = sysfs_line("%s/device/model", folder);
	for (size_t i = 0; model && !class && i < sizeof(models) / sizeof(models[0]); i++)
		if (strstr(model, models[i].model))
			class = models[i].class;
	free(model);
	return class;
}

static bool is_remote(const char *folder, const char *name)
{
	char *transport = sysfs_line("%s/device/transport", folder);
	bool remote = begins(name, "nbd") || begins(name, "rbd") || begins(name, "drbd");

	if (transport)
		remote |= !strcmp(transport, "tcp") || !strcmp(transport, "rdma") ||
			  !strcmp(transport, "fc");
	free(transport);
	return remote;
}

static u32 judge(const struct device *dev, const char *folder, const char *name, const char **why)
{
	bool nvme = begins(name, "nvme");
	u32 class;

	*why = "reached over a network";
	if (is_remote(folder, name))
		return TERRACE_CLASS_NET;
	*why = "by its model name";
	class = class_of_model(dev, folder, nvme);
	if (class)
		return class;
	*why = "persistent memory";
	if (begins(name, "pmem"))
		return TERRACE_CLASS_OPTANE;
	*why = "compresses inside";
	if (begins(name, "zram"))
		return TERRACE_CLASS_CSD;
	*why = "an NVMe drive";
	if (nvme)
		return TERRACE_CLASS_NVME;
	*why = "it rotates";
	if (sysfs_number(2, "%s/queue/rotational", folder) == 1)
		return TERRACE_CLASS_HDD;
	*why = "flash: it does not rotate";
	return sysfs_number(2, "%s/queue/rotational", folder) == 0 ? TERRACE_CLASS_NVME : 0;
}

u32 classify(const struct device *dev, const char **why)
{
	char *folder, *name;
	u32 class;

	*why = "not a block device";
	if (!dev->is_block)
		return 0;
	folder = disk_folder(dev);
	name = kernel_name(folder);
	class = judge(dev, folder, name, why);
	free(name);
	free(folder);
	return class;
}

bool classify_zoned(const struct device *dev)
{
	char *folder, *model;
	bool zoned;

	if (!dev->is_block)
		return false;
	folder = disk_folder(dev);
	model = sysfs_line("%s/queue/zoned", folder);
	zoned = model && !strcmp(model, "host-managed");
	free(model);
	free(folder);
	return zoned;
}
