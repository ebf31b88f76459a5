// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Promotion: by flush (slow-read blocks, judged together when enough have come), in
 * read-triggered epochs (the hot blocks of regions that seem to have most of them below), and of blocks that were born hot (heirs.c).
 * All as `raise`: clean slots, whose packed originals stay.
 *
 * A batch with half a run of hot blocks goes up; fewer go back to meet more of their kind, unless they have been read slowly as
 * often as a run has blocks meanwhile: then there may be no more of them, and waiting costs more than a small order. What the limits
 * hold back of a batch goes on with the next tick.
 * An epoch raises no more blocks than reads were slow since it began to be looked for: where more is hot than fits, what it
 * brings up goes down again, and without that bound would come and go for nothing.
 * Under a load without skew nothing goes up: RALT then calls those blocks hot that chance favoured, and
 * each promotion is in vain.
 */
#include <errno.h>
#include <string.h>

#include "decide/prng.h"
#include "decide/radix.h"
#include "loop/engine.h"

/* Of no policy, but of what a tick may take. */
#define LIST_TURN	16	/* so much longer a list takes to estimate a region: it is asked block by block */

struct batch {
	uint64_t block[ENGINE_CACHE];
	uint32_t nr;
	bool first_sight;
	struct grounds grounds;	/* but for what is of one region */
};

static void sort_blocks(uint64_t *block, uint32_t nr)
{
	static uint64_t spare[ENGINE_CACHE > ENGINE_HEIRS ? ENGINE_CACHE : ENGINE_HEIRS];

	radix_sort(block, spare, nr, sizeof(block[0]));
}

static uint64_t room_left(const struct engine *e)
{
	return e->room > e->coming ? e->room - e->coming : 0;
}

/* The blocks of the cache that are hot, ascending. */
static void gather(struct engine *e, struct batch *b)
{
	b->nr = 0;
	b->first_sight = admit_first_sight(&e->c.tuning.admit, &e->filled, e->stats.accesses, hear_mapped(e),
					   shards_reuse(&e->shards));
	for (uint32_t i = 0; i < e->cache.count && b->nr < ENGINE_CACHE; i++) {
		uint64_t block = e->cache.entries[i].block;

		if (b->first_sight || warmth_hot(&e->warmth, block) || tails_have(e->tails, block))
			b->block[b->nr++] = block;
	}
	sort_blocks(b->block, b->nr);
	b->grounds = (struct grounds){ .found = b->nr, .first_sight = b->first_sight };
}

static void keep(struct engine *e, const struct batch *b, uint32_t from)
{
	for (uint32_t i = from; i < b->nr; i++)
		recency_touch(&e->cache, b->block[i]);
}

static void estimate(struct plan *p)
{
	p->write_up = (double)p->goes_up * TERRACE_BLOCK_BYTES;
	p->read_down = p->write_up;
}

/*
 * Where most blocks are hot the others go up before each of them has cost slow reads of its own.  A look reads RALT's
 * runs: where blocks had no neighbours so many times in a row, as many batches are left out.
 */
static void add_neighbours(struct engine *e, bool first_sight, uint64_t room, struct plan *p)
{
	struct engine_lonely *lonely = &e->lonely[mix64(p->region) % ENGINE_LONELY];
	double share = e->c.tuning.flush.neighbours;
	uint32_t most = e->c.tuning.flush.lonely_batches;
	struct warmth_region warm;
	uint32_t more;

	if (!p->goes_up || p->goes_up >= room || share > 1)
		return;
	if (lonely->region != p->region + 1)
		*lonely = (struct engine_lonely){ .region = p->region + 1 };
	if (lonely->left_out < lonely->vain) {
		lonely->left_out++;
		return;
	}
	lonely->left_out = 0;
	e->stats.neighbour_looks++;
	if (warmth_look(&e->warmth, p->region, first_sight, &warm) < 0)
		return;
	for (uint32_t i = 0; first_sight && i < REGION_BLOCKS; i++)
		if (warm.level[i] >= 0)
			upmask_set(&warm.hot, i);
	more = upmask_neighbours(&p->up, &warm.hot, &p->fast, &p->slow, share, (uint32_t)(room - p->goes_up));
	p->goes_up += more;
	p->grounds.neighbours = more;
	lonely->vain = more ? 0 : lonely->vain < most ? lonely->vain + 1 : most;
}

