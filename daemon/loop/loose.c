// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Regions whose loose blocks are packed (decide/loose.h): by a merge that leaves everything on the
 * fast tiers where it is.  A few are looked at in each tick, in turn.  What a sample says does not
 * shrink is left, and not looked at again until more has come.
 */
#include <errno.h>
#include <string.h>

#include "loop/engine.h"

#define LOOKS	256u	/* regions a tick */

static double quiet_seconds(const struct engine *e, uint64_t region)
{
	double tick = e->ticks > 1 ? (double)(e->now_ns - e->opened_ns) * 1e-9 / (double)e->ticks : 0;

	return (double)(e->book.tick - e->book.used_tick[region]) * tick;
}

static double mean_coldness(struct engine *e, uint64_t region, const struct upmask *loose, uint32_t nr)
{
	struct warmth_region warm;
	double sum = 0;

	if (!e->senses || warmth_look(&e->warmth, region, true, &warm) < 0)
		return 1;
	for (uint32_t i = 0; i < REGION_BLOCKS; i++)
		if (upmask_test(loose, i))
			sum += coldness(warm.level[i]);
	return sum / nr;
}

static int plan_of(struct engine *e, uint64_t region, const struct codec_sample *sample, struct plan *p,
		   struct upmask *loose)
{
	const struct terrace_summary *s = &e->book.summary[region];
	double gain;
	uint32_t nr;
	int err;

	*p = (struct plan){ .region = region, .why = WHY_LOOSE, .mode = TERRACE_MOVE_MERGE };
	err = book_masks(e->port, region, &p->fast, &p->slow);
	if (!err)
		err = book_loose(e->port, region, loose);
	if (err)
		return err;
	nr = upmask_count(loose);
	if (nr < e->c.tuning.loose.least)
		return -ENOENT;
	p->up = p->fast;
	p->codec = orders_codec(e, mean_coldness(e, region, loose, nr), sample);
	gain = sample && sample->lz4 > 1 ? sample->lz4 : e->gain.lz4;
	p->read_down = ((double)s->packed_blocks + nr) * TERRACE_BLOCK_BYTES;
	p->write_down = ((double)s->packed_blocks + nr / (gain > 1 ? gain : 1)) * TERRACE_BLOCK_BYTES;
	return 0;
}

/* Nothing is saved: not again for what is there now. */
static void leave(struct engine *e, uint64_t region)
{
	e->book.left_loose[region] = e->book.summary[region].loose;
	e->stats.loose_left++;
}

static int give(struct engine *e, uint64_t region, const struct codec_sample *sample)
{
	struct upmask loose;
	struct plan p;
	int err = plan_of(e, region, sample, &p, &loose);

	if (err)
		return err;
	if (p.codec.codec == CODEC_NONE) {
		leave(e, region);
		return -ENOENT;
	}
	return orders_give(e, &p);
}

/* Those whose samples have come.  False: limits hold them back. */
static bool sampled(struct engine *e)
{
	struct gain_wait *w;

	while ((w = gains_next(e, WHY_LOOSE))) {
		int err = give(e, w->choice.view.region, w->state == GAIN_THERE && w->known ? &w->gain : NULL);

		if (err == -EAGAIN || err == -EBUSY || err == -EDQUOT)
			return false;
		gains_done(e, w);
	}
	return true;
}

static bool worth(const struct engine *e, uint64_t region)
{
	return !orders_busy(e, region) && !gains_busy(e, region) &&
	       loose_worth(&e->c.tuning.loose, e->book.summary[region].loose, e->book.left_loose[region],
			   quiet_seconds(e, region));
}

void pack_loose(struct engine *e)
{
	const struct port_tier *down = &e->state.tier[e->down];
	uint32_t looks = e->book.regions < LOOKS ? (uint32_t)e->book.regions : LOOKS;

	if (down->kind != TERRACE_KIND_SHELVES || !e->book.complete || !sampled(e) ||
	    !loose_turn(&e->c.tuning.loose, limits_idle(e), down->used_blocks, down->blocks))
		return;
	while (looks--) {
		uint64_t region = e->loose_hand;
		struct choice c = { .view.region = region };
		struct upmask loose;
		struct plan p;

		e->loose_hand = (region + 1) % e->book.regions;
		if (!worth(e, region))
			continue;
		if (plan_of(e, region, NULL, &p, &loose)) {
			book_refresh(&e->book, e->port, region);
			continue;
		}
		if (!gains_wait(e, &c, &p, &loose))
			give(e, region, NULL);
		return;		/* one a tick */
	}
}
