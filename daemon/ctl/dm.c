// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Device-mapper requests. The library's own complaints are kept back: what
 * the kernel log says about a refused table is worth more.
 */
#include <errno.h>
#include <fcntl.h>
#include <libdevmapper.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uuid/uuid.h>

#include "dm.h"
#include "names.h"

#define TARGET		"terrace"
#define UUID_PREFIX	"TERRACE-"
#define MODULE		"dm_terrace"

static char said[256];

static void keep_message(int level, const char *file, int line, int class, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* The first error of a request tells most. */
static void keep_message(int level, const char *file, int line, int class, const char *format, ...)
{
	va_list args;

	(void)file;
	(void)line;
	(void)class;
	if ((level & 7) > 3 || said[0])
		return;
	va_start(args, format);
	vsnprintf(said, sizeof(said), format, args);
	va_end(args);
}

static struct dm_task *task(int type, const char *name)
{
	struct dm_task *dmt;

	said[0] = 0;
	dm_log_with_errno_init(keep_message);
	dmt = dm_task_create(type);
	if (dmt && name && !dm_task_set_name(dmt, name)) {
		dm_task_destroy(dmt);
		dmt = NULL;
	}
	return dmt;
}

static int task_error(struct dm_task *dmt)
{
	int err = dmt ? dm_task_get_errno(dmt) : ENOMEM;

	return -(err ? err : EIO);
}

/* ---- the kernel log -------------------------------------------------------------- */

static int kmsg_mark(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		lseek(fd, 0, SEEK_END);
	return fd;
}

/* What the target has said since the mark: the reason of a refusal. */
static void kmsg_print(int fd)
{
	char record[8192];
	ssize_t n;

	while (fd >= 0 && ((n = read(fd, record, sizeof(record) - 1)) > 0 || errno == EPIPE)) {
		char *text;

		if (n <= 0)
			continue;
		record[n] = 0;
		text = strchr(record, ';');
		if (!text || !strstr(text, TARGET))
			continue;
		text[strcspn(text, "\n")] = 0;
		ctl_error("kernel: %s", text + 1);
	}
	if (fd >= 0)
		close(fd);
}

/* ---- the module ------------------------------------------------------------------- */

static bool module_there(void)
{
	return !access("/sys/module/" MODULE, F_OK);
}

/* The kernel asks for it as well, but without a word when it is not found. */
static void load_module(void)
{
	pid_t pid;
	int status;

	if (module_there())
		return;
	pid = fork();
	if (!pid) {
		execlp("modprobe", "modprobe", "-q", "dm-terrace", (char *)NULL);
		execl("/sbin/modprobe", "modprobe", "-q", "dm-terrace", (char *)NULL);
		_exit(127);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!module_there())
		ctl_error("the kernel module dm-terrace is not loaded and cannot be: is it installed for %s?",
			  "this kernel (make install)");
}

/* ---- asking ------------------------------------------------------------------------- */

static void cannot_be_asked(int error)
{
	const char *why = geteuid() ? ": run it as root" :
			  access("/sys/class/misc/device-mapper", F_OK) ? ": the kernel has none (modprobe dm_mod)" : "";

	ctl_error("device-mapper cannot be asked: %s%s", said[0] ? said : strerror(-error), why);
}

const struct dm_volume *dm_find(const struct dm_volume *list, u32 nr, const char *name)
{
	if (!strncmp(name, DM_FOLDER, strlen(DM_FOLDER)))
		name += strlen(DM_FOLDER);
	for (u32 i = 0; i < nr; i++)
		if (!strcmp(list[i].name, name) || !strcmp(uuid_text(list[i].uuid), name))
			return &list[i];
	ctl_error("no volume '%s' is active: terracectl list shows those there are", name);
	return NULL;
}

int dm_exists(const char *name)
{
	struct dm_task *dmt = task(DM_DEVICE_INFO, name);
	struct dm_info info = { 0 };
	int r;

	if (!dmt || !dm_task_run(dmt) || !dm_task_get_info(dmt, &info)) {
		r = task_error(dmt);
		cannot_be_asked(r);
	} else {
		r = info.exists;
	}
	if (dmt)
		dm_task_destroy(dmt);
	return r;
}

/* One line of table or status, if it is one of ours. */
static bool get_line(int type, const char *name, struct dm_volume *volume, char *line)
{
	struct dm_task *dmt = task(type, name);
	uint64_t start = 0, sectors = 0;
	char *target = NULL, *params = NULL;
	struct dm_info info;
	bool ours;

	if (dmt && type == DM_DEVICE_STATUS)
		dm_task_no_flush(dmt);
	ours = dmt && dm_task_run(dmt) && dm_task_get_info(dmt, &info) && info.exists;
	if (ours)
		dm_get_next_target(dmt, NULL, &start, &sectors, &target, &params);
	ours = ours && target && !strcmp(target, TARGET);
	if (ours) {
		const char *uuid = dm_task_get_uuid(dmt);

		snprintf(line, DM_PARAMS_BYTES, "%s", params ? params : "");
		volume->major = info.major;
		volume->minor = info.minor;
		volume->open_count = info.open_count;
		volume->suspended = info.suspended;
		volume->read_only = info.read_only;
		volume->sectors = sectors;
		if (uuid && !strncmp(uuid, UUID_PREFIX, strlen(UUID_PREFIX)))
			uuid_parse(uuid + strlen(UUID_PREFIX), volume->uuid);
	}
	if (dmt)
		dm_task_destroy(dmt);
	return ours;
}

static bool get_volume(const char *name, struct dm_volume *volume)
{
	memset(volume, 0, sizeof(*volume));
	snprintf(volume->name, sizeof(volume->name), "%s", name);
	if (!get_line(DM_DEVICE_TABLE, name, volume, volume->table))
		return false;
	if (!volume->suspended)
		get_line(DM_DEVICE_STATUS, name, volume, volume->status);
	return true;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct dm_volume *)a)->name, ((const struct dm_volume *)b)->name);
}

