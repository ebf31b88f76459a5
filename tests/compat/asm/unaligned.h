/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TERRACE_COMPAT_ASM_UNALIGNED_H
#define TERRACE_COMPAT_ASM_UNALIGNED_H

#include <string.h>
#include <asm/byteorder.h>

#define __TERRACE_UNALIGNED(bits)						\
static inline u##bits get_unaligned_le##bits(const void *p)			\
{										\
	__le##bits v;								\
										\
	memcpy(&v, p, sizeof(v));						\
	return le##bits##_to_cpu(v);						\
}										\
static inline void put_unaligned_le##bits(u##bits value, void *p)		\
{										\
	__le##bits v = cpu_to_le##bits(value);					\
										\
	memcpy(p, &v, sizeof(v));						\
}

__TERRACE_UNALIGNED(16)
__TERRACE_UNALIGNED(32)
__TERRACE_UNALIGNED(64)

#endif
