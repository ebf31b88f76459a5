// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Regions whose loose blocks are packed (decide/loose.h): by a merge that leaves everything on the
 * fast tiers where it is.  A few are looked at in each tick, in turn: so neighbours come to lie beside
 * each other.  What a sample says does not shrink is left, and not looked at again until more has come,
 * unless it lies scattered over a disk.
 */
#include <errno.h>
#include <string.h>

#include "loop/engine.h"

/* No tunables: they bound the work of a tick.  Which regions are packed is loose.*. */
#define LOOKS	256u	/* regions a tick ... */
#define EXACT_LOOKS	16u	/* ... and block by block */

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

/* What is known of a region's loose blocks. */
struct loose {
	struct upmask blocks;
	uint32_t nr, runs;
	bool scattered;
};

static int look(struct engine *e, uint64_t region, struct loose *l)
{
	double block_ns = limits_busy_ns(e, e->down, TERRACE_BLOCK_BYTES);
	int err = book_loose(e->port, region, &l->blocks, &l->runs);

	if (err)
		return err;
	l->nr = upmask_count(&l->blocks);
	l->scattered = limits_idle(e) &&
		       loose_scattered(&e->c.tuning.loose, l->nr, l->runs, limits_seek_ns(e, e->down), block_ns);
	return 0;
}

static int plan_of(struct engine *e, uint64_t region, const struct codec_sample *sample, struct plan *p,
		   struct loose *l)
{
	const struct terrace_summary *s = &e->book.summary[region];
	double gain;
	int err;

	*p = (struct plan){ .region = region, .why = WHY_LOOSE, .mode = TERRACE_MOVE_MERGE };
	err = book_masks(e->port, region, &p->fast, &p->slow);
	if (!err)
		err = look(e, region, l);
	if (err)
		return err;
	if (!l->scattered && l->nr < e->c.tuning.loose.least)
		return -ENOENT;
	p->up = p->fast;
	p->codec = orders_codec(e, mean_coldness(e, region, &l->blocks, l->nr), sample);
	gain = sample && sample->lz4 > 1 ? sample->lz4 : e->gain.lz4;
	if (p->codec.codec == CODEC_NONE)
		gain = 1;
	p->grounds = (struct grounds){ .found = l->nr, .runs = l->scattered ? l->runs : 0, .gain = gain > 1 ? gain : 1 };
	p->read_down = ((double)s->packed_blocks + l->nr) * TERRACE_BLOCK_BYTES;
	p->write_down = ((double)s->packed_blocks + l->nr / (gain > 1 ? gain : 1)) * TERRACE_BLOCK_BYTES;
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
	struct loose l;
	struct plan p;
	int err = plan_of(e, region, sample, &p, &l);

	if (err)
		return err;
	if (p.codec.codec == CODEC_NONE && !l.scattered) {
		leave(e, region);
		return -ENOENT;
	}
	err = orders_give(e, &p);
	e->stats.gathered += !err && l.scattered;
	return err;
}

/* Of two at once a disk would write the packs as they happen to be ready, not neighbour by neighbour. */
static bool must_wait(const struct engine *e)
{
	return limits_seek_ns(e, e->down) > 0 && orders_loose(e);
}

/* Those whose samples have come.  False: limits hold them back. */
static bool sampled(struct engine *e)
{
	struct gain_wait *w;

	while (!must_wait(e) && (w = gains_next(e, WHY_LOOSE))) {
		int err = give(e, w->choice.view.region, w->state == GAIN_THERE && w->known ? &w->gain : NULL);

		if (err == -EAGAIN || err == -EBUSY || err == -EDQUOT)
			return false;
		gains_done(e, w);
	}
	return true;
}

static bool is_there(const struct engine *e, uint64_t region)
{
	return !orders_busy(e, region) && !gains_busy(e, region);
}

static bool worth(const struct engine *e, uint64_t region)
{
	return loose_worth(&e->c.tuning.loose, e->book.summary[region].loose, e->book.left_loose[region],
			   quiet_seconds(e, region));
}

/* Too few to be worth packing, but on a disk: are they scattered? */
static bool may_be_scattered(const struct engine *e, uint64_t region)
{
	return limits_seek_ns(e, e->down) > 0 && limits_idle(e) && e->book.summary[region].loose > 1 &&
	       quiet_seconds(e, region) >= e->c.tuning.loose.quiet_seconds;
}

void pack_loose(struct engine *e)
{
	const struct port_tier *down = &e->state.tier[e->down];
	uint32_t looks = e->book.regions < LOOKS ? (uint32_t)e->book.regions : LOOKS, exact = EXACT_LOOKS;

	if (down->kind != TERRACE_KIND_SHELVES || !e->book.complete || !sampled(e) ||
	    !loose_turn(&e->c.tuning.loose, limits_idle(e), down->used_blocks, down->blocks))
		return;
	while (looks-- && exact) {
		uint64_t region = e->loose_hand;
		struct choice c = { .view.region = region };
		struct loose l;
		struct plan p;

		e->loose_hand = (region + 1) % e->book.regions;
		if (!is_there(e, region) || !(worth(e, region) || may_be_scattered(e, region)))
			continue;
		/* Its turn comes again. Nothing is sampled that could not be ordered. */
		if (orders_wait_for_cpu(e)) {
			e->loose_hand = region;
			return;
		}
		exact--;
		if (plan_of(e, region, NULL, &p, &l)) {
			book_refresh(&e->book, e->port, region);
			continue;
		}
		/* Left once as what does not shrink, and no more has come: it goes on lying in one piece. */
		if (!worth(e, region) && !l.scattered)
			continue;
		if (gains_wait(e, &c, &p, &l.blocks))
			return;
		if (must_wait(e))
			e->loose_hand = region;
		else
			give(e, region, NULL);
		return;		/* one a tick */
	}
}
