// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl list: all volumes that are active or whose labels are found.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "find.h"
#include "names.h"
#include "term.h"

static const char help_text[] =
"usage: terracectl list [--json | --names]\n"
"\n"
"Lists the volumes of this machine, active ones and those whose labels are on\n"
"its drives, with their devices.\n"
"\n"
"  --json     as JSON\n"
"  --names    names only, one a line, for scripts\n"
"  --help     this text\n"
"\n"
"Exit status: 0 done, 1 failed, 2 wrong usage.\n"
"\n"
"Example:\n"
"  terracectl list\n";

/* As far as the labels of what is here tell: a tier beyond them is not known. */
static u32 tiers_missing(const struct found_volume *v)
{
	u32 tiers = 0, last = 0;

	for (u32 i = 0; i < v->nr_devices; i++) {
		u32 t = v->device[i].label.tier_index;

		if (t == TERRACE_META_DEVICE)
			continue;
		tiers++;
		last = t > last ? t : last;
	}
	return tiers ? last + 1 - tiers : 1;
}

static const char *state(const struct found_volume *v, const struct dm_volume *active)
{
	if (active)
		return active->suspended ? "suspended" : active->read_only ? "read-only" : "active";
	if (v->twice[0])
		return "ambiguous";
	return tiers_missing(v) || v->nr_devices < 2 ? "incomplete" : "inactive";
}

static const struct dm_volume *active_one(const struct dm_volume *list, u32 nr, const u8 *uuid)
{
	for (u32 i = 0; i < nr; i++)
		if (!memcmp(list[i].uuid, uuid, TERRACE_UUID_BYTES))
			return &list[i];
	return NULL;
}

static void print_text(const struct found_volume *v, const struct dm_volume *active)
{
	const char *what = state(v, active);

	printf("%-16s %s  %-10s %10s ", v->name, uuid_text(v->uuid), what,
	       active ? size_text(active->sectors / TERRACE_BLOCK_SECTORS) : "-");
	for (u32 i = 0; i < v->nr_devices; i++) {
		const struct tr_label *label = &v->device[i].label;

		printf(" %s=%s", class_name(label->class), v->device[i].path);
	}
	if (active && strcmp(active->name, v->name))
		printf("  as /dev/mapper/%s", active->name);
	putchar('\n');
}

static struct json_object *text(const char *value)
{
	return json_object_new_string(value);
}

static struct json_object *volume_json(const struct found_volume *v, const struct dm_volume *active)
{
	struct json_object *o = json_object_new_object(), *devices = json_object_new_array();

	json_object_object_add(o, "name", text(v->name));
	json_object_object_add(o, "uuid", text(uuid_text(v->uuid)));
	json_object_object_add(o, "state", text(state(v, active)));
	if (active) {
		json_object_object_add(o, "active_as", text(active->name));
		json_object_object_add(o, "bytes", json_object_new_uint64(active->sectors * 512));
	}
	for (u32 i = 0; i < v->nr_devices; i++) {
		const struct tr_label *label = &v->device[i].label;
		struct json_object *d = json_object_new_object();

		json_object_object_add(d, "device", text(v->device[i].path));
		if (label->tier_index != TERRACE_META_DEVICE)
			json_object_object_add(d, "tier", json_object_new_uint64(label->tier_index));
		json_object_object_add(d, "class", text(class_name(label->class)));
		json_object_object_add(d, "kind", text(kind_name(label->kind)));
		json_object_array_add(devices, d);
	}
	json_object_object_add(o, "devices", devices);
	return o;
}

/* Active, but none of its labels was found: its devices are suspended, say. */
static bool is_found(const struct found *found, const struct dm_volume *active)
{
	for (u32 i = 0; i < found->nr; i++)
		if (!memcmp(found->volume[i].uuid, active->uuid, TERRACE_UUID_BYTES))
			return true;
	return false;
}

static struct found_volume only_active(const struct dm_volume *active)
{
	struct found_volume v = { 0 };

	memcpy(v.uuid, active->uuid, TERRACE_UUID_BYTES);
	snprintf(v.name, sizeof(v.name), "%.63s", active->name);
	return v;
}

static void show(const struct found_volume *v, const struct dm_volume *active, bool names,
		 struct json_object *list)
{
	if (names)
		puts(active ? active->name : v->name);
	else if (list)
		json_object_array_add(list, volume_json(v, active));
	else
		print_text(v, active);
}

static int list_volumes(bool names, bool json)
{
	struct json_object *list = json ? json_object_new_array() : NULL;
	struct dm_volume *active;
	struct found found;
	u32 nr;

	find_volumes(&found, NULL, 0);
	if (find_active(&found, &active, &nr)) {
		find_free(&found);
		json_object_put(list);
		return CTL_PROBLEM;
	}
	for (u32 i = 0; i < found.nr; i++)
		show(&found.volume[i], active_one(active, nr, found.volume[i].uuid), names, list);
	for (u32 i = 0; i < nr; i++) {
		struct found_volume v = only_active(&active[i]);

		if (!is_found(&found, &active[i]))
			show(&v, &active[i], names, list);
	}
	if (list)
		ctl_json_print(list);
	find_free(&found);
	free(active);
	return CTL_OK;
}

static int list_run(const struct ctl_command *cmd, int argc, char **argv)
{
	bool json = false, names = false;
	const struct args_option options[] = {
		{ .name = "json", .flag = &json }, { .name = "names", .flag = &names }, { .name = NULL },
	};
	int r = args_parse(cmd, argc, argv, options);

	if (r != ARGS_GO_ON)
		return r;
	if (optind < argc)
		return ctl_usage(cmd, "'%s': list takes no arguments; terracectl status NAME shows one",
				 argv[optind]);
	return list_volumes(names, json);
}

const struct ctl_command ctl_list_command = {
	.name = "list",
	.summary = "the volumes of this machine",
	.help = help_text,
	.run = list_run,
};