/* Plans the raise of blocks [@from, result) of @b, which are of one region. */
static uint32_t plan_region(struct engine *e, const struct batch *b, uint32_t from, enum why why, struct plan *p,
			    int *err)
{
	uint64_t region = b->block[from] / REGION_BLOCKS, room = room_left(e);
	uint32_t i;

	*p = (struct plan){
		.region = region, .why = why, .mode = TERRACE_MOVE_RAISE,
		.grounds = b->grounds,
	};
	*err = orders_busy(e, region) ? -EBUSY : book_masks(e->port, region, &p->fast, &p->slow);
	for (i = from; i < b->nr && b->block[i] / REGION_BLOCKS == region; i++) {
		uint32_t n = (uint32_t)(b->block[i] % REGION_BLOCKS);

		if (*err || !upmask_test(&p->slow, n) || p->goes_up >= room)
			continue;
		upmask_set(&p->up, n);
		p->goes_up++;
	}
	if (why == WHY_FLUSH)
		add_neighbours(e, b->first_sight, room, p);
	estimate(p);
	return i;
}

/* Of blocks [@from, @end), which @p is for: those that have to wait, because the region is being moved, or for room. */
static void keep_left(struct batch *left, const struct batch *b, uint32_t from, uint32_t end, const struct plan *p, int err)
{
	for (uint32_t i = from; i < end; i++) {
		uint32_t n = (uint32_t)(b->block[i] % REGION_BLOCKS);

		if (err == -EBUSY || (!err && upmask_test(&p->slow, n) && !upmask_test(&p->up, n)))
			left->block[left->nr++] = b->block[i];
	}
}

/* How many of them are settled: the others could not be ordered now.  @left: those in between that were not; or NULL. */
static uint32_t raise_batch(struct engine *e, const struct batch *b, enum why why, struct batch *left)
{
	static struct plan p;
	uint32_t next;
	int err;

	for (uint32_t i = 0; i < b->nr; i = next) {
		if (!room_left(e)) {
			/* They wait for the demotion that this causes. */
			e->watermark.demoting = true;
			return i;
		}
		next = plan_region(e, b, i, why, &p, &err);
		if (!err && p.goes_up && orders_give(e, &p))
			return i;
		if (left)
			keep_left(left, b, i, next, &p, err);
		if (err || !p.goes_up)
			continue;
		e->stats.first_sight += b->first_sight ? p.goes_up : 0;
	}
	return b->nr;
}

/* The rest of a batch that was judged: what has gone up leaves the cache, new ones are judged in their turn. */
static void go_on(struct engine *e)
{
	static struct batch b;
	uint32_t done;

	gather(e, &b);
	b.grounds.rest = true;
	done = raise_batch(e, &b, WHY_FLUSH, NULL);
	for (uint32_t i = 0; i < done; i++)
		recency_forget(&e->cache, b.block[i]);
	e->held = done < b.nr;
}

/* Enough that the hot ones can be a run, or as many as the cache holds. */
static uint32_t enough(const struct engine *e)
{
	uint32_t run = e->c.tuning.flush.run_blocks;

	run += run / 2;
	return run < e->cache.limit ? run : e->cache.limit;
}

static void flush(struct engine *e)
{
	static struct batch b;
	enum flush_verdict verdict;
	uint32_t done;

	gather(e, &b);
	/* No more can be hot than the cache holds. */
	verdict = flush_decide(&e->c.tuning.flush, e->cache.limit, b.nr);
	b.grounds.enough = flush_enough(&e->c.tuning.flush, e->cache.limit);
	if (verdict == FLUSH_KEEP && e->again >= enough(e)) {
		verdict = FLUSH_PROMOTE;
		b.grounds.again = e->again;
	}
	e->stats.flushes++;
	e->stats.flushes_kept += verdict == FLUSH_KEEP;
	e->stats.flushes_dropped += verdict == FLUSH_NOTHING;
	recency_empty(&e->cache);
	e->fresh = e->again = 0;
	if (verdict == FLUSH_PROMOTE) {
		done = raise_batch(e, &b, WHY_FLUSH, NULL);
		keep(e, &b, done);
		e->held = done < b.nr;
	} else if (verdict == FLUSH_KEEP) {
		keep(e, &b, 0);
	}
}

void promote(struct engine *e)
{
	bool full = e->fresh >= enough(e) || e->again >= enough(e);

	if (!full && !e->held)
		return;
	if (governor_allows_up(&e->governor) && hear_skewed(e)) {
		if (full)
			flush(e);
		else
			go_on(e);
		return;
	}
	/* What was read slowly before skew shows waits in the cache, which is bounded: its next read would be slow as well. */
	e->held = false;
	e->stats.held_by_governor++;
	e->fresh = e->again = 0;
}

