// SPDX-License-Identifier: GPL-2.0-or-later
/* Drive writes per day as a bank account; see endurance.h. */
#include "decide/endurance.h"

#include <math.h>

/* No tunables: a unit, and how much at a time is promised on disk. */
#define SECONDS_PER_DAY	86400.0
#define AHEAD		(1.0 / 64)	/* of the bank, lost by a kill at most */

static const struct tunable rows[] = {
	TUNABLE(TUNABLE_DOUBLE, endurance_tunables, drive_writes_per_day, 0.0, 0.0, 1000.0,
		"what the drive is rated for, in times the tier's size a day; 0: no limit"),
	TUNABLE(TUNABLE_DOUBLE, endurance_tunables, bank_days, 1.0, 0.001, 365.0,
		"how many days' writes can be saved up"),
	TUNABLE(TUNABLE_DOUBLE, endurance_tunables, max_price, 4.0, 1.0, 1000.0,
		"factor on the price of writing when nothing is saved up"),
	TUNABLE(TUNABLE_DOUBLE, endurance_tunables, worn_percent, 100.0, 1.0, 256.0,
		"share of its rated life used, as SMART says, from which on writing has that price too"),
};
TUNABLE_TABLE(endurance_tunable_table, "endurance", rows);

static double bank(const struct endurance *e, const struct endurance_tunables *t)
{
	return e->capacity * t->drive_writes_per_day * t->bank_days;
}

void endurance_rested(struct endurance *e, const struct endurance_tunables *t)
{
	e->saved = bank(e, t);
	e->kept = INFINITY;		/* nothing is written down of it */
}

void endurance_init(struct endurance *e, const struct endurance_tunables *t, double capacity_bytes)
{
	e->capacity = capacity_bytes;
	endurance_rested(e, t);
	e->counted = e->percent_used = e->reserved = 0;
	e->drive_written = -1;
}

void endurance_step(struct endurance *e, const struct endurance_tunables *t, double seconds,
		    double written)
{
	double most = bank(e, t);

	if (seconds > 0)
		e->saved += e->capacity * t->drive_writes_per_day / SECONDS_PER_DAY * seconds;
	e->saved -= written;
	e->counted += written;
	if (e->saved > most)
		e->saved = most;
	/* A debt is paid back within the bank's length. */
	if (e->saved < -most)
		e->saved = -most;
}

void endurance_hear(struct endurance *e, const struct endurance_tunables *t, double drive_written,
		    double percent_used)
{
	double more = drive_written - e->drive_written, counted = e->counted;

	e->percent_used = percent_used;
	if (drive_written == e->drive_written)
		return;
	if (e->drive_written >= 0 && more > counted)
		endurance_step(e, t, 0, more - counted);
	/* Of what the drive's count does not have yet no more than it has just shown. */
	e->counted = e->drive_written < 0 || more <= 0 || more > counted ? 0 : counted - more < more ? counted - more : more;
	e->drive_written = drive_written;
}

bool endurance_allows(const struct endurance *e, const struct endurance_tunables *t, double bytes)
{
	return bytes <= 0 || t->drive_writes_per_day <= 0 || e->saved - e->reserved >= bytes;
}

void endurance_reserve(struct endurance *e, double bytes)
{
	e->reserved += bytes;
}

bool endurance_is_kept(const struct endurance *e, const struct endurance_tunables *t)
{
	return t->drive_writes_per_day <= 0 || e->saved - e->reserved >= e->kept;
}

double endurance_ahead(const struct endurance *e, const struct endurance_tunables *t)
{
	return e->saved - e->reserved - AHEAD * bank(e, t);
}

void endurance_written_down(struct endurance *e, double kept)
{
	e->kept = kept;
}

void endurance_restore(struct endurance *e, const struct endurance_tunables *t, double kept, double drive_written,
		       double counted)
{
	e->saved = e->kept = kept;
	e->drive_written = drive_written;
	e->counted = counted;
	endurance_step(e, t, 0, 0);
}

double endurance_price(const struct endurance *e, const struct endurance_tunables *t)
{
	double half = bank(e, t) / 2;

	if (e->percent_used >= t->worn_percent)
		return t->max_price;
	if (t->drive_writes_per_day <= 0 || half <= 0 || e->saved >= half)
		return 1;
	if (e->saved <= 0)
		return t->max_price;
	return t->max_price - (t->max_price - 1) * e->saved / half;
}
