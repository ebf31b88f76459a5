// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl evacuate: everything off a tier, and nothing new onto it.
 *
 * Off slots: the whole volume is pinned slow, so that neither new writes nor
 * promotions go there, then every region is ordered down; regions that were
 * written meanwhile are ordered again. Interrupted, the pin is taken back and
 * the volume works as before; the same call goes on with what is left. Pins
 * end with the activation, so a crash leaves nothing behind.
 *
 * Off shelves: every region with packs is packed anew onto another tier.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "args.h"
#include "move.h"
#include "names.h"
#include "tally.h"
#include "term.h"

#define ROUNDS	8	/* as often a volume may be written to faster than it is moved */

struct evacuate {
	const struct dm_volume *volume;
	struct ctl_tier tiers[TERRACE_MAX_TIERS];
	u32 nr_tiers, from, to;
	struct orders orders;
	struct move_target target;
	struct tally tally;
	u64 next;		/* region */
	u64 left;		/* blocks that were there in this round */
};

static bool of_slots(const struct evacuate *e)
{
	return e->tiers[e->from].kind == TERRACE_KIND_SLOTS;
}

/* ---- which tiers --------------------------------------------------------------------------- */

static int refuse_source(const struct evacuate *e)
{
	u32 slots = 0;

	for (u32 t = 0; t < e->nr_tiers; t++)
		slots += e->tiers[t].kind == TERRACE_KIND_SLOTS;
	if (e->tiers[e->from].missing)
		ctl_error("tier %u is missing: what is only there cannot be moved; terracectl salvage reads out the rest",
			  e->from);
	else if (e->tiers[e->from].kind == TERRACE_KIND_HOME)
		ctl_error("tier %u: this version cannot evacuate a tier of homes", e->from);
	else if (of_slots(e) && slots > 1)
		ctl_error("tier %u: this version cannot tell the blocks of several tiers of slots apart", e->from);
	else
		return 0;
	return CTL_PROBLEM;
}

/* The fastest tier of shelves but the one to be emptied. */
static int choose_target(struct evacuate *e, const char *word)
{
	int found = -1;

	if (word) {
		found = tiers_find(e->volume, word, e->tiers);
		if (found < 0)
			return CTL_USAGE;
	}
	for (u32 t = 0; t < e->nr_tiers && found < 0; t++)
		if (t != e->from && e->tiers[t].kind == TERRACE_KIND_SHELVES && !e->tiers[t].missing)
			found = (int)t;
	if (found < 0) {
		ctl_error("volume '%s' has no other tier of shelves that could take the blocks of tier %u",
			  e->volume->name, e->from);
		return CTL_PROBLEM;
	}
	e->to = (u32)found;
	if (e->to != e->from && e->tiers[e->to].kind == TERRACE_KIND_SHELVES)
		return CTL_OK;
	ctl_error("tier %u cannot take the blocks of tier %u: another tier of shelves can", e->to, e->from);
	return CTL_USAGE;
}

/* ---- the pin ----------------------------------------------------------------------------------- */

static int pin(const struct evacuate *e, u32 what)
{
	struct terrace_range range = { .nr = e->orders.hello.virtual_blocks, .what = what };

	if (!of_slots(e) || !ioctl(e->orders.fd, TERRACE_IOC_RANGE, &range))
		return 0;
	ctl_error("volume '%s' cannot be pinned: %s", e->volume->name, strerror(errno));
	return -errno;
}

/* ---- orders -------------------------------------------------------------------------------------- */

static u64 blocks_there(const struct evacuate *e, const struct terrace_region *region)
{
	u64 n = 0;

	for (u32 w = 0; w < TERRACE_REGION_WORDS; w++)
		n += (u64)__builtin_popcountll(of_slots(e) ? region->present[w] & region->fast[w] :
					       region->packed[w] | (region->present[w] & ~region->fast[w]));
	return n;
}

static int next_order(void *ctx, struct terrace_move *move)
{
	__u64 all[TERRACE_REGION_WORDS];
	struct terrace_region region;
	struct evacuate *e = ctx;
	int r;

	memset(all, 0xff, sizeof(all));
	while (e->next < e->orders.hello.regions) {
		r = control_regions(e->orders.fd, e->next, 1, &region);
		if (r)
			return r;
		e->next++;
		term_progress("evacuating", e->next < e->orders.hello.regions ? e->next : e->next - 1,
			      e->orders.hello.regions);
		if (region.status) {
			ctl_error("region %llu: its map cannot be read: %s", (unsigned long long)region.region,
				  strerror(-(int)region.status));
			e->tally.failed++;
			continue;
		}
		e->left += blocks_there(e, &region);
		if (!of_slots(e))
			memcpy(all, region.packed, sizeof(all));
		if (move_make(&e->target, &region, all, move))
			return 1;
	}
	return 0;
}

static void order_ended(void *ctx, const struct terrace_result *result)
{
	tally_add(&((struct evacuate *)ctx)->tally, result);
}

