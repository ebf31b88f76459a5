/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What class and kind of drive is it? Proposed, never decided: the plan is shown. What no class can be is refused.
 */
#ifndef TERRACE_CTL_CLASSIFY_H
#define TERRACE_CTL_CLASSIFY_H

#include "device.h"
#include "suggest.h"

/* Asks the drive, and judges. */
struct suggestion classify(const struct device *dev);

#endif
