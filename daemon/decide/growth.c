// SPDX-License-Identifier: GPL-2.0-or-later
/* Moments that thin out as they grow old; see growth.h. */
#include "decide/growth.h"

#include <string.h>

/* Every other one goes; from a week on, the oldest. */
static void make_room(struct growth *g)
{
	uint32_t kept = 0;

	if (g->apart_ns * GROWTH_MOMENTS >= GROWTH_WEEK_NS) {
		memmove(g->at_ns, g->at_ns + 1, (GROWTH_MOMENTS - 1) * sizeof(g->at_ns[0]));
		memmove(g->used, g->used + 1, (GROWTH_MOMENTS - 1) * sizeof(g->used[0]));
		g->nr--;
		return;
	}
	for (uint32_t i = 0; i < g->nr; i += 2, kept++) {
		g->at_ns[kept] = g->at_ns[i];
		g->used[kept] = g->used[i];
	}
	g->nr = kept;
	g->apart_ns *= 2;
}

void growth_note(struct growth *g, uint64_t now_ns, uint64_t used)
{
	if (!g->apart_ns)
		g->apart_ns = GROWTH_FIRST_NS;
	if (g->nr && now_ns < g->at_ns[g->nr - 1] + g->apart_ns)
		return;
	if (g->nr == GROWTH_MOMENTS)
		make_room(g);
	g->at_ns[g->nr] = now_ns;
	g->used[g->nr++] = used;
}

uint64_t growth_window_ns(const struct growth *g)
{
	return g->nr ? g->at_ns[g->nr - 1] - g->at_ns[0] : 0;
}

double growth_days_left(const struct growth *g, uint64_t room)
{
	uint64_t window = growth_window_ns(g);
	uint64_t first = g->used[0], last = g->nr ? g->used[g->nr - 1] : 0;

	if (!window || last <= first)
		return -1;
	return (double)room / (double)(last - first) * (double)window / (double)GROWTH_DAY_NS;
}
