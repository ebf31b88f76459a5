/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A volume that is to be stopped stands still first, and is asked whether it
 * could write down all that it has acknowledged. Stopped all the same, it would
 * lose that without a word: what starts next does not know of it, and its next
 * flush would succeed.
 */
#ifndef TERRACE_CTL_QUIET_H
#define TERRACE_CTL_QUIET_H

#include "dm.h"

/*
 * Suspends @device, which runs the volume that is used as @name. -EROFS: it
 * runs on, after a message that says what would be lost, and the way out; or
 * another -errno after a message.
 */
int quiet_begin(const char *device, const char *name);

/* It runs on, as it did: what was loaded in its place is dropped. */
void quiet_end(const char *device);

#endif
