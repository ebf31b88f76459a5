/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The superblocks of a volume that stands still: its shape without its pages.
 */
#ifndef TERRACE_CTL_SUPERS_H
#define TERRACE_CTL_SUPERS_H

#include "find.h"

/* The newest there is, also of a volume in use. 0, or -errno after a message. */
int supers_read(const struct found_volume *v, struct tr_super *super);

/*
 * Gives every copy the tiers of @super, in a superblock of the next generation:
 * the one that activation goes by first, so that no other is ever ahead of it; those
 * that the volume went on without stay as they are. Refuses a volume that was not
 * stopped cleanly. 0, or -errno after a message.
 */
int supers_write_tiers(const struct found_volume *v, const struct tr_super *super);

#endif
