/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stand-ins for the kernel's own headers, so that the pure code of kmod/core
 * compiles in user space unchanged.  Only what pure code may use is here: no
 * allocation, lock, clock, I/O or log.  Where libc or linux-libc-dev has a
 * header of the same name, the stand-in adds to it.
 *
 * A file that includes <libnvme.h> includes it before any of ours: it defines
 * functions called le32_to_cpu() and so on, which are macros in asm/byteorder.h.
 */
#ifndef TERRACE_COMPAT_LINUX_TYPES_H
#define TERRACE_COMPAT_LINUX_TYPES_H

#include_next <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <linux/compiler.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s8 s8;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;
typedef u64 sector_t;

#endif
