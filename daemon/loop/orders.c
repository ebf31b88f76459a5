// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Orders: from a plan to a move under way, from its result to what is learnt.
 *
 * Orders of a tick go out together, so that one flush serves them.  An order keeps its slot and
 * its share of the budgets until its result.
 */
#include <errno.h>
#include <string.h>

#include "decide/warmest.h"
#include "loop/engine.h"

/* No tunables: pauses before what found no room is tried again, and the size of a header. */
#define COMPLAIN_NS	60000000000ull	/* between messages about failed orders */
#define NO_ROOM_NS	1000000000ull	/* after an order that found none, before the next */
#define HEIRS_WAIT_NS	200000000ull	/* the same for heirs, which soon may be no use */
#define PACK_SLACK	8	/* blocks of an order: header of its pack and index, padding */

/* Of ordinary data, until results say more. */
static const struct codec_sample first_gain = { .lz4 = 1.8, .zstd_4 = 2.4, .zstd_16 = 2.7 };

void orders_init(struct engine *e)
{
	e->gain = first_gain;
}

bool orders_busy(const struct engine *e, uint64_t region)
{
	if (!e->under_way)
		return false;
	for (uint32_t i = 0; i < ENGINE_ORDERS; i++)
		if (e->order[i].cookie && e->order[i].plan.region == region)
			return true;
	return false;
}

bool orders_loose(const struct engine *e)
{
	for (uint32_t i = 0; e->under_way && i < ENGINE_ORDERS; i++)
		if (e->order[i].cookie && e->order[i].plan.why == WHY_LOOSE)
			return true;
	return false;
}

static struct order *free_slot(struct engine *e)
{
	uint32_t most = e->shape.max_orders < ENGINE_ORDERS ? e->shape.max_orders : ENGINE_ORDERS;

	if (e->under_way >= most)
		return NULL;
	for (uint32_t i = 0; i < ENGINE_ORDERS; i++)
		if (!e->order[i].cookie)
			return &e->order[i];
	return NULL;
}

/* ---- what an order may cost ------------------------------------------------------- */

static double up_bytes(const struct plan *p)
{
	return p->write_up;
}

static double down_bytes(const struct plan *p)
{
	return p->read_down + p->write_down;
}

/* What lies on further tiers is known when it has been read: they pay afterwards, and what might read more waits. */
static bool others_are_spent(const struct engine *e, const struct plan *p)
{
	for (uint32_t t = p->mode == TERRACE_MOVE_RAISE ? e->down : 0; t < e->state.nr_tiers; t++)
		if (t != p->tier_up && t != e->down && budget_is_spent(&e->budget[t], &e->c.budget[t]))
			return true;
	return false;
}

static int refuse(struct engine *e, const char *why, uint64_t *count, int err)
{
	e->refused = why;
	e->refused_ns = e->now_ns;
	++*count;
	return err;
}

static const char *no_bandwidth(const struct engine *e)
{
	return e->share < 1 || e->listens ? "moves slow users down: the brake holds them back (brake.tolerance)" :
				    "the bandwidth that moves may take is used up for now (budget.bytes_per_second)";
}

/*
 * The most that an order can write, for endurance: as if nothing shrank, and all were dirty.  What goes down leaves nothing on
 * the fast tier but, it may be, the copy of an index.
 */
static double most_up(const struct plan *p)
{
	return p->goes_up ? (p->goes_up + (p->mode == TERRACE_MOVE_RAISE ? 0 : PACK_SLACK)) * (double)TERRACE_BLOCK_BYTES : 0;
}

static double most_down(const struct plan *p)
{
	uint32_t blocks = p->goes_down + PACK_SLACK;

	if (p->mode == TERRACE_MOVE_RAISE || p->write_down <= 0)
		return 0;
	if (p->mode == TERRACE_MOVE_MERGE)
		blocks += upmask_count(&p->slow);
	return blocks * (double)TERRACE_BLOCK_BYTES;
}

static void reserve(struct engine *e, const struct plan *p, double sign)
{
	endurance_reserve(&e->endurance[p->tier_up], sign * most_up(p));
	endurance_reserve(&e->endurance[e->down], sign * most_down(p));
}