int dm_volumes(struct dm_volume **list, u32 *nr)
{
	struct dm_task *dmt;
	struct dm_names *at;

	*list = NULL;
	*nr = 0;
	if (access("/sys/class/misc/device-mapper", F_OK))
		return 0;
	dmt = task(DM_DEVICE_LIST, NULL);
	if (!dmt || !dm_task_run(dmt) || !(at = dm_task_get_names(dmt))) {
		int r = task_error(dmt);

		cannot_be_asked(r);
		if (dmt)
			dm_task_destroy(dmt);
		return r;
	}
	while (at->dev) {
		*list = ctl_realloc(*list, (*nr + 1) * sizeof(**list));
		*nr += get_volume(at->name, *list + *nr);
		if (!at->next)
			break;
		at = (struct dm_names *)((char *)at + at->next);
	}
	dm_task_destroy(dmt);
	if (*nr)
		qsort(*list, *nr, sizeof(**list), compare_names);
	return 0;
}

int dm_named(struct dm_volume *volume, const char *name)
{
	const struct dm_volume *found;
	struct dm_volume *list;
	u32 nr;
	int r = dm_volumes(&list, &nr);

	if (r)
		return r;
	found = dm_find(list, nr, name);
	if (found)
		*volume = *found;
	free(list);
	return found ? 0 : -ENODEV;
}

/* ---- changing ------------------------------------------------------------------------- */

static int run_and_wait(struct dm_task *dmt)
{
	uint32_t cookie = 0;
	int r = 0;

	if (!dm_task_set_cookie(dmt, &cookie, 0))
		return -EIO;
	if (!dm_task_run(dmt))
		r = task_error(dmt);
	dm_udev_wait(cookie);
	return r;
}

int dm_create(const char *name, const u8 *uuid, u64 sectors, const char *params, bool read_only)
{
	char text[sizeof(UUID_PREFIX) + 36] = UUID_PREFIX;
	struct dm_task *dmt;
	int kmsg, r = -ENOMEM;

	load_module();
	kmsg = kmsg_mark();
	uuid_unparse_lower(uuid, text + strlen(UUID_PREFIX));
	dmt = task(DM_DEVICE_CREATE, name);
	if (dmt && dm_task_set_uuid(dmt, text) && (!read_only || dm_task_set_ro(dmt)) &&
	    dm_task_set_add_node(dmt, DM_ADD_NODE_ON_RESUME) &&
	    dm_task_add_target(dmt, 0, sectors, TARGET, params))
		r = run_and_wait(dmt);
	if (r)
		ctl_error("volume '%s' cannot be activated: %s", name, said[0] ? said : strerror(-r));
	if (r)
		kmsg_print(kmsg);
	else if (kmsg >= 0)
		close(kmsg);
	if (dmt)
		dm_task_destroy(dmt);
	return r;
}

static int remove_device(const char *name, bool wait)
{
	struct dm_task *dmt = task(DM_DEVICE_REMOVE, name);
	int r = -ENOMEM;

	if (dmt) {
		if (wait)
			dm_task_retry_remove(dmt);
		r = run_and_wait(dmt);
		dm_task_destroy(dmt);
	}
	if (r && r != -EBUSY)
		ctl_error("volume '%s' cannot be deactivated: %s", name, said[0] ? said : strerror(-r));
	return r;
}

int dm_remove(const char *name)
{
	return remove_device(name, true);
}

int dm_remove_now(const char *name)
{
	return remove_device(name, false);
}

/* Of the device with that device-mapper UUID: its name, to be freed, if it never came to run. */
static char *unfinished_name(const char *uuid)
{
	struct dm_task *dmt = task(DM_DEVICE_INFO, NULL);
	struct dm_info info;
	char *name = NULL, *folder;

	if (dmt && dm_task_set_uuid(dmt, uuid) && dm_task_run(dmt) && dm_task_get_info(dmt, &info) &&
	    info.exists && !info.open_count) {
		folder = ctl_text("/sys/fs/terrace/dm-%u", info.minor);
		if (!info.live_table || (info.suspended && access(folder, F_OK)))
			name = ctl_text("%s", dm_task_get_name(dmt));
		free(folder);
	}
	if (dmt)
		dm_task_destroy(dmt);
	return name;
}

