// SPDX-License-Identifier: GPL-2.0-or-later
/* The tables of all policies side by side; see tuning.h. */
#include "tuning.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART(member, table_) { &table_, offsetof(struct tuning, member) }

const struct tuning_part tuning_parts[] = {
	PART(tracker, tracker_tunable_table),
	PART(mapper, mapper_tunable_table),
	PART(climb, climb_tunable_table),
	PART(buckets, bucket_tunable_table),
	PART(msc, msc_tunable_table),
	PART(choose, choose_tunable_table),
	PART(flush, flush_tunable_table),
	PART(watermark, watermark_tunable_table),
	PART(epoch, epoch_tunable_table),
	PART(admit, admit_tunable_table),
	PART(shards, shards_tunable_table),
	PART(miniature, miniature_tunable_table),
	PART(codec, codec_tunable_table),
	PART(ralt, ralt_tunable_table),
	PART(budget, budget_tunable_table),
	PART(brake, brake_tunable_table),
	PART(cpu, cpu_tunable_table),
	PART(endurance, endurance_tunable_table),
	PART(price, price_tunable_table),
	PART(idle, idle_tunable_table),
	PART(loose, loose_tunable_table),
	PART(governor, governor_tunable_table),
};

const size_t tuning_part_count = sizeof(tuning_parts) / sizeof(tuning_parts[0]);

static char said[200];

void tuning_defaults(struct tuning *t)
{
	for (size_t i = 0; i < tuning_part_count; i++)
		tunable_defaults(tuning_parts[i].table, (char *)t + tuning_parts[i].offset);
}

static const struct tuning_part *part_of(const char *policy)
{
	for (size_t i = 0; i < tuning_part_count; i++)
		if (!strcmp(tuning_parts[i].table->policy, policy))
			return &tuning_parts[i];
	return NULL;
}

static const struct tunable *row_of(const struct tunable_table *table, const char *name)
{
	for (size_t i = 0; i < table->count; i++)
		if (!strcmp(table->rows[i].name, name))
			return &table->rows[i];
	return NULL;
}

const char *tuning_set(struct tuning *t, const char *policy, const char *name, const char *text)
{
	const struct tuning_part *part = part_of(policy);
	const struct tunable *row;
	char *end;
	double value;

	if (!part) {
		snprintf(said, sizeof(said), "no policy is called '%s'", policy);
		return said;
	}
	row = row_of(part->table, name);
	if (!row) {
		snprintf(said, sizeof(said), "policy %s has no tunable '%s'", policy, name);
		return said;
	}
	value = strtod(text, &end);
	if (end == text || *end ||
	    tunable_set(part->table, (char *)t + part->offset, name, value)) {
		snprintf(said, sizeof(said), "'%s' is not %s from %.10g to %.10g", text,
			 row->type == TUNABLE_DOUBLE ? "a number" : "a whole number", row->min, row->max);
		return said;
	}
	return NULL;
}

enum tuning_fit tuning_fit_of(const char *key)
{
	static const struct {
		const char *key;
		enum tuning_fit fit;
	} fits[] = {
		{ "watermark.high", TUNING_WATERMARK }, { "watermark.low", TUNING_WATERMARK },
		{ "climb.min", TUNING_CLIMB }, { "climb.max", TUNING_CLIMB },
		{ "ralt.page_bytes", TUNING_RALT_PAGE },
		{ "ralt.min_hot_share", TUNING_RALT_HOT }, { "ralt.max_hot_share", TUNING_RALT_HOT },
		{ "ralt.counter_step", TUNING_RALT_COUNTER }, { "ralt.counter_max", TUNING_RALT_COUNTER },
	};

	for (size_t i = 0; i < sizeof(fits) / sizeof(fits[0]); i++)
		if (!strcmp(fits[i].key, key))
			return fits[i].fit;
	return TUNING_FITS;
}

/* The first of them, if it is one of @which. */
static const char *ralt_check(const struct ralt_tunables *t, enum tuning_fit which)
{
	const struct tunable *bad = NULL;
	char key[64];

	if (!ralt_tunables_check(t, &bad))
		return NULL;
	snprintf(key, sizeof(key), "ralt.%s", bad ? bad->name : "");
	if (tuning_fit_of(key) != which)
		return NULL;
	snprintf(said, sizeof(said), "%s does not fit the other tunables of ralt", key);
	return said;
}

const char *tuning_check(const struct tuning *t, enum tuning_fit which)
{
	switch (which) {
	case TUNING_WATERMARK:
		return watermark_check(&t->watermark) ? "watermark.low must be below watermark.high" : NULL;
	case TUNING_CLIMB:
		return t->climb.min >= t->climb.max ? "climb.min must be below climb.max" : NULL;
	default:
		return ralt_check(&t->ralt, which);
	}
}
