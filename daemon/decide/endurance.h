/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Endurance: how many bytes moves may still write to a drive, as a hard limit.
 *
 * A drive of C bytes rated for D drive writes per day earns C * D / 86400 bytes a second, and
 * saves them up for at most bank_days.  Everything written to it is paid from that, the
 * users' writes too: they cannot be refused, so they leave less for moves.  With nothing
 * saved up no order that writes to the drive is given.
 *
 * As the savings shrink below half the price of writing rises, up to max_price: MSC then
 * prefers regions that need fewer writes, before the limit has to speak.
 *
 * The caller keeps `saved` across restarts; time that the daemon did not run earns nothing.
 */
#ifndef DECIDE_ENDURANCE_H
#define DECIDE_ENDURANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "decide/tunable.h"

struct endurance_tunables {
	double drive_writes_per_day;	/* 0: no limit */
	double bank_days;
	double max_price;
	double worn_percent;
};

extern const struct tunable_table endurance_tunable_table;

struct endurance {
	double capacity;	/* bytes */
	double saved;		/* bytes; below 0: users wrote more than the drive is rated for */
	double counted;		/* charged here since the drive's own count was last heard */
	double drive_written;	/* that count; below 0: not heard yet */
	double percent_used;	/* of its rated life, as the drive says; 0: it says nothing */
};

/* A full bank, as of a drive that has rested. */
void endurance_init(struct endurance *e, const struct endurance_tunables *t, double capacity_bytes);

/* The same of one that had no limit until now. */
void endurance_rested(struct endurance *e, const struct endurance_tunables *t);

/* @seconds since the last call, @written: bytes to the drive since then, whoever wrote them. */
void endurance_step(struct endurance *e, const struct endurance_tunables *t, double seconds,
		    double written);

/*
 * The drive's own count of what was written to it, and of its life: what it has beyond what was
 * counted here, by others or on the drive's other partitions, is charged as well.
 */
void endurance_hear(struct endurance *e, const struct endurance_tunables *t, double drive_written,
		    double percent_used);

/* Whether an order that writes about @bytes may be given; one that writes nothing always. */
bool endurance_allows(const struct endurance *e, const struct endurance_tunables *t, double bytes);

/* Factor of msc's wear_price, 1..max_price; max_price for a drive past worn_percent of its life. */
double endurance_price(const struct endurance *e, const struct endurance_tunables *t);

#endif
