// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Replays a load against the policies on a simulated volume and prints what came of it.
 *
 * usage: replay [KEY=VALUE]... [< TRACE]
 *
 *	load=zipf|hotspot|uniform|shift|grow|shrink|trace	(trace: stdin, see trace.c)
 *	keys=hashed|clustered	blocks=N	fast=SHARE	hot=SHARE	seed=N
 *	stages=N	accesses=N (per stage)	writes=SHARE	windows=N (printed per stage)
 *	heat=ralt|clock|lru	rule=precise|approx|random|oldest|hotrap	knows_all=0|1 (instead)
 *	tracked=SHARE	cache=BLOCKS	first_sight=0|1	fill=SHARE	flush=0|1	appends=0|1
 *	ralt.NAME=VALUE		any tunable of RALT
 *	dir=DIRECTORY		for RALT's files
 *
 * One line per window: accesses, hit rate of the window, fast tier used, hot-set limit.
 * One line per stage and one at the end, KEY=VALUE pairs, for scripts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy.h"
#include "workload.h"

struct options {
	char load[16];
	bool hashed;
	uint64_t blocks;
	double fast;
	double hot;
	uint64_t seed;
	uint64_t stages;
	uint64_t accesses;
	double writes;
	uint64_t windows;
	struct policy_config policy;
};

struct replay {
	struct options o;
	struct workload w;
	struct volume v;
	struct policy p;
	struct prng prng;
};

static int find(const char *(*name)(int), int count, const char *value)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(name(i), value))
			return i;
	return -1;
}

static const char *rule_name(int i)
{
	return choose_rule_name((enum choose_rule)i);
}

static const char *heat_name(int i)
{
	return heat_kind_name((enum heat_kind)i);
}

static bool set_policy(struct policy_config *c, const char *key, const char *value)
{
	int n;

	if (!strcmp(key, "heat") || !strcmp(key, "rule")) {
		n = *key == 'h' ? find(heat_name, HEAT_KINDS, value) :
				  find(rule_name, CHOOSE_RULES, value);
		if (n < 0)
			return false;
		if (*key == 'h')
			c->heat = (enum heat_kind)n;
		else
			c->rule = (enum choose_rule)n;
		return true;
	}
	if (!strncmp(key, "ralt.", 5))
		return !tunable_set(&ralt_tunable_table, &c->ralt, key + 5, atof(value));
	if (!strcmp(key, "tracked"))
		c->tracked_share = atof(value);
	else if (!strcmp(key, "cache"))
		c->cache_blocks = (uint32_t)atol(value);
	else if (!strcmp(key, "first_sight"))
		c->first_sight = atoi(value);
	else if (!strcmp(key, "fill"))
		c->fill = atof(value);
	else if (!strcmp(key, "flush"))
		c->flush = atoi(value);
	else if (!strcmp(key, "knows_all"))
		c->knows_all = atoi(value);
	else if (!strcmp(key, "appends"))
		c->appends = atoi(value);
	else if (!strcmp(key, "dir"))
		c->ralt_directory = value;
	else
		return false;
	return true;
}

static bool set(struct options *o, const char *key, const char *value)
{
	if (!strcmp(key, "load"))
		strncpy(o->load, value, sizeof(o->load) - 1);
	else if (!strcmp(key, "keys"))
		o->hashed = !strcmp(value, "hashed");
	else if (!strcmp(key, "blocks"))
		o->blocks = strtoull(value, NULL, 0);
	else if (!strcmp(key, "fast"))
		o->fast = atof(value);
	else if (!strcmp(key, "hot"))
		o->hot = atof(value);
	else if (!strcmp(key, "seed"))
		o->seed = strtoull(value, NULL, 0);
	else if (!strcmp(key, "stages"))
		o->stages = strtoull(value, NULL, 0);
	else if (!strcmp(key, "accesses"))
		o->accesses = strtoull(value, NULL, 0);
	else if (!strcmp(key, "writes"))
		o->writes = atof(value);
	else if (!strcmp(key, "windows"))
		o->windows = strtoull(value, NULL, 0);
	else
		return set_policy(&o->policy, key, value);
	return true;
}

