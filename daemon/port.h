/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A volume as the loop sees it: what it can be asked and told.  There are two behind this
 * interface: the control device (act/device.c, with a sense behind drain) and a
 * simulated volume (tests/unit/sim_lib.h).  So the loop is one source for both.
 *
 * None of the functions waits for a move.  All return 0 or a count, or -errno; -ENODEV means
 * that the volume has gone, and is the only error that ends the loop.
 */
#ifndef TERRACE_PORT_H
#define TERRACE_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "terrace.h"
#include "terrace_bpf.h"
#include "terrace_format.h"

struct port;

struct port_shape {
	uint64_t blocks;
	uint64_t regions;
	uint64_t features;	/* TERRACE_FEATURE_* */
	uint32_t max_orders;
	uint32_t max_batch;
	uint8_t uuid[16];
};

struct port_tier {
	uint32_t kind;		/* TERRACE_KIND_* */
	char class[12];		/* as in the table line */
	uint64_t used_blocks;
	uint64_t blocks;
	uint64_t reserve_blocks;	/* of them, that are never in use; 0: the module does not tell */
	uint64_t free_shelves;	/* of kind shelves */
	bool full;		/* a home, whose drive has no room inside: nothing more goes there */
	bool missing;
	bool avoided;		/* to be left: the tunable avoid_tiers */
	uint64_t io_errors;	/* requests that its drive has failed, since the activation */
};

/* Counters run since the volume was activated. */
struct port_state {
	uint32_t nr_tiers;
	struct port_tier tier[TERRACE_MAX_RESULT_TIERS];
	bool writable;
	uint64_t reads, fast_reads;	/* user operations */
	uint64_t vain_reads;		/* of fast tiers, for what lies below: indexes of packs */
	uint64_t writes;
	uint64_t written_blocks[TERRACE_MAX_RESULT_TIERS];	/* by users */
	uint64_t busy_ns;		/* sum of the latencies of reads and writes */
	uint64_t cpu_idle, cpu_all;	/* the machine's, see act/cpu_time.h; 0: not known */
};

enum port_where {
	PORT_UNKNOWN,
	PORT_FAST,
	PORT_SLOW,
	PORT_NOWHERE,		/* reads as zeros */
};

enum port_op {
	PORT_READ,
	PORT_WRITE,
	PORT_DISCARD,
};

struct port_access {
	uint64_t block;
	uint64_t count;
	enum port_op op;
	enum port_where where;
	bool always;		/* of a kind that is sampled by slow_sampling alone */
};

#define PORT_SAMPLE_BLOCKS	16u

/* What a sample of a region gained: input size / output size. */
struct port_gain {
	uint64_t region;
	int error;
	double lz4;		/* each block alone */
	double zstd_4, zstd_16;	/* in clusters of as many */
};

typedef void (*port_see_fn)(void *ctx, const struct port_access *access);

struct port_ops {
	int (*shape)(struct port *port, struct port_shape *out);
	int (*state)(struct port *port, struct port_state *out);
	/* Accesses since the last call, at most @most; NULL: no sense of single blocks. */
	int (*drain)(struct port *port, uint32_t most, port_see_fn see, void *ctx);
	/* Whether each slow read is wanted, or as few as of the others will do.  May be NULL. */
	void (*each_slow)(struct port *port, bool yes);
	/* Whether what accesses tell is worth less for now than what it takes of the CPUs to hear them.  May be NULL. */
	void (*spare)(struct port *port, bool yes);
	int (*summaries)(struct port *port, uint64_t first, uint32_t nr, struct terrace_summary *out);
	/* @runs: with the number of loose runs. */
	int (*regions)(struct port *port, uint64_t first, uint32_t nr, bool runs, struct terrace_region *out);
	/* Orders taken: all or, with -EAGAIN, none. */
	int (*submit)(struct port *port, struct terrace_move *moves, uint32_t nr);
	/* Results not seen yet, at most @most. */
	int (*results)(struct port *port, struct terrace_result *out, uint32_t most);
	/* Makes this the driver, or renews that; false gives it back.  -EOPNOTSUPP: older kernel part. */
	int (*claim)(struct port *port, bool on);
	/* Who else has the volume's control device open, for people: "cat (pid 17)".  May be NULL. */
	void (*holders)(struct port *port, char *text, size_t bytes);
	/*
	 * Reads these PORT_SAMPLE_BLOCKS blocks of the region and finds out what packing would gain; -EBUSY: too many
	 * are under way.  Both NULL where that cannot be done.
	 */
	int (*sample)(struct port *port, uint64_t region, const uint64_t *blocks);	/* ascending */
	int (*gains)(struct port *port, struct port_gain *out, uint32_t most);
	void (*close)(struct port *port);
};

