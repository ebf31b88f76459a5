/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the sensor tells of files, as a test lets it happen. */
#ifndef FILE_EVENTS_H
#define FILE_EVENTS_H

#include <string.h>

#include "sense/files.h"

#define KB	1024ull
#define MB	(1024 * KB)
#define SIZE	(2 * MB)	/* of a table */

static struct files *files;
static uint64_t now;
static uint32_t process;
static uint8_t lost;		/* an event of this kind does not arrive, once */

static inline struct terrace_file_event event(uint8_t what, uint64_t inode, uint32_t thread)
{
	return (struct terrace_file_event){ .what = what, .inode = inode, .generation = 1, .dev = 7,
					    .thread = thread, .process = process, .size = SIZE, .nanoseconds = now };
}

static inline void happens(uint8_t what, uint64_t inode, uint32_t thread)
{
	struct terrace_file_event e = event(what, inode, thread);

	if (what == TERRACE_FILE_UNLINKED)
		e.size = 0;
	if (what != lost)
		files_event(files, &e);
	else
		lost = 0;
}

static inline void create(uint64_t inode, const char *name, uint32_t thread)
{
	struct terrace_file_event e = event(TERRACE_FILE_CREATED, inode, thread);

	strcpy(e.name, name);
	files_event(files, &e);
}

static inline void row(uint8_t what, uint64_t inode, uint32_t thread, uint64_t from, uint64_t to)
{
	struct terrace_file_event e = event(what, inode, thread);

	for (e.from = from; e.from < to; e.from = e.to) {
		e.to = e.from + TERRACE_FILE_STEP < to ? e.from + TERRACE_FILE_STEP : to;
		files_event(files, &e);
	}
}

static inline void table(uint64_t inode, uint32_t thread)
{
	create(inode, "000001.sst", thread);
	row(TERRACE_FILE_WRITTEN, inode, thread, 0, SIZE);
	happens(TERRACE_FILE_SYNCED, inode, thread);
	happens(TERRACE_FILE_CLOSED, inode, thread);
}

static inline void dies(uint64_t inode, uint32_t thread)
{
	happens(TERRACE_FILE_UNLINKED, inode, thread);
	happens(TERRACE_FILE_DIED, inode, thread);
}

#endif
