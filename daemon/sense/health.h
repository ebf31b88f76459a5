/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the drives under a volume's tiers say of themselves: their wear, read now and then, and their room, when that is wanted. */
#ifndef TERRACE_SENSE_HEALTH_H
#define TERRACE_SENSE_HEALTH_H

#include "port.h"

/*
 * Of the volume with this device number.  NULL: there is no memory for it, or with @unknown true, which drives it
 * has is not for us to know (the kernel tells that to CAP_SYS_ADMIN alone).
 */
struct health *health_open(unsigned int major, unsigned int minor, bool *unknown);

#endif
