// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl evacuate: everything off a tier, and nothing new onto it.
 *
 * The volume is told to avoid the tier (tunable avoid_tiers): from then on new
 * blocks go elsewhere as long as there is room, and orders take off it what is
 * there. Each region that has something there is ordered away, again and again
 * until a round finds none. Interrupted, or without room, the volume works as
 * before; what was moved stays moved, and the same call goes on. The tunable
 * ends with the activation, so a crash leaves nothing behind.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "interrupt.h"
#include "lock.h"
#include "move.h"
#include "names.h"
#include "sysfs.h"
#include "tally.h"
#include "term.h"

#define ROUNDS		8	/* without progress: written to faster than it is emptied */
#define SETTLE_TENTHS	100	/* s/10 until what has left is free */

struct evacuate {
	const struct dm_volume *volume;
	struct ctl_tier tiers[TERRACE_MAX_TIERS];
	u32 nr_tiers, from, to;
	struct orders orders;
	struct move_target target;
	struct tally tally;
	u64 next;		/* region */
	u64 left;		/* blocks that were there in this round, and packs and copies of indexes */
};

static u32 kind_of(const struct evacuate *e, u32 tier)
{
	return e->tiers[tier].kind;
}

/* ---- the tunable ----------------------------------------------------------------------------- */

#define AVOID_TIERS	VOLUME_FOLDER "/tune/avoid_tiers"

static u32 avoided(const struct evacuate *e)
{
	return (u32)sysfs_number(0, AVOID_TIERS, e->volume->minor);
}

static int avoid(const struct evacuate *e, bool on)
{
	u32 bit = 1u << e->from, tiers = avoided(e);
	char path[96], value[16];
	int r;

	snprintf(path, sizeof(path), AVOID_TIERS, e->volume->minor);
	snprintf(value, sizeof(value), "%u", on ? tiers | bit : tiers & ~bit);
	r = sysfs_write(path, value);
	if (r)
		ctl_error("volume '%s' cannot be told to avoid tier %u (%s: %s): is its module older than terracectl?",
			  e->volume->name, e->from, path, strerror(-r));
	return r;
}

/* ---- the volume ------------------------------------------------------------------------------ */

/* NULL: it writes. Else, its mode, to be freed: what moves cannot be made durable, so nothing gets free. */
static char *writes_no_more(const struct evacuate *e)
{
	char *mode = sysfs_line(VOLUME_FOLDER "/mode", e->volume->minor);

	if (mode && strcmp(mode, "write"))
		return mode;
	free(mode);
	return NULL;
}

static int refuse_read_only(const struct evacuate *e)
{
	char *mode = writes_no_more(e);

	if (!mode)
		return 0;
	ctl_error("volume '%s' is in mode %s (activated so, or the kernel log says why): nothing can be moved off tier %u",
		  e->volume->name, mode, e->from);
	free(mode);
	return -EROFS;
}

/* ---- which tiers --------------------------------------------------------------------------- */

static u64 room(const struct ctl_tier *tier)
{
	u64 kept = tier->used_blocks + tier->reserve_blocks;

	if (tier->kind == TERRACE_KIND_SHELVES)
		return tier->free_shelves * TERRACE_CHUNK_BLOCKS;
	return tier->blocks > kept ? tier->blocks - kept : 0;
}

static bool may_take(const struct evacuate *e, u32 tier)
{
	return tier != e->from && !e->tiers[tier].missing && !e->tiers[tier].avoided;
}

