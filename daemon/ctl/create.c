// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl create: format with a plan that is shown and confirmed, then
 * activate. Stopped before the labels are written there is no volume, and the
 * same call begins again; stopped after that, terracectl activate goes on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "activate.h"
#include "classify.h"
#include "create.h"
#include "dm.h"
#include "kept.h"
#include "names.h"
#include "term.h"

static const char help_text[] =
"usage: terracectl create NAME --tier [CLASS[:KIND][:WORD]...=]DEVICE...\n"
"                         [OPTION]...\n"
"\n"
"Makes a volume of two to eight devices, named from fast to slow, and activates\n"
"it as /dev/mapper/NAME. Shows what will be done and asks first. Refuses devices\n"
"that are in use or hold anything; then nothing has been changed. Interrupted, the\n"
"same call begins again, or terracectl activate NAME goes on: it says which.\n"
"\n"
"  --tier [CLASS[:KIND][:WORD]...=]DEVICE\n"
"                     CLASS: optane, nvme, qlc, hdd, csd, net; proposed from what\n"
"                     the drive says of itself when it is not given\n"
"                     KIND and WORD: see terracectl format --help\n"
"  --meta DEVICE      keep the metadata on a device of its own\n"
"  --size SIZE        of the volume; default: all the room after reserves\n"
"  --overcommit SIZE  let the volume be this much larger than the room\n"
"  --journal SIZE, --mirror WHAT, --reserve PERCENT, --uuid UUID\n"
"                     see terracectl format --help\n"
"  --config FILE      lines TUNABLE=VALUE, like commit_ms=500: what terracectl set\n"
"                     --keep would set one by one\n"
"  --force            overwrite what the devices hold (never devices in use)\n"
"  --yes              do not ask\n"
"  --dry-run          show the plan, write nothing\n"
"  --json             the plan as JSON (with --yes or --dry-run)\n"
"  --help             this text\n"
"\n"
"Exit status: 0 done, 1 refused or failed, 2 wrong usage.\n"
"\n"
"Examples:\n"
"  terracectl create db --tier /dev/nvme0n1 --tier /dev/sda\n"
"  terracectl create db --tier optane=/dev/nvme0n1 --tier hdd=/dev/sda --yes\n";

/* ---- classes ----------------------------------------------------------------------- */

int format_propose_class(struct format *f, u32 nr)
{
	struct tr_plan_device *tier = &f->args.tier[nr];
	struct suggestion s;

	if (tier->class)
		return CTL_OK;
	s = classify(&f->dev[nr]);
	if (!s.class) {
		ctl_error("%s: nothing says what class of drive it is (%s): write --tier CLASS=%s",
			  f->path[nr], s.why, f->path[nr]);
		return CTL_PROBLEM;
	}
	tier->class = s.class;
	tier->kind = s.kind;
	f->guessed[nr] = true;
	fprintf(stderr, "%s is taken for %s:%s: %s\n", f->path[nr], class_name(s.class), kind_name(s.kind), s.why);
	return CTL_OK;
}

static int propose_classes(struct format *f)
{
	int r = CTL_OK;

	for (u32 i = 0; i < f->args.nr_tiers && !r; i++)
		r = format_propose_class(f, i);
	return r;
}

/* ---- activating ---------------------------------------------------------------------- */

static void close_devices(struct format *f)
{
	for (u32 i = 0; i < FORMAT_MAX_DEVICES; i++)
		device_close(&f->dev[i]);
}

/* The kernel has taken them. */
static int keep(const u8 *uuid, const struct activate *how)
{
	int r = 0;

	for (u32 i = 0; i < how->nr_options && !r; i++) {
		char *word = ctl_text("%s", how->option[i]), *value = strchr(word, '=');

		*value = 0;
		r = kept_write(uuid, word, value + 1);
		free(word);
	}
	return r ? CTL_PROBLEM : CTL_OK;
}

static int bring_up(struct format *f)
{
	struct activate how = { 0 };
	char *paths[FORMAT_MAX_DEVICES], *word[KEPT_MAX];
	struct found found;
	int r = CTL_PROBLEM, nr = f->config ? kept_load(f->config, word) : 0;

	for (int i = 0; i < nr; i++)
		how.option[how.nr_options++] = word[i];
	close_devices(f);
	for (u32 i = 0; i < f->nr_devices; i++)
		paths[i] = (char *)f->path[i];
	find_volumes(&found, paths, f->nr_devices);
	if (found.nr == 1)
		r = activate_volume(&found.volume[0], &how);
	if (r)
		ctl_error("volume '%s' is made, but not active%s: terracectl activate %s", f->args.name,
			  nr > 0 ? ", and nothing of --config is kept" : "", f->args.name);
	else
		r = keep(found.volume[0].uuid, &how);
	find_free(&found);
	while (nr > 0)
		free(word[--nr]);
	return r;
}

/* ---- the command ----------------------------------------------------------------------- */

static int refuse_name(const struct format *f)
{
	if (f->dry_run)
		return CTL_OK;
	switch (dm_exists(f->args.name)) {
	case 0:
		return CTL_OK;
	case 1:
		ctl_error("there is a device-mapper device '%s' already: nothing changed", f->args.name);
		return CTL_PROBLEM;
	default:
		return CTL_PROBLEM;
	}
}

/* Before anything is written. */
static int refuse_config(const struct format *f)
{
	char *word[KEPT_MAX];
	int nr = f->config ? kept_load(f->config, word) : 0;

	if (nr < 0)
		return CTL_PROBLEM;
	while (nr > 0)
		free(word[--nr]);
	return CTL_OK;
}

int create_prepare(struct format *f)
{
	int r = refuse_name(f);

	if (!r)
		r = refuse_config(f);
	if (!r)
		r = format_open(f);
	if (!r)
		r = propose_classes(f);
	return r ? r : format_make_plan(f);
}

int create_make(struct format *f)
{
	return format_write(f) ? CTL_PROBLEM : bring_up(f);
}

static int create_volume(struct format *f)
{
	int r = create_prepare(f);

	if (r)
		return r;
	if (f->json)
		ctl_json_print(format_plan_json(f));
	else
		format_print_plan(f);
	if (f->dry_run)
		return CTL_OK;
	fflush(stdout);
	if (!f->yes && !term_confirm("Make this volume? What the devices hold is lost."))
		return CTL_PROBLEM;
	r = create_make(f);
	if (!r && !f->json)
		printf("/dev/mapper/%s\n", f->args.name);
	return r;
}

struct format *create_begin(void)
{
	struct format *f = ctl_alloc(sizeof(*f));

	for (u32 i = 0; i < FORMAT_MAX_DEVICES; i++)
		f->dev[i].fd = -1;
	f->create = true;
	return f;
}

void create_end(struct format *f)
{
	close_devices(f);
	free(f);
}

static int create_run(const struct ctl_command *cmd, int argc, char **argv)
{
	struct format *f = create_begin();
	bool help = false;
	int r = format_parse(f, cmd, argc, argv, &help);

	if (!r)
		r = help ? ctl_help(cmd) : create_volume(f);
	create_end(f);
	return r;
}

const struct ctl_command ctl_create_command = {
	.name = "create",
	.summary = "make a volume of empty devices and activate it",
	.help = help_text,
	.run = create_run,
};
