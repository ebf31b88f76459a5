// SPDX-License-Identifier: GPL-2.0-or-later
/* Heat from inputs to outputs; see inherit.h. */
#include "decide/inherit.h"

/* No tunable: one access is worth 1, and a record takes 16 bytes however little it says. */
#define LEAST	0.25f	/* score: less is not remembered */

static void add(struct inherit_heat *to, const struct inherit_heat *from, double part)
{
	to->score += (float)((double)from->score * part);
	to->stable += (float)((double)from->stable * part);
	to->counter += (float)((double)from->counter * part);
}

/* @part of @heat, evenly over the output's bytes [@from, @end). */
static void spread(const struct inherit_heat *heat, double part, double from, double end,
		   struct inherit_heat *out, uint64_t nr_out)
{
	uint64_t first = (uint64_t)from / INHERIT_BLOCK, last = (uint64_t)end / INHERIT_BLOCK;

	if (end - from < 1) {
		if (first < nr_out)
			add(&out[first], heat, part);
		return;
	}
	for (uint64_t b = first; b <= last && b < nr_out; b++) {
		double lo = (double)(b * INHERIT_BLOCK), hi = lo + INHERIT_BLOCK;

		lo = lo > from ? lo : from;
		hi = hi < end ? hi : end;
		if (hi > lo)
			add(&out[b], heat, part * (hi - lo) / (end - from));
	}
}

/* Input bytes [a.read, b.read) became output bytes [a.at, b.at). */
static void lay_piece(struct inherit_step a, struct inherit_step b, const struct inherit_heat *in,
		      uint64_t nr_in, struct inherit_heat *out, uint64_t nr_out)
{
	double grow = (double)(b.at - a.at) / (double)(b.read - a.read);

	for (uint64_t n = a.read / INHERIT_BLOCK; n < nr_in && n * INHERIT_BLOCK < b.read; n++) {
		uint64_t lo = n * INHERIT_BLOCK, hi = lo + INHERIT_BLOCK;

		if (in[n].score <= 0)
			continue;
		lo = lo > a.read ? lo : a.read;
		hi = hi < b.read ? hi : b.read;
		spread(&in[n], (double)(hi - lo) / INHERIT_BLOCK, (double)a.at + (double)(lo - a.read) * grow,
		       (double)a.at + (double)(hi - a.read) * grow, out, nr_out);
	}
}

void inherit_lay(const struct inherit_step *step, uint32_t nr, const struct inherit_heat *in,
		 uint64_t nr_in, struct inherit_heat *out, uint64_t nr_out)
{
	struct inherit_step done = { 0, 0 };

	for (uint32_t k = 0; k < nr; k++) {
		/* What was read while nothing grew comes with the next growth. */
		if (step[k].at <= done.at || step[k].read < done.read)
			continue;
		if (step[k].read > done.read)
			lay_piece(done, step[k], in, nr_in, out, nr_out);
		done = step[k];
	}
}

bool inherit_start(const struct inherit_heat *sum, double *score, double *counter, bool *stable)
{
	if (!(sum->score >= LEAST))
		return false;
	*score = (double)sum->score;
	*counter = (double)(sum->counter / sum->score);
	*stable = sum->stable * 2 >= sum->score;
	return true;
}

bool inherit_is_cold(double hot, double cold_share, double bottom_share, bool bottom)
{
	return hot >= 0 && cold_share >= 0 &&
	       hot <= (bottom && bottom_share > cold_share ? bottom_share : cold_share);
}
