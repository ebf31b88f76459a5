// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl scrub: reads all packs of a volume in use and verifies their
 * checksums, reads what is loose on shelves or at home; changes nothing.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "names.h"
#include "tally.h"
#include "term.h"

#define AT_ONCE	64	/* regions asked for */
#define REGION_BLOCKS (TERRACE_REGION_WORDS * 64)

struct scrub {
	struct orders orders;
	struct tally tally;
	struct terrace_region region[AT_ONCE];
	u64 next, have;		/* region[] begins at next - have … */
	u32 at;
	u64 packs, blocks;
	struct json_object *bad;	/* NULL: as text */
};

static int load(struct scrub *s)
{
	u64 left = s->orders.hello.regions - s->next;
	u32 nr = left < AT_ONCE ? (u32)left : AT_ONCE;
	int r = control_regions(s->orders.fd, s->next, nr, s->region);

	if (r)
		return r;
	s->have = nr;
	s->at = 0;
	s->next += nr;
	term_progress("scrubbing", s->next < s->orders.hello.regions ? s->next : s->next - 1,
		      s->orders.hello.regions);
	return 0;
}

static void lost_map(struct scrub *s, const struct terrace_region *region)
{
	s->tally.failed++;
	ctl_error("region %llu (blocks from %llu on): its map cannot be read: %s",
		  (unsigned long long)region->region, (unsigned long long)region->region * REGION_BLOCKS,
		  strerror(-(int)region->status));
}

/* On shelves, or at home: a place that is not on a fast tier. */
static bool has_loose(const struct terrace_region *region)
{
	for (u32 w = 0; w < TERRACE_REGION_WORDS; w++)
		if (region->present[w] & ~region->fast[w])
			return true;
	return false;
}

static int next_order(void *ctx, struct terrace_move *move)
{
	struct scrub *s = ctx;

	for (;;) {
		if (s->at == s->have) {
			int r = s->next < s->orders.hello.regions ? load(s) : 0;

			if (r || s->at == s->have)
				return r;
		}
		for (; s->at < s->have; s->at++) {
			const struct terrace_region *region = &s->region[s->at];

			if (region->status)
				lost_map(s, region);
			if (region->status || (!region->nr_packs && !has_loose(region)))
				continue;
			s->packs += region->nr_packs;
			for (u32 w = 0; w < TERRACE_REGION_WORDS; w++)
				s->blocks += (u64)__builtin_popcountll(region->packed[w]);
			*move = (struct terrace_move){ .region = region->region, .mode = TERRACE_MOVE_SCRUB };
			s->at++;
			return 1;
		}
	}
}

static void order_ended(void *ctx, const struct terrace_result *result)
{
	struct scrub *s = ctx;
	struct json_object *o;

	tally_add(&s->tally, result);
	if (!result->unreadable)
		return;
	if (!s->bad) {
		printf("region %llu: %u blocks cannot be read; the first is block %llu\n",
		       (unsigned long long)result->region, result->unreadable,
		       (unsigned long long)result->bad_block);
		return;
	}
	o = json_object_new_object();
	json_object_object_add(o, "region", json_object_new_uint64(result->region));
	json_object_object_add(o, "unreadable", json_object_new_uint64(result->unreadable));
	json_object_object_add(o, "first_block", json_object_new_uint64(result->bad_block));
	json_object_array_add(s->bad, o);
}

static int report(struct scrub *s, int err)
{
	struct json_object *o;

	if (err == -EINTR)
		ctl_error("interrupted: not all has been read");
	if (s->bad) {
		o = json_object_new_object();
		json_object_object_add(o, "packs", json_object_new_uint64(s->packs));
		json_object_object_add(o, "packed_blocks", json_object_new_uint64(s->blocks));
		json_object_object_add(o, "unreadable_blocks", json_object_new_uint64(s->tally.unreadable));
		json_object_object_add(o, "complete", json_object_new_boolean(!err));
		json_object_object_add(o, "bad", s->bad);
		ctl_json_print(o);
	} else {
		printf("%llu packs with %llu live blocks read, %llu blocks cannot be read\n",
		       (unsigned long long)s->packs, (unsigned long long)s->blocks,
		       (unsigned long long)s->tally.unreadable);
	}
	return err || s->tally.failed || s->tally.unreadable ? CTL_PROBLEM : CTL_OK;
}

static int scrub_volume(const struct dm_volume *v, bool json)
{
	struct scrub *s = ctl_alloc(sizeof(*s));
	int r = orders_open(&s->orders, v);

	if (r) {
		free(s);
		return CTL_PROBLEM;
	}
	tally_init(&s->tally);
	if (json)
		s->bad = json_object_new_array();
	r = orders_run(&s->orders, next_order, order_ended, s);
	term_progress("scrubbing", s->orders.hello.regions, s->orders.hello.regions);
	r = report(s, r);
	orders_close(&s->orders);
	free(s);
	return r;
}

static const char scrub_help[] =
"usage: terracectl scrub [--json] NAME\n"
"\n"
"Reads every pack of a volume in use, decompresses it and verifies its sums;\n"
"changes nothing. Blocks that are not packed have no checksum: terracectl check\n"
"judges the metadata, reading the device (dd) finds media errors. Ctrl-C stops.\n"
"\n"
"  --json    as JSON\n"
"  --help    this text\n"
"\n"
"Exit status: 0 all packs are good, 1 some are not, or stopped, 2 wrong usage.\n"
"\n"
"Example:\n"
"  terracectl scrub db\n";

static int scrub_run(const struct ctl_command *cmd, int argc, char **argv)
{
	bool json = false;
	const struct args_option options[] = { { .name = "json", .flag = &json }, { .name = NULL } };
	struct dm_volume v;
	int r = args_one_volume(cmd, argc, argv, options);

	if (r != ARGS_GO_ON)
		return r;
	return dm_named(&v, argv[optind]) ? CTL_PROBLEM : scrub_volume(&v, json);
}

const struct ctl_command ctl_scrub_command = {
	.name = "scrub",
	.summary = "read and verify all packs of a volume in use",
	.help = scrub_help,
	.run = scrub_run,
};
