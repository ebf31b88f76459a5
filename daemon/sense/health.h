/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The wear of the drives under a volume's tiers: SMART, read now and then. */
#ifndef TERRACE_SENSE_HEALTH_H
#define TERRACE_SENSE_HEALTH_H

#include "port.h"

/*
 * Of the volume with this device number.  NULL: none of its drives tells, or with @unknown true, which drives it has is
 * not for us to know (the kernel tells that to CAP_SYS_ADMIN alone).
 */
struct health *health_open(unsigned int major, unsigned int minor, bool *unknown);

#endif
