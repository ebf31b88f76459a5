// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl check: is this volume sound? Reads only.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "names.h"

static const char help_text[] =
"usage: terracectl check [--full] [--owners] [--json] [--limit N] DEVICE...\n"
"\n"
"Checks a volume that is not active, reading only. All its devices are named,\n"
"in any order; image files will do.\n"
"\n"
"Quick (default): labels, superblocks, the journal's chain, directories, the\n"
"meta bitmap, the mirror's superblocks and journal. --full also reads every map\n"
"and space page, replays the journal in memory, and compares what is used with\n"
"what is referenced, block by block, and the mirror with the primary.\n"
"\n"
"One line per problem, with its exact location. A line that begins with \"note\"\n"
"is about something that a crash explains and that is no problem.\n"
"\n"
"  --full      check all metadata\n"
"  --owners    the same, and read the shelves: is each block on them named by an\n"
"              owner block or table?\n"
"  --json      print the result as JSON\n"
"  --limit N   print at most N lines (default 1000, 0: all); all are counted\n"
"  --help      this text\n"
"\n"
"Exit status: 0 sound, 1 problems found (or it could not be read), 2 wrong usage.\n"
"\n"
"Examples:\n"
"  terracectl check /dev/nvme0n1 /dev/sda\n"
"  terracectl check --full --json fast.img slow.img\n";

#define DEFAULT_LIMIT 1000

