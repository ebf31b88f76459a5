// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the policies ask.
 *
 * Filters and prefix sums answer from memory.  A scan reads the pages of the range from
 * every run and merges them with what is still in the buffer, which on a small fast tier is most of what
 * is known; a damaged run met on the way is set aside and the scan goes on without it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decide/prng.h"
#include "ralt/file_store.h"
#include "ralt/page.h"

/* Ranges up to this many blocks are asked block by block: exact but for false positives. */
#define SHORT_RANGE	4096u

/* Records older than the block's last discard are dead, and with them a run without newer ones. */
static bool run_counts(const struct ralt_run *run, uint32_t generation)
{
	return run->footer.applied >= generation;
}

bool ralt_is_hot(const struct ralt *r, uint64_t block)
{
	uint32_t generation = forget_generation(&r->forget, block);

	/* A sampled block's record is whole, current and in memory. */
	if (r->sample_complete && sample_wants(&r->sample, block)) {
		const struct ralt_record *known = sample_find(&r->sample, block);

		return known && ralt_is_hot_record(&r->judge, known);
	}
	for (uint32_t i = r->run_count; i-- > 0;)
		if (run_counts(&r->runs[i], generation) &&
		    run_maybe_hot(&r->runs[i].index, block))
			return true;
	return false;
}

bool ralt_is_used(const struct ralt *r, uint64_t block)
{
	uint64_t bit = mix64(block) & r->filter_bits;

	return r->in_buffer[bit / 64] >> bit % 64 & 1 || ralt_is_hot(r, block);
}

static double dead_part(const struct ralt *r, const struct ralt_run *run, uint64_t first,
			uint64_t end)
{
	double dead = 0;

	for (size_t i = forget_find(&r->forget, first); i < r->forget.count && r->forget.ranges[i].first < end; i++) {
		const struct forget_range *f = &r->forget.ranges[i];
		uint64_t from = f->first > first ? f->first : first;
		uint64_t to = f->end < end ? f->end : end;

		if (f->generation > run->footer.applied)
			dead += run_hot_estimate(&run->index, from, to);
	}
	return dead;
}

/* A block hot in several runs is in every prefix sum: the census says how often on average. */
static double duplicate_factor(const struct ralt *r)
{
	double all = 0, once;

	for (uint32_t i = 0; i < r->run_count; i++)
		all += (double)r->runs[i].footer.hot;
	once = r->tune.census.stable + r->tune.census.fill;
	if (!r->sample_complete || all <= once)
		return 1;
	return once / all;
}

double ralt_hot_size(const struct ralt *r, uint64_t first, uint64_t count)
{
	double hot = 0;

	if (count > SHORT_RANGE)
		return ralt_hot_estimate(r, first, count);
	for (uint64_t block = first; block - first < count; block++)
		hot += ralt_is_hot(r, block);
	return hot;
}

double ralt_hot_estimate(const struct ralt *r, uint64_t first, uint64_t count)
{
	uint64_t end = first + count < first ? UINT64_MAX : first + count;
	double hot = 0;

	for (uint32_t i = 0; i < r->run_count; i++)
		hot += run_hot_estimate(&r->runs[i].index, first, end) -
		       dead_part(r, &r->runs[i], first, end);
	return hot * duplicate_factor(r);
}

struct range_source {
	const struct ralt_run *run;
	struct ralt *store;
	uint8_t *buffer;	/* the page's records of the range */
	uint64_t first;
	uint64_t end;
	uint32_t page;
	uint32_t record;
	uint32_t records;
	bool loaded;
	bool more;		/* the range may go on in the next page */
};

static int load_page(struct range_source *s)
{
	uint32_t from, to;
	uint8_t *page;
	int got = page_cache_get(&s->store->pages, s->run, &s->store->io, s->page, &page);

	if (got < 0)
		return got;
	from = page_find(page, (uint32_t)got, s->first);
	to = page_find(page, (uint32_t)got, s->end);
	s->records = to - from;
	s->record = 0;
	s->more = to == (uint32_t)got;
	memcpy(page_record(s->buffer, 0), page_record(page, from), (size_t)s->records * RALT_RECORD_BYTES);
	s->loaded = true;
	return 0;
}

static int range_next(void *ctx, struct ralt_record *record)
{
	struct range_source *s = ctx;

	for (;;) {
		int err;

		if (s->loaded && s->record < s->records) {
			ralt_record_decode(record, page_record(s->buffer, s->record++));
			record->generation = s->run->footer.applied;
			return 1;
		}
		if (s->loaded && !s->more)
			return 0;
		if (s->loaded)
			s->page++;
		s->loaded = false;
		if (s->page >= s->run->footer.pages ||
		    s->run->index.pages[s->page].first_block >= s->end)
			return 0;
		err = load_page(s);
		if (err)
			return err;
	}
}

struct buffer_source {
	struct ralt_record *record;	/* each block once */
	uint32_t nr;
	uint32_t next;
};

static int buffer_next(void *ctx, struct ralt_record *record)
{
	struct buffer_source *s = ctx;

	if (s->next == s->nr)
		return 0;
	*record = s->record[s->next++];
	return 1;
}

/* A copy: the buffer itself stays in the order of arrival until it is full. */
static int take_buffered(const struct ralt *r, uint64_t first, uint64_t end, struct buffer_source *s)
{
	uint32_t nr = 0;

	*s = (struct buffer_source){ 0 };
	for (uint32_t i = 0; i < r->buffered; i++)
		nr += r->buffer[i].block >= first && r->buffer[i].block < end;
	if (!nr)
		return 0;
	s->record = malloc(nr * sizeof(*s->record));
	if (!s->record)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->buffered; i++)
		if (r->buffer[i].block >= first && r->buffer[i].block < end)
			s->record[s->nr++] = r->buffer[i];
	s->nr = store_fold(&r->judge, s->record, s->nr);
	return 0;
}