/* Of a kind that suits: first what is as fast, then what is as it is, then packed. */
static int find_target(const struct evacuate *e)
{
	static const u32 suits[][3] = {
		[TERRACE_KIND_SLOTS] = { TERRACE_KIND_SLOTS, TERRACE_KIND_HOME, TERRACE_KIND_SHELVES },
		[TERRACE_KIND_SHELVES] = { TERRACE_KIND_SHELVES, TERRACE_KIND_HOME, TERRACE_KIND_SLOTS },
		[TERRACE_KIND_HOME] = { TERRACE_KIND_HOME, TERRACE_KIND_SHELVES, TERRACE_KIND_SLOTS },
	};

	for (u32 k = 0; k < 3; k++)
		for (u32 t = 0; t < e->nr_tiers; t++)
			if (may_take(e, t) && kind_of(e, t) == suits[kind_of(e, e->from)][k] &&
			    room(&e->tiers[t]) >= e->tiers[e->from].used_blocks)
				return (int)t;
	return -ENOSPC;
}

static void print_rooms(const struct evacuate *e)
{
	for (u32 t = 0; t < e->nr_tiers; t++)
		if (may_take(e, t))
			fprintf(stderr, " tier %u (%s, %s) has room for %llu;", t, class_name(e->tiers[t].class),
				kind_name(kind_of(e, t)), (unsigned long long)room(&e->tiers[t]));
	fputs(" --to TIER tries all the same\n", stderr);
}

static int choose_target(struct evacuate *e, const char *word)
{
	int found = word ? tiers_find(e->volume, word, e->tiers) : find_target(e);

	if (word && found < 0)
		return CTL_USAGE;
	if (found < 0) {
		ctl_error("no other tier of volume '%s' has room for the %llu blocks in use on tier %u", e->volume->name,
			  (unsigned long long)e->tiers[e->from].used_blocks, e->from);
		print_rooms(e);
		return CTL_PROBLEM;
	}
	e->to = (u32)found;
	if (may_take(e, e->to))
		return CTL_OK;
	if (e->to == e->from)
		ctl_error("tier %u cannot take its own blocks: --to another one", e->to);
	else
		ctl_error("tier %u cannot take the blocks of tier %u: it is %s", e->to, e->from,
			  e->tiers[e->to].missing ? "missing" : "being evacuated as well");
	return CTL_USAGE;
}

/* ---- orders -------------------------------------------------------------------------------------- */

/* The slots that what stays fast is on; the slowest, for nothing is to be raised to it. */
static u8 slots_above(const struct evacuate *e)
{
	u8 found = 0;

	for (u32 t = 0; t < e->to; t++)
		if (kind_of(e, t) == TERRACE_KIND_SLOTS && may_take(e, t))
			found = (u8)t;
	return found;
}

/*
 * Down, what is fast elsewhere stays, which is to say it is `up`. A clean slot does not when its
 * pack goes home: it would keep the pack.
 */
static void make_down(const struct evacuate *e, const struct terrace_region *all,
		      const struct terrace_region *there, struct terrace_move *move)
{
	bool packs = kind_of(e, e->from) == TERRACE_KIND_SHELVES, home = kind_of(e, e->to) == TERRACE_KIND_HOME;
	__u64 any = 0;

	for (u32 w = 0; w < TERRACE_REGION_WORDS; w++) {
		move->up[w] = all->present[w] & all->fast[w] & ~there->fast[w];
		if (packs && home)
			move->up[w] &= ~all->packed[w];
		any |= move->up[w];
	}
	move->mode = packs ? TERRACE_MOVE_MERGE : TERRACE_MOVE_APPEND;
	move->tier_up = any ? slots_above(e) : 0;
	move->tier_down = (u8)e->to;
	if (!home) {
		move->codec = e->target.codec;
		move->shift = e->target.shift;
	}
}

