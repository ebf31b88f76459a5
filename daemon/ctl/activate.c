// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl activate: from labels to a device-mapper device.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "activate.h"
#include "check.h"
#include "complete.h"
#include "dm.h"
#include "kept.h"
#include "lock.h"
#include "names.h"

/* ---- the table -------------------------------------------------------------------- */

static const struct found_device *device_of(const struct found_volume *v, u32 tier)
{
	for (u32 i = 0; i < v->nr_devices; i++)
		if (v->device[i].label.tier_index == tier)
			return &v->device[i];
	return NULL;
}

static void append(char **line, const char *word)
{
	char *longer = ctl_text("%s %s", *line, word);

	free(*line);
	*line = longer;
}

static char *make_params(const struct found_volume *v, const struct tr_super *super,
			 const struct activate *how)
{
	const struct found_device *meta = device_of(v, TERRACE_META_DEVICE);
	char *line = ctl_text("%s %u", meta ? meta->path : "-", super->nr_tiers), *options;
	char *kept[KEPT_MAX];
	u32 nr_kept = kept_read(v->uuid, kept);

	for (u32 t = 0; t < super->nr_tiers; t++) {
		const struct found_device *d = device_of(v, t);

		append(&line, d ? d->path : "missing");
		append(&line, class_name(super->tier[t].class));
		append(&line, kind_name(super->tier[t].kind));
	}
	options = ctl_text("%u", nr_kept + how->nr_options + how->read_only);
	append(&line, options);
	free(options);
	if (how->read_only)
		append(&line, "read_only");
	for (u32 i = 0; i < nr_kept; i++) {	/* what is said now counts more: it comes last */
		append(&line, kept[i]);
		free(kept[i]);
	}
	for (u32 i = 0; i < how->nr_options; i++)
		append(&line, how->option[i]);
	return line;
}

/* ---- up ------------------------------------------------------------------------------ */

static int already_active(struct found_volume *v, const char *name)
{
	const struct found found = { .volume = v, .nr = 1 };
	struct dm_volume *list;
	int result = CTL_OK;
	u32 nr;

	if (find_active(&found, &list, &nr))
		return CTL_PROBLEM;
	for (u32 i = 0; i < nr && !result; i++) {
		if (memcmp(list[i].uuid, v->uuid, TERRACE_UUID_BYTES))
			continue;
		ctl_error("volume '%s' is active already, as /dev/mapper/%s%s", v->name, list[i].name,
			  !list[i].suspended ? "" :
			  ", but suspended, by a terracectl deactivate that was stopped perhaps: the same call ends it");
		result = CTL_PROBLEM;
	}
	free(list);
	if (!result && dm_exists(name)) {
		ctl_error("there is another device-mapper device '%s': choose a name with --as", name);
		result = CTL_PROBLEM;
	}
	return result;
}

