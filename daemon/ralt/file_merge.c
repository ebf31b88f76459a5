// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Merges in steps.
 *
 *	begin	readers on the inputs, a writer for the output
 *	step	records through merge -> evict -> settle -> writer
 *	finish	output synced; manifest names it instead of the inputs;
 *		inputs closed and unlinked; output opened
 *
 * Killed anywhere before the manifest: the inputs are still named and complete, the
 * output is a leftover.  After it: the inputs are leftovers.
 *
 * A complete merge is RALT's eviction: it sees every record whole, drops those below the
 * physical threshold, and fills a new sample in passing.  Inputs are closed before the
 * output is opened: two sets of filters at once would double the memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ralt/file_store.h"

static void release(struct ralt *r, bool finished)
{
	struct merge_job *job = &r->job;

	for (uint32_t i = 0; i < job->plan.inputs; i++)
		run_reader_end(&job->readers[i]);
	if (job->writes)
		run_writer_end(&job->writer, finished);
	free(job->sample_memory);
	memset(job, 0, sizeof(*job));
}

void job_abort(struct ralt *r)
{
	if (r->job.active)
		release(r, false);
}

static int open_sources(struct ralt *r, struct merge_source *sources, uint64_t *records)
{
	struct merge_job *job = &r->job;
	uint32_t opened = 0;
	int err = 0;

	*records = 0;
	while (opened < job->plan.inputs && !err) {
		const struct ralt_run *run = &r->runs[job->plan.input[opened]];

		sources[opened] = (struct merge_source){ run_reader_next, &job->readers[opened] };
		*records += run->footer.records;
		err = run_reader_begin(&job->readers[opened++], run, &r->io);
	}
	/* release() ends as many readers as there are inputs. */
	job->plan.inputs = opened;
	return err;
}

static int open_output(struct ralt *r, uint64_t records)
{
	struct run_footer start = {
		.store = r->store,
		.id = r->next_run++,
		.page_bytes = r->config.tunables.page_bytes,
		.applied = r->generation,
	};

	r->job.writes = true;
	return run_writer_begin(&r->job.writer, &r->io, r->dir, &r->judge, &start,
				r->config.tunables.bloom_bits, records);
}

static int start_sample(struct ralt *r, uint64_t records)
{
	struct merge_job *job = &r->job;
	uint32_t limit = r->config.tunables.samples;

	/* With a sample that is complete the number of blocks is known, not just of records. */
	if (r->sample_complete && r->tune.census.tracked > 0 &&
	    r->tune.census.tracked < (double)records)
		records = (uint64_t)r->tune.census.tracked;
	job->sample_memory = malloc(sample_bytes(limit));
	if (!job->sample_memory)
		return -ENOMEM;
	sample_init(&job->sample, limit, sample_shift_for(limit, records), job->sample_memory);
	return 0;
}

/* The damaged input, if that is what failed, leaves the store: the next merge goes without it. */
static int give_up(struct ralt *r, int err, bool reading)
{
	uint32_t input = r->job.plan.input[r->job.merge.failed];

	release(r, false);
	if (reading && err == -EBADMSG && input < r->run_count) {
		store_drop_run(r, input, err);
		return 0;
	}
	store_report(r, RALT_WRITE_FAILED, NULL, err);
	return err;
}

static int begin(struct ralt *r, bool writes)
{
	struct merge_source sources[RALT_RUNS_MAX];
	struct merge_job *job = &r->job;
	int err = open_sources(r, sources, &job->records);

	job->active = true;
	if (!err && writes)
		err = open_output(r, job->records);
	if (!err && job->plan.complete)
		err = start_sample(r, job->records);
	if (err)
		return give_up(r, err, false);
	err = merge_begin(&job->merge, &r->judge, &r->forget, sources, job->plan.inputs);
	return err ? give_up(r, err, true) : 0;
}

static void list_runs(const struct ralt *r, struct level_run *runs)
{
	for (uint32_t i = 0; i < r->run_count; i++)
		runs[i] = (struct level_run){ r->runs[i].level, r->runs[i].footer.records };
}

