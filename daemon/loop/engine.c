// SPDX-License-Identifier: GPL-2.0-or-later
/* Open, close and the order of things in a tick; see engine.h. */
#include "loop/engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/*
 * No tunables: what these bound is work, memory and messages, and how finely is counted.  FILL_BELOW_LOW keeps two that are tunable apart,
 * the margins follow the kernel's own mark.
 */
#define FAILING_QUIET_NS 30000000000ull	/* without an error: the next is news again */
#define REPAY_SLOTS	65536u
#define REPAY_RATE	(1.0 / 16)
#define WORK_TICKS	8	/* between calls of warmth_work() */
#define SAVE_TICKS	600
#define SPENT_TICKS	16	/* the same where users have written more than is written down */
#define SHELF_BLOCKS	16384
#define AGAIN_NS	60000000000ull	/* between attempts to open the heat store */
#define FALLBACK_BLOCKS	(4u << 20)	/* kept by the clock that stands in for it: 64 MiB */
#define STILL_NS	1000000000ull	/* for so long the refusal of an order tells why nothing moves */
#define TELL_NS		600000000000ull	/* between messages about the same trouble */
#define FILL_BELOW_LOW	0.9
#define JANITOR_MARGIN	0.01	/* start below the kernel's own mark when it cannot be kept out */
#define JANITOR_STEP	0.001	/* of its mark */

/* ---- opening ------------------------------------------------------------------------ */

static bool one_is_avoided(const struct engine *e)
{
	for (uint32_t t = 0; t < e->state.nr_tiers; t++)
		if (e->state.tier[t].avoided)
			return true;
	return false;
}

/* The slots tiers are the fast side, the first other tier behind them the slow side. */
static void find_sides(struct engine *e)
{
	uint32_t t;

	e->fast_blocks = 0;
	e->fast_most = 0;
	e->fast_used = 0;
	e->idle_because = NULL;
	for (t = 0; t < e->state.nr_tiers && e->state.tier[t].kind == TERRACE_KIND_SLOTS; t++) {
		e->fast_blocks += e->state.tier[t].blocks;
		e->fast_most += e->state.tier[t].blocks - e->state.tier[t].reserve_blocks;
		e->fast_used += e->state.tier[t].used_blocks;
	}
	e->up = 0;
	e->down = t;
	if (!t)
		e->idle_because = "the first tier is not of kind slots";
	else if (t == e->state.nr_tiers)
		e->idle_because = "no tier is slower than the slots";
	else if (e->state.tier[0].missing || e->state.tier[t].missing)
		e->idle_because = "a tier is missing";
	else if (one_is_avoided(e))
		e->idle_because = "a tier is to be left (avoid_tiers)";
	else if (!e->state.writable)
		e->idle_because = "the volume is not writable";
	else if (!e->fast_blocks)
		e->idle_because = "the fast tier has no room";
	if (t == e->state.nr_tiers)
		e->down = e->up;
}

static void heat_report(void *ctx, enum ralt_event event, const char *file, int err)
{
	static const char *const text[] = {
		[RALT_COLD] = "starts cold: no heat is kept from before",
		[RALT_SET_ASIDE] = "is damaged and was set aside as .bad: its heat is lost",
		[RALT_OTHER_VOLUME] = "belongs to another volume and was set aside",
		[RALT_WRITE_FAILED] = "could not be written; tried again later",
		[RALT_DROPPED] = "could not be written for too long: accesses were dropped",
	};
	struct engine *e = ctx;

	/* A disk that is full is so for long: tell it now and then. */
	if (err && e->heat_told_ns && e->now_ns - e->heat_told_ns < TELL_NS)
		return;
	if (event == RALT_WRITE_FAILED || event == RALT_DROPPED)
		e->heat_told_ns = e->now_ns;
	engine_log(e, event == RALT_COLD ? ENGINE_NOTICE : ENGINE_WARNING, "heat store%s%s %s%s%s",
		   file ? ": " : "", file ? file : "", text[event], err ? ": " : "",
		   err ? strerror(err < 0 ? -err : err) : "");
}