/* Promised, and written down, before it is spent: a daemon that is killed has spent no more than that. */
static int promise(struct engine *e, const struct plan *p)
{
	uint32_t up = p->tier_up;

	if (!endurance_allows(&e->endurance[up], &e->c.endurance[up], most_up(p)) ||
	    !endurance_allows(&e->endurance[e->down], &e->c.endurance[e->down], most_down(p)))
		return refuse(e, "what may be written to a drive is used up for now (endurance.drive_writes_per_day)",
			      &e->stats.held_by_endurance, -EDQUOT);
	reserve(e, p, 1);
	if ((endurance_is_kept(&e->endurance[up], &e->c.endurance[up]) || most_up(p) <= 0) &&
	    (endurance_is_kept(&e->endurance[e->down], &e->c.endurance[e->down]) || most_down(p) <= 0))
		return 0;
	if (!keep_save(e, false))
		return 0;
	reserve(e, p, -1);
	return refuse(e, "what is left of a drive's endurance cannot be written down (state directory)",
		      &e->stats.held_by_endurance, -EDQUOT);
}

bool orders_wait_for_cpu(struct engine *e)
{
	if (!cpu_holds(&e->cpu))
		return false;
	refuse(e, "no CPU is idle, and reads are served as well as can be: moves would only slow the load down (cpu.min_idle)",
	       &e->stats.held_by_cpu, -EAGAIN);
	return true;
}

static int afford(struct engine *e, const struct plan *p)
{
	uint32_t up = p->tier_up;

	if (p->mode != TERRACE_MOVE_RAISE && e->now_ns < e->room_again_ns) {
		e->stats.held_by_room++;
		return -EAGAIN;
	}
	if (orders_wait_for_cpu(e))
		return -EAGAIN;
	if (e->listens || others_are_spent(e, p) || !budget_take(&e->budget[e->down], &e->c.budget[e->down], down_bytes(p)))
		return refuse(e, no_bandwidth(e), &e->stats.held_by_budget, -EAGAIN);
	if (!budget_take(&e->budget[up], &e->c.budget[up], up_bytes(p))) {
		budget_settle(&e->budget[e->down], &e->c.budget[e->down], down_bytes(p), 0);
		return refuse(e, no_bandwidth(e), &e->stats.held_by_budget, -EAGAIN);
	}
	if (promise(e, p)) {
		budget_settle(&e->budget[e->down], &e->c.budget[e->down], down_bytes(p), 0);
		budget_settle(&e->budget[up], &e->c.budget[up], up_bytes(p), 0);
		return -EDQUOT;
	}
	e->refused = NULL;
	return 0;
}

/* @r: what it really was; NULL: nothing at all. */
static void settle(struct engine *e, const struct plan *p, const struct terrace_result *r)
{
	double down = r ? (double)(r->read_bytes[e->down] + r->written_bytes[e->down]) : 0;
	double up = r ? (double)(r->read_bytes[p->tier_up] + r->written_bytes[p->tier_up]) : 0;

	reserve(e, p, -1);
	budget_settle(&e->budget[e->down], &e->c.budget[e->down], down_bytes(p), down);
	budget_settle(&e->budget[p->tier_up], &e->c.budget[p->tier_up], up_bytes(p), up);
	for (uint32_t t = 0; r && t < e->state.nr_tiers; t++)
		if (t != p->tier_up && t != e->down)
			budget_charge(&e->budget[t], &e->c.budget[t], (double)(r->read_bytes[t] + r->written_bytes[t]));
}

/* ---- giving ------------------------------------------------------------------------ */

/*
 * Where no samples come, once in codec.try_again decisions a codec is used as if nothing were known, or one that was found
 * useless once would never get another chance.
 */
struct codec_choice orders_codec(const struct engine *e, double coldness, const struct codec_sample *gain)
{
	struct codec_choice none = { .codec = CODEC_NONE, .cluster = 1 };
	uint32_t again = e->c.tuning.codec.try_again;

	if (e->state.tier[e->down].kind != TERRACE_KIND_SHELVES)
		return none;
	if (!gain)
		gain = e->decisions % again || e->decisions - e->gain_learnt < again ? &e->gain : &first_gain;
	return codec_choose(&e->c.tuning.codec, coldness, gain);
}

