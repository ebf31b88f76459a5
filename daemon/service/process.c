// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a process needs that storage waits for: memory that is never paged out to the volume it
 * serves, and allocations that do not wait for that volume's writeback.
 *
 * Either may be refused (containers); the daemon then runs without, and says so.  And as many open files as it is
 * allowed, for some dozens are kept open of each volume.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "log.h"
#include "service/service.h"

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#endif

void process_open_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);	/* refused: enough for a dozen volumes all the same */
}

void process_lock_memory(struct service *s)
{
	if (s->locked == s->config.lock_memory)
		return;
	if (s->locked)
		munlockall();
	else if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT))
		log_line(LOG_LEVEL_WARNING, NULL, "memory cannot be locked (%s): swap on a volume of ours could stall us",
			 strerror(errno));
	else
		s->locked = true;
	s->locked = s->locked && s->config.lock_memory;
}

void process_flush_io(void)
{
	if (prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0))
		log_line(LOG_LEVEL_WARNING, NULL, "not allowed to be an I/O flusher (%s)", strerror(errno));
}