static uint64_t volume_number(const uint8_t *uuid)
{
	uint64_t a, b;

	memcpy(&a, uuid, 8);
	memcpy(&b, uuid + 8, 8);
	return mix64(a ^ mix64(b));
}

static struct warmth_config describe_warmth(struct engine *e, char *path, size_t bytes)
{
	snprintf(path, bytes, "%s/ralt", e->c.directory);
	if (e->c.heat == HEAT_RALT)
		mkdir(path, 0700);
	return (struct warmth_config){
		.kind = e->c.heat, .directory = path, .volume = volume_number(e->shape.uuid),
		.nonce = prng_next(&e->prng), .blocks = e->shape.blocks,
		.fast_blocks = e->fast_blocks, .tuning = &e->c.tuning,
		.report = heat_report, .report_ctx = e, .passed_on = e->passed_on,
	};
}

/* Heat that cannot be kept on disk is kept in memory: a daemon that moves blindly is worse. */
static int open_warmth(struct engine *e)
{
	char path[4096];
	struct warmth_config wc = describe_warmth(e, path, sizeof(path));
	int err = warmth_open(&e->warmth, &wc, &e->prng);

	if (err == -EBUSY)
		engine_log(e, ENGINE_ERROR, "%s: another process works on this volume", path);
	if (!err || err == -EBUSY || e->c.heat != HEAT_RALT)
		return err;
	engine_log(e, ENGINE_WARNING, "%s: the heat store cannot be opened (%s): heat is kept in memory, by a clock",
		   path, strerror(-err));
	wc.kind = HEAT_CLOCK;
	wc.most_tracked = FALLBACK_BLOCKS;
	e->heat_again_ns = e->now_ns;
	return warmth_open(&e->warmth, &wc, &e->prng);
}

/* What kept the heat store from being opened may have gone. */
static void open_warmth_again(struct engine *e)
{
	struct warmth_config wc;
	struct warmth next;
	char path[4096];

	if (e->c.heat == e->warmth.kind || e->now_ns - e->heat_again_ns < AGAIN_NS)
		return;
	e->heat_again_ns = e->now_ns;
	wc = describe_warmth(e, path, sizeof(path));
	if (warmth_open(&next, &wc, &e->prng))
		return;
	warmth_close(&e->warmth);
	e->warmth = next;
	nowhere_begin(e);
	threshold_init(e);
	engine_log(e, ENGINE_NOTICE, "%s: the heat store can be opened again: heat is kept there", path);
}

static void *take(struct engine *e, int n, size_t bytes)
{
	e->memory[n] = malloc(bytes);
	return e->memory[n];
}

static int open_memory(struct engine *e)
{
	uint32_t cached = e->c.cache_blocks < ENGINE_CACHE ? e->c.cache_blocks : ENGINE_CACHE;
	size_t n = recency_bytes(cached);
	int err = recency_init(&e->cache, cached, take(e, 0, n), n);

	n = shards_bytes(&e->c.tuning.shards);
	if (!err)
		err = shards_init(&e->shards, &e->c.tuning.shards, e->shape.blocks, take(e, 1, n), n);
	n = repay_bytes(REPAY_SLOTS);
	if (!err)
		err = repay_init(&e->repay, REPAY_SLOTS, REPAY_RATE, take(e, 2, n), n);
	e->tails = take(e, 3, sizeof(*e->tails));
	e->dead = take(e, 4, sizeof(*e->dead));
	e->banned = take(e, 5, sizeof(*e->banned));
	e->hinted = take(e, 6, sizeof(*e->hinted));
	e->once = take(e, 7, sizeof(*e->once));
	e->passed_on = take(e, 10, sizeof(*e->passed_on));
	e->placed[0] = take(e, 8, sizeof(*e->placed[0]));
	e->placed[1] = take(e, 9, sizeof(*e->placed[1]));
	if (!err && (!e->tails || !e->dead || !e->banned || !e->hinted || !e->once || !e->passed_on || !e->placed[0] || !e->placed[1]))
		err = -ENOMEM;
	if (err)
		return err;
	memset(e->tails, 0, sizeof(*e->tails));
	memset(e->dead, 0, sizeof(*e->dead));
	memset(e->banned, 0, sizeof(*e->banned));
	memset(e->hinted, 0, sizeof(*e->hinted));
	memset(e->once, 0, sizeof(*e->once));
	memset(e->passed_on, 0, sizeof(*e->passed_on));
	memset(e->placed[0], 0, sizeof(*e->placed[0]));
	memset(e->placed[1], 0, sizeof(*e->placed[1]));
	return epoch_init(&e->epoch, &e->c.tuning.epoch, e->shape.blocks);
}

