/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TERRACE_COMPAT_LINUX_BITOPS_H
#define TERRACE_COMPAT_LINUX_BITOPS_H

#include <linux/types.h>
#include <linux/bits.h>

#define hweight8(x)	((unsigned int)__builtin_popcount((u8)(x)))
#define hweight16(x)	((unsigned int)__builtin_popcount((u16)(x)))
#define hweight32(x)	((unsigned int)__builtin_popcount((u32)(x)))
#define hweight64(x)	((unsigned long)__builtin_popcountll((u64)(x)))
#define hweight_long(x)	((unsigned long)__builtin_popcountl(x))

/* as in the kernel: bit numbers count from 1, 0 means none */
static inline int fls(unsigned int x)
{
	return x ? 32 - __builtin_clz(x) : 0;
}

static inline int fls64(u64 x)
{
	return x ? 64 - __builtin_clzll(x) : 0;
}

static inline unsigned long __ffs(unsigned long x)
{
	return __builtin_ctzl(x);
}

static inline unsigned long __ffs64(u64 x)
{
	return __builtin_ctzll(x);
}

static inline unsigned long ffz(unsigned long x)
{
	return __builtin_ctzl(~x);
}

static inline u32 rol32(u32 word, unsigned int shift)
{
	return (word << (shift & 31)) | (word >> (-shift & 31));
}

static inline u64 rol64(u64 word, unsigned int shift)
{
	return (word << (shift & 63)) | (word >> (-shift & 63));
}

static inline void __set_bit(unsigned long nr, unsigned long *addr)
{
	addr[BIT_WORD(nr)] |= BIT_MASK(nr);
}

static inline void __clear_bit(unsigned long nr, unsigned long *addr)
{
	addr[BIT_WORD(nr)] &= ~BIT_MASK(nr);
}

static inline bool test_bit(unsigned long nr, const unsigned long *addr)
{
	return addr[BIT_WORD(nr)] & BIT_MASK(nr);
}

static inline bool __test_and_set_bit(unsigned long nr, unsigned long *addr)
{
	bool was = test_bit(nr, addr);

	__set_bit(nr, addr);
	return was;
}

static inline bool __test_and_clear_bit(unsigned long nr, unsigned long *addr)
{
	bool was = test_bit(nr, addr);

	__clear_bit(nr, addr);
	return was;
}

/* the first bit from @start on that differs from those of @flip; @size when there is none */
static inline unsigned long __terrace_find_bit(const unsigned long *addr, unsigned long size,
					       unsigned long start, unsigned long flip)
{
	while (start < size) {
		unsigned long word = (addr[BIT_WORD(start)] ^ flip) >> (start % BITS_PER_LONG);

		if (word) {
			start += __builtin_ctzl(word);
			return start < size ? start : size;
		}
		start += BITS_PER_LONG - start % BITS_PER_LONG;
	}
	return size;
}

#define find_next_bit(addr, size, start)	__terrace_find_bit(addr, size, start, 0)
#define find_first_bit(addr, size)		__terrace_find_bit(addr, size, 0, 0)
#define find_next_zero_bit(addr, size, start)	__terrace_find_bit(addr, size, start, ~0UL)
#define find_first_zero_bit(addr, size)		__terrace_find_bit(addr, size, 0, ~0UL)
#define for_each_set_bit(bit, addr, size) \
	for ((bit) = find_first_bit(addr, size); (bit) < (size); (bit) = find_next_bit(addr, size, (bit) + 1))

#endif
