/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TERRACE_COMPAT_LINUX_BUILD_BUG_H
#define TERRACE_COMPAT_LINUX_BUILD_BUG_H

#include <assert.h>

#ifndef static_assert
#define static_assert _Static_assert
#endif
/* glibc's macro wants a message; the kernel's makes it optional */
#undef static_assert
#define static_assert(expr, ...) __static_assert(expr, ##__VA_ARGS__, #expr)
#define __static_assert(expr, msg, ...) _Static_assert(expr, msg)

#define BUILD_BUG_ON_ZERO(e)	((int)(sizeof(struct { int : (-!!(e)); })))
#define BUILD_BUG_ON(cond)	_Static_assert(!(cond), "BUILD_BUG_ON failed: " #cond)
#define BUILD_BUG_ON_MSG(cond, msg) _Static_assert(!(cond), msg)
#define BUILD_BUG_ON_NOT_POWER_OF_2(n) BUILD_BUG_ON((n) == 0 || (((n) & ((n) - 1)) != 0))

#endif