/* How much region @there has on the tier; false: nothing, and no order. */
static bool make_order(struct evacuate *e, const struct terrace_region *all,
		       const struct terrace_region *there, struct terrace_move *move)
{
	u64 blocks = 0;

	for (u32 w = 0; w < TERRACE_REGION_WORDS; w++)
		blocks += (u64)__builtin_popcountll(there->fast[w] | there->packed[w]);
	e->left += blocks + there->nr_packs + there->copies;
	move->region = there->region;
	move->flags = TERRACE_MOVE_WAIT;	/* the janitor may be at it */
	if (!blocks) {
		/* Packs that nothing lives in, copies of indexes: any order of the region drops them. */
		move->mode = TERRACE_MOVE_DROP;
		memset(move->up, 0xff, sizeof(move->up));
		return there->nr_packs || there->copies;
	}
	if (kind_of(e, e->to) != TERRACE_KIND_SLOTS) {
		make_down(e, all, there, move);
		return true;
	}
	for (u32 w = 0; w < TERRACE_REGION_WORDS; w++)
		move->up[w] = there->fast[w] | there->packed[w];
	move->mode = TERRACE_MOVE_RAISE;
	move->tier_up = (u8)e->to;
	return true;
}

static int next_order(void *ctx, struct terrace_move *move)
{
	struct terrace_region all, there;
	struct evacuate *e = ctx;
	int r;

	while (e->next < e->orders.hello.regions && !interrupt_seen()) {
		r = control_region_on(e->orders.fd, e->next, e->from, &there);
		if (!r)
			r = control_regions(e->orders.fd, e->next, 1, &all);
		if (r)
			return r;
		e->next++;
		term_progress("evacuating", e->next < e->orders.hello.regions ? e->next : e->next - 1,
			      e->orders.hello.regions);
		if (there.status || all.status) {
			ctl_error("region %llu: its map cannot be read: %s", (unsigned long long)there.region,
				  strerror(-(int)(there.status ? there.status : all.status)));
			e->tally.failed++;
			continue;
		}
		if (make_order(e, &all, &there, move))
			return 1;
	}
	return 0;
}

static void order_ended(void *ctx, const struct terrace_result *result)
{
	tally_add(&((struct evacuate *)ctx)->tally, result);
}

/* Rounds, until one finds nothing. */
static int move_all(struct evacuate *e)
{
	u64 least = ~0ull;
	u32 vain = 0;
	int r = 0;

	do {
		e->next = e->left = 0;
		e->tally.unreadable = 0;	/* what the round before left behind is tried again */
		r = orders_run(&e->orders, next_order, order_ended, e);
		vain = e->left < least ? 0 : vain + 1;
		least = e->left < least ? e->left : least;
	} while (!r && e->left && !e->tally.failed && !e->tally.no_room && vain < ROUNDS);
	term_progress("evacuating", e->orders.hello.regions, e->orders.hello.regions);
	if (!r && e->left && vain == ROUNDS) {
		ctl_error("%llu blocks stay on tier %u: tier %u cannot take them, or the volume is written to faster than they go; the same call goes on",
			  (unsigned long long)e->left, e->from, e->to);
		r = -EAGAIN;
	}
	return r;
}

/* What has left is free once that is durable, and who read it there has ended. */
static u64 still_used(struct evacuate *e)
{
	u64 used = ~0ull;
	char *stuck = NULL;

	for (u32 tenth = 0; tenth < SETTLE_TENTHS && used && !interrupt_seen() && !stuck; tenth++) {
		if (tenth)
			usleep(100000);
		tiers_read(e->volume, e->tiers);
		used = e->tiers[e->from].used_blocks;
		stuck = writes_no_more(e);
	}
	free(stuck);
	return used;
}

static bool stopped(const struct evacuate *e, int r)
{
	return r || e->tally.failed || e->tally.no_room;
}

/* Not before nothing is in use: what was under way when new data were told to go elsewhere may have come after a round. */
static int move_until_unused(struct evacuate *e)
{
	u64 used = ~0ull;
	int r = 0;

	for (u32 k = 0; k < ROUNDS && used; k++) {
		r = move_all(e);
		if (stopped(e, r))
			return r ? r : refuse_read_only(e);
		used = still_used(e);
		if (used && interrupt_seen())
			return -EINTR;
		if (used && refuse_read_only(e))
			return -EROFS;
	}
	if (used)
		ctl_error("%llu blocks of tier %u are still in use; the same call goes on", (unsigned long long)used, e->from);
	return used ? -EAGAIN : 0;
}

