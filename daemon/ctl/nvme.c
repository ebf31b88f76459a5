// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Power-fail atomicity of an NVMe namespace: AWUPF of the controller, or
 * NAWUPF where the namespace has values of its own (NSABP), both in logical
 * blocks and counted from 0. Where atomic boundaries (NABSPF) are set, a write
 * across one is not atomic.
 */
#include <endian.h>
#include <libnvme.h>
#include <stdlib.h>

#include "nvme.h"

#define BLOCK_BYTES 4096u

static unsigned int lba_bytes(const struct nvme_id_ns *ns)
{
	unsigned int format = ns->flbas & 0xf;

	return 1u << ns->lbaf[format].ds;
}

static unsigned int judge(const struct nvme_id_ctrl *ctrl, const struct nvme_id_ns *ns)
{
	unsigned int lba = lba_bytes(ns);
	unsigned int blocks = le16toh(ctrl->awupf) + 1u;

	if (ns->nsfeat & 2)
		blocks = le16toh(ns->nawupf) + 1u;
	if (ns->nabspf) {
		unsigned int boundary = (le16toh(ns->nabspf) + 1u) * lba;

		if (boundary % BLOCK_BYTES || le16toh(ns->nabo) * lba % BLOCK_BYTES)
			return lba;
	}
	return blocks * lba;
}

unsigned int nvme_atomic_bytes(int fd)
{
	struct nvme_id_ctrl *ctrl = calloc(1, sizeof(*ctrl));
	struct nvme_id_ns *ns = calloc(1, sizeof(*ns));
	unsigned int bytes = 0;
	__u32 nsid;

	if (ctrl && ns && !nvme_get_nsid(fd, &nsid) && !nvme_identify_ctrl(fd, ctrl) &&
	    !nvme_identify_ns(fd, nsid, ns) && ns->lbaf[ns->flbas & 0xf].ds >= 9 &&
	    ns->lbaf[ns->flbas & 0xf].ds < 31)
		bytes = judge(ctrl, ns);
	free(ctrl);
	free(ns);
	return bytes;
}
