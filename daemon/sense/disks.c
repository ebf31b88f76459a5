// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The disks under a volume's tiers, for who asks for their wear: from the table line,
 * "META N {DEV CLASS KIND}...", where the kernel writes devices as MAJOR:MINOR.  A partition is
 * its disk; a tier on another stacked device has no requests of its own.
 */
#include <libdevmapper.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sense/heat.h"

static bool is_there(const char *format, unsigned int major, unsigned int minor)
{
	char path[96];

	snprintf(path, sizeof(path), format, major, minor);
	return !access(path, F_OK);
}

static uint32_t disk_of(unsigned int major, unsigned int minor)
{
	char path[64];
	FILE *f;

	if (is_there("/sys/dev/block/%u:%u/partition", major, minor)) {
		snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/../dev", major, minor);
		f = fopen(path, "re");
		if (!f || fscanf(f, "%u:%u", &major, &minor) != 2)
			major = 0;
		if (f)
			fclose(f);
	}
	return major << 20 | minor;
}

static int disks_of_table(char *words, uint32_t *disk)
{
	char *save = NULL, *word = strtok_r(words, " ", &save);	/* META */
	unsigned int major, minor;
	int n, found = 0;

	word = word ? strtok_r(NULL, " ", &save) : NULL;
	n = word ? atoi(word) : 0;
	for (int tier = 0; tier < n && tier < TERRACE_HEAT_TIERS; tier++) {
		word = strtok_r(NULL, " ", &save);
		if (!word || !strtok_r(NULL, " ", &save) || !strtok_r(NULL, " ", &save))
			break;
		if (sscanf(word, "%u:%u", &major, &minor) == 2)
			disk[tier] = disk_of(major, minor);
		found += disk[tier] != 0;
	}
	return found;
}

/* It prints otherwise; no latencies are no error. */
static void silent(int level, const char *file, int line, int err, const char *format, ...)
{
	(void)level, (void)file, (void)line, (void)err, (void)format;
}

int tier_disks(unsigned int major, unsigned int minor, uint32_t *disk)
{
	uint64_t start, length;
	char *type = NULL, *words = NULL;
	struct dm_task *task;
	int found = 0;

	dm_log_with_errno_init(silent);
	task = dm_task_create(DM_DEVICE_TABLE);
	memset(disk, 0, TERRACE_HEAT_TIERS * sizeof(*disk));
	if (!task)
		return 0;
	if (dm_task_set_major(task, (int)major) && dm_task_set_minor(task, (int)minor) && dm_task_run(task)) {
		dm_get_next_target(task, NULL, &start, &length, &type, &words);
		if (type && words && !strcmp(type, "terrace"))
			found = disks_of_table(words, disk);
	}
	dm_task_destroy(task);
	return found;
}
