// SPDX-License-Identifier: GPL-2.0-or-later
/* The heat sources behind one interface; see heat.h. */
#include "decide/heat.h"

#include <stddef.h>

const char *heat_kind_name(enum heat_kind kind)
{
	static const char *const names[HEAT_KINDS] = { "ralt", "clock", "lru" };

	return kind < HEAT_KINDS ? names[kind] : NULL;
}

int heat_quantile(double score, const double quartiles[3])
{
	int level = 0;

	if (!(score >= 0))
		return -1;
	while (level < 3 && score >= quartiles[level])
		level++;
	return level;
}

/* Trackers with other than 2 bits keep the meaning of the ends: 0 stays 0, the maximum is 3. */
static int clock_level(const struct tracker *tr, uint64_t block, uint32_t generation)
{
	int value = tracker_value(tr, block, generation);

	if (value <= 0)
		return value;
	return (int)(((uint32_t)value * 3 + tr->max_value - 1) / tr->max_value);
}

int heat_level(const struct heat *h, uint64_t block, uint32_t generation)
{
	switch (h->kind) {
	case HEAT_CLOCK:
		return clock_level(h->tracker, block, generation);
	case HEAT_LRU:
		return recency_level(h->recency, block);
	default:
		return heat_quantile(h->ralt->score(h->ralt->ctx, block), h->ralt->quartiles);
	}
}

bool heat_hot(const struct heat *h, uint64_t block, uint32_t generation)
{
	switch (h->kind) {
	case HEAT_CLOCK:
		return mapper_pins(h->mapper, block,
				   tracker_value(h->tracker, block, generation));
	case HEAT_LRU:
		return recency_level(h->recency, block) != RECENCY_NO_LEVEL;
	default:
		return h->ralt->is_hot(h->ralt->ctx, block);
	}
}
