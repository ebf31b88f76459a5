// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl deactivate: the device-mapper device goes, its devices are free.
 *
 * A volume that cannot write down what it has acknowledged stays (quiet.h): no
 * filesystem may have it open, and yet somebody wrote to it. It goes while it
 * stands still, so that nothing comes in between. One that was left one floor
 * down (relay.h) goes with what leads to it, which stands still before it does: a
 * mirror that copies from it would never do so afterwards. Killed in between, the
 * same call goes on; Ctrl-C does not come in between.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "activate.h"
#include "args.h"
#include "interrupt.h"
#include "labels.h"
#include "lock.h"
#include "quiet.h"
#include "relay.h"
#include "sysfs.h"

#define WAIT_TENTHS	50	/* s/10 for who has it open */

/* ---- who uses it ------------------------------------------------------------------------------- */

struct user {
	u32 major, minor;
	char *text;
};

static void look_at_holder(void *ctx, const char *name)
{
	struct user *user = ctx;

	if (!user->text)
		user->text = ctl_text("part of /dev/%s", name);
}

static char *who_uses(const struct dm_line *v)
{
	struct user user = { .major = v->major, .minor = v->minor };
	char *folder = ctl_text("/sys/dev/block/%u:%u/holders", v->major, v->minor), *line = NULL;
	FILE *f = fopen("/proc/self/mountinfo", "re");
	unsigned int major, minor;
	size_t room = 0;
	char point[4096];

	while (f && !user.text && getline(&line, &room, f) > 0)
		if (sscanf(line, "%*d %*d %u:%u %*s %4095s", &major, &minor, point) == 3 &&
		    major == v->major && minor == v->minor)
			user.text = ctl_text("mounted at %s", point);
	if (f)
		fclose(f);
	free(line);
	sysfs_each(folder, look_at_holder, &user);
	free(folder);
	return user.text ? user.text : ctl_text("%s", "open by a program");
}

static void say_who_uses(const char *device, const char *name)
{
	struct dm_line line;
	char *why;

	if (dm_table_line(device, &line))
		return;
	why = who_uses(&line);
	ctl_error("volume '%s' is in use: %s", name, why);
	free(why);
}

/* ---- taking it down --------------------------------------------------------------------------- */

struct down {
	const char *name;
	const char *device;	/* what goes */
	const char *runs;	/* what runs the volume, it or what it leads to; NULL: nothing does */
	bool force;
};

/* It leads to what runs the volume. */
static bool leads(const struct down *d)
{
	return d->runs && strcmp(d->runs, d->device);
}

/* From above. On failure all of it runs on. */
static int stand_still(const struct down *d)
{
	int r = leads(d) ? dm_suspend(d->device, true) : 0;

	if (r)
		return r;
	r = quiet_begin(d->runs, d->name);
	if (r && leads(d))
		quiet_end(d->device);
	return r;
}

static void run_on(const struct down *d)
{
	quiet_end(d->runs);
	if (leads(d))
		quiet_end(d->device);
}

/* Suspended by a call that was killed: who has it open meanwhile waits for that, and would never close it. */
static void wake(const struct down *d)
{
	struct dm_line line;

	if (d->runs)
		relay_wake(d->runs);
	if (leads(d) && !dm_table_line(d->device, &line) && line.suspended)
		quiet_end(d->device);
}

static int take_down_now(const struct down *d)
{
	bool ask = d->runs && !d->force;
	struct dm_line line;
	int r = dm_table_line(d->device, &line);

	if (r)
		return r == -ENXIO ? 0 : r;
	if (line.open_count)
		return -EBUSY;
	r = ask ? stand_still(d) : 0;
	if (r)
		return r;
	r = dm_remove_now(d->device);
	if (r && ask)
		run_on(d);	/* who opened it meanwhile waits for that */
	return r;
}

/* Who looks at each device (udev) has it open for a moment. */
static int take_down(const struct down *d)
{
	int r;

	wake(d);
	r = take_down_now(d);
	for (u32 k = 0; r == -EBUSY && k < WAIT_TENTHS && !interrupt_seen(); k++) {
		usleep(100000);
		r = take_down_now(d);
	}
	if (r == -EBUSY)
		say_who_uses(d->device, d->name);
	return r;
}

/* ---- where it is ------------------------------------------------------------------------------ */

static int take_down_relayed(struct relay *relay, bool force)
{
	struct down d = { .name = relay->name, .device = relay->name, .runs = relay_runs(relay), .force = force };
	struct dm_line line;
	int r;

	if (relay_elsewhere(relay)) {
		ctl_error("volume '%s' has left already: the same terracectl leave ends it", relay->name);
		return -EBUSY;
	}
	if (dm_table_line(relay->name, &line))
		d.device = relay->below;	/* killed in between */
	r = labels_back(relay->uuid);
	if (!r)
		r = take_down(&d);
	return r ? r : relay_end(relay);
}

