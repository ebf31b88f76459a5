// SPDX-License-Identifier: GPL-2.0-or-later
/* Compactions from what happens to files: right ones, and what must not be taken for one. */
#include "policy_lib.h"

#include "file_events.h"
#include "sense/bequest.h"

#define SECOND	1000000000ull

#define STEPS	256

struct seen {
	int jobs, compactions, tables, asked, left, died, busy;
	uint32_t inputs, outputs, crossings;
	uint64_t first_input, first_output;
	struct file_crossing last;
	struct bequest_step step[2][STEPS + 3];	/* of the first inputs */
	uint32_t nr_steps[2];
};

static struct seen seen;
static struct places places;

static void note_steps(struct seen *s, const struct file_job *job)
{
	struct bequest *b = bequest_of(job, &places);

	assert_non_null(b);
	for (uint32_t i = 0; i < 2 && i < b->nr_inputs && b->nr_crossings < STEPS; i++)
		s->nr_steps[i] = bequest_steps(b, i, s->step[i]);
	bequest_free(b);
}

static void on_job(void *ctx, const struct file_job *job)
{
	struct seen *s = ctx;

	note_steps(s, job);
	s->jobs++;
	s->crossings = job->nr_crossings;
	if (job->nr_crossings)
		s->last = job->crossing[job->nr_crossings - 1];
}

static void on_compaction(void *ctx, const struct file_job *job)
{
	struct seen *s = ctx;

	s->compactions++;
	s->inputs = job->nr_inputs;
	s->outputs = job->nr_outputs;
	s->first_input = job->input[0].id.inode;
	s->first_output = job->output[0].id.inode;
}

static void on_busy(void *ctx, uint32_t thread, bool yes)
{
	assert_int_equal(thread, 5);
	((struct seen *)ctx)->busy += yes ? 1 : -1;
}

static void on_table(void *ctx, const struct file *file)
{
	(void)file;
	((struct seen *)ctx)->tables++;
}

static void on_input(void *ctx, const struct file_id *id)
{
	assert_in_range(id->inode, 1, 2);
	((struct seen *)ctx)->asked++;
}

static void on_left(void *ctx, const struct file *file)
{
	(void)file;
	((struct seen *)ctx)->left++;
}

static void on_death(void *ctx, const struct file *file)
{
	(void)file;
	((struct seen *)ctx)->died++;
}

static int setup(void **state)
{
	const struct files_tell tell = {
		.job = on_job, .compaction = on_compaction, .busy = on_busy, .table = on_table, .left = on_left, .died = on_death,
		.ctx = &seen,
	};

	(void)state;
	files = calloc(1, sizeof(*files));
	memset(&seen, 0, sizeof(seen));
	now = process = lost = 0;
	files_init(files, FILE_PROFILES, &tell);
	return !files;
}

static int teardown(void **state)
{
	(void)state;
	free(files);
	return 0;
}

/* Two inputs into two outputs, by thread 5. */
static void compact(uint64_t in, uint64_t out)
{
	row(TERRACE_FILE_READ, in, 5, 0, TERRACE_FILE_STEP);
	row(TERRACE_FILE_READ, in + 1, 5, 0, TERRACE_FILE_STEP);
	create(out, "000010.sst", 5);
	row(TERRACE_FILE_READ, in, 5, TERRACE_FILE_STEP, MB);
	row(TERRACE_FILE_WRITTEN, out, 5, 0, MB);
	row(TERRACE_FILE_READ, in + 1, 5, TERRACE_FILE_STEP, MB);
	row(TERRACE_FILE_WRITTEN, out, 5, MB, SIZE);
	happens(TERRACE_FILE_SYNCED, out, 5);
	happens(TERRACE_FILE_CLOSED, out, 5);
	create(out + 1, "000011.sst", 5);
	row(TERRACE_FILE_READ, in, 5, MB, SIZE);
	row(TERRACE_FILE_READ, in + 1, 5, MB, SIZE);
	row(TERRACE_FILE_WRITTEN, out + 1, 5, 0, SIZE);
	happens(TERRACE_FILE_CLOSED, out + 1, 5);
}

