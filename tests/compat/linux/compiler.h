/* SPDX-License-Identifier: GPL-2.0-or-later */
/* the attribute words that every kernel source file has without an include */
#ifndef TERRACE_COMPAT_LINUX_COMPILER_H
#define TERRACE_COMPAT_LINUX_COMPILER_H

/* glibc's sys/cdefs.h has some of these */
#include <sys/cdefs.h>

#ifndef likely
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#endif
#ifndef __packed
#define __packed	__attribute__((__packed__))
#endif
#ifndef __aligned
#define __aligned(x)	__attribute__((__aligned__(x)))
#endif
#ifndef __must_check
#define __must_check	__attribute__((__warn_unused_result__))
#endif
#ifndef __maybe_unused
#define __maybe_unused	__attribute__((__unused__))
#endif
#ifndef __always_inline
#define __always_inline	inline __attribute__((__always_inline__))
#endif
#ifndef noinline
#define noinline	__attribute__((__noinline__))
#endif
#ifndef __pure
#define __pure		__attribute__((__pure__))
#endif
#ifndef fallthrough
#define fallthrough	__attribute__((__fallthrough__))
#endif
#ifndef __force
#define __force
#endif
#ifndef barrier
#define barrier()	__asm__ __volatile__("" : : : "memory")
#endif
/* scalars only */
#ifndef READ_ONCE
#define READ_ONCE(x)		(*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, value)	(*(volatile __typeof__(x) *)&(x) = (value))
#endif

#endif
