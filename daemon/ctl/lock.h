/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One at a time changes a volume's tables: who does has a lock on
 * /run/terrace/UUID.lock until it ends, however it ends.
 */
#ifndef TERRACE_CTL_LOCK_H
#define TERRACE_CTL_LOCK_H

#include "dm.h"

/* Does not wait. 0, also when this program has it; -EBUSY or another -errno after a message that says who has it. */
int lock_volume(const u8 *uuid, const char *name);

/* Of one that is active, also if it was made with dmsetup by hand. */
int lock_active(const struct dm_volume *volume);

#endif
