// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Jobs: what a thread reads through while it writes new files.  See files.h for when one ends
 * and when it was a compaction.
 */
#include "sense/jobs.h"

#include <string.h>

#define AHEAD		(2 * TERRACE_FILE_STEP)
#define FLUSH_BYTES	(2 * TERRACE_FILE_STEP)	/* more than what was read can account for */

static struct file_job *job_of(struct files *f, uint32_t thread)
{
	for (uint32_t i = 0; i < FILES_JOBS; i++)
		if (f->job[i].serial && !f->job[i].ended && f->job[i].thread == thread)
			return &f->job[i];
	return NULL;
}

static struct file_part *part_of(struct file_part *part, uint32_t nr, const struct file_id *id)
{
	for (uint32_t i = 0; i < nr; i++)
		if (file_is(&part[i].id, id))
			return &part[i];
	return NULL;
}

static void drop_part(struct file_part *part, uint32_t *nr, uint32_t i)
{
	memmove(&part[i], &part[i + 1], (--*nr - i) * sizeof(*part));
}

/* ... and what crossings say of it; those behind it are numbered anew. */
static void drop_crossings(struct file_job *job, uint32_t i, bool is_output)
{
	uint32_t kept = 0;

	for (uint32_t k = 0; k < job->nr_crossings; k++) {
		struct file_crossing c = job->crossing[k];
		uint16_t *n = is_output ? &c.output : &c.input;

		if (*n == i && !is_output)
			continue;
		/* What was read beside an output that is none was read at the end of the one before it. */
		if (*n == i)
			c.at = i ? UINT64_MAX : 0;
		*n = (uint16_t)(*n - (*n > i || (*n == i && i)));
		job->crossing[kept++] = c;
	}
	job->nr_crossings = kept;
}

static void drop_input(struct file_job *job, uint32_t i)
{
	drop_crossings(job, i, false);
	drop_part(job->input, &job->nr_inputs, i);
}

static void drop_output(struct file_job *job, uint32_t i)
{
	job->given -= i < job->given;
	drop_crossings(job, i, true);
	drop_part(job->output, &job->nr_outputs, i);
}

static struct file_job *job_writing(const struct files *f, const struct file_id *id, uint32_t *number)
{
	for (uint32_t i = 0; i < FILES_JOBS; i++) {
		const struct file_job *job = &f->job[i];
		const struct file_part *p = job->serial && !job->ended ?
					    part_of((struct file_part *)job->output, job->nr_outputs, id) : NULL;

		if (!p || !p->done)
			continue;
		*number = (uint32_t)(p - job->output);
		return (struct file_job *)job;
	}
	return NULL;
}

const struct file_job *files_job_of_output(const struct files *f, const struct file_id *id, uint32_t *number)
{
	return job_writing(f, id, number);
}

void files_given(struct files *f, const struct file_id *id)
{
	uint32_t number;
	struct file_job *job = job_writing(f, id, &number);

	if (job && job->given <= number)
		job->given = number + 1;
}

/* The index behind a table's data is not read in passing. */
static bool through(const struct file_part *p)
{
	return p->read >= p->size - p->size / 8;
}

static bool all_through(const struct file_job *job)
{
	for (uint32_t i = 0; i < job->nr_inputs; i++)
		if (!through(&job->input[i]))
			return false;
	return job->nr_inputs > 0;
}

static void busy(struct files *f, struct file_job *job, bool yes)
{
	if (job->busy == yes)
		return;
	job->busy = yes;
	if (f->tell.busy)
		f->tell.busy(f->tell.ctx, job->thread, yes);
}

/* ---- the end of a job ------------------------------------------------------------------- */

/* Its inputs have died, or some have and no more is to be expected. */
static void report(struct files *f, struct file_job *job)
{
	busy(f, job, false);
	for (uint32_t i = job->nr_inputs; i-- > 0;)
		if (!job->input[i].done)
			drop_input(job, i);
	if (job->ended && job->nr_inputs && job->nr_outputs) {
		f->stats.compactions++;
		if (f->tell.compaction)
			f->tell.compaction(f->tell.ctx, job);
	}
	memset(job, 0, sizeof(*job));
}

static void end(struct files *f, struct file_job *job)
{
	busy(f, job, false);
	for (uint32_t i = job->nr_inputs; i-- > 0;)
		if (!through(&job->input[i]))
			drop_input(job, i);
	for (uint32_t i = job->nr_outputs; i-- > 0;)
		if (!job->output[i].done)
			drop_output(job, i);
	if (!job->nr_inputs || !job->nr_outputs) {
		memset(job, 0, sizeof(*job));
		return;
	}
	job->ended = true;
	f->stats.jobs++;
	if (f->tell.job)
		f->tell.job(f->tell.ctx, job);
	for (uint32_t i = 0; i < job->nr_inputs; i++)
		if (!job->input[i].done)
			return;
	report(f, job);
}

