// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What moves may do now: budgets under brake and boost, endurance, the governor's word.
 *
 * Where the sense times users' requests there is a brake for each tier's reads and writes, and the slowest decides: the
 * volume's mean says more about where they go than about who slows them down.  A hotspot that moves changes it tenfold, and
 * hits that take ten times as long hardly show beside reads of a disk.  Without such a sense the mean is all there is.
 */
#include <string.h>

#include "loop/engine.h"

/* No tunables: how the sense measures, in powers of two and a tick at a time.  What is too slow is brake.tolerance. */
#define PEDAL_TICKS	16	/* a tier with fewer requests than enough to judge by is not judged */
#define BUCKET_SPREAD	1.5	/* a mean of powers of two may be so far off against another */
#define TIMED_NS	10000000000ull	/* the sense tells times as long as it has done so this lately */

double limits_read_ns(const struct engine *e, uint32_t tier)
{
	return price_read_us(&e->c.price[tier], e->state.tier[tier].class) * 1e3;
}

double limits_busy_ns(const struct engine *e, uint32_t tier, double bytes)
{
	return bytes / price_bytes_per_us(&e->c.price[tier], e->state.tier[tier].class) * 1e3;
}

double limits_seek_ns(const struct engine *e, uint32_t tier)
{
	return price_seek_us(&e->c.price[tier], e->state.tier[tier].class) * 1e3;
}

bool limits_idle(const struct engine *e)
{
	return e->idle.quiet_seconds > e->c.tuning.idle.idle_seconds;
}

/* A network is not all ours: its tiers have less, unless the administrator has said how much for that very tier. */
static void limit_nets(struct engine *e)
{
	for (uint32_t t = 0; t < e->state.nr_tiers; t++) {
		struct budget_tunables *b = &e->c.budget[t];

		if (e->c.own_rate[t] || strcmp(e->state.tier[t].class, "net") || b->net_bytes_per_second <= 0)
			continue;
		if (b->bytes_per_second <= 0 || b->bytes_per_second > b->net_bytes_per_second)
			b->bytes_per_second = b->net_bytes_per_second;
	}
}

void limits_init(struct engine *e)
{
	limit_nets(e);
	brake_init(&e->mean.brake);
	for (uint32_t t = 0; t < TERRACE_HEAT_TIERS; t++)
		for (int op = 0; op < 2; op++)
			brake_init(&e->pedal[t][op].brake);
	e->share = 1;
	governor_init(&e->governor);
	e->judged = e->state;
	e->boost = 1;
	for (uint32_t t = 0; t < e->state.nr_tiers; t++) {
		budget_init(&e->budget[t], &e->c.budget[t], e->now_ns);
		endurance_init(&e->endurance[t], &e->c.endurance[t],
			       (double)e->state.tier[t].blocks * TERRACE_BLOCK_BYTES);
	}
}

/* Says so once when a side stops or goes on. */
static void tell(struct engine *e, const char *side, enum governor_reason reason,
		 enum governor_reason *told, uint32_t rest)
{
	if (reason == *told)
		return;
	*told = reason;
	if (reason == GOVERNOR_FREE)
		engine_log(e, ENGINE_NOTICE, "%s go on, as a trial", side);
	else
		engine_log(e, ENGINE_NOTICE, "%s stop for %u epochs: %s", side, rest,
			   governor_reason_text(reason));
}

/* Did keeping the hot while making room repay?  What an LRU would do is the ghost cache's guess. */
static void weigh_room(const struct engine *e, struct governor_epoch *epoch)
{
	double up_ns = limits_read_ns(e, e->up), down_ns = limits_read_ns(e, e->down);
	double reads = (double)(e->state.reads - e->judged.reads);
	double fast = (double)(e->state.fast_reads - e->judged.fast_reads);
	double writes = (double)(e->state.writes - e->judged.writes);

	/* Where no blocks are sensed none is kept. */
	epoch->overhead_ns = e->senses ? e->room_ns - e->plain_ns : 0;
	epoch->gained_ns = (fast - reads * shards_hit_rate(&e->shards, e->fast_blocks)) *
			   (down_ns > up_ns ? down_ns - up_ns : 0);
	epoch->user_ns = (fast + writes) * up_ns + (reads - fast) * down_ns;
}

static bool is_lost(const struct engine *e)
{
	struct governor_epoch epoch = { 0 };

	if (!e->senses || e->room_ns <= e->plain_ns)
		return false;
	weigh_room(e, &epoch);
	return governor_lost(&e->governor, &e->c.tuning.governor, &epoch);
}

/*
 * Of what lies below, the share that was read since the last judgement if each block was read at most once.  Under a load
 * without skew that is no scan: no choice is a good one.
 */
