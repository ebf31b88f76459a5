/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TERRACE_COMPAT_ASM_BYTEORDER_H
#define TERRACE_COMPAT_ASM_BYTEORDER_H

#include_next <asm/byteorder.h>
#include <linux/types.h>

#define cpu_to_le16(x)	__cpu_to_le16(x)
#define cpu_to_le32(x)	__cpu_to_le32(x)
#define cpu_to_le64(x)	__cpu_to_le64(x)
#define le16_to_cpu(x)	__le16_to_cpu(x)
#define le32_to_cpu(x)	__le32_to_cpu(x)
#define le64_to_cpu(x)	__le64_to_cpu(x)

static inline void le16_add_cpu(__le16 *p, u16 value)
{
	*p = cpu_to_le16(le16_to_cpu(*p) + value);
}

static inline void le32_add_cpu(__le32 *p, u32 value)
{
	*p = cpu_to_le32(le32_to_cpu(*p) + value);
}

static inline void le64_add_cpu(__le64 *p, u64 value)
{
	*p = cpu_to_le64(le64_to_cpu(*p) + value);
}

#endif
