/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The control device of a volume, /dev/terrace/NAME: what a policy may ask of
 * the kernel, and what the kernel tells it. This comment is the manual.
 *
 * OPENING. Mode 0600: heat is information. Any number of processes may have
 * it open. The first ioctl of a file is TERRACE_IOC_HELLO; anything else
 * before it fails with EPROTO. All structures are little- or big-endian as
 * the CPU, the same in 32 and 64 bits: fixed-width fields, no holes, pointers
 * as __u64. Fields called `reserved` are zero, and so are all bits of `flags`
 * that have no name here: otherwise EINVAL, so that they may get a meaning.
 *
 * VERSIONS. HELLO says which ABI versions the program can speak, [min, max].
 * The kernel picks the highest that it knows, or fails with EPROTONOSUPPORT
 * and still fills in its own range. `features` tells what this build has;
 * a program must not use what is not there. Structures grow only with a new
 * version. That of HELLO may have another size than the kernel's (which is also in
 * its ioctl number): `bytes` says how long it is, 20 at least, 4096 at most, and
 * afterwards how much of it the kernel has read and filled in. What a longer one
 * has behind that must be zero, as in reserved fields; versions are compared first.
 *
 * THE ORDER. There is one, struct terrace_move: "region r: the blocks in `up`
 * belong on tier_up or faster, all others down to tier_down". It never changes
 * what a block reads as. Modes:
 *   APPEND  the blocks not in `up` that are faster than tier_down go there as
 *           one more pack, or home if it is of kind home: as they are, and
 *           those that have no home there stay. Blocks in `up` that are packed
 *           are promoted.
 *   MERGE   the same, and what the region has in packs, or loose on
 *           tier_down, is read and written as one pack: garbage goes, blocks
 *           in `up` are promoted in passing. With homes, what is in packs goes
 *           home, but for blocks in `up`.
 *   RAISE   only promotes: blocks in `up` get clean slots on tier_up, the
 *           packs stay. No block goes down; tier_down is not used. (With the
 *           tunable clean_slots at 0 promoted blocks leave their packs.)
 *   CLEAN   frees one shelf: `region` is the number of the shelf (chunk) on
 *           tier_down, and all that lives on it is written elsewhere on that
 *           tier. `up` is empty, tier_up is not used, there is no ADVISE. ETXTBSY:
 *           the shelf is open, and orders with WAIT do not wait for its end.
 *           DONE: it has been free. PARTLY: `unreadable` blocks stay there, at least. With
 *           EIO: no others did live there, or there may be packs whose headers cannot be
 *           read, or are gone, and whose blocks nobody has counted. With EBUSY: others
 *           are busy with some regions, or read or overwrite what was moved: another
 *           go will do. With ENOMEM, EROFS: it did not get to all.
 *   DROP    gives clean slots back: those of the blocks not in `up`. No data
 *           are read or written. codec, level, shift and tiers are not used.
 *   SCRUB   reads and verifies the region's packs, their headers and the copies
 *           of these, reads its blocks that are loose on shelves or at home, and
 *           changes nothing. `up` is empty, there is no ADVISE. PARTLY and EIO:
 *           `unreadable` blocks cannot be read; if that is 0, each can, but a
 *           pack is damaged, and a MERGE would write it anew. FAILED and EIO: so
 *           many reads failed that it has given up. With tier_down
 *           (of shelves, not 0) `region` is the number of a shelf there, and
 *           its owner table is verified: EIO, `unreadable` blocks of it are
 *           bad, `bad_block` is the first, a block of the tier; ENOENT: the
 *           shelf has none, as while it is open; if it is not, its owner blocks
 *           are verified in the table's place. All scrubs together read no
 *           faster than the tunable scrub_mb says.
 * What is not used is zero. codec, level and shift say how the pack that is
 * written is compressed: level 0 is the codec's default, shift 0, 2 or 4 means
 * clusters of 1, 4 or 16 blocks. `warm` says which blocks of a cluster come
 * first: cheap to read alone. Blocks that are not in it follow by number. With
 * zstd level is its own, up to 19, with LZ4 the acceleration: the higher, the
 * faster, and the less is gained; with NONE it is 0. All four say nothing when
 * tier_down is of kind home.
 *
 * What cannot be read where it is expected is read from its other copy: a packed
 * block from its clean slot, a slot from the pack. If there is none, or it cannot be
 * read either, the block is left out and counts as `unreadable`, in CLEAN as well.
 * The pack that it lives in stays with it. Orders keep a region's healthy packs at 4 and
 * one; damaged ones come on top, and from 8 in all on nothing more is packed: EIO,
 * `bad_block` ~0, until what cannot be read has been written anew, or discarded.
 *
 * Orders of one region, or shelf, are carried out one after the other, as they
 * were given. A region that the janitor, or the cleaning of a shelf, is busy
 * with: EBUSY. Flags: WAIT lets the order wait for it instead; ADVISE has all of
 * it done but the writing, the result telling what it would move; IDLE yields to
 * all user I/O: the order begins when for some milliseconds none has come, but one
 * such order a second begins in any case; and between its pieces it waits for the
 * same, for some dozens of milliseconds at most. How many orders read or write a
 * tier at the same time is limited, by the tunable orders_tierN.
 *
 * BATCHES. TERRACE_IOC_SUBMIT takes struct terrace_submit: a pointer to an
 * array of orders, copied before the call returns. All are checked first: one
 * that is malformed fails the call with EINVAL, `done` says which, and none is
 * taken. An order that is well-formed but cannot be carried out ends with an
 * error of its own. With WAIT the call returns when all have ended (EINTR:
 * a signal came; they go on), otherwise at once. One flush serves what ends
 * together. The same as io_uring command: opcode IORING_OP_URING_CMD with
 * SQE128, cmd_op TERRACE_URING_SUBMIT, and struct terrace_submit in the
 * command area (80 bytes), `done` 0. Its completion says how many orders were
 * taken (with WAIT: when these have ended), or -errno; not which one was bad.
 *
 * At most `max_orders` (HELLO) of one file are under way; more: EAGAIN, and
 * nothing is taken. So the results ring cannot overflow if it is read.
 *
 * RESULTS. Each order taken has one result, struct terrace_result, with the
 * order's cookie. They go into a ring owned by the kernel, one for each file:
 * mmap(PROT_READ) at TERRACE_MAP_RESULTS, `results_bytes` long, a struct
 * terrace_ring followed (at entries_offset) by 2^k entries. `head` counts what
 * the kernel has put in; the program counts its own `tail`, tells it with
 * TERRACE_IOC_CONSUME (or the `consumed` field of the next submit), and reads
 * entry[n & mask] for tail <= n < head after a load-acquire of head. Results
 * not consumed count as orders under way. `status`:
 *   DONE      as ordered, errors 0
 *   PARTLY    ended, some blocks raced or could not be read: see the counters; or were
 *             to go up to a tier that is to be left, or has no room for all of them
 *   NO_ROOM   the target has no room, not even after what was just being freed
 *             there (error ENOSPC). The old placement holds. Final: to be given
 *             again, best when the event ROOM (0) has come
 *   CANCELLED by TERRACE_IOC_CANCEL (by cookie; 0: all of this file), before it
 *             began or while it waited for a region; what has begun goes on, but
 *             for SCRUB and CLEAN, which stop: what `down` says has gone stays so
 *   FAILED    `error` says why: the old placement holds
 * Errors of an order: EINVAL tier, codec, shift or mode that this volume does
 * not have; ENOENT the region (shelf) has nothing to move; ERANGE it is beyond
 * the volume; EBUSY; EXDEV tier_up is slower than tier_down; EOPNOTSUPP the
 * codec is not built in, or the tier is of a kind that cannot do this; EIO: all
 * that it was to read, or too much of it, cannot be read (`bad_block`), or a write
 * or flush failed; EROFS; ENODEV the tier is missing; ENOMEM.
 *
 * SUMMARIES. mmap(PROT_READ) at TERRACE_MAP_SUMMARY gives one struct
 * terrace_summary per region, `regions` (HELLO) of them, `summary_bytes`
 * long. An order brings that of its region up to date, or says STALE, before
 * its result is there; what writes change is counted anew within about 0.1 s, ages
 * once a tick (age_s). No locks: take a field as a good estimate that is right when
 * nothing moves. The array of a volume that has grown is mapped anew (the
 * event GROWN says so). A region that is not loaded and was not counted since
 * it last changed has flag STALE, for a moment also once it is loaded: `fast` is
 * as its page says if that could be looked up, all else but `age` as it was
 * counted last, so `dirty` may be more (0: it never was). `garbage`
 * and `overwritten` are 0 while a pack's index is not in memory. The array
 * counts under memory_mb, and mmap fails (ENOMEM) if it took more than half.
 *
 * EXACT STATE. TERRACE_IOC_REGIONS fills an array of struct terrace_region
 * for consecutive regions: bitmaps of where each block is. It may read map
 * pages; up to 256 at once. With flag TIER it says what is on `tier`: `fast`
 * are the blocks that have their place there, `packed` those that are live in
 * packs there, nr_packs counts these packs, and `copies` the indexes of packs
 * that have a copy there. With flag RUNS instead `copies` counts the runs in
 * which its loose blocks lie on shelves: how often who reads them in order
 * must go elsewhere. `status` of a region: EUCLEAN its map page is damaged, its
 * blocks read as errors; EIO, ENOMEM it cannot be read now; EBUSY the volume is
 * suspended and the region not in memory: to be asked again once it is resumed
 * (event SUSPEND 0).
 *
 * A TIER THAT IS TO BE LEFT. While the tunable avoid_tiers has the bit of a
 * tier, nothing new goes there as long as another has room: no write, no index
 * copy, nothing of the janitor's; an order whose target it is, or would be for
 * a block in `up`, ends with NO_ROOM. Orders take blocks off it that would else
 * stay: in APPEND and MERGE those not in `up` that are there, pinned or not,
 * however slow it is; in RAISE those in `up`, pinned, dead or not, which go to
 * tier_up even if it is slower. Of these, what is live in packs on such a tier
 * gets slots that need no pack, and clean slots there are given back. Orders of
 * a region drop the copies of indexes that are there.
 *
 * RANGES. TERRACE_IOC_RANGE pins or hints [block, block + nr), struct
 * terrace_range. PIN_FAST: whatever is ordered, the janitor and all orders
 * leave blocks that have a place on the fast tiers there, and writes there are
 * no streams, however long; PIN_SLOW: no order
 * promotes the blocks, and new writes there go past the fast tiers. Pins last
 * until UNPIN or until the volume is deactivated. HINT_COLD: new writes there
 * go past the fast tiers; HINT_FAST: as PIN_FAST, but a hint (EINVAL: a kernel
 * that does not know it yet); HINT_NOHEAT: reads and writes there are not reported
 * to the senses; DEAD: of a deleted file: no order promotes the blocks, and APPEND and
 * MERGE take them down though they are in `up`, until they are written: a write
 * to a block lifts its mark, within moments. Hints end with
 * the file that set them, or by CLEAR, which takes all of this file's away
 * from the range. Pins and all files' hints, laid over each other, may form
 * max_ranges different ranges (more: ENOSPC). ERANGE: beyond the volume.
 *
 * EVENTS. poll() says POLLIN when results or events are there. Events are read
 * with read(): whole struct terrace_event, EAGAIN if none (O_NONBLOCK), 64 are
 * kept for each file, after that one LOST event counts those dropped. ENODEV:
 * the volume has been deactivated, which poll() reports as POLLHUP.
 *
 * DRIVING. TERRACE_IOC_CLAIM makes this process the driver: the janitor then
 * stays out, except where writes would fail. What the driver itself reads and
 * writes is not reported to the senses, discards are. One at a time (EBUSY). The claim
 * and this process's orders end with TERRACE_IOC_RELEASE, when its file is
 * closed (by ->flush: also of a process that was killed, even if a child still
 * has the file; a child that closes it ends nothing), or if it claims a
 * `timeout_ms` and does not renew it by any call in time. A second CLAIM of the
 * same file sets a new timeout; RELEASE without a claim: ENOENT. Orders can be given without a claim; the janitor is then at
 * work as well.
 */
