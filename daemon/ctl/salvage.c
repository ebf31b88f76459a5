// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl salvage: reads out what can be read of a volume that cannot be
 * activated, or that has lost a tier.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "salvage.h"

#define DEFAULT_LIMIT 1000

static const char help_text[] =
"usage: terracectl salvage --to FILE|DEVICE [OPTION]... DEVICE...\n"
"       terracectl salvage --dry-run [OPTION]... DEVICE...\n"
"\n"
"Reads out what can be read of a volume, with a tier missing, with only the lazy\n"
"copy of its metadata, or damaged otherwise, and writes an image of the volume.\n"
"The devices that are left are named, in any order; they are only read.\n"
"\n"
"Every block is one of\n"
"  certain         its last value\n"
"  possibly older  a value of this block, perhaps not its last one\n"
"  doubtful        an outdated map says where it was, and the place may hold\n"
"                  another block's data by now: left out unless asked for\n"
"  lost            left out: zeros in the image\n"
"Nothing is called certain that is not.\n"
"\n"
"  --to FILE|DEVICE  the image: a new file (with holes), or a block device\n"
"  --map FILE        write what each block is to FILE, as JSON\n"
"  --older           for blocks that are lost with their tier: the copy that a\n"
"                    shelf still has, possibly older\n"
"  --doubtful        write doubtful blocks, too\n"
"  --from-shelves    use nothing but what the shelves say about themselves\n"
"  --force           overwrite an image, or what DEVICE holds (not one in use)\n"
"  --dry-run         read and report, write nothing\n"
"  --limit N         print at most N ranges (default 1000, 0: all)\n"
"  --json            print the result as JSON\n"
"  --help            this text\n"
"\n"
"Exit status: 0 everything is certain; 1 something is older or lost, or it\n"
"failed; 2 wrong usage.\n"
"\n"
"Examples:\n"
"  terracectl salvage --dry-run /dev/sda\n"
"  terracectl salvage --to image --map image.json /dev/sda\n"
"  terracectl salvage --older --to /dev/sdx /dev/sda /dev/sdb\n";

/* ---- report ------------------------------------------------------------------------- */

static void add_range(struct salvage *s, u64 block, u64 nr, u64 at, const char *why)
{
	struct json_object *o = json_object_new_object();
	u64 place = rb_place(at);

	json_object_object_add(o, "block", json_object_new_uint64(block));
	json_object_object_add(o, "blocks", json_object_new_uint64(nr));
	json_object_object_add(o, "state", json_object_new_string(rb_state_word(rb_state(at))));
	if (place != TR_NO_PLACE) {
		json_object_object_add(o, "tier", json_object_new_uint64(tr_place_tier(place)));
		json_object_object_add(o, "place", json_object_new_uint64(tr_place_index(place)));
	}
	if (rb_pack(at)) {
		const struct tr_pack *ref = &s->rb.region[block / TERRACE_REGION_BLOCKS]->pack[rb_pack(at) - 1].ref;

		json_object_object_add(o, "pack", json_object_new_uint64(ref->id));
	}
	json_object_object_add(o, "why", json_object_new_string(why));
	json_object_array_add(s->ranges, o);
}

void salvage_range(struct salvage *s, u64 block, u64 nr, u64 at, const char *why)
{
	if (!why)
		why = rb_source_text(rb_source(at));
	s->count[rb_state(at)] += nr;
	if (s->ranges)
		add_range(s, block, nr, at, why);
	if (rb_state(at) == RB_CERTAIN || s->json)
		return;
	if (!s->limit || s->printed < s->limit)
		printf("%s: blocks %llu-%llu (%llu): %s\n", rb_state_word(rb_state(at)), block,
		       block + nr - 1, nr, why);
	s->printed++;
}

/* What blocks without a place read as, and whether that is sure. */
static const char *unmapped_text(const struct salvage *s)
{
	return s->rb.unmapped_certain ? "zeros, certain" :
	       "zeros; blocks may have been written after the map was";
}

