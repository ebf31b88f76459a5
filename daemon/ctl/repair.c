// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl repair: metadata that a volume can work with again.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "rebuild_packs.h"
#include "repair.h"

#define DEFAULT_LIMIT 1000

static const char help_text[] =
"usage: terracectl repair --to NEW_DEVICE [OPTION]... DEVICE...\n"
"       terracectl repair --in-place [OPTION]... DEVICE...\n"
"       terracectl repair --dry-run [OPTION]... DEVICE...\n"
"\n"
"Makes new metadata for a damaged volume out of what is left: both copies, older\n"
"pages, the journal, what the shelves say about themselves. All devices of the\n"
"volume are named, in any order. What is lost is said, range by range; a block is\n"
"kept only if it is certain that its place, or its pack, holds its last value.\n"
"Packs are read, and kept as far as they have their checksums. Lost blocks read as\n"
"zeros afterwards. terracectl check --full finds nothing then.\n"
"\n"
"  --to NEW_DEVICE  write the metadata to a new metadata device or file; nothing\n"
"                   else is changed. Activate the volume with it from then on.\n"
"  --in-place       write it where it was. Everything that is still good stays\n"
"                   until the new superblock is durable: an interrupted repair has\n"
"                   done nothing, or is done. Damaged headers of packs are written\n"
"                   again where the fast tier has a copy\n"
"  --from-shelves   use nothing but what the shelves say: the newest claim of each\n"
"                   block, loose or packed. Slots are lost; every block may be older\n"
"                   than its last write. Says what is newer than the map, if there\n"
"                   is one\n"
"  --accept-older   keep blocks of which only a possibly older value is left\n"
"  --size SIZE      of the volume, when no superblock is left to say it\n"
"  --force          overwrite what NEW_DEVICE holds (never a device in use)\n"
"  --dry-run        say what is lost, write nothing\n"
"  --limit N        print at most N ranges (default 1000, 0: all)\n"
"  --json           print the result as JSON\n"
"  --help           this text\n"
"\n"
"Exit status: 0 done, nothing is lost; 1 done with losses (or ones that cannot be\n"
"told), refused or failed; 2 wrong usage. Interrupted, the same call begins again.\n"
"\n"
"Examples:\n"
"  terracectl repair --dry-run /dev/nvme0n1 /dev/sda\n"
"  terracectl repair --to /dev/nvme2n1p1 /dev/nvme0n1 /dev/sda\n"
"  terracectl repair --from-shelves --to meta.img fast.img slow.img\n";

/* ---- opening ------------------------------------------------------------------------- */

static bool all_placed(const struct volume *vol, int given)
{
	int placed = vol->meta_device >= 0;

	for (u32 i = 0; i < TERRACE_MAX_TIERS; i++)
		placed += vol->tier[i] >= 0;
	return placed == given;
}

static int choose_super(struct repair *rp, int given)
{
	if (!all_placed(&rp->vol, given)) {
		ctl_error("not every device that was named can be used: nothing changed");
		return -EINVAL;
	}
	rp->was_borrowed = rb_borrow_super(&rp->vol, &rp->borrowed);
	if (rp->vol.super) {
		rp->super = *rp->vol.super;
		rp->super.flags &= TERRACE_SUPER_CLEAN | TERRACE_SUPER_LAZY;
	} else if (!rp->from_shelves) {
		ctl_error("no superblock is left: --from-shelves rebuilds what the shelves know");
		return -ENODATA;
	} else if (repair_make_super(rp)) {
		return -EINVAL;
	}
	if (rp->super.incompat || rp->super.compat_ro & ~TERRACE_COMPAT_RO_KNOWN) {
		ctl_error("the volume uses features (%#llx, %#llx) that repair does not know: nothing changed",
			  rp->super.incompat, rp->super.compat_ro);
		return -EPROTONOSUPPORT;
	}
	return 0;
}

/* A drive that the volume had once, before it was replaced, say: what it holds would
 * be taken for the last values. So would what is found where a wrong label says. And
 * nothing that is written here makes a drive large enough.
 */