#ifndef _UAPI_TERRACE_H
#define _UAPI_TERRACE_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define TERRACE_ABI_MIN			1
#define TERRACE_ABI_MAX			1

#define TERRACE_DEVICE_FOLDER		"/dev/terrace"

/* --- hello --------------------------------------------------------------- */

/* features */
#define TERRACE_FEATURE_LZ4		(1ull << 0)
#define TERRACE_FEATURE_ZSTD		(1ull << 1)
#define TERRACE_FEATURE_URING		(1ull << 2)
#define TERRACE_FEATURE_SUMMARY		(1ull << 3)
#define TERRACE_FEATURE_RANGES		(1ull << 4)
#define TERRACE_FEATURE_EVENTS		(1ull << 5)
#define TERRACE_FEATURE_CLAIM		(1ull << 6)
#define TERRACE_FEATURE_AVOID		(1ull << 7)	/* avoid_tiers, TERRACE_REGIONS_TIER */
#define TERRACE_FEATURE_RUNS		(1ull << 8)	/* TERRACE_REGIONS_RUNS */

struct terrace_hello {
	__u32	bytes;				/*   0: in: of this structure; out: that the kernel knows */
	__u32	flags;				/*   4: in */
	__u32	min_version;			/*   8: in: the program's; out: the kernel's */
	__u32	max_version;			/*  12: in, out */
	__u32	version;			/*  16: out: agreed on */
	__u32	nr_tiers;			/*  20: out, as all below */
	__u64	features;			/*  24 */
	__u64	virtual_blocks;			/*  32 */
	__u64	regions;			/*  40 */
	__u32	region_blocks;			/*  48 */
	__u32	max_orders;			/*  52: under way, of one file */
	__u32	max_batch;			/*  56: orders in one submit */
	__u32	max_ranges;			/*  60 */
	__u64	results_bytes;			/*  64: to map at TERRACE_MAP_RESULTS */
	__u64	summary_bytes;			/*  72: to map at TERRACE_MAP_SUMMARY */
	__u8	volume_uuid[16];		/*  80 */
	__u64	reserved[4];			/*  96 */
};						/* 128 */