/* Who was ignored for it is heard again when nobody follows files any more. */
static void the_end_of_following_ends_what_is_busy(void **state)
{
	(void)state;
	table(1, 2);
	table(2, 2);
	compact(1, 11);
	assert_int_equal(seen.busy, 1);
	files_rest(files);
	assert_int_equal(seen.busy, 0);
	files_rest(files);
	assert_int_equal(seen.busy, 0);
}

static void sees_a_compaction(void **state)
{
	(void)state;
	table(1, 2);
	table(2, 2);
	assert_int_equal(files->stats.flushes, 2);
	assert_int_equal(seen.busy, 0);
	compact(1, 11);
	assert_int_equal(seen.busy, 1);
	create(99, "MANIFEST-000002", 5);
	happens(TERRACE_FILE_SYNCED, 99, 5);
	assert_int_equal(seen.compactions, 0);
	dies(1, 5);
	assert_int_equal(seen.busy, 0);
	assert_int_equal(seen.jobs, 1);
	assert_int_equal(seen.compactions, 0);
	dies(2, 9);
	assert_int_equal(seen.compactions, 1);
	assert_int_equal(seen.inputs, 2);
	assert_int_equal(seen.outputs, 2);
	assert_int_equal(seen.first_input, 1);
	assert_int_equal(seen.first_output, 11);
	assert_int_equal(seen.died, 2);
	assert_int_equal(seen.left, 1);
	assert_int_equal(seen.tables, 3);	/* the last was not synced: it may not be on disk yet */
}

/* RocksDB deletes a large file by cutting it shorter again and again: others live where it was. */
static void a_table_that_is_cut_is_asked_for_again(void **state)
{
	(void)state;
	table(1, 2);
	assert_int_equal(seen.tables, 1);
	happens(TERRACE_FILE_CLOSED, 1, 7);
	assert_int_equal(seen.tables, 2);
}

/* Which input bytes went into which output bytes: within a step. */
static void remembers_where_heat_comes_from(void **state)
{
	(void)state;
	table(1, 2);
	table(2, 2);
	compact(1, 11);
	dies(1, 5);
	assert_int_equal(seen.last.input, 1);
	assert_int_equal(seen.last.output, 1);
	assert_int_equal(seen.last.end, SIZE);
}

/* How far @input was read when the outputs had grown to @at. */
static uint64_t read_at(uint32_t input, uint64_t at)
{
	uint64_t read = 0;

	for (uint32_t k = 0; k < seen.nr_steps[input] && seen.step[input][k].at <= at; k++)
		read = seen.step[input][k].read;
	return read;
}

/*
 * Two inputs of 2 MiB merged evenly into two outputs, 128 KiB of each at a time: what was read when an output had
 * grown to a point is known within a step, and at the end both are through.
 */
static void tells_how_far_inputs_were_read(void **state)
{
	(void)state;
	table(1, 2);
	table(2, 2);
	for (uint64_t at = 0; at < 2 * SIZE; at += 2 * TERRACE_FILE_STEP) {
		uint64_t out = 11 + at / SIZE, from = at % SIZE;

		row(TERRACE_FILE_READ, 1, 5, at / 2, at / 2 + TERRACE_FILE_STEP);
		row(TERRACE_FILE_READ, 2, 5, at / 2, at / 2 + TERRACE_FILE_STEP);
		if (!from)
			create(out, "000011.sst", 5);
		row(TERRACE_FILE_WRITTEN, out, 5, from, from + 2 * TERRACE_FILE_STEP);
		if (from + 2 * TERRACE_FILE_STEP == SIZE)
			happens(TERRACE_FILE_CLOSED, out, 5);
	}
	dies(1, 5);
	dies(2, 5);
	assert_int_equal(seen.compactions, 1);
	for (uint32_t i = 0; i < 2; i++) {
		for (uint64_t at = SIZE / 8; at < 2 * SIZE; at += SIZE / 8) {
			assert_true(read_at(i, at) + 2 * TERRACE_FILE_STEP >= at / 2);
			assert_true(read_at(i, at) <= at / 2 + 2 * TERRACE_FILE_STEP);
		}
		assert_int_equal(read_at(i, 2 * SIZE), SIZE);
	}
}

