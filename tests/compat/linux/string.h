/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TERRACE_COMPAT_LINUX_STRING_H
#define TERRACE_COMPAT_LINUX_STRING_H

#include <string.h>
#include <linux/types.h>

/* the first byte that differs from @c, or NULL */
static inline void *memchr_inv(const void *start, int c, size_t bytes)
{
	const u8 *p = start;

	for (; bytes; p++, bytes--)
		if (*p != (u8)c)
			return (void *)p;
	return NULL;
}

#endif