static const struct option options[] = {
	{ "full", no_argument, NULL, 'f' },
	{ "owners", no_argument, NULL, 'o' },
	{ "json", no_argument, NULL, 'j' },
	{ "limit", required_argument, NULL, 'l' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

/* ---- summary -------------------------------------------------------------------- */

static void print_summary(const struct check *c)
{
	const struct findings *f = &c->findings;

	if (f->printed < f->problems + f->notes)
		printf("... and %llu more\n", f->problems + f->notes - f->printed);
	printf("%s", c->vol.name ? "volume " : "no volume");
	if (c->vol.name)
		printf("'%s' (%s)", c->vol.name, uuid_text(c->vol.uuid));
	if (c->vol.super)
		printf(": checkpoint %llu, %s, %llu journal records; %llu map pages, %llu space pages, %llu directories",
		       c->vol.super->generation, c->clean ? "stopped cleanly" : "not stopped cleanly",
		       c->journal.nr_records, c->trees.map_pages, c->trees.space_pages,
		       c->trees.directories);
	if (c->vol.super && c->full)
		printf("; %llu regions, %llu blocks mapped, %llu discarded and not yet freed", c->regions,
		       c->mapped_blocks, c->discarded_blocks);
	if (c->packs)
		printf("; %llu packs with %llu blocks", c->packs, c->packed_blocks);
	printf(": %s", f->problems ? "" : "sound\n");
	if (f->problems)
		printf("%llu problem%s\n", f->problems, f->problems == 1 ? "" : "s");
}

static void add_number(struct json_object *o, const char *name, u64 number)
{
	json_object_object_add(o, name, json_object_new_uint64(number));
}

static void print_json(const struct check *c)
{
	struct json_object *o = json_object_new_object();

	if (c->vol.name) {
		json_object_object_add(o, "name", json_object_new_string(c->vol.name));
		json_object_object_add(o, "uuid", json_object_new_string(uuid_text(c->vol.uuid)));
	}
	json_object_object_add(o, "full", json_object_new_boolean(c->full));
	json_object_object_add(o, "sound", json_object_new_boolean(!c->findings.problems));
	add_number(o, "problems", c->findings.problems);
	add_number(o, "notes", c->findings.notes);
	if (c->vol.super) {
		json_object_object_add(o, "clean", json_object_new_boolean(c->clean));
		add_number(o, "generation", c->vol.super->generation);
		add_number(o, "journal_blocks", c->journal.nr_blocks);
		add_number(o, "journal_records", c->journal.nr_records);
		add_number(o, "map_pages", c->trees.map_pages);
		add_number(o, "space_pages", c->trees.space_pages);
		add_number(o, "directories", c->trees.directories);
	}
	if (c->vol.super && c->full) {
		struct json_object *used = json_object_new_array();

		add_number(o, "regions", c->regions);
		add_number(o, "mapped_blocks", c->mapped_blocks);
		add_number(o, "discarded_blocks", c->discarded_blocks);
		add_number(o, "packs", c->packs);
		add_number(o, "packed_blocks", c->packed_blocks);
		for (u32 i = 0; i < c->vol.super->nr_tiers; i++)
			json_object_array_add(used, json_object_new_uint64(c->tier[i].used_blocks));
		json_object_object_add(o, "used_blocks", used);
	}
	json_object_object_add(o, "findings", json_object_get(c->findings.list));
	ctl_json_print(o);
}

/* ---- the order of it --------------------------------------------------------------- */

static void check_super(struct check *c)
{
	const struct tr_super *super = c->vol.super;
	const char *place = where("%s: superblock copy %llu", c->vol.meta->dev->path,
				  super->generation & 1);
	u64 room = tr_room(super);

	if (super->virtual_blocks > room + super->overcommit_blocks)
		problem(&c->findings, place,
			"the volume has %llu blocks, its tiers hold %llu and %llu are overcommitted",
			super->virtual_blocks, room, super->overcommit_blocks);
	if (super->compat_ro & ~TERRACE_COMPAT_RO_KNOWN)
		note(&c->findings, place, "unknown features %#llx: this version may only read the volume",
		     super->compat_ro & ~TERRACE_COMPAT_RO_KNOWN);
}

static void check_volume(struct check *c)
{
	check_super(c);
	check_journal(c);
	if (c->vol.meta->lazy || c->vol.meta->stale)
		c->full = false;	/* an old checkpoint without a journal */
	if (c->full) {
		check_space_init(c);
		check_map_init(c);
	}
	check_trees(c);
	check_meta_bitmap(c, &c->trees);
	if (c->full) {
		check_map_rest(c);
		check_space_compare(c);
		check_suspects(c);
		if (c->owners)
			check_owners(c);
	}
	check_mirror(c);
}

static int check_devices(struct check *c, char **paths, int nr)
{
	if (!volume_open(&c->vol, paths, nr, DEVICE_READ, &c->findings))
		check_volume(c);
	if (c->findings.json)
		print_json(c);
	else
		print_summary(c);
	return c->findings.problems ? CTL_PROBLEM : CTL_OK;
}

static void check_free(struct check *c)
{
	check_space_free(c);
	check_map_free(c);
	trees_free(&c->trees);
	journal_free(&c->journal);
	json_object_put(c->findings.list);
	volume_close(&c->vol);
	free(c);
}

/* Problem lines that a missing tier explains. */
static u64 explained(const struct volume *vol)
{
	u64 nr = !vol->primary.dev && vol->super;

	for (u32 i = 0; vol->super && i < vol->super->nr_tiers; i++)
		nr += vol->tier[i] < 0;
	return nr;
}

int check_before_use(char **paths, u32 nr, bool degraded, struct tr_super *super)
{
	struct check *c = ctl_alloc(sizeof(*c));
	u64 problems;

	findings_init(&c->findings, false, DEFAULT_LIMIT);
	c->findings.out = stderr;
	if (!volume_open(&c->vol, paths, nr, DEVICE_READ, &c->findings)) {
		check_volume(c);
		*super = *c->vol.super;
	}
	problems = c->findings.problems - (degraded ? explained(&c->vol) : 0);
	/* Of a label one copy is enough: a power cut in the middle of a replace leaves the new drive with one. */
	problems -= c->vol.bad_copies;
	if (c->vol.bad_copies && !problems)
		note(&c->findings, "labels", "the other copy is good, and is enough: terracectl repair --in-place writes this one anew");
	check_free(c);
	return problems ? CTL_PROBLEM : CTL_OK;
}

static int check_run(const struct ctl_command *cmd, int argc, char **argv)
{
	struct check *c;
	bool json = false, full = false, owners = false;
	unsigned long long limit = DEFAULT_LIMIT;
	char *end;
	int opt, r;

	while ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (opt) {
		case 'f':
			full = true;
			break;
		case 'o':
			full = true;
			owners = true;
			break;
		case 'j':
			json = true;
			break;
		case 'l':
			limit = strtoull(optarg, &end, 10);
			if (end == optarg || *end || *optarg == '-')
				return ctl_usage(cmd, "--limit %s: not a number", optarg);
			break;
		case 'h':
			return ctl_help(cmd);
		default:
			return ctl_usage(cmd, "wrong option");
		}
	}
	if (optind == argc)
		return ctl_usage(cmd, "no devices given: name all devices of the volume");
	if (argc - optind > VOLUME_MAX_DEVICES)
		return ctl_usage(cmd, "%d devices given, a volume has at most %u", argc - optind,
				 VOLUME_MAX_DEVICES);
	c = ctl_alloc(sizeof(*c));
	c->full = full;
	c->owners = owners;
	findings_init(&c->findings, json, limit);
	r = check_devices(c, argv + optind, argc - optind);
	check_free(c);
	return r;
}

const struct ctl_command ctl_check_command = {
	.name = "check",
	.summary = "is this volume sound? (reads only)",
	.help = help_text,
	.run = check_run,
};
