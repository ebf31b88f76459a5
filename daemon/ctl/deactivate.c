// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl deactivate: the device-mapper device goes, its devices are free.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "activate.h"
#include "args.h"
#include "lock.h"
#include "sysfs.h"

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

static char *who_uses(const struct dm_volume *v)
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

int deactivate_volume(const char *name)
{
	struct dm_volume *list;
	u32 nr, i;
	int r;

	if (dm_volumes(&list, &nr))
		return CTL_PROBLEM;
	for (i = 0; i < nr && strcmp(list[i].name, name); i++)
		;
	/* one that does not say which it is can be stopped all the same */
	if (i < nr && lock_active(&list[i]) == -EBUSY) {
		free(list);
		return CTL_PROBLEM;
	}
	r = i < nr ? dm_remove(name) : 0;
	if (r == -EBUSY) {
		char *why = who_uses(&list[i]);

		ctl_error("volume '%s' is in use: %s", name, why);
		free(why);
	}
	free(list);
	return r ? CTL_PROBLEM : CTL_OK;
}

static const char deactivate_help[] =
"usage: terracectl deactivate [--json] NAME...\n"
"\n"
"Stops a volume cleanly: /dev/mapper/NAME goes away, the devices stay as they\n"
"are. A volume that is mounted or open is refused, and who uses it is said.\n"
"\n"
"  --json   print the result as JSON\n"
"  --help   this text\n"
"\n"
"Exit status: 0 stopped or not active, 1 in use or failed, 2 wrong usage.\n"
"\n"
"Example:\n"
"  umount /data && terracectl deactivate db\n";

/* Not active is as good as stopped, but not for a name that no volume has. */
static int deactivate_named(const char *name)
{
	struct dm_volume *list;
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
	if (known)
		return deactivate_volume(name);
	find_volumes(&found, NULL, 0);
	known = find_named(&found, name);
	find_free(&found);
	return known ? CTL_OK : CTL_PROBLEM;
}

static int deactivate_run(const struct ctl_command *cmd, int argc, char **argv)
{
	struct json_object *list;
	bool json = false;
	int result = args_plain(cmd, argc, argv, &json);

	if (result != ARGS_GO_ON)
		return result;
	if (optind == argc)
		return ctl_usage(cmd, "no volume given");
	result = CTL_OK;
	list = json_object_new_array();
	for (int i = optind; i < argc; i++) {
		struct json_object *o = json_object_new_object();
		bool failed = deactivate_named(argv[i]);

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
