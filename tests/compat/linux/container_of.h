/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TERRACE_COMPAT_LINUX_CONTAINER_OF_H
#define TERRACE_COMPAT_LINUX_CONTAINER_OF_H

#include <stddef.h>

#ifndef container_of
#define container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))
#endif

#endif
