/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What happens to files of watched filesystems, through BPF: loads bpf/lsm.bpf.c and reads its ring.
 * One for the whole daemon.
 */
#ifndef TERRACE_SENSE_LSM_H
#define TERRACE_SENSE_LSM_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "terrace_bpf.h"

struct lsm_sense;

/* False: enough for now. */
typedef bool (*lsm_see_fn)(void *ctx, const struct terrace_file_event *e);

/* @ignored: of a sense, whose program shall know at once which threads compact; or NULL.  0, or -errno with a phrase in @why. */
int lsm_open(struct lsm_sense **out, const int *ignored, lsm_see_fn see, void *ctx, char *why, size_t bytes);
/* Whether they are marked. */
void lsm_mark(struct lsm_sense *l, bool yes);
void lsm_close(struct lsm_sense *l);

/* Filesystems by their device, 64 at most. */
int lsm_watch(struct lsm_sense *l, unsigned int major, unsigned int minor, bool on);

/* Hands over what is there, without waiting, up to a bound, or until that is enough.  How many or -errno. */
int lsm_drain(struct lsm_sense *l);

/*
 * Wakes whoever polls it, edge-triggered and once until the next drain, when a file dies, is closed after it was written, or has
 * begun to be written: until it is asked where it lies nothing is known to be dead when it dies, and a compaction that is killed
 * deletes what it has just written.
 */
int lsm_fd(const struct lsm_sense *l);

/* Events that found no room, ever. */
uint64_t lsm_lost(const struct lsm_sense *l);

#endif
