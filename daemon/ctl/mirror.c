// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Asking the mirror target. See mirror.h.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "interrupt.h"
#include "mirror.h"
#include "term.h"

#define REGION_SECTORS	1024	/* its unit */

char *mirror_params(dev_t from, dev_t to, u64 sector)
{
	return ctl_text("core 1 %u 2 %u:%u %llu %u:%u %llu 1 handle_errors", REGION_SECTORS, major(from),
			minor(from), (unsigned long long)sector, major(to), minor(to),
			(unsigned long long)sector);
}

/* "2 253:1 253:2 17/128 1 AA 1 core" */
static int ask(const struct mirror *m, u64 *done, u64 *total)
{
	unsigned long long have, all;
	struct dm_line line;
	char health[16];
	int r = dm_status_part(m->name, m->part, &line);

	if (r)
		return r;
	if (sscanf(line.params, "2 %*s %*s %llu/%llu 1 %15s", &have, &all, health) != 3) {
		ctl_error("'%s' says '%s' of its copying, which terracectl does not understand", m->name,
			  line.params);
		return -EPROTO;
	}
	*done = have;
	*total = all;
	if (!strcmp(health, "AA"))
		return 0;
	ctl_error("%s failed", health[0] == 'A' ? m->to : m->from);
	return -EIO;
}

int mirror_copy(const struct mirror *m)
{
	const struct timespec pause = { .tv_nsec = 200000000 };
	u64 done = 0, total = 1;
	int r;

	for (;;) {
		r = ask(m, &done, &total);
		if (r || done == total)
			break;
		term_progress("copying", done, total);
		if (interrupt_seen())
			return -EINTR;
		nanosleep(&pause, NULL);
	}
	if (!r)
		term_progress("copying", total, total);
	return r;
}

int mirror_in_step(const struct mirror *m)
{
	u64 done, total;
	int r = ask(m, &done, &total);

	return r ? r : done == total ? 0 : -EAGAIN;
}
