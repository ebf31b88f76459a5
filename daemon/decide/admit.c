// SPDX-License-Identifier: GPL-2.0-or-later
/* Skew or not, from reuse alone; see admit.h. */
#include "decide/admit.h"

static const struct tunable rows[] = {
	TUNABLE(TUNABLE_DOUBLE, admit_tunables, skew, 2.0, 1.0, 1000.0,
		"reuse, in multiples of a uniform load's, that allows promotion at first sight"),
	TUNABLE(TUNABLE_DOUBLE, admit_tunables, lasting, 0.2, 0.0, 1000.0,
		"what must last from period to period, where an LRU sees no skew, for moves to be worth trying; 0: it is not asked"),
	TUNABLE(TUNABLE_DOUBLE, admit_tunables, uniform, 1.25, 0.0, 1000.0,
		"reuse, in multiples of a uniform load's, up to which room for new blocks waits for idle time; 0: never"),
	TUNABLE(TUNABLE_DOUBLE, admit_tunables, uniform_hits, 64, 1, 1e12,
		"hits that a uniform load would have shown by then, from which it is known for one"),
	TUNABLE(TUNABLE_DOUBLE, admit_tunables, fill, 0.9, 0.0, 1.0,
		"fill of the fast tier up to which it is allowed"),
	TUNABLE(TUNABLE_DOUBLE, admit_tunables, emptied, 0.25, 0.0, 1.0,
		"share of that to which a tier that was so full must have been emptied for it to be allowed again"),
	TUNABLE(TUNABLE_U64, admit_tunables, min_accesses, 1000, 1, 1e12,
		"accesses before the reuse means anything"),
};
TUNABLE_TABLE(admit_tunable_table, "admit", rows);

/* e^-x = (e^-(x / 2^k))^(2^k) with a short series for the small argument. */
static double exp_minus(double x)
{
	double sum = 1, term = 1;
	int halvings = 0;

	if (x > 700)
		return 0;
	while (x > 0.25) {
		x /= 2;
		halvings++;
	}
	for (int i = 1; i < 12; i++) {
		term *= -x / i;
		sum += term;
	}
	while (halvings--)
		sum *= sum;
	return sum;
}

double admit_uniform_reuse(double passes)
{
	if (passes < 1e-4)
		return passes / 2;
	return 1 - (1 - exp_minus(passes)) / passes;
}

void admit_watch_room(struct admit_room *r, const struct admit_tunables *t, double fill, uint64_t used, uint64_t blocks)
{
	if ((double)used >= fill * (double)blocks)
		r->been_full = true;
	else if (blocks > r->blocks || (double)used < fill * t->emptied * (double)blocks)
		r->been_full = false;
	r->blocks = blocks;
}

bool admit_first_sight(const struct admit_tunables *t, const struct admit_room *r, uint64_t accesses,
		       uint64_t mapped_blocks, double reuse)
{
	double uniform;

	if (r->been_full || accesses < t->min_accesses || !mapped_blocks)
		return false;
	uniform = admit_uniform_reuse((double)accesses / (double)mapped_blocks);
	return reuse >= t->skew * uniform && reuse > 0;
}

/*
 * While little was accessed, an LRU's hits are bounded by the reuse, and so is a uniform load's:
 * the smaller of the two is what a load without skew would show.
 */
static double hits_without_skew(uint64_t accesses, uint64_t mapped_blocks, uint64_t fast_blocks)
{
	double share = (double)fast_blocks / (double)mapped_blocks;
	double uniform = admit_uniform_reuse((double)accesses / (double)mapped_blocks);

	return uniform < share ? uniform : share;
}

/* Of hits, or of misses: a fast tier of half the volume cannot have twice its share of hits. */
static bool is_multiple(double hit, double share, double factor)
{
	return hit > 0 && (hit >= factor * share || (1 - hit) * factor <= 1 - share);
}

bool admit_skewed(const struct admit_tunables *t, uint64_t accesses, uint64_t mapped_blocks,
		  double ghost_hit, double lasting, uint64_t fast_blocks)
{
	if (accesses < t->min_accesses || !mapped_blocks)
		return false;
	if (t->lasting > 0 && lasting >= t->lasting && fast_blocks < mapped_blocks)
		return true;
	return is_multiple(ghost_hit, hits_without_skew(accesses, mapped_blocks, fast_blocks), t->skew);
}

/*
 * Hits that a uniform load would have shown: what is seen is off by their root. Where blocks are left out of the sample, what
 * stands in for these (shards.h) is off by the root of all that was sampled, whatever the share of the hits: then it is so
 * many hits as would be off by as much.
 */
static double hits_told(struct admit_sample of, double share)
{
	return of.all ? of.sampled * share : of.sampled * share * share;
}

/*
 * As soon as so many hits would have been seen that another load's would stand out; or after two passes over the fast
 * tier, which show as many as there will be where it is small.
 */
static bool is_told(const struct admit_tunables *t, uint64_t accesses, double hits, uint64_t fast_blocks)
{
	return accesses >= t->min_accesses && (accesses >= 2 * fast_blocks || hits >= t->uniform_hits);
}

/* Of a load that has been called uniform: half way to skew, or half of that once the noise is half of what it may be. */
static double end_of_uniform(const struct admit_tunables *t, double hits)
{
	return t->uniform + (t->skew - t->uniform) / (hits >= 4 * t->uniform_hits ? 4 : 2);
}

bool admit_uniform(const struct admit_tunables *t, uint64_t accesses, struct admit_sample of, uint64_t mapped_blocks,
		   double ghost_hit, uint64_t fast_blocks, bool before)
{
	double share, hits;

	if (fast_blocks >= mapped_blocks || t->uniform <= 0)
		return false;
	share = hits_without_skew(accesses, mapped_blocks, fast_blocks);
	hits = hits_told(of, share);
	/* What has been told holds while the sample says less, having become one. */
	return (before || is_told(t, accesses, hits, fast_blocks)) &&
	       !is_multiple(ghost_hit, share, before ? end_of_uniform(t, hits) : t->uniform);
}
