/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TERRACE_COMPAT_LINUX_MINMAX_H
#define TERRACE_COMPAT_LINUX_MINMAX_H

/* as strict as the kernel of Debian 12: both sides must have one type */
#define __terrace_same_type(x, y) ((void)(&(x) == &(y)))
#define __terrace_pick2(x, y, op, ux, uy) __extension__ ({	\
	__typeof__(x) ux = (x);				\
	__typeof__(y) uy = (y);				\
	__terrace_same_type(ux, uy);			\
	ux op uy ? ux : uy; })
/* names of their own for each use: they nest */
#define __terrace_pick1(x, y, op, n) __terrace_pick2(x, y, op, __terrace_join(_x, n), __terrace_join(_y, n))
#define __terrace_pick(x, y, op) __terrace_pick1(x, y, op, __COUNTER__)
#define __terrace_join(a, b) __terrace_join1(a, b)
#define __terrace_join1(a, b) a##b

#undef min
#undef max
#define min(x, y)	__terrace_pick(x, y, <)
#define max(x, y)	__terrace_pick(x, y, >)
#define min_t(type, x, y) __terrace_pick((type)(x), (type)(y), <)
#define max_t(type, x, y) __terrace_pick((type)(x), (type)(y), >)
#define min3(x, y, z)	min((__typeof__(x))min(x, y), z)
#define max3(x, y, z)	max((__typeof__(x))max(x, y), z)
#define clamp(val, lo, hi) min((__typeof__(val))max(val, lo), hi)
#define clamp_t(type, val, lo, hi) min_t(type, max_t(type, val, lo), hi)
#define swap(a, b) do { __typeof__(a) _swap = (a); (a) = (b); (b) = _swap; } while (0)

#endif
