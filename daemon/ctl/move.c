// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl move: these blocks to that tier, now. The policy may move them
 * back later: that is what pins are for.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "move.h"
#include "names.h"
#include "runs.h"
#include "tally.h"
#include "term.h"

#define CLUSTER_SHIFT	2	/* four blocks: lukewarm */

/* ---- the order ---------------------------------------------------------------------------- */

void move_target_init(struct move_target *target, u32 tier, const struct ctl_tier *tiers, u32 nr,
		      const struct terrace_hello *hello)
{
	bool lz4 = hello->features & TERRACE_FEATURE_LZ4;

	*target = (struct move_target){
		.tier = tier, .kind = tiers[tier].kind,
		.codec = lz4 ? TERRACE_CODEC_LZ4 : TERRACE_CODEC_NONE, .shift = lz4 ? CLUSTER_SHIFT : 0,
	};
	for (u32 t = 0; t < nr; t++) {
		if (tiers[t].kind == TERRACE_KIND_SLOTS)
			target->slowest_slots = t;
		target->merge |= t != tier && tiers[t].kind == TERRACE_KIND_SHELVES;
	}
}

int move_set_codec(struct move_target *target, const struct terrace_hello *hello, const char *word)
{
	static const char *const words[] = { "none", "lz4", "zstd" };
	static const u64 feature[] = { 0, TERRACE_FEATURE_LZ4, TERRACE_FEATURE_ZSTD };

	for (u8 k = 0; k < 3; k++) {
		if (strcmp(word, words[k]))
			continue;
		if ((hello->features & feature[k]) != feature[k]) {
			ctl_error("the module was built without %s", word);
			return -EINVAL;
		}
		target->codec = k;
		target->shift = k ? CLUSTER_SHIFT : 0;
		return 0;
	}
	ctl_error("--codec %s: none, lz4 or zstd", word);
	return -EINVAL;
}

/* "1", "4", "16"; what is not compressed needs none. */
static int set_cluster(struct move_target *target, const char *word)
{
	static const char *const words[] = { "1", "4", "16" };

	for (u8 k = 0; k < 3; k++) {
		if (strcmp(word, words[k]))
			continue;
		target->shift = target->codec == TERRACE_CODEC_NONE ? 0 : (u8)(2 * k);
		return 0;
	}
	ctl_error("--cluster %s: 1, 4 or 16 blocks", word);
	return -EINVAL;
}

static bool make_up(const struct move_target *target, const struct terrace_region *r,
		    const __u64 *want, struct terrace_move *move)
{
	bool exact = target->tier == target->slowest_slots, any = false;

	for (u32 w = 0; w < TERRACE_REGION_WORDS; w++) {
		__u64 fast = r->present[w] & r->fast[w];

		move->up[w] = want[w] & (r->present[w] | r->packed[w]);
		any |= move->up[w] & (exact ? ~fast : ~0ull);
	}
	move->mode = TERRACE_MOVE_RAISE;
	move->tier_up = (__u8)target->tier;
	return any;
}

/* All that is fast and not wanted stays: it is `up`, where it is. */
static bool make_down(const struct move_target *target, const struct terrace_region *r,
		      const __u64 *want, struct terrace_move *move)
{
	bool any = false;

	for (u32 w = 0; w < TERRACE_REGION_WORDS; w++) {
		__u64 fast = r->present[w] & r->fast[w];

		move->up[w] = fast & ~want[w];
		any |= want[w] & (target->merge ? r->present[w] | r->packed[w] : fast);
	}
	move->mode = target->merge && r->nr_packs ? TERRACE_MOVE_MERGE : TERRACE_MOVE_APPEND;
	move->tier_up = (__u8)target->slowest_slots;
	move->tier_down = (__u8)target->tier;
	if (target->kind == TERRACE_KIND_SHELVES) {
		move->codec = target->codec;
		move->shift = target->shift;
	}
	return any;
}

bool move_make(const struct move_target *target, const struct terrace_region *region,
	       const __u64 *want, struct terrace_move *move)
{
	move->region = region->region;
	return target->kind == TERRACE_KIND_SLOTS ? make_up(target, region, want, move) :
	       make_down(target, region, want, move);
}

/* ---- the command ---------------------------------------------------------------------------- */

struct moving {
	struct orders orders;
	struct move_target target;
	u64 warm, nr_warm;	/* blocks of the volume that come first in their clusters */
	struct runs_walk walk;
	struct tally tally;
	u64 blocks, seen;
};

static void mark_warm(const struct moving *m, struct terrace_move *move)
{
	u64 first = move->region * RUNS_REGION_BLOCKS;

	if (move->mode == TERRACE_MOVE_RAISE || m->target.kind != TERRACE_KIND_SHELVES)
		return;
	for (u32 i = 0; i < RUNS_REGION_BLOCKS; i++)
		if (first + i >= m->warm && first + i - m->warm < m->nr_warm)
			move->warm[i / 64] |= 1ull << (i % 64);
}