/*
 * Where a tier's reserve leaves less than the upper mark that would never be reached, nor room be made: both are as much
 * lower, as the kernel's are.
 */
static struct watermark_tunables reachable_marks(const struct engine *e)
{
	struct watermark_tunables t = e->c.tuning.watermark;
	/* half a block less, or what is rounded might never be reached */
	double most = e->fast_blocks ? ((double)e->fast_most - 0.5) / (double)e->fast_blocks : 1;

	if (t.high > most) {
		t.low = t.low > t.high - most ? t.low - (t.high - most) : 0;
		t.high = most;
	}
	return t;
}

double engine_first_fill(const struct engine *e)
{
	double lower = e->c.tuning.watermark.high - reachable_marks(e).high;

	return e->c.tuning.admit.fill > lower ? e->c.tuning.admit.fill - lower : 0;
}

/* What is filled stays: it must leave demotions something to find above the low mark. */
static double fill_share(const struct engine *e)
{
	double most = FILL_BELOW_LOW * reachable_marks(e).low;

	return e->c.fill < most ? e->c.fill : most;
}

/* Without memory for it nothing is foretold. */
static void open_whatif(struct engine *e)
{
	const struct whatif_config c = {
		.heat = e->warmth.kind, .rule = e->c.rule, .blocks = e->shape.blocks, .fast_blocks = e->fast_blocks,
		.fill = fill_share(e), .seed = e->c.seed,
	};

	whatif_close(&e->whatif);
	if (e->senses)
		whatif_open(&e->whatif, &c, &e->c.tuning);
}

static int open_parts(struct engine *e)
{
	int err = book_init(&e->book, e->shape.regions, e->port->aged);

	if (!err)
		err = open_memory(e);
	if (!err && e->fast_blocks)
		err = open_warmth(e);
	if (err)
		return err;
	e->senses = e->port->ops->drain && e->fast_blocks;
	nowhere_begin(e);
	open_whatif(e);
	limits_init(e);
	orders_init(e);
	threshold_init(e);
	err = keep_load(e);
	if (err)
		engine_log(e, ENGINE_WARNING, "%s/wear cannot be used (%s): endurance starts with nothing saved up",
			   e->c.directory, strerror(-err));
	err = scrub_load(e);
	if (err)
		engine_log(e, ENGINE_WARNING, "%s/scrub cannot be used (%s): the next scrub is in %u days",
			   e->c.directory, strerror(-err), e->c.scrub_days);
	return 0;
}

static void release(struct engine *e)
{
	warmth_close(&e->warmth);
	whatif_close(&e->whatif);
	book_exit(&e->book);
	for (size_t i = 0; i < sizeof(e->memory) / sizeof(e->memory[0]); i++)
		free(e->memory[i]);
	memset(e->memory, 0, sizeof(e->memory));
}

