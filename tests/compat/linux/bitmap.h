/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TERRACE_COMPAT_LINUX_BITMAP_H
#define TERRACE_COMPAT_LINUX_BITMAP_H

#include <string.h>
#include <linux/bitops.h>

#define DECLARE_BITMAP(name, bits) unsigned long name[BITS_TO_LONGS(bits)]

static inline void bitmap_zero(unsigned long *map, unsigned int bits)
{
	memset(map, 0, BITS_TO_LONGS(bits) * sizeof(long));
}

static inline void bitmap_fill(unsigned long *map, unsigned int bits)
{
	memset(map, 0xff, BITS_TO_LONGS(bits) * sizeof(long));
}

static inline void bitmap_copy(unsigned long *to, const unsigned long *from, unsigned int bits)
{
	memcpy(to, from, BITS_TO_LONGS(bits) * sizeof(long));
}

static inline void bitmap_set(unsigned long *map, unsigned int start, unsigned int count)
{
	while (count--)
		__set_bit(start++, map);
}

static inline void bitmap_clear(unsigned long *map, unsigned int start, unsigned int count)
{
	while (count--)
		__clear_bit(start++, map);
}

static inline bool bitmap_empty(const unsigned long *map, unsigned int bits)
{
	return find_first_bit(map, bits) == bits;
}

static inline bool bitmap_full(const unsigned long *map, unsigned int bits)
{
	return find_first_zero_bit(map, bits) == bits;
}

static inline unsigned int bitmap_weight(const unsigned long *map, unsigned int bits)
{
	unsigned int weight = 0, word;

	for (word = 0; word < bits / BITS_PER_LONG; word++)
		weight += hweight_long(map[word]);
	if (bits % BITS_PER_LONG)
		weight += hweight_long(map[word] & (~0UL >> (BITS_PER_LONG - bits % BITS_PER_LONG)));
	return weight;
}

#endif
