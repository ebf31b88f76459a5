/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The present life of a shelf. Its id stands where the table begins, in an owner
 * block that names nothing, or, once the shelf is closed, in the table: written,
 * durably, before anything else of this life.
 *
 * Record numbers do not tell lives apart. Crash scenario: an owner block says 1000 when
 * the power fails, the journal ends at 950. Nothing on the shelf is mapped then, so it
 * is opened again; its new life begins with the numbers 951 and up.
 */
#ifndef TERRACE_CTL_LIFE_H
#define TERRACE_CTL_LIFE_H

#include "volume.h"

/* Of the shelf that begins at @first; @buf takes a block. false: nothing says so. */
bool life_read(const struct volume *vol, const u8 *uuid, u32 tier, u64 first, void *buf, u64 *id);

#endif