/* What a sense has counted beside the accesses it tells. */
struct sense_counts {
	uint64_t reads[TERRACE_HEAT_TIERS];	/* told, by tier */
	uint64_t ignored;			/* reads of threads that are not heeded */
	/* a sample of reads and writes: [tier][read, write][bucket], see terrace_bpf.h */
	uint64_t latency[TERRACE_HEAT_TIERS][2][TERRACE_HEAT_BUCKETS];
};

/* What a tier's drive says of itself; see sense/smart.h. */
struct port_wear {
	double written_bytes;	/* over its life, by whomever */
	uint32_t percent_used;	/* of its rated life, may exceed 100 */
	uint32_t critical;	/* bits of its warning */
	int error;		/* of the last attempt, 0 or -errno */
};

/* What a drive that compresses says of the room inside; see sense/room.h. */
struct port_room {
	uint64_t used, limit;	/* blocks of 4 KiB; a limit of 0: it does not say */
	char why[160];		/* for people, that it does not */
};

/* Drives that are asked now and then, by a thread of its own: one that hangs holds nobody up. */
struct health {
	/* False: no drive that tells, or it has not answered yet. */
	bool (*wear)(struct health *health, uint32_t tier, struct port_wear *out);
	/*
	 * What the tier's drive, the one with this number, has answered since the last call; @ask: asks it anew.  False:
	 * nothing.  No answer is given twice: the kernel part goes on counting from the last that it got.
	 */
	bool (*room)(struct health *health, uint32_t tier, unsigned int major, unsigned int minor, bool ask,
		     struct port_room *out);
	void (*close)(struct health *health);
};

/* A sense of single blocks, to be put behind drain (see sense/). */
struct sense {
	/* At most @most accesses since the last call; their number or -errno. */
	int (*drain)(struct sense *sense, uint32_t most, port_see_fn see, void *ctx);
	void (*close)(struct sense *sense);
	/* Reads by this thread heat nothing, until further notice.  NULL: cannot be told apart. */
	void (*ignore)(struct sense *sense, uint32_t thread, bool yes);
	const int *ignored;	/* maps of bpf/compacting.bpf.h, through which it can also be told at once; NULL: none */
	const char *name;
	uint32_t sampling;	/* one access in so many is told ... */
	bool slow_always;	/* ... but every slow read ... */
	uint32_t slow_sampling;	/* ... or one in so many of them; 0: as 1 */
	void (*each_slow)(struct sense *sense, bool yes);	/* says which; NULL: cannot be changed */
	void (*spare)(struct sense *sense, bool yes);		/* or fewer of all, where there are many; NULL: the same */
	bool spared;		/* it was told so */
	int set_error;		/* why the kernel tells as many as before, not as it was last told to: 0 or -errno */
	uint64_t lost;		/* accesses that came faster than they were drained */
	struct sense_counts counts;
};

struct port {
	const struct port_ops *ops;
	uint32_t summaries_per_tick;	/* that cost little */
	bool aged;			/* the summaries tell ages */
	int fd;				/* readable when results are there; -1: none */
	double sampling;		/* share of the accesses that drain() gives, (0, 1] ... */
	bool slow_always;		/* ... but every slow read ... */
	uint32_t slow_sampling;		/* ... or one in so many; 0: as 1 */
	const struct sense *sense;	/* behind drain(); NULL: none */
	struct health *health;		/* NULL: none; closed with the port */
};

#endif