static void fill_move(const struct engine *e, const struct plan *p, struct terrace_move *m)
{
	const struct codec_choice *codec = &p->codec;

	memset(m, 0, sizeof(*m));
	m->region = p->region;
	m->mode = (uint8_t)p->mode;
	m->tier_up = (uint8_t)p->tier_up;
	/*
	 * What is banned is sent as if it were to stay: the kernel's marks are exact, and a write lifts them at once, of
	 * which this hears later or, where writes are sampled, never.
	 */
	for (uint32_t w = 0; w < UPMASK_WORDS; w++)
		m->up[w] = p->up.bits[w] | p->spare.bits[w];
	if (p->mode == TERRACE_MOVE_RAISE)
		return;
	m->tier_down = (uint8_t)e->down;
	m->codec = (uint8_t)codec->codec;
	m->level = (uint8_t)codec->level;
	m->shift = codec->cluster == 16 ? 4 : codec->cluster == 4 ? 2 : 0;
}

/*
 * In clusters of several blocks the warmest come first.  What the kernel leaves out, being clean or written
 * meanwhile, shifts its clusters against these; what is marked is warmer than its neighbours all the same.
 */
static void mark_warm(struct engine *e, const struct plan *p, struct terrace_move *m)
{
	struct upmask packed = p->fast, banned, warm;
	struct warmth_region known;

	if (!m->shift || !e->senses || warmth_look(&e->warmth, p->region, true, &known) < 0)
		return;
	tails_mask(e->banned, p->region, &banned);
	for (uint32_t i = 0; i < REGION_BLOCKS; i++)
		if (upmask_test(&banned, i))
			known.level[i] = -1;
	for (uint32_t w = 0; w < UPMASK_WORDS; w++) {
		packed.bits[w] |= p->mode == TERRACE_MOVE_MERGE ? p->slow.bits[w] : 0;
		packed.bits[w] &= ~m->up[w];
	}
	warmest(&warm, &packed, known.level, p->codec.cluster);
	memcpy(m->warm, warm.bits, sizeof(m->warm));
}

/* What a merge unpacks and packs again is work, too. */
static uint32_t blocks_of(const struct plan *p)
{
	return p->goes_down + p->goes_up + (p->mode == TERRACE_MOVE_MERGE ? upmask_count(&p->slow) : 0);
}

static void take_slot(struct engine *e, struct order *o, const struct plan *plan)
{
	*o = (struct order){ .cookie = ++e->cookies, .plan = *plan };
	o->decision = explain_add(e, plan)->number;
	o->cpu_us = cpu_charge(&e->cpu, &e->c.tuning.cpu, blocks_of(plan));
	e->under_way++;
	e->leaving += plan->goes_down;
	e->coming += plan->goes_up;
	e->coming_to[plan->tier_up] += plan->goes_up;
	e->stats.orders[plan->why]++;
}

static void free_order(struct engine *e, struct order *o)
{
	e->under_way--;
	e->leaving -= o->plan.goes_down;
	e->coming -= o->plan.goes_up;
	e->coming_to[o->plan.tier_up] -= o->plan.goes_up;
	o->cookie = 0;
}

static void debug(struct engine *e, uint64_t decision)
{
	struct decision *d = explain_find(e, decision);
	char line[400];

	if (!d || !e->c.debug)
		return;
	explain_text(d, line, sizeof(line));
	engine_log(e, ENGINE_DEBUG, "%s", line);
}

static uint64_t room_of(const struct engine *e, uint32_t t)
{
	const struct port_tier *tier = &e->state.tier[t];
	uint64_t most = (uint64_t)((double)tier->blocks * e->c.tuning.watermark.high);
	uint64_t used = tier->used_blocks + e->coming_to[t];

	if (most > tier->blocks - tier->reserve_blocks)
		most = tier->blocks - tier->reserve_blocks;
	return !tier->missing && used < most ? most - used : 0;
}

/*
 * Raised to the fastest tier with room, else to where most is: writes fill the first of them before the next.  In other
 * orders what is fast stays on whichever fast tier it is.
 */
static uint32_t tier_up(const struct engine *e, const struct plan *p)
{
	uint32_t best = 0, t;

	if (p->mode != TERRACE_MOVE_RAISE) {
		for (t = e->down - 1; t && e->state.tier[t].missing;)
			t--;
		return t;
	}
	for (t = 0; t < e->down; t++) {
		if (room_of(e, t) >= p->goes_up)
			return t;
		if (room_of(e, t) > room_of(e, best))
			best = t;
	}
	return best;
}

