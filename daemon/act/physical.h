/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Drives that compress inside know how full they are; the kernel part must be told.  See
 * Documentation/decisions/0007-homes.md.
 */
#ifndef TERRACE_ACT_PHYSICAL_H
#define TERRACE_ACT_PHYSICAL_H

#include <stdint.h>

/*
 * Asks the drive of each tier of kind home of the volume (device numbers of its disk) and sends it
 * on (message physical).  How many drives said something; a drive that says nothing is no error.
 */
int physical_report(unsigned int major, unsigned int minor);

#endif