static int refuse_strangers(const struct repair *rp)
{
	const struct volume *vol = &rp->vol;

	for (u32 t = 0; t < rp->super.nr_tiers; t++) {
		const struct device *dev = &vol->dev[vol->tier[t] < 0 ? 0 : vol->tier[t]];

		if (volume_has_stranger(vol, t))
			ctl_error("%s is not the device that tier %u is made of: nothing changed; leave it out if that one is lost",
				  dev->path, t);
		else if (volume_has_misfit(vol, t))
			ctl_error("%s: its label does not fit tier %u of the superblock: nothing changed; leave it out if no device with the right label is left",
				  dev->path, t);
		else if (vol->tier[t] >= 0 && vol->label[vol->tier[t]].device_blocks > dev->blocks)
			ctl_error("%s: has %llu blocks, its label says %llu: nothing changed; copy it to a device that is large enough",
				  dev->path, dev->blocks, vol->label[vol->tier[t]].device_blocks);
		else
			continue;
		return -EXDEV;
	}
	return 0;
}

/* What is written there nobody would take for the volume's: the label says that it is another area. */
static bool misfits(const struct repair *rp, const struct metadata *meta)
{
	if (!meta->dev || meta->lazy || meta->blocks == rp->super.meta_blocks)
		return false;
	ctl_error("%s: its label says that the metadata have %llu blocks, the superblock says %llu: nothing changed; repair --to a new device",
		  meta->dev->path, meta->blocks, rp->super.meta_blocks);
	return true;
}

static int refuse_place(const struct repair *rp)
{
	if (!rp->in_place)
		return 0;
	if (rp->made_up)
		ctl_error("no superblock says where the metadata were: repair --to a new device");
	else if (rp->vol.meta->lazy)
		ctl_error("only the lazy mirror is left: repair --to a new device");
	else if (rp->vol.meta->stale)
		ctl_error("only metadata that the volume went on without is left: bring back the other copy, or repair --to a new device");
	else if (!misfits(rp, &rp->vol.primary) && !misfits(rp, &rp->vol.mirror))
		return 0;
	return -EINVAL;
}

/* ---- the order of it ------------------------------------------------------------------- */

static void read_all(struct repair *rp)
{
	rb_init(&rp->rb, &rp->vol, &rp->super, &rp->findings);
	rp->rb.borrowed = rp->was_borrowed;
	if (rp->from_shelves) {
		rp->rb.unmapped_certain = false;
		rb_read_shelves(&rp->rb, true, false);
		if (!rp->made_up) {
			rb_init(&rp->map, &rp->vol, &rp->super, &rp->findings);
			rp->map.borrowed = rp->was_borrowed;
			rb_read_map(&rp->map);
			if (rp->map.newest_record > rp->rb.newest_record)
				rp->rb.newest_record = rp->map.newest_record;
			/* The superblock may be that of the lazy mirror, laps of the ring behind what still stands there. */
			if (rp->map.newest_journal_block > rp->rb.newest_journal_block)
				rp->rb.newest_journal_block = rp->map.newest_journal_block;
			/* Until the new superblock is durable the map is the better one. */
			memcpy(rp->rb.avoid, rp->map.avoid, (rp->super.meta_blocks / 64 + 1) * sizeof(u64));
		}
	} else {
		rb_read_map(&rp->rb);
		if (rb_uncertain(&rp->rb))
			rb_read_shelves(&rp->rb, false, false);
	}
	rb_prove_packs(&rp->rb, rp->in_place);
	rb_resolve(&rp->rb);
}

static int repair_volume(struct repair *rp, char **paths, int nr)
{
	enum device_mode mode = rp->in_place && !rp->dry_run ? DEVICE_WRITE : DEVICE_READ;
	u64 kept = 0;
	int r;

	volume_open(&rp->vol, paths, nr, mode, &rp->findings);
	if (choose_super(rp, nr) || refuse_strangers(rp) || refuse_place(rp))
		return CTL_PROBLEM;
	read_all(rp);
	if (rp->rb.alien || rp->map.alien) {
		ctl_error("the journal of volume '%s' has records that repair does not know: nothing changed",
			  rp->vol.name);
		return CTL_PROBLEM;
	}
	repair_report(rp);
	r = rp->dry_run ? 0 : repair_write(rp, &kept);
	if (!r)
		repair_print_summary(rp, kept, !rp->dry_run);
	return r || rp->lost || rp->dropped || repair_blind(rp) ? CTL_PROBLEM : CTL_OK;
}