/* By what is used, or by what is below it. */
static bool find_relayed(struct relay *relay, const char *name)
{
	char above[DM_NAME_BYTES];
	size_t n = strlen(name), end = strlen(RELAY_BELOW);

	if (relay_left(relay, name))
		return true;
	if (n <= end || n >= sizeof(above) || strcmp(name + n - end, RELAY_BELOW))
		return false;
	snprintf(above, sizeof(above), "%.*s", (int)(n - end), name);
	return relay_left(relay, above);
}

/* One that does not say which it is can be stopped all the same. */
static int take_down_plain(const char *name, bool force)
{
	const struct down d = { .name = name, .device = name, .runs = name, .force = force };
	struct dm_volume *list;
	int r = 0;
	u32 nr;

	if (dm_volumes(&list, &nr))
		return -EIO;
	for (u32 i = 0; i < nr; i++)
		if (!strcmp(list[i].name, name))
			r = lock_active(&list[i]) == -EBUSY ? -EAGAIN : take_down(&d);
	free(list);
	return r;
}

int deactivate_volume(const char *name, bool force)
{
	struct relay relay;
	int r = find_relayed(&relay, name) ? lock_volume(relay.uuid, relay.name) : 0;

	/* who had the lock may have ended it since */
	if (!r)
		r = find_relayed(&relay, name) ? take_down_relayed(&relay, force) : take_down_plain(name, force);
	return r ? CTL_PROBLEM : CTL_OK;
}

/* ---- the command ------------------------------------------------------------------------------ */

static const char deactivate_help[] =
"usage: terracectl deactivate [--force] [--json] NAME...\n"
"\n"
"Stops a volume cleanly: /dev/mapper/NAME goes away, the devices stay as they\n"
"are. A volume that is mounted or open is refused, and who uses it is said. So is\n"
"one that cannot write to its devices what was last written to it: it can be\n"
"read until it is stopped. What add, replace or leave could not end is stopped as\n"
"well.\n"
"\n"
"  --force  even if that loses what was last written\n"
"  --json   print the result as JSON\n"
"  --help   this text\n"
"\n"
"Exit status: 0 stopped or not active, 1 in use or failed, 2 wrong usage.\n"
"\n"
"Example:\n"
"  umount /data && terracectl deactivate db\n";

/* Not active is as good as stopped, but not for a name that no volume has. */
static int deactivate_named(const char *name, bool force)
{
	struct dm_volume *list;
	struct relay relay;
	struct found found;
	bool known = false;
	u32 nr;

	if (!strncmp(name, DM_FOLDER, strlen(DM_FOLDER)))
		name += strlen(DM_FOLDER);
	if (dm_volumes(&list, &nr))
		return CTL_PROBLEM;
	for (u32 i = 0; i < nr; i++)
		known |= !strcmp(list[i].name, name);
	free(list);
	if (known || relay_left(&relay, name))
		return deactivate_volume(name, force);
	find_volumes(&found, NULL, 0);
	known = find_named(&found, name);
	find_free(&found);
	return known ? CTL_OK : CTL_PROBLEM;
}

static int deactivate_run(const struct ctl_command *cmd, int argc, char **argv)
{
	struct json_object *list;
	bool force = false, json = false;
	const struct args_option options[] = {
		{ .name = "force", .flag = &force }, { .name = "json", .flag = &json }, { .name = NULL },
	};
	int result = args_parse(cmd, argc, argv, options);

	if (result != ARGS_GO_ON)
		return result;
	if (optind == argc)
		return ctl_usage(cmd, "no volume given");
	result = CTL_OK;
	interrupt_watch();	/* before one is suspended */
	list = json_object_new_array();
	for (int i = optind; i < argc; i++) {
		struct json_object *o = json_object_new_object();
		bool failed = true;

		if (interrupt_seen())
			ctl_error("interrupted: '%s' is left as it is", argv[i]);
		else
			failed = deactivate_named(argv[i], force);
		json_object_object_add(o, "name", json_object_new_string(argv[i]));
		json_object_object_add(o, "active", json_object_new_boolean(failed));
		json_object_array_add(list, o);
		if (failed)
			result = CTL_PROBLEM;
	}
	if (json)
		ctl_json_print(list);
	else
		json_object_put(list);
	return result;
}

const struct ctl_command ctl_deactivate_command = {
	.name = "deactivate",
	.summary = "stop a volume cleanly",
	.help = deactivate_help,
	.run = deactivate_run,
};
