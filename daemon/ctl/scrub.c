// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl scrub: reads all packs of a volume in use and verifies their
 * checksums, reads what is loose on shelves or at home, verifies the owner tables of
 * shelves; changes nothing.
 *
 * The kernel has a limit of its own, the tunable scrub_mb.
 * With --limit one order is under way at a time, and each waits until what those before it
 * have read has had its time: so it is never faster than that, by more than a region.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "args.h"
#include "interrupt.h"
#include "names.h"
#include "tally.h"
#include "term.h"
#include "terrace_format.h"
#include "tiers.h"

#define AT_ONCE	64	/* regions asked for */
#define REGION_BLOCKS (TERRACE_REGION_WORDS * 64)

struct scrub {
	struct orders orders;
	struct tally tally;
	struct terrace_region region[AT_ONCE];
	u64 next, have;		/* region[] begins at next - have … */
	u32 at;
	u64 packs, blocks;
	u64 damaged;		/* regions that lose nothing by it yet */
	struct ctl_tier tiers[TERRACE_MAX_TIERS];
	u32 nr_tiers, tier;	/* whose shelves come next … */
	u64 shelf;
	u64 first_table;	/* cookie of the first of these orders, 0: none yet */
	u64 tables, bad_tables;
	u64 limit;		/* bytes per second, 0: none */
	u64 began, free_at;	/* the last order; when the next may be given: nanoseconds */
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

static u64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec * 1000000000 + (u64)now.tv_nsec;
}

/* Until what has been read so far has had its time. */
static void pace(struct scrub *s)
{
	const struct timespec step = { .tv_nsec = 50000000 };
	u64 now = now_ns();

	while (s->limit && now < s->free_at && !interrupt_seen()) {
		struct timespec rest = { .tv_nsec = (long)(s->free_at - now) };

		nanosleep(s->free_at - now < (u64)step.tv_nsec ? &rest : &step, NULL);
		now = now_ns();
	}
	s->began = now;
}

static void spent(struct scrub *s, const struct terrace_result *result)
{
	u64 bytes = 0;

	for (u32 t = 0; t < TERRACE_MAX_RESULT_TIERS; t++)
		bytes += result->read_bytes[t];
	if (s->limit)
		s->free_at = s->began + bytes * 1000 / (s->limit / 1000000);
}

/* How many tables a tier may have, that an order can name. */
static u64 nr_tables(const struct scrub *s, u32 tier)
{
	const struct ctl_tier *t = &s->tiers[tier];

	return tier && !t->missing && t->kind == TERRACE_KIND_SHELVES ? t->blocks / TERRACE_CHUNK_BLOCKS : 0;
}

/* Tables of shelves, when all regions have been. */
static int next_table(struct scrub *s, struct terrace_move *move)
{
	if (!s->first_table)
		s->first_table = s->orders.cookie + 1;	/* which it will get */
	for (; s->tier < s->nr_tiers; s->tier++, s->shelf = 0) {
		if (s->shelf == nr_tables(s, s->tier))
			continue;
		pace(s);
		*move = (struct terrace_move){
			.region = s->shelf++, .tier_down = s->tier, .mode = TERRACE_MOVE_SCRUB,
		};
		return 1;
	}
	return 0;
}

static int next_order(void *ctx, struct terrace_move *move)
{
	struct scrub *s = ctx;

	for (;;) {
		if (s->at == s->have) {
			int r = s->next < s->orders.hello.regions ? load(s) : 0;

			if (r)
				return r;
			if (s->at == s->have)
				return next_table(s, move);
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
			pace(s);
			*move = (struct terrace_move){
				.region = region->region, .mode = TERRACE_MOVE_SCRUB,
				.flags = TERRACE_MOVE_WAIT,	/* the janitor may be at it */
			};
			s->at++;
			return 1;
		}
	}
}

static void table_ended(struct scrub *s, const struct terrace_result *result)
{
	u64 nth = result->cookie - s->first_table;
	/* The table is the end of the shelf; who has none has owner blocks. */
	bool in_table = !result->unreadable ||
			result->bad_block % TERRACE_CHUNK_BLOCKS >= TERRACE_CHUNK_BLOCKS - TERRACE_TABLE_BLOCKS;
	u32 tier = 0;

	while (tier < s->nr_tiers && nth >= nr_tables(s, tier))
		nth -= nr_tables(s, tier++);
	for (u32 t = 0; t < TERRACE_MAX_TIERS; t++)
		s->tally.read_bytes += result->read_bytes[t];
	s->tables += !result->error;
	if (!result->error || result->error == -ENOENT)
		return;
	s->bad_tables++;
	ctl_error("shelf %llu of tier %u: its owner %s %s", (unsigned long long)result->region, tier,
		  in_table ? "table" : "blocks",
		  !result->unreadable ? orders_strerror(result->error) : in_table ? "is damaged" : "are damaged");
}

