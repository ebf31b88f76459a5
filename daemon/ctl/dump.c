// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl dump. See dump.h.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump.h"
#include "trees.h"

static const char help_text[] =
"usage: terracectl dump [--json] [--range N[-M]] [WHAT] DEVICE...\n"
"\n"
"Prints what stands on the disks of a volume, without judging it (that is what\n"
"check does). Reads only. All devices are named, in any order; a damaged or\n"
"incomplete volume is dumped as far as it goes.\n"
"\n"
"WHAT is one of\n"
"  super     labels and superblocks (default)\n"
"  journal   blocks and records from the tail on\n"
"  map       directories and pages of the map: where each block lives, without\n"
"            what the journal says beyond that\n"
"  space     directories and pages of the space trees: which places are used\n"
"  packs     headers of packs that the map names, and whether they are good\n"
"  owners    owner blocks and owner tables on shelves: whose each block is\n"
"  all       the whole metadata, every field as it is, for terracectl restore\n"
"            (also --all)\n"
"\n"
"  --range N[-M]  only journal blocks (counted from the tail), regions (map,\n"
"                 packs), or chunks (space, owners) N to M\n"
"  --json         as one JSON object\n"
"  --help         this text\n"
"\n"
"Exit status: 0 done, 1 something could not be read, 2 wrong usage.\n"
"\n"
"Examples:\n"
"  terracectl dump /dev/nvme0n1 /dev/sda\n"
"  terracectl dump map --range 17 fast.img slow.img\n"
"  terracectl dump --all /dev/nvme0n1 /dev/sda > metadata.txt\n"
"  terracectl dump journal --json fast.img slow.img | jq '.items[].records'\n";

static const struct {
	const char *name;
	void (*dump)(struct dump *d);
} sections[] = {
	{ "super", dump_supers },
	{ "journal", dump_journal },
	{ "map", dump_map },
	{ "space", dump_space },
	{ "packs", dump_packs },
	{ "owners", dump_owners },
	{ "all", dump_all },
};

#define NR_SECTIONS (sizeof(sections) / sizeof(sections[0]))

/* ---- items ------------------------------------------------------------------------ */

static void print_line(const char *indent, const char *kind, struct json_object *item)
{
	printf("%s%s", indent, kind);
	json_object_object_foreach(item, key, value) {
		if (json_object_is_type(value, json_type_array))
			continue;
		printf(" %s=%s", key, json_object_get_string(value));
	}
	putchar('\n');
}

static void print_lists(struct json_object *item)
{
	json_object_object_foreach(item, key, value) {
		if (!json_object_is_type(value, json_type_array))
			continue;
		for (size_t i = 0; i < json_object_array_length(value); i++) {
			struct json_object *element = json_object_array_get_idx(value, i);

			if (json_object_is_type(element, json_type_object))
				print_line("  ", key, element);
			else
				printf("  %s %s\n", key, json_object_get_string(element));
		}
	}
}

void dump_item(struct dump *d, const char *kind, struct json_object *item)
{
	d->nr_items++;
	if (d->items) {
		json_object_object_add(item, "item", json_object_new_string(kind));
		json_object_array_add(d->items, item);
		return;
	}
	print_line("", kind, item);
	print_lists(item);
	json_object_put(item);
}

void add_u64(struct json_object *o, const char *key, u64 value)
{
	json_object_object_add(o, key, json_object_new_uint64(value));
}

void add_text(struct json_object *o, const char *key, const char *value)
{
	json_object_object_add(o, key, json_object_new_string(value));
}

void add_bool(struct json_object *o, const char *key, bool value)
{
	json_object_object_add(o, key, json_object_new_boolean(value));
}

void add_hex(struct json_object *o, const char *key, u64 value)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%llx", value);
	add_text(o, key, text);
}

void add_place(struct json_object *o, const char *prefix, u64 place)
{
	char key[32];

	if (place == TR_NO_PLACE)
		return;
	snprintf(key, sizeof(key), "%stier", prefix);
	add_u64(o, key, tr_place_tier(place));
	snprintf(key, sizeof(key), "%splace", prefix);
	add_u64(o, key, tr_place_index(place));
}

