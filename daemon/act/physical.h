/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Drives that compress inside know how full they are; the kernel part must be told.  See
 * Documentation/decisions/0007-homes.md.
 */
#ifndef TERRACE_ACT_PHYSICAL_H
#define TERRACE_ACT_PHYSICAL_H

#include <stdbool.h>
#include <stdint.h>

struct nvme_id_ns;

struct physical_room {
	uint64_t used, limit;	/* blocks of 4 KiB */
};

/*
 * What a namespace says of itself.  false: nothing.  A drive without thin provisioning may report NUSE
 * equal to NCAP at all times, whatever it holds: taken for full, it would be emptied for ever.  One that
 * does count, and has come to its end, has said 90 % before, which the kernel part remembers.
 */
bool physical_decode(const struct nvme_id_ns *ns, struct physical_room *room);

/* Tiers, a bit each. */
struct physical_heard {
	uint32_t spoke;		/* their drives have said something once */
	uint32_t silent;	/* that they say nothing has been logged */
};

/*
 * Asks the drive of each tier of kind home of the volume (device numbers of its disk) and sends it
 * on (message physical).  How many drives said something; a drive that says nothing is no error,
 * but logged, once by @heard.
 */
int physical_report(unsigned int major, unsigned int minor, struct physical_heard *heard);

#endif
