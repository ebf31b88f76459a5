/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files that are known for what they are while they are written: their ranges are hinted.  Of streams that are cold the kernel
 * then appends what comes to a shelf instead of taking a slot for each block (HINT_COLD); of logs it takes slots, however long
 * they go on (HINT_FAST).  Whoever gives the hint takes it back, when the file is complete, or dead, or has been forgotten for long;
 * the kernel ends it with the daemon.
 *
 * Only room that has been allocated can be hinted: files whose database allocates ahead (RocksDB does).
 */
#ifndef TERRACE_ACT_STREAMS_H
#define TERRACE_ACT_STREAMS_H

#include <stdbool.h>
#include <stdint.h>

#define STREAMS_MAX	64u	/* at a time */
#define STREAM_RANGES	16u	/* of a file: with more it is left alone */

struct stream_key {
	uint64_t inode, of;	/* @of: its generation and filesystem */
};

struct stream_range {
	uint64_t block, nr;
};

struct streams_counts {
	uint64_t hinted, blocks;	/* files, and what of them was allocated */
	uint64_t unplaced, scattered;	/* nothing allocated yet; in too many pieces, or no room for hints */
	uint64_t refused;		/* the kernel does not know such a hint */
};

struct streams {
	int fd;			/* device_marker() */
	uint32_t what;		/* TERRACE_RANGE_HINT_* */
	uint32_t most;		/* files at a time, the oldest goes; 0: STREAMS_MAX */
	uint32_t nr;
	void (*told)(void *ctx, const struct stream_range *range, bool yes);	/* the kernel: of a hint, or that it is taken back; or NULL */
	void *ctx;
	struct streams_counts counts;
	uint64_t serial;
	struct stream {
		struct stream_key key;
		uint64_t serial;	/* 0: free */
		uint32_t nr;
		struct stream_range range[STREAM_RANGES];
	} stream[STREAMS_MAX];
};

/* Of one that is hinted already: from now on these ranges instead. */
void streams_hint(struct streams *s, const struct stream_key *key, const struct stream_range *range, uint32_t nr);
/* It is complete, or dead; or none of these. */
void streams_end(struct streams *s, const struct stream_key *key);
void streams_end_all(struct streams *s);

#endif