int job_begin_planned(struct ralt *r)
{
	struct level_run runs[RALT_RUNS_MAX];
	struct merge_plan plan;

	list_runs(r, runs);
	plan_merge(&plan, &r->config.tunables, runs, r->run_count);
	if (!plan.inputs)
		return 0;
	/* Only eviction counts as complete: it flushed the buffer first. */
	plan.complete = false;
	r->job.plan = plan;
	return begin(r, true);
}

int job_begin_complete(struct ralt *r)
{
	struct level_run runs[RALT_RUNS_MAX];
	struct merge_job *job = &r->job;
	double limit = (double)tune_physical_limit(&r->tune, &r->sizes, &r->config.tunables);
	struct ralt_judge all = r->judge;

	list_runs(r, runs);
	plan_complete_merge(&job->plan, &r->config.tunables, runs, r->run_count);
	r->next_eviction = r->accesses + r->sizes.tick_accesses;
	/* On disk each has its record, whoever has its heat. */
	all.passed_on = NULL;
	if (r->sample_complete && r->tune.census.tracked > limit)
		job->physical = sample_kth(&r->sample, &all,
					   (1 - r->config.tunables.evict_share) * limit,
					   r->scratch);
	return begin(r, true);
}

/*
 * After opening: counts every record once, so that the sample is complete again.  Accesses meanwhile go into the new
 * sample as well, those before must be in the runs.
 */
int job_begin_census(struct ralt *r)
{
	struct level_run runs[RALT_RUNS_MAX];

	list_runs(r, runs);
	plan_complete_merge(&r->job.plan, &r->config.tunables, runs, r->run_count);
	return begin(r, false);
}

static int take(struct ralt *r, struct ralt_record *record)
{
	struct merge_job *job = &r->job;

	if (!ralt_is_above(&r->judge, record, &job->physical)) {
		job->dropped++;
		return 0;
	}
	/* A part of a record must keep what it knows: the other parts decide what it means. */
	if (job->plan.complete)
		ralt_record_settle(&r->judge, record);
	if (job->sample_memory)
		sample_add_older(&job->sample, &r->judge, record);
	if (!job->writes)
		return 0;
	r->stats.records_written++;
	return run_writer_add(&job->writer, record);
}

/* The inputs are neighbours in the list, so the output takes their place. */
static int commit_output(struct ralt *r)
{
	struct merge_job *job = &r->job;
	struct manifest_run runs[RALT_RUNS_MAX];
	uint32_t n = 0, next = 0;

	for (uint32_t i = 0; i < r->run_count; i++) {
		if (next < job->plan.inputs && job->plan.input[next] == i) {
			if (!next++)
				runs[n++] = (struct manifest_run){ job->writer.footer.id,
								   job->plan.level };
			continue;
		}
		runs[n++] = (struct manifest_run){ r->runs[i].id, r->runs[i].level };
	}
	return store_commit_with(r, runs, n);
}

static void remove_inputs(struct ralt *r, const struct merge_plan *plan)
{
	uint32_t n = 0, next = 0;

	for (uint32_t i = 0; i < r->run_count; i++) {
		char name[RUN_NAME_BYTES];

		if (next < plan->inputs && plan->input[next] == i) {
			run_name(r->runs[i].id, name);
			run_close(&r->runs[i]);
			file_unlink(&r->io, r->dir, name);
			/* A place for the output, kept where the first input was. */
			if (!next++)
				r->runs[n++] = (struct ralt_run){ .fd = -1 };
			continue;
		}
		r->runs[n++] = r->runs[i];
	}
	r->run_count = n;
}

static void purge_forgotten(struct ralt *r)
{
	uint32_t applied = r->generation;

	for (uint32_t i = 0; i < r->run_count; i++)
		if (r->runs[i].footer.applied < applied)
			applied = r->runs[i].footer.applied;
	forget_purge(&r->forget, applied);
}

static void adopt_sample(struct ralt *r)
{
	struct merge_job *job = &r->job;

	if (!job->sample_memory)
		return;
	free(r->sample_memory);
	r->sample = job->sample;
	r->sample_memory = job->sample_memory;
	job->sample_memory = NULL;
	r->sample_complete = true;
	sample_mark_hot(&r->sample, &r->judge);
	r->tune.census = sample_census(&r->sample, &r->judge, NULL);
}

