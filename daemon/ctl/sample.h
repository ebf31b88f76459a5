/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The counters of a volume at one moment, and what happened between two.
 */
#ifndef TERRACE_CTL_SAMPLE_H
#define TERRACE_CTL_SAMPLE_H

#include "control.h"
#include "tiers.h"

#define SAMPLE_CELLS 64		/* of the heat map */

struct sample {
	u64 ns;				/* monotonic */
	u32 nr_tiers;
	struct ctl_tier tier[TERRACE_MAX_TIERS];
	u64 packed_reads, cache_hits, zeros, new_writes, moved, left_out, throttled;
	u64 journal_used, journal_blocks, memory;
	u64 ios, busy_ms;		/* of the disk: ended, time in them */
	char mode[16];
	/* 0-255 each; as much of the cell's blocks as have a fast place, and how lately it was used */
	u8 fast[SAMPLE_CELLS], lately[SAMPLE_CELLS];
	u32 nr_cells;			/* 0: the module tells no summaries */
};

/* What is needed for many samples of one volume. */
struct sampler {
	const struct dm_volume *volume;
	int fd;
	struct terrace_hello hello;
	const struct terrace_summary *summary;	/* NULL: none */
};

/* 0 or -errno after a message. A volume whose control device may not be opened has no heat map. */
int sampler_open(struct sampler *s, const struct dm_volume *v);
void sampler_close(struct sampler *s);

/* 0; -ENODEV after a message: the volume has been deactivated. */
int sample_take(const struct sampler *s, struct sample *out);

/* Between two samples. */
struct sample_rates {
	double seconds;
	double reads[TERRACE_MAX_TIERS], writes[TERRACE_MAX_TIERS];	/* per second */
	double packed_reads, moved, new_writes, throttled;
	double hit_rate;		/* of reads that went to a drive or the promotion cache; <0: none */
	double mean_us;			/* of an I/O; <0: none */
};

void sample_compare(const struct sample *a, const struct sample *b, struct sample_rates *out);

/* Days until all tiers are full at the pace from @a to @b; <0: not at this pace. */
double sample_days_left(const struct sample *a, const struct sample *b);

#endif
