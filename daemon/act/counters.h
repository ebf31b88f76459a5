/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A volume's counters and tunables, in sysfs: what each tick reads of it, as a struct port_state.
 */
#ifndef TERRACE_ACT_COUNTERS_H
#define TERRACE_ACT_COUNTERS_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "act/cpu_time.h"
#include "act/physical.h"
#include "port.h"

#define COUNTERS_FOLDER	"/sys/fs/terrace"
#define COUNTERS_KEPT	96u

/* A file that each tick reads: opening it costs three times what reading it does. */
struct kept {
	char name[40];
	int fd;
};

struct counters {
	char disk[32];			/* dm-3 */
	unsigned int major, minor;
	uint64_t last_writes[TERRACE_MAX_RESULT_TIERS];
	uint64_t last_ios, last_sectors;
	uint64_t written_blocks[TERRACE_MAX_RESULT_TIERS];
	struct physical_heard heard;
	struct cpu_time cpu;
	struct kept kept[COUNTERS_KEPT];
	uint32_t nr_kept, next_kept;
};

/* The volume of that name: its disk.  @c: zeros at first; no more calls after one that failed. */
int counters_find(struct counters *c, const char *name);
void counters_close(struct counters *c);

/* Its state; -ENODEV: it has gone, or has another size than @of_blocks.  @health: of its drives, or NULL. */
int counters_read(struct counters *c, uint32_t nr_tiers, uint64_t of_blocks, struct health *health, struct port_state *out);

/* One number; @name: relative to the volume's folder. */
int counters_number(struct counters *c, const char *name, uint64_t *out);

/* Sets a tunable.  0 or -errno. */
int counters_set(const struct counters *c, const char *name, uint32_t n);

/* The first line of any file; -ENODEV: there is none. */
int first_line_of(const char *path, char *line, size_t bytes);

#endif
