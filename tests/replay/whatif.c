// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the daemon's loop foretells of other settings, beside what comes of them.
 *
 * One run with the settings as they are by default, which foretells; then one with each of the others, the same
 * accesses on the same simulated volume, whose hits in the last fifth are what was to be foretold.
 *
 * usage: whatif LOAD hashed|clustered [WRITES [ACCESSES [SAMPLES [HEAT [SEED]]]]]	prints a line "SETTING foretold=RATE real=RATE" for each
 *
 *	LOAD	zipf hotspot uniform (workload.h)	WRITES	share of the accesses
 *	HEAT	in use where is foretold: ralt clock lru		SEED	another puts the load's blocks elsewhere, so the sample has others of them
 */
#include <stdlib.h>

#include "../unit/sim_lib.h"
#include "workload.h"

#define BLOCKS	(200 * 1024ull)
#define FAST	(20 * 1024ull)

struct options {
	const char *load;
	bool hashed;
	double writes;
	uint64_t accesses, seed;
	uint32_t samples;
	enum heat_kind heat;
};

/* Its hit rate in the last fifth; what it foretold, if that is asked for. */
static double run(const struct options *o, enum heat_kind heat, double pinning, uint64_t fast, double *foretold)
{
	struct sim *s = sim_create(BLOCKS, fast);
	uint64_t reads = 0, hits = 0;
	struct workload w;
	double rate;

	s->c.heat = heat;
	s->c.tuning.mapper.pinning_threshold = pinning;
	s->c.tuning.climb.min = s->c.tuning.climb.max;		/* not by itself */
	if (o->samples)
		s->c.tuning.miniature.samples = o->samples;
	if (!workload_init(&w, o->load, BLOCKS, o->hashed, 0.05, 1))
		exit(2);
	sim_open(s);
	for (uint64_t i = 0; i < o->accesses; i++) {
		if (i == o->accesses / 5 * 4) {
			reads = s->v.reads;
			hits = s->v.fast_hits;
		}
		sim_access(s, (workload_next(&w) + o->seed * 7919) % BLOCKS, prng_unit(&s->prng) < o->writes);
		if (i % 64 == 63 && sim_tick(s))
			exit(1);
	}
	for (uint32_t n = 0; foretold && n < WHATIF_SETTINGS; n++)
		foretold[n] = whatif_hit_rate(&s->e.whatif, n);
	rate = (double)(s->v.fast_hits - hits) / (double)(s->v.reads - reads);
	if (getenv("WHATIF_LOG"))
		fputs(s->log, stderr);
	sim_remove(s);
	workload_exit(&w);
	return rate;
}

static bool parse(struct options *o, int argc, char **argv)
{
	if (argc < 3)
		return false;
	*o = (struct options){ .load = argv[1], .hashed = !strcmp(argv[2], "hashed"), .accesses = 2000000 };
	if (argc > 3)
		o->writes = atof(argv[3]);
	if (argc > 4)
		o->accesses = strtoull(argv[4], NULL, 0);
	if (argc > 5)
		o->samples = (uint32_t)atoi(argv[5]);
	while (argc > 6 && o->heat < HEAT_KINDS && strcmp(heat_kind_name(o->heat), argv[6]))
		o->heat++;
	if (argc > 7)
		o->seed = strtoull(argv[7], NULL, 0);
	return o->accesses >= 5 && o->heat < HEAT_KINDS;
}

int main(int argc, char **argv)
{
	double foretold[WHATIF_SETTINGS];
	struct options o;

	if (!parse(&o, argc, argv)) {
		fprintf(stderr, "usage: whatif LOAD hashed|clustered [WRITES [ACCESSES [SAMPLES [HEAT [SEED]]]]]\n");
		return 2;
	}
	run(&o, o.heat, 0.7, FAST, foretold);
	for (uint32_t n = 0; n < WHATIF_SETTINGS; n++) {
		const struct whatif_one *one = &whatif_settings[n];
		double pins = one->pins > 0 ? one->pins : one->pins < 0 ? -one->pins * 0.7 : 0.7;
		double real = run(&o, one->kind == HEAT_KINDS ? o.heat : one->kind, pins, (uint64_t)(FAST * one->times), NULL);

		printf("%s foretold=%.4f real=%.4f\n", one->name, foretold[n], real);
		fflush(stdout);
	}
	return 0;
}
