/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Heat by descent: a compaction reads its inputs from front to back and writes its outputs meanwhile, so
 * what was read while an output grew from a to b is what lies between a and b.
 *
 * Steps say how far an input was read when the outputs, one after the other, had grown to a point; between two
 * of them bytes are taken to pass evenly.  A block's heat goes where its bytes go, in parts that add up
 * to it:
 *
 *	input A  |hot  |cold |		outputs  |A hot + B cold|A cold + B hot|
 *	input B  |cold |hot  |
 *
 * Each block passes on its own heat, not its neighbours'.  Nothing is lost or made; where heat is denser than a few
 * blocks, the outputs are as hot as the inputs were.
 */
#ifndef DECIDE_INHERIT_H
#define DECIDE_INHERIT_H

#include <stdbool.h>
#include <stdint.h>

#define INHERIT_BLOCK	4096u

/* Of a block. Sums of such are heat as well. */
struct inherit_heat {
	float score;
	float stable;		/* of the score: from records that had proved themselves */
	float counter;		/* score times counter */
};

/* When the outputs had grown to @at, the input was read up to @read: bytes; both never fall. */
struct inherit_step {
	uint64_t at, read;
};

/*
 * Adds what the blocks of one input pass on to those of the outputs.  Before the first step lies (0, 0).
 * Bytes beyond @nr_in or @nr_out blocks are left out.
 */
void inherit_lay(const struct inherit_step *step, uint32_t nr, const struct inherit_heat *in,
		 uint64_t nr_in, struct inherit_heat *out, uint64_t nr_out);

/* What a block of the output starts with; false: too little to be worth a record. */
bool inherit_start(const struct inherit_heat *sum, double *score, double *counter, bool *stable);

/*
 * Is what such inputs become cold enough to go past the fast tier?  @hot: share of their blocks that are hot, below 0: not
 * known.  @bottom: it goes to the last level, which is most of a database, and the coldest of it: its hot part comes
 * back up as heirs.
 */
bool inherit_is_cold(double hot, double cold_share, double bottom_share, bool bottom);

#endif