static double read_below(struct engine *e)
{
	double reads = (double)(e->stats.slow_reads - e->judged_slow_reads) / (e->port->slow_always ? 1 : e->port->sampling);
	double below = (double)hear_mapped(e) - (double)e->fast_used;

	e->judged_slow_reads = e->stats.slow_reads;
	if (!hear_skewed(e))
		return 0;
	return reads < below ? reads / below : 1;
}

static void judge(struct engine *e)
{
	struct repay_counts c = repay_take(&e->repay);
	double saved = limits_read_ns(e, e->down) - limits_read_ns(e, e->up);
	struct governor_epoch epoch = {
		.promoted = c.up, .demoted = c.down,
		.saved_ns = c.up_hits * (saved > 0 ? saved : 0) / e->port->sampling,
		.regretted = c.down_reads / (e->port->slow_always ? 1 : e->port->sampling),
		.chance = read_below(e), .spent_ns = e->spent_ns, .skewed = hear_skewed(e),
	};

	if (epoch.regretted > epoch.demoted)
		epoch.regretted = epoch.demoted;
	e->spent_ns = 0;
	weigh_room(e, &epoch);
	e->room_ns = e->plain_ns = 0;
	e->judged = e->state;
	governor_judge(&e->governor, &e->c.tuning.governor, &epoch);
	threshold_step(e);
	shards_age(&e->shards);
	tell(e, "promotions", e->governor.up.reason, &e->told_up, e->governor.up.rest);
	tell(e, "demotions", e->governor.down.reason, &e->told_down, e->governor.down.rest);
}

/* What the drives count themselves; said once, when one is past its rated life or in trouble. */
static void hear_drive(struct engine *e, uint32_t t)
{
	struct port_wear w = { 0 };
	bool known = e->port->health && e->port->health->wear(e->port->health, t, &w);

	if (!known && w.error && !e->told_worn[t]) {
		e->told_worn[t] = true;
		engine_log(e, ENGINE_NOTICE, "tier %u: its drive's SMART log cannot be read (%s): endurance goes by what is counted here",
			   t, strerror(-w.error));
	}
	if (!known)
		return;
	endurance_hear(&e->endurance[t], &e->c.endurance[t], w.written_bytes, w.percent_used);
	if (w.percent_used >= e->c.endurance[t].worn_percent && !e->told_worn[t]) {
		e->told_worn[t] = true;
		engine_log(e, ENGINE_WARNING, "tier %u: its drive has used %u %% of its rated life: writing to it has the highest price",
			   t, w.percent_used);
	}
	if (w.critical & ~e->told_critical[t])
		engine_log(e, ENGINE_WARNING, "tier %u: its drive warns (SMART critical warning 0x%02x)", t, w.critical);
	e->told_critical[t] |= w.critical;
}

static void pay_endurance(struct engine *e, double seconds)
{
	for (uint32_t t = 0; t < e->state.nr_tiers; t++) {
		uint64_t users = e->state.written_blocks[t] - e->before.written_blocks[t];

		endurance_step(&e->endurance[t], &e->c.endurance[t], seconds,
			       (double)users * TERRACE_BLOCK_BYTES);
		hear_drive(e, t);
	}
}

/* What the sense has counted since the last tick, and @us it took.  The middle of a bucket stands for all in it. */
static uint64_t hear_times(struct pedal *p, const uint64_t *counts, double *us)
{
	uint64_t ops = 0;

	*us = 0;
	for (uint32_t b = 0; b < TERRACE_HEAT_BUCKETS; b++) {
		uint64_t more = counts[b] > p->seen[b] ? counts[b] - p->seen[b] : 0;

		*us += (double)more * 0.75 * (double)(1ull << b);
		ops += more;
		p->seen[b] = counts[b];
	}
	return ops;
}

/* A pause is a tick, however little is heard in it: what it takes to be judged is gathered over as many as that needs. */
static void step_quiet(struct pedal *p, const struct brake_tunables *t, double us, uint64_t ops)
{
	p->quiet_us += us;
	p->quiet_ops += ops;
	if (p->quiet_ops < t->min_ops) {
		brake_step(&p->brake, t, 0, 0, false);
		return;
	}
	brake_step(&p->brake, t, p->quiet_ops ? p->quiet_us / (double)p->quiet_ops : 0, p->quiet_ops, false);
	p->quiet_us = 0;
	p->quiet_ops = 0;
}

/*
 * With orders under way times are gathered over some ticks, for who waits the longest is heard the least.  What was gathered
 * waits for the next orders: it says nothing of a time without, as what was heard without says nothing of them.
 */
static void step_pedal(struct pedal *p, const struct brake_tunables *t, double us, uint64_t ops, bool moving)
{
	if (!moving) {
		step_quiet(p, t, us, ops);
		return;
	}
	p->us += us;
	p->ops += ops;
	if (p->ops < t->min_ops && ++p->ticks < PEDAL_TICKS)
		return;
	brake_step(&p->brake, t, p->ops ? p->us / (double)p->ops : 0, p->ops, true);
	p->us = 0;
	p->ops = 0;
	p->ticks = 0;
}

