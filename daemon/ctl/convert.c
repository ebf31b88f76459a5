// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl convert: a new volume with the data of a plain device. Three
 * steps, each known by what it leaves, so that the same call goes on:
 *
 *	make the volume		as terracectl create; stopped before its labels:
 *				made anew, after them: a volume that has nothing
 *	fill it			convert_copy.c; stopped: the mark is there
 *	say how it goes on	stopped: it begins as the device does; compared again
 *
 * The device is read and never written. terracectl remove takes the volume
 * back at any time.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "activate.h"
#include "classify.h"
#include "control.h"
#include "convert.h"
#include "create.h"
#include "interrupt.h"
#include "names.h"
#include "term.h"
#include "tiers.h"

struct convert {
	struct format *f;
	struct source source;
	struct convert_copy copy;
	char *path;		/* of the volume */
	int control;		/* of it: its hints last as long as this is open */
	bool went_on, was_done;
};

static const char help_text[] =
"usage: terracectl convert NAME --from DEVICE\n"
"                          --tier [CLASS[:KIND][:WORD]...=]DEVICE... [OPTION]...\n"
"\n"
"Takes a plain device's data, filesystem and all, into a new volume of the same\n"
"size on other devices: makes the volume as terracectl create does, copies (what\n"
"is zeros takes no room), compares every byte, and says how to go on. The device\n"
"is only read; it must not be in use, or be mounted read-only.\n"
"\n"
"Interrupted or killed, the same call goes on where it was, and terracectl remove\n"
"NAME takes the volume back. Until the end the volume cannot be mounted: its\n"
"first block, copied last, says what it is.\n"
"\n"
"  --from DEVICE      whose data; its size becomes that of the volume\n"
"  --tier [CLASS[:KIND][:WORD]...=]DEVICE\n"
"                     the volume's devices from fast to slow, see terracectl create\n"
"  --meta DEVICE, --overcommit SIZE, --journal SIZE, --mirror WHAT,\n"
"  --reserve PERCENT, --uuid UUID\n"
"                     see terracectl format --help\n"
"  --config FILE      see terracectl create --help\n"
"  --force            overwrite what the volume's devices hold (never devices in\n"
"                     use)\n"
"  --yes              do not ask\n"
"  --dry-run          show the plan, write nothing\n"
"  --json             the result as JSON (with --dry-run: the plan)\n"
"  --help             this text\n"
"\n"
"Exit status: 0 done, 1 refused, failed or interrupted, 2 wrong usage.\n"
"\n"
"Examples:\n"
"  umount /data\n"
"  terracectl convert db --from /dev/sdb --tier /dev/nvme0n1 --tier /dev/sdc\n"
"  mount /dev/mapper/db /data\n";

/* ---- a volume of an earlier call ----------------------------------------------------------------- */

static bool has(const struct found_volume *v, const char *path)
{
	struct stat a, b;

	for (u32 i = 0; i < v->nr_devices; i++)
		if (!stat(path, &a) && !stat(v->device[i].path, &b) && S_ISBLK(a.st_mode) && a.st_rdev == b.st_rdev)
			return true;
	return false;
}

/* Of that name, on just the devices of this call. */
static struct found_volume *find_ours(struct found *found, const struct format *f)
{
	for (u32 i = 0; i < found->nr; i++) {
		struct found_volume *v = &found->volume[i];
		u32 nr = 0;

		for (u32 d = 0; d < f->nr_devices; d++)
			nr += has(v, f->path[d]);
		if (nr == f->nr_devices && nr == v->nr_devices && !strcmp(v->name, f->args.name))
			return v;
	}
	return NULL;
}

/* 1: as /dev/mapper/NAME, 0: not, -1 after a message. */
static int is_active(const struct found_volume *v)
{
	struct dm_volume *list;
	int active = 0;
	u32 nr;

	if (dm_volumes(&list, &nr))
		return -1;
	for (u32 i = 0; i < nr && !active; i++) {
		if (memcmp(list[i].uuid, v->uuid, TERRACE_UUID_BYTES))
			continue;
		active = strcmp(list[i].name, v->name) ? -1 : 1;
		if (active < 0)
			ctl_error("volume '%s' is active as /dev/mapper/%s: terracectl deactivate %s first", v->name,
				  list[i].name, list[i].name);
	}
	free(list);
	return active;
}