/* Rounds, until one finds nothing. Packs leave no trace of the tier they are on: one round. */
static int move_all(struct evacuate *e)
{
	u32 round = 0;
	int r = 0;

	do {
		e->next = e->left = 0;
		r = orders_run(&e->orders, next_order, order_ended, e);
		round++;
	} while (!r && of_slots(e) && e->left && !e->tally.failed && !e->tally.no_room && round < ROUNDS);
	term_progress("evacuating", e->orders.hello.regions, e->orders.hello.regions);
	if (!r && of_slots(e) && e->left && round == ROUNDS) {
		ctl_error("%llu blocks were there in round %u: the volume is written to faster than they go; the same call goes on",
			  (unsigned long long)e->left, round);
		r = -EAGAIN;
	}
	return r;
}

static int evacuate(struct evacuate *e, const char *codec, bool json)
{
	struct json_object *o = json ? json_object_new_object() : NULL;
	char *what = ctl_text("tier %u", e->from);
	int r = orders_open(&e->orders, e->volume);

	if (!r) {
		move_target_init(&e->target, e->to, e->tiers, e->nr_tiers, &e->orders.hello);
		tally_init(&e->tally);
		r = codec ? move_set_codec(&e->target, &e->orders.hello, codec) : 0;
		if (!r)
			r = pin(e, TERRACE_RANGE_PIN_SLOW);
		if (!r)
			r = move_all(e);
		if (r)
			pin(e, TERRACE_RANGE_UNPIN);
		r = tally_report(&e->tally, r, what, o);
		orders_close(&e->orders);
	}
	if (o)
		ctl_json_print(o);
	else if (!r && of_slots(e))
		printf("New writes go past it until terracectl evacuate --undo, or until the volume is deactivated.\n");
	free(what);
	return r ? CTL_PROBLEM : CTL_OK;
}

static int undo(struct evacuate *e)
{
	struct terrace_hello hello;
	int r;

	e->orders.fd = control_open(e->volume, &hello);
	if (e->orders.fd < 0)
		return CTL_PROBLEM;
	e->orders.hello = hello;
	r = pin(e, TERRACE_RANGE_UNPIN);
	close(e->orders.fd);
	return r ? CTL_PROBLEM : CTL_OK;
}

/* ---- the command ----------------------------------------------------------------------------------- */

static const char help_text[] =
"usage: terracectl evacuate [OPTION]... NAME TIER\n"
"       terracectl evacuate --undo NAME TIER\n"
"\n"
"Moves everything off a tier of a volume in use, while it is in use. TIER is its\n"
"number or its class. Off a tier of slots blocks go into packs, and nothing new\n"
"goes there: the whole volume is pinned slow (which takes other pins away) until\n"
"--undo or until it is deactivated. Off a tier of shelves packs go to another one.\n"
"Ctrl-C stops at a sound point, and the volume works as before; the same call goes\n"
"on. What stays on tier 0 are the volume's own metadata and copies of the packs'\n"
"indexes, of which the packs are the originals.\n"
"\n"
"  --to TIER     onto which tier of shelves; default: the fastest other\n"
"  --codec WORD  of packs: none, lz4 (default), zstd\n"
"  --undo        let new writes go there again\n"
"  --json        as JSON\n"
"  --help        this text\n"
"\n"
"Exit status: 0 empty, 1 refused, failed or interrupted, 2 wrong usage.\n"
"\n"
"Examples:\n"
"  terracectl evacuate db optane\n"
"  terracectl evacuate --undo db 0\n";

static int run_on(const char *name, const char *from, const char *to, const char *codec, bool back, bool json)
{
	struct evacuate e = { 0 };
	struct dm_volume volume;
	int r, tier;

	if (dm_named(&volume, name))
		return CTL_PROBLEM;
	e.volume = &volume;
	tier = tiers_find(e.volume, from, e.tiers);
	e.nr_tiers = tiers_read(e.volume, e.tiers);
	e.from = (u32)tier;
	r = tier < 0 ? CTL_USAGE : refuse_source(&e);
	if (r || back)
		return r ? r : undo(&e);
	r = choose_target(&e, to);
	return r ? r : evacuate(&e, codec, json);
}

static int evacuate_run(const struct ctl_command *cmd, int argc, char **argv)
{
	const char *to = NULL, *codec = NULL;
	bool back = false, json = false;
	const struct args_option options[] = {
		{ .name = "to", .text = &to }, { .name = "codec", .text = &codec },
		{ .name = "undo", .flag = &back }, { .name = "json", .flag = &json }, { .name = NULL },
	};
	int r = args_parse(cmd, argc, argv, options);

	if (r != ARGS_GO_ON)
		return r;
	if (argc - optind != 2)
		return ctl_usage(cmd, "name a volume and one of its tiers");
	return run_on(argv[optind], argv[optind + 1], to, codec, back, json);
}

const struct ctl_command ctl_evacuate_command = {
	.name = "evacuate",
	.summary = "move everything off a tier",
	.help = help_text,
	.run = evacuate_run,
};