static struct json_object *result_json(const struct salvage *s)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "name", json_object_new_string(s->vol.name));
	json_object_object_add(o, "uuid", json_object_new_string(uuid_text(s->vol.uuid)));
	json_object_object_add(o, "block_bytes", json_object_new_uint64(TERRACE_BLOCK_BYTES));
	json_object_object_add(o, "virtual_blocks", json_object_new_uint64(s->rb.virtual_blocks));
	json_object_object_add(o, "journal_torn", json_object_new_boolean(s->rb.torn_end));
	json_object_object_add(o, "unmapped", json_object_new_string(unmapped_text(s)));
	json_object_object_add(o, "unmapped_certain", json_object_new_boolean(s->rb.unmapped_certain));
	json_object_object_add(o, "certain_blocks", json_object_new_uint64(s->count[RB_CERTAIN]));
	json_object_object_add(o, "older_blocks", json_object_new_uint64(s->count[RB_OLDER]));
	json_object_object_add(o, "doubtful_blocks", json_object_new_uint64(s->count[RB_DOUBTFUL]));
	json_object_object_add(o, "lost_blocks", json_object_new_uint64(s->count[RB_LOST]));
	json_object_object_add(o, "ranges", json_object_get(s->ranges));
	return o;
}

static int write_map(const struct salvage *s)
{
	struct json_object *o = result_json(s);
	int r = json_object_to_file_ext(s->map_path, o, JSON_C_TO_STRING_PRETTY);

	json_object_put(o);
	if (r)
		ctl_error("%s: cannot be written", s->map_path);
	return r;
}

static void print_summary(const struct salvage *s)
{
	if (s->json) {
		ctl_json_print(result_json(s));
		return;
	}
	if (s->limit && s->printed > s->limit)
		printf("... and %llu more ranges\n", s->printed - s->limit);
	if (s->rb.torn_end)
		puts(RB_TORN_NOTE);
	printf("volume '%s' (%s): %llu blocks certain, %llu possibly older, %llu doubtful (%s), %llu lost; unmapped blocks: %s\n",
	       s->vol.name, uuid_text(s->vol.uuid), s->count[RB_CERTAIN], s->count[RB_OLDER],
	       s->count[RB_DOUBTFUL], s->doubtful ? "written" : "left out", s->count[RB_LOST],
	       unmapped_text(s));
}

/* ---- the order of it ------------------------------------------------------------------- */

static void read_all(struct salvage *s)
{
	bool borrowed = rb_borrow_super(&s->vol, &s->borrowed);

	rb_init(&s->rb, &s->vol, s->vol.super, &s->findings);
	s->rb.borrowed = borrowed;
	if (s->vol.super->incompat)
		note(&s->findings, s->vol.name, "uses features (%#llx) whose blocks are left out",
		     s->vol.super->incompat);
	if (s->from_shelves) {
		s->rb.unmapped_certain = false;
		rb_read_shelves(&s->rb, true, false);
	} else {
		rb_read_map(&s->rb);
		if (s->older || rb_uncertain(&s->rb))
			rb_read_shelves(&s->rb, false, s->older);
	}
	rb_resolve(&s->rb);
}

/* What they hold would be called certain. */
static void leave_out_strangers(struct volume *vol)
{
	for (u32 t = 0; t < vol->super->nr_tiers; t++) {
		if (volume_has_stranger(vol, t))
			ctl_error("%s is left out: it is not the device that tier %u is made of", vol->dev[vol->tier[t]].path, t);
		else if (volume_has_misfit(vol, t))
			ctl_error("%s is left out: its label does not fit tier %u of the superblock", vol->dev[vol->tier[t]].path, t);
		else
			continue;
		vol->tier[t] = -1;
	}
}

