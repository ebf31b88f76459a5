// SPDX-License-Identifier: GPL-2.0-or-later
/* The resident sample as all there is; see small.h. */
#include "ralt/small.h"

#include <errno.h>
#include <string.h>

#define LARGE	8u	/* shift from which on so few accesses are in the sample that looks cost nothing */

size_t ralt_small_bytes(uint32_t blocks)
{
	/* One more than there are blocks: it is never full, so its rate stays 1. */
	return sample_bytes(blocks + 1) + (blocks + 1) * sizeof(double);
}

int ralt_small_init(struct ralt_small *r, const struct ralt_tunables *t, uint64_t fast_blocks, uint32_t blocks,
		    uint32_t shift, void *mem, size_t bytes)
{
	int err = ralt_tunables_check(t, NULL);

	if (err)
		return err;
	if (!mem || bytes < ralt_small_bytes(blocks))
		return -ENOMEM;
	memset(r, 0, sizeof(*r));
	r->tunables = *t;
	r->shift = shift;
	ralt_sizes_of(&r->sizes, t, fast_blocks);
	ralt_decay_init(&r->decay, t->alpha);
	ralt_judge_init(&r->judge, t, &r->sizes, &r->decay);
	tune_init(&r->tune, &r->sizes);
	sample_init(&r->sample, blocks + 1, 0, mem);
	r->scratch = (double *)((char *)mem + sample_bytes(blocks + 1));
	return 0;
}

void ralt_small_resize(struct ralt_small *r, uint64_t fast_blocks)
{
	uint64_t tick = r->sizes.tick_accesses, period = r->sizes.period_accesses;

	ralt_sizes_of(&r->sizes, &r->tunables, fast_blocks);
	r->sizes.tick_accesses = tick;
	r->sizes.period_accesses = period;
}

/*
 * As often as the store does, which spares itself walks through its sample: between two of them the hot set outgrows its
 * limit, and on a small fast tier that is much.  A small volume has a large share of its blocks here: then rather less often.
 */
static void look(struct ralt_small *r)
{
	uint64_t pause = r->sizes.candidates / 4, sampled = (uint64_t)r->sample.count << r->shift, least;

	least = ((sampled < r->tunables.samples ? sampled : r->tunables.samples) / 4 + 64) >> r->shift;
	if (r->shift < LARGE && least < r->sample.count / 4)
		least = r->sample.count / 4;
	r->next_tuning = r->accesses + (pause > least ? pause : least) + 1;
	tune_step(&r->tune, &r->judge, &r->tunables, &r->sample, r->scratch);
}

void ralt_small_touch(struct ralt_small *r, uint64_t block)
{
	struct ralt_record record;

	r->accesses++;
	r->judge.now = ralt_time_of(&r->sizes, r->accesses);
	record = ralt_record_access(&r->judge, block, 0);
	sample_add_newer(&r->sample, &r->judge, &record);
	if (r->accesses >= r->next_tuning)
		look(r);
}

void ralt_small_forget(struct ralt_small *r, uint64_t block)
{
	sample_drop(&r->sample, block);
}

void ralt_small_fill(struct ralt_small *r, double share)
{
	r->tune.fill_share = share < 0 ? 0 : share > 1 ? 1 : share;
}

bool ralt_small_is_hot(const struct ralt_small *r, uint64_t block)
{
	const struct ralt_record *record = sample_find(&r->sample, block);

	return record && ralt_is_hot_record(&r->judge, record);
}

double ralt_small_score(const struct ralt_small *r, uint64_t block)
{
	const struct ralt_record *record = sample_find(&r->sample, block);

	return record ? ralt_score_now(&r->judge, record) : -1;
}

void ralt_small_quartiles(struct ralt_small *r, double out[3])
{
	sample_quartiles(&r->sample, &r->judge, out, r->scratch);
}
