/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What other settings would hit: a miniature of the volume (decide/miniature.h) for each, with a heat source of its own, all of
 * them hearing of the same sample of the accesses that the real heat source hears of.
 *
 *	ralt, clock, lru		the heat sources
 *	clock_pins_less, clock_pins_more	half the pinning threshold; nine tenths of what is tracked
 *	fast_half, fast_double, fast_fourfold	the heat source in use, with a fast tier of another size
 *
 * The one that is in use is among them, so what is foretold can be held against what comes.
 * Nothing is decided by it: it is told to people.
 */
#ifndef TERRACE_LOOP_WHATIF_H
#define TERRACE_LOOP_WHATIF_H

#include "decide/admit.h"
#include "decide/headcount.h"
#include "decide/miniature.h"
#include "decide/shards.h"
#include "ralt/small.h"
#include "tuning.h"

#define WHATIF_SETTINGS	8u

struct whatif_config {
	enum heat_kind heat;		/* in use */
	enum choose_rule rule;
	uint64_t blocks, fast_blocks;	/* of the volume */
	double fill;			/* RALT: share of the fast tier filled by score under skew */
	uint64_t seed;
};

struct whatif_one {
	const char *name;
	enum heat_kind kind;
	double pins;		/* pinning threshold; 0: the configured one, below 0: so many times it */
	double times;		/* fast tier */
	struct miniature miniature;
	struct admit_room filled;
	struct tracker tracker;
	struct mapper mapper;
	struct recency recency;
	struct ralt_small ralt;
	struct heat_ralt face;
	struct heat heat;
	void *memory[2];
};

struct whatif {
	const struct tuning *tuning;
	struct whatif_config c;
	struct prng prng;
	uint32_t shift;
	uint64_t heard;		/* accesses in the sample since they were last aged */
	double reads;		/* of all blocks, aged */
	struct headcount heads;
	void *counts;		/* its memory; NULL: the sample is as wide */
	struct whatif_one *one;	/* WHATIF_SETTINGS of them; NULL: no memory was to be had */
};

/* Their names, and what differs. */
extern const struct whatif_one whatif_settings[WHATIF_SETTINGS];

/* @tuning stays where it is.  0 or -errno; then nothing is foretold, and all calls below do no harm. */
int whatif_open(struct whatif *w, const struct whatif_config *c, const struct tuning *tuning);
void whatif_close(struct whatif *w);

void whatif_access(struct whatif *w, uint64_t block, bool write);
void whatif_forget(struct whatif *w, uint64_t first, uint64_t count);

/* Between accesses: new mappings, what may go up.  @ghost, @accesses, @mapped: as for admit_skewed(). */
void whatif_work(struct whatif *w, const struct shards *ghost, uint64_t accesses, uint64_t mapped);

/* Share of the reads that the setting's fast tier would have served; negative: too little was heard. */
double whatif_hit_rate(const struct whatif *w, uint32_t setting);

/* Whether it is the setting in use. */
bool whatif_is_now(const struct whatif *w, uint32_t setting);

#endif
