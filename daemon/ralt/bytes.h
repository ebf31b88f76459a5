/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Little-endian bytes and the checksum of RALT's files.
 *
 * The checksum folds 64-bit words, each step a bijection of the state and of the
 * word: any change within one word changes the result, and larger damage escapes
 * with probability 2^-64.  It runs at memory speed, since every merge passes
 * gigabytes through it; the seed ties a page to its file and position.
 */
#ifndef RALT_BYTES_H
#define RALT_BYTES_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline void put_le32(uint8_t *to, uint32_t x)
{
	x = htole32(x);
	memcpy(to, &x, sizeof(x));
}

static inline void put_le64(uint8_t *to, uint64_t x)
{
	x = htole64(x);
	memcpy(to, &x, sizeof(x));
}

static inline uint32_t get_le32(const uint8_t *from)
{
	uint32_t x;

	memcpy(&x, from, sizeof(x));
	return le32toh(x);
}

static inline uint64_t get_le64(const uint8_t *from)
{
	uint64_t x;

	memcpy(&x, from, sizeof(x));
	return le64toh(x);
}

static inline void put_double(uint8_t *to, double x)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof(bits));
	put_le64(to, bits);
}

static inline double get_double(const uint8_t *from)
{
	uint64_t bits = get_le64(from);
	double x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

/* @bytes: a multiple of 8. */
static inline uint64_t ralt_checksum(uint64_t seed, const uint8_t *data, size_t bytes)
{
	uint64_t h = seed ^ 0x9e3779b97f4a7c15ull ^ bytes;

	for (size_t i = 0; i + 8 <= bytes; i += 8) {
		h = (h ^ get_le64(data + i)) * 0xff51afd7ed558ccdull;
		h ^= h >> 32;
	}
	h *= 0xc4ceb9fe1a85ec53ull;
	return h ^ h >> 29;
}

#endif
