/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sorting by a block number that each item begins with, byte by byte of those in which they differ; of one number, as they came.
 *
 * What is sorted here are thousands of numbers below the volume's size, so three bytes or four: comparisons took as long as
 * all that was done with the items before and after.
 */
#ifndef DECIDE_RADIX_H
#define DECIDE_RADIX_H

#include <stdint.h>
#include <string.h>

static inline uint64_t radix_key(const void *items, uint32_t i, size_t size)
{
	uint64_t key;

	memcpy(&key, (const char *)items + i * size, sizeof(key));
	return key;
}

/* @spare: room for as many; @size is a constant, or it is slow. */
static inline void radix_sort(void *items, void *spare, uint32_t nr, size_t size)
{
	char *from = items, *to = spare;
	uint64_t differ = 0;

	for (uint32_t i = 1; i < nr; i++)
		differ |= radix_key(items, i, size) ^ radix_key(items, 0, size);
	for (uint32_t shift = 0; shift < 64 && differ >> shift; shift += 8) {
		uint32_t at[257] = { 0 };
		char *sorted = to;

		if (!(differ >> shift & 255))
			continue;
		for (uint32_t i = 0; i < nr; i++)
			at[(radix_key(from, i, size) >> shift & 255) + 1]++;
		for (uint32_t b = 1; b < 256; b++)
			at[b] += at[b - 1];
		for (uint32_t i = 0; i < nr; i++)
			memcpy(to + at[radix_key(from, i, size) >> shift & 255]++ * size, from + i * size, size);
		to = from;
		from = sorted;
	}
	if (from != items)
		memcpy(items, from, nr * size);
}

#endif