/* --- orders -------------------------------------------------------------- */

enum terrace_move_mode {
	TERRACE_MOVE_APPEND	= 1,
	TERRACE_MOVE_MERGE	= 2,
	TERRACE_MOVE_RAISE	= 3,
	TERRACE_MOVE_CLEAN	= 4,
	TERRACE_MOVE_DROP	= 5,
	TERRACE_MOVE_SCRUB	= 6,
};

#define TERRACE_MOVE_WAIT		(1u << 0)
#define TERRACE_MOVE_ADVISE		(1u << 1)
#define TERRACE_MOVE_IDLE		(1u << 2)
#define TERRACE_MOVE_FLAGS		0x7u

#define TERRACE_REGION_WORDS		16	/* 1024 bits: bit b of word w is block 64w + b */

struct terrace_move {
	__u64	region;				/*   0: CLEAN: shelf */
	__u64	cookie;				/*   8: not 0 */
	__u8	mode;				/*  16: enum terrace_move_mode */
	__u8	tier_up;			/*  17 */
	__u8	tier_down;			/*  18 */
	__u8	codec;				/*  19: enum terrace_codec */
	__u8	level;				/*  20 */
	__u8	shift;				/*  21: blocks of a cluster, log2: 0, 2, 4 */
	__u16	reserved0;			/*  22 */
	__u32	flags;				/*  24: TERRACE_MOVE_* */
	__u32	reserved1;			/*  28 */
	__u64	up[TERRACE_REGION_WORDS];	/*  32 */
	__u64	warm[TERRACE_REGION_WORDS];	/* 160: APPEND, MERGE */
};						/* 288 */

