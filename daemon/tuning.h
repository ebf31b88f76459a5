/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All tunables of one volume, by name: "choose.candidates".
 */
#ifndef TERRACE_TUNING_H
#define TERRACE_TUNING_H

#include "decide/admit.h"
#include "decide/brake.h"
#include "decide/buckets.h"
#include "decide/budget.h"
#include "decide/choose.h"
#include "decide/climb.h"
#include "decide/codec.h"
#include "decide/cpu.h"
#include "decide/endurance.h"
#include "decide/epoch.h"
#include "decide/flush.h"
#include "decide/governor.h"
#include "decide/idle.h"
#include "decide/loose.h"
#include "decide/mapper.h"
#include "decide/miniature.h"
#include "decide/msc.h"
#include "decide/price.h"
#include "decide/shards.h"
#include "decide/tracker.h"
#include "decide/watermark.h"
#include "ralt/tunables.h"

struct tuning {
	struct tracker_tunables tracker;
	struct mapper_tunables mapper;
	struct climb_tunables climb;
	struct bucket_tunables buckets;
	struct msc_tunables msc;
	struct choose_tunables choose;
	struct flush_tunables flush;
	struct watermark_tunables watermark;
	struct epoch_tunables epoch;
	struct admit_tunables admit;
	struct shards_tunables shards;
	struct miniature_tunables miniature;
	struct codec_tunables codec;
	struct ralt_tunables ralt;
	struct budget_tunables budget;
	struct brake_tunables brake;
	struct cpu_tunables cpu;
	struct endurance_tunables endurance;
	struct price_tunables price;
	struct idle_tunables idle;
	struct loose_tunables loose;
	struct governor_tunables governor;
};

struct tuning_part {
	const struct tunable_table *table;
	size_t offset;		/* of its values in struct tuning */
};

extern const struct tuning_part tuning_parts[];
extern const size_t tuning_part_count;

void tuning_defaults(struct tuning *t);

/*
 * Sets @policy's @name from text.  NULL, or why not: a phrase in a static buffer that names
 * what was wrong and the range.
 */
const char *tuning_set(struct tuning *t, const char *policy, const char *name, const char *text);

/* Tunables that have to fit each other. */
enum tuning_fit {
	TUNING_WATERMARK,
	TUNING_CLIMB,
	TUNING_RALT_PAGE,
	TUNING_RALT_HOT,
	TUNING_RALT_COUNTER,
	TUNING_FITS,
};

/* TUNING_FITS: @key ("POLICY.NAME") has to fit no other. */
enum tuning_fit tuning_fit_of(const char *key);

/* Do the values of @which fit each other?  NULL, or why not. */
const char *tuning_check(const struct tuning *t, enum tuning_fit which);

#endif