/* Direct I/O: 1 MiB of each input at once.  What was read passes evenly until the next piece is read. */
static void what_is_read_ahead_passes_evenly(void **state)
{
	struct terrace_file_event e = event(TERRACE_FILE_READ, 1, 5);

	(void)state;
	table(1, 2);
	create(11, "000011.sst", 5);
	e.to = MB;
	files_event(files, &e);
	row(TERRACE_FILE_WRITTEN, 11, 5, 0, MB);
	e.from = MB;
	e.to = SIZE;
	files_event(files, &e);
	row(TERRACE_FILE_WRITTEN, 11, 5, MB, SIZE);
	happens(TERRACE_FILE_CLOSED, 11, 5);
	dies(1, 5);
	assert_int_equal(seen.compactions, 1);
	assert_int_equal(read_at(0, MB / 2), 0);
	assert_int_equal(read_at(0, SIZE), SIZE);
	assert_true(seen.nr_steps[0] <= 2);
}

/* An input that was only begun, and a flush in between, are left out; what is told of the others holds. */
static void numbers_crossings_anew(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 3; i++)
		table(i, 2);
	row(TERRACE_FILE_READ, 1, 5, 0, TERRACE_FILE_STEP);
	row(TERRACE_FILE_READ, 2, 5, 0, TERRACE_FILE_STEP);
	create(11, "000011.sst", 5);
	row(TERRACE_FILE_READ, 1, 5, TERRACE_FILE_STEP, 2 * TERRACE_FILE_STEP);
	row(TERRACE_FILE_READ, 2, 5, TERRACE_FILE_STEP, SIZE);
	row(TERRACE_FILE_READ, 3, 5, 0, SIZE);
	row(TERRACE_FILE_WRITTEN, 11, 5, 0, SIZE);
	happens(TERRACE_FILE_CLOSED, 11, 5);
	dies(2, 5);
	dies(3, 5);
	assert_int_equal(seen.compactions, 1);
	assert_int_equal(seen.inputs, 2);
	assert_true(seen.crossings > 0);
	assert_int_equal(read_at(0, SIZE), SIZE);
	assert_int_equal(read_at(1, SIZE), SIZE);
}

/* A job of 4 GiB: coarser, but from the first byte to the last. */
static void large_jobs_are_told_coarsely(void **state)
{
	const uint64_t all = 4096 * MB;
	uint32_t most = 0;

	(void)state;
	table(1, 2);
	create(11, "000011.sst", 5);
	for (uint64_t at = 0; at < all; at += TERRACE_FILE_STEP) {
		struct terrace_file_event e = event(TERRACE_FILE_READ, 1, 5);

		e.from = at;
		e.to = at + TERRACE_FILE_STEP;
		e.size = all;
		files_event(files, &e);
		e.what = TERRACE_FILE_WRITTEN;
		e.inode = 11;
		files_event(files, &e);
		for (int i = 0; i < 2; i++)
			most = most > files->job[i].nr_crossings ? most : files->job[i].nr_crossings;
	}
	assert_in_range(most, FILES_CROSSINGS / 2, FILES_CROSSINGS);
	for (int i = 0; i < 2; i++) {
		const struct file_job *job = &files->job[i];

		if (!job->nr_crossings)
			continue;
		assert_int_equal(job->crossing[job->nr_crossings - 1].end, all);
		assert_true(job->crossing[0].end <= 64 * TERRACE_FILE_STEP);
	}
}

/* One after the other by the same thread: the manifest's sync is between them. */
static void keeps_jobs_apart(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 4; i++)
		table(i, 2);
	compact(1, 11);
	create(99, "MANIFEST-000002", 5);
	happens(TERRACE_FILE_SYNCED, 99, 5);
	compact(3, 21);
	dies(1, 5);
	dies(2, 5);
	assert_int_equal(seen.compactions, 1);
	assert_int_equal(seen.inputs, 2);
	dies(4, 5);
	dies(3, 5);
	assert_int_equal(seen.compactions, 2);
	assert_int_equal(seen.inputs, 2);
	assert_int_equal(seen.outputs, 2);
	assert_int_equal(seen.first_output, 21);
}

