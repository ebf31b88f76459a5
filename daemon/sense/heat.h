/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Block accesses through BPF: bpf/heat.bpf.c gathers them in tables of each CPU, which are
 * drained here once a tick.  Costs an I/O a fraction of what a record in a perf ring does.
 *
 * Tables that fill up, or would keep the daemon busy, make the program keep only one in 2, 4, … 64
 * of what may be sampled away; `sampling` of the sense follows.  What finds no room all the same is
 * counted as lost.
 */
#ifndef TERRACE_SENSE_HEAT_H
#define TERRACE_SENSE_HEAT_H

#include <stddef.h>

#include "port.h"
#include "terrace_bpf.h"

/*
 * @sampling: what the module does.  0, or -errno with a phrase in @why: the kernel has no BPF, or
 * refuses it.
 */
int heat_open(unsigned int major, unsigned int minor, uint32_t sampling, struct sense **out,
	      char *why, size_t bytes);

/* The disks of the tiers: @disk[tier] is major << 20 | minor, 0: none.  How many were found. */
int tier_disks(unsigned int major, unsigned int minor, uint32_t *disk);

/* --- for its test ------------------------------------------------------------------- */

#define HEAT_MASK_MOST	63u	/* one in 64 */
#define HEAT_BUSY	1024u	/* entries: the daemon's work with each is the larger part of the cost */

struct heat_pace {
	uint32_t mask;	/* one access in mask + 1 is kept */
	uint32_t quiet;	/* drains in a row that found the tables nearly empty */
};

/* After a drain that found @fullest entries in the fullest table. */
void heat_adapt(struct heat_pace *pace, uint32_t fullest, uint32_t dropped);

/* One of a table's entries as accesses, given to @see; how many. */
uint32_t heat_tell(const struct terrace_heat_entry *e, port_see_fn see, void *ctx);

#endif
