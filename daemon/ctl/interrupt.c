// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Signals that ask for an end. See interrupt.h.
 */
#include <signal.h>
#include <stddef.h>

#include "interrupt.h"

static volatile sig_atomic_t seen;

static void note(int number)
{
	(void)number;
	seen = 1;
}

void interrupt_watch(void)
{
	const struct sigaction action = { .sa_handler = note };	/* calls return EINTR */

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

bool interrupt_seen(void)
{
	return seen;
}
