/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chance that a seed repeats, for programs that give others what they do not expect. */
#ifndef TESTS_CHANCE_H
#define TESTS_CHANCE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t chance;		/* the seed, then where it stands */

static inline uint64_t any(void)
{
	uint64_t z = chance += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static inline uint64_t below(uint64_t n)
{
	return n ? any() % n : 0;
}

static inline void trouble(const char *what)
{
	perror(what);
	exit(2);
}

#endif
