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
		engine_inherit(e, file, b->nr_inputs, file + b->nr_inputs, b->nr_outputs);
	release(file, nr);
}

#define PROBES	4096u

double descent_hot_share(struct engine *e, const struct bequest *b)
{
	uint64_t blocks = 0, hot = 0, looked = 0, skip;

	for (uint32_t i = 0; i < b->nr_inputs; i++)
		for (uint32_t k = 0; k < b->file[i].nr; k++)
			blocks += b->file[i].extent[k].nr;
	skip = blocks / PROBES + 1;
	for (uint32_t i = 0; i < b->nr_inputs; i++)
		for (uint32_t k = 0; k < b->file[i].nr; k++)
			for (uint64_t n = 0; n < b->file[i].extent[k].nr; n += skip, looked++)
				hot += engine_hot(e, b->file[i].extent[k].block + n);
	return looked ? (double)hot / (double)looked : -1;
}