void add_runs(struct json_object *o, const char *key, const u64 *bits, u64 n, u64 first)
{
	struct json_object *runs = json_object_new_array();

	for (u64 i = 0, end; i < n; i = end + 1) {
		char text[64];

		for (end = i; end < n && bit_test(bits, end); end++)
			;
		if (end == i)
			continue;
		snprintf(text, sizeof(text), end == i + 1 ? "%llu" : "%llu-%llu", first + i,
			 first + end - 1);
		json_object_array_add(runs, json_object_new_string(text));
	}
	json_object_object_add(o, key, runs);
}

/* ---- the command ---------------------------------------------------------------------- */

static bool parse_range(struct dump *d, const char *text)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	d->first = strtoull(text, &end, 10);
	d->last = d->first;
	if (*end == '-' && end[1] >= '0' && end[1] <= '9')
		d->last = strtoull(end + 1, &end, 10);
	return !*end && d->last >= d->first;
}

static int dump_volume(struct dump *d, u32 section, char **paths, int nr)
{
	int r = volume_open(&d->vol, paths, nr, DEVICE_SHARED, &d->findings);

	if (!r)
		sections[section].dump(d);
	else if (!section)
		dump_labels(d);
	if (d->items) {
		struct json_object *o = json_object_new_object();

		add_text(o, "what", sections[section].name);
		json_object_object_add(o, "items", json_object_get(d->items));
		ctl_json_print(o);
	}
	return d->findings.problems ? CTL_PROBLEM : CTL_OK;
}

static u32 find_section(const char *word)
{
	u32 i;

	for (i = 0; i < NR_SECTIONS && strcmp(word, sections[i].name); i++)
		;
	return i;
}

static int parse(const struct ctl_command *cmd, struct dump *d, int argc, char **argv, bool *help)
{
	static const struct option options[] = {
		{ "all", no_argument, NULL, 'a' },
		{ "json", no_argument, NULL, 'j' },
		{ "range", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (opt) {
		case 'j':
			json_object_put(d->items);
			d->items = json_object_new_array();
			break;
		case 'a':
			d->all = true;
			break;
		case 'r':
			if (!parse_range(d, optarg))
				return ctl_usage(cmd, "--range %s: must be N or N-M", optarg);
			break;
		case 'h':
			*help = true;
			return CTL_OK;
		default:
			return ctl_usage(cmd, "wrong option");
		}
	}
	return CTL_OK;
}

static int run_parsed(const struct ctl_command *cmd, struct dump *d, int argc, char **argv)
{
	u32 section = optind < argc ? find_section(argv[optind]) : 0;

	if (section < NR_SECTIONS)
		optind += optind < argc;
	else
		section = 0;
	if (d->all)
		section = find_section("all");
	if (optind >= argc)
		return ctl_usage(cmd, "no devices given: name all devices of the volume");
	if (argc - optind > VOLUME_MAX_DEVICES)
		return ctl_usage(cmd, "%d devices given, a volume has at most %u", argc - optind,
				 VOLUME_MAX_DEVICES);
	return dump_volume(d, section, argv + optind, argc - optind);
}

static int dump_run(const struct ctl_command *cmd, int argc, char **argv)
{
	struct dump *d = ctl_alloc(sizeof(*d));
	bool help = false;
	int r;

	findings_init(&d->findings, false, 100);
	d->findings.out = stderr;
	d->last = ~0ull;
	r = parse(cmd, d, argc, argv, &help);
	if (!r)
		r = help ? ctl_help(cmd) : run_parsed(cmd, d, argc, argv);
	json_object_put(d->items);
	volume_close(&d->vol);
	free(d);
	return r;
}

const struct ctl_command ctl_dump_command = {
	.name = "dump",
	.summary = "print what stands on the disks (reads only)",
	.help = help_text,
	.run = dump_run,
};
