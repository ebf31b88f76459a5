/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Randomness for the policies.
 *
 * The policies draw random numbers (power-of-k candidates, sampling at the
 * pinning boundary) but must stay pure: the state is an argument, so a test or
 * a replay with the same seed takes the same decisions.  The generator is
 * splitmix64: eight bytes of state, good enough for choosing candidates, not
 * for secrets.
 */
#ifndef DECIDE_PRNG_H
#define DECIDE_PRNG_H

#include <stdint.h>

struct prng {
	uint64_t state;
};

/* A full-avalanche mix; also the hash of block numbers everywhere in decide/. */
static inline uint64_t mix64(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ull;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static inline uint64_t prng_next(struct prng *p)
{
	p->state += 0x9e3779b97f4a7c15ull;
	return mix64(p->state);
}

/* Uniform in [0, n); 0 for n = 0.  Multiply-shift: the bias is below n / 2^64. */
static inline uint64_t prng_below(struct prng *p, uint64_t n)
{
	return (uint64_t)(((unsigned __int128)prng_next(p) * n) >> 64);
}

/* Uniform in [0, 1). */
static inline double prng_unit(struct prng *p)
{
	return (double)(prng_next(p) >> 11) * 0x1p-53;
}

#endif
