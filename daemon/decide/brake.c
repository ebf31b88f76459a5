// SPDX-License-Identifier: GPL-2.0-or-later
/* Multiplicative back-off, additive recovery; see brake.h. */
#include "decide/brake.h"

static const struct tunable rows[] = {
	TUNABLE(TUNABLE_DOUBLE, brake_tunables, tolerance, 1.0, 0.0, 100.0,
		"how much slower user I/O may get while moves are under way, as a share of its latency without"),
	TUNABLE(TUNABLE_DOUBLE, brake_tunables, floor_us, 50.0, 0.0, 1e6,
		"latency in microseconds that is always good enough"),
	TUNABLE(TUNABLE_DOUBLE, brake_tunables, back_off, 0.5, 0.01, 0.99,
		"factor of the moves' share after an interval that was too slow"),
	TUNABLE(TUNABLE_DOUBLE, brake_tunables, recover, 0.05, 0.001, 1.0,
		"what an interval that was not adds to it"),
	TUNABLE(TUNABLE_DOUBLE, brake_tunables, min_share, 0.02, 0.0, 1.0,
		"share that moves always keep"),
	TUNABLE(TUNABLE_DOUBLE, brake_tunables, smoothing, 0.1, 0.001, 1.0,
		"weight of one interval in the latency without moves"),
	TUNABLE(TUNABLE_U64, brake_tunables, min_ops, 8, 1, 1e9,
		"user operations an interval needs to be judged"),
	TUNABLE(TUNABLE_U64, brake_tunables, learn_after, 8, 1, 1e9,
		"intervals with moves after which they pause, to hear what user I/O takes without; at first ..."),
	TUNABLE(TUNABLE_U64, brake_tunables, relearn_after, 1024, 1, 1e9,
		"... and later on"),
};
TUNABLE_TABLE(brake_tunable_table, "brake", rows);

void brake_init(struct brake *b)
{
	*b = (struct brake){ .share = 1 };
}

static void rest(struct brake *b)
{
	b->unheard = 0;
	b->listens = false;
}

static void learn(struct brake *b, const struct brake_tunables *t, double latency_us)
{
	b->base_us = b->base_us > 0 ? b->base_us + t->smoothing * (latency_us - b->base_us) : latency_us;
	rest(b);
}

double brake_step(struct brake *b, const struct brake_tunables *t, double latency_us,
		  uint64_t ops, bool moving)
{
	bool judged = ops >= t->min_ops;

	if (judged && !moving)
		learn(b, t, latency_us);
	else if (!moving)
		rest(b);			/* nobody is there to be heard, or slowed down */
	if (judged && moving && ++b->unheard >= (b->base_us > 0 ? t->relearn_after : t->learn_after))
		b->listens = true;
	if (judged && moving && b->base_us > 0 && latency_us > t->floor_us &&
	    latency_us > b->base_us * (1 + t->tolerance)) {
		b->share *= t->back_off;
		b->braked++;
	} else {
		b->share += t->recover;
	}
	if (b->share > 1)
		b->share = 1;
	if (b->share < t->min_share)
		b->share = t->min_share;
	return b->share;
}