bool promote_soon(struct engine *e, uint64_t block)
{
	if (e->nr_heirs == ENGINE_HEIRS)
		return false;
	e->heir[e->nr_heirs++] = block;
	return true;
}

bool promote_again(struct engine *e, uint64_t block)
{
	if (!promote_soon(e, block))
		return false;
	e->heir[e->nr_heirs - 1] = e->heir[e->heirs_waited];
	e->heir[e->heirs_waited++] = block;
	return true;
}

void promote_not(struct engine *e, uint64_t block, uint64_t nr)
{
	uint32_t kept = 0, waited = 0;

	for (uint32_t i = 0; i < e->nr_heirs; i++)
		if (e->heir[i] < block || e->heir[i] - block >= nr) {
			waited += i < e->heirs_waited;
			e->heir[kept++] = e->heir[i];
		}
	e->nr_heirs = kept;
	e->heirs_waited = waited;
}

/*
 * Those that have waited may have done so for long: others may lie there now, or they have cooled down.  What has
 * just inherited is not asked for: its heat may be in RALT's buffer, which the filters do not know.
 */
static void drop_cold(struct engine *e)
{
	uint32_t kept = 0;

	if (e->heirs_waited && e->unsettled) {
		warmth_settle(&e->warmth);
		e->unsettled = 0;
	}
	for (uint32_t i = 0; i < e->nr_heirs; i++) {
		uint64_t block = e->heir[i];

		if (i >= e->heirs_waited || tails_have(e->tails, block) ||
		    (!tails_have(e->dead, block) && warmth_hot(&e->warmth, block)))
			e->heir[kept++] = block;
	}
	e->nr_heirs = kept;
	e->heirs_waited = 0;
}

void promote_heirs(struct engine *e)
{
	static struct batch b, left;
	uint32_t done;

	if (!e->nr_heirs || !governor_allows_up(&e->governor) || e->now_ns < e->heirs_again_ns)
		return;
	drop_cold(e);
	/* One order for a region: a second one would find it busy. */
	sort_blocks(e->heir, e->nr_heirs);
	b = (struct batch){ .nr = e->nr_heirs, .grounds.found = e->nr_heirs };
	memcpy(b.block, e->heir, e->nr_heirs * sizeof(b.block[0]));
	left.nr = 0;
	done = raise_batch(e, &b, WHY_HEIR, &left);
	e->nr_heirs = 0;
	for (uint32_t i = 0; i < left.nr; i++)
		promote_again(e, left.block[i]);
	for (uint32_t i = done; i < b.nr; i++)
		promote_again(e, b.block[i]);
}

/* ---- epochs ------------------------------------------------------------------------- */

struct candidate {
	uint64_t region;
	double score;
};

/*
 * About how many hot blocks could come up: as many more as are hot than are fast, or those that were seen below when it
 * was last looked at.
 */
static double missing(struct engine *e, uint64_t region)
{
	const struct terrace_summary *s = &e->book.summary[region];
	uint32_t dirty = book_dirty(s), clean = s->fast > dirty ? s->fast - dirty : 0, below = (uint32_t)s->packed + s->loose;
	double more, seen = e->book.hot_below[region];

	below -= clean < below ? clean : below;
	if (!below)
		return 0;
	more = warmth_hot_estimate(&e->warmth, region) - s->fast;
	if (more < seen)
		more = seen;
	return more < below ? more : below;
}

/* The best ones, best first, each region once. */
struct candidates {
	struct candidate best[EPOCH_LOOKS_MOST];
	uint32_t nr, most;
};

static uint32_t vain_of(uint64_t region)
{
	return (uint32_t)(mix64(region) % ENGINE_VAIN);
}

static void add_candidate(const struct engine *e, struct candidates *c, uint64_t region, double score)
{
	uint32_t vain = vain_of(region), at;

	if (score < 1 || (c->nr == c->most && score <= c->best[c->nr - 1].score))
		return;
	if (e->epoch_vain[vain].region == region + 1 && e->now_ns < e->epoch_vain[vain].until_ns)
		return;
	for (at = 0; at < c->nr; at++)
		if (c->best[at].region == region)
			return;
	at = c->nr < c->most ? c->nr++ : c->nr - 1;
	for (; at && c->best[at - 1].score < score; at--)
		c->best[at] = c->best[at - 1];
	c->best[at] = (struct candidate){ region, score };
}

