/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What class of drive is it? Proposed, never decided: the plan is shown. What no class can be is refused.
 */
#ifndef TERRACE_CTL_CLASSIFY_H
#define TERRACE_CTL_CLASSIFY_H

#include "device.h"

/* 0 when nothing speaks for any. *@why: a phrase, static. */
u32 classify(const struct device *dev, const char **why);

/* A drive that refuses writes out of the order of its zones: no tier. */
bool classify_zoned(const struct device *dev);

#endif
