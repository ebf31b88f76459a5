// SPDX-License-Identifier: GPL-2.0-or-later
/* See descent.h: the same things under other names, since sense knows no loop. */
#include "descent.h"

#include <stdlib.h>

static void release(struct engine_file *file, uint32_t nr)
{
	for (uint32_t i = 0; file && i < nr; i++) {
		free((void *)file[i].range);
		free((void *)file[i].step);
	}
	free(file);
}

static void copy_ranges(struct engine_file *to, const struct bequest_file *from)
{
	struct engine_range *range = calloc(from->nr + 1, sizeof(*range));

	to->size = from->size;
	to->range = range;
	for (uint32_t i = 0; range && i < from->nr; i++)
		range[i] = (struct engine_range){
			.block = from->extent[i].block, .nr = from->extent[i].nr, .offset = from->extent[i].offset,
		};
	to->nr = range ? from->nr : 0;
}

static void copy_steps(struct engine_file *to, const struct bequest *b, uint32_t input)
{
	struct bequest_step *from = calloc(b->nr_crossings + 3, sizeof(*from));
	struct inherit_step *step = calloc(b->nr_crossings + 3, sizeof(*step));

	if (from && step)
		to->nr_steps = bequest_steps(b, input, from);
	for (uint32_t i = 0; from && step && i < to->nr_steps; i++)
		step[i] = (struct inherit_step){ .at = from[i].at, .read = from[i].read };
	to->step = step;
	free(from);
}

void descent_tell(struct engine *e, const struct bequest *b)
{
	uint32_t nr = b->nr_inputs + b->nr_outputs;
	struct engine_file *file = calloc(nr, sizeof(*file));

	for (uint32_t i = 0; file && i < nr; i++) {
		copy_ranges(&file[i], &b->file[i]);
		if (i < b->nr_inputs)
			copy_steps(&file[i], b, i);
	}
	if (file)
		engine_inherit(e, file, b->nr_inputs, file + b->nr_inputs, b->nr_outputs, b->first, b->more);
	release(file, nr);
}

/* Blocks of the input's bytes [@from, @end) that are known, and those of them in the hot set. */
static void look(struct engine *e, const struct bequest_file *f, uint64_t from, uint64_t end, uint64_t *known, uint64_t *hot)
{
	for (uint32_t k = 0; k < f->nr; k++) {
		const struct extent *x = &f->extent[k];
		uint64_t lo = from > x->offset ? (from - x->offset) / INHERIT_BLOCK : 0;
		uint64_t hi = end > x->offset ? (end - x->offset + INHERIT_BLOCK - 1) / INHERIT_BLOCK : 0;

		hi = hi < x->nr ? hi : x->nr;
		if (lo >= hi)
			continue;
		*known += hi - lo;
		*hot += engine_hot_set(e, x->block + lo, hi - lo);
	}
}

double descent_hot_share(struct engine *e, const struct bequest *b, uint64_t bytes)
{
	uint64_t left = 0, known = 0, hot = 0;

	for (uint32_t i = 0; i < b->nr_inputs; i++)
		left += b->file[i].size > b->file[i].read ? b->file[i].size - b->file[i].read : 0;
	for (uint32_t i = 0; i < b->nr_inputs; i++) {
		const struct bequest_file *f = &b->file[i];
		uint64_t rest = f->size > f->read ? f->size - f->read : 0;

		/* Side by side, at the pace of what each has left; small ones have been read ahead as a whole. */
		if (!left)
			look(e, f, 0, f->size, &known, &hot);
		else if (rest)
			look(e, f, f->read, f->read + (bytes < left ? (uint64_t)((double)bytes * (double)rest / (double)left) : rest),
			     &known, &hot);
	}
	return known ? (double)hot / (double)known : -1;
}
