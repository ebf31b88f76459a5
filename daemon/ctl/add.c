// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl add: one more tier for a volume in use, behind its slowest one.
 *
 * The kernel takes the number of tiers from the superblock and keeps it for
 * as long as a volume runs; so the volume is stopped for a moment, while what
 * is mounted on it waits (relay.h):
 *
 *	1  the volume goes below and is stopped cleanly
 *	2  the label of the new device
 *	3  a superblock with one tier more, first on the primary, then on mirrors
 *	4  the volume starts again with a table of one tier more
 *
 *	power cut in 1, 2	the volume as it was; the device has a label that
 *				no superblock asks for, and nobody heeds it
 *	power cut in 3, 4	the volume with the new tier, empty
 *	kill -9 anywhere	I/O may wait; the same call goes on (of 4 alone, if
 *				the superblock has the tier and it is that device)
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "args.h"
#include "find.h"
#include "format.h"
#include "interrupt.h"
#include "names.h"
#include "params.h"
#include "relay.h"
#include "supers.h"
#include "tabled.h"
#include "term.h"

struct add {
	struct format f;
	struct relay relay;
	struct tr_super super;
	u32 nr;			/* the number of the new tier */
	const char *tier;	/* as it was given */
	bool going_on;		/* the label is there, of an earlier call */
	bool written;		/* so has the superblock; the volume is stopped since, and starts with the new table only */
	dev_t last;		/* device of the last tier that the superblock has */
};

static struct found_volume *find_devices(struct found *found, const struct relay *relay)
{
	struct found_volume *v;

	tabled_find(found, relay->params, 0);
	v = tabled_volume(found, relay->uuid);
	if (v && tabled_has_all(v, relay->params))	/* a mirror must not be left out */
		return v;
	ctl_error("not all devices of volume '%s' carry its labels", relay->name);
	return NULL;
}

static dev_t device_of(const struct found_volume *v, const u8 *tier_uuid)
{
	struct stat st;

	for (u32 i = 0; i < v->nr_devices; i++)
		if (!memcmp(v->device[i].label.tier_uuid, tier_uuid, TERRACE_UUID_BYTES) &&
		    !stat(v->device[i].path, &st))
			return st.st_rdev;
	return 0;
}

static int read_shape(struct add *a)
{
	struct found_volume *v;
	struct found found;
	int r = -ENODEV;

	v = find_devices(&found, &a->relay);
	if (v)
		r = supers_read(v, &a->super);
	if (!r)
		a->last = device_of(v, a->super.tier[a->super.nr_tiers - 1].uuid);
	find_free(&found);
	return r;
}

/* ---- the plan ------------------------------------------------------------------------------- */

/* An earlier call has written it, or one copy (the one in front comes last), and no more. Its uuid is kept. */
static bool has_our_label(struct add *a)
{
	void *block = ctl_alloc_blocks(1);
	struct tr_label label;
	bool ours = false;

	for (u32 copy = 0; copy < TERRACE_LABEL_COPIES && !ours; copy++)
		ours = !device_read(&a->f.dev[a->nr], copy, 1, block) && !tr_label_decode(&label, block) &&
		       !memcmp(label.volume_uuid, a->relay.uuid, TERRACE_UUID_BYTES) &&
		       label.tier_index == a->nr;
	free(block);
	if (ours)
		memcpy(a->f.args.tier[a->nr].uuid, label.tier_uuid, TERRACE_UUID_BYTES);
	return ours;
}

static int make_plan(struct add *a)
{
	struct format *f = &a->f;
	struct tr_plan_fault fault;

	if (!tr_plan_add(&f->plan, &f->args, &a->super, &fault))
		return CTL_OK;
	if (fault.error == TR_PLAN_ORDER) {
		ctl_error("%s: a tier can be added behind the slowest only, and %s is faster than that (%s)",
			  f->path[a->nr], class_name(fault.have), class_name(fault.need));
		format_print_guess(f, a->nr);
	} else {
		format_print_fault(f, &fault);
	}
	return CTL_PROBLEM;
}

static int plan(struct add *a, const struct ctl_command *cmd)
{
	struct format *f = &a->f;
	int r;

	if (a->nr >= TERRACE_MAX_TIERS) {
		ctl_error("volume '%s' has %u tiers, and that is the most", a->relay.name, a->nr);
		return CTL_PROBLEM;
	}
	f->create = true;	/* the class may be left out */
	f->args.nr_tiers = a->nr;
	f->args.tier[a->nr - 1].class = a->super.tier[a->nr - 1].class;
	memcpy(f->args.uuid, a->relay.uuid, TERRACE_UUID_BYTES);
	snprintf(f->args.name, sizeof(f->args.name), "%.63s", a->relay.name);
	r = format_parse_tier(f, cmd, a->tier);
	if (!r && device_open(&f->dev[a->nr], f->path[a->nr], f->dry_run ? DEVICE_READ : DEVICE_WRITE))
		r = CTL_PROBLEM;
	if (!r && !f->dev[a->nr].is_block) {
		ctl_error("%s is no block device", f->path[a->nr]);
		r = CTL_PROBLEM;
	}
	if (r)
		return r;
	format_describe_device(f, a->nr);
	a->going_on = has_our_label(a);
	if (!a->going_on)
		r = format_refuse_data(f, a->nr);
	if (!r)
		r = format_propose_class(f, a->nr);
	return r ? r : make_plan(a);
}

