// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Room on the fast tier: choose a region (power-of-k over MSC), keep what is hot, order
 * the rest down.  A merge promotes the hot blocks that it meets.
 *
 * Where the sense knows no single blocks the rule is `oldest`, and nothing is kept.  Nor is it where
 * tick after tick finds nothing but hot blocks and the tier is above its high mark: more was called hot than may
 * stay, and new blocks need room whatever the heat says.  Then the oldest go, as many as come, and no more.
 */
#include <errno.h>
#include <string.h>

#include "loop/engine.h"

/* No tunables: they bound the work of a tick.  What is left to do the next one does. */
#define ATTEMPTS	64	/* choices a tick */
#define LOOKS		32	/* at regions that seem to be all hot, a tick */
#define PRESSED		8	/* regions a tick, at most */
#define TELL_NS		600000000000ull	/* between messages about that */

static void precise(struct engine *e, struct region_view *view)
{
	struct warmth_region warm;
	struct upmask fast, slow, banned;

	if (book_masks(e->port, view->region, &fast, &slow) ||
	    warmth_look(&e->warmth, view->region, true, &warm) < 0)
		return;
	tails_mask(e->banned, view->region, &banned);
	for (uint32_t i = 0; i < REGION_BLOCKS; i++) {
		if (!upmask_test(&fast, i))
			continue;
		if (upmask_test(&banned, i)) {
			view->coldness++;
			continue;
		}
		view->coldness += coldness(warm.level[i]);
		view->pinned_blocks += upmask_test(&warm.hot, i);
		view->hot_blocks += upmask_test(&warm.hot, i);
	}
}

static uint32_t common(const struct upmask *a, const struct upmask *b)
{
	uint32_t n = 0;

	for (uint32_t w = 0; w < UPMASK_WORDS; w++)
		n += (uint32_t)__builtin_popcountll(a->bits[w] & b->bits[w]);
	return n;
}

static void take_away(struct upmask *from, const struct upmask *what)
{
	for (uint32_t w = 0; w < UPMASK_WORDS; w++)
		from->bits[w] &= ~what->bits[w];
}

/* By each block: which of the hot ones are fast, and not banned.  The others are remembered for estimates. */
static bool look_closer(struct engine *e, struct region_view *view)
{
	struct upmask fast, slow, banned;
	struct warmth_region warm;

	if (book_masks(e->port, view->region, &fast, &slow) ||
	    warmth_look(&e->warmth, view->region, false, &warm) < 0)
		return false;
	e->book.hot_below[view->region] = (uint16_t)common(&warm.hot, &slow);
	tails_mask(e->banned, view->region, &banned);
	take_away(&warm.hot, &banned);
	approximate_view(view, &e->c.tuning.buckets, common(&warm.hot, &fast));
	return true;
}

/*
 * What the region's heat is worth.  The source knows how many hot blocks a region has, not which of them are fast: of
 * those that were not when it was last looked at (promotions may be held back) nothing is pinned.  Where all
 * that is fast seems to be hot, or some of it is banned, blocks are looked at one by one.
 */
static void estimate_heat(struct engine *e, struct region_view *view)
{
	struct upmask banned;

	tails_mask(e->banned, view->region, &banned);
	if (upmask_count(&banned) && look_closer(e, view))
		return;
	warmth_estimate(&e->warmth, view, e->book.hot_below[view->region]);
	if (view->pinned_blocks >= region_fast_blocks(view) && e->book.looks++ < LOOKS)
		look_closer(e, view);
}

static bool view_region(void *ctx, uint64_t index, struct region_view *view)
{
	struct engine *e = ctx;
	uint64_t region = e->book.fast[index];

	if (orders_busy(e, region) || gains_busy(e, region))
		return false;
	book_view(&e->book, region, view);
	if (e->presses || !e->senses || e->c.rule == CHOOSE_RANDOM || e->c.rule == CHOOSE_OLDEST)
		view->coldness = region_fast_blocks(view);
	else if (e->c.rule == CHOOSE_PRECISE)
		precise(e, view);
	else
		estimate_heat(e, view);
	return true;
}

