// SPDX-License-Identifier: GPL-2.0-or-later
/* Devices between a filesystem and the volume, from the top down; see extents.h. */
#include <errno.h>
#include <libdevmapper.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sense/extents.h"

#define SECTOR		512u
#define DEPTH		8	/* of devices on each other */

struct finding {
	unsigned int major, minor;	/* of the volume */
	struct stack *out;
};

static int down(struct finding *f, unsigned int major, unsigned int minor, uint64_t at, uint64_t from,
		uint64_t length, int depth);

/* It prints otherwise; what is not found is told by who asked. */
static void silent(int level, const char *file, int line, int err, const char *format, ...)
{
	(void)level;
	(void)file;
	(void)line;
	(void)err;
	(void)format;
}

/* "253:1 OFFSET"; "CIPHER KEY IV 253:1 OFFSET [...]"; "253:1", of which snapshots are taken */
int stack_parse(const char *type, const char *table, unsigned int *major, unsigned int *minor,
		uint64_t *offset)
{
	unsigned long long sectors;
	int n;

	if (!strcmp(type, "snapshot-origin")) {
		*offset = 0;
		return sscanf(table, "%u:%u", major, minor) == 2 ? 0 : -EPROTO;
	}
	if (!strcmp(type, "linear"))
		n = sscanf(table, "%u:%u %llu", major, minor, &sectors);
	else if (!strcmp(type, "crypt"))
		n = sscanf(table, "%*s %*s %*s %u:%u %llu", major, minor, &sectors);
	else
		return -EOPNOTSUPP;
	*offset = n == 3 ? sectors * SECTOR : 0;
	return n == 3 ? 0 : -EPROTO;
}

/* The part of [from, +length) of this device that a target covers; it was at @at in the top one. */
static int down_target(struct finding *f, const char *type, const char *table, uint64_t start,
		       uint64_t size, uint64_t at, uint64_t from, uint64_t length, int depth)
{
	uint64_t first = from > start ? from : start, offset;
	uint64_t end = from + length < start + size ? from + length : start + size;
	unsigned int major, minor;
	int err;

	if (first >= end)
		return 0;
	err = stack_parse(type, table, &major, &minor, &offset);
	if (err)
		return err;
	return down(f, major, minor, at + (first - from), offset + (first - start), end - first, depth + 1);
}

static int down_dm(struct finding *f, unsigned int major, unsigned int minor, uint64_t at,
		   uint64_t from, uint64_t length, int depth)
{
	struct dm_task *task;
	void *next = NULL;
	int err = -ENODEV;

	dm_log_with_errno_init(silent);
	task = dm_task_create(DM_DEVICE_TABLE);
	if (!task)
		return -ENOMEM;
	if (!dm_task_set_major(task, (int)major) || !dm_task_set_minor(task, (int)minor) || !dm_task_run(task))
		goto out;
	do {
		uint64_t start, sectors;
		char *type = NULL, *table = NULL;

		next = dm_get_next_target(task, next, &start, &sectors, &type, &table);
		err = type && table ? down_target(f, type, table, start * SECTOR, sectors * SECTOR, at, from,
						  length, depth) : -ENODEV;
	} while (!err && next);
out:
	dm_task_destroy(task);
	return err;
}

static bool attribute(unsigned int major, unsigned int minor, const char *name, char text[32])
{
	char path[96];
	bool got;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s", major, minor, name);
	f = fopen(path, "re");
	if (!f)
		return false;
	got = fgets(text, 32, f);
	fclose(f);
	return got;
}

static int down(struct finding *f, unsigned int major, unsigned int minor, uint64_t at, uint64_t from,
		uint64_t length, int depth)
{
	unsigned long long start;
	char text[32];

	if (depth > DEPTH)
		return -ELOOP;
	if (major == f->major && minor == f->minor) {
		if (f->out->nr == STACK_PIECES)
			return -E2BIG;
		f->out->piece[f->out->nr++] = (struct stack_piece){ .from = at, .length = length, .to = from };
		return 0;
	}
	if (attribute(major, minor, "partition", text)) {
		if (!attribute(major, minor, "start", text) || sscanf(text, "%llu", &start) != 1 ||
		    !attribute(major, minor, "../dev", text) || sscanf(text, "%u:%u", &major, &minor) != 2)
			return -ENODEV;
		return down(f, major, minor, at, from + start * SECTOR, length, depth + 1);
	}
	if (attribute(major, minor, "dm/suspended", text))
		return down_dm(f, major, minor, at, from, length, depth);
	return -ENODEV;
}

int stack_find(unsigned int major, unsigned int minor, unsigned int volume_major,
	       unsigned int volume_minor, struct stack *out)
{
	struct finding f = { .major = volume_major, .minor = volume_minor, .out = out };
	unsigned long long sectors;
	char text[32];

	out->nr = 0;
	if (!attribute(major, minor, "size", text) || sscanf(text, "%llu", &sectors) != 1)
		return -ENODEV;
	return down(&f, major, minor, 0, 0, sectors * SECTOR, 0);
}