static void order_ended(void *ctx, const struct terrace_result *result)
{
	struct scrub *s = ctx;
	struct json_object *o;

	spent(s, result);
	if (s->first_table && result->cookie >= s->first_table) {
		table_ended(s, result);
		return;
	}
	tally_add(&s->tally, result);
	if (result->error == -EIO && result->status == TERRACE_RESULT_FAILED)
		ctl_error("region %llu: so many reads failed that the rest of it was not tried",
			  (unsigned long long)result->region);
	if (result->error != -EIO)
		return;
	s->damaged += !result->unreadable;
	if (!s->bad && !result->unreadable) {
		printf("region %llu: a pack is damaged, but all its blocks can still be read: the kernel log says where\n",
		       (unsigned long long)result->region);
		return;
	}
	if (!s->bad) {
		printf("region %llu: %u blocks cannot be read; the first is block %llu\n",
		       (unsigned long long)result->region, result->unreadable,
		       (unsigned long long)result->bad_block);
		return;
	}
	o = json_object_new_object();
	json_object_object_add(o, "region", json_object_new_uint64(result->region));
	json_object_object_add(o, "unreadable", json_object_new_uint64(result->unreadable));
	if (result->unreadable)
		json_object_object_add(o, "first_block", json_object_new_uint64(result->bad_block));
	json_object_array_add(s->bad, o);
}

static int report(struct scrub *s, int err)
{
	struct json_object *o;

	if (err == -EINTR)
		ctl_error("interrupted: not all has been read");
	if (s->tally.error && s->tally.error != -EIO)	/* of those each has been told */
		ctl_error("region %llu has not been read: %s", (unsigned long long)s->tally.bad_region,
			  orders_strerror(s->tally.error));
	if (s->bad) {
		o = json_object_new_object();
		json_object_object_add(o, "packs", json_object_new_uint64(s->packs));
		json_object_object_add(o, "packed_blocks", json_object_new_uint64(s->blocks));
		json_object_object_add(o, "unreadable_blocks", json_object_new_uint64(s->tally.unreadable));
		json_object_object_add(o, "read_bytes", json_object_new_uint64(s->tally.read_bytes));
		json_object_object_add(o, "tables", json_object_new_uint64(s->tables));
		json_object_object_add(o, "bad_tables", json_object_new_uint64(s->bad_tables));
		json_object_object_add(o, "complete", json_object_new_boolean(!err));
		json_object_object_add(o, "bad", s->bad);
		ctl_json_print(o);
	} else {
		printf("%llu packs with %llu live blocks read, %llu blocks cannot be read; %llu tables of shelves, %llu bad\n",
		       (unsigned long long)s->packs, (unsigned long long)s->blocks,
		       (unsigned long long)s->tally.unreadable, (unsigned long long)(s->tables + s->bad_tables),
		       (unsigned long long)s->bad_tables);
	}
	return err || s->tally.failed || s->tally.unreadable || s->damaged || s->bad_tables ? CTL_PROBLEM : CTL_OK;
}

static int scrub_volume(const struct dm_volume *v, u64 limit, bool json)
{
	struct scrub *s = ctl_alloc(sizeof(*s));
	int r = orders_open(&s->orders, v);

	if (r) {
		free(s);
		return CTL_PROBLEM;
	}
	tally_init(&s->tally);
	s->nr_tiers = tiers_read(v, s->tiers);
	s->limit = limit;
	if (limit)
		s->orders.most = 1;
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
"usage: terracectl scrub [--limit MB] [--json] NAME\n"
"\n"
"Reads every pack of a volume in use, decompresses it and verifies its sums, and\n"
"the owner tables of shelves; changes nothing. Blocks that are not packed have no\n"
"checksum: terracectl check judges the metadata, reading the device (dd) finds\n"
"media errors. Ctrl-C stops.\n"
"\n"
"  --limit MB  read no more than MB megabytes per second; the volume's tunable\n"
"              scrub_mb holds as well\n"
"  --json      as JSON\n"
"  --help      this text\n"
"\n"
"Exit status: 0 all packs are good, 1 some are not, or stopped, 2 wrong usage.\n"
"\n"
"Example:\n"
"  terracectl scrub db\n";

static int scrub_run(const struct ctl_command *cmd, int argc, char **argv)
{
	const char *limit = NULL;
	bool json = false;
	const struct args_option options[] = {
		{ .name = "limit", .text = &limit },
		{ .name = "json", .flag = &json },
		{ .name = NULL },
	};
	struct dm_volume v;
	u64 mb = 0;
	char *end;
	int r = args_one_volume(cmd, argc, argv, options);

	if (r != ARGS_GO_ON)
		return r;
	if (limit) {
		mb = strtoull(limit, &end, 10);
		if (*end || !mb || mb > 1000000)
			return ctl_usage(cmd, "--limit %s: megabytes per second, from 1 to 1000000", limit);
	}
	return dm_named(&v, argv[optind]) ? CTL_PROBLEM : scrub_volume(&v, mb * 1000000, json);
}

const struct ctl_command ctl_scrub_command = {
	.name = "scrub",
	.summary = "read and verify all packs of a volume in use",
	.help = scrub_help,
	.run = scrub_run,
};
