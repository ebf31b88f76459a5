/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread that does one thing at a time which may take long, or for ever on a filesystem that hangs.  Nobody waits for
 * its end, whoever started it: it ends by itself, and frees what is left.
 */
#ifndef TERRACE_SENSE_ERRAND_H
#define TERRACE_SENSE_ERRAND_H

#include <stdbool.h>
#include <stdint.h>

struct errand;

/* @run: by the thread; @drop: frees @arg when nobody will hear of it any more.  0 or -errno. */
int errand_open(void (*run)(void *arg), void (*drop)(void *arg), struct errand **out);
void errand_close(struct errand *e);
/* False: one is under way, or has not been heard of. */
bool errand_start(struct errand *e, void *arg);
/* What was started, when it has been done; waits for that until @until_ns (CLOCK_MONOTONIC) if it is under way.  NULL: not yet. */
void *errand_ended(struct errand *e, uint64_t until_ns);

#endif