static int salvage_volume(struct salvage *s, char **paths, int nr)
{
	int r;

	volume_open(&s->vol, paths, nr, DEVICE_READ, &s->findings);
	r = salvage_refuse_map(s);
	if (r)
		return r;
	if (!s->vol.super) {
		ctl_error("no superblock can be read: terracectl repair --from-shelves --to FILE makes one, then salvage with FILE as a further device");
		return CTL_PROBLEM;
	}
	leave_out_strangers(&s->vol);
	read_all(s);
	if (s->rb.alien) {
		ctl_error("the journal of volume '%s' has records that salvage does not know: nothing written",
			  s->vol.name);
		return CTL_PROBLEM;
	}
	r = s->dry_run ? CTL_OK : salvage_open_out(s);
	if (r)
		return r;
	if (s->json || s->map_path)
		s->ranges = json_object_new_array();
	if (salvage_copy(s) || (s->map_path && write_map(s)))
		return CTL_PROBLEM;
	print_summary(s);
	return s->rb.unmapped_certain && !s->count[RB_OLDER] && !s->count[RB_DOUBTFUL] &&
	       !s->count[RB_LOST] ? CTL_OK : CTL_PROBLEM;
}

/* ---- the command line --------------------------------------------------------------------- */

static const struct option options[] = {
	{ "to", required_argument, NULL, 't' },
	{ "map", required_argument, NULL, 'm' },
	{ "older", no_argument, NULL, 'o' },
	{ "doubtful", no_argument, NULL, 'd' },
	{ "from-shelves", no_argument, NULL, 's' },
	{ "force", no_argument, NULL, 'f' },
	{ "dry-run", no_argument, NULL, 'n' },
	{ "limit", required_argument, NULL, 'l' },
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static int parse_option(struct salvage *s, const struct ctl_command *cmd, int opt)
{
	char *end;

	switch (opt) {
	case 't':
		s->to = optarg;
		break;
	case 'm':
		s->map_path = optarg;
		break;
	case 'o':
		s->older = true;
		break;
	case 'd':
		s->doubtful = true;
		break;
	case 's':
		s->from_shelves = true;
		break;
	case 'f':
		s->force = true;
		break;
	case 'n':
		s->dry_run = true;
		break;
	case 'l':
		s->limit = strtoull(optarg, &end, 10);
		if (end == optarg || *end || *optarg == '-')
			return ctl_usage(cmd, "--limit %s: not a number", optarg);
		break;
	case 'j':
		s->json = true;
		break;
	default:
		return ctl_usage(cmd, "wrong option");
	}
	return CTL_OK;
}

static int run_parsed(struct salvage *s, const struct ctl_command *cmd, int argc, char **argv)
{
	if (!s->to && !s->dry_run)
		return ctl_usage(cmd, "where to? --to FILE or DEVICE, or only look: --dry-run");
	if (optind == argc)
		return ctl_usage(cmd, "no devices given: name those of the volume that are left");
	if (argc - optind > VOLUME_MAX_DEVICES)
		return ctl_usage(cmd, "%d devices given, a volume has at most %u", argc - optind,
				 VOLUME_MAX_DEVICES);
	return salvage_volume(s, argv + optind, argc - optind);
}

static int salvage_run(const struct ctl_command *cmd, int argc, char **argv)
{
	struct salvage *s = ctl_alloc(sizeof(*s));
	int opt, r = CTL_OK;
	bool help = false;

	findings_init(&s->findings, false, 100);
	s->findings.out = stderr;
	s->limit = DEFAULT_LIMIT;
	s->out.fd = -1;
	while (!r && !help && (opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		help = opt == 'h';
		r = help ? CTL_OK : parse_option(s, cmd, opt);
	}
	if (!r)
		r = help ? ctl_help(cmd) : run_parsed(s, cmd, argc, argv);
	rb_free(&s->rb);
	json_object_put(s->ranges);
	device_close(&s->out);
	volume_close(&s->vol);
	free(s);
	return r;
}

const struct ctl_command ctl_salvage_command = {
	.name = "salvage",
	.summary = "read out what is readable of a broken volume",
	.help = help_text,
	.run = salvage_run,
};