void dm_drop_unfinished(const u8 *uuid)
{
	char text[sizeof(UUID_PREFIX) + 36] = UUID_PREFIX, *name;

	if (access("/sys/class/misc/device-mapper", F_OK))
		return;
	uuid_unparse_lower(uuid, text + strlen(UUID_PREFIX));
	name = unfinished_name(text);
	if (name) {
		fprintf(stderr, "note: device-mapper device '%s' was left by a call that was stopped: it is made anew\n",
			name);
		dm_remove(name);
	}
	free(name);
}

/* ---- any device ------------------------------------------------------------------------ */

static int read_line(int type, const char *name, u32 nr, struct dm_line *line)
{
	struct dm_task *dmt = task(type, name);
	uint64_t start = 0, sectors = 0;
	char *target = NULL, *params = NULL;
	void *next = NULL;
	struct dm_info info;
	int r = 0;

	memset(line, 0, sizeof(*line));
	if (dmt && type == DM_DEVICE_STATUS)
		dm_task_no_flush(dmt);
	if (!dmt || !dm_task_run(dmt) || !dm_task_get_info(dmt, &info)) {
		r = task_error(dmt);
	} else if (!info.exists) {
		r = -ENXIO;
	} else {
		do {
			next = dm_get_next_target(dmt, next, &start, &sectors, &target, &params);
		} while (nr-- && next);
		line->major = info.major;
		line->minor = info.minor;
		line->open_count = info.open_count;
		line->suspended = info.suspended;
		line->sectors = sectors;
		snprintf(line->target, sizeof(line->target), "%s", target ? target : "");
		snprintf(line->params, sizeof(line->params), "%s", params ? params : "");
	}
	if (dmt)
		dm_task_destroy(dmt);
	return r;
}

int dm_table_line(const char *name, struct dm_line *line)
{
	return read_line(DM_DEVICE_TABLE, name, 0, line);
}

int dm_table_part(const char *name, u32 nr, struct dm_line *line)
{
	return read_line(DM_DEVICE_TABLE, name, nr, line);
}

int dm_status_line(const char *name, struct dm_line *line)
{
	return read_line(DM_DEVICE_STATUS, name, 0, line);
}

int dm_status_part(const char *name, u32 nr, struct dm_line *line)
{
	return read_line(DM_DEVICE_STATUS, name, nr, line);
}

/* Runs it, drops it, says why it failed. */
static int finish(struct dm_task *dmt, bool ready, bool wait, const char *name, const char *what)
{
	int kmsg = kmsg_mark(), r = -ENOMEM;

	if (dmt && ready)
		r = wait ? run_and_wait(dmt) : dm_task_run(dmt) ? 0 : task_error(dmt);
	if (r) {
		ctl_error("device-mapper device '%s' cannot be %s: %s", name, what, said[0] ? said : strerror(-r));
		kmsg_print(kmsg);
	} else if (kmsg >= 0) {
		close(kmsg);
	}
	if (dmt)
		dm_task_destroy(dmt);
	return r;
}

int dm_load_parts(const char *name, const struct dm_part *part, u32 nr)
{
	struct dm_task *dmt = task(DM_DEVICE_RELOAD, name);
	bool ready = dmt;
	u64 at = 0;

	for (u32 i = 0; i < nr && ready; i++) {
		ready = dm_task_add_target(dmt, at, part[i].sectors, part[i].target, part[i].params);
		at += part[i].sectors;
	}
	return finish(dmt, ready, false, name, "given a table");
}

int dm_load(const char *name, u64 sectors, const char *target, const char *params)
{
	const struct dm_part part = { sectors, target, params };

	return dm_load_parts(name, &part, 1);
}

int dm_clear(const char *name)
{
	return finish(task(DM_DEVICE_CLEAR, name), true, false, name, "cleared");
}

int dm_suspend(const char *name, bool noflush)
{
	struct dm_task *dmt = task(DM_DEVICE_SUSPEND, name);

	return finish(dmt, dmt && dm_task_skip_lockfs(dmt) && (!noflush || dm_task_no_flush(dmt)),
		      false, name, "suspended");
}

int dm_resume(const char *name, bool noflush)
{
	struct dm_task *dmt = task(DM_DEVICE_RESUME, name);

	return finish(dmt, dmt && dm_task_skip_lockfs(dmt) && (!noflush || dm_task_no_flush(dmt)),
		      true, name, "resumed");
}

int dm_create_suspended(const char *name, const char *uuid, u64 sectors, const char *target,
			const char *params)
{
	struct dm_task *dmt = task(DM_DEVICE_CREATE, name);
	int r = finish(dmt, dmt && dm_task_set_uuid(dmt, uuid) &&
		       dm_task_set_add_node(dmt, DM_ADD_NODE_ON_RESUME) &&
		       dm_task_add_target(dmt, 0, sectors, target, params), true, name, "made");

	if (r)
		return r;
	r = dm_suspend(name, false);
	if (r)
		dm_remove(name);
	return r;
}
