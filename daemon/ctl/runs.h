/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The blocks that a user means by a file, a folder, a volume, or a range of
 * a volume's blocks.
 */
#ifndef TERRACE_CTL_RUNS_H
#define TERRACE_CTL_RUNS_H

#include "dm.h"
#include "terrace.h"

#define RUNS_REGION_BLOCKS (TERRACE_REGION_WORDS * 64)

struct run {
	u64 first, nr;		/* blocks of the volume */
	u64 file_block;		/* of a file: where in it */
};

struct runs {
	struct dm_volume volume;
	struct run *run;
	u32 nr;
	bool of_files;
};

/* "5", "5-9": 0; anything else: -EINVAL */
int runs_parse_range(const char *text, u64 *first, u64 *last);

/* FILE, FOLDER, NAME, NAME RANGE and nothing else: 0 or, after a message, CTL_USAGE. */
int runs_check_words(const struct ctl_command *cmd, int nr, char **word);

/*
 * What is a path if there is a '/' in it: of a file, or of a folder and then
 * all files below it on the same filesystem, which must stand directly on a
 * volume. Else a volume's name or UUID; @range NULL: all of it. 0, or -errno
 * after a message. In the order of files; runs_free() in any case.
 */
int runs_of(struct runs *runs, const char *what, const char *range);
void runs_free(struct runs *runs);

/* By number, and none touches another. */
void runs_sort(struct runs *runs);
u64 runs_blocks(const struct runs *runs);

/* Goes through the regions of sorted runs; begins zeroed but for @runs. */
struct runs_walk {
	const struct runs *runs;
	u32 at;
	u64 done;		/* of runs->run[at] */
};

/* The next region that has any, and which of its blocks. false: the end. */
bool runs_next_region(struct runs_walk *walk, u64 *region, __u64 want[TERRACE_REGION_WORDS]);

#endif
