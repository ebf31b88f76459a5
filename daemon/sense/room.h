/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How full an NVMe drive that compresses is inside, from its own report: NUSE of NCAP of the namespace, through libnvme.
 * Of a partition it is the whole namespace's: what counts is whether the drive can take more.
 */
#ifndef TERRACE_SENSE_ROOM_H
#define TERRACE_SENSE_ROOM_H

#include <stdbool.h>

#include "port.h"

struct nvme_id_ns;

/*
 * What a namespace says of itself.  false: nothing.  A drive without thin provisioning may report NUSE
 * equal to NCAP at all times, whatever it holds: taken for full, it would be emptied for ever; nor is 0 a
 * report of it.  One that does count, and has come to its end, has said 90 % before, which the kernel part remembers.
 */
bool room_decode(const struct nvme_id_ns *ns, struct port_room *out);

/* Waits for the drive, a minute if it hangs. */
void room_read(unsigned int major, unsigned int minor, struct port_room *out);

#endif
