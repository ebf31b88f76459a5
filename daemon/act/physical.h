/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Drives that compress inside know how full they are; the kernel part must be told.  See
 * Documentation/decisions/0007-homes.md.
 */
#ifndef TERRACE_ACT_PHYSICAL_H
#define TERRACE_ACT_PHYSICAL_H

#include <stdint.h>
#include <time.h>

#include "port.h"

/* Of a volume; zeros at first.  Tiers, a bit each. */
struct physical_heard {
	uint32_t spoke;		/* their drives have said something once */
	uint32_t silent;	/* that they say nothing has been logged */
	uint32_t awaited;	/* their drives have been asked, and have not answered yet */
	time_t next;		/* when they are to be asked again */
};

/*
 * Sends on (message physical) what the drive of each tier of kind home of the volume (device numbers of its disk) has
 * answered to @health, as soon as it has: to be called in each tick, @now in seconds.  They are asked every two.  How many
 * drives said something; a drive that says nothing is no error, but logged, once by @heard.
 */
int physical_report(unsigned int major, unsigned int minor, struct health *health, time_t now, struct physical_heard *heard);

#endif
