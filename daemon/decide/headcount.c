// SPDX-License-Identifier: GPL-2.0-or-later
/* Counts of uses in a wide sample and in the miniatures'; see headcount.h. */
#include "decide/headcount.h"

#include <errno.h>
#include <string.h>

#include "decide/miniature.h"

static uint32_t blocks_of(uint64_t volume_blocks, uint32_t shift)
{
	return (uint32_t)((volume_blocks - 1) >> shift) + 1;
}

size_t headcount_bytes(uint64_t volume_blocks, uint32_t wide_shift, uint32_t few_shift)
{
	return (size_t)blocks_of(volume_blocks, wide_shift) + blocks_of(volume_blocks, few_shift);
}

static struct headcount_sample sample(uint64_t volume_blocks, uint32_t shift, uint8_t *mem)
{
	uint32_t blocks = blocks_of(volume_blocks, shift);

	return (struct headcount_sample){ .uses = mem, .blocks = blocks, .shift = shift, .used = { blocks } };
}

int headcount_init(struct headcount *h, uint64_t volume_blocks, uint32_t wide_shift, uint32_t few_shift, void *mem,
		   size_t bytes)
{
	if (!volume_blocks || wide_shift >= few_shift)
		return -EINVAL;
	if (!mem || bytes < headcount_bytes(volume_blocks, wide_shift, few_shift))
		return -ENOMEM;
	memset(mem, 0, headcount_bytes(volume_blocks, wide_shift, few_shift));
	*h = (struct headcount){ .volume_blocks = volume_blocks };
	h->wide = sample(volume_blocks, wide_shift, mem);
	h->few = sample(volume_blocks, few_shift, h->wide.uses + h->wide.blocks);
	return 0;
}

static void set(struct headcount_sample *s, uint64_t n, uint8_t uses)
{
	s->used[s->uses[n]]--;
	s->used[uses]++;
	s->uses[n] = uses;
}

static void use(struct headcount_sample *s, uint64_t block)
{
	uint64_t n = block >> s->shift;

	if (s->uses[n] < HEADCOUNT_LEVELS - 1)
		set(s, n, s->uses[n] + 1);
}

static void halve(struct headcount_sample *s)
{
	for (uint32_t n = 0; n < s->blocks; n++)
		s->uses[n] /= 2;
	for (uint32_t level = 1; level < HEADCOUNT_LEVELS; level++) {
		uint32_t here = s->used[level];

		s->used[level] = 0;
		s->used[level / 2] += here;
	}
}

/* That of its group of 2^few_shift which stands for it, moved to its own 2^wide_shift: one hash for both. */
static bool is_counted(const struct headcount *h, uint64_t block, uint64_t few)
{
	return !((block ^ few) & ((1ull << h->wide.shift) - 1));
}

bool headcount_access(struct headcount *h, uint64_t block, uint64_t few)
{
	if (!is_counted(h, block, few))
		return false;
	use(&h->wide, block);
	if (block == few)
		use(&h->few, block);
	if (++h->heard < h->wide.blocks)
		return false;
	h->heard = 0;
	halve(&h->wide);
	halve(&h->few);
	return true;
}

static void forget(struct headcount_sample *s, uint32_t few_shift, uint64_t first, uint64_t end)
{
	uint64_t mask = (1ull << s->shift) - 1;

	for (uint64_t n = first >> s->shift; n < s->blocks && n << s->shift < end; n++) {
		uint64_t few = miniature_block(n << s->shift >> few_shift, few_shift);
		uint64_t block = n << s->shift | (few & mask);

		if (block >= first && block < end)
			set(s, n, 0);
	}
}

void headcount_forget(struct headcount *h, uint64_t first, uint64_t count)
{
	forget(&h->wide, h->few.shift, first, first + count);
	forget(&h->few, h->few.shift, first, first + count);
}

double headcount_room(const struct headcount *h, double fast_blocks)
{
	double left = fast_blocks / (double)h->volume_blocks * h->wide.blocks, room = 0;

	for (uint32_t level = HEADCOUNT_LEVELS; level-- && left > 0;) {
		double wide = h->wide.used[level], few = h->few.used[level];

		room += left < wide ? few * left / wide : few;
		left -= wide;
	}
	return room;
}
