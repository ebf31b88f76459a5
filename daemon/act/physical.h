/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Drives that compress inside know how full they are; the kernel part must be told.  See
 * Documentation/decisions/0007-homes.md.
 */
#ifndef TERRACE_ACT_PHYSICAL_H
#define TERRACE_ACT_PHYSICAL_H

#include <stdint.h>

#include "port.h"

/* Tiers, a bit each. */
struct physical_heard {
	uint32_t spoke;		/* their drives have said something once */
	uint32_t silent;	/* that they say nothing has been logged */
};

/*
 * Sends on (message physical) what the drive of each tier of kind home of the volume (device numbers of its disk) has
 * answered to @health, which asks it anew meanwhile.  How many drives said something; a drive that says nothing is no
 * error, but logged, once by @heard.
 */
int physical_report(unsigned int major, unsigned int minor, struct health *health, struct physical_heard *heard);

#endif