int orders_give(struct engine *e, const struct plan *asked)
{
	struct plan given = *asked, *plan = &given;
	struct order *o;
	int err;

	if (e->c.evaluate) {
		debug(e, explain_add(e, plan)->number);
		e->stats.orders[plan->why]++;
		return -EAGAIN;		/* one decision a tick is enough to look at */
	}
	o = free_slot(e);
	if (!o)
		return -EBUSY;
	plan->tier_up = tier_up(e, plan);
	err = afford(e, plan);
	if (err)
		return err;
	if (e->batched == sizeof(e->batch) / sizeof(e->batch[0]) ||
	    (e->shape.max_batch && e->batched == e->shape.max_batch)) {
		err = orders_send(e);
		if (err) {
			settle(e, plan, NULL);
			return err;
		}
	}
	take_slot(e, o, plan);
	fill_move(e, plan, &e->batch[e->batched]);
	mark_warm(e, plan, &e->batch[e->batched]);
	e->batch[e->batched++].cookie = o->cookie;
	debug(e, o->decision);
	return 0;
}

static struct order *order_of(struct engine *e, uint64_t cookie)
{
	for (uint32_t i = 0; cookie && i < ENGINE_ORDERS; i++)
		if (e->order[i].cookie == cookie)
			return &e->order[i];
	return NULL;
}

/* The batch was refused: its orders never were. */
static void take_back(struct engine *e, int err)
{
	for (uint32_t i = 0; i < e->batched; i++) {
		struct order *o = order_of(e, e->batch[i].cookie);
		struct decision *d;

		if (!o)
			continue;
		d = explain_find(e, o->decision);
		if (d) {
			d->status = TERRACE_RESULT_FAILED;
			d->error = err;
		}
		settle(e, &o->plan, NULL);
		cpu_refund(&e->cpu, o->cpu_us);
		free_order(e, o);
		e->stats.failed++;
	}
}

int orders_send(struct engine *e)
{
	int err;

	if (!e->batched)
		return 0;
	err = e->port->ops->submit(e->port, e->batch, e->batched);
	if (err < 0) {
		take_back(e, err);
		if (err != -EAGAIN && err != -ENODEV)
			engine_log(e, ENGINE_ERROR, "%u orders were refused: %s", e->batched, strerror(-err));
	}
	e->batched = 0;
	return err < 0 ? err : 0;
}

/* ---- results ------------------------------------------------------------------------ */

/* What the volume holds shows in samples as well: the first count for as much as there are of them, later ones less. */
void orders_learn_gain(struct engine *e, const struct codec_sample *s)
{
	double later = e->c.tuning.codec.gain_weight, weight = e->gain_samples < 1 / later ? 1.0 / ++e->gain_samples : later;

	e->gain.lz4 += weight * (s->lz4 - e->gain.lz4);
	e->gain.zstd_4 += weight * (s->zstd_4 - e->gain.zstd_4);
	e->gain.zstd_16 += weight * (s->zstd_16 - e->gain.zstd_16);
	e->gain_learnt = e->decisions;
}

/* What a codec gains shows when only new blocks were packed: an append. */
static void learn_gain(struct engine *e, const struct plan *p, const struct terrace_result *r)
{
	const bool lone = p->codec.codec == CODEC_ZSTD && p->codec.cluster == 1;	/* nobody asks what zstd gains so */
	double *known = p->codec.codec == CODEC_LZ4 ? &e->gain.lz4 :
			p->codec.cluster == 16 ? &e->gain.zstd_16 : &e->gain.zstd_4;

	if (p->mode != TERRACE_MOVE_APPEND || p->codec.codec == CODEC_NONE || lone || !r->down || !r->packed_bytes)
		return;
	*known += e->c.tuning.codec.gain_weight * ((double)r->down * TERRACE_BLOCK_BYTES / (double)r->packed_bytes - *known);
}

static void remember_moved(struct engine *e, const struct plan *p, const struct terrace_result *r)
{
	bool down = r->down + r->dropped && p->mode != TERRACE_MOVE_RAISE;

	for (uint32_t w = 0; w < UPMASK_WORDS; w++) {
		uint64_t first = p->region * REGION_BLOCKS + w * 64;

		for (uint64_t up = r->up ? p->up.bits[w] & p->slow.bits[w] : 0; up; up &= up - 1)
			repay_moved(&e->repay, first + (uint32_t)__builtin_ctzll(up), REPAY_UP);
		for (uint64_t gone = down ? p->fast.bits[w] & ~p->up.bits[w] : 0; gone; gone &= gone - 1)
			repay_moved(&e->repay, first + (uint32_t)__builtin_ctzll(gone), REPAY_DOWN);
	}
}

