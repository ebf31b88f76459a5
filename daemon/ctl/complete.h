/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Are all devices of a volume there? Asked at boot, when they come one by one.
 */
#ifndef TERRACE_CTL_COMPLETE_H
#define TERRACE_CTL_COMPLETE_H

#include "find.h"

/* NULL: all are there. Else what is waited for ("tier 1"), to be freed. */
char *volume_lacks(const struct found_volume *v);

#endif
