// SPDX-License-Identifier: GPL-2.0-or-later
/* How far inputs were read while outputs grew: known to within what is read ahead, however unevenly they are merged. */
#include "policy_lib.h"

#include "decide/prng.h"
#include "file_events.h"
#include "sense/bequest.h"

#define BLOCK	4096ull
#define INPUTS	3u
#define BLOCKS	((unsigned int)(8 * MB / BLOCK))	/* of an input */
#define OUTPUT	(3 * MB)				/* each of the outputs, but the last */

static struct places places;
static struct bequest *bequest;

static void on_job(void *ctx, const struct file_job *job)
{
	(void)ctx;
	bequest = bequest_of(job, &places);
}

/* ---- a database, and the kernel, which tells of it as bpf/lsm.bpf.c does ---------------------------- */

struct cursor {
	uint64_t next, told;
	bool begun;
};

static struct merge {
	uint64_t piece;			/* bytes, of a read */
	uint32_t nr_inputs;
	struct cursor in[INPUTS], out;
	uint64_t done[INPUTS];		/* bytes that have gone to the outputs */
	uint64_t output;		/* the inode; 0: none */
	uint64_t nr_blocks;		/* of all outputs */
	double off;			/* the largest error, in bytes of an input */
	uint64_t truth[INPUTS][INPUTS * BLOCKS + 1];	/* `done` when so many blocks had been written */
} m;

static void looks(const struct bequest *b);

static void tell_row(uint8_t what, uint64_t inode, struct cursor *c, uint64_t size, uint64_t last)
{
	struct terrace_file_event e = event(what, inode, 5);

	e.from = c->told;
	e.to = c->next;
	e.size = size;
	if (what == TERRACE_FILE_READ) {
		e.last = last;
		e.output = m.output;
		e.written = m.output ? m.out.next : 0;
	}
	files_event(files, &e);
	c->told = c->next;
}

static void reads(uint32_t i)
{
	const uint64_t size = BLOCKS * BLOCK, rest = size - terrace_file_rest(size);
	struct cursor *c = &m.in[i];
	uint64_t before = c->next, bytes = m.piece < size - before ? m.piece : size - before;

	c->next += bytes;
	if (!c->begun || c->next - c->told >= TERRACE_FILE_STEP || (before < rest && c->next >= rest) ||
	    (m.output && before - c->told < TERRACE_FILE_STEP_WRITING && c->next + bytes - c->told > TERRACE_FILE_STEP_WRITING))
		tell_row(TERRACE_FILE_READ, 1 + i, c, size, before);
	c->begun = true;
}

/* What is told when an output is complete and others follow. */
static void passes_on(void)
{
	const struct file_id id = { .inode = m.output, .generation = 1, .dev = 7 };
	const struct file_job *job;
	struct bequest *b;
	uint32_t number;

	job = files_job_of_output(files, &id, &number);
	assert_non_null(job);
	b = bequest_of(job, &places);
	assert_non_null(b);
	bequest_until(b, number + 1);
	looks(b);
	bequest_free(b);
}

static void ends_output(void)
{
	if (!m.output)
		return;
	happens(TERRACE_FILE_SYNCED, m.output, 5);
	tell_row(TERRACE_FILE_CLOSED, m.output, &m.out, m.out.next, 0);
	passes_on();
	m.output = 0;
}

static void writes_block(void)
{
	if (m.output && m.out.next == OUTPUT)
		ends_output();
	if (!m.output) {
		m.out = (struct cursor){ .begun = true };
		m.output = 11 + m.nr_blocks;
		create(m.output, "000011.sst", 5);
	}
	m.out.next += BLOCK;
	if (m.out.next - m.out.told >= TERRACE_FILE_STEP)
		tell_row(TERRACE_FILE_WRITTEN, m.output, &m.out, m.out.next, 0);
}

static void merges_block(uint32_t i)
{
	if (m.done[i] == m.in[i].next)
		reads(i);
	writes_block();
	m.done[i] += BLOCK;
	m.nr_blocks++;
	for (uint32_t k = 0; k < INPUTS; k++)
		m.truth[k][m.nr_blocks] = m.done[k];
}