static void step_pedals(struct engine *e, bool moving)
{
	struct brake_tunables t = e->c.tuning.brake;
	const struct sense *sense = e->port->sense;
	uint64_t heard = 0;

	t.tolerance = (1 + t.tolerance) * BUCKET_SPREAD - 1;
	for (uint32_t tier = 0; tier < TERRACE_HEAT_TIERS; tier++)
		for (int op = 0; op < 2; op++) {
			struct pedal *p = &e->pedal[tier][op];
			double us = 0;
			uint64_t ops = sense ? hear_times(p, sense->counts.latency[tier][op], &us) : 0;

			step_pedal(p, &t, us, ops, moving);
			heard += ops;
		}
	if (heard)
		e->timed_ns = e->now_ns;
}

/* @us, @ops: the mean of the volume. */
static void step_brakes(struct engine *e, double us, uint64_t ops)
{
	bool moving = e->under_way > 0, timed;

	step_pedals(e, moving);
	timed = e->timed_ns && e->now_ns - e->timed_ns < TIMED_NS;
	/* What it takes without moves is learnt in any case. */
	if (timed && moving)
		ops = 0;
	step_pedal(&e->mean, &e->c.tuning.brake, us * (double)ops, ops, moving);
	e->share = timed ? 1 : e->mean.brake.share;
	e->listens = !timed && e->mean.brake.listens;
	for (uint32_t t = 0; timed && t < TERRACE_HEAT_TIERS; t++)
		for (int op = 0; op < 2; op++) {
			const struct brake *b = &e->pedal[t][op].brake;

			e->share = b->share < e->share ? b->share : e->share;
			e->listens |= b->listens;
		}
}

static void step_cpu(struct engine *e)
{
	const struct cpu_tunables *t = &e->c.tuning.cpu;
	double reads = (double)(e->state.reads - e->cpu_reads), fast = (double)(e->state.fast_reads - e->cpu_fast_reads);

	if (!cpu_look(&e->cpu, t, e->state.cpu_idle, e->state.cpu_all))
		return;
	/* Where the ghost cache has seen too little nobody knows what could be expected: all of them. */
	cpu_judge(&e->cpu, t, reads > 0 ? fast / reads : 1, hear_knows_reads(e) ? shards_hit_rate(&e->shards, e->fast_blocks) : 1);
	e->cpu_reads = e->state.reads;
	e->cpu_fast_reads = e->state.fast_reads;
	if (e->port->ops->spare)
		e->port->ops->spare(e->port, cpu_is_content(&e->cpu));
}

uint64_t limits_braked(const struct engine *e)
{
	uint64_t n = e->mean.brake.braked;

	for (uint32_t t = 0; t < TERRACE_HEAT_TIERS; t++)
		n += e->pedal[t][0].brake.braked + e->pedal[t][1].brake.braked;
	return n;
}

/* Each slow read is what a raised block could have saved. */
static void step_epoch(struct engine *e, uint64_t ops, uint64_t reads)
{
	uint64_t fast = e->state.fast_reads - e->before.fast_reads;

	epoch_step(&e->epoch, &e->c.tuning.epoch, ops, reads, fast);
	e->epoch_credit += reads > fast ? reads - fast : 0;
	if (!e->epoch.ops && !epoch_moves(&e->epoch)) {
		e->epoch_credit = 0;
		e->epoch_vain_ticks = 0;
	}
}

void limits_tick(struct engine *e)
{
	double seconds = e->now_ns > e->last_ns ? (double)(e->now_ns - e->last_ns) * 1e-9 : 0;
	uint64_t reads = e->state.reads - e->before.reads, writes = e->state.writes - e->before.writes;
	uint64_t ops = reads + writes, busy = e->state.busy_ns - e->before.busy_ns;
	uint64_t own = e->sampling < reads ? e->sampling : reads;

	/* Samples are read like all else, but not by somebody who is disturbed. */
	step_brakes(e, ops ? (double)busy / (double)ops / 1e3 : 0, ops - own);
	step_cpu(e);
	e->sampling -= own;
	if (e->sampling > (uint64_t)e->gains_waiting * PORT_SAMPLE_BLOCKS)
		e->sampling = (uint64_t)e->gains_waiting * PORT_SAMPLE_BLOCKS;
	e->boost = idle_step(&e->idle, &e->c.tuning.idle, ops - own, seconds);
	limit_nets(e);		/* a tier may have come, or other limits */
	for (uint32_t t = 0; t < e->state.nr_tiers; t++)
		budget_refill(&e->budget[t], &e->c.budget[t], e->now_ns, e->share * e->boost);
	pay_endurance(e, seconds);
	step_epoch(e, ops, reads);
	if (governor_step(&e->governor, &e->c.tuning.governor, ops) || is_lost(e))
		judge(e);
}
