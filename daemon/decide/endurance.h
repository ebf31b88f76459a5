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
 * An order reserves the most that it can write when it is given, and settles what it wrote when it has ended: however
 * many are under way, what they may write together is saved up.
 *
 * The account outlives a daemon that is killed: what is written down is always less than what is left, by a share of
 * the bank (endurance_ahead()), and before an order would take the account below that, it is written down anew.  So a
 * kill costs that share, and gives nothing back; who cannot write it down gives no orders.  With it goes the drive's own count:
 * what others write meanwhile is charged afterwards.  Time that the daemon did not run earns nothing.
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
	double reserved;	/* bytes of it, for orders under way */
	double kept;		/* what has been written down: all that is left after a kill */
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

/* Whether an order that writes @bytes at most may be given; one that writes nothing always. */
bool endurance_allows(const struct endurance *e, const struct endurance_tunables *t, double bytes);

/* It is given; below 0: it has ended.  What it wrote then goes to endurance_step(). */
void endurance_reserve(struct endurance *e, double bytes);

/* Is that much of it written down?  If not, endurance_ahead() is to be; then endurance_written_down() told. */
bool endurance_is_kept(const struct endurance *e, const struct endurance_tunables *t);
double endurance_ahead(const struct endurance *e, const struct endurance_tunables *t);
void endurance_written_down(struct endurance *e, double kept);

/* After a restart: @kept, the drive's count then (below 0: none), and what had been charged beyond that. */
void endurance_restore(struct endurance *e, const struct endurance_tunables *t, double kept, double drive_written,
		       double counted);

/* Factor of msc's wear_price, 1..max_price; max_price for a drive past worn_percent of its life. */
double endurance_price(const struct endurance *e, const struct endurance_tunables *t);

#endif
