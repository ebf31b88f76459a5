/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's mirror target as a copier of devices in use: it copies, and
 * sends each write to both. Its log is in memory: it says what is in step,
 * never that a half written copy is the original.
 */
#ifndef TERRACE_CTL_MIRROR_H
#define TERRACE_CTL_MIRROR_H

#include <sys/types.h>

#include "dm.h"

struct mirror {
	const char *name;		/* of the device-mapper device */
	u32 part;			/* line of its table */
	const char *from, *to;		/* for messages */
};

/* Both from @sector on; to be freed. */
char *mirror_params(dev_t from, dev_t to, u64 sector);

/* Until all is in step. 0, -EINTR, or -errno after a message. */
int mirror_copy(const struct mirror *m);

/* 0; -EAGAIN: not yet; or -errno after a message. */
int mirror_in_step(const struct mirror *m);

#endif
