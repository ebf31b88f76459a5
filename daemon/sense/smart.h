/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an NVMe drive says of its own wear: SMART / Health Information, log page 2, through libnvme.
 *
 * Data units written are thousands of 512-byte units, rounded up, over the drive's life; percentage used is the
 * maker's estimate and may exceed 100.
 */
#ifndef TERRACE_SENSE_SMART_H
#define TERRACE_SENSE_SMART_H

#include <stdint.h>

struct nvme_smart_log;

struct smart {
	double written_bytes;	/* by all hosts' writes, since the drive was made */
	uint32_t percent_used;
	uint32_t spare_percent, spare_threshold;
	uint32_t critical;	/* bits of the critical warning */
};

void smart_decode(const struct nvme_smart_log *log, struct smart *out);

/* -EOPNOTSUPP: no NVMe drive, or one without the log; -errno. */
int smart_read(unsigned int major, unsigned int minor, struct smart *out);

#endif