#define TERRACE_SUBMIT_WAIT		(1u << 0)
#define TERRACE_SUBMIT_FLAGS		0x1u

struct terrace_submit {
	__u64	orders;				/*   0: struct terrace_move[nr] */
	__u32	nr;				/*   8 */
	__u32	order_bytes;			/*  12: sizeof(struct terrace_move) */
	__u32	flags;				/*  16: TERRACE_SUBMIT_* */
	__u32	done;				/*  20: out (ioctl): taken; on EINVAL: the bad one */
	__u64	consumed;			/*  24: as in CONSUME, if larger */
	__u64	reserved[6];			/*  32 */
};						/*  80 */

struct terrace_cancel {
	__u64	cookie;				/*   0: 0: all of this file */
	__u32	flags;				/*   8 */
	__u32	cancelled;			/*  12: out: orders told to stop */
};						/*  16 */

/* --- results ------------------------------------------------------------- */

enum terrace_result_status {
	TERRACE_RESULT_DONE	= 1,
	TERRACE_RESULT_PARTLY	= 2,
	TERRACE_RESULT_NO_ROOM	= 3,
	TERRACE_RESULT_CANCELLED = 4,
	TERRACE_RESULT_FAILED	= 5,
};

#define TERRACE_MAX_RESULT_TIERS	8