static struct file_job *make(struct files *f, uint32_t thread)
{
	struct file_job *oldest = NULL, *job = NULL;

	/* Rather one that only reads: a scan. */
	for (uint32_t i = 0; i < FILES_JOBS && !job; i++) {
		struct file_job *one = &f->job[i];

		if (!one->serial)
			job = one;
		else if (!oldest || (!one->nr_outputs && oldest->nr_outputs) ||
			 (!one->nr_outputs == !oldest->nr_outputs && one->serial < oldest->serial))
			oldest = one;
	}
	if (!job) {
		f->stats.forgotten_jobs++;
		report(f, oldest);
		job = oldest;
	}
	job->serial = ++f->serial;
	job->thread = thread;
	return job;
}

/* ---- events ------------------------------------------------------------------------------ */

static bool may_be_table(const struct file *file)
{
	return file->kind == FILE_TABLE || file->kind == FILE_UNKNOWN;
}

void jobs_created(struct files *f, struct file *file)
{
	struct file_job *job = job_of(f, file->thread);
	struct file_part *p;

	if (!may_be_table(file))
		return;
	if (job && job->synced && !job->open_outputs && job->nr_outputs) {
		end(f, job);
		job = NULL;
	}
	if (!job)
		job = make(f, file->thread);
	file->reads_before = job->reads;
	if (job->nr_outputs == FILES_OUTPUTS) {
		f->stats.cut_jobs++;
		return;
	}
	p = &job->output[job->nr_outputs++];
	*p = (struct file_part){ .id = file->id };
	memcpy(p->name, file->name, sizeof(p->name));
	job->open_outputs++;
	job->synced = false;
}

/* A flush reads nothing, so it is never told. */
void jobs_written(struct files *f, struct file *file)
{
	struct file_job *job = file->open && !file->told && f->tell.growing ? job_of(f, file->thread) : NULL;

	if (!job || !job->nr_inputs || !part_of(job->output, job->nr_outputs, &file->id))
		return;
	file->told = true;
	f->tell.growing(f->tell.ctx, job, file);
}

/*
 * LevelDB: its one thread flushes in the middle of a compaction, never reads ahead by direct I/O, and always syncs the
 * manifest between two compactions; and it may close an output early, just when an input has been read through.
 */
static bool is_leveldb(const struct file *file)
{
	size_t n = strlen(file->name);

	return n > 4 && !strcmp(file->name + n - 4, ".ldb");
}

/*
 * Written without a read meanwhile, and from nothing read before: what has been read ahead (direct I/O:
 * megabytes) may fill whole outputs.
 */
static bool is_flush(const struct file_job *job, const struct file *file)
{
	return job->reads == file->reads_before &&
	       (!job->nr_inputs || is_leveldb(file) || job->written_bytes + file->size > job->read_bytes + FLUSH_BYTES);
}

void jobs_closed(struct files *f, const struct file *file)
{
	struct file_job *job = job_of(f, file->thread);
	struct file_part *p = job ? part_of(job->output, job->nr_outputs, &file->id) : NULL;
	bool flushed;

	if (!p || p->done)
		return;
	p->done = true;
	p->size = file->size;
	job->open_outputs--;
	flushed = is_flush(job, file);
	if (flushed || file->astray || !file->size) {
		f->stats.flushes += flushed && !file->astray && file->size;
		job->flushed = flushed;
		drop_output(job, (uint32_t)(p - job->output));
	} else {
		job->written_bytes += file->size;
	}
	if (!job->nr_inputs && !job->nr_outputs)
		memset(job, 0, sizeof(*job));
}

void jobs_renamed(struct files *f, const struct file *file)
{
	for (uint32_t i = 0; i < FILES_JOBS; i++) {
		struct file_job *job = &f->job[i];
		struct file_part *p = job->serial ? part_of(job->output, job->nr_outputs, &file->id) : NULL;

		if (p)
			memcpy(p->name, file->name, sizeof(p->name));
	}
}

static struct file_part *input(struct files *f, struct file_job *job, const struct file *file)
{
	struct file_part *p = part_of(job->input, job->nr_inputs, &file->id);

	if (p)
		return p;
	if (job->nr_inputs == FILES_INPUTS) {
		f->stats.cut_jobs++;
		return NULL;
	}
	p = &job->input[job->nr_inputs++];
	*p = (struct file_part){ .id = file->id };
	memcpy(p->name, file->name, sizeof(p->name));
	return p;
}