/* An output that is complete while the job goes on is passed its heat, once. */
static void outputs_are_given_one_after_the_other(void **state)
{
	struct bequest_step step[STEPS + 3];
	const struct file_job *job;
	struct bequest *b;
	uint32_t number, nr;

	(void)state;
	table(1, 2);
	create(11, "000011.ldb", 5);
	row(TERRACE_FILE_READ, 1, 5, 0, MB);
	row(TERRACE_FILE_WRITTEN, 11, 5, 0, MB);
	happens(TERRACE_FILE_SYNCED, 11, 5);
	happens(TERRACE_FILE_CLOSED, 11, 5);
	job = files_job_of_output(files, &files->file[files->last].id, &number);
	assert_non_null(job);
	assert_int_equal(number, 0);
	b = bequest_of(job, &places);
	bequest_until(b, 1);
	assert_true(b->more && b->first == 0 && b->nr_outputs == 1);
	nr = bequest_steps(b, 0, step);
	assert_true(nr >= 1 && step[nr - 1].at == SIZE && step[nr - 1].read == MB);	/* not what is still to be read */
	bequest_free(b);
	files_given(files, &files->file[files->last].id);
	assert_int_equal(job->given, 1);
	row(TERRACE_FILE_READ, 1, 5, MB, SIZE);
	create(12, "000012.ldb", 5);
	row(TERRACE_FILE_WRITTEN, 12, 5, 0, MB);
	b = bequest_of(job, &places);
	assert_true(!b->more && b->first == 1);
	bequest_free(b);
	assert_null(files_job_of_output(files, &files->file[files->last].id, &number));	/* not complete */
}

/* What a job has written is the first that the next one of its thread reads. */
static void reads_what_it_wrote(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 2; i++)
		table(i, 2);
	compact(1, 11);
	happens(TERRACE_FILE_SYNCED, 99, 5);
	compact(11, 21);
	dies(1, 5);
	dies(2, 5);
	dies(11, 5);
	dies(12, 5);
	assert_int_equal(seen.compactions, 2);
	assert_int_equal(seen.inputs, 2);
	assert_int_equal(seen.first_input, 11);
	assert_int_equal(seen.outputs, 2);
}

static void a_backup_is_none(void **state)
{
	(void)state;
	table(1, 2);
	row(TERRACE_FILE_READ, 1, 6, 0, SIZE);
	create(50, "backup", 6);
	row(TERRACE_FILE_WRITTEN, 50, 6, 0, SIZE);
	happens(TERRACE_FILE_CLOSED, 50, 6);
	files_end(files);
	assert_int_equal(seen.compactions, 0);
}

static void queries_are_none(void **state)
{
	(void)state;
	table(1, 2);
	row(TERRACE_FILE_READ, 1, 6, MB, SIZE);		/* a long query from the middle */
	row(TERRACE_FILE_READ, 1, 6, 0, TERRACE_FILE_STEP);	/* a short one from the beginning */
	table(50, 6);
	happens(TERRACE_FILE_SYNCED, 99, 6);
	dies(1, 6);
	files_end(files);
	assert_int_equal(seen.compactions, 0);
}

/* As LevelDB does it, in the same thread: while no output is open ... */
static void a_flush_between_outputs_is_no_end(void **state)
{
	(void)state;
	create(98, "MANIFEST-000098", 5);
	create(97, "000097.log", 5);
	table(1, 2);
	create(11, "000011.ldb", 5);
	row(TERRACE_FILE_READ, 1, 5, 0, MB);
	row(TERRACE_FILE_WRITTEN, 11, 5, 0, MB);
	happens(TERRACE_FILE_SYNCED, 11, 5);
	happens(TERRACE_FILE_CLOSED, 11, 5);
	table(12, 5);			/* from memory */
	happens(TERRACE_FILE_SYNCED, 500, 5);	/* the folder */
	happens(TERRACE_FILE_SYNCED, 98, 5);
	happens(TERRACE_FILE_UNLINKED, 97, 5);
	create(13, "000013.ldb", 5);
	row(TERRACE_FILE_READ, 1, 5, MB, SIZE);
	row(TERRACE_FILE_WRITTEN, 13, 5, 0, MB);
	happens(TERRACE_FILE_SYNCED, 13, 5);
	happens(TERRACE_FILE_CLOSED, 13, 5);
	happens(TERRACE_FILE_SYNCED, 98, 5);
	dies(1, 5);
	assert_int_equal(seen.compactions, 1);
	assert_int_equal(seen.outputs, 2);
	assert_int_equal(seen.first_output, 11);
}

