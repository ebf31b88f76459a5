/* SPDX-License-Identifier: GPL-2.0-or-later */
/* NVMe drives by their device number, to be asked what only they know. */
#ifndef TERRACE_NVME_DISK_H
#define TERRACE_NVME_DISK_H

#include <stdbool.h>

/* Nothing is asked of the drive. */
bool nvme_disk_is(unsigned int major, unsigned int minor);

/* A descriptor to read; -EOPNOTSUPP: no NVMe drive; -errno. */
int nvme_disk_open(unsigned int major, unsigned int minor);

#endif