/* Devices come one by one, and each asks: one after the other. */
static int lock_activation(void)
{
	int fd;

	mkdir("/run/terrace", 0700);
	fd = open("/run/terrace/activate.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0)
		flock(fd, LOCK_EX);
	return fd;
}

static void unlock_activation(int fd)
{
	if (fd >= 0)
		close(fd);
}

static int bring_up(struct found_volume *v, const struct activate *how)
{
	const char *name = how->name ? how->name : v->name;
	char *paths[FOUND_MAX_DEVICES], *params;
	struct tr_super super = { 0 };
	int r;

	if (v->twice[0]) {
		ctl_error("%s and %s say they are the same device of volume '%s': one of them is a copy; name the right ones: terracectl activate DEVICE...",
			  v->twice[0], v->twice[1], v->name);
		return CTL_PROBLEM;
	}
	if (lock_volume(v->uuid, v->name))
		return CTL_PROBLEM;
	dm_drop_unfinished(v->uuid);
	if (already_active(v, name))
		return CTL_PROBLEM;
	for (u32 i = 0; i < v->nr_devices; i++)
		paths[i] = v->device[i].path;
	r = check_before_use(paths, v->nr_devices, how->degraded, &super);
	if (r && (!how->force || !super.nr_tiers)) {
		ctl_error("volume '%s' is not activated: see above%s", v->name, !super.nr_tiers ? "" :
			  "; --degraded goes on without devices that are missing, --force whatever it is");
		return CTL_PROBLEM;
	}
	params = make_params(v, &super, how);
	r = dm_create(name, v->uuid, super.virtual_blocks * TERRACE_BLOCK_SECTORS, params,
		      how->read_only);
	free(params);
	return r ? CTL_PROBLEM : CTL_OK;
}

int activate_volume(struct found_volume *v, const struct activate *how)
{
	int lock = how->automatic ? -1 : lock_activation(), r = bring_up(v, how);	/* run_auto() has it */

	unlock_activation(lock);
	return r;
}

/* ---- the command ------------------------------------------------------------------------- */

static const char activate_help[] =
"usage: terracectl activate [OPTION]... VOLUME|DEVICE...\n"
"\n"
"Makes a volume usable as /dev/mapper/NAME. VOLUME is its name or UUID, and its\n"
"devices are found by their labels; or all its devices are named, in any order.\n"
"The quick check of terracectl check runs first.\n"
"\n"
"  --as NAME        as /dev/mapper/NAME; default: the volume's name\n"
"  --read-only      write nothing, not even a journal block\n"
"  --degraded       even if devices are missing: their blocks read as errors\n"
"  --force          even if the quick check finds problems\n"
"  --auto           as at boot: a volume that is active already, or whose devices\n"
"                   are not all there yet, is no error (with --degraded it is not\n"
"                   waited for them)\n"
"  --option WORD    an option of the table line, like commit_ms=500; repeatable\n"
"  --json           print the result as JSON\n"
"  --help           this text\n"
"\n"
"Exit status: 0 active, 1 refused or failed, 2 wrong usage.\n"
"\n"
"Examples:\n"
"  terracectl activate db\n"
"  terracectl activate --read-only --degraded db\n"
"  terracectl activate /dev/nvme0n1 /dev/sda\n";

/* @lacks NULL: it is active, else it waits for that. */
static void print_result(const struct activate *how, const struct found_volume *v, const char *lacks)
{
	struct json_object *o;
	char *device = ctl_text("/dev/mapper/%s", how->name ? how->name : v->name);

	if (how->json) {
		o = json_object_new_object();
		json_object_object_add(o, "name", json_object_new_string(v->name));
		json_object_object_add(o, "uuid", json_object_new_string(uuid_text(v->uuid)));
		json_object_object_add(o, "active", json_object_new_boolean(!lacks));
		json_object_object_add(o, "device", lacks ? NULL : json_object_new_string(device));
		json_object_object_add(o, "waits_for", lacks ? json_object_new_string(lacks) : NULL);
		ctl_json_print(o);
	} else if (lacks) {
		printf("volume '%s' (%s): waiting for %s\n", v->name, uuid_text(v->uuid), lacks);
	} else if (!how->automatic) {
		puts(device);
	}
	free(device);
}

static bool is_active(const struct found_volume *v)
{
	const struct found found = { .volume = (struct found_volume *)v, .nr = 1 };
	struct dm_volume *list;
	bool active = false;
	u32 nr;

	if (find_active(&found, &list, &nr))
		return false;
	for (u32 i = 0; i < nr; i++)
		active |= !memcmp(list[i].uuid, v->uuid, TERRACE_UUID_BYTES);
	free(list);
	return active;
}

static int run_auto(const struct activate *how, const char *word)
{
	int lock = lock_activation(), r = CTL_PROBLEM;
	char *path = *word == '/' ? realpath(word, NULL) : NULL, *lacks = NULL;
	struct found_volume *v;
	struct found found;

	find_volumes(&found, NULL, 0);
	v = find_named(&found, path ? path : word);
	if (v && is_active(v)) {
		r = CTL_OK;
		print_result(how, v, NULL);
	} else if (v && lock_volume(v->uuid, v->name) == -EBUSY) {
		r = CTL_OK;	/* stopped for a moment */
	} else if (v) {
		lacks = volume_lacks(v);
		if (lacks && !how->degraded) {
			print_result(how, v, lacks);
			r = CTL_OK;
		} else {
			if (lacks)
				ctl_error("volume '%s': %s did not come: going on without, blocks that are only there read as errors; attach it, then: terracectl deactivate %s && terracectl activate %s",
					  v->name, lacks, v->name, v->name);
			r = activate_volume(v, how);
			if (!r)
				print_result(how, v, NULL);
		}
	}
	free(lacks);
	free(path);
	find_free(&found);
	unlock_activation(lock);
	return r;
}

static int run_activate(const struct activate *how, char **words, int nr)
{
	struct found_volume *v;
	struct found found;
	int r = CTL_PROBLEM;

	if (how->automatic)
		return run_auto(how, words[0]);
	find_volumes(&found, *words[0] == '/' ? words : NULL, *words[0] == '/' ? nr : 0);
	v = find_named(&found, words[0]);
	if (v)
		r = activate_volume(v, how);
	if (!r)
		print_result(how, v, NULL);
	find_free(&found);
	return r;
}

static int activate_run(const struct ctl_command *cmd, int argc, char **argv)
{
	static const struct option options[] = {
		{ "as", required_argument, NULL, 'a' },
		{ "read-only", no_argument, NULL, 'r' },
		{ "degraded", no_argument, NULL, 'd' },
		{ "force", no_argument, NULL, 'f' },
		{ "auto", no_argument, NULL, 'A' },
		{ "option", required_argument, NULL, 'o' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct activate how = { 0 };
	int opt;

	while ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (opt) {
		case 'a':
			how.name = optarg;
			break;
		case 'r':
			how.read_only = true;
			break;
		case 'd':
			how.degraded = true;
			break;
		case 'f':
			how.force = true;
			how.degraded = true;
			break;
		case 'A':
			how.automatic = true;
			break;
		case 'j':
			how.json = true;
			break;
		case 'o':
			if (how.nr_options == 63 || strchr(optarg, ' '))
				return ctl_usage(cmd, "--option %s: at most 63, of one word each", optarg);
			how.option[how.nr_options++] = optarg;
			break;
		case 'h':
			return ctl_help(cmd);
		default:
			return ctl_usage(cmd, "wrong option");
		}
	}
	if (optind == argc)
		return ctl_usage(cmd, "no volume given: its name, its UUID, or all its devices");
	if ((*argv[optind] != '/' || how.automatic) && argc - optind > 1)
		return ctl_usage(cmd, "'%s': one volume at a time", argv[optind + 1]);
	return run_activate(&how, argv + optind, argc - optind);
}

const struct ctl_command ctl_activate_command = {
	.name = "activate",
	.summary = "make a volume usable as /dev/mapper/NAME",
	.help = activate_help,
	.run = activate_run,
};
