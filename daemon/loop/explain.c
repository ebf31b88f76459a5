// SPDX-License-Identifier: GPL-2.0-or-later
/* The last decisions with their scores and what came of them; see engine.h. */
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
	};
	return d;
}

struct decision *explain_find(struct engine *e, uint64_t number)
{
	struct decision *d = &e->decision[number % ENGINE_DECISIONS];

	return d->number == number && number < e->decisions ? d : NULL;
}

void explain_text(const struct decision *d, char *line, size_t bytes)
{
	int n = snprintf(line, bytes,
			 "decision %llu: %s region %llu for %s: %u down, %u up, %u stay for being hot",
			 (unsigned long long)d->number, mode_names[d->mode < 7 ? d->mode : 0],
			 (unsigned long long)d->region, why_name(d->why), d->goes_down, d->goes_up,
			 d->retained);

	if (d->why == WHY_ROOM && n > 0 && (size_t)n < bytes)
		n += snprintf(line + n, bytes - (size_t)n,
			      "; score %.4g = benefit %.4g / cost %.4g, best of %u",
			      d->score, d->benefit, d->cost, d->looked_at);
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
