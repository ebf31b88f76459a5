// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One floor down and up again. See relay.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <uuid/uuid.h>

#include "control.h"
#include "file.h"
#include "lock.h"
#include "names.h"
#include "quiet.h"
#include "relay.h"
#include "tabled.h"

#define TARGET	"terrace"

/* ---- what has to outlive us ---------------------------------------------------------------- */

static char *file_of(const struct relay *relay)
{
	return ctl_text(FILE_RUN "/%s.relay", relay->name);
}

static int keep(const struct relay *relay, const char *params)
{
	char *path = file_of(relay), *text = ctl_text("%s %llu\n%s\n", uuid_text(relay->uuid),
						      (unsigned long long)relay->sectors, params);
	int r;

	mkdir(FILE_RUN, 0700);
	r = file_put(path, text, strlen(text));
	free(text);
	free(path);
	return r;
}

static void forget(const struct relay *relay)
{
	char *path = file_of(relay);

	unlink(path);
	free(path);
}

static int recall(struct relay *relay)
{
	char *path = file_of(relay), uuid[64];
	unsigned long long sectors;
	FILE *f = fopen(path, "re");
	int r = -ENOENT;

	if (f && fscanf(f, "%63s %llu\n", uuid, &sectors) == 2 && !uuid_parse(uuid, relay->uuid) &&
	    fgets(relay->params, sizeof(relay->params), f)) {
		relay->params[strcspn(relay->params, "\n")] = 0;
		relay->sectors = sectors;
		r = 0;
	}
	if (f)
		fclose(f);
	free(path);
	return r;
}

/* ---- where are we? --------------------------------------------------------------------------- */

static bool has_table(const char *name, bool suspended)
{
	struct dm_line line;

	return !dm_table_line(name, &line) && !strcmp(line.target, TARGET) && line.suspended == suspended;
}

/* A resume that is killed while it starts the volume leaves the table without it, suspended. */
static bool runs_volume(const char *name)
{
	return has_table(name, false);
}

/* The volume says its UUID itself: device-mapper knows it only if we made the device. */
static int from_volume(struct relay *relay, const struct dm_volume *v)
{
	struct terrace_hello hello;
	int fd = control_open(v, &hello);

	if (fd < 0)
		return fd;
	close(fd);
	memcpy(relay->uuid, hello.volume_uuid, sizeof(relay->uuid));
	relay->sectors = v->sectors;
	snprintf(relay->params, sizeof(relay->params), "%s", v->table);
	return 0;
}

static void look_below(struct relay *relay, const char *name)
{
	struct dm_line line;

	memset(relay, 0, sizeof(*relay));
	snprintf(relay->name, sizeof(relay->name), "%s", name);
	snprintf(relay->below, sizeof(relay->below), "%.100s" RELAY_BELOW, name);
	relay->begun = !dm_table_line(relay->below, &line);
}

bool relay_left(struct relay *relay, const char *name)
{
	look_below(relay, name);
	return relay->begun && !recall(relay);
}

static int look(struct relay *relay, const char *name)
{
	struct dm_volume v;
	int r;

	look_below(relay, name);
	r = relay->begun ? recall(relay) : dm_named(&v, name);
	if (relay->begun && r)
		ctl_error("'%s' is there, but " FILE_RUN "/%s.relay is not: it was not made by terracectl",
			  relay->below, name);
	if (r || relay->begun)
		return r;
	snprintf(relay->name, sizeof(relay->name), "%s", v.name);
	snprintf(relay->below, sizeof(relay->below), "%.100s" RELAY_BELOW, v.name);
	return from_volume(relay, &v);
}

/* In state e the table is there without a volume. */
static bool has_volume(const char *name)
{
	struct dm_line line;
	char *folder;
	bool there;

	if (dm_table_line(name, &line) || strcmp(line.target, TARGET))
		return false;
	folder = ctl_text("/sys/fs/terrace/dm-%u", line.minor);
	there = !access(folder, F_OK);
	free(folder);
	return there;
}

const char *relay_runs(const struct relay *relay)
{
	return has_volume(relay->name) ? relay->name : has_volume(relay->below) ? relay->below : NULL;
}

dev_t relay_elsewhere(const struct relay *relay)
{
	struct dm_line line, below;
	unsigned int a, b;

	if (!relay->begun || dm_table_line(relay->name, &line) || strcmp(line.target, "linear") ||
	    dm_table_line(relay->below, &below) || sscanf(line.params, "%u:%u", &a, &b) != 2 ||
	    (a == below.major && b == below.minor))
		return 0;
	return makedev(a, b);
}

void relay_wake(const char *name)
{
	if (has_table(name, true) && has_volume(name))
		quiet_end(name);
}

/* Twice: what the first look has seen may be the work of one that had the lock then. */
int relay_find(struct relay *relay, const char *name)
{
	int r = look(relay, name);

	if (!r)
		r = lock_volume(relay->uuid, relay->name);
	if (!r)
		r = look(relay, name);
	if (!r && relay->begun) {
		/* Loaded and never resumed, by one that was killed: they hold devices. */
		dm_clear(relay->name);
		dm_clear(relay->below);
		relay_wake(relay->name);
		relay_wake(relay->below);
	}
	return r;
}