/* *@there: an earlier call has made it; CTL_OK: then it is active now. */
static int take_up(struct convert *c, bool *there)
{
	const struct activate how = { 0 };
	struct found_volume *v;
	struct found found;
	int active, r = CTL_OK;

	find_volumes(&found, NULL, 0);
	v = find_ours(&found, c->f);
	*there = v;
	if (v) {
		active = is_active(v);
		if (active < 0 || (!active && !c->f->dry_run && activate_volume(v, &how)))
			r = CTL_PROBLEM;
	}
	find_free(&found);
	return r;
}

/* ---- the volume ------------------------------------------------------------------------------------ */

static bool is_empty(const struct dm_volume *v)
{
	struct ctl_tier tiers[TERRACE_MAX_TIERS];
	u32 nr = tiers_read(v, tiers);
	bool empty = nr;

	for (u32 t = 0; t < nr; t++)
		empty = empty && !tiers[t].used_blocks && !tiers[t].missing;
	return empty;
}

/* What is copied is cold, and that it is copied is no heat: to the shelves, in a stream. Best effort. */
static void hint_cold(struct convert *c, const struct dm_volume *v)
{
	static const u32 hints[] = { TERRACE_RANGE_HINT_COLD, TERRACE_RANGE_HINT_NOHEAT };
	struct terrace_range range = { .nr = c->copy.volume.blocks };
	struct terrace_hello hello;

	c->control = control_open(v, &hello);
	for (u32 i = 0; i < 2 && c->control >= 0; i++) {
		range.what = hints[i];
		if (ioctl(c->control, TERRACE_IOC_RANGE, &range))
			ctl_error("note: the copy may fill the fast tier: %s", strerror(errno));
	}
}

/* Opens it, so that nobody else does. CTL_OK: to be filled, or filled already. */
static int look_at_volume(struct convert *c)
{
	struct dm_volume v;
	int r;

	if (dm_named(&v, c->f->args.name) || device_open(&c->copy.volume, c->path, DEVICE_WRITE))
		return CTL_PROBLEM;
	memcpy(c->copy.uuid, v.uuid, TERRACE_UUID_BYTES);
	r = convert_state(&c->copy, is_empty(&v));
	if (r == CONVERT_OTHER)
		ctl_error("there is a volume '%s' (%s) on these devices already, with other data than those of %s: nothing changed; another NAME and other devices, or terracectl remove %s",
			  v.name, size_text(c->copy.volume.blocks), c->source.dev.path, v.name);
	if (r < 0 || r == CONVERT_OTHER)
		return CTL_PROBLEM;
	c->went_on = r == CONVERT_BEGUN;
	c->was_done = r == CONVERT_DONE;
	if (!c->was_done)
		hint_cold(c, &v);
	if (c->went_on)
		fprintf(stderr, "'%s' is being filled from %s: going on\n", v.name, c->source.dev.path);
	return CTL_OK;
}

static bool confirmed(const struct convert *c)
{
	char *question = ctl_text("Make this volume and copy %s (%s) into it? What the volume's devices hold is lost; %s is only read.",
				  c->source.dev.path, size_text(c->source.blocks), c->source.dev.path);
	bool yes = c->f->yes || term_confirm(question);

	free(question);
	return yes;
}

static int refuse_double(const struct convert *c)
{
	struct stat a, b;

	for (u32 i = 0; i < c->f->nr_devices; i++) {
		if (stat(c->f->from, &a) || stat(c->f->path[i], &b) ||
		    (S_ISBLK(a.st_mode) ? a.st_rdev != b.st_rdev : a.st_dev != b.st_dev || a.st_ino != b.st_ino))
			continue;
		ctl_error("%s cannot become a device of the volume while its data are copied: name other devices, and terracectl add it afterwards",
			  c->f->from);
		return CTL_USAGE;
	}
	return CTL_OK;
}

static int make_volume(struct convert *c)
{
	int r;

	c->f->args.virtual_blocks = c->source.blocks;
	r = create_prepare(c->f);
	if (r)
		return r;
	if (c->f->dry_run && c->f->json)
		ctl_json_print(format_plan_json(c->f));
	else if (!c->f->json)
		format_print_plan(c->f);
	if (c->f->dry_run)
		return CTL_OK;
	fflush(stdout);
	if (!confirmed(c))
		return CTL_PROBLEM;
	return create_make(c->f);
}

/* ---- the end ------------------------------------------------------------------------------------------ */

