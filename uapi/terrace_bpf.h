/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * What BPF programs and the daemon share.  Includes nothing: fixed-width types
 * (linux/types.h, or vmlinux.h) come first.
 */
#ifndef _UAPI_TERRACE_BPF_H
#define _UAPI_TERRACE_BPF_H

/* --- heat: accesses of one volume ---------------------------------------------- */

#define TERRACE_HEAT_ENTRIES	4096u	/* of a table; a power of two */
#define TERRACE_HEAT_SLOTS	2048u	/* of its index; a power of two */
#define TERRACE_HEAT_MERGE	1024u	/* blocks: what continues the last entry is added up to this */
#define TERRACE_HEAT_TIERS	8
#define TERRACE_HEAT_IGNORED	64	/* threads */
#define TERRACE_HEAT_BUCKETS	24	/* bucket b: up to 2^b µs, the last: all above */

struct terrace_heat_entry {
	__u64	block;
	__u32	count;		/* blocks */
	__u16	kind;		/* TERRACE_WHERE_*, op << 12 */
	__u16	hits;		/* the same range, so many times */
};

/*
 * One CPU writes it, without locks.  There are two for each CPU: while one is
 * filled, the other is read and emptied.
 */
struct terrace_heat_table {
	__u32	nr;		/* entries */
	__u32	dropped;	/* accesses that found no room */
	__u32	skipped;	/* counts accesses that may be sampled away */
	__u32	ignored;	/* reads of threads that are not heeded */
	__u32	reads[TERRACE_HEAT_TIERS];	/* told, by tier */
	__u32	latency[TERRACE_HEAT_TIERS][2][TERRACE_HEAT_BUCKETS];	/* reads, writes */
	__u16	slot[TERRACE_HEAT_SLOTS];	/* hash of an entry -> its number; may be stale */
	struct terrace_heat_entry entry[TERRACE_HEAT_ENTRIES];
};

/* The smallest that @us fits in: by halves, for a loop over the buckets was dearer than all else that is done for a time. */
static inline __u32 terrace_heat_bucket(__u64 us)
{
	__u32 b = 1;

	if (us <= 1)
		return 0;
	us--;
	if (us >> (TERRACE_HEAT_BUCKETS - 2))
		return TERRACE_HEAT_BUCKETS - 1;
	for (__u32 step = 16; step; step /= 2) {
		if (us >> step) {
			us >>= step;
			b += step;
		}
	}
	return b;
}

/* --- files: what happens to those of watched filesystems --------------------------- */

enum terrace_file_what {
	TERRACE_FILE_CREATED	= 1,	/* name, parent */
	TERRACE_FILE_WRITTEN	= 2,	/* [from, to), in a row; told every TERRACE_FILE_STEP */
	TERRACE_FILE_READ	= 3,	/* [from, to), in a row, by this thread; told likewise, or every TERRACE_FILE_STEP_WRITING; last, output, written */
	TERRACE_FILE_SYNCED	= 4,
	TERRACE_FILE_CLOSED	= 5,	/* by its last writer; size, flags */
	TERRACE_FILE_RENAMED	= 6,	/* new name, new parent */
	TERRACE_FILE_UNLINKED	= 7,	/* one name less; size: links that are left */
	TERRACE_FILE_DIED	= 8,	/* the inode is gone, with no name left */
	TERRACE_FILE_CHANGED	= 9,	/* cut, or part of it moved or given up; flags: or shared with another */
	TERRACE_FILE_WHATS,
};

#define TERRACE_FILE_STEP	131072u	/* bytes */
#define TERRACE_FILE_STEP_WRITING 65536u	/* of a thread that writes a file: what it makes of what it reads is wanted to that */
#define TERRACE_FILE_NAME	48
#define TERRACE_FILE_AROUND	65536u	/* a fault maps so much at once */

/*
 * Bytes at the end of a file that need not be seen being read: a table's data end before its index; and around what was
 * read there when it was opened the rest of a small one is mapped, so that reading it by faults shows nothing.
 */
static inline __u64 terrace_file_rest(__u64 size)
{
	__u64 around = size >> 1 < TERRACE_FILE_AROUND ? size >> 1 : TERRACE_FILE_AROUND;

	return size >> 3 > around ? size >> 3 : around;
}

/* flags */
#define TERRACE_FILE_ASTRAY	(1u << 0)	/* was not only appended to */
#define TERRACE_FILE_UNSEEN	(1u << 1)	/* how it was written has not been seen, or been forgotten */
#define TERRACE_FILE_SHARED	(1u << 2)	/* is about to be */

struct terrace_file_event {
	__u64	nanoseconds;		/*   0: CLOCK_MONOTONIC */
	__u64	inode;			/*   8 */
	__u32	generation;		/*  16: of the inode */
	__u32	dev;			/*  20: of the filesystem, as the kernel numbers it */
	__u32	thread;			/*  24 */
	__u32	process;		/*  28 */
	__u64	from;			/*  32 */
	__u64	to;			/*  40 */
	__u64	size;			/*  48: of the file, now */
	__u64	parent;			/*  56: inode of the folder */
	__u8	what;			/*  64: enum terrace_file_what */
	__u8	reserved0;		/*  65 */
	__u16	reserved1;		/*  66 */
	__u32	flags;			/*  68 */
	union {
		char	name[TERRACE_FILE_NAME];	/*  72: cut if longer */
		struct {		/* of a READ */
			__u64	last;		/*  72: the last read of the row began here: all before it has been put to use */
			__u64	output;		/*  80: inode of what its thread writes; 0: not known */
			__u64	written;	/*  88: so far it had come when that read began */
		};
	};
};					/* 120 */

#endif
