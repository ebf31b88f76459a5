/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Are two devices the same, byte by byte, while both are written to in step?
 * What differs may be a write that was on one side only when it was read: it
 * is looked at again, at last when nothing is written any more.
 */
#ifndef TERRACE_CTL_COMPARE_H
#define TERRACE_CTL_COMPARE_H

#include "device.h"

struct compare {
	struct device from, to;
	u64 *chunk;		/* that differed */
	u32 nr;
	u64 first, blocks, again_bytes;
	void *a, *b;
};

/*
 * From block @first on, up to @blocks. 0: the rest is few; -EINTR; or -errno
 * after a message. compare_free() in any case.
 */
int compare_devices(struct compare *c, const char *from, const char *to, u64 first, u64 blocks);

/* Its steps, for what nobody writes to: open; read all of it once, however much differs. */
int compare_open(struct compare *c, const char *from, const char *to, u64 first, u64 blocks);
int compare_read(struct compare *c);

/*
 * Nothing is written now: what differs still (discarded blocks can) is copied,
 * and read once more. Then @to is flushed.
 */
int compare_settle(struct compare *c);

void compare_free(struct compare *c);

#endif