/* Of the regions whose turn it is in this tick: however large the volume, each has its turn. */
static void estimate_some(struct engine *e, struct candidates *c)
{
	uint64_t turn = e->c.tuning.epoch.turn_regions / (e->warmth.kind == HEAT_LRU ? LIST_TURN : 1);

	if (turn > e->book.regions)
		turn = e->book.regions;
	for (uint64_t i = 0; i < turn; i++) {
		add_candidate(e, c, e->epoch_hand, missing(e, e->epoch_hand));
		e->epoch_hand = (e->epoch_hand + 1) % e->book.regions;
	}
}

/*
 * What was read slowly lately and is hot lies in regions that have more of it: known long before merges have told the
 * estimates.  Some of the promotion cache in each tick.
 */
static void ask_cache(struct engine *e, struct candidates *c)
{
	static uint64_t region[EPOCH_ASKED_MOST];
	uint32_t most = (uint32_t)e->c.tuning.epoch.asked_blocks, turn = e->cache.count < most ? e->cache.count : most, nr = 0;

	for (uint32_t i = 0; i < turn; i++) {
		uint64_t block = e->cache.entries[e->epoch_entry++ % e->cache.count].block;

		if (warmth_hot(&e->warmth, block))
			region[nr++] = block / REGION_BLOCKS;
	}
	sort_blocks(region, nr);
	for (uint32_t i = 0, n; i < nr; i += n) {
		for (n = 1; i + n < nr && region[i + n] == region[i];)
			n++;
		add_candidate(e, c, region[i], n);
	}
}

static void found_nothing(struct engine *e, uint64_t region)
{
	uint32_t at = vain_of(region);

	e->epoch_vain[at].region = region + 1;
	e->epoch_vain[at].until_ns = e->now_ns + (uint64_t)(e->c.tuning.epoch.vain_seconds * 1e9);
}

/* False: no more can be ordered now. */
static bool raise_region(struct engine *e, const struct candidate *c)
{
	static struct plan p;
	struct upmask_input in = { 0 };
	struct upmask_result up;
	struct warmth_region warm;
	uint64_t region = c->region, room = room_left(e), most = room < e->epoch_credit ? room : e->epoch_credit;

	if (orders_busy(e, region))
		return true;
	e->stats.epoch_looks++;
	if (warmth_look(&e->warmth, region, false, &warm) < 0 || book_masks(e->port, region, &in.fast, &in.packed)) {
		found_nothing(e, region);
		return true;
	}
	in.hot = warm.hot;
	tails_mask(e->banned, region, &in.banned);
	upmask_build(&up, &in, (uint32_t)(most < REGION_BLOCKS ? most : REGION_BLOCKS));
	e->book.hot_below[region] = (uint16_t)(up.promoted + up.refused);
	if (up.refused && most == room)
		e->watermark.demoting = true;
	if (!up.promoted && !up.refused)
		found_nothing(e, region);
	if (!up.promoted)
		return !up.refused;
	p = (struct plan){
		.region = region, .why = WHY_EPOCH, .mode = TERRACE_MOVE_RAISE, .up = up.up,
		.fast = in.fast, .slow = in.packed, .goes_up = up.promoted,
		.grounds = { .found = up.promoted + up.refused, .estimate = c->score, .credit = e->epoch_credit },
	};
	/* What is fast now may not be so when this is carried out: it was not asked for. */
	for (uint32_t w = 0; w < UPMASK_WORDS; w++)
		p.up.bits[w] &= ~in.fast.bits[w];
	estimate(&p);
	if (orders_give(e, &p))
		return false;
	e->book.hot_below[region] = (uint16_t)up.refused;
	e->epoch_credit -= up.promoted;
	return !up.refused;
}

/* Estimates smear what is hot over its neighbours: looks that find nothing become fewer, and go elsewhere. */
static uint32_t looks(const struct engine *e)
{
	uint32_t most = (uint32_t)e->c.tuning.epoch.looks >> (e->epoch_vain_ticks < 3 ? e->epoch_vain_ticks : 3);

	return most ? most : 1;
}

void promote_epoch(struct engine *e)
{
	struct candidates c = { .most = looks(e) };
	uint64_t raised = e->stats.orders[WHY_EPOCH];

	if (!e->senses || !epoch_moves(&e->epoch) || !e->epoch_credit || !governor_allows_up(&e->governor) ||
	    !hear_skewed(e))
		return;
	estimate_some(e, &c);
	ask_cache(e, &c);
	for (uint32_t i = 0; i < c.nr; i++)
		if (!raise_region(e, &c.best[i]))
			break;
	if (c.nr)
		e->epoch_vain_ticks = e->stats.orders[WHY_EPOCH] > raised ? 0 : e->epoch_vain_ticks + 1;
}