/* ... or while one is. */
static void a_flush_within_is_no_output(void **state)
{
	(void)state;
	table(1, 2);
	row(TERRACE_FILE_READ, 1, 5, 0, MB);
	create(11, "000011.ldb", 5);
	row(TERRACE_FILE_WRITTEN, 11, 5, 0, MB);
	table(12, 5);
	row(TERRACE_FILE_READ, 1, 5, MB, SIZE);
	row(TERRACE_FILE_WRITTEN, 11, 5, MB, SIZE);
	happens(TERRACE_FILE_CLOSED, 11, 5);
	dies(1, 5);
	assert_int_equal(seen.compactions, 1);
	assert_int_equal(seen.outputs, 1);
	assert_int_equal(seen.first_output, 11);
}

/* Direct I/O reads megabytes ahead: whole outputs are written without a read between. */
static void readahead_is_no_flush(void **state)
{
	(void)state;
	table(1, 2);
	table(2, 2);
	row(TERRACE_FILE_READ, 1, 5, 0, SIZE);
	row(TERRACE_FILE_READ, 2, 5, 0, SIZE);
	for (uint64_t out = 11; out <= 12; out++)
		table(out, 5);
	dies(1, 5);
	dies(2, 5);
	assert_int_equal(seen.compactions, 1);
	assert_int_equal(seen.inputs, 2);
	assert_int_equal(seen.outputs, 2);
	assert_int_equal(files->stats.flushes, 2);
}

/* A recycled inode is another file; a lost death harms nobody. */
static void recycles_inodes(void **state)
{
	(void)state;
	table(1, 2);
	table(1, 2);
	assert_non_null(files_find(files, &(struct file_id){ .inode = 1, .generation = 1, .dev = 7 }));
	dies(1, 2);
	assert_null(files_find(files, &(struct file_id){ .inode = 1, .generation = 1, .dev = 7 }));
	dies(1, 2);
	assert_int_equal(files->stats.died, 1);
	assert_int_equal(seen.died, 2);		/* its place may be known all the same */
}

/* A backup reads more files than are remembered. */
static void what_is_only_read_pushes_out_nothing(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 100; i++)
		table(i, 2);
	for (uint64_t i = 1000; i < 1000 + 3 * FILES_MAX; i++)
		row(TERRACE_FILE_READ, i, 6, 0, 4096);
	for (uint64_t i = 1; i <= 100; i++)
		assert_non_null(files_find(files, &(struct file_id){ .inode = i, .generation = 1, .dev = 7 }));
	assert_true(files->stats.forgotten_files > FILES_MAX);
}

static void stays_bounded(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 3 * FILES_MAX; i++)
		table(i, (uint32_t)i);
	assert_int_equal(files->stats.forgotten_files, 2 * FILES_MAX);
	/* scans by many threads do not push out what compacts */
	row(TERRACE_FILE_READ, 3 * FILES_MAX, 5, 0, SIZE);
	table(100000, 5);
	for (uint32_t t = 100; t < 500; t++)
		row(TERRACE_FILE_READ, 3 * FILES_MAX - 1, t, 0, SIZE);
	row(TERRACE_FILE_READ, 3 * FILES_MAX - 1, 5, 0, SIZE);
	assert_true(files->stats.forgotten_jobs > 300);
	assert_int_equal(files->stats.cut_jobs, 0);
}

/* Their blocks are asked for: nobody trims them otherwise when they are deleted. */
static void logs_and_manifests_are_told_without_sync(void **state)
{
	(void)state;
	create(7, "000007.log", 2);
	row(TERRACE_FILE_WRITTEN, 7, 2, 0, SIZE);
	happens(TERRACE_FILE_CLOSED, 7, 2);
	create(8, "MANIFEST-000008", 2);
	row(TERRACE_FILE_WRITTEN, 8, 2, 0, SIZE);
	happens(TERRACE_FILE_CLOSED, 8, 2);
	assert_int_equal(seen.tables, 2);
	dies(7, 2);
	assert_int_equal(seen.died, 1);
}

