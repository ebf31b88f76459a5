/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TERRACE_COMPAT_LINUX_LIMITS_H
#define TERRACE_COMPAT_LINUX_LIMITS_H

#include_next <linux/limits.h>

#define U8_MAX	((__u8)~0U)
#define U16_MAX	((__u16)~0U)
#define U32_MAX	((__u32)~0U)
#define U64_MAX	((__u64)~0ULL)
#define S8_MAX	((__s8)(U8_MAX >> 1))
#define S16_MAX	((__s16)(U16_MAX >> 1))
#define S32_MAX	((__s32)(U32_MAX >> 1))
#define S64_MAX	((__s64)(U64_MAX >> 1))

#endif
