// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl format: makes a volume of empty devices. Everything that can be
 * refused is refused before the first write.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <uuid/uuid.h>

#include "classify.h"
#include "format.h"
#include "probe.h"
#include "unfinished.h"

static const char help_text[] =
"usage: terracectl format --tier CLASS[:KIND][:atomic|:noatomic]=DEVICE...\n"
"                         [OPTION]...\n"
"\n"
"Makes a volume of two to eight devices, named from fast to slow. Refuses\n"
"devices that are in use or hold anything; then nothing has been changed.\n"
"Prints the plan and the device-mapper table that activates the volume.\n"
"\n"
"  --tier CLASS[:KIND][:WORD]...=DEVICE\n"
"                     CLASS: optane, nvme, qlc, hdd, csd, net\n"
"                     KIND: slots (optane, nvme), shelves (qlc, hdd, net) or\n"
"                     home (csd); WORD: atomic, noatomic (does the drive write\n"
"                     4 KiB whole or not at all, if it does not say so itself),\n"
"                     align-SIZE (its indirection unit)\n"
"  --meta DEVICE      keep the metadata on a device of its own\n"
"  --size SIZE        of the volume; default: all the room after reserves\n"
"  --overcommit SIZE  let the volume be this much larger than the room\n"
"  --name NAME        default: terrace\n"
"  --journal SIZE     1M to 256M; default: 1/512 of the fastest tier\n"
"  --mirror WHAT      of the metadata: auto (default), sync, lazy, none\n"
"  --reserve PERCENT  of each tier, kept free for moves; default: 2\n"
"  --uuid UUID        default: random\n"
"  --force            overwrite what the devices hold (never devices in use)\n"
"  --dry-run          print the plan, write nothing\n"
"  --json             print the plan as JSON\n"
"  --help             this text\n"
"\n"
"Exit status: 0 done, 1 refused or failed, 2 wrong usage.\n"
"\n"
"Examples:\n"
"  terracectl format --tier optane=/dev/nvme0n1 --tier hdd=/dev/sda --dry-run\n"
"  terracectl format --name db --tier nvme=/dev/nvme0n1 --tier qlc=/dev/nvme1n1 \\\n"
"      --tier hdd=/dev/sda --size 10T\n"
"  terracectl format --meta /dev/nvme2n1 --tier nvme:slots:noatomic=/dev/nvme0n1 \\\n"
"      --tier csd=/dev/nvme1n1\n";

/* ---- devices -------------------------------------------------------------------- */

static int open_devices(struct format *f)
{
	enum device_mode mode = f->dry_run ? DEVICE_READ : DEVICE_WRITE;

	for (u32 i = 0; i < f->nr_devices; i++)
		if (device_open(&f->dev[i], f->path[i], mode))
			return CTL_PROBLEM;
	return CTL_OK;
}