struct terrace_result {
	__u64	cookie;				/*   0 */
	__u64	region;				/*   8 */
	__u8	status;				/*  16: enum terrace_result_status */
	__u8	mode;				/*  17 */
	__u16	packs;				/*  18: of the region, afterwards */
	__s32	error;				/*  20: 0 or -errno */
	__u32	down;				/*  24: blocks moved down */
	__u32	up;				/*  28: blocks moved up */
	__u32	dropped;			/*  32: clean slots given back */
	__u32	raced;				/*  36: left out: written meanwhile */
	__u32	unreadable;			/*  40: left out: neither copy could be read */
	__u32	raw;				/*  44: packed blocks that did not shrink */
	__u64	bad_block;			/*  48: first unreadable one, ~0: none */
	__u64	packed_bytes;			/*  56: of the pack written, header and padding */
	__u64	nanoseconds;			/*  64: from submit to end */
	__u64	cpu_nanoseconds;		/*  72: compressing and decompressing */
	__u64	read_bytes[TERRACE_MAX_RESULT_TIERS];	/*  80 */
	__u64	written_bytes[TERRACE_MAX_RESULT_TIERS];	/* 144 */
	__u64	reserved[6];			/* 208 */
};						/* 256 */

/* The start of the ring that is mapped at TERRACE_MAP_RESULTS. */
struct terrace_ring {
	__u64	head;				/*   0: results put in so far; store-release */
	__u64	consumed;			/*   8: as told by the program */
	__u32	mask;				/*  16: entries - 1 */
	__u32	entry_bytes;			/*  20: sizeof(struct terrace_result) */
	__u32	entries_offset;			/*  24: of entry 0, from here */
	__u32	version;			/*  28 */
	__u64	reserved[4];			/*  32 */
};						/*  64 */

struct terrace_consume {
	__u64	tail;				/*   0: results up to this one are read */
	__u64	reserved;			/*   8 */
};						/*  16 */

/* --- summaries and exact state ------------------------------------------- */

/* summary flags */
#define TERRACE_SUMMARY_STALE		(1u << 0) /* not counted since it changed */
#define TERRACE_SUMMARY_MOVING		(1u << 1)
#define TERRACE_SUMMARY_PINNED		(1u << 2)
#define TERRACE_SUMMARY_LOST		(1u << 3) /* its map page is damaged */

struct terrace_summary {
	__u16	fast;				/*   0: blocks with a place on a slots tier */
	__u16	dirty;				/*   2: of them with no packed copy */
	__u16	loose;				/*   4: blocks loose on a shelf, or at home */
	__u16	packed;				/*   6: blocks live in packs */
	__u16	garbage;			/*   8: blocks in packs that are not live */
	__u8	packs;				/*  10 */
	__u8	flags;				/*  11: TERRACE_SUMMARY_* */
	__u8	age;				/*  12: ticks since the last use, 255: or more */
	__u8	overwritten;			/*  13: share of packed blocks written since, 0-255 */
	__u16	packed_blocks;			/*  14: 4 KiB blocks that its packs take on shelves */
};						/*  16 */

struct terrace_region {
	__u64	region;				/*   0 */
	__u32	status;				/*   8: 0 or -errno */
	__u32	nr_packs;			/*  12 */
	__u64	present[TERRACE_REGION_WORDS];	/*  16: has a place */
	__u64	fast[TERRACE_REGION_WORDS];	/* 144: the place is on a slots tier */
	__u64	packed[TERRACE_REGION_WORDS];	/* 272: live in a pack; with a place: clean */
	__u8	pack_codec[8];			/* 400: newest first; 255: index not in memory */
	__u16	pack_live[8];			/* 408: live blocks */
	__u16	pack_blocks[8];			/* 424: of the run on the shelf */
	__u64	pack_id[8];			/* 440 */
	__u64	copies;				/* 504: TIER; RUNS: runs; else 0 */
};						/* 512 */

#define TERRACE_REGIONS_TIER		(1u << 0)
#define TERRACE_REGIONS_RUNS		(1u << 1)

struct terrace_regions {
	__u64	first;				/*   0: region */
	__u32	nr;				/*   8: out: filled */
	__u32	region_bytes;			/*  12: sizeof(struct terrace_region) */
	__u64	regions;			/*  16: struct terrace_region[nr] */
	__u32	flags;				/*  24: TERRACE_REGIONS_* */
	__u32	tier;				/*  28: 0 without TIER */
};						/*  32 */