/* Fast, not hot, but tails: they stay. */
static uint32_t pinned_only(const struct upmask_input *in)
{
	uint32_t n = 0;

	for (uint32_t w = 0; w < UPMASK_WORDS; w++)
		n += (uint32_t)__builtin_popcountll(in->pins.bits[w] & in->fast.bits[w] & ~in->hot.bits[w]);
	return n;
}

static void estimate(const struct engine *e, const struct choice *c, const struct codec_sample *sample, struct plan *p)
{
	double fast = region_fast_blocks(&c->view), lz4 = sample ? sample->lz4 : e->gain.lz4, gain = lz4 > 1 ? lz4 : 1;
	double dirty = fast > 0 ? c->view.dirty_blocks / fast : 1;

	p->codec = orders_codec(e, fast > 0 ? c->view.coldness / fast : 1, sample);
	p->write_down = p->goes_down * dirty / gain * TERRACE_BLOCK_BYTES;
	p->write_up = (double)p->goes_up * TERRACE_BLOCK_BYTES;
	if (p->mode != TERRACE_MOVE_MERGE)
		return;
	p->read_down = c->view.packed_blocks * TERRACE_BLOCK_BYTES;
	p->write_down += (c->view.packed_blocks - c->view.garbage_blocks) * TERRACE_BLOCK_BYTES;
}

/*
 * What a merge may bring up: free room, and half of what it takes down, so that it makes room
 * in any case.
 */
static uint32_t passing_room(const struct engine *e, const struct upmask_input *in)
{
	uint64_t room = e->room > e->coming ? e->room - e->coming : 0;

	return (uint32_t)room + (upmask_count(&in->fast) - common(&in->fast, &in->hot)) / 2;
}

/* 0 with @p filled in; -ENOENT: nothing of the region would go down. */
static int plan_of(struct engine *e, const struct choice *c, const struct codec_sample *sample, struct plan *p)
{
	struct upmask_input in = { 0 };
	struct upmask_result up;
	struct upmask spare, hinted;
	struct warmth_region warm = { 0 };
	uint32_t pinned;
	bool merge = c->msc.mode == MOVE_MERGE && e->state.tier[e->down].kind == TERRACE_KIND_SHELVES;
	int err = book_masks(e->port, c->view.region, &in.fast, &in.packed);

	if (!err && e->senses)
		err = warmth_look(&e->warmth, c->view.region, false, &warm);
	if (err < 0)
		return err;
	e->book.hot_below[c->view.region] = (uint16_t)common(&warm.hot, &in.packed);
	if (!e->presses) {
		in.hot = warm.hot;
		tails_mask(e->tails, c->view.region, &in.pins);
	}
	if (!e->c.retain)
		take_away(&in.hot, &in.fast);
	tails_mask(e->banned, c->view.region, &in.banned);
	spare = in.banned;
	for (uint32_t w = 0; w < UPMASK_WORDS; w++)
		spare.bits[w] &= in.fast.bits[w] & (in.hot.bits[w] | in.pins.bits[w]);
	take_away(&in.hot, &in.banned);
	take_away(&in.pins, &in.banned);
	pinned = pinned_only(&in);
	tails_mask(e->hinted, c->view.region, &hinted);
	for (uint32_t w = 0; w < UPMASK_WORDS; w++)
		in.pins.bits[w] |= hinted.bits[w] & in.fast.bits[w];
	upmask_build(&up, &in, merge ? passing_room(e, &in) : 0);
	if (!up.demoted)
		return -ENOENT;
	e->stats.pinned += pinned;
	*p = (struct plan){
		.region = c->view.region, .why = WHY_ROOM,
		.mode = merge ? TERRACE_MOVE_MERGE : TERRACE_MOVE_APPEND,
		.up = up.up, .spare = spare, .fast = in.fast, .slow = in.packed,
		.goes_down = up.demoted, .goes_up = up.promoted, .retained = common(&up.up, &in.fast),
		.score = c->score, .benefit = c->msc.benefit, .cost = c->msc.cost,
		.rule = c->rule, .looked_at = c->looked_at, .hot_too = e->presses,
	};
	estimate(e, c, sample, p);
	return 0;
}

