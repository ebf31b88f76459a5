/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Read-triggered epochs (PrismDB): moves that no write asked for.
 *
 * Under a read-mostly load nothing fills the fast tier, so no watermark fires
 * and hot blocks would stay below.  Epochs notice this and reorganise as long as
 * it helps:
 *
 *	DETECT	one epoch of operations; go on if reads dominate and enough of
 *		them were slow
 *	RUN	moves are on for one epoch
 *	MONITOR	moves stay on while the fast-read ratio is measured; a gain of
 *		more than min_gain over the last measurement runs another epoch,
 *		anything else ends it
 *	COOL	moves off; then DETECT again
 *
 * Counted in operations, not time.  PrismDB's figures (1 M, 10 M) were for 100 M
 * objects; they scale with the volume, down to a floor.
 */
#ifndef DECIDE_EPOCH_H
#define DECIDE_EPOCH_H

#include <stdbool.h>
#include <stdint.h>

#include "decide/tunable.h"

#define EPOCH_LOOKS_MOST	64u	/* epoch.looks: the regions of a tick are found on the stack */
#define EPOCH_ASKED_MOST	4096u	/* epoch.asked_blocks: as many as the promotion cache can hold */

struct epoch_tunables {
	uint64_t epoch_ops;
	uint64_t cool_down_ops;
	uint64_t reference_blocks;
	uint64_t min_epoch_ops;
	double monitor_share;
	double min_gain;
	double read_share;
	double slow_share;
	uint64_t looks;
	uint64_t turn_regions;
	uint64_t asked_blocks;
	double vain_seconds;
};

extern const struct tunable_table epoch_tunable_table;

enum epoch_state {
	EPOCH_DETECT,
	EPOCH_RUN,
	EPOCH_MONITOR,
	EPOCH_COOL,
	EPOCH_STATES,
};

struct epoch {
	enum epoch_state state;
	uint64_t epoch_ops;	/* scaled to the volume */
	uint64_t cool_down_ops;
	uint64_t ops;		/* since the state was entered */
	uint64_t reads;
	uint64_t fast_reads;
	double ratio;		/* fast-read ratio of the last measurement */
	uint64_t epochs_run;
};

/* -EINVAL when a tunable is out of range. */
int epoch_init(struct epoch *e, const struct epoch_tunables *t, uint64_t volume_blocks);

/*
 * Adds operations seen since the last call and advances the state.  A long
 * interval counts as one step: at most one transition per call.
 */
enum epoch_state epoch_step(struct epoch *e, const struct epoch_tunables *t,
			    uint64_t ops, uint64_t reads, uint64_t fast_reads);

/* Whether read-triggered moves are wanted now. */
static inline bool epoch_moves(const struct epoch *e)
{
	return e->state == EPOCH_RUN || e->state == EPOCH_MONITOR;
}

#endif