/* --- ranges -------------------------------------------------------------- */

enum terrace_range_what {
	TERRACE_RANGE_PIN_FAST	= 1,
	TERRACE_RANGE_PIN_SLOW	= 2,
	TERRACE_RANGE_UNPIN	= 3,
	TERRACE_RANGE_HINT_COLD	= 4,
	TERRACE_RANGE_HINT_NOHEAT = 5,
	TERRACE_RANGE_DEAD	= 6,
	TERRACE_RANGE_CLEAR	= 7,
	TERRACE_RANGE_HINT_FAST	= 8,
};

struct terrace_range {
	__u64	block;				/*   0 */
	__u64	nr;				/*   8 */
	__u32	what;				/*  16: enum terrace_range_what */
	__u32	flags;				/*  20 */
	__u64	reserved;			/*  24 */
};						/*  32 */

/* --- driving, events ----------------------------------------------------- */

struct terrace_claim {
	__u32	timeout_ms;			/*   0: 0: none */
	__u32	flags;				/*   4 */
	__u64	reserved;			/*   8 */
};						/*  16 */

enum terrace_event_type {
	TERRACE_EVENT_LOST	= 1,	/* value: events dropped */
	TERRACE_EVENT_ROOM	= 2,	/* tier: below (value 1) or above (0) its low watermark;
					 * no tier: no (1), or again (0), room for more regions' map pages
					 */
	TERRACE_EVENT_MODE	= 3,	/* value: 0 normal, 1 read-only, 2 failed */
	TERRACE_EVENT_FAILING	= 4,	/* tier: its drive fails requests, and has failed none for half a
					 * minute before; value: all that it has failed since the activation
					 */
	TERRACE_EVENT_GROWN	= 5,	/* value: blocks of the volume */
	TERRACE_EVENT_CACHE	= 6,	/* promotion cache: value: per mille full */
	TERRACE_EVENT_BAD_PACK	= 7,	/* tier, region; value: its id */
	TERRACE_EVENT_CLAIM	= 8,	/* value: 0: the claim has ended */
	TERRACE_EVENT_SUSPEND	= 9,	/* value: 1 suspended, 0 resumed */
};

struct terrace_event {
	__u32	type;				/*   0: enum terrace_event_type */
	__u32	tier;				/*   4: ~0: none */
	__u64	region;				/*   8: ~0: none */
	__u64	value;				/*  16 */
	__u64	nanoseconds;			/*  24: CLOCK_MONOTONIC */
};						/*  32 */

/* --- calls --------------------------------------------------------------- */

#define TERRACE_IOC			0xdb
#define TERRACE_IOC_HELLO		_IOWR(TERRACE_IOC, 1, struct terrace_hello)
#define TERRACE_IOC_SUBMIT		_IOWR(TERRACE_IOC, 2, struct terrace_submit)
#define TERRACE_IOC_CANCEL		_IOWR(TERRACE_IOC, 3, struct terrace_cancel)
#define TERRACE_IOC_CONSUME		_IOW(TERRACE_IOC, 4, struct terrace_consume)
#define TERRACE_IOC_REGIONS		_IOWR(TERRACE_IOC, 5, struct terrace_regions)
#define TERRACE_IOC_RANGE		_IOW(TERRACE_IOC, 6, struct terrace_range)
#define TERRACE_IOC_CLAIM		_IOW(TERRACE_IOC, 7, struct terrace_claim)
#define TERRACE_IOC_RELEASE		_IO(TERRACE_IOC, 8)

#define TERRACE_URING_SUBMIT		1	/* cmd_op; the command area is a terrace_submit */

/* offsets for mmap() */
#define TERRACE_MAP_RESULTS		0ull
#define TERRACE_MAP_SUMMARY		0x10000000000ull

/* --- tracepoint terrace_access --------------------------------------------- */

/* op */
#define TERRACE_OP_READ			0
#define TERRACE_OP_WRITE		1
#define TERRACE_OP_DISCARD		2

/* where: tier number, and */
#define TERRACE_WHERE_TIER		0xffu
#define TERRACE_WHERE_SLOW		(1u << 8)	/* not a slots tier; never sampled away */
#define TERRACE_WHERE_PACKED		(1u << 9)
#define TERRACE_WHERE_NOWHERE		(1u << 10)	/* no tier: read as zeros; discarded */

#endif