static int next_order(void *ctx, struct terrace_move *move)
{
	__u64 want[TERRACE_REGION_WORDS];
	struct terrace_region region;
	struct moving *m = ctx;
	u64 number;

	while (runs_next_region(&m->walk, &number, want)) {
		int r = control_regions(m->orders.fd, number, 1, &region);

		if (r)
			return r;
		for (u32 w = 0; w < TERRACE_REGION_WORDS; w++)
			m->seen += (u64)__builtin_popcountll(want[w]);
		term_progress("moving", m->seen < m->blocks ? m->seen : m->blocks - 1, m->blocks);
		if (region.status) {
			ctl_error("region %llu: its map cannot be read: %s", (unsigned long long)number,
				  strerror(-(int)region.status));
			m->tally.failed++;
			continue;
		}
		if (!move_make(&m->target, &region, want, move))
			continue;
		mark_warm(m, move);
		return 1;
	}
	return 0;
}

static void order_ended(void *ctx, const struct terrace_result *result)
{
	tally_add(&((struct moving *)ctx)->tally, result);
}

/* The words of the command line. */
struct words {
	const char *to, *codec, *cluster, *warm;
	bool json;
};

static int move_runs(struct runs *runs, const char *what, const struct words *w)
{
	struct ctl_tier tiers[TERRACE_MAX_TIERS];
	struct moving m = { .walk = { .runs = runs }, .blocks = runs_blocks(runs) };
	struct json_object *o = w->json ? json_object_new_object() : NULL;
	int tier = tiers_find(&runs->volume, w->to, tiers), r;

	if (tier >= 0 && tiers[tier].avoided)
		ctl_error("tier %d is to be left, and takes nothing: terracectl evacuate --undo %s %d ends that", tier,
			  runs->volume.name, tier);
	if (tier < 0 || tiers[tier].avoided || orders_open(&m.orders, &runs->volume)) {
		json_object_put(o);
		return tier < 0 ? CTL_USAGE : CTL_PROBLEM;
	}
	move_target_init(&m.target, (u32)tier, tiers, m.orders.hello.nr_tiers, &m.orders.hello);
	tally_init(&m.tally);
	if (w->warm && !runs_parse_range(w->warm, &m.warm, &m.nr_warm))
		m.nr_warm -= m.warm - 1;
	if ((w->codec && move_set_codec(&m.target, &m.orders.hello, w->codec)) ||
	    (w->cluster && set_cluster(&m.target, w->cluster))) {
		r = CTL_USAGE;
		json_object_put(o);
	} else {
		r = orders_run(&m.orders, next_order, order_ended, &m);
		term_progress("moving", m.blocks, m.blocks);
		r = tally_report(&m.tally, r, what, o);
		if (o)
			ctl_json_print(o);
	}
	orders_close(&m.orders);
	return r;
}

static const char move_help[] =
"usage: terracectl move --to TIER [OPTION]... FILE|FOLDER\n"
"       terracectl move --to TIER [OPTION]... NAME [BLOCK[-LAST]]\n"
"\n"
"Moves the blocks of a file, of all files in a folder, or of a volume, to a\n"
"tier, now. TIER is its number or its class. Up to a tier of slots packed blocks\n"
"get fast copies; down to one of shelves they are packed. What is there already\n"
"stays. The data never change. The policy (or the kernel's janitor) may move the\n"
"blocks again: terracectl pin keeps them. Ctrl-C stops at a sound point; the\n"
"same call goes on.\n"
"\n"
"  --to TIER         where to\n"
"  --codec WORD      of packs: none, lz4 (default), zstd\n"
"  --cluster NUMBER  of blocks that are packed together: 1, 4 (default) or 16\n"
"  --warm BLOCK[-LAST]\n"
"                    of the volume: they come first in their clusters, where they\n"
"                    are read and decoded without the others\n"
"  --json            as JSON\n"
"  --help            this text\n"
"\n"
"Exit status: 0 done, 1 something could not be moved, 2 wrong usage.\n"
"\n"
"Examples:\n"
"  terracectl move --to optane /var/lib/mysql/ibdata1\n"
"  terracectl move --to hdd --codec zstd /srv/archive/\n"
"  terracectl move --to 1 db 0-1048575\n";

static int move_run(const struct ctl_command *cmd, int argc, char **argv)
{
	struct words w = { 0 };
	const struct args_option options[] = {
		{ .name = "to", .text = &w.to }, { .name = "codec", .text = &w.codec },
		{ .name = "cluster", .text = &w.cluster }, { .name = "warm", .text = &w.warm },
		{ .name = "json", .flag = &w.json }, { .name = NULL },
	};
	u64 first, last;
	struct runs runs;
	int r = args_parse(cmd, argc, argv, options);

	if (r != ARGS_GO_ON)
		return r;
	if (!w.to)
		return ctl_usage(cmd, "where to? --to TIER");
	if (w.warm && runs_parse_range(w.warm, &first, &last))
		return ctl_usage(cmd, "--warm '%s' is no range of blocks: like 5 or 5-9", w.warm);
	r = runs_check_words(cmd, argc - optind, argv + optind);
	if (r)
		return r;
	r = runs_of(&runs, argv[optind], argv[optind + 1]) ? CTL_PROBLEM : CTL_OK;
	runs_sort(&runs);
	if (!r)
		r = move_runs(&runs, argv[optind], &w);
	runs_free(&runs);
	return r;
}

const struct ctl_command ctl_move_command = {
	.name = "move",
	.summary = "take blocks to a tier now",
	.help = move_help,
	.run = move_run,
};
