/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TERRACE_COMPAT_LINUX_KERNEL_H
#define TERRACE_COMPAT_LINUX_KERNEL_H

#include_next <linux/kernel.h>
#include <linux/types.h>
#include <linux/build_bug.h>
#include <linux/limits.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/container_of.h>

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#endif
#define ALIGN(x, a)		((((x) - 1) | ((__typeof__(x))(a) - 1)) + 1)
#define ALIGN_DOWN(x, a)	((x) & ~((__typeof__(x))(a) - 1))
#define IS_ALIGNED(x, a)	(((x) & ((__typeof__(x))(a) - 1)) == 0)
#define upper_32_bits(n)	((u32)((u64)(n) >> 32))
#define lower_32_bits(n)	((u32)((n) & 0xffffffff))

#endif