struct scan {
	struct range_source sources[RALT_RUNS_MAX];
	struct buffer_source buffered;		/* the newest source */
	struct merge_source merge_sources[RALT_RUNS_MAX + 1];
	struct merge merge;
	uint8_t *pages;
};

static int begin_scan(struct ralt *r, struct scan *s, uint64_t first, uint64_t end)
{
	s->buffered.record = NULL;	/* of the attempt before: freed */
	s->pages = malloc((size_t)r->run_count * 65536 + 1);
	if (!s->pages || take_buffered(r, first, end, &s->buffered))
		return -ENOMEM;
	for (uint32_t i = 0; i < r->run_count; i++) {
		const struct ralt_run *run = &r->runs[i];
		uint32_t page = run_page_of(&run->index, first);

		s->sources[i] = (struct range_source){
			.run = run, .store = r, .buffer = s->pages + (size_t)i * 65536,
			.first = first, .end = end,
			.page = page == run->footer.pages ? 0 : page,
		};
		s->merge_sources[i] = (struct merge_source){ range_next, &s->sources[i] };
	}
	s->merge_sources[r->run_count] = (struct merge_source){ buffer_next, &s->buffered };
	return merge_begin(&s->merge, &r->judge, &r->forget, s->merge_sources, r->run_count + 1);
}

static void end_scan(struct scan *s)
{
	free(s->pages);
	free(s->buffered.record);
}

static struct ralt_heat heat_of(const struct ralt *r, const struct ralt_record *record)
{
	return (struct ralt_heat){
		.block = record->block,
		.score = ralt_score_now(&r->judge, record),
		.counter = ralt_counter_now(&r->judge, record) / 10.0,
		.stable = ralt_is_stable(&r->judge, record),
		.hot = ralt_is_hot_record(&r->judge, record),
	};
}

/* *@next: where to go on; what @see has refused is seen again. */
static int each_record(struct ralt *r, struct scan *s, bool hot_only, uint64_t most, uint64_t *next,
		       ralt_see_fn see, void *ctx)
{
	struct ralt_record record;
	int step, got = 0;

	while ((step = merge_step(&s->merge, &record)) > 0) {
		if (step == 1) {
			struct ralt_heat heat = heat_of(r, &record);

			*next = record.block;
			if (!hot_only || heat.hot)
				got = see(ctx, &heat);
			if (got)
				return got;
			*next = record.block + 1;
		}
		if (s->merge.consumed >= most)
			break;
	}
	if (step >= 0)
		*next = merge_at(&s->merge);
	return step < 0 ? step : 0;
}

static int scan(struct ralt *r, uint64_t *first, uint64_t end, bool hot_only, uint64_t most, ralt_see_fn see, void *ctx)
{
	struct scan *s = malloc(sizeof(*s));
	int got;

	if (!s)
		return -ENOMEM;
	do {
		got = begin_scan(r, s, *first, end);
		if (!got)
			got = each_record(r, s, hot_only, most, first, see, ctx);
		end_scan(s);
		if (got != -EBADMSG)
			break;
		/* The job may be reading the run that goes. */
		job_abort(r);
		store_drop_run(r, s->merge.failed, got);
	} while (r->run_count);
	free(s);
	if (*first > end)
		*first = end;
	return got == -EBADMSG ? 0 : got;
}

int ralt_scan(struct ralt *r, uint64_t first, uint64_t count, bool hot_only,
	      ralt_see_fn see, void *ctx)
{
	uint64_t end = first + count < first ? UINT64_MAX : first + count;

	return scan(r, &first, end, hot_only, UINT64_MAX, see, ctx);
}

int ralt_scan_some(struct ralt *r, uint64_t *first, uint64_t end, uint64_t most, ralt_see_fn see, void *ctx)
{
	return scan(r, first, end, false, most, see, ctx);
}

void ralt_fill(struct ralt *r, double share)
{
	r->tune.fill_share = share < 0 ? 0 : share > 1 ? 1 : share;
}

void ralt_quartiles(struct ralt *r, double out[3])
{
	sample_quartiles(&r->sample, &r->judge, out, r->scratch);
}

static uint64_t disk_bytes(const struct ralt_run *run)
{
	return run->footer.index_at + (uint64_t)run->footer.pages * RALT_INDEX_ENTRY +
	       RALT_FOOTER_BYTES;
}

void ralt_stats(const struct ralt *r, struct ralt_stats *out)
{
	struct sample_census now = sample_census(&r->sample, &r->judge, NULL);

	*out = r->stats;
	out->accesses = r->accesses;
	out->tracked = now.tracked;
	out->hot = now.stable;
	out->fill = now.fill;
	out->hot_limit = r->tune.hot_limit;
	out->physical_limit = tune_physical_limit(&r->tune, &r->sizes, &r->config.tunables);
	out->tunings = r->tune.tunings;
	out->runs = r->run_count;
	out->evicting = r->job.active && r->job.writes && r->job.plan.complete;
	out->forgotten_ranges = (uint32_t)r->forget.count;
	for (uint32_t i = 0; i < r->run_count; i++) {
		out->records += r->runs[i].footer.records;
		out->bytes_on_disk += disk_bytes(&r->runs[i]);
	}
}
