// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl label: does this device belong to a volume, and to which? For
 * udev, so it reads two blocks and no more.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "find.h"
#include "names.h"

static const char help_text[] =
"usage: terracectl label [--json | --udev] DEVICE\n"
"\n"
"What the Terrace label of a device says: the volume, and what the device is in\n"
"it. Reads nothing else; works on devices in use.\n"
"\n"
"  --json    as JSON\n"
"  --udev    as properties of a udev rule: TERRACE_VOLUME=…\n"
"  --help    this text\n"
"\n"
"Exit status: 0 it has a label, 1 it has none, 2 wrong usage.\n"
"\n"
"Example:\n"
"  terracectl label /dev/nvme0n1\n";

static const char *role(const struct tr_label *label)
{
	static char text[16];

	if (label->tier_index == TERRACE_META_DEVICE)
		return "metadata";
	snprintf(text, sizeof(text), "tier %u", label->tier_index);
	return text;
}

static void print_udev(const struct found_volume *v, const struct tr_label *label)
{
	printf("TERRACE_VOLUME=%s\nTERRACE_NAME=%s\n", uuid_text(v->uuid), v->name);
	if (label->tier_index != TERRACE_META_DEVICE)
		printf("TERRACE_TIER=%u\n", label->tier_index);
}

static void print_json(const struct found_volume *v, const struct tr_label *label)
{
	struct json_object *o = json_object_new_object();
	bool meta = label->tier_index == TERRACE_META_DEVICE;

	json_object_object_add(o, "volume", json_object_new_string(uuid_text(v->uuid)));
	json_object_object_add(o, "name", json_object_new_string(v->name));
	json_object_object_add(o, "tier", meta ? NULL : json_object_new_int64(label->tier_index));
	json_object_object_add(o, "class", meta ? NULL : json_object_new_string(class_name(label->class)));
	json_object_object_add(o, "kind", meta ? NULL : json_object_new_string(kind_name(label->kind)));
	ctl_json_print(o);
}

static int show(char *path, int as)
{
	const struct tr_label *label;
	struct found found;
	int r = CTL_PROBLEM;

	find_volumes(&found, &path, 1);
	if (found.nr) {
		label = &found.volume[0].device[0].label;
		if (as == 'u')
			print_udev(&found.volume[0], label);
		else if (as == 'j')
			print_json(&found.volume[0], label);
		else
			printf("%s: %s of volume '%s' %s\n", path, role(label), found.volume[0].name,
			       uuid_text(found.volume[0].uuid));
		r = CTL_OK;
	} else if (as != 'u') {
		if (access(path, R_OK))
			ctl_error("%s: %s", path, strerror(errno));
		else
			ctl_error("%s carries no Terrace label", path);
	}
	find_free(&found);
	return r;
}

static int label_run(const struct ctl_command *cmd, int argc, char **argv)
{
	bool json = false, udev = false;
	const struct args_option options[] = {
		{ .name = "json", .flag = &json }, { .name = "udev", .flag = &udev }, { .name = NULL },
	};
	int r = args_parse(cmd, argc, argv, options);

	if (r != ARGS_GO_ON)
		return r;
	if (argc - optind != 1)
		return ctl_usage(cmd, "name one device");
	return show(argv[optind], udev ? 'u' : json ? 'j' : 0);
}

const struct ctl_command ctl_label_command = {
	.name = "label",
	.summary = "which volume a device belongs to",
	.help = help_text,
	.run = label_run,
};
