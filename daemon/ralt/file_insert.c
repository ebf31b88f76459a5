// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Accesses in, buffer out.
 *
 * A full buffer is sorted, its duplicates merged, and written as a run of level 0.
 * Every flush also pushes the current merge along, by a multiple of what came in
 * that exceeds the write amplification of leveling, and more where many runs wait: so
 * merges keep up even if nobody calls ralt_work().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decide/prng.h"
#include "decide/radix.h"
#include "ralt/file_store.h"

/* Records merged per record flushed: T / 2 rewrites per level and a few levels. */
#define WORK_PER_RECORD		16u

void store_set_time(struct ralt *r)
{
	uint64_t tick = r->sizes.tick_accesses, period = r->sizes.period_accesses;
	uint64_t next_tick = (r->accesses / tick + 1) * tick;
	uint64_t next_period = (r->accesses / period + 1) * period;

	r->judge.now = ralt_time_of(&r->sizes, r->accesses);
	r->next_change = next_tick < next_period ? next_tick : next_period;
}

/*
 * The members of the hot set must not outgrow its limit by much between two looks, and
 * a look costs a walk through the sample: a quarter of D_hs, at most a buffer, or an access per 4 samples.
 */
static void store_tune(struct ralt *r)
{
	uint64_t pause = r->sizes.candidates / 4;

	if (pause > r->buffer_limit)
		pause = r->buffer_limit;
	if (pause < r->sample.count / 4 + 64)
		pause = r->sample.count / 4 + 64;
	r->next_tuning = r->accesses + pause;
	if (r->sample_complete)
		tune_step(&r->tune, &r->judge, &r->config.tunables, &r->sample, r->scratch);
}

static int by_block(const void *a, const void *b)
{
	const struct ralt_record *x = a, *y = b;

	return x->block < y->block ? -1 : x->block > y->block;
}

static bool is_older(const struct ralt_record *a, const struct ralt_record *b)
{
	return a->generation != b->generation ? a->generation < b->generation : a->tick <= b->tick;
}

static void sort_by_block(struct ralt_record *record, uint32_t nr)
{
	struct ralt_record *spare = malloc(nr * sizeof(*spare));

	_Static_assert(offsetof(struct ralt_record, block) == 0, "what is sorted by");
	if (spare)
		radix_sort(record, spare, nr, sizeof(*record));
	else
		qsort(record, nr, sizeof(*record), by_block);
	free(spare);
}

uint32_t store_fold(const struct ralt_judge *judge, struct ralt_record *record, uint32_t nr)
{
	uint32_t kept = 0;

	if (!nr)
		return 0;
	sort_by_block(record, nr);
	for (uint32_t i = 1; i < nr; i++) {
		struct ralt_record *last = &record[kept];

		if (last->block != record[i].block) {
			record[++kept] = record[i];
		} else if (is_older(last, &record[i])) {
			ralt_record_merge(judge, &record[i], last);
			*last = record[i];
		} else {
			ralt_record_merge(judge, last, &record[i]);
		}
	}
	return kept + 1;
}

static int write_buffer(struct ralt *r, struct run_writer *w)
{
	struct run_footer start = {
		.store = r->store,
		.id = r->next_run++,
		.page_bytes = r->config.tunables.page_bytes,
		.applied = r->generation,
	};
	int err = run_writer_begin(w, &r->io, r->dir, &r->judge, &start,
				   r->config.tunables.bloom_bits, r->buffered);

	for (uint32_t i = 0; i < r->buffered && !err; i++)
		err = run_writer_add(w, &r->buffer[i]);
	return err ? err : run_writer_finish(w);
}

static int add_young_run(struct ralt *r)
{
	struct ralt_run *run = &r->runs[r->run_count];
	struct run_writer w;
	uint64_t id = r->next_run;
	int err = write_buffer(r, &w);

	if (!err)
		err = run_open(run, &r->io, r->dir, r->store, id, 0);
	if (!err) {
		r->run_count++;
		err = store_commit(r);
		if (err) {
			r->run_count--;
			run_close(run);
		}
	}
	run_writer_end(&w, !err);
	return err;
}

/*
 * A merge has to end before the runs written meanwhile are too many: the fewer may still come, the more of it goes with
 * each.  But never all at once, for whoever inserts waits: what takes longer still costs accesses, see make_room().
 */
static uint64_t pace(const struct ralt *r)
{
	uint64_t least = (uint64_t)WORK_PER_RECORD * r->buffer_limit, most = (uint64_t)RALT_STEP_MOST * r->buffer_limit;
	uint64_t left = r->job.active ? r->job.records - r->job.merge.consumed : 0, step;

	step = left / ((RALT_RUNS_MAX - r->run_count) / 2 + 1) + 1;
	return step < least ? least : step > most ? most : step;
}

/*
 * Whoever is stopped or killed again and again before a merge has ended leaves run after run.  While one goes on that
 * will make room nothing can be written: -EBUSY.
 */
