// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Heat of blocks that are nowhere: discards that nobody has heard of.
 *
 * They came while terraced was down, or it was killed before their ranges were written down (hear.c: up to a second), or
 * the sense has lost some.  What a discard leaves is a block without a place.  So after a start, and once in a while when
 * accesses have been lost, all heat is gone through, a little each tick: that of blocks that are nowhere is forgotten.
 *
 *	discarded, down, up		forgotten, when the round comes by
 *	discarded, killed, up		the same; so is the rest of a round that a kill cuts short: the next start begins anew
 *	discarded, written again, up	keeps the old heat, as if it had been overwritten: nothing tells that from a write
 *	placed a moment ago		left alone: its file may have inherited heat before its first write
 *
 * Regions without heat cost nothing, those that seem to be full a look at the book.  That may be behind: the kernel counts
 * some seconds late, and it takes the book a turn to hear of it.  So a second round follows.
 * A clock or list begins cold: there is nothing to forget.
 */
#include <errno.h>
#include <string.h>

#include "loop/engine.h"

/* No tunables: they bound the work of a tick, and of rounds that accesses which are lost all the time would begin. */
#define RECORDS		8192u	/* of RALT's, a tick */
#define STRETCH		(1ull << 20)	/* blocks, a tick, or 1/1024 of them: what RALT has not written yet is sorted for each */
#define LOOKS		8u	/* at regions with heat that are not full: each may read a page of the map */
#define LOST_NS		600000000000ull	/* from one round to the next, where accesses are lost all the time */
#define COUNTED_NS	10000000000ull	/* what was discarded before that the kernel has counted */
#define COLD_MOST	(ENGINE_COLD / 4)	/* the rest of the list is for discards that are heard */

struct look {
	struct engine *e;
	uint32_t left;		/* of them in this tick */
	uint64_t region;	/* whose blocks these are; UINT64_MAX: none yet */
	struct upmask somewhere;
};

void nowhere_begin(struct engine *e)
{
	e->nowhere.going = true;
	e->nowhere.next = 0;
	e->nowhere.began_ns = e->now_ns;
	e->nowhere.again = e->book.turns + 2;
	e->nowhere.lost = e->port->sense ? e->port->sense->lost : 0;
}

static bool is_due(const struct engine *e)
{
	const struct sense *sense = e->port->sense;

	return sense && sense->lost != e->nowhere.lost && e->now_ns - e->nowhere.began_ns >= LOST_NS;
}

/* The turn that is under way has begun too early: the one after it counts. */
static void begin_again(struct engine *e)
{
	if (e->now_ns - e->nowhere.began_ns < COUNTED_NS) {
		e->nowhere.again = e->book.turns + 2;
	} else if (!e->nowhere.going && e->nowhere.again && e->book.turns >= e->nowhere.again) {
		e->nowhere.going = true;
		e->nowhere.next = 0;
		e->nowhere.again = 0;
	}
}

/* False: it is to be looked at later, for no look is left, or the volume is suspended.  What cannot be read stays as it is. */
static bool look_at(struct look *l, uint64_t region)
{
	struct upmask slow = { { 0 } };
	int err;

	memset(&l->somewhere, 0xff, sizeof(l->somewhere));
	l->region = region;
	if (book_mapped(&l->e->book, region) == REGION_BLOCKS)
		return true;
	if (!l->left)
		return false;
	l->left--;
	err = book_masks(l->e->port, region, &l->somewhere, &slow);
	for (uint32_t w = 0; w < UPMASK_WORDS; w++)
		l->somewhere.bits[w] |= slow.bits[w];
	return err != -EBUSY;
}

/* ... and in the region that was looked at. */
static bool is_nowhere(const struct look *l, uint64_t block)
{
	const struct engine *e = l->e;

	return block / REGION_BLOCKS == l->region && block < e->shape.blocks &&
	       !upmask_test(&l->somewhere, block % REGION_BLOCKS) && !tails_have(e->placed[0], block) &&
	       !tails_have(e->placed[1], block);
}

/*
 * As for discards that are heard: where RALT's list fills, what was used once may stay a candidate.  What its filters call hot
 * counts, though its record no longer says so: they are what is asked until a merge.
 */
static bool counts(const struct engine *e, const struct ralt_heat *heat)
{
	return e->nr_cold < warmth_forget_spare(&e->warmth) || heat->stable || warmth_used(&e->warmth, heat->block);
}

/* With it goes all that lies nowhere around it: they share a range, of which there are few.  1: it waits for the next tick. */
static int see_heat(void *ctx, const struct ralt_heat *heat)
{
	uint64_t first = heat->block, end = heat->block;
	struct look *l = ctx;

	if (l->e->nr_cold >= COLD_MOST || (first / REGION_BLOCKS != l->region && !look_at(l, first / REGION_BLOCKS)))
		return 1;
	if (!is_nowhere(l, first) || !counts(l->e, heat))
		return 0;
	while (is_nowhere(l, first - 1))
		first--;
	for (; is_nowhere(l, end); end++)
		;
	hear_nowhere(l->e, first, end - first);
	for (; first < end; first++)
		upmask_set(&l->somewhere, (uint32_t)(first % REGION_BLOCKS));	/* and not once more */
	return 0;
}

void nowhere_tick(struct engine *e)
{
	struct look l = { .e = e, .left = LOOKS, .region = UINT64_MAX };
	uint64_t end;

	if (!e->nowhere.going && is_due(e))
		nowhere_begin(e);
	begin_again(e);
	if (!e->nowhere.going || !e->book.complete || e->warmth.kind != HEAT_RALT || e->nr_cold >= COLD_MOST)
		return;
	end = e->nowhere.next + (e->shape.blocks >> 10 > STRETCH ? e->shape.blocks >> 10 : STRETCH);
	if (end > e->shape.blocks)
		end = e->shape.blocks;
	if (ralt_scan_some(e->warmth.ralt, &e->nowhere.next, end, RECORDS, see_heat, &l) < 0)
		e->nowhere.next += REGION_BLOCKS;	/* what cannot be read does not keep the rest from it */
	e->nowhere.going = e->nowhere.next < e->shape.blocks;
}