int relay_tidy(struct relay *relay, const char *name)
{
	int r;

	if (!relay->begun || !(runs_volume(relay->name) || has_table(relay->name, true)))
		return 0;
	r = relay_in(relay, relay->params);
	return r ? r : relay_find(relay, name);
}

/* ---- stopping ------------------------------------------------------------------------------- */

/* The table that runs the volume gives way to the loaded one. */
static int stop(const struct relay *relay, const char *device)
{
	int r = quiet_begin(device, relay->name);

	return r ? r : dm_resume(device, false);
}

/* ---- down ---------------------------------------------------------------------------------- */

static int make_below(const struct relay *relay)
{
	char *uuid = ctl_text("TERRACE-RELAY-%s", uuid_text(relay->uuid));
	int r = dm_create_suspended(relay->below, uuid, relay->sectors, "error", "");

	free(uuid);
	return r;
}

/* `in` to b: the volume is stopped when the table that ran it is gone. */
static int step_aside(struct relay *relay)
{
	struct dm_line line;
	char *params;
	int r = dm_table_line(relay->below, &line);

	/* Killed before it was suspended: as it is it would fail what is written, not keep it. */
	if (!r && !(line.suspended && line.target[0]))
		r = dm_remove(relay->below) ? -EBUSY : -ENXIO;
	if (r == -ENXIO)
		r = make_below(relay);
	if (!r)
		r = dm_table_line(relay->below, &line);
	if (r)
		return r;
	params = ctl_text("%u:%u 0", line.major, line.minor);
	r = dm_load(relay->name, relay->sectors, "linear", params);
	free(params);
	if (!r) {
		r = stop(relay, relay->name);
		if (r)
			dm_clear(relay->name);
	}
	if (r)
		dm_remove(relay->below);
	return r;
}

static int start_below(struct relay *relay)
{
	int r = runs_volume(relay->below) ? 0 :
		dm_load(relay->below, relay->sectors, TARGET, relay->params);

	if (!r)
		r = dm_resume(relay->below, false);
	if (r)
		ctl_error("volume '%s' could not be started again: what is written to it waits; the same call goes on once the reason is mended",
			  relay->name);
	return r;
}

int relay_out(struct relay *relay)
{
	int r = 0;

	if (runs_volume(relay->name)) {
		r = tabled_check(relay->params, relay->uuid, relay->name);
		if (!r)
			r = keep(relay, relay->params);
		if (!r) {
			r = step_aside(relay);
			if (r)
				forget(relay);
		}
	}
	relay->begun |= !r;
	return r ? r : start_below(relay);
}

/* ---- up ------------------------------------------------------------------------------------- */

/* c to d. Nothing goes there any more: NAME is suspended. */
static int stop_below(const struct relay *relay)
{
	int r;

	if (!runs_volume(relay->below))
		return 0;
	r = dm_load(relay->below, relay->sectors, "error", "");
	return r ? r : stop(relay, relay->below);
}

/* What waits in b has to get through before NAME can be suspended. */
static int let_waiting_through(struct relay *relay)
{
	struct dm_line line;

	if (dm_table_line(relay->name, &line) || line.suspended || runs_volume(relay->below))
		return 0;
	return start_below(relay);
}

int relay_stop(struct relay *relay)
{
	int r = let_waiting_through(relay);

	if (!r)
		r = dm_suspend(relay->name, true);
	return r ? r : stop_below(relay);
}

int relay_change(struct relay *relay, const char *params)
{
	int r = keep(relay, params);

	if (!r)
		snprintf(relay->params, sizeof(relay->params), "%s", params);
	return r;
}

/*
 * Unless NAME has the volume's table and could not start it: that one cannot
 * lead anywhere. Then, and when nothing runs below either, what waits goes on
 * waiting: led below it would fail.
 */
static void lead_below(struct relay *relay)
{
	if (has_table(relay->name, true) || start_below(relay))
		return;
	dm_clear(relay->name);
	dm_resume(relay->name, true);
}

int relay_in(struct relay *relay, const char *params)
{
	int r = 0;

	if (!runs_volume(relay->name)) {
		/* while it still runs */
		if (runs_volume(relay->below))
			r = tabled_check(params, relay->uuid, relay->name);
		if (!r)
			r = relay_stop(relay);
		if (!r)
			r = dm_load(relay->name, relay->sectors, TARGET, params);
		if (!r)
			r = dm_resume(relay->name, true);
		if (r) {
			ctl_error("volume '%s' stays below '%s'%s", relay->name, relay->below,
				  r == -EROFS ? "" : ": the same call goes on");
			lead_below(relay);
			return r;
		}
	}
	return relay_end(relay);
}

int relay_end(struct relay *relay)
{
	struct dm_line line;
	int r = 0;

	if (!dm_table_line(relay->below, &line)) {
		if (line.suspended)
			dm_resume(relay->below, true);
		r = dm_remove(relay->below);
		if (r == -EBUSY)
			ctl_error("'%s' is in use: close it, then dmsetup remove %s", relay->below, relay->below);
	}
	if (!r) {
		forget(relay);
		relay->begun = false;
	}
	return r;
}