int engine_open(struct engine *e, const struct engine_config *c, struct port *port, uint64_t now_ns)
{
	int err;

	memset(e, 0, sizeof(*e));
	e->c = *c;
	e->port = port;
	e->now_ns = e->last_ns = e->opened_ns = now_ns;
	e->prng.state = c->seed;
	err = port->ops->shape(port, &e->shape);
	if (!err)
		err = port->ops->state(port, &e->state);
	if (err)
		return err;
	e->before = e->state;
	find_sides(e);
	err = open_parts(e);
	if (err) {
		engine_log(e, ENGINE_ERROR, "cannot drive the volume: %s", strerror(-err));
		release(e);			/* what is kept was not read yet, and stays */
		return err;
	}
	if (!e->senses)
		engine_log(e, ENGINE_NOTICE, "no sense of single blocks: regions move by age alone, nothing is promoted");
	if (e->idle_because)
		engine_log(e, ENGINE_NOTICE, "nothing moves: %s", e->idle_because);
	return 0;
}

void engine_close(struct engine *e)
{
	if (e->nr_cold)
		warmth_forget_some(&e->warmth, e->cold, e->nr_cold);
	if (e->book.summary && e->state.nr_tiers) {
		keep_save(e, true);
		scrub_save(e);
	}
	release(e);
}

void engine_retune(struct engine *e, const struct engine_config *c)
{
	const struct tuning before = e->c.tuning;
	enum heat_kind heat = e->c.heat;
	uint32_t cache = e->c.cache_blocks;

	for (uint32_t t = 0; t < e->state.nr_tiers; t++)
		if (e->c.endurance[t].drive_writes_per_day <= 0)
			endurance_rested(&e->endurance[t], &c->endurance[t]);
	if (memcmp(&before.epoch, &c->tuning.epoch, sizeof(c->tuning.epoch)))
		epoch_init(&e->epoch, &c->tuning.epoch, e->shape.blocks);
	e->c = *c;
	/* What sized the memory and the files at the start. */
	e->c.tuning.ralt = before.ralt;
	e->c.tuning.shards = before.shards;
	e->c.tuning.miniature = before.miniature;
	e->c.tuning.tracker = before.tracker;
	e->c.heat = heat;
	e->c.cache_blocks = cache;
	tails_limit(e->tails, (uint64_t)(e->c.pin_share * (double)e->fast_blocks));
	threshold_retune(e, &before);
}

/* ---- a tick -------------------------------------------------------------------------- */

/*
 * Which shelves are worth cleaning only the kernel knows, and its janitor cleans when they run short: long before that it
 * must be let in.  Nor does anybody else take blocks out of homes: it begins when one is full, and goes on by itself for a
 * while, driven or not.
 */
static bool janitor_is_needed(const struct engine *e)
{
	for (uint32_t t = 0; t < e->state.nr_tiers; t++) {
		const struct port_tier *tier = &e->state.tier[t];
		/* it cleans, and new writes are delayed, below two more than the reserve */
		uint64_t few = 4 + tier->blocks / SHELF_BLOCKS / 16, cleans = tier->reserve_blocks / SHELF_BLOCKS + 2;

		if (tier->kind == TERRACE_KIND_HOME && !tier->missing && tier->full)
			return true;
		if (tier->kind == TERRACE_KIND_SHELVES && !tier->missing &&
		    tier->free_shelves < (few > cleans ? few : cleans))
			return true;
	}
	return false;
}

/* Says once why the volume is not ours, and that it is when that changes. */
static void tell_claim(struct engine *e, int err)
{
	char who[200] = "";

	if (err == e->claim_error)
		return;
	if (err == -EBUSY && e->port->ops->holders)
		e->port->ops->holders(e->port, who, sizeof(who));
	if (err == -EBUSY)
		engine_log(e, ENGINE_WARNING, "another process drives this volume%s%s: the orders of both are carried out",
			   who[0] ? ": " : "", who);
	else if (err == -EOPNOTSUPP)
		engine_log(e, ENGINE_NOTICE, "this kernel module knows no driver: its janitor works beside us");
	else if (err)
		engine_log(e, ENGINE_WARNING, "the volume cannot be claimed: %s", strerror(-err));
	else
		engine_log(e, ENGINE_NOTICE, "the other driver has gone: the volume is claimed");
	e->claim_error = err;
}

