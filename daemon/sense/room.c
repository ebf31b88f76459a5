// SPDX-License-Identifier: GPL-2.0-or-later
/* Identify of a namespace, decoded; see room.h. */
#include "sense/room.h"

#include <endian.h>
#include <errno.h>
#include <libnvme.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nvme_disk.h"

#define BLOCK_BYTES	4096u

bool room_decode(const struct nvme_id_ns *ns, struct port_room *out)
{
	unsigned int lba_shift = ns->lbaf[ns->flbas & 0xf].ds;
	uint64_t used = le64toh(ns->nuse), capacity = le64toh(ns->ncap);
	bool thin = ns->nsfeat & NVME_NS_FEAT_THIN;

	if (lba_shift < 9 || lba_shift > 30 || !capacity)
		return false;
	if (!thin && (!used || used >= capacity))
		return false;
	*out = (struct port_room){
		.used = (used << lba_shift) / BLOCK_BYTES, .limit = (capacity << lba_shift) / BLOCK_BYTES,
	};
	return true;
}

/* 0; positive: a status of the drive; -errno */
static int identify(unsigned int major, unsigned int minor, struct nvme_id_ns *ns)
{
	int fd = nvme_disk_open(major, minor);
	int err = fd < 0 ? fd : 0;
	__u32 nsid;

	if (err)
		return err;
	err = nvme_get_nsid(fd, &nsid);
	if (!err)
		err = nvme_identify_ns(fd, nsid, ns);
	if (err < 0)
		err = -errno;
	close(fd);
	return err;
}

void room_read(unsigned int major, unsigned int minor, struct port_room *out)
{
	struct nvme_id_ns *ns = calloc(1, sizeof(*ns));
	int err = ns ? identify(major, minor, ns) : -ENOMEM;

	if (!err && room_decode(ns, out)) {
		free(ns);
		return;
	}
	*out = (struct port_room){ 0 };
	if (err == -EOPNOTSUPP)
		snprintf(out->why, sizeof(out->why), "neither an NVMe drive nor a zram device with a limit");
	else if (err)
		snprintf(out->why, sizeof(out->why), "it cannot be asked: %s",
			 err < 0 ? strerror(-err) : nvme_status_to_string(err, false));
	else
		snprintf(out->why, sizeof(out->why), "NUSE is %llu of NCAP %llu blocks, %s thin provisioning",
			 (unsigned long long)le64toh(ns->nuse), (unsigned long long)le64toh(ns->ncap),
			 ns->nsfeat & NVME_NS_FEAT_THIN ? "with" : "without");
	free(ns);
}