/*
 * Of what an order has brought up.  The kernel leaves out what is banned, and says only how many it raised: dead are
 * those that are not the others of the plan, by where these lie now.
 */
static uint32_t dead_ones(const struct engine *e, const struct plan *p, uint32_t raised)
{
	uint32_t planned = 0, there = 0, others = 0;
	struct upmask dead, fast, slow;

	tails_mask(e->dead, p->region, &dead);
	for (uint32_t w = 0; w < UPMASK_WORDS; w++)
		planned += (uint32_t)__builtin_popcountll(dead.bits[w] & p->up.bits[w] & p->slow.bits[w]);
	if (!planned || book_masks(e->port, p->region, &fast, &slow))
		return 0;
	for (uint32_t w = 0; w < UPMASK_WORDS; w++) {
		uint64_t up = p->up.bits[w] & p->slow.bits[w] & fast.bits[w];

		there += (uint32_t)__builtin_popcountll(up & dead.bits[w]);
		others += (uint32_t)__builtin_popcountll(up & ~dead.bits[w]);
	}
	raised = raised > others ? raised - others : 0;
	return raised < there ? raised : there;
}

/* Of what an order has left on the fast tier: dead ones that it was to keep, as far as they still lie there. */
static uint32_t dead_kept(const struct engine *e, const struct plan *p)
{
	struct upmask dead, fast, slow;
	uint32_t n = 0;

	if (!e->dead->nr || book_masks(e->port, p->region, &fast, &slow))
		return 0;
	tails_mask(e->dead, p->region, &dead);
	for (uint32_t w = 0; w < UPMASK_WORDS; w++)
		n += (uint32_t)__builtin_popcountll(dead.bits[w] & (p->up.bits[w] | p->spare.bits[w]) & p->fast.bits[w] & fast.bits[w]);
	return n;
}

/* Of what was banned: those that have gone are counted, and those that the kernel kept have been written since. */
static void spared(struct engine *e, const struct plan *p)
{
	uint32_t planned = upmask_count(&p->spare), kept = 0;
	struct upmask fast, slow;

	if (!planned || book_masks(e->port, p->region, &fast, &slow))
		return;
	for (uint32_t i = 0, n; i < REGION_BLOCKS; i += n ? n : 1) {
		for (n = 0; i + n < REGION_BLOCKS && upmask_test(&p->spare, i + n) && upmask_test(&fast, i + n);)
			n++;
		if (n)
			engine_dead(e, p->region * REGION_BLOCKS + i, n, false);
		kept += n;
	}
	e->stats.written_anew += kept;
	e->stats.not_retained_dead += planned - kept;
}

static void count(struct engine *e, const struct plan *p, const struct terrace_result *r)
{
	struct engine_stats *s = &e->stats;
	uint32_t dead = r->up && e->dead->nr ? dead_ones(e, p, r->up) : 0;

	s->promoted_dead += dead;
	*(p->why == WHY_LOOSE ? &s->packed_loose : &s->demoted) += r->down;
	s->dropped += r->dropped;
	s->raced += r->raced;
	if (p->why == WHY_FLUSH)
		s->promoted_by_flush += r->up;
	else if (p->why == WHY_EPOCH)
		s->promoted_by_epoch += r->up;
	else if (p->why == WHY_HEIR)
		s->promoted_as_heirs += r->up;
	else
		s->promoted_by_compaction += r->up;
	if (r->down + r->dropped) {
		s->retained += p->retained;
		s->retained_dead += dead_kept(e, p);
	}
	if (!r->error || r->error == -ENOENT)
		spared(e, p);
	s->done += r->status == TERRACE_RESULT_DONE;
	s->partly += r->status == TERRACE_RESULT_PARTLY;
	s->cancelled += r->status == TERRACE_RESULT_CANCELLED;
	s->failed += r->status == TERRACE_RESULT_FAILED;
	for (uint32_t t = 0; t < e->state.nr_tiers; t++) {
		s->read_bytes[t] += r->read_bytes[t];
		s->written_bytes[t] += r->written_bytes[t];
	}
}