/* Two names of one device: its second exclusive open would only say "busy". */
static bool same_device(const char *path, const char *other)
{
	struct stat a, b;

	if (stat(path, &a) || stat(other, &b))
		return false;
	if (S_ISBLK(a.st_mode) && S_ISBLK(b.st_mode))
		return a.st_rdev == b.st_rdev;
	return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int refuse_doubles(const struct format *f)
{
	for (u32 i = 0; i < f->nr_devices; i++) {
		for (u32 j = 0; j < i; j++) {
			if (!same_device(f->path[i], f->path[j]))
				continue;
			ctl_error("%s and %s are the same device", f->path[j], f->path[i]);
			return CTL_USAGE;
		}
	}
	return CTL_OK;
}

int format_refuse_data(const struct format *f, u32 nr)
{
	struct suggestion s = classify(&f->dev[nr]);
	char *found;
	int r;

	if (s.refused) {
		ctl_error("%s is %s: it cannot be a tier", f->path[nr], s.why);
		return CTL_PROBLEM;
	}
	if (unfinished_device(&f->dev[nr], f->dev, f->nr_devices)) {
		fprintf(stderr, "note: %s holds what is left of a volume whose making was stopped: it is made anew\n",
			f->path[nr]);
		return CTL_OK;
	}
	r = probe_contents(&f->dev[nr], &found);
	if (r)
		ctl_error("%s: cannot read: %s", f->path[nr], strerror(-r));
	else if (found && !f->force)
		ctl_error("%s %s: nothing changed; --force overwrites it", f->path[nr], found);
	r = r || (found && !f->force);
	free(found);
	return r ? CTL_PROBLEM : CTL_OK;
}

static int refuse_foreign_data(const struct format *f)
{
	int result = CTL_OK;

	for (u32 i = 0; i < f->nr_devices; i++)
		if (format_refuse_data(f, i))
			result = CTL_PROBLEM;
	return result;
}

/* ---- plan ------------------------------------------------------------------------- */

void format_describe_device(struct format *f, u32 nr)
{
	struct tr_plan_device *to = nr == f->args.nr_tiers ? &f->args.meta : &f->args.tier[nr];
	const struct device *dev = &f->dev[nr];

	to->blocks = dev->blocks;
	to->align_blocks = f->align_blocks[nr] ? f->align_blocks[nr] : dev->align_blocks;
	to->atomic_bytes = dev->atomic_bytes;
	if (f->atomic[nr] == ATOMIC_YES && to->atomic_bytes < TERRACE_BLOCK_BYTES)
		to->atomic_bytes = TERRACE_BLOCK_BYTES;
	to->atomic = f->atomic[nr] == ATOMIC_ASK_DRIVE ? to->atomic_bytes >= TERRACE_BLOCK_BYTES :
							 f->atomic[nr] == ATOMIC_YES;
	if (f->atomic[nr] == ATOMIC_NO)
		to->atomic_bytes = dev->logical_bytes < TERRACE_BLOCK_BYTES ? dev->logical_bytes : 512;
	uuid_generate(to->uuid);
}

int format_make_plan(struct format *f)
{
	struct tr_plan_fault fault;

	for (u32 i = 0; i < f->nr_devices; i++)
		format_describe_device(f, i);
	if (getrandom(&f->args.first_nonce, sizeof(f->args.first_nonce), 0) < 0 ||
	    getrandom(&f->args.first_crc, sizeof(f->args.first_crc), 0) < 0) {
		ctl_error("no random numbers: %s", strerror(errno));
		return CTL_PROBLEM;
	}
	if (tr_plan_make(&f->plan, &f->args, &fault)) {
		format_print_fault(f, &fault);
		return CTL_PROBLEM;
	}
	return CTL_OK;
}

/* ---- the command ---------------------------------------------------------------------- */

int format_open(struct format *f)
{
	int r = refuse_doubles(f);

	if (!r)
		r = open_devices(f);
	return r ? r : refuse_foreign_data(f);
}

static int format_volume(struct format *f)
{
	int r = format_open(f);

	if (!r)
		r = format_make_plan(f);
	if (!r && !f->dry_run && format_write(f))
		r = CTL_PROBLEM;
	if (r)
		return r;
	if (f->json)
		ctl_json_print(format_plan_json(f));
	else
		format_print_plan(f);
	return CTL_OK;
}

static int format_run(const struct ctl_command *cmd, int argc, char **argv)
{
	struct format *f = ctl_alloc(sizeof(*f));
	bool help = false;
	int r;

	for (u32 i = 0; i < FORMAT_MAX_DEVICES; i++)
		f->dev[i].fd = -1;
	r = format_parse(f, cmd, argc, argv, &help);
	if (!r)
		r = help ? ctl_help(cmd) : format_volume(f);
	for (u32 i = 0; i < FORMAT_MAX_DEVICES; i++)
		device_close(&f->dev[i]);
	free(f);
	return r;
}

const struct ctl_command ctl_format_command = {
	.name = "format",
	.summary = "make a volume of empty devices",
	.help = help_text,
	.run = format_run,
};