/* Runs of up to @run blocks of an input in turn; @random: of any length up to that, of any input. */
static void compacts(uint64_t piece, uint32_t nr_inputs, uint64_t run, bool random)
{
	struct prng p = { piece + run };
	uint32_t i = 0;

	memset(&m, 0, sizeof(m));
	m.piece = piece;
	m.nr_inputs = nr_inputs;
	for (uint32_t k = 0; k < nr_inputs; k++) {
		table(1 + k, 2);
		reads(k);
	}
	while (m.nr_blocks < nr_inputs * BLOCKS) {
		uint64_t n = random ? 1 + prng_below(&p, run) : run;

		for (; n && m.done[i] < BLOCKS * BLOCK; n--)
			merges_block(i);
		i = random ? (uint32_t)prng_below(&p, nr_inputs) : (i + 1) % nr_inputs;
	}
	ends_output();
	for (uint32_t k = 0; k < nr_inputs; k++)
		dies(1 + k, 5);
}

/* ---- what is known of that ---------------------------------------------------------------------------- */

/* How far an input was read when @at bytes had been written. */
static double read_at(const struct bequest_step *step, uint32_t nr, double at)
{
	double from_at = 0, from = 0;

	for (uint32_t k = 0; k < nr; k++) {
		double to_at = (double)step[k].at, to = (double)step[k].read;

		if (at <= to_at)
			return to_at > from_at ? from + (to - from) * (at - from_at) / (to_at - from_at) : to;
		from_at = to_at;
		from = to;
	}
	return from;
}

static void looks(const struct bequest *b)
{
	for (uint32_t i = 0; i < b->nr_inputs; i++) {
		struct bequest_step *step = calloc(b->nr_crossings + 3, sizeof(*step));
		uint32_t nr = bequest_steps(b, i, step);

		for (uint64_t n = 0; n <= m.nr_blocks; n++) {
			double off = read_at(step, nr, (double)(n * BLOCK)) - (double)m.truth[i][n];

			off = off < 0 ? -off : off;
			m.off = off > m.off ? off : m.off;
		}
		free(step);
	}
}

/* The largest error of all that is told of such a merge. */
static double error_of(uint64_t piece, uint32_t nr_inputs, uint64_t run, bool random)
{
	const struct files_tell tell = { .job = on_job };

	files = calloc(1, sizeof(*files));
	assert_non_null(files);
	files_init(files, FILE_PROFILES, &tell);
	bequest = NULL;
	compacts(piece, nr_inputs, run, random);
	assert_non_null(bequest);
	assert_int_equal(bequest->nr_inputs, nr_inputs);
	looks(bequest);
	bequest_free(bequest);
	free(files);
	return m.off;
}

static void within_what_is_read_ahead(void **state)
{
	static const uint64_t piece[] = { 4 * KB, 64 * KB, 128 * KB, 256 * KB, 1024 * KB };
	static const uint64_t run[] = { 1, 16, 48, 256, 2048 };
	int wrong = 0;

	(void)state;
	for (size_t k = 0; k < sizeof(piece) / sizeof(piece[0]); k++) {
		/* Of small reads the system itself reads ahead. */
		double ahead = piece[k] < 64 * KB ? 64 * KB : (double)piece[k];

		for (size_t r = 0; r < sizeof(run) / sizeof(run[0]); r++) {
			for (uint32_t nr = 1; nr <= INPUTS; nr++) {
				for (int random = 0; random <= 1; random++) {
					double off = error_of(piece[k], nr, run[r], random);

					if (off > ahead)
						print_message("%u inputs read by %.0f KiB, merged in runs of %s%.0f KiB: %.0f KiB off\n",
							      nr, (double)piece[k] / 1024, random ? "up to " : "", (double)run[r] * 4,
							      off / 1024);
					wrong += off > ahead;
				}
			}
		}
	}
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(within_what_is_read_ahead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
