/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is known of a job that has written outputs, kept beyond it: where inputs and outputs lie, and how
 * far each input was read while the outputs grew.  The places of inputs are copied at once, since the inputs die;
 * those of outputs are filled in when they have been asked for.
 */
#ifndef TERRACE_SENSE_BEQUEST_H
#define TERRACE_SENSE_BEQUEST_H

#include "sense/places.h"

struct bequest_file {
	struct file_id id;
	uint64_t size;
	uint64_t read;		/* of an input, up to here */
	struct extent *extent;
	uint32_t nr;		/* 0: not known */
};

/* When all outputs had grown to @at, this input was read up to @read; each output counts in whole blocks. */
struct bequest_step {
	uint64_t at, read;
};

struct bequest {
	uint32_t nr_inputs, nr_outputs, nr_crossings;
	uint32_t first;		/* output that has not been given its heat yet */
	bool more;		/* outputs will follow */
	struct bequest_file *file;	/* inputs, then outputs */
	struct file_crossing *crossing;
};

/* NULL: no memory. */
struct bequest *bequest_of(const struct file_job *job, struct places *places);
void bequest_free(struct bequest *b);
void bequest_outputs(struct bequest *b, struct places *places);
/* Of a job that goes on: its first outputs alone. */
void bequest_until(struct bequest *b, uint32_t nr_outputs);

/* Of input @input, into room for nr_crossings + 3 of them; how many. */
uint32_t bequest_steps(const struct bequest *b, uint32_t input, struct bequest_step *out);

#endif
