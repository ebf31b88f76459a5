// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Heat of blocks that are nowhere: discards that nobody has heard of.
 *
 * They came while terraced was down, or it was killed before their ranges were written down (hear.c: up to a second), or
 * the sense has lost some.  What a discard leaves is a block without a place.  So after a start, and once in a while when
 * accesses have been lost, all regions are gone through, a few each tick: blocks that are nowhere, but have heat, lose it.
 *
 *	discarded, down, up		forgotten, when the round comes by
 *	discarded, killed, up		the same; so is the rest of a round that a kill cuts short: the next start begins anew
 *	discarded, written again, up	keeps the old heat, as if it had been overwritten: nothing tells that from a write
 *	placed a moment ago		left alone: its file may have inherited heat before its first write
 *
 * Regions that are full cost nothing, others a look into RALT's files, and those with heat a question.  A clock or list begins cold: there is
 * nothing to forget.
 */
#include <string.h>

#include "loop/engine.h"

/* No tunables: they bound the work of a tick, and of rounds that accesses which are lost all the time would begin. */
#define SKIPS		4096u	/* full regions, a tick */
#define EMPTY_LOOKS	16u	/* at regions that seem to hold nothing */
#define LOOKS		8u	/* into others: each reads RALT's runs, and may read a page of the map */
#define LOST_NS		600000000000ull	/* from one round to the next, where accesses are lost all the time */
#define COLD_MOST	(ENGINE_COLD / 4)	/* the rest of the list is for discards that are heard */

void nowhere_begin(struct engine *e)
{
	e->nowhere.going = true;
	e->nowhere.next = 0;
	e->nowhere.began_ns = e->now_ns;
	e->nowhere.lost = e->port->sense ? e->port->sense->lost : 0;
}

static bool is_due(const struct engine *e)
{
	const struct sense *sense = e->port->sense;

	return sense && sense->lost != e->nowhere.lost && e->now_ns - e->nowhere.began_ns >= LOST_NS;
}

static int see_heat(void *ctx, const struct ralt_heat *heat)
{
	struct upmask *has = ctx;

	upmask_set(has, (uint32_t)(heat->block % REGION_BLOCKS));
	return 0;
}

static bool is_placed(const struct engine *e, uint64_t block)
{
	return tails_have(e->placed[0], block) || tails_have(e->placed[1], block);
}

/* Runs of blocks of one region that are nowhere, if one of them has heat: they share a range, of which there are few. */
static void forget_runs(struct engine *e, uint64_t region, const struct upmask *somewhere, const struct upmask *heat)
{
	uint64_t first = region * REGION_BLOCKS, nr = 0;
	bool has = false;

	for (uint32_t i = 0; i <= REGION_BLOCKS; i++) {
		uint64_t block = first + i;

		if (i < REGION_BLOCKS && block < e->shape.blocks && !upmask_test(somewhere, i) && !is_placed(e, block)) {
			has |= upmask_test(heat, i);
			nr++;
			continue;
		}
		if (has)
			hear_nowhere(e, block - nr, nr);
		has = false;
		nr = 0;
	}
}

/*
 * RALT first: most regions have no heat, its pages come one after the other, and the map is not read for nothing.
 * What cannot be read now is left until the next round: it will not be waited for.
 */
static void look_into(struct engine *e, uint64_t region)
{
	struct upmask somewhere, slow, heat = { { 0 } };

	if (ralt_scan(e->warmth.ralt, region * REGION_BLOCKS, REGION_BLOCKS, false, see_heat, &heat) ||
	    !upmask_count(&heat) || book_masks(e->port, region, &somewhere, &slow))
		return;
	for (uint32_t w = 0; w < UPMASK_WORDS; w++)
		somewhere.bits[w] |= slow.bits[w];
	if (upmask_count(&somewhere) < REGION_BLOCKS)
		forget_runs(e, region, &somewhere, &heat);
}

void nowhere_tick(struct engine *e)
{
	uint32_t skips = SKIPS, empty = EMPTY_LOOKS, looks = LOOKS;

	if (!e->nowhere.going && is_due(e))
		nowhere_begin(e);
	if (!e->nowhere.going || !e->book.complete || e->warmth.kind != HEAT_RALT)
		return;
	while (e->nowhere.next < e->book.regions && skips && empty && looks && e->nr_cold < COLD_MOST) {
		uint64_t region = e->nowhere.next++;
		uint32_t mapped = book_mapped(&e->book, region);

		*(mapped == REGION_BLOCKS ? &skips : mapped ? &looks : &empty) -= 1;
		if (mapped < REGION_BLOCKS)
			look_into(e, region);
	}
	e->nowhere.going = e->nowhere.next < e->book.regions;
}
