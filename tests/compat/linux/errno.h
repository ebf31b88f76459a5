/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TERRACE_COMPAT_LINUX_ERRNO_H
#define TERRACE_COMPAT_LINUX_ERRNO_H

/* no <errno.h>: that one includes this file, and pure code has no errno variable */
#include <asm/errno.h>

#endif
