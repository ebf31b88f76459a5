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

enum tuning_fit tuning_fit_of(const char *policy)
{
	static const char *const names[TUNING_FITS] = { "watermark", "climb", "ralt" };
	int i = 0;

	while (i < TUNING_FITS && strcmp(names[i], policy))
		i++;
	return (enum tuning_fit)i;
}

const char *tuning_check(const struct tuning *t, enum tuning_fit *which)
{
	const struct tunable *bad = NULL;

	*which = TUNING_WATERMARK;
	if (watermark_check(&t->watermark))
		return "watermark.low must be below watermark.high";
	*which = TUNING_CLIMB;
	if (t->climb.min >= t->climb.max)
		return "climb.min must be below climb.max";
	*which = TUNING_RALT;
	if (ralt_tunables_check(&t->ralt, &bad)) {
		snprintf(said, sizeof(said), "ralt.%s does not fit the other tunables of ralt",
			 bad ? bad->name : "?");
		return said;
	}
	return NULL;
}
