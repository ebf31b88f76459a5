/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ctrl-C and SIGTERM as a question that a loop asks, so that it can leave
 * things in order.
 */
#ifndef TERRACE_CTL_INTERRUPT_H
#define TERRACE_CTL_INTERRUPT_H

#include <stdbool.h>

/* From now on they end no sleep for good, and no program. */
void interrupt_watch(void);
bool interrupt_seen(void);

#endif
