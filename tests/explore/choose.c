// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which of the writes that are not durable yet does a power cut leave?
 *
 * State 0 of a moment has none, state 1 all. The others are drawn: one kind of
 * write alone, or all but it; one drive's alone; one write alone, or missing;
 * the first so many; each by the toss of a coin; the same with torn ones. The
 * drive's contract allows every subset and, in each, every tear between its
 * atomic units. A state follows from seed, moment and number alone.
 */
#include <string.h>

#include "explore.h"

enum { ONE_KIND, BUT_ONE_KIND, ONE_DRIVE, ONE_ALONE, ONE_MISSING, FIRST_SO_MANY, COINS, TORN, TORN_ONE, NR_WAYS };

struct draw {
	u64 random;
	u32 way, pick;
	u32 of;			/* the write, drive or kind that was picked */
};

static u32 below(struct draw *d, u32 n)
{
	d->random = stamp_mix(d->random);
	return n ? (d->random >> 8) % n : 0;
}

static void all(struct world *w, enum fate fate)
{
	for (u32 k = 0; k < w->nr_pending; k++)
		w->pending[k].fate = fate;
}

static u32 drive_of(const struct world *w, u32 k)
{
	return w->log->record[w->pending[k].at]->drive;
}

static enum fate coin(struct draw *d, u32 percent)
{
	return below(d, 100) < percent ? FATE_WHOLE : FATE_LOST;
}

static enum fate drawn(const struct world *w, struct draw *d, u32 k)
{
	const u32 share[] = { 25, 50, 75, 90 };

	switch (d->way) {
	case ONE_KIND:
		return w->pending[k].kind == w->pending[d->of].kind ? FATE_WHOLE : FATE_LOST;
	case BUT_ONE_KIND:
		return w->pending[k].kind == w->pending[d->of].kind ? FATE_LOST : FATE_WHOLE;
	case ONE_DRIVE:
		return drive_of(w, k) == drive_of(w, d->of) ? FATE_WHOLE : FATE_LOST;
	case ONE_ALONE:
		return k == d->of ? FATE_WHOLE : FATE_LOST;
	case ONE_MISSING:
		return k == d->of ? FATE_LOST : FATE_WHOLE;
	case FIRST_SO_MANY:
		return k < d->of ? FATE_WHOLE : FATE_LOST;
	case TORN:
		return below(d, 3) ? coin(d, share[d->pick % 4]) : FATE_TORN;
	case TORN_ONE:
		return k == d->of ? FATE_TORN : coin(d, share[d->pick % 4]);
	default:
		return coin(d, share[d->pick % 4]);
	}
}

static const char *describe(const struct world *w, const struct draw *d)
{
	static char text[80];
	const char *kind = write_kind_names[w->pending[d->of].kind];

	switch (d->way) {
	case ONE_KIND:
		snprintf(text, sizeof(text), "only writes of kind %s", kind);
		break;
	case BUT_ONE_KIND:
		snprintf(text, sizeof(text), "all but kind %s", kind);
		break;
	case ONE_DRIVE:
		snprintf(text, sizeof(text), "only those of %s", w->image[drive_of(w, d->of)].name);
		break;
	case ONE_ALONE:
		snprintf(text, sizeof(text), "only write %u", d->of);
		break;
	case ONE_MISSING:
		snprintf(text, sizeof(text), "all but write %u", d->of);
		break;
	case FIRST_SO_MANY:
		snprintf(text, sizeof(text), "the first %u", d->of);
		break;
	default:
		snprintf(text, sizeof(text), "%s", d->way == COINS ? "a random subset" : d->way == TORN ? "a random subset, torn" :
			 "a random subset and a torn write");
	}
	return text;
}

const char *choose(struct world *w, u64 seed, u32 k)
{
	struct draw d = { .random = stamp_mix(seed + k) };

	if (k < 2 || !w->nr_pending) {
		all(w, k ? FATE_WHOLE : FATE_LOST);
		return k ? "all of them" : "none of them";
	}
	d.way = below(&d, NR_WAYS);
	d.pick = below(&d, 1000);
	/* the newest are those that the moment is about */
	d.of = below(&d, 2) ? w->nr_pending - 1 - below(&d, w->nr_pending < 4 ? w->nr_pending : 4) : below(&d, w->nr_pending);
	for (u32 n = 0; n < w->nr_pending; n++) {
		w->pending[n].fate = drawn(w, &d, n);
		w->pending[n].seed = stamp_mix(d.random + n);
	}
	return describe(w, &d);
}
