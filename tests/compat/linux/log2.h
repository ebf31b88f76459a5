/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TERRACE_COMPAT_LINUX_LOG2_H
#define TERRACE_COMPAT_LINUX_LOG2_H

#include <linux/types.h>

/* usable in constant expressions; of 0 it is undefined, as in the kernel */
#define ilog2(n)	(63 - __builtin_clzll((unsigned long long)(n)))
#define order_base_2(n)	((n) > 1 ? ilog2((n) - 1) + 1 : 0)

static inline bool is_power_of_2(unsigned long n)
{
	return n && !(n & (n - 1));
}

static inline unsigned long roundup_pow_of_two(unsigned long n)
{
	return 1UL << order_base_2(n);
}

static inline unsigned long rounddown_pow_of_two(unsigned long n)
{
	return 1UL << ilog2(n);
}

#endif
