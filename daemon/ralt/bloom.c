// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bloom filters; see bloom.h.  Each probe is mixed anew: steps of one width (double hashing) run together in the small
 * filters of a page, and quadruple the false positives at 50 blocks.
 */
#include "ralt/bloom.h"

#include "decide/prng.h"

#define PROBES_MAX	12u

uint32_t bloom_words(uint32_t blocks, uint32_t bits_per_block)
{
	return (blocks * bits_per_block + 63) / 64;
}

/* ln 2 * bits is the optimum; more than 12 probes cost more than they sharpen. */
uint32_t bloom_probes(uint32_t bits_per_block)
{
	uint32_t best = (bits_per_block * 693 + 500) / 1000;

	if (best < 1)
		return 1;
	return best < PROBES_MAX ? best : PROBES_MAX;
}

/* The probe's bit: the hash as a fraction of the filter's length. */
static uint64_t bit_of(uint64_t hash, uint32_t count)
{
	return (uint64_t)(((unsigned __int128)hash * ((uint64_t)count * 64)) >> 64);
}

void bloom_add(uint64_t *words, uint32_t count, uint32_t probes, uint64_t block)
{
	uint64_t hash = mix64(block ^ 0xa0761d6478bd642full);

	for (uint32_t i = 0; i < probes; i++, hash = mix64(hash)) {
		uint64_t bit = bit_of(hash, count);

		words[bit / 64] |= 1ull << (bit % 64);
	}
}

bool bloom_test(const uint64_t *words, uint32_t count, uint32_t probes, uint64_t block)
{
	uint64_t hash = mix64(block ^ 0xa0761d6478bd642full);

	if (!count)
		return false;
	for (uint32_t i = 0; i < probes; i++, hash = mix64(hash)) {
		uint64_t bit = bit_of(hash, count);

		if (!(words[bit / 64] >> (bit % 64) & 1))
			return false;
	}
	return true;
}