static int open_result(struct ralt *r, uint32_t at, uint64_t id, uint32_t level)
{
	char name[RUN_NAME_BYTES];
	int err = run_open(&r->runs[at], &r->io, r->dir, r->store, id, level);

	if (!err)
		return 0;
	run_name(id, name);
	for (uint32_t i = at + 1; i < r->run_count; i++)
		r->runs[i - 1] = r->runs[i];
	r->run_count--;
	store_commit(r);
	store_set_aside(r, name, err);
	return err;
}

static int finish(struct ralt *r)
{
	struct merge_job *job = &r->job;
	struct merge_plan plan = job->plan;
	uint64_t id = job->writer.footer.id;
	int err;

	if (!job->writes) {
		adopt_sample(r);
		release(r, true);
		return 0;
	}
	err = run_writer_finish(&job->writer);
	if (!err)
		err = commit_output(r);
	if (err)
		return give_up(r, err, false);
	adopt_sample(r);
	r->stats.merges++;
	r->stats.evictions += job->dropped > 0;
	release(r, true);
	remove_inputs(r, &plan);
	err = open_result(r, plan.input[0], id, plan.level);
	purge_forgotten(r);
	return err;
}

int job_step(struct ralt *r, uint64_t records)
{
	struct merge *m = &r->job.merge;
	uint64_t before = m->consumed;
	struct ralt_record record;
	int got = 1, err = 0;

	/* By what is read: of what is forgotten nothing comes out. */
	while (m->consumed - before < records && !err) {
		got = merge_step(m, &record);
		if (got <= 0)
			break;
		err = got == 1 ? take(r, &record) : 0;
	}
	r->stats.merged += m->consumed - before;
	if (err)
		return give_up(r, err, false);
	if (got < 0)
		return give_up(r, got, true);
	return got ? 1 : finish(r);
}

/*
 * Eviction is due when there are more blocks than may be kept, when their records take
 * much more room than that (duplicates), or when the filters call many blocks hot that
 * no longer are.  At most once a tick, whatever the estimates say.
 */
static bool eviction_due(const struct ralt *r)
{
	const struct ralt_tunables *t = &r->config.tunables;
	double limit = (double)tune_physical_limit(&r->tune, &r->sizes, t);
	double slack = 1 + t->evict_share;
	uint64_t records = 0;

	if (!r->sample_complete || !r->run_count || r->accesses < r->next_eviction)
		return false;
	for (uint32_t i = 0; i < r->run_count; i++)
		records += r->runs[i].footer.records;
	if (r->tune.census.tracked > limit * slack)
		return true;
	if (r->run_count > 1 && (double)records > 2 * limit * slack)
		return true;
	limit = (double)r->tune.hot_limit;
	if (limit < r->tune.fill_share * (double)r->config.fast_blocks)
		limit = r->tune.fill_share * (double)r->config.fast_blocks;
	return r->tune.census.stale > t->evict_share * limit;
}

/* Forgotten ranges leave when all that was written before them has been rewritten: long before there is no room for more. */
static bool purge_due(struct ralt *r)
{
	if (r->forget.count <= r->forget.limit / 2)
		return false;
	purge_forgotten(r);
	return r->forget.count > r->forget.limit / 2;
}

/* A run that was damaged has ended the count: it begins anew without it. */
static int begin_census_again(struct ralt *r)
{
	int err = store_flush(r);

	if (!err && r->run_count)
		return job_begin_census(r);
	if (!err) {
		r->sample_complete = true;
		r->tune.census = sample_census(&r->sample, &r->judge, NULL);
	}
	return err;
}

static int begin_due(struct ralt *r)
{
	int err;

	if (!r->sample_complete && r->accesses >= r->next_census)
		return begin_census_again(r);
	if (!eviction_due(r) && !purge_due(r))
		return job_begin_planned(r);
	err = store_flush(r);
	return err || !r->run_count ? err : job_begin_complete(r);
}

int ralt_work(struct ralt *r, uint64_t records)
{
	int err = r->job.active ? 0 : begin_due(r);

	if (!err && !r->job.active)
		return 0;
	if (!err)
		err = job_step(r, records);
	if (err < 0 && !r->sample_complete)
		r->next_census = r->accesses + r->sizes.tick_accesses;
	return err < 0 ? err : 1;
}
