// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl set: tunables of an active volume, now and, if told, at each
 * activation from then on.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "control.h"
#include "kept.h"
#include "sysfs.h"
#include "tiers.h"

struct setting {
	struct dm_volume volume;
	u8 uuid[TERRACE_UUID_BYTES];
	char folder[64];
	bool keep, forget;
	struct json_object *list;	/* NULL: text */
};

static void show_tunable(void *ctx, const char *name)
{
	const struct setting *s = ctx;
	u64 value = sysfs_number(0, "%s/%s", s->folder, name);
	char *kept = kept_value(s->uuid, name);
	struct json_object *o;

	if (s->list) {
		o = json_object_new_object();
		json_object_object_add(o, "value", json_object_new_uint64(value));
		json_object_object_add(o, "kept", kept ? json_object_new_string(kept) : NULL);
		json_object_object_add(s->list, name, o);
	} else {
		printf("%s=%llu\n", name, (unsigned long long)value);
	}
	free(kept);
}

static void print_name(void *ctx, const char *name)
{
	(void)ctx;
	fprintf(stderr, " %s", name);
}

static int unknown_tunable(const struct setting *s, const char *tunable)
{
	ctl_error("there is no tunable '%s'", tunable);
	fputs("There are:", stderr);
	sysfs_each(s->folder, print_name, NULL);
	fputc('\n', stderr);
	return CTL_PROBLEM;
}

static int change(const struct setting *s, const char *tunable, const char *value)
{
	char *path = ctl_text("%s/%s", s->folder, tunable);
	int r = sysfs_write(path, value);

	free(path);
	if (r)
		ctl_error("%s cannot be '%s': %s; Documentation/target.md has the ranges", tunable,
			  value, r == -EINVAL ? "not a number in its range" : strerror(-r));
	else if (s->keep)	/* what the kernel has taken */
		r = kept_write(s->uuid, tunable, value);
	return r ? CTL_PROBLEM : CTL_OK;
}

static int set_one(struct setting *s, const char *tunable, const char *value)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", s->folder, tunable);
	if (strchr(tunable, '/') || *tunable == '.' || access(path, F_OK))
		return unknown_tunable(s, tunable);
	if (s->forget)
		return kept_write(s->uuid, tunable, NULL) ? CTL_PROBLEM : CTL_OK;
	if (value)
		return change(s, tunable, value);
	show_tunable(s, tunable);
	return CTL_OK;
}

/* One made with dmsetup by hand says its UUID itself. */
static int open_volume(struct setting *s, const char *name)
{
	struct terrace_hello hello;
	int fd;

	if (dm_named(&s->volume, name))
		return CTL_PROBLEM;
	snprintf(s->folder, sizeof(s->folder), VOLUME_FOLDER "/tune", s->volume.minor);
	fd = control_open(&s->volume, &hello);
	if (fd < 0)
		return CTL_PROBLEM;
	close(fd);
	memcpy(s->uuid, hello.volume_uuid, sizeof(s->uuid));
	return CTL_OK;
}

static const char help_text[] =
"usage: terracectl set [OPTION]... NAME [TUNABLE [VALUE]]\n"
"\n"
"Changes a tunable of an active volume at once; it lasts until the volume is\n"
"deactivated, or with --keep on this machine for good. Without VALUE prints it,\n"
"without TUNABLE prints all. (For one activation: terracectl activate --option.)\n"
"\n"
"  --keep    each activation on this machine sets it as well (in\n"
"            /etc/terrace/UUID.options)\n"
"  --forget  not any more: the default, from the next activation on\n"
"  --json    value and kept value, as JSON\n"
"  --help    this text\n"
"\n"
"Exit status: 0 done, 1 refused, 2 wrong usage.\n"
"\n"
"Examples:\n"
"  terracectl set db\n"
"  terracectl set db stream_kb 0\n"
"  terracectl set --keep db commit_ms 500\n";

static int set_run(const struct ctl_command *cmd, int argc, char **argv)
{
	struct setting s = { .list = NULL };
	bool json = false;
	const struct args_option options[] = {
		{ .name = "keep", .flag = &s.keep }, { .name = "forget", .flag = &s.forget },
		{ .name = "json", .flag = &json }, { .name = NULL },
	};
	int r = args_parse(cmd, argc, argv, options), nr = argc - optind;

	if (r != ARGS_GO_ON)
		return r;
	if (!nr || nr > 3)
		return ctl_usage(cmd, "%s", nr ? "too many arguments" : "no volume given");
	if (s.keep && (nr != 3 || s.forget))
		return ctl_usage(cmd, "--keep needs a tunable and its value");
	if (s.forget && nr != 2)
		return ctl_usage(cmd, "--forget needs a tunable and no value");
	r = open_volume(&s, argv[optind]);
	if (r)
		return r;
	s.list = json ? json_object_new_object() : NULL;
	if (nr == 1)
		sysfs_each(s.folder, show_tunable, &s);
	else
		r = set_one(&s, argv[optind + 1], nr == 3 ? argv[optind + 2] : NULL);
	if (s.list && !r && nr == 3)
		show_tunable(&s, argv[optind + 1]);
	if (s.list && !r)
		ctl_json_print(s.list);
	else
		json_object_put(s.list);
	return r;
}

const struct ctl_command ctl_set_command = {
	.name = "set",
	.summary = "change a tunable of an active volume",
	.help = help_text,
	.run = set_run,
};