/* A thread that holds a file that it once made, and reads others: a server's, long after CREATE TABLE. */
static void who_only_reads_does_not_compact(void **state)
{
	(void)state;
	table(1, 2);
	create(50, "x.dat", 5);
	for (int i = 0; i < 1000; i++)
		row(TERRACE_FILE_READ, 1, 5, 0, 4096);
	assert_int_equal(seen.busy, 0);
	row(TERRACE_FILE_READ, 1, 5, 0, MB);	/* a scan: it may be one */
	assert_int_equal(seen.busy, 1);
	files_tick(files, SECOND);
	assert_int_equal(seen.busy, 1);
	files_tick(files, 60 * SECOND);
	assert_int_equal(seen.busy, 0);		/* nothing has been written for long */
	now = 61 * SECOND;
	row(TERRACE_FILE_READ, 1, 5, MB, SIZE);
	assert_int_equal(seen.busy, 0);
	row(TERRACE_FILE_WRITTEN, 50, 5, 0, MB);
	row(TERRACE_FILE_READ, 1, 5, SIZE, 2 * SIZE);
	assert_int_equal(seen.busy, 1);
	dies(50, 5);
	assert_int_equal(seen.busy, 0);		/* what it wrote is gone */
}

/* The ring overran: one table was never closed, as far as is known. */
static void a_lost_close_is_not_for_good(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 4; i++)
		table(i, 2);
	lost = TERRACE_FILE_CLOSED;
	compact(1, 11);
	assert_int_equal(lost, 0);
	dies(1, 5);
	dies(2, 5);
	assert_int_equal(seen.compactions, 1);
	assert_int_equal(seen.outputs, 1);
	assert_int_equal(seen.first_output, 12);
	compact(3, 21);
	dies(3, 5);
	dies(4, 5);
	assert_int_equal(seen.compactions, 2);
	assert_int_equal(seen.outputs, 2);
	assert_int_equal(seen.first_output, 21);
	assert_int_equal(seen.busy, 0);
}

/* The same while the next compaction has begun: it goes on. */
static void a_lost_close_within_a_row(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 6; i++)
		table(i, 2);
	lost = TERRACE_FILE_CLOSED;
	compact(1, 11);
	happens(TERRACE_FILE_SYNCED, 99, 5);
	row(TERRACE_FILE_READ, 3, 5, 0, MB);
	create(21, "000021.sst", 5);
	dies(1, 5);
	dies(2, 5);
	row(TERRACE_FILE_READ, 3, 5, MB, SIZE);
	row(TERRACE_FILE_WRITTEN, 21, 5, 0, SIZE);
	happens(TERRACE_FILE_CLOSED, 21, 5);
	happens(TERRACE_FILE_SYNCED, 99, 5);
	compact(5, 31);
	dies(3, 5);
	dies(5, 5);
	dies(6, 5);
	assert_int_equal(seen.first_input, 5);
	assert_int_equal(seen.inputs, 2);
	assert_int_equal(seen.outputs, 2);
}

/* Killed in mid-compaction: its outputs are deleted by the next process, its inputs compacted into others. */
static void a_killed_compaction_is_none(void **state)
{
	(void)state;
	table(1, 2);
	table(2, 2);
	row(TERRACE_FILE_READ, 1, 5, 0, SIZE);
	row(TERRACE_FILE_READ, 2, 5, 0, MB);
	create(11, "000011.sst", 5);
	row(TERRACE_FILE_READ, 2, 5, MB, MB + TERRACE_FILE_STEP);
	row(TERRACE_FILE_WRITTEN, 11, 5, 0, MB);
	assert_int_equal(seen.busy, 1);
	happens(TERRACE_FILE_CLOSED, 11, 5);
	dies(11, 9);
	assert_int_equal(seen.busy, 0);
	dies(1, 9);
	dies(2, 9);
	files_end(files);
	assert_int_equal(seen.compactions, 0);
}

