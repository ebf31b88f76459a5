// SPDX-License-Identifier: GPL-2.0-or-later
/* Device-mapper by ioctl: see dm.h. Processes are dear in an emulated machine. */
#include <errno.h>
#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "dm.h"

#define ROOM	8192

struct request {
	union {
		struct dm_ioctl head;
		char room[ROOM];
	};
};

static int ask(unsigned long command, const char *name, unsigned int flags, struct request *r)
{
	static int control = -1;

	if (control < 0)
		control = open("/dev/mapper/control", O_RDWR | O_CLOEXEC);
	if (control < 0)
		return -errno;
	r->head.version[0] = DM_VERSION_MAJOR;
	r->head.data_size = sizeof(*r);
	r->head.data_start = sizeof(r->head);
	r->head.flags = flags;
	snprintf(r->head.name, sizeof(r->head.name), "%s", name);
	return ioctl(control, command, r) ? -errno : 0;
}

static int make_node(const char *name, unsigned long long dev)
{
	char path[256];

	snprintf(path, sizeof(path), "/dev/mapper/%s", name);
	unlink(path);
	return mknod(path, S_IFBLK | 0600, makedev((dev >> 8) & 0xfff, (dev & 0xff) | ((dev >> 12) & 0xfff00))) ? -errno : 0;
}

static int load(const char *name, const char *table)
{
	struct request r = { 0 };
	struct dm_target_spec *spec = (void *)(r.room + sizeof(r.head));
	char *params = (char *)(spec + 1);
	unsigned long long start, length;
	int used = 0;

	if (sscanf(table, "%llu %llu %15s %n", &start, &length, spec->target_type, &used) < 3)
		return -EINVAL;
	if (sizeof(r.head) + sizeof(*spec) + strlen(table + used) + 16 > ROOM)
		return -E2BIG;
	spec->sector_start = start;
	spec->length = length;
	strcpy(params, table + used);
	spec->next = sizeof(*spec) + ((strlen(params) + 8) & ~7ul);
	r.head.target_count = 1;
	return ask(DM_TABLE_LOAD, name, 0, &r);
}

int dm_create(const char *name, const char *table)
{
	struct request r = { 0 };
	int err = ask(DM_DEV_CREATE, name, 0, &r);

	if (err)
		return err;
	err = make_node(name, r.head.dev);
	if (!err)
		err = load(name, table);
	if (!err)
		err = dm_resume(name);
	if (err)
		dm_remove(name);
	return err;
}

int dm_remove(const char *name)
{
	struct request r = { 0 };

	return ask(DM_DEV_REMOVE, name, 0, &r);
}

int dm_message(const char *name, const char *format, ...)
{
	struct request r = { 0 };
	struct dm_target_msg *message = (void *)(r.room + sizeof(r.head));
	va_list args;

	va_start(args, format);
	vsnprintf(message->message, 512, format, args);
	va_end(args);
	return ask(DM_TARGET_MSG, name, 0, &r);
}

int dm_suspend(const char *name, bool noflush)
{
	struct request r = { 0 };

	return ask(DM_DEV_SUSPEND, name, DM_SUSPEND_FLAG | (noflush ? DM_NOFLUSH_FLAG : 0), &r);
}

int dm_resume(const char *name)
{
	struct request r = { 0 };

	return ask(DM_DEV_SUSPEND, name, 0, &r);
}
