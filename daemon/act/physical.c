// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How full drives that compress are inside, from their own report: what an NVMe namespace says
 * (sense/room.h), the memory that a zram device uses of its limit.  A zram device without a limit, and
 * a drive that does not say, are left alone: the kernel part then takes them for never full, which
 * is logged once.
 */
#include "act/physical.h"

#include <libdevmapper.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

#define BLOCK_BYTES	4096u
#define EVERY_S		2	/* drives are asked */

/* ---- drives ---------------------------------------------------------------------------- */

static bool zram_room(unsigned int major, unsigned int minor, struct port_room *room)
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
	*room = (struct port_room){ .used = used / BLOCK_BYTES, .limit = got ? limit / BLOCK_BYTES : 0 };
	return got;
}

/* As its thread has it: the drive is not waited for here.  false: it has said nothing since. */
static bool drive_room(struct health *health, int tier, unsigned int major, unsigned int minor, bool ask, struct port_room *room)
{
	if (health)
		return health->room(health, (uint32_t)tier, major, minor, ask, room);
	*room = (struct port_room){ .why = "there is no thread to ask it" };
	return true;
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

static bool tell(unsigned int major, unsigned int minor, int tier, const struct port_room *room)
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
	struct health *health;
	bool ask;
};

/*
 * An answer is sent on in the tick it came in: the module counts what it takes away inside the drive from the last that it
 * got, and one from before would undo that.
 */
static bool look_tier(const struct volume *v, int tier, unsigned int major, unsigned int minor, struct physical_heard *heard,
		      struct port_room *room)
{
	const uint32_t bit = 1u << tier;
	bool news;

	if (v->ask && zram_room(major, minor, room))
		return true;
	if (!v->ask && !(heard->awaited & bit))
		return false;
	news = drive_room(v->health, tier, major, minor, v->ask, room);
	if (v->ask && v->health)
		heard->awaited |= bit;
	else if (news)
		heard->awaited &= ~bit;
	return news;
}

static bool report_tier(const struct volume *v, int tier, const char *device, struct physical_heard *heard)
{
	struct port_room room;
	unsigned int a, b;

	if (sscanf(device, "%u:%u", &a, &b) != 2)
		return false;
	if (!look_tier(v, tier, a, b, heard, &room))
		return false;
	if (room.limit) {
		heard->spoke |= 1u << tier;
		return tell(v->major, v->minor, tier, &room);
	}
	if (!((heard->spoke | heard->silent) >> tier & 1))
		log_line(LOG_LEVEL_NOTICE, v->name, "tier %d: its drive does not say how full it is inside (%s): taken for never full",
			 tier, room.why);
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

int physical_report(unsigned int major, unsigned int minor, struct health *health, time_t now, struct physical_heard *heard)
{
	struct volume v = { "", major, minor, health, now >= heard->next };
	char *type = NULL, *words = NULL;
	uint64_t start, length;
	struct dm_task *t;
	int sent = 0;

	if (!v.ask && !heard->awaited)
		return 0;
	if (v.ask) {
		heard->awaited = 0;
		heard->next = now + EVERY_S;
	}
	t = task(DM_DEVICE_TABLE, major, minor);
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