static bool parse(struct options *o, int argc, char **argv)
{
	*o = (struct options){
		.load = "zipf", .hashed = true, .blocks = 204800, .fast = 0.1, .hot = 0.05,
		.seed = 1, .stages = 1, .accesses = 2000000, .windows = 10,
	};
	policy_config_defaults(&o->policy);
	for (int i = 1; i < argc; i++) {
		char *eq = strchr(argv[i], '=');

		if (eq)
			*eq = 0;
		if (!eq || !set(o, argv[i], eq + 1)) {
			fprintf(stderr, "replay: %s: unknown or bad value\n", argv[i]);
			return false;
		}
	}
	return true;
}

static uint64_t next_block(struct replay *r)
{
	uint64_t block;

	if (strcmp(r->o.load, "trace"))
		return workload_next(&r->w);
	if (fread(&block, sizeof(block), 1, stdin) != 1) {
		fprintf(stderr, "replay: the trace ended early\n");
		exit(1);
	}
	return block;
}

static void print_window(struct replay *r, uint64_t stage, uint64_t reads, uint64_t hits)
{
	struct ralt_stats st = { 0 };

	if (r->p.ralt)
		ralt_stats(r->p.ralt, &st);
	printf("window stage=%llu ops=%llu hit=%.4f fast_used=%.3f hot_limit=%llu hot=%.0f tracked=%.0f\n",
	       (unsigned long long)stage, (unsigned long long)r->v.operations,
	       reads ? (double)hits / (double)reads : 0,
	       (double)r->v.fast_used / (double)r->v.fast_total,
	       (unsigned long long)st.hot_limit, st.hot, st.tracked);
}

static void run_stage(struct replay *r, uint64_t stage)
{
	uint64_t per_window = r->o.accesses / r->o.windows;

	workload_stage(&r->w, stage);
	for (uint64_t w = 0; w < r->o.windows; w++) {
		uint64_t reads = r->v.reads, hits = r->v.fast_hits;

		for (uint64_t i = 0; i < per_window; i++)
			policy_access(&r->p, next_block(r) % r->v.blocks,
				      prng_unit(&r->prng) < r->o.writes);
		print_window(r, stage, r->v.reads - reads, r->v.fast_hits - hits);
	}
}

static void print_total(const struct replay *r)
{
	const struct policy *p = &r->p;
	const struct volume *v = &r->v;

	printf("total hit=%.4f promoted=%.4f demoted=%.4f dropped=%.4f slow_written=%.4f slow_read=%.4f overflowed=%.4f",
	       v->reads ? (double)v->fast_hits / (double)v->reads : 0,
	       (double)v->promoted / (double)v->blocks, (double)v->demoted / (double)v->blocks,
	       (double)v->dropped / (double)v->blocks, v->slow_written / (double)v->blocks,
	       v->slow_read / (double)v->blocks, (double)v->overflowed / (double)v->blocks);
	printf(" first_sight=%llu flush=%llu compaction=%llu kept=%llu choices=%llu choice_ns=%.0f ghost_hit=%.4f epochs=%llu\n",
	       (unsigned long long)p->first_sight_promotions,
	       (unsigned long long)p->flush_promotions,
	       (unsigned long long)p->compaction_promotions, (unsigned long long)p->kept,
	       (unsigned long long)p->choices, p->choices ? p->choice_ns / (double)p->choices : 0,
	       shards_hit_rate(&p->shards, v->fast_total),
	       (unsigned long long)p->epoch.epochs_run);
}

int main(int argc, char **argv)
{
	static struct replay r;
	const char *kind;

	if (!parse(&r.o, argc, argv))
		return 2;
	kind = strcmp(r.o.load, "trace") ? r.o.load : "uniform";
	r.prng.state = r.o.seed + 99;
	r.o.policy.seed = r.o.seed + 7;
	if (!volume_init(&r.v, r.o.blocks, (uint64_t)((double)r.o.blocks * r.o.fast), 0.5) ||
	    !workload_init(&r.w, kind, r.v.blocks, r.o.hashed, r.o.hot, r.o.seed) ||
	    !policy_init(&r.p, &r.o.policy, &r.v)) {
		fprintf(stderr, "replay: cannot set up (RALT needs an existing dir=)\n");
		return 1;
	}
	for (uint64_t s = 0; s < r.o.stages; s++)
		run_stage(&r, s);
	print_total(&r);
	policy_exit(&r.p);
	workload_exit(&r.w);
	volume_exit(&r.v);
	return 0;
}