static void pay(struct engine *e, const struct plan *p, const struct terrace_result *r)
{
	for (uint32_t t = 0; t < e->state.nr_tiers; t++) {
		double price = endurance_price(&e->endurance[t], &e->c.endurance[t]), busy;

		endurance_step(&e->endurance[t], &e->c.endurance[t], 0, (double)r->written_bytes[t]);
		busy = limits_busy_ns(e, t, (double)r->read_bytes[t]) +
		       limits_busy_ns(e, t, (double)r->written_bytes[t]) * price;
		e->moved_ns += busy;
		if (p->why == WHY_ROOM)
			e->room_ns += busy;
		else if (p->why != WHY_LOOSE)
			e->spent_ns += busy;
	}
}

/*
 * What the same blocks would have taken if nothing were kept: appended with all others of the region, with a merge
 * of its packs every REGION_PACKS times, of which they bear their share.
 */
static void compare(struct engine *e, const struct plan *p, const struct terrace_result *r)
{
	double gain = e->gain.lz4 > 1 ? e->gain.lz4 : 1, left = (double)r->down + r->dropped;
	double packed = e->book.summary[p->region].packed_blocks * (double)TERRACE_BLOCK_BYTES;
	double merge = 2 * packed / REGION_PACKS * left / (left + p->retained + 1e-9);

	if (p->why == WHY_ROOM)
		e->plain_ns += limits_busy_ns(e, e->down, (double)r->down * TERRACE_BLOCK_BYTES / gain + merge);
}

static void note(struct engine *e, uint64_t decision, const struct terrace_result *r)
{
	struct decision *d = explain_find(e, decision);

	if (!d)
		return;
	d->status = r->status;
	d->error = r->error;
	d->down = r->down;
	d->up = r->up;
	d->dropped = r->dropped;
	d->raced = r->raced;
	d->took_ns = r->nanoseconds;
	debug(e, decision);
}

/* What was expected of a volume in use, and what an administrator should hear of. */
static bool ordinary(int error)
{
	return !error || error == -ENOENT || error == -EBUSY || error == -ENOSPC || error == -ECANCELED;
}

/* A raise may find room for some of its blocks: what raced or could not be read would be another reason not to be through. */
static bool lacked_room(const struct plan *p, const struct terrace_result *r)
{
	return r->status == TERRACE_RESULT_NO_ROOM ||
	       (r->status == TERRACE_RESULT_PARTLY && p->mode == TERRACE_MOVE_RAISE && !r->raced && !r->unreadable);
}

/*
 * Final, as all results are. What makes room needs time: the janitor below, demotions above.  Nobody reads heirs because
 * they stayed below, so they are kept for then; those that have gone up are not found below again.
 */
static void no_room(struct engine *e, const struct plan *p)
{
	e->stats.no_room++;
	for (uint32_t i = 0; p->why == WHY_HEIR && i < REGION_BLOCKS; i++)
		if (upmask_test(&p->up, i))
			e->stats.heirs_left += !promote_again(e, p->region * REGION_BLOCKS + i);
	if (p->why == WHY_HEIR)
		e->heirs_again_ns = e->now_ns + HEIRS_WAIT_NS;
	if (p->mode == TERRACE_MOVE_RAISE)
		e->watermark.demoting = true;
	else
		e->room_again_ns = e->now_ns + NO_ROOM_NS;
}

static void ended(struct engine *e, struct order *o, const struct terrace_result *r)
{
	note(e, o->decision, r);
	if (lacked_room(&o->plan, r))
		no_room(e, &o->plan);
	count(e, &o->plan, r);
	pay(e, &o->plan, r);
	compare(e, &o->plan, r);
	learn_gain(e, &o->plan, r);
	remember_moved(e, &o->plan, r);
	settle(e, &o->plan, r);
	book_refresh(&e->book, e->port, o->plan.region);
	if (!ordinary(r->error) && (!e->complained_ns || e->now_ns - e->complained_ns >= COMPLAIN_NS)) {
		e->complained_ns = e->now_ns;
		engine_log(e, ENGINE_WARNING, "region %llu could not be moved: %s (%llu orders have failed so far)",
			   (unsigned long long)r->region, strerror(-r->error), (unsigned long long)e->stats.failed);
	}
	free_order(e, o);
}

int orders_collect(struct engine *e)
{
	struct terrace_result r[64];
	int got, rounds = 0;

	do {
		got = e->port->ops->results(e->port, r, 64);
		for (int i = 0; i < got; i++) {
			struct order *o = scrub_ended(e, &r[i]) ? NULL : order_of(e, r[i].cookie);

			if (o)
				ended(e, o, &r[i]);
		}
	} while (got == 64 && ++rounds < 8);
	return got < 0 ? got : 0;
}
