// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Regions that were chosen to go down wait here for a sample of what they hold, so that no CPU is
 * spent on packing what does not shrink.  It comes within a tick or two; one that does not is
 * given up, and packing goes by what it, and samples, gained elsewhere.  So do orders of a few blocks, and, where no CPU is
 * idle and nothing has shrunk so far, most others.  One that a limit holds back stays here: it is not read again each tick.
 */
#include <errno.h>
#include <string.h>

#include "loop/engine.h"

/* No tunables: what a sample may cost, and how long an answer that may never come is waited for.  What it decides is codec.*. */
#define FEW_BLOCKS	32u	/* going down: not worth reading 16 of them */
#define PATIENCE_NS	2000000000ull
#define STALE_NS	60000000000ull
#define SHOWN		8u	/* samples, after which they have shown something; and of that many one is taken then */

static struct gain_wait *wait_of(struct engine *e, uint64_t region)
{
	for (uint32_t i = 0; i < GAIN_WAITS; i++)
		if (e->gains[i].state != GAIN_FREE && e->gains[i].choice.view.region == region)
			return &e->gains[i];
	return NULL;
}

bool gains_busy(const struct engine *e, uint64_t region)
{
	return e->gains_waiting && wait_of((struct engine *)e, region);
}

void gains_done(struct engine *e, struct gain_wait *w)
{
	w->state = GAIN_FREE;
	e->gains_waiting--;
	e->leaving -= w->goes_down;
}

/* Sixteen in a row of those that will be packed: neighbours in a pack are neighbours in a cluster. */
static void pick(struct engine *e, uint64_t region, const struct upmask *from, uint32_t nr, uint64_t *blocks)
{
	uint64_t skip = prng_below(&e->prng, nr - PORT_SAMPLE_BLOCKS + 1);
	uint32_t n = 0;

	for (uint32_t i = 0; i < REGION_BLOCKS && n < PORT_SAMPLE_BLOCKS; i++) {
		if (!upmask_test(from, i) || (skip && skip--))
			continue;
		blocks[n++] = region * REGION_BLOCKS + i;
	}
}

/*
 * With all CPUs at work, and nothing that shrinks so far: what there was goes for most of what comes. What goes down without
 * is packed when it is merged; what lies loose would be left for good.
 */
static bool is_known(struct engine *e, enum why why)
{
	const struct codec_tunables *t = &e->c.tuning.codec;

	if (why == WHY_LOOSE || !e->cpu.full || e->stats.samples < SHOWN || codec_choose(t, 1, &e->gain).codec != CODEC_NONE)
		return false;
	if (++e->known_regions % SHOWN == 0)
		return false;
	e->stats.not_sampled++;
	return true;
}

bool gains_wait(struct engine *e, const struct choice *c, const struct plan *p, const struct upmask *from)
{
	uint64_t blocks[PORT_SAMPLE_BLOCKS];
	struct gain_wait *w = e->gains;
	uint32_t nr = upmask_count(from);

	if (!e->port->ops->sample || e->c.evaluate || nr < FEW_BLOCKS ||
	    e->state.tier[e->down].kind != TERRACE_KIND_SHELVES)
		return false;
	if (is_known(e, p->why))
		return false;
	while (w < e->gains + GAIN_WAITS && w->state != GAIN_FREE)
		w++;
	if (w == e->gains + GAIN_WAITS)
		return false;
	pick(e, p->region, from, nr, blocks);
	if (e->port->ops->sample(e->port, p->region, blocks))
		return false;
	*w = (struct gain_wait){
		.state = GAIN_ASKED, .why = p->why, .choice = *c, .asked_ns = e->now_ns, .goes_down = p->goes_down,
	};
	e->gains_waiting++;
	e->leaving += w->goes_down;
	e->stats.samples++;
	e->sampling += PORT_SAMPLE_BLOCKS;
	return true;
}

static void collect(struct engine *e)
{
	struct port_gain gain[GAIN_WAITS];
	int got = e->port->ops->gains(e->port, gain, GAIN_WAITS);

	for (int i = 0; i < got; i++) {
		struct gain_wait *w = wait_of(e, gain[i].region);

		if (!w || w->state != GAIN_ASKED)
			continue;
		w->state = GAIN_THERE;
		w->known = !gain[i].error;
		w->gain = (struct codec_sample){ gain[i].lz4, gain[i].zstd_4, gain[i].zstd_16 };
		if (w->known)
			orders_learn_gain(e, &w->gain);
	}
}

/* The one that was asked first: neighbours stay beside each other. */
struct gain_wait *gains_next(struct engine *e, enum why why)
{
	struct gain_wait *first = NULL;

	for (uint32_t i = 0; e->gains_waiting && i < GAIN_WAITS; i++) {
		struct gain_wait *w = &e->gains[i];

		if (w->state == GAIN_FREE || w->why != why)
			continue;
		/* One that no limit let go for so long was chosen for reasons of then. */
		if (e->now_ns - w->asked_ns >= STALE_NS)
			gains_done(e, w);
		else if ((w->state == GAIN_THERE || e->now_ns - w->asked_ns >= PATIENCE_NS) &&
			 (!first || w->asked_ns < first->asked_ns))
			first = w;
	}
	return first;
}

/* What comes when nobody waits any more, too: until it is taken its place is not free. */
void gains_tick(struct engine *e)
{
	if (e->stats.samples)
		collect(e);
}