/* ---- the command line --------------------------------------------------------------------- */

enum { OPT_TO = 256, OPT_IN_PLACE, OPT_FROM_SHELVES, OPT_OLDER, OPT_SIZE, OPT_FORCE, OPT_DRY_RUN,
       OPT_LIMIT, OPT_JSON };

static const struct option options[] = {
	{ "to", required_argument, NULL, OPT_TO },
	{ "in-place", no_argument, NULL, OPT_IN_PLACE },
	{ "from-shelves", no_argument, NULL, OPT_FROM_SHELVES },
	{ "accept-older", no_argument, NULL, OPT_OLDER },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "force", no_argument, NULL, OPT_FORCE },
	{ "dry-run", no_argument, NULL, OPT_DRY_RUN },
	{ "limit", required_argument, NULL, OPT_LIMIT },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static int parse_option(struct repair *rp, const struct ctl_command *cmd, int opt)
{
	char *end;
	int r;

	switch (opt) {
	case OPT_TO:
		rp->to = optarg;
		return CTL_OK;
	case OPT_IN_PLACE:
		rp->in_place = true;
		return CTL_OK;
	case OPT_FROM_SHELVES:
		rp->from_shelves = true;
		return CTL_OK;
	case OPT_OLDER:
		rp->accept_older = true;
		return CTL_OK;
	case OPT_SIZE:
		r = size_parse(optarg, &rp->size_blocks);
		return r ? ctl_usage(cmd, "--size %s: %s", optarg, size_strerror(r)) : CTL_OK;
	case OPT_FORCE:
		rp->force = true;
		return CTL_OK;
	case OPT_DRY_RUN:
		rp->dry_run = true;
		return CTL_OK;
	case OPT_LIMIT:
		rp->limit = strtoull(optarg, &end, 10);
		if (end == optarg || *end || *optarg == '-')
			return ctl_usage(cmd, "--limit %s: not a number", optarg);
		return CTL_OK;
	case OPT_JSON:
		rp->json = true;
		return CTL_OK;
	default:
		return ctl_usage(cmd, "wrong option");
	}
}

static int run_parsed(struct repair *rp, const struct ctl_command *cmd, int argc, char **argv)
{
	if (!!rp->to + rp->in_place > 1)
		return ctl_usage(cmd, "--to and --in-place: one of them");
	if (!rp->to && !rp->in_place && !rp->dry_run)
		return ctl_usage(cmd, "where to? --to NEW_DEVICE, --in-place, or only look: --dry-run");
	if (optind == argc)
		return ctl_usage(cmd, "no devices given: name all devices of the volume");
	if (argc - optind > VOLUME_MAX_DEVICES)
		return ctl_usage(cmd, "%d devices given, a volume has at most %u", argc - optind,
				 VOLUME_MAX_DEVICES);
	if (rp->json)
		rp->ranges = json_object_new_array();
	return repair_volume(rp, argv + optind, argc - optind);
}

static int repair_run(const struct ctl_command *cmd, int argc, char **argv)
{
	struct repair *rp = ctl_alloc(sizeof(*rp));
	int opt, r = CTL_OK;
	bool help = false;

	findings_init(&rp->findings, false, 100);
	rp->findings.out = stderr;
	rp->limit = DEFAULT_LIMIT;
	while (!r && !help && (opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		help = opt == 'h';
		r = help ? CTL_OK : parse_option(rp, cmd, opt);
	}
	if (!r)
		r = help ? ctl_help(cmd) : run_parsed(rp, cmd, argc, argv);
	rb_free(&rp->rb);
	rb_free(&rp->map);
	json_object_put(rp->ranges);
	volume_close(&rp->vol);
	free(rp);
	return r;
}

const struct ctl_command ctl_repair_command = {
	.name = "repair",
	.summary = "make new metadata out of what is left",
	.help = help_text,
	.run = repair_run,
};
