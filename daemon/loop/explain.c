// SPDX-License-Identifier: GPL-2.0-or-later
/* The last decisions, what decided, and what came of them; see engine.h. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "loop/engine.h"

static const char *const mode_names[] = {
	"?", "append", "merge", "raise", "clean", "drop", "scrub",
};

static const char *const status_names[] = {
	"under way", "done", "partly", "no room yet", "cancelled", "failed",
};

const char *why_name(enum why why)
{
	static const char *const names[WHYS] = { "room", "flush", "epoch", "heirs", "loose" };

	return why < WHYS ? names[why] : "?";
}

void engine_log(struct engine *e, enum engine_level level, const char *format, ...)
{
	char line[400];
	va_list args;

	if (!e->c.log)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	e->c.log(e->c.log_ctx, level, line);
}

struct decision *explain_add(struct engine *e, const struct plan *plan)
{
	struct decision *d = &e->decision[e->decisions % ENGINE_DECISIONS];

	*d = (struct decision){
		.number = e->decisions++, .at_ns = e->now_ns, .region = plan->region,
		.why = plan->why, .mode = (uint8_t)plan->mode, .looked_at = plan->looked_at,
		.goes_down = plan->goes_down, .goes_up = plan->goes_up, .retained = plan->retained,
		.hot_too = plan->hot_too, .score = plan->score, .benefit = plan->benefit, .cost = plan->cost,
		.rule = plan->rule, .grounds = plan->grounds,
	};
	return d;
}

struct decision *explain_find(struct engine *e, uint64_t number)
{
	struct decision *d = &e->decision[number % ENGINE_DECISIONS];

	return d->number == number && number < e->decisions ? d : NULL;
}

static int chosen_by(const struct decision *d, char *line, size_t bytes)
{
	switch (d->rule) {
	case CHOOSE_OLDEST:
		return snprintf(line, bytes, "; age %.0f, oldest of %u", d->score - 1, d->looked_at);
	case CHOOSE_RANDOM:
		return snprintf(line, bytes, "; at random, first of %u", d->looked_at);
	case CHOOSE_HOTRAP:
		return snprintf(line, bytes, "; score %.4g = cold / all of the region, best of %u", d->score, d->looked_at);
	default:
		return snprintf(line, bytes, "; score %.4g = benefit %.4g / cost %.4g, best of %u",
				d->score, d->benefit, d->cost, d->looked_at);
	}
}

static int flushed_by(const struct grounds *g, char *line, size_t bytes)
{
	const char *what = g->first_sight ? "admitted at first sight" : "hot";

	if (g->rest)
		return snprintf(line, bytes, "; %u %s, the rest of a batch, %u neighbours", g->found, what, g->neighbours);
	if (g->again)
		return snprintf(line, bytes, "; %u %s, fewer than %.4g, but read slowly again %u times, %u neighbours",
				g->found, what, g->enough, g->again, g->neighbours);
	return snprintf(line, bytes, "; %u %s, %.4g are enough, %u neighbours", g->found, what, g->enough, g->neighbours);
}

static int packed_for(const struct grounds *g, char *line, size_t bytes)
{
	if (g->runs)
		return snprintf(line, bytes, "; %u loose, scattered over %u runs, gain %.4g", g->found, g->runs, g->gain);
	return snprintf(line, bytes, "; %u loose, gain %.4g", g->found, g->gain);
}

static int decided_by(const struct decision *d, char *line, size_t bytes)
{
	const struct grounds *g = &d->grounds;

	switch (d->why) {
	case WHY_ROOM:
		return chosen_by(d, line, bytes);
	case WHY_FLUSH:
		return flushed_by(g, line, bytes);
	case WHY_EPOCH:
		return snprintf(line, bytes, "; %u hot below, estimated %.4g; the epoch may raise %llu",
				g->found, g->estimate, (unsigned long long)g->credit);
	case WHY_HEIR:
		return snprintf(line, bytes, "; of %u heirs and tails that waited", g->found);
	case WHY_LOOSE:
		return packed_for(g, line, bytes);
	default:
		return 0;
	}
}

void explain_text(const struct decision *d, char *line, size_t bytes)
{
	int n = snprintf(line, bytes,
			 "decision %llu: %s region %llu for %s: %u down, %u up, %u stay for being hot",
			 (unsigned long long)d->number, mode_names[d->mode < 7 ? d->mode : 0],
			 (unsigned long long)d->region, why_name(d->why), d->goes_down, d->goes_up,
			 d->retained);

	if (n > 0 && (size_t)n < bytes)
		n += decided_by(d, line + n, bytes - (size_t)n);
	if (d->hot_too && n > 0 && (size_t)n < bytes)
		n += snprintf(line + n, bytes - (size_t)n, "; the oldest, hot or not: only hot blocks were found");
	if (n > 0 && (size_t)n < bytes)
		n += snprintf(line + n, bytes - (size_t)n, "; %s",
			      status_names[d->status < 6 ? d->status : 0]);
	if (d->status && n > 0 && (size_t)n < bytes)
		n += snprintf(line + n, bytes - (size_t)n, ": %u down, %u up, %u dropped, %u raced",
			      d->down, d->up, d->dropped, d->raced);
	if (d->error && n > 0 && (size_t)n < bytes)
		snprintf(line + n, bytes - (size_t)n, ": %s", strerror(-d->error));
}
