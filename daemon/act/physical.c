// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How full drives that compress are inside, from their own report: NUSE of NCAP of an NVMe
 * namespace, the memory that a zram device uses of its limit.  Of a partition it is the whole
 * namespace's: what counts is whether the drive can take more.  A zram device without a limit, and
 * a drive that does not say, are left alone: the kernel part then takes them for never full, which
 * is logged once.
 */
#include "act/physical.h"

#include <endian.h>
#include <errno.h>
#include <libdevmapper.h>
#include <libnvme.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "nvme_disk.h"

#define BLOCK_BYTES	4096u
#define WHY_BYTES	160u

/* ---- drives ---------------------------------------------------------------------------- */

static bool zram_room(unsigned int major, unsigned int minor, struct physical_room *room)
{
	unsigned long long used, limit;
	char path[96];
	bool got;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/mm_stat", major, minor);
	f = fopen(path, "re");
	if (!f)
		return false;
	got = fscanf(f, "%*u %*u %llu %llu", &used, &limit) == 2 && limit;
	fclose(f);
	*room = (struct physical_room){ used / BLOCK_BYTES, got ? limit / BLOCK_BYTES : 0 };
	return got;
}

bool physical_decode(const struct nvme_id_ns *ns, struct physical_room *room)
{
	unsigned int lba_shift = ns->lbaf[ns->flbas & 0xf].ds;
	uint64_t used = le64toh(ns->nuse), capacity = le64toh(ns->ncap);

	if (lba_shift < 9 || lba_shift > 30 || !capacity || !used)
		return false;
	if (used >= capacity && !(ns->nsfeat & NVME_NS_FEAT_THIN))
		return false;
	*room = (struct physical_room){ (used << lba_shift) / BLOCK_BYTES, (capacity << lba_shift) / BLOCK_BYTES };
	return true;
}

/* 0; positive: a status of the drive; -errno */
static int identify(unsigned int major, unsigned int minor, struct nvme_id_ns *ns)
{
	int fd = nvme_disk_open(major, minor);
	int err = fd < 0 ? fd : 0;
	__u32 nsid;

	if (err)
		return err;
	err = nvme_get_nsid(fd, &nsid);
	if (!err)
		err = nvme_identify_ns(fd, nsid, ns);
	if (err < 0)
		err = -errno;
	close(fd);
	return err;
}

static bool nvme_room(unsigned int major, unsigned int minor, struct physical_room *room, char why[WHY_BYTES])
{
	struct nvme_id_ns *ns = calloc(1, sizeof(*ns));
	int err = ns ? identify(major, minor, ns) : -ENOMEM;
	bool got = !err && physical_decode(ns, room);

	if (err == -EOPNOTSUPP)
		snprintf(why, WHY_BYTES, "neither an NVMe drive nor a zram device with a limit");
	else if (err)
		snprintf(why, WHY_BYTES, "it cannot be asked: %s", err < 0 ? strerror(-err) : nvme_status_to_string(err, false));
	else if (!got)
		snprintf(why, WHY_BYTES, "NUSE is %llu of NCAP %llu blocks, %s thin provisioning",
			 (unsigned long long)le64toh(ns->nuse), (unsigned long long)le64toh(ns->ncap),
			 ns->nsfeat & NVME_NS_FEAT_THIN ? "with" : "without");
	free(ns);
	return got;
}

/* ---- device-mapper ----------------------------------------------------------------------- */

/* It prints otherwise. */
static void silent(int level, const char *file, int line, int err, const char *format, ...)
{
	(void)level, (void)file, (void)line, (void)err, (void)format;
}

static struct dm_task *task(int type, unsigned int major, unsigned int minor)
{
	struct dm_task *task;

	dm_log_with_errno_init(silent);
	task = dm_task_create(type);
	if (task && (!dm_task_set_major(task, (int)major) || !dm_task_set_minor(task, (int)minor))) {
		dm_task_destroy(task);
		return NULL;
	}
	return task;
}

static bool tell(unsigned int major, unsigned int minor, int tier, const struct physical_room *room)
{
	struct dm_task *t = task(DM_DEVICE_TARGET_MSG, major, minor);
	char text[96];
	bool sent;

	snprintf(text, sizeof(text), "physical %d %llu %llu", tier, (unsigned long long)room->used,
		 (unsigned long long)room->limit);
	sent = t && dm_task_set_sector(t, 0) && dm_task_set_message(t, text) && dm_task_run(t);
	if (t)
		dm_task_destroy(t);
	return sent;
}

struct volume {
	const char *name;
	unsigned int major, minor;
};

static bool report_tier(const struct volume *v, int tier, const char *device, struct physical_heard *heard)
{
	struct physical_room room;
	char why[WHY_BYTES];
	unsigned int a, b;

	if (sscanf(device, "%u:%u", &a, &b) != 2)
		return false;
	if (zram_room(a, b, &room) || nvme_room(a, b, &room, why)) {
		heard->spoke |= 1u << tier;
		return tell(v->major, v->minor, tier, &room);
	}
	if (!((heard->spoke | heard->silent) >> tier & 1))
		log_line(LOG_LEVEL_NOTICE, v->name, "tier %d: its drive does not say how full it is inside (%s): taken for never full",
			 tier, why);
	heard->silent |= 1u << tier;
	return false;
}

/* @words: META N {DEV CLASS KIND}..., where the kernel writes devices as MAJOR:MINOR */
static int report_table(const struct volume *v, char *words, struct physical_heard *heard)
{
	char *save = NULL, *word = strtok_r(words, " ", &save);
	int n, sent = 0;

	word = word ? strtok_r(NULL, " ", &save) : NULL;
	n = word ? atoi(word) : 0;
	for (int tier = 0; tier < n; tier++) {
		char *device = strtok_r(NULL, " ", &save), *class = strtok_r(NULL, " ", &save);
		char *kind = strtok_r(NULL, " ", &save);

		if (!device || !class || !kind)
			break;
		if (!strcmp(kind, "home"))
			sent += report_tier(v, tier, device, heard);
	}
	return sent;
}

int physical_report(unsigned int major, unsigned int minor, struct physical_heard *heard)
{
	struct volume v = { "", major, minor };
	struct dm_task *t = task(DM_DEVICE_TABLE, major, minor);
	char *type = NULL, *words = NULL;
	uint64_t start, length;
	int sent = 0;

	if (t && dm_task_run(t)) {
		dm_get_next_target(t, NULL, &start, &length, &type, &words);
		v.name = dm_task_get_name(t);
		if (type && words && !strcmp(type, "terrace"))
			sent = report_table(&v, words, heard);
	}
	if (t)
		dm_task_destroy(t);
	return sent;
}