/* ... and its thread's number is another's. */
static void a_thread_of_another_process_is_another(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 4; i++)
		table(i, 2);
	row(TERRACE_FILE_READ, 1, 5, 0, SIZE);
	create(11, "000011.sst", 5);
	row(TERRACE_FILE_READ, 1, 5, 0, SIZE);
	process = 8;
	compact(3, 21);
	dies(3, 5);
	dies(4, 5);
	assert_int_equal(seen.compactions, 1);
	assert_int_equal(seen.inputs, 2);
	assert_int_equal(seen.outputs, 2);
	assert_int_equal(seen.first_output, 21);
}

/* 64 short copies while a compaction goes on. */
static void copies_do_not_push_out_a_compaction(void **state)
{
	(void)state;
	table(1, 2);
	table(2, 2);
	table(3, 2);
	row(TERRACE_FILE_READ, 1, 5, 0, MB);
	row(TERRACE_FILE_READ, 2, 5, 0, MB);
	create(11, "000011.sst", 5);
	row(TERRACE_FILE_WRITTEN, 11, 5, 0, MB);
	for (uint32_t t = 100; t < 100 + 2 * FILES_JOBS; t++) {
		row(TERRACE_FILE_READ, 3, t, 0, 4096);
		create(1000 + t, "copy", t);
		row(TERRACE_FILE_READ, 3, t, 0, 4096);
		happens(TERRACE_FILE_CLOSED, 1000 + t, t);
	}
	row(TERRACE_FILE_READ, 1, 5, MB, SIZE);
	row(TERRACE_FILE_READ, 2, 5, MB, SIZE);
	row(TERRACE_FILE_WRITTEN, 11, 5, MB, SIZE);
	happens(TERRACE_FILE_CLOSED, 11, 5);
	dies(1, 5);
	dies(2, 5);
	assert_int_equal(seen.compactions, 1);
	assert_int_equal(seen.inputs, 2);
}

/* An output that is forgotten for want of room cannot be closed any more. */
static void forgotten_outputs_are_none(void **state)
{
	(void)state;
	table(1, 2);
	row(TERRACE_FILE_READ, 1, 5, 0, MB);
	create(11, "000011.sst", 5);
	for (uint64_t i = 100; i < 100 + 2 * FILES_MAX; i++)
		table(i, 2);
	for (uint32_t i = 0; i < FILES_JOBS; i++)
		assert_true(!files->job[i].serial || files->job[i].thread != 5 || !files->job[i].open_outputs);
}

/* What was there before us is asked for when it is compacted; by who only reads it is not. */
static void inputs_are_told_once(void **state)
{
	struct files_tell tell = files->tell;

	(void)state;
	tell.input = on_input;
	files_init(files, FILE_PROFILES, &tell);
	for (uint64_t i = 1; i <= 9; i++)
		row(TERRACE_FILE_READ, i, 6, 0, SIZE);
	assert_int_equal(seen.asked, 0);
	compact(1, 11);
	assert_int_equal(seen.asked, 2);
	dies(1, 5);
	dies(2, 5);
	assert_int_equal(seen.compactions, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sees_a_compaction),
		TEST(the_end_of_following_ends_what_is_busy),
		TEST(a_table_that_is_cut_is_asked_for_again),
		TEST(remembers_where_heat_comes_from),
		TEST(tells_how_far_inputs_were_read),
		TEST(what_is_read_ahead_passes_evenly),
		TEST(numbers_crossings_anew),
		TEST(large_jobs_are_told_coarsely),
		TEST(keeps_jobs_apart),
		TEST(outputs_are_given_one_after_the_other),
		TEST(a_flush_between_outputs_is_no_end),
		TEST(reads_what_it_wrote),
		TEST(a_backup_is_none),
		TEST(queries_are_none),
		TEST(a_flush_within_is_no_output),
		TEST(readahead_is_no_flush),
		TEST(recycles_inodes),
		TEST(what_is_only_read_pushes_out_nothing),
		TEST(stays_bounded),
		TEST(logs_and_manifests_are_told_without_sync),
		TEST(who_only_reads_does_not_compact),
		TEST(a_lost_close_is_not_for_good),
		TEST(a_lost_close_within_a_row),
		TEST(a_killed_compaction_is_none),
		TEST(a_thread_of_another_process_is_another),
		TEST(copies_do_not_push_out_a_compaction),
		TEST(forgotten_outputs_are_none),
		TEST(inputs_are_told_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
