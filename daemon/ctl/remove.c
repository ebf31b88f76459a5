// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl remove: the volume ceases to exist, its devices are free again.
 * The labels go first, on all devices, so that an interrupted remove leaves no
 * volume that looks whole; what is left of one can be removed again.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "activate.h"
#include "args.h"
#include "device.h"
#include "lock.h"
#include "names.h"
#include "term.h"

static const char help_text[] =
"usage: terracectl remove [--yes] [--json] VOLUME\n"
"\n"
"Deactivates a volume and takes the labels and superblocks off its devices.\n"
"All its data are lost. VOLUME is its name or UUID. Asks first.\n"
"\n"
"  --yes    do not ask\n"
"  --json   print the result as JSON\n"
"  --help   this text\n"
"\n"
"Exit status: 0 done, 1 refused or failed, 2 wrong usage.\n"
"\n"
"Example:\n"
"  terracectl remove db\n";

static int wipe(struct device *dev, const struct tr_label *label)
{
	int r = device_zero(dev, 0, TERRACE_LABEL_COPIES);

	if (!r && label->meta_blocks)
		r = device_zero(dev, label->meta_start, 2);
	if (!r)
		r = device_flush(dev);
	if (r)
		ctl_error("%s: cannot write: %s", dev->path, strerror(-r));
	return r;
}

/* All are opened before the first is written: a device in use stops it. */
static int wipe_all(const struct found_volume *v)
{
	struct device dev[FOUND_MAX_DEVICES];
	u32 opened = 0;
	int r = 0;

	while (!r && opened < v->nr_devices) {
		r = device_open(&dev[opened], v->device[opened].path, DEVICE_WRITE);
		opened += !r;
	}
	for (u32 i = 0; i < opened && !r; i++)
		r = wipe(&dev[i], &v->device[i].label);
	while (opened)
		device_close(&dev[--opened]);
	return r ? CTL_PROBLEM : CTL_OK;
}

static int stop_active(const struct found *found, const u8 *uuid)
{
	struct dm_volume *list;
	int r = CTL_OK;
	u32 nr;

	dm_drop_unfinished(uuid);
	if (find_active(found, &list, &nr))
		return CTL_PROBLEM;
	for (u32 i = 0; i < nr && !r; i++)
		if (!memcmp(list[i].uuid, uuid, TERRACE_UUID_BYTES))
			r = deactivate_volume(list[i].name, true);
	free(list);
	return r;
}

static int remove_volume(const struct found *found, const struct found_volume *v, bool yes)
{
	char *question;

	if (v->twice[0]) {
		ctl_error("%s and %s say they are the same device: detach the one that is a copy",
			  v->twice[0], v->twice[1]);
		return CTL_PROBLEM;
	}
	fprintf(stderr, "Volume '%s' (%s) on", v->name, uuid_text(v->uuid));
	for (u32 i = 0; i < v->nr_devices; i++)
		fprintf(stderr, " %s", v->device[i].path);
	fputs("\n", stderr);
	question = ctl_text("Remove volume '%s' and all its data?", v->name);
	if (!yes && !term_confirm(question)) {
		free(question);
		return CTL_PROBLEM;
	}
	free(question);
	if (lock_volume(v->uuid, v->name) || stop_active(found, v->uuid))
		return CTL_PROBLEM;
	return wipe_all(v);
}

static void print_json(const struct found_volume *v)
{
	struct json_object *o = json_object_new_object(), *devices = json_object_new_array();

	for (u32 i = 0; i < v->nr_devices; i++)
		json_object_array_add(devices, json_object_new_string(v->device[i].path));
	json_object_object_add(o, "name", json_object_new_string(v->name));
	json_object_object_add(o, "uuid", json_object_new_string(uuid_text(v->uuid)));
	json_object_object_add(o, "removed", json_object_new_boolean(true));
	json_object_object_add(o, "devices", devices);
	ctl_json_print(o);
}

static int remove_run(const struct ctl_command *cmd, int argc, char **argv)
{
	struct found_volume *v;
	struct found found;
	bool yes = false, json = false;
	const struct args_option options[] = {
		{ .name = "yes", .flag = &yes }, { .name = "json", .flag = &json }, { .name = NULL },
	};
	int r = args_one_volume(cmd, argc, argv, options);

	if (r != ARGS_GO_ON)
		return r;
	find_volumes(&found, NULL, 0);
	v = find_named(&found, argv[optind]);
	r = v ? remove_volume(&found, v, yes) : CTL_PROBLEM;
	if (!r && json)
		print_json(v);
	find_free(&found);
	return r;
}

const struct ctl_command ctl_remove_command = {
	.name = "remove",
	.summary = "take a volume off its devices: all its data are lost",
	.help = help_text,
	.run = remove_run,
};