/*
 * Where what went down was read again, or no placement is better than another, nobody knows what should go: the janitor,
 * who goes by age, would take down what is hot.  New blocks overflow, and room is made when nobody is about.
 */
static bool room_waits(const struct engine *e)
{
	return e->rests || e->governor.down.reason == GOVERNOR_REGRET;
}

static bool may_make_room(const struct engine *e)
{
	return room_waits(e) ? limits_idle(e) : governor_allows_down(&e->governor);
}

/*
 * The janitor stays out while we make room, or room waits, and comes back when our choice is not worth its price; we do so
 * once all regions are known.
 */
static void claim(struct engine *e)
{
	bool want = e->c.claim && !e->c.evaluate && !e->idle_because && e->book.complete &&
		    (governor_allows_down(&e->governor) || room_waits(e)) && !janitor_is_needed(e);
	int err;

	if (!want && !e->claimed)
		return;
	err = e->port->ops->claim(e->port, want);
	if (want)
		tell_claim(e, err);
	e->claimed = want && !err;
}

/*
 * Fills that are watched: a tier smaller than 100 blocks has no per cent to spare.  Where room is the janitor's alone
 * promotions go on until it begins, or they would wait for writes to do that: a little beyond, for it counts in parts per
 * thousand.
 */
static struct watermark_tunables marks(const struct engine *e)
{
	struct watermark_tunables t = reachable_marks(e);

	if (!e->claimed && !may_make_room(e)) {
		t.high += JANITOR_STEP;
		return t;
	}
	if (!e->claimed && t.low > 2 * JANITOR_MARGIN) {
		t.high -= JANITOR_MARGIN;
		t.low -= JANITOR_MARGIN;
	}
	return t;
}

/* Room for those that were born hot, too: step by step down to the lower mark they would wait for seconds. */
static uint64_t wanted_by_heirs(const struct engine *e)
{
	uint64_t most = (uint64_t)((double)e->fast_blocks * e->c.tuning.watermark.heirs_share);

	return e->nr_heirs < most ? e->nr_heirs : most;
}

static void move(struct engine *e)
{
	struct watermark_tunables t = marks(e);
	struct watermark_verdict w = watermark_step(&e->watermark, &t, e->fast_used, e->fast_blocks);
	uint64_t high;

	admit_watch_room(&e->filled, &e->c.tuning.admit, engine_first_fill(e), e->fast_used, e->fast_blocks);
	e->room = w.room_blocks;
	high = (uint64_t)(t.high * (double)e->fast_blocks);
	e->above = e->fast_used > high ? e->fast_used - high : 0;
	if (!w.demote_blocks)
		e->vain_ticks = 0;
	if (w.demote_blocks && !may_make_room(e))
		e->stats.held_by_governor++;
	else if (w.demote_blocks && e->book.complete)
		demote(e, w.demote_blocks + wanted_by_heirs(e));
	pack_loose(e);
	if (!e->senses)
		return;
	promote_heirs(e);
	promote(e);
	promote_epoch(e);
}

const char *engine_still(const struct engine *e)
{
	if (e->idle_because)
		return e->idle_because;
	if (e->now_ns < e->room_again_ns && !e->under_way)
		return "the slow tier has no room";
	if (e->refused && !e->under_way && e->now_ns - e->refused_ns < STILL_NS)
		return e->refused;
	/* Without room nothing goes up, either. */
	if (!governor_allows_down(&e->governor) && !may_make_room(e) && (e->above || !governor_allows_up(&e->governor)))
		return governor_reason_text(e->governor.down.reason);
	if (e->vain_ticks && e->above && !e->under_way)
		return "all that is looked at on the fast tier is hot";
	return e->rests && !limits_idle(e) ? governor_reason_text(GOVERNOR_NO_SKEW) : NULL;
}

const char *engine_promotions(const struct engine *e)
{
	if (!e->senses)
		return "no sense of single blocks: nothing is promoted";
	if (governor_allows_up(&e->governor) && !hear_skewed(e))
		return "nothing is promoted: the load shows no skew, or too little of it has been seen";
	return governor_reason_text(e->governor.up.reason);
}