static void show_plan(const struct add *a)
{
	const struct tr_super_tier *tier = &a->f.plan.super.tier[a->nr];

	fprintf(stderr, "Volume '%s' gets tier %u: %s %s on %s, %s for data, %s of it reserve.\n",
		a->relay.name, a->nr, class_name(tier->class), kind_name(tier->kind),
		a->f.path[a->nr], size_text(tier->data_blocks), size_text(tier->reserve_blocks));
	fputs("It stays mounted; I/O waits while it is stopped and started (pins end).\n", stderr);
}

/* ---- doing it ------------------------------------------------------------------------------- */

static int write_disks(struct add *a)
{
	struct found_volume *v;
	struct found found;
	int r = -ENODEV;

	v = find_devices(&found, &a->relay);
	if (v)
		r = supers_read(v, &a->super);
	/* it is what counts now, and may have been written to since the plan */
	if (!r && a->super.nr_tiers == a->nr) {
		r = make_plan(a) ? -EINVAL : format_write_tier(&a->f, a->nr);
		if (r)
			ctl_error("%s: nothing of the volume changed", a->f.path[a->nr]);
		else
			r = supers_write_tiers(v, &a->f.plan.super);
	} else if (!r && a->written) {
		r = supers_write_tiers(v, &a->super);	/* the mirrors may lack it */
	}
	find_free(&found);
	return r;
}

static int start_again(struct add *a)
{
	struct device *dev = &a->f.dev[a->nr];
	char *params = params_add_tier(a->relay.params, dev->rdev, a->f.args.tier[a->nr].class,
				       a->f.args.tier[a->nr].kind);
	int r = params ? relay_change(&a->relay, params) : -EPROTO;

	device_close(dev);
	if (!r)
		r = relay_in(&a->relay, params);
	free(params);
	return r;
}

static int carry_out(struct add *a)
{
	int r;

	interrupt_watch();	/* not in between */
	r = a->written ? 0 : relay_out(&a->relay);
	if (!r && !a->written)
		r = relay_stop(&a->relay);
	if (!r)
		r = write_disks(a);
	if (!r)
		return start_again(a);
	if (a->relay.begun && !a->written)
		relay_in(&a->relay, a->relay.params);
	return r;
}

static int report(const struct add *a)
{
	const struct tr_super *super = &a->f.plan.super;
	struct json_object *o;

	if (!a->f.json) {
		printf("tier %u of volume '%s' is %s: %s more room. The volume is as large as before: %s of %s can be given to it,\n"
		       "see Growing in Documentation/target.md.\n", a->nr, a->relay.name, a->f.path[a->nr],
		       size_text(super->tier[a->nr].data_blocks - super->tier[a->nr].reserve_blocks),
		       size_text(tr_room(super) > super->virtual_blocks ? tr_room(super) - super->virtual_blocks : 0),
		       size_text(tr_room(super)));
		return CTL_OK;
	}
	o = json_object_new_object();
	json_object_object_add(o, "volume", json_object_new_string(a->relay.name));
	json_object_object_add(o, "tier", json_object_new_uint64(a->nr));
	json_object_object_add(o, "device", json_object_new_string(a->f.path[a->nr]));
	json_object_object_add(o, "data_blocks", json_object_new_uint64(super->tier[a->nr].data_blocks));
	json_object_object_add(o, "room_blocks", json_object_new_uint64(tr_room(super)));
	json_object_object_add(o, "virtual_blocks", json_object_new_uint64(super->virtual_blocks));
	json_object_object_add(o, "added", json_object_new_boolean(!a->f.dry_run));
	ctl_json_print(o);
	return CTL_OK;
}

/* Something else has the volume below, or it cannot be stopped and started. */
static int refuse_state(const struct add *a)
{
	struct dm_line line;

	if (dm_table_line(a->relay.name, &line) || !strcmp(line.target, "mirror"))
		ctl_error("volume '%s' is leaving: terracectl leave --undo %s first", a->relay.name, a->relay.name);
	else if (strstr(a->relay.params, " missing ") || strstr(a->relay.params, " read_only"))
		ctl_error("volume '%s' is read-only, or a tier of it is missing", a->relay.name);
	else if (a->relay.begun || !tabled_check(a->relay.params, a->relay.uuid, a->relay.name))
		return CTL_OK;
	return CTL_PROBLEM;
}