/* What takes the device in, or why nothing does. */
static void print_add(const struct convert *c)
{
	const struct tr_plan_device *last = &c->f->args.tier[c->f->args.nr_tiers - 1];
	const char *path = c->source.dev.path;
	u32 class = classify(&c->source.dev).class;

	if (class && last->class && class < last->class)
		printf("It is %s, faster than the volume's slowest tier; terracectl add takes slower ones only.\n",
		       class_name(class));
	else
		printf("As one more tier it joins the volume by:\n"
		       "  terracectl add %s --force --tier %s=%s\n", c->f->args.name,
		       class ? class_name(class) : "CLASS", path);
}

static int report(const struct convert *c)
{
	const char *from = c->source.dev.path;
	struct json_object *o;

	if (!c->f->json) {
		printf("%s holds all of %s%s: %llu bytes, of which %llu were copied%s; every byte was compared.\n"
		       "Mount it in the place of %s. Both have the same filesystem UUID: before the next\n"
		       "boot name %s in /etc/fstab, or take the old data away (wipefs -a %s).\n",
		       c->path, from, c->was_done ? " already" : "", (unsigned long long)c->source.bytes,
		       (unsigned long long)c->copy.copied_blocks * TERRACE_BLOCK_BYTES,
		       c->went_on || c->was_done ? " by this call" : ", and all else is zeros", from, c->path, from);
		print_add(c);
		return CTL_OK;
	}
	o = json_object_new_object();
	json_object_object_add(o, "name", json_object_new_string(c->f->args.name));
	json_object_object_add(o, "device", json_object_new_string(c->path));
	json_object_object_add(o, "from", json_object_new_string(from));
	json_object_object_add(o, "bytes", json_object_new_uint64(c->source.bytes));
	json_object_object_add(o, "copied_bytes",
			       json_object_new_uint64(c->copy.copied_blocks * TERRACE_BLOCK_BYTES));
	json_object_object_add(o, "compared_again_bytes", json_object_new_uint64(c->copy.again_bytes));
	json_object_object_add(o, "went_on", json_object_new_boolean(c->went_on));
	json_object_object_add(o, "was_done", json_object_new_boolean(c->was_done));
	ctl_json_print(o);
	return CTL_OK;
}

static int fill(struct convert *c)
{
	int r = look_at_volume(c);

	if (r)
		return r;
	interrupt_watch();
	r = c->was_done ? convert_verify(&c->copy) : convert_copy(&c->copy);
	if (!r)
		return report(c);
	if (c->was_done) {
		ctl_error("nothing changed: use the volume, or terracectl remove %s, then the same call", c->f->args.name);
		return CTL_PROBLEM;
	}
	ctl_error("%s: %s is as it was; the same call goes on, terracectl remove %s takes the volume back",
		  r == -EINTR ? "interrupted" : "not done", c->source.dev.path, c->f->args.name);
	return CTL_PROBLEM;
}

static int convert_device(struct convert *c)
{
	bool there;
	int r = refuse_double(c);

	if (r)
		return r;
	if (source_open(&c->source, c->f->from))
		return CTL_PROBLEM;
	c->copy.source = &c->source;
	r = source_refuse(&c->source);
	if (!r)
		r = take_up(c, &there);
	if (!r && !there)
		r = make_volume(c);
	else if (!r && c->f->dry_run)
		printf("there is a volume '%s' on these devices: the call would go on with it, if it can\n",
		       c->f->args.name);
	return r || c->f->dry_run ? r : fill(c);
}

static int convert_run(const struct ctl_command *cmd, int argc, char **argv)
{
	struct convert c = { .f = create_begin(), .source.dev.fd = -1, .copy.volume.fd = -1,
			     .control = -1 };
	bool help = false;
	int r;

	c.f->convert = true;
	r = format_parse(c.f, cmd, argc, argv, &help);
	if (!r && !help && !c.f->from)
		r = ctl_usage(cmd, "whose data? --from DEVICE");
	c.path = ctl_text("/dev/mapper/%s", c.f->args.name);
	if (!r)
		r = help ? ctl_help(cmd) : convert_device(&c);
	if (c.control >= 0)
		close(c.control);
	device_close(&c.copy.volume);
	device_close(&c.source.dev);
	create_end(c.f);
	free(c.path);
	return r;
}

const struct ctl_command ctl_convert_command = {
	.name = "convert",
	.summary = "take a plain device's data into a new volume",
	.help = help_text,
	.run = convert_run,
};