static struct msc_tunables priced(const struct engine *e)
{
	struct msc_tunables t = e->c.tuning.msc;

	t.wear_price *= endurance_price(&e->endurance[e->down], &e->c.endurance[e->down]);
	return t;
}

/* Those chosen before whose samples have come.  What has changed meanwhile, plan_of() sees. */
static int demote_sampled(struct engine *e)
{
	struct gain_wait *w;
	struct plan p;

	while ((w = gains_next(e, WHY_ROOM))) {
		bool known = w->state == GAIN_THERE && w->known;
		int err = plan_of(e, &w->choice, known ? &w->gain : NULL, &p);

		if (!err)
			err = orders_give(e, &p);
		if (err && err != -ENOENT)
			return err;
		e->stats.incompressible += !err && known && p.codec.codec == CODEC_NONE;
		gains_done(e, w);
	}
	return 0;
}

/* An order for the oldest region, hot or not. */
static void press(struct engine *e, const struct msc_tunables *msc)
{
	struct choice c;
	struct plan p;

	e->presses = true;
	if (!choose_region(&c, CHOOSE_OLDEST, &e->c.tuning.choose, msc, e->book.fast_count, view_region, e, &e->prng) &&
	    !plan_of(e, &c, NULL, &p) && !orders_give(e, &p))
		e->stats.pressed += p.goes_down;
	e->presses = false;
}

static void tell_vain(struct engine *e)
{
	if (e->vain_told_ns && e->now_ns - e->vain_told_ns < TELL_NS)
		return;
	e->vain_told_ns = e->now_ns;
	engine_log(e, ENGINE_WARNING, "the fast tier is full of hot blocks: the oldest go down for new ones (are fill and ralt.max_hot_share "
		   "below watermark.low?)");
}

/* Nothing was found: see the top. */
static void in_vain(struct engine *e, const struct msc_tunables *msc)
{
	if (e->vain_ticks < e->c.tuning.watermark.vain_ticks) {
		e->vain_ticks++;
		return;
	}
	if (e->above)
		tell_vain(e);
	for (uint32_t i = 0; e->leaving < e->above && i < PRESSED; i++)
		press(e, msc);
}

/* False: no more is to be looked for in this tick. */
static bool look_for_room(struct engine *e, uint64_t blocks, const struct msc_tunables *msc)
{
	enum choose_rule rule = e->senses ? e->c.rule : CHOOSE_OLDEST;

	for (uint32_t i = 0; e->leaving < blocks && i < ATTEMPTS; i++) {
		struct upmask down;
		struct choice c;
		struct plan p;
		int err = choose_region(&c, rule, &e->c.tuning.choose, msc, e->book.fast_count,
					view_region, e, &e->prng);

		e->stats.choices++;
		if (err) {
			e->stats.choice_failures++;
			return true;
		}
		err = plan_of(e, &c, NULL, &p);
		if (err == -ENOENT) {
			/* The summary was out of date. */
			book_refresh(&e->book, e->port, c.view.region);
			continue;
		}
		if (err)
			return false;
		down = p.fast;
		for (uint32_t w = 0; w < UPMASK_WORDS; w++)
			down.bits[w] &= ~p.up.bits[w];
		e->vain_ticks = 0;
		if (gains_wait(e, &c, &p, &down))
			continue;
		if (orders_give(e, &p))
			return false;
	}
	return true;
}

void demote(struct engine *e, uint64_t blocks)
{
	struct msc_tunables msc = priced(e);

	/* Nothing is chosen, nor sampled, that could not be ordered. */
	if (orders_wait_for_cpu(e) || demote_sampled(e))
		return;
	if (look_for_room(e, blocks, &msc) && !e->leaving)
		in_vain(e, &msc);
}
