/* SPDX-License-Identifier: GPL-2.0-or-later */
/* the barriers that pair a reader with one writer */
#ifndef TERRACE_COMPAT_ASM_BARRIER_H
#define TERRACE_COMPAT_ASM_BARRIER_H

#define smp_rmb()	__atomic_thread_fence(__ATOMIC_ACQUIRE)
#define smp_wmb()	__atomic_thread_fence(__ATOMIC_RELEASE)

#endif
