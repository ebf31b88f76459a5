// SPDX-License-Identifier: GPL-2.0-or-later
/* Building the `up` mask word by word; see upmask.h. */
#include "decide/upmask.h"

#include <string.h>

uint32_t upmask_count(const struct upmask *m)
{
	uint32_t n = 0;

	for (uint32_t w = 0; w < UPMASK_WORDS; w++)
		n += (uint32_t)__builtin_popcountll(m->bits[w]);
	return n;
}

/* The lowest @keep bits set in @word. */
static uint64_t lowest(uint64_t word, uint32_t keep)
{
	uint64_t out = 0;

	while (word && keep--) {
		out |= word & -word;
		word &= word - 1;
	}
	return out;
}

static uint32_t bits(uint64_t word)
{
	return (uint32_t)__builtin_popcountll(word);
}

uint32_t upmask_neighbours(struct upmask *up, const struct upmask *known, const struct upmask *fast,
			   const struct upmask *packed, double share, uint32_t room)
{
	uint32_t added = 0;

	for (uint32_t w = 0; w < UPMASK_WORDS; w++) {
		uint64_t mapped = fast->bits[w] | packed->bits[w], more;

		if (!up->bits[w] || bits(mapped) < 32 ||
		    bits((known->bits[w] | up->bits[w]) & mapped) < share * bits(mapped))
			continue;
		more = lowest(packed->bits[w] & ~up->bits[w], room - added);
		up->bits[w] |= more;
		added += bits(more);
	}
	return added;
}

void upmask_build(struct upmask_result *out, const struct upmask_input *in, uint32_t room)
{
	memset(out, 0, sizeof(*out));
	for (uint32_t w = 0; w < UPMASK_WORDS; w++) {
		uint64_t fast = in->fast.bits[w], packed = in->packed.bits[w];
		uint64_t allowed = ~in->banned.bits[w];
		uint64_t pins = in->pins.bits[w] & allowed & (fast | packed);
		uint64_t hot = in->hot.bits[w] & allowed & ~pins;
		uint64_t kept = (hot & fast) | (pins & fast);
		uint64_t raised = lowest(hot & packed, room);

		room -= bits(raised);
		out->refused += bits(hot & packed) - bits(raised);
		raised |= pins & packed;
		out->up.bits[w] = kept | raised;
		out->retained += bits(kept);
		out->promoted += bits(raised);
		out->demoted += bits(fast & ~kept);
	}
}
