// SPDX-License-Identifier: GPL-2.0-or-later
/* RALT's constants and what they amount to on a given fast tier; see tunables.h. */
#include "ralt/tunables.h"

#include <errno.h>

static const struct tunable rows[] = {
	TUNABLE(TUNABLE_DOUBLE, ralt_tunables, alpha, 0.999, 0.5, 0.9999,
		"decay of a score per tick"),
	TUNABLE(TUNABLE_DOUBLE, ralt_tunables, tick_share, 0.1, 0.0001, 10,
		"gamma: a tick is this share of the fast tier accessed"),
	TUNABLE(TUNABLE_DOUBLE, ralt_tunables, evict_share, 0.1, 0.001, 0.5,
		"beta: how far below its limit an eviction goes"),
	TUNABLE(TUNABLE_DOUBLE, ralt_tunables, counter_step, 2.6, 0.1, 25,
		"delta c: added to a record's counter by an access"),
	TUNABLE(TUNABLE_DOUBLE, ralt_tunables, counter_max, 5, 0.1, 25.5,
		"c max: most a counter can reach"),
	TUNABLE(TUNABLE_DOUBLE, ralt_tunables, period_share, 0.7, 0.001, 100,
		"R: counters fall by 1 per this share of the fast tier accessed"),
	TUNABLE(TUNABLE_DOUBLE, ralt_tunables, min_hot_share, 0.05, 0, 1,
		"L_hs: least hot-set limit"),
	TUNABLE(TUNABLE_DOUBLE, ralt_tunables, max_hot_share, 0.7, 0.001, 1,
		"R_hs: greatest hot-set limit"),
	TUNABLE(TUNABLE_DOUBLE, ralt_tunables, candidate_share, 0.1, 0.001, 1,
		"D_hs: room for unstable records, as a share of max_hot_share"),
	TUNABLE(TUNABLE_DOUBLE, ralt_tunables, initial_hot_share, 0.5, 0.001, 1,
		"hot-set limit before the first tuning"),
	TUNABLE(TUNABLE_DOUBLE, ralt_tunables, physical_ratio, 4, 1, 1000,
		"r: records kept, as a multiple of the hot-set limit"),
	TUNABLE(TUNABLE_DOUBLE, ralt_tunables, tracked_share, 2, 0, 1000,
		"records kept at least, as a multiple of the fast tier"),
	TUNABLE(TUNABLE_DOUBLE, ralt_tunables, fill_score, 1.5, 0, 10000,
		"least score of a block that fills the fast tier beyond the hot set"),
	TUNABLE(TUNABLE_U32, ralt_tunables, fanout, 10, 2, 100,
		"T: growth from one level to the next"),
	TUNABLE(TUNABLE_U32, ralt_tunables, young_runs, 4, 1, 64,
		"flushed buffers that are merged into level 1 together"),
	TUNABLE(TUNABLE_U32, ralt_tunables, bloom_bits, 20, 1, 64,
		"bloom filter bits per hot block"),
	TUNABLE(TUNABLE_U32, ralt_tunables, samples, 32768, 64, 1 << 24,
		"N: records sampled to find thresholds and sizes"),
	TUNABLE(TUNABLE_U32, ralt_tunables, buffer_records, 65536, 64, 1 << 24,
		"unsorted buffer; lost by a crash, so heat loses this many accesses"),
	TUNABLE(TUNABLE_U32, ralt_tunables, page_bytes, 16384, 4096, 65536,
		"page of a run: unit of reading and of a bloom filter; a power of two"),
	TUNABLE(TUNABLE_U32, ralt_tunables, forget_ranges, 4096, 16, 1 << 20,
		"discarded ranges remembered before their records must be dropped"),
};
TUNABLE_TABLE(ralt_tunable_table, "ralt", rows);

static const struct tunable *row_of(size_t offset)
{
	for (size_t i = 0; i < ralt_tunable_table.count; i++)
		if (rows[i].offset == offset)
			return &rows[i];
	return NULL;
}

int ralt_tunables_check(const struct ralt_tunables *t, const struct tunable **bad)
{
	size_t offset;
	int err = tunable_check(&ralt_tunable_table, t, bad);

	if (err)
		return err;
	if (t->page_bytes & (t->page_bytes - 1))
		offset = offsetof(struct ralt_tunables, page_bytes);
	else if (t->min_hot_share > t->max_hot_share)
		offset = offsetof(struct ralt_tunables, min_hot_share);
	else if (t->counter_step > t->counter_max)
		offset = offsetof(struct ralt_tunables, counter_step);
	else
		return 0;
	if (bad)
		*bad = row_of(offset);
	return -EINVAL;
}

static uint64_t share(uint64_t blocks, double part)
{
	uint64_t n = (uint64_t)((double)blocks * part + 0.5);

	return n ? n : 1;
}

void ralt_sizes_of(struct ralt_sizes *s, const struct ralt_tunables *t, uint64_t fast_blocks)
{
	s->fast_blocks = fast_blocks;
	s->tick_accesses = share(fast_blocks, t->tick_share);
	s->period_accesses = share(fast_blocks, t->period_share);
	s->min_hot = share(fast_blocks, t->min_hot_share);
	s->max_hot = share(fast_blocks, t->max_hot_share);
	s->candidates = share(fast_blocks, t->candidate_share * t->max_hot_share);
	s->initial_hot = share(fast_blocks, t->initial_hot_share);
}
