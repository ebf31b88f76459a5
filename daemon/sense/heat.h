/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Block accesses through BPF: bpf/heat.bpf.c gathers them in tables of each CPU, which are
 * drained here once a tick.  Costs an I/O a fraction of what a record in a perf ring does.
 *
 * How many hits the module tells follows the load: all of them while there are few, for a disk
 * that serves 200 reads a second would take minutes to show what is hot in a sixteenth of them.
 * Beyond that tables that fill up, or would keep the daemon busy, make the program keep only one in
 * 2, 4, … 64 of what may be sampled away; `sampling` of the sense is the product.  What finds no room
 * all the same is counted as lost.
 *
 * Slow reads that fill the tables are no reason for it: to leave out hits makes no room then.
 *
 * Slow reads are told each as long as they are no more than are worth it, as of a disk; of flash, which serves a hundred thousand, one in so many.
 * When somebody says that as few as of hits will do, as few.  When he says that it should be spared, of both a quarter as many.
 */
#ifndef TERRACE_SENSE_HEAT_H
#define TERRACE_SENSE_HEAT_H

#include <stdbool.h>
#include <stddef.h>

#include "port.h"
#include "terrace_bpf.h"

/* Has the module tell one hit in @n from now on.  0 or -errno. */
typedef int (*heat_set_fn)(void *ctx, uint32_t n);

struct heat_module {
	uint32_t now;		/* it tells one hit in so many ... */
	uint32_t most;		/* ... and may be told to, up to this */
	heat_set_fn set;
	uint32_t slow_now;	/* the same for reads that a slow tier serves; 0: an older one, that tells each */
	heat_set_fn set_slow;
	void *ctx;
};

/* 0, or -errno with a phrase in @why: the kernel has no BPF, or refuses it. */
int heat_open(unsigned int major, unsigned int minor, const struct heat_module *module, struct sense **out,
	      char *why, size_t bytes);

/* The disks of the tiers: @disk[tier] is major << 20 | minor, 0: none.  How many were found. */
int tier_disks(unsigned int major, unsigned int minor, uint32_t *disk);

/* --- for its test ------------------------------------------------------------------- */

#define HEAT_MASK_MOST	63u	/* one in 64 */
/*
 * Entries: the daemon's work with each is the larger part of the cost.  More than a tick's share of HEAT_TOLD, 410, or what is
 * told because it is worth its cost would be thinned again.
 */
#define HEAT_BUSY	512u

struct heat_pace {
	uint32_t mask;	/* one access in mask + 1 is kept */
	uint32_t quiet;	/* drains in a row that found the tables nearly empty */
	bool changed;	/* the tables of the next drain were filled before that */
};

/* After a drain that found @fullest entries, of what may be left out, in one table, where @busy are too many. */
void heat_adapt(struct heat_pace *pace, uint32_t busy, uint32_t fullest, uint32_t dropped);

#define HEAT_TOLD	4096u	/* hits a second that are worth their cost */
#define HEAT_SLOW_TOLD	8192u	/* slow reads */
#define HEAT_SPARED	4u	/* so much less of all three is worth it when there is little to gain */

struct heat_rate {
	uint32_t now, most;	/* one in so many is told */
	uint32_t quiet;		/* drains in a row after which twice as many would not be too many */
};

/* After @seconds in which the module told of @told, where @worth a second are worth their cost.  True: `now` is another. */
bool heat_rate(struct heat_rate *rate, uint32_t worth, uint64_t told, double seconds);

/* What a drain has met of hits and writes, which the program may leave out; and of the reads that it may not. */
struct heat_tally {
	uint32_t entries;	/* of the table under way */
	uint64_t told;
	uint64_t slow;
};

void heat_count(struct heat_tally *t, const struct terrace_heat_entry *e);

/* Of @dropped accesses, for which a table with @nr entries had no room, those that fewer hits would have made room for. */
uint32_t heat_dropped(const struct heat_tally *t, uint32_t nr, uint32_t dropped);

/* One of a table's entries as accesses, given to @see; how many. */
uint32_t heat_tell(const struct terrace_heat_entry *e, port_see_fn see, void *ctx);

#endif