/* One per input, output and growth of the output: how far it was read meanwhile. */
static void add_crossing(struct file_job *job, const struct file_crossing *c)
{
	for (uint32_t k = job->nr_crossings; k-- > 0;) {
		struct file_crossing *last = &job->crossing[k];

		if (last->output != c->output || last->at != c->at)
			break;
		if (last->input != c->input)
			continue;
		if (c->end > last->end)
			last->end = c->end;
		return;
	}
	job->crossing[job->nr_crossings++] = *c;
}

/* No room: growth is told in steps of twice the size from now on. */
static void thin_crossings(struct file_job *job)
{
	uint32_t nr = job->nr_crossings;

	job->coarse++;
	job->nr_crossings = 0;
	for (uint32_t k = 0; k < nr; k++) {
		struct file_crossing c = job->crossing[k];

		c.at -= c.at % ((uint64_t)TERRACE_FILE_STEP << job->coarse);
		add_crossing(job, &c);
	}
}

static void cross(struct file_job *job, const struct file_part *in, uint64_t written,
		  const struct terrace_file_event *e)
{
	struct file_crossing c = {
		.input = (uint16_t)(in - job->input),
		.output = (uint16_t)(job->nr_outputs ? job->nr_outputs - 1 : 0),
	};

	/* A piece that was read at once has not been consumed yet, but all before it has; a row of small reads has. */
	c.end = e->to - e->from > AHEAD ? e->from : e->to;
	while (job->nr_crossings == FILES_CROSSINGS && job->coarse < FILES_COARSE)
		thin_crossings(job);
	if (job->nr_crossings == FILES_CROSSINGS)
		return;
	c.at = written - written % ((uint64_t)TERRACE_FILE_STEP << job->coarse);
	add_crossing(job, &c);
}

void jobs_read(struct files *f, const struct file *file, const struct terrace_file_event *e)
{
	struct file_job *job = job_of(f, e->thread);
	const struct file *output;
	struct file_part *p;

	if (file->open || !may_be_table(file))
		return;
	/* What this job wrote may be what the next one reads. */
	if (job && !e->from && job->nr_outputs && !job->open_outputs &&
	    (job->synced || (!is_leveldb(file) && all_through(job)))) {
		end(f, job);
		job = NULL;
	}
	if (job && part_of(job->output, job->nr_outputs, &file->id))
		return;
	p = job ? part_of(job->input, job->nr_inputs, &file->id) : NULL;
	if (!p && e->from)
		return;		/* a long query: tables are compacted from their beginning */
	if (!job)
		job = make(f, e->thread);
	p = input(f, job, file);
	if (!p)
		return;
	p->size = e->size;
	/* A later scan of the same file by the same thread starts again: what was read stays read. */
	if (e->from <= p->read + TERRACE_FILE_STEP && e->to > p->read)
		p->read = e->to;
	job->reads++;
	job->read_bytes += e->to - e->from;
	if (job->nr_outputs)
		busy(f, job, true);
	output = job->nr_outputs ? files_find(f, &job->output[job->nr_outputs - 1].id) : NULL;
	cross(job, p, output ? output->written : 0, e);
}

void jobs_synced(struct files *f, const struct file *file, uint32_t thread)
{
	struct file_job *job = job_of(f, thread);

	if (!job || (file && (file->kind == FILE_LOG || part_of(job->output, job->nr_outputs, &file->id))))
		return;
	/* LevelDB flushes its memory while it compacts, in the same thread; between two outputs, that would look like the end. */
	if (job->flushed) {
		job->flushed = !file || file->kind != FILE_META;	/* the folder comes before the manifest */
		return;
	}
	if (job->nr_outputs && !job->open_outputs && job->nr_inputs)
		job->synced = true;
}

void jobs_died(struct files *f, const struct file *file)
{
	for (uint32_t i = 0; i < FILES_JOBS; i++) {
		struct file_job *job = &f->job[i];
		struct file_part *p = job->serial ? part_of(job->input, job->nr_inputs, &file->id) : NULL;
		uint32_t left = 0;

		if (!p)
			continue;
		p->done = true;
		for (uint32_t k = 0; k < job->nr_inputs; k++)
			left += !job->input[k].done;
		/* The first death of an input ends a job that has written all. */
		if (!job->ended && job->nr_outputs && !job->open_outputs)
			end(f, job);
		else if (job->ended && !left)
			report(f, job);
	}
}

void jobs_end(struct files *f)
{
	for (uint32_t i = 0; i < FILES_JOBS; i++)
		if (f->job[i].serial && !f->job[i].ended && !f->job[i].open_outputs)
			end(f, &f->job[i]);
	for (uint32_t i = 0; i < FILES_JOBS; i++)
		if (f->job[i].serial)
			report(f, &f->job[i]);
}
