// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Jobs: what a thread reads through while it writes new files.  See files.h for when one ends
 * and when it was a compaction.
 */
#include "sense/jobs.h"

#include <string.h>

#define AHEAD		(2 * TERRACE_FILE_STEP)
#define QUIET_NS	10000000000ull	/* without a growing output nobody compacts */
#define FLUSH_BYTES	(2 * TERRACE_FILE_STEP)	/* more than what was read can account for */

static struct file_job *job_of(struct files *f, uint32_t thread)
{
	for (uint32_t i = 0; i < FILES_JOBS; i++)
		if (f->thread[i] == thread && f->job[i].serial && !f->job[i].ended && f->job[i].thread == thread)
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
	job->told_inputs -= i < job->told_inputs;
	drop_crossings(job, i, false);
	drop_part(job->input, &job->nr_inputs, i);
}

static void drop_output(struct file_job *job, uint32_t i)
{
	job->given -= i < job->given;
	drop_crossings(job, i, true);
	job->open_outputs -= !job->output[i].done;
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

static bool through(const struct file_part *p)
{
	return p->read >= p->size - terrace_file_rest(p->size);
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

/* Rather one that only reads, a scan; then what makes no tables, copies; of these the one that did nothing for longest. */
static bool does_less(const struct file_job *a, const struct file_job *b)
{
	uint32_t x = !a->nr_outputs ? 0 : a->makes_tables ? 2 : 1, y = !b->nr_outputs ? 0 : b->makes_tables ? 2 : 1;

	return x != y ? x < y : a->used < b->used;
}

static struct file_job *make(struct files *f, const struct terrace_file_event *e)
{
	struct file_job *least = NULL, *job = NULL;

	for (uint32_t i = 0; i < FILES_JOBS && !job; i++) {
		struct file_job *one = &f->job[i];

		if (!one->serial)
			job = one;
		else if (!least || does_less(one, least))
			least = one;
	}
	if (!job) {
		f->stats.forgotten_jobs++;
		report(f, least);
		job = least;
	}
	job->serial = job->used = ++f->serial;
	job->thread = f->thread[job - f->job] = e->thread;
	job->process = e->process;
	return job;
}

/* Of the thread that does this. The number of one that has ended may be another process's. */
static struct file_job *job_doing(struct files *f, const struct terrace_file_event *e)
{
	struct file_job *job = job_of(f, e->thread);

	if (!job || job->process == e->process)
		return job;
	if (all_through(job)) {
		end(f, job);
	} else {
		busy(f, job, false);
		memset(job, 0, sizeof(*job));
	}
	return NULL;
}

/* ---- events ------------------------------------------------------------------------------ */

static bool may_be_table(const struct file *file)
{
	return file->kind == FILE_TABLE || file->kind == FILE_UNKNOWN;
}

void jobs_created(struct files *f, struct file *file, const struct terrace_file_event *e)
{
	struct file_job *job = job_doing(f, e);
	struct file_part *p;

	if (!may_be_table(file))
		return;
	if (job && job->synced && !job->open_outputs && job->nr_outputs) {
		end(f, job);
		job = NULL;
	}
	if (!job)
		job = make(f, e);
	job->used = ++f->serial;
	job->written_ns = e->nanoseconds;
	job->makes_tables |= file->kind == FILE_TABLE;
	file->reads_before = job->reads;
	if (job->nr_outputs == FILES_OUTPUTS) {
		f->stats.cut_jobs++;
		return;
	}
	p = &job->output[job->nr_outputs++];
	*p = (struct file_part){ .id = file->id, .reads = job->reads, .table = file->kind == FILE_TABLE };
	memcpy(p->name, file->name, sizeof(p->name));
	job->open_outputs++;
	job->synced = false;
}

/* A flush reads nothing, so it is never told. */
void jobs_written(struct files *f, struct file *file, const struct terrace_file_event *e)
{
	struct file_job *job = file->open ? job_of(f, file->thread) : NULL;

	if (!job || !part_of(job->output, job->nr_outputs, &file->id))
		return;
	job->used = ++f->serial;
	job->written_ns = e->nanoseconds;
	if (file->told || !job->nr_inputs || !f->tell.growing)
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

/* Too little for a read to be told meanwhile: rather a compaction's last output. What is synced next may be for it, all the same. */
static bool is_rest(const struct file *file)
{
	return file->size < TERRACE_FILE_STEP;
}

/*
 * Written without a read meanwhile, and from nothing read before: what has been read ahead (direct I/O:
 * megabytes) may fill whole outputs.
 */
static bool is_flush(const struct file_job *job, const struct file *file)
{
	return job->reads == file->reads_before &&
	       (!job->nr_inputs || (is_leveldb(file) && !is_rest(file)) ||
		job->written_bytes + file->size > job->read_bytes + FLUSH_BYTES);
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
	job->used = ++f->serial;
	flushed = is_flush(job, file);
	if (flushed || file->astray || !file->size) {
		f->stats.flushes += flushed && !file->astray && file->size;
		job->flushed = flushed;
		drop_output(job, (uint32_t)(p - job->output));
	} else {
		job->written_bytes += file->size;
		job->flushed |= is_leveldb(file) && is_rest(file) && job->reads == file->reads_before;
	}
	if (!job->nr_inputs && !job->nr_outputs)
		memset(job, 0, sizeof(*job));
}

void jobs_renamed(struct files *f, const struct file *file)
{
	for (uint32_t i = 0; i < FILES_JOBS; i++) {
		struct file_job *job = &f->job[i];
		struct file_part *p = job->serial ? part_of(job->output, job->nr_outputs, &file->id) : NULL;

		if (!p)
			continue;
		memcpy(p->name, file->name, sizeof(p->name));
		p->table = file->kind == FILE_TABLE;
		job->makes_tables |= p->table;
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
	*p = (struct file_part){ .id = file->id, .table = file->kind == FILE_TABLE };
	memcpy(p->name, file->name, sizeof(p->name));
	return p;
}

/* One per input, output and growth of the output: how far it was read meanwhile. Exact ones stay so; there are just fewer. */
static void add_crossing(struct file_job *job, const struct file_crossing *c)
{
	const uint64_t step = job->coarse ? (uint64_t)TERRACE_FILE_STEP << job->coarse : 1;

	for (uint32_t k = job->nr_crossings; k-- > 0;) {
		struct file_crossing *last = &job->crossing[k];

		if (last->output != c->output || c->at >= last->at + step)
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

		if (!c.exact)
			c.at -= c.at % ((uint64_t)TERRACE_FILE_STEP << job->coarse);
		add_crossing(job, &c);
	}
}

/* Whether the kernel has told how far the output was when this was read; before there is one, and between two, that is known. */
static bool knows_written(const struct file_job *job, const struct terrace_file_event *e, uint64_t *written)
{
	const struct file_part *out = job->nr_outputs ? &job->output[job->nr_outputs - 1] : NULL;

	if (e->last < e->from || e->last >= e->to)
		return false;
	if (!out || out->done)
		*written = out ? out->size : 0;
	else if (e->output == out->id.inode)
		*written = e->written;
	else
		return false;
	return true;
}

static void cross(struct file_job *job, const struct file_part *in, uint64_t written,
		  const struct terrace_file_event *e)
{
	const bool exact = knows_written(job, e, &written);
	struct file_crossing c = {
		.input = (uint16_t)(in - job->input),
		.output = (uint16_t)(job->nr_outputs ? job->nr_outputs - 1 : 0),
	};

	/* A piece that was read at once has not been consumed yet, but all before it has; a row of small reads has. */
	c.end = !exact && e->to - e->from > AHEAD ? e->from : e->to;
	c.from = e->last;
	c.exact = exact;
	while (job->nr_crossings == FILES_CROSSINGS && job->coarse < FILES_COARSE)
		thin_crossings(job);
	if (job->nr_crossings == FILES_CROSSINGS)
		return;
	c.at = exact ? written : written - written % ((uint64_t)TERRACE_FILE_STEP << job->coarse);
	add_crossing(job, &c);
}

/* What was there before us has no place yet, and once it is dead it cannot be asked. */
static void tell_inputs(struct files *f, struct file_job *job)
{
	for (; job->told_inputs < job->nr_inputs; job->told_inputs++)
		if (f->tell.input)
			f->tell.input(f->tell.ctx, &job->input[job->told_inputs].id);
}

/*
 * Servers read while they hold a file that they once made: what has no table's name counts when it is read on in a row,
 * and nothing does without an output that grows.
 */
static bool compacts(const struct file_job *job, const struct file_part *in, const struct terrace_file_event *e)
{
	if (!job->nr_outputs || e->nanoseconds >= job->written_ns + QUIET_NS)
		return false;
	return in->read > TERRACE_FILE_STEP || (in->table && job->output[job->nr_outputs - 1].table);
}

void jobs_read(struct files *f, const struct file *file, const struct terrace_file_event *e)
{
	struct file_job *job = job_doing(f, e);
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
		job = make(f, e);
	p = input(f, job, file);
	if (!p)
		return;
	p->size = e->size;
	/* A later scan of the same file by the same thread starts again: what was read stays read. */
	if (e->from <= p->read + TERRACE_FILE_STEP && e->to > p->read)
		p->read = e->to;
	p->reads = ++job->reads;
	job->used = ++f->serial;
	job->read_bytes += e->to - e->from;
	if (compacts(job, p, e)) {
		busy(f, job, true);
		tell_inputs(f, job);
	}
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

/* One that is no compaction's result: those outlive their inputs. */
static void lose_output(struct files *f, struct file_job *job, const struct file_id *id, bool also_closed)
{
	struct file_part *p = job->serial ? part_of(job->output, job->nr_outputs, id) : NULL;

	for (uint32_t i = 0; p && i < job->nr_inputs; i++)
		if (job->input[i].done)
			return;
	if (!p || (p->done && !also_closed))
		return;
	drop_output(job, (uint32_t)(p - job->output));
	if (job->nr_outputs)
		return;
	busy(f, job, false);
	if (job->ended)
		memset(job, 0, sizeof(*job));
}

void jobs_forgotten(struct files *f, const struct file *file)
{
	for (uint32_t i = 0; i < FILES_JOBS; i++)
		lose_output(f, &f->job[i], &file->id, false);
}

/* An input is deleted when all that was made of it is complete: what still seems to be open of that was closed unheard. */
static void lose_unclosed(struct file_job *job, const struct file_part *dead)
{
	for (uint32_t i = job->nr_outputs; through(dead) && i-- > 0;)
		if (!job->output[i].done && job->output[i].reads < dead->reads)
			drop_output(job, i);
}

void jobs_died(struct files *f, const struct file *file)
{
	for (uint32_t i = 0; i < FILES_JOBS; i++) {
		struct file_job *job = &f->job[i];
		struct file_part *p;
		uint32_t left = 0;

		lose_output(f, job, &file->id, true);
		p = job->serial ? part_of(job->input, job->nr_inputs, &file->id) : NULL;
		if (!p)
			continue;
		p->done = true;
		if (!job->ended)
			lose_unclosed(job, p);
		for (uint32_t k = 0; k < job->nr_inputs; k++)
			left += !job->input[k].done;
		/* The first death of an input ends a job that has written all. */
		if (!job->ended && job->nr_outputs && !job->open_outputs)
			end(f, job);
		else if (job->ended && !left)
			report(f, job);
	}
}

void jobs_tick(struct files *f, uint64_t now_ns)
{
	for (uint32_t i = 0; i < FILES_JOBS; i++)
		if (f->job[i].serial && f->job[i].busy && now_ns >= f->job[i].written_ns + QUIET_NS)
			busy(f, &f->job[i], false);
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

void jobs_rest(struct files *f)
{
	for (uint32_t i = 0; i < FILES_JOBS; i++)
		busy(f, &f->job[i], false);
}
