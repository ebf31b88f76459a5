// SPDX-License-Identifier: GPL-2.0-or-later
/* See bequest.h. */
#include "sense/bequest.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK	4096u

static void place_file(struct bequest_file *f, struct places *places)
{
	const struct place *p = places_find(places, &f->id);

	if (f->nr || !p || p->early)
		return;
	f->extent = malloc(p->nr * sizeof(*f->extent));
	if (!f->extent)
		return;
	memcpy(f->extent, p->extent, p->nr * sizeof(*f->extent));
	f->nr = p->nr;
}

static void from_part(struct bequest_file *f, const struct file_part *part)
{
	f->id = part->id;
	f->size = part->size;
	f->read = part->read;
}

struct bequest *bequest_of(const struct file_job *job, struct places *places)
{
	struct bequest *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->nr_inputs = job->nr_inputs;
	b->nr_outputs = job->nr_outputs;
	b->nr_crossings = job->nr_crossings;
	b->first = job->given;
	b->file = calloc(b->nr_inputs + b->nr_outputs, sizeof(*b->file));
	b->crossing = calloc(b->nr_crossings + 1, sizeof(*b->crossing));
	if (!b->file || !b->crossing) {
		bequest_free(b);
		return NULL;
	}
	memcpy(b->crossing, job->crossing, b->nr_crossings * sizeof(*b->crossing));
	for (uint32_t i = 0; i < b->nr_inputs; i++) {
		from_part(&b->file[i], &job->input[i]);
		place_file(&b->file[i], places);
	}
	for (uint32_t i = 0; i < b->nr_outputs; i++)
		from_part(&b->file[b->nr_inputs + i], &job->output[i]);
	return b;
}

void bequest_free(struct bequest *b)
{
	for (uint32_t i = 0; b->file && i < b->nr_inputs + b->nr_outputs; i++)
		free(b->file[i].extent);	/* those of outputs that follow were never asked for */
	free(b->file);
	free(b->crossing);
	free(b);
}

void bequest_outputs(struct bequest *b, struct places *places)
{
	for (uint32_t i = 0; i < b->nr_outputs; i++)
		place_file(&b->file[b->nr_inputs + i], places);
}

void bequest_until(struct bequest *b, uint32_t nr_outputs)
{
	b->nr_outputs = nr_outputs;
	b->more = true;
}

static uint64_t whole(uint64_t bytes)
{
	return (bytes + BLOCK - 1) / BLOCK * BLOCK;
}

struct walk {
	const struct bequest *b;
	uint32_t input;
	uint64_t at, first_at;	/* growth now; when this input was begun */
	uint64_t read;		/* consumed of it */
	uint64_t ahead;		/* read */
	struct bequest_step *out;
	uint32_t n;
	bool begun;
};

static void push(struct walk *w, uint64_t at, uint64_t read)
{
	w->out[w->n++] = (struct bequest_step){ at, read };
}

static uint64_t last_read(const struct walk *w)
{
	return w->n ? w->out[w->n - 1].read : 0;
}

/*
 * A crossing says: this was consumed when the output was at `at`, or a little more: what was written since is not told
 * yet.  So it holds for the next growth that is told.  While nothing more is consumed there is no step: what was read
 * ahead in one piece passes evenly.
 */
static void grow(struct walk *w, uint64_t at)
{
	if (at <= w->at)
		return;
	w->at = at;
	if (w->read > last_read(w))
		push(w, at, w->read);
}

/* Known to the byte, so that it holds for what it is told of. */
static void reach(struct walk *w, uint64_t read)
{
	if (read <= last_read(w))
		return;
	w->read = read;
	push(w, w->at, read);
}

static void begin(struct walk *w)
{
	w->begun = true;
	w->first_at = w->at;
	if (w->at)
		push(w, w->at, 0);
}

/* What was last read ahead goes on at the pace of before; of a file that was read in one piece, at that of a copy. */
static void finish(struct walk *w, uint64_t all)
{
	uint64_t size = w->b->file[w->input].size, done = last_read(w), from = w->n ? w->out[w->n - 1].at : 0;
	double pace = done ? (double)(from - w->first_at) / (double)done : 1, left;

	/* What it was read ahead goes to outputs that follow; nobody knows how much of the last piece. */
	if (w->b->more && w->ahead > w->read)
		w->read = w->ahead;
	grow(w, all);
	done = last_read(w);
	if (w->b->more)
		return;
	if (!w->begun || done >= size || from >= all)
		return;
	left = (double)(size - done) * (pace > 1 ? pace : 1);
	from = w->n ? w->out[w->n - 1].at : from;
	if (from >= all)
		w->out[w->n - 1].read = size;
	else
		push(w, left < (double)(all - from) ? from + (uint64_t)left : all, size);
}

uint32_t bequest_steps(const struct bequest *b, uint32_t input, struct bequest_step *out)
{
	struct walk w = { .b = b, .input = input, .out = out };
	uint64_t base = 0, size;
	uint32_t output = 0;

	for (uint32_t k = 0; k < b->nr_crossings; k++) {
		const struct file_crossing *c = &b->crossing[k];

		for (; output < c->output && output < b->nr_outputs; output++)
			base += whole(b->file[b->nr_inputs + output].size);
		size = output < b->nr_outputs ? whole(b->file[b->nr_inputs + output].size) : 0;
		grow(&w, base + (c->at < size ? c->at : size));
		if (c->input != input)
			continue;
		if (!w.begun)
			begin(&w);
		if (c->exact)
			reach(&w, c->from);
		else if (c->end > w.read)
			w.read = c->end;
		w.ahead = c->end > w.ahead ? c->end : w.ahead;
	}
	for (; output < b->nr_outputs; output++)
		base += whole(b->file[b->nr_inputs + output].size);
	finish(&w, base);
	return w.n;
}
