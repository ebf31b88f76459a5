// SPDX-License-Identifier: GPL-2.0-or-later
/* The read-trigger's state machine; see epoch.h. */
#include "decide/epoch.h"

#include <errno.h>
#include <string.h>

static const struct tunable rows[] = {
	TUNABLE(TUNABLE_U64, epoch_tunables, epoch_ops, 1000000, 1, 1e12,
		"operations of an epoch, at reference_blocks"),
	TUNABLE(TUNABLE_U64, epoch_tunables, cool_down_ops, 10000000, 0, 1e13,
		"operations of rest after an epoch that did not gain"),
	TUNABLE(TUNABLE_U64, epoch_tunables, reference_blocks, 100000000, 1, 1e12,
		"volume size the two figures above are for"),
	TUNABLE(TUNABLE_U64, epoch_tunables, min_epoch_ops, 10000, 1, 1e12,
		"shortest epoch, however small the volume"),
	TUNABLE(TUNABLE_DOUBLE, epoch_tunables, monitor_share, 0.1, 0.01, 1.0,
		"length of the measurement, as a share of an epoch"),
	TUNABLE(TUNABLE_DOUBLE, epoch_tunables, min_gain, 0.01, 0.0, 1.0,
		"gain of the fast-read ratio that earns another epoch"),
	TUNABLE(TUNABLE_DOUBLE, epoch_tunables, read_share, 0.5, 0.0, 1.0,
		"share of reads from which a load counts as reading"),
	TUNABLE(TUNABLE_DOUBLE, epoch_tunables, slow_share, 0.02, 0.0, 1.0,
		"share of slow reads below which there is nothing to gain"),
	TUNABLE(TUNABLE_U64, epoch_tunables, looks, 8, 1, EPOCH_LOOKS_MOST,
		"regions that are looked into and raised from, a tick; half as many after a tick that found nothing"),
	TUNABLE(TUNABLE_U64, epoch_tunables, turn_regions, 1024, 16, 1 << 20,
		"regions whose heat is estimated a tick: 1024 take a ms or two; a sixteenth with lru, which asks block by block"),
	TUNABLE(TUNABLE_U64, epoch_tunables, asked_blocks, 128, 0, EPOCH_ASKED_MOST,
		"blocks of the promotion cache that are asked for a tick, to find regions that are hot"),
	TUNABLE(TUNABLE_DOUBLE, epoch_tunables, vain_seconds, 10.0, 0.0, 86400.0,
		"how long a region in which nothing was found is not looked into again"),
};
TUNABLE_TABLE(epoch_tunable_table, "epoch", rows);

static uint64_t scaled(uint64_t ops, double factor)
{
	return (uint64_t)((double)ops * factor);
}

int epoch_init(struct epoch *e, const struct epoch_tunables *t, uint64_t volume_blocks)
{
	double factor = (double)volume_blocks / (double)t->reference_blocks;

	if (tunable_check(&epoch_tunable_table, t, NULL))
		return -EINVAL;
	memset(e, 0, sizeof(*e));
	/* The floor keeps the proportion of rest to work. */
	if ((double)t->epoch_ops * factor < (double)t->min_epoch_ops)
		factor = (double)t->min_epoch_ops / (double)t->epoch_ops;
	e->epoch_ops = scaled(t->epoch_ops, factor);
	e->cool_down_ops = scaled(t->cool_down_ops, factor);
	return 0;
}

static double ratio_of(const struct epoch *e)
{
	return e->reads ? (double)e->fast_reads / (double)e->reads : 0;
}

static void enter(struct epoch *e, enum epoch_state state)
{
	e->state = state;
	e->ops = 0;
	e->reads = 0;
	e->fast_reads = 0;
}

static bool worth_running(const struct epoch *e, const struct epoch_tunables *t)
{
	return e->reads && (double)e->reads >= t->read_share * (double)e->ops &&
	       1.0 - ratio_of(e) >= t->slow_share;
}

static void end_of_detect(struct epoch *e, const struct epoch_tunables *t)
{
	bool run = worth_running(e, t);

	e->ratio = ratio_of(e);
	enter(e, run ? EPOCH_RUN : EPOCH_DETECT);
}

static void end_of_monitor(struct epoch *e, const struct epoch_tunables *t)
{
	double gain = ratio_of(e) - e->ratio;
	bool more = e->reads && gain > t->min_gain;

	e->ratio = ratio_of(e);
	enter(e, more ? EPOCH_RUN : EPOCH_COOL);
}

static uint64_t length_of(const struct epoch *e, const struct epoch_tunables *t)
{
	switch (e->state) {
	case EPOCH_MONITOR:
		return scaled(e->epoch_ops, t->monitor_share);
	case EPOCH_COOL:
		return e->cool_down_ops;
	default:
		return e->epoch_ops;
	}
}

enum epoch_state epoch_step(struct epoch *e, const struct epoch_tunables *t,
			    uint64_t ops, uint64_t reads, uint64_t fast_reads)
{
	e->ops += ops;
	e->reads += reads;
	e->fast_reads += fast_reads;
	if (e->ops < length_of(e, t))
		return e->state;
	switch (e->state) {
	case EPOCH_DETECT:
		end_of_detect(e, t);
		break;
	case EPOCH_RUN:
		e->epochs_run++;
		enter(e, EPOCH_MONITOR);
		break;
	case EPOCH_MONITOR:
		end_of_monitor(e, t);
		break;
	default:
		enter(e, EPOCH_DETECT);
		break;
	}
	return e->state;
}
