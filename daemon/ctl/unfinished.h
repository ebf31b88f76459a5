/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The mark of a volume that is being made. It stands in block 0 of each of its
 * devices before anything else of the volume is written, and the label, written
 * last, takes its place. So whatever was stopped midway is known for what it is,
 * and the same call makes it anew: nothing of worth can be there.
 *
 * A mark names the devices by the random UUIDs that their labels will have, so
 * that no label of another volume can be meant:
 *   mark                                      a volume that never was
 *   label that another device's mark names    the same
 *   label                                     a volume
 */
#ifndef TERRACE_CTL_UNFINISHED_H
#define TERRACE_CTL_UNFINISHED_H

#include "core/format.h"
#include "device.h"

/* Writes it and flushes. 0 or -errno. */
int unfinished_mark(const struct device *dev, const struct tr_label *label, u32 nr);

/* Has @dev a mark, or a label that the mark of one of the @nr devices names? */
bool unfinished_device(const struct device *dev, const struct device *all, u32 nr);

#endif
