// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Do no harm: the daemon's loop on the simulated volume, against what would be without it.
 *
 *	governed	the loop as it is: sense, decide, governor
 *	janitor		room by age alone, nothing promoted: what the kernel does by itself, and while
 *			the loop has not claimed the volume
 *	frozen		no moves at all: what finds no slot is appended below
 *
 * All start from one state: the fast tier filled to 95 % by writes to random blocks.  Time is the sum of
 * what users and moves keep the drives busy with (prices of loop/limits.c: optane above, qlc or hdd
 * below), one after the other: the worst case for moves.  The first half warms up, the second is measured.
 *
 * usage: harm LOAD qlc|hdd [OPERATIONS]	prints "LOAD governed=OPS_PER_S janitor=… frozen=… …"; HARM_LOG=yes: what the loop says
 *
 *	LOAD	uniform-read uniform-mixed uniform-write hotspot-read hotspot-mixed all-hot-read all-hot-mixed scan
 *		warm-mixed faint-mixed (less skewed than what is promoted for) turns-mixed (a hotspot and uniform by turns)
 */
#include <stdbool.h>
#include <stdlib.h>

#include "../unit/sim_lib.h"

#define BLOCKS	(64 * 1024ull)
#define FAST	(8 * 1024ull)

enum variant { GOVERNED, JANITOR, FROZEN };

static struct drive {
	const char *name;
	double read_us, append_us, bytes_per_us;
} drives[] = {
	{ "qlc", 391, 4, 1000 },
	{ "hdd", 6600, 27, 150 },
};

#define FAST_US		6.0

struct load {
	const char *name;
	double writes;
	double hot;		/* share of the accesses, to the hot set */
	uint64_t hot_blocks;
} loads[] = {
	{ "uniform-read", 0, 0, 1 },
	{ "uniform-mixed", 0.5, 0, 1 },
	{ "uniform-write", 1, 0, 1 },
	{ "hotspot-read", 0, 0.95, FAST / 2 },
	{ "hotspot-mixed", 0.5, 0.95, FAST / 2 },
	{ "all-hot-read", 0, 1, FAST + FAST / 4 },
	{ "all-hot-mixed", 0.5, 1, FAST + FAST / 4 },
	{ "scan", 0, 0, 0 },
	{ "warm-mixed", 0.5, 0.2, FAST / 2 },
	{ "faint-mixed", 0.5, 0.1, FAST / 2 },
	{ "turns-mixed", 0.5, 0.95, FAST / 2 },
};

#define TURN	60000	/* operations, not a share of an epoch of the governor */

static uint64_t next_block(struct sim *s, const struct load *l, uint64_t i)
{
	if (!l->hot_blocks)
		return i % BLOCKS;
	if (prng_unit(&s->prng) < l->hot && (strcmp(l->name, "turns-mixed") || i / TURN % 2))
		return prng_below(&s->prng, l->hot_blocks) * (BLOCKS / l->hot_blocks);
	return prng_below(&s->prng, BLOCKS);
}

/* The region that was not written for longest goes down whole, until 95 % are left; what it writes, in blocks. */
static double janitor(struct volume *v)
{
	static const struct upmask none;
	double written = v->slow_written;

	if (v->fast_used < v->fast_total * 98 / 100)
		return 0;
	while (v->fast_region_count && v->fast_used > v->fast_total * 95 / 100) {
		uint64_t oldest = v->fast_regions[0];

		for (uint32_t i = 1; i < v->fast_region_count; i++)
			if (v->region[v->fast_regions[i]].changed < v->region[oldest].changed)
				oldest = v->fast_regions[i];
		volume_move(v, oldest, &none, v->region[oldest].packs < 4 ? MOVE_APPEND : MOVE_MERGE);
	}
	return v->slow_written - written;
}

static double move_us(const struct sim *s, const struct drive *d)
{
	double below = (double)(s->e.stats.read_bytes[1] + s->e.stats.written_bytes[1]);
	double above = (double)(s->e.stats.read_bytes[0] + s->e.stats.written_bytes[0]);

	return below / d->bytes_per_us + above / 2400;
}

/* Operations per second of the second half. */
static double run(const struct load *l, const struct drive *d, enum variant variant, uint64_t ops)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	double us = 0, moved = 0, rate;

	s->c.evaluate = variant != GOVERNED;
	s->slow_class = d->name;
	while (s->v.fast_used < FAST * 95 / 100)
		volume_write(&s->v, prng_below(&s->prng, BLOCKS));
	sim_open(s);
	for (uint64_t i = 0; i < ops; i++) {
		uint64_t block = next_block(s, l, i);
		bool write = prng_unit(&s->prng) < l->writes;
		uint64_t hits = s->v.fast_hits, over = s->v.overflowed;

		if (i == ops / 2) {
			us = 0;
			moved = move_us(s, d);
		}
		sim_access(s, block, write);
		us += write ? (s->v.overflowed > over ? d->append_us : FAST_US) :
			      (s->v.fast_hits > hits ? FAST_US : d->read_us);
		if (i % 64 == 63 && sim_tick(s))
			exit(1);
		if (i % 64 == 63 && variant != FROZEN && !s->claimed)
			us += janitor(&s->v) * 4096 / d->bytes_per_us;
	}
	rate = (double)(ops - ops / 2) / (us + move_us(s, d) - moved) * 1e6;
	if (variant == GOVERNED && getenv("HARM_LOG"))
		fputs(s->log, stderr);
	sim_remove(s);
	return rate;
}

int main(int argc, char **argv)
{
	uint64_t ops = argc > 3 ? strtoull(argv[3], NULL, 0) : 1000000;
	const struct drive *d = argc > 2 && !strcmp(argv[2], "hdd") ? &drives[1] : &drives[0];

	for (size_t i = 0; argc > 2 && i < sizeof(loads) / sizeof(loads[0]); i++) {
		double rate[3];

		if (strcmp(argv[1], loads[i].name))
			continue;
		for (int v = GOVERNED; v <= FROZEN; v++)
			rate[v] = run(&loads[i], d, (enum variant)v, ops);
		printf("%s %s governed=%.0f janitor=%.0f frozen=%.0f best=%.0f\n", loads[i].name, d->name, rate[0], rate[1],
		       rate[2], rate[1] > rate[2] ? rate[1] : rate[2]);
		return 0;
	}
	fprintf(stderr, "usage: harm LOAD qlc|hdd [OPERATIONS]\n");
	return 2;
}