/* Killed between the superblock and the table: it must be that device. */
static int refuse_other(const struct add *a, u32 nr_tiers)
{
	const u8 *uuid = a->f.args.tier[a->nr].uuid;

	if (nr_tiers == a->nr || (a->going_on && !memcmp(uuid, a->super.tier[a->nr].uuid, TERRACE_UUID_BYTES)))
		return CTL_OK;
	ctl_error("%s is not the device that an earlier call has added: name that one", a->f.path[a->nr]);
	return CTL_PROBLEM;
}

/* Killed between the word of the table to load and loading it? */
static bool only_table_missing(struct add *a)
{
	const char *equals = strchr(a->tier, '=');
	const char *path = equals ? equals + 1 : a->tier;
	struct stat st;

	if (!a->relay.begun || a->super.nr_tiers != a->nr || stat(path, &st) || !a->last ||
	    st.st_rdev != a->last)
		return false;
	a->f.path[a->nr - 1] = path;
	return true;
}

static int finish(struct add *a)
{
	a->nr--;
	a->f.plan.super = a->super;
	if (!a->f.dry_run) {
		interrupt_watch();
		if (relay_in(&a->relay, a->relay.params))
			return CTL_PROBLEM;
	}
	return report(a);
}

static int add_tier(struct add *a, const struct ctl_command *cmd, const char *name)
{
	u32 nr_tiers;
	int r;

	if (relay_find(&a->relay, name) || relay_tidy(&a->relay, name) || refuse_state(a) || read_shape(a))
		return CTL_PROBLEM;
	if (a->relay.begun)
		fprintf(stderr, "'%s' is in the middle of something: going on\n", name);
	a->nr = params_nr_tiers(a->relay.params);
	nr_tiers = a->super.nr_tiers;
	if (nr_tiers != a->nr && !(a->relay.begun && nr_tiers == a->nr + 1)) {
		ctl_error("volume '%s' has %u tiers on its devices, %u in its table", a->relay.name,
			  nr_tiers, a->nr);
		return CTL_PROBLEM;
	}
	if (only_table_missing(a))
		return finish(a);
	a->written = nr_tiers != a->nr;
	a->super.nr_tiers = a->nr;
	r = plan(a, cmd);
	if (!r)
		r = refuse_other(a, nr_tiers);
	if (r)
		return r;
	show_plan(a);
	if (a->f.dry_run)
		return a->f.json ? report(a) : CTL_OK;
	if (!a->f.yes && !term_confirm("Add it? What the device holds is lost."))
		return CTL_PROBLEM;
	return carry_out(a) ? CTL_PROBLEM : report(a);
}

static const char help_text[] =
"usage: terracectl add NAME --tier [CLASS[:KIND][:WORD]...=]DEVICE [OPTION]...\n"
"\n"
"Gives a volume one more tier while it is in use. The new tier comes behind the\n"
"slowest one: a faster drive cannot be added (move the data to a new volume, or\n"
"replace a drive by a faster one). Shows what will be done and asks first. What\n"
"is mounted on the volume stays; its I/O waits while the volume is stopped and\n"
"started again, a second or less. Pins end. Killed in between, the same call\n"
"goes on; a power cut leaves the volume with the tier or without it.\n"
"\n"
"  --tier [CLASS[:KIND][:WORD]...=]DEVICE\n"
"             see terracectl create --help\n"
"  --yes      do not ask\n"
"  --force    overwrite what DEVICE holds (never a device in use)\n"
"  --dry-run  show the plan, write nothing\n"
"  --json     as JSON\n"
"  --help     this text\n"
"\n"
"Exit status: 0 added, 1 refused or failed, 2 wrong usage.\n"
"\n"
"Examples:\n"
"  terracectl add db --tier hdd=/dev/sdc --dry-run\n"
"  terracectl add db --tier /dev/sdc --yes\n";

static int add_run(const struct ctl_command *cmd, int argc, char **argv)
{
	struct add *a = ctl_alloc(sizeof(*a));
	const struct args_option options[] = {
		{ .name = "tier", .text = &a->tier }, { .name = "yes", .flag = &a->f.yes },
		{ .name = "force", .flag = &a->f.force }, { .name = "dry-run", .flag = &a->f.dry_run },
		{ .name = "json", .flag = &a->f.json }, { .name = NULL },
	};
	int r;

	for (u32 i = 0; i < FORMAT_MAX_DEVICES; i++)
		a->f.dev[i].fd = -1;
	r = args_one_volume(cmd, argc, argv, options);
	if (r == ARGS_GO_ON)
		r = a->tier ? add_tier(a, cmd, argv[optind]) :
		    ctl_usage(cmd, "which device? --tier CLASS=DEVICE");
	for (u32 i = 0; i < FORMAT_MAX_DEVICES; i++)
		device_close(&a->f.dev[i]);
	free(a);
	return r;
}

const struct ctl_command ctl_add_command = {
	.name = "add",
	.summary = "give a volume in use one more tier",
	.help = help_text,
	.run = add_run,
};