static int move_off(struct evacuate *e)
{
	int r;

	interrupt_watch();	/* before there is something to be taken back */
	r = avoid(e, true);
	if (r)
		return r;
	r = move_until_unused(e);
	if (stopped(e, r))
		avoid(e, false);
	return r;
}

static void say_empty(struct evacuate *e, struct json_object *o)
{
	if (o) {
		json_object_object_add(o, "to", json_object_new_int((int)e->to));
		json_object_object_add(o, "used_blocks", json_object_new_uint64(0));
		return;
	}
	printf("New data go past tier %u until terracectl evacuate --undo, or until the volume is\n"
	       "deactivated; terracectl set --keep %s avoid_tiers %u: after that as well.\n",
	       e->from, e->volume->name, avoided(e));
}

static int evacuate(struct evacuate *e, const char *codec, bool json)
{
	struct json_object *o = json ? json_object_new_object() : NULL;
	char *what = ctl_text("tier %u, to tier %u", e->from, e->to);
	int r = orders_open(&e->orders, e->volume);

	if (!r) {
		move_target_init(&e->target, e->to, e->tiers, e->nr_tiers, &e->orders.hello);
		tally_init(&e->tally);
		r = codec ? move_set_codec(&e->target, &e->orders.hello, codec) : 0;
		if (!r)
			r = move_off(e);
		r = tally_report(&e->tally, r, what, o);
		orders_close(&e->orders);
	}
	if (!r)
		say_empty(e, o);
	if (o)
		ctl_json_print(o);
	free(what);
	return r ? CTL_PROBLEM : CTL_OK;
}

/* ---- the command ----------------------------------------------------------------------------------- */

static const char help_text[] =
"usage: terracectl evacuate [OPTION]... NAME TIER\n"
"       terracectl evacuate --undo NAME TIER\n"
"\n"
"Moves everything off a tier of a volume in use, while it is in use, and has new\n"
"data go past it until --undo or until the volume is deactivated; only when all\n"
"others are full do some go there. TIER is its number or its class. The blocks go\n"
"to another tier of the same kind that has room for them, else to another one: to\n"
"shelves in packs, to slots and homes as they are. Pins do not hold them, and stay.\n"
"terraced moves nothing meanwhile. Ctrl-C stops at a sound point, and the volume\n"
"works as before; the same call goes on. What stays are labels and, on tier 0, the\n"
"volume's own metadata.\n"
"\n"
"  --to TIER     onto which tier; default: the best one that has room\n"
"  --codec WORD  of packs: none, lz4 (default), zstd\n"
"  --undo        let new data go there again\n"
"  --json        as JSON\n"
"  --help        this text\n"
"\n"
"Exit status: 0 empty, 1 refused, failed or interrupted, 2 wrong usage.\n"
"\n"
"Examples:\n"
"  terracectl evacuate db optane\n"
"  terracectl evacuate --to hdd db 0\n"
"  terracectl evacuate --undo db 0\n";

static int run_on(const char *name, const char *from, const char *to, const char *codec, bool back, bool json)
{
	struct evacuate e = { 0 };
	struct dm_volume volume;
	int r, tier;

	/* the tunable ends with the table */
	if (dm_named(&volume, name) || lock_active(&volume))
		return CTL_PROBLEM;
	e.volume = &volume;
	tier = tiers_find(e.volume, from, e.tiers);
	if (tier < 0)
		return CTL_USAGE;
	e.nr_tiers = tiers_read(e.volume, e.tiers);
	e.from = (u32)tier;
	if (back)
		return avoid(&e, false) ? CTL_PROBLEM : CTL_OK;
	if (e.tiers[e.from].missing) {
		ctl_error("tier %u is missing: what is only there cannot be moved; terracectl salvage reads out the rest",
			  e.from);
		return CTL_PROBLEM;
	}
	if (refuse_read_only(&e))
		return CTL_PROBLEM;
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