/*
 * Under a uniform load room for new blocks gains nothing: no place of theirs is better than another, and what would go
 * down for them is as likely to be used next.  They overflow to the shelves, which are written in order; room is made when
 * nobody is about, or by the janitor, when shelves run short.
 */
static void rest(struct engine *e)
{
	bool rests = hear_uniform(e);

	if (rests != e->rests)
		engine_log(e, ENGINE_NOTICE, "%s", rests ? "making room waits for idle time: the load is uniform, no placement is better than another" :
			   "room is made again: the load is no longer uniform");
	e->rests = rests;
	/* Then nothing goes up, either: a sample of slow reads shows well enough when that ends. */
	if (e->port->ops->each_slow)
		e->port->ops->each_slow(e->port, !rests);
}

/* A fast tier that grew or shrank has other miniatures, and so has another heat source in its place. */
static void foretell(struct engine *e)
{
	if (e->whatif.c.fast_blocks != e->fast_blocks || e->whatif.c.heat != e->warmth.kind)
		open_whatif(e);
	e->whatif.c.fill = fill_share(e);
	e->whatif.c.rule = e->c.rule;
	whatif_work(&e->whatif, &e->shards, e->stats.accesses, hear_mapped(e));
}

static void upkeep(struct engine *e)
{
	int err;

	if (e->senses)
		open_warmth_again(e);
	if (e->senses)
		heirs_tick(e);
	if (e->senses && e->ticks % WORK_TICKS == 0)
		rest(e);
	if (e->senses && e->ticks % WORK_TICKS == 0)
		warmth_work(&e->warmth, hear_skewed(e) ? fill_share(e) : 0, &e->prng);
	if (e->senses && e->ticks % WORK_TICKS == 0)
		foretell(e);
	if (e->ticks % SAVE_TICKS != SAVE_TICKS - 1 && (e->ticks % SPENT_TICKS || !keep_is_due(e)))
		return;
	err = keep_save(e, false);
	if (err && err != e->save_error)
		engine_log(e, ENGINE_WARNING, "%s/wear cannot be written (%s): no orders are given that write to a tier with a limit on that",
			   e->c.directory, strerror(-err));
	e->save_error = err;
}

/* A tier whose drive begins to fail requests; the kernel tells it by the same rule. */
static void tell_failing(struct engine *e)
{
	for (uint32_t t = 0; t < e->state.nr_tiers; t++) {
		const struct port_tier *tier = &e->state.tier[t];
		uint64_t last = e->failing_ns[t];

		if (tier->io_errors <= e->before.tier[t].io_errors)
			continue;
		e->failing_ns[t] = e->now_ns;
		if (!last || e->now_ns - last >= FAILING_QUIET_NS)
			engine_log(e, ENGINE_ERROR, "tier %u (%s) begins to fail: its drive has failed %llu requests so far",
				   t, tier->class, (unsigned long long)tier->io_errors);
	}
}

static int look(struct engine *e)
{
	int err = e->port->ops->state(e->port, &e->state);

	if (err) {
		e->state = e->before;	/* or the next difference would be all since the start */
		return err;
	}
	find_sides(e);
	limits_tick(e);
	err = orders_collect(e);
	if (!err)
		err = book_tick(&e->book, e->port);
	if (!err)
		err = hear(e);
	gains_tick(e);
	return err;
}

int engine_tick(struct engine *e, uint64_t now_ns)
{
	int err, sent;

	e->now_ns = now_ns;
	if (e->ticks++ % 3 == 0)
		placed_by(e);
	err = look(e);
	if (err == -ENODEV)
		return err;
	claim(e);
	if (!err && !e->idle_because)
		move(e);
	sent = orders_send(e);
	if (!err)
		scrub_tick(e);
	tell_failing(e);
	upkeep(e);
	e->before = e->state;
	e->last_ns = now_ns;
	return err ? err : sent == -EAGAIN ? 0 : sent;
}