static int make_room(struct ralt *r)
{
	uint64_t until = r->stats.merged + (uint64_t)RALT_STEP_MOST * r->buffer_limit;
	int more = 0;

	while (r->run_count == RALT_RUNS_MAX && more >= 0 && r->stats.merged < until) {
		if (!r->job.active)
			more = job_begin_planned(r);
		if (more >= 0)
			more = r->job.active ? job_step(r, until - r->stats.merged) : -ENOSPC;
	}
	return more < 0 ? more : r->run_count < RALT_RUNS_MAX ? 0 : -EBUSY;
}

void store_empty_buffer(struct ralt *r)
{
	r->buffered = 0;
	memset(r->in_buffer, 0, (r->filter_bits + 1) / 8);
}

int store_flush(struct ralt *r)
{
	uint32_t accesses = r->buffered;
	int err;

	r->buffered = store_fold(&r->judge, r->buffer, r->buffered);
	if (!r->buffered)
		return store_commit(r);
	err = make_room(r);
	if (!err)
		err = add_young_run(r);
	if (!err) {
		r->stats.records_written += r->buffered;
		store_empty_buffer(r);
		return 0;
	}
	if (err != -EBUSY)
		store_report(r, RALT_WRITE_FAILED, NULL, err);
	/* Room by folding may be enough to wait for better times; if not, let go. */
	if (r->buffered > r->buffer_limit / 2) {
		store_report(r, RALT_DROPPED, NULL, err);
		r->stats.dropped += accesses;
		store_empty_buffer(r);
	}
	return err;
}

int ralt_flush(struct ralt *r)
{
	return store_flush(r);
}

static int insert(struct ralt *r, const struct ralt_record *record)
{
	uint64_t bit = mix64(record->block) & r->filter_bits;
	int err;

	r->buffer[r->buffered++] = *record;
	r->in_buffer[bit / 64] |= 1ull << bit % 64;
	sample_add_newer(&r->sample, &r->judge, record);
	if (r->job.sample_memory)
		sample_add_newer(&r->job.sample, &r->judge, record);
	if (r->accesses >= r->next_tuning)
		store_tune(r);
	if (r->buffered < r->buffer_limit)
		return 0;
	err = store_flush(r);
	if (err)
		return err;
	/* A merge that fails keeps its inputs: the store works on, with more runs to ask. */
	err = ralt_work(r, pace(r));
	return err < 0 ? err : 0;
}

int ralt_insert(struct ralt *r, uint64_t block, uint32_t generation)
{
	struct ralt_record record;

	if (block >= RALT_BLOCK_LIMIT)
		return -ERANGE;
	if (++r->accesses >= r->next_change)
		store_set_time(r);
	if (generation > r->generation)
		generation = r->generation;
	if (generation < forget_generation(&r->forget, block)) {
		r->stats.stale++;
		return 0;
	}
	record = ralt_record_access(&r->judge, block, generation);
	return insert(r, &record);
}

int ralt_inherit(struct ralt *r, struct ralt_heat *heat)
{
	struct ralt_record record;
	double tenths = heat->counter * 10 + 0.5;

	if (heat->block >= RALT_BLOCK_LIMIT)
		return -ERANGE;
	if (!(heat->score > 0) || !(tenths >= 0))
		return -EINVAL;
	record = ralt_record_access(&r->judge, heat->block, r->generation);
	record.score = (float)heat->score;
	record.counter = tenths >= r->judge.counter_max ? r->judge.counter_max : (uint8_t)tenths;
	record.tag = heat->stable;
	heat->hot = ralt_is_hot_record(&r->judge, &record);
	return insert(r, &record);
}

uint32_t ralt_generation(const struct ralt *r)
{
	return r->generation;
}

static void drop_dead_from_buffer(struct ralt *r)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < r->buffered; i++)
		if (r->buffer[i].generation >= forget_generation(&r->forget, r->buffer[i].block))
			r->buffer[kept++] = r->buffer[i];
	r->buffered = kept;
}

uint32_t ralt_forget_room(const struct ralt *r)
{
	size_t room = r->forget.limit > r->forget.count ? r->forget.limit - r->forget.count : 0;

	/* Each may split one that is there: two more. */
	return (uint32_t)(room / 2);
}

uint32_t ralt_forget_spare(const struct ralt *r)
{
	size_t spare = r->forget.limit / 4;

	return (uint32_t)(spare > r->forget.count ? spare - r->forget.count : 0);
}

static int add_range(struct ralt *r, const struct ralt_range *range)
{
	uint64_t end = range->first + range->count;

	if (!range->count)
		return 0;
	return forget_add(&r->forget, range->first, end < range->first ? UINT64_MAX : end, r->generation);
}

int ralt_forget(struct ralt *r, const struct ralt_range *ranges, uint32_t count)
{
	int err = 0;

	if (count > ralt_forget_room(r))
		return -ENOSPC;
	/* One a second lasts for 136 years. */
	r->generation++;
	for (uint32_t i = 0; i < count && !err; i++)
		err = add_range(r, &ranges[i]);
	drop_dead_from_buffer(r);
	sample_forget(&r->sample, &r->forget);
	if (r->job.sample_memory)
		sample_forget(&r->job.sample, &r->forget);
	if (r->job.active)
		merge_forget_changed(&r->job.merge);
	return err ? err : store_commit(r);
}
