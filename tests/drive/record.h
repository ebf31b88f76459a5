/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What /dev/drive-record says: one record after the other, in the order of
 * things on all drives of the machine, each followed by its data, padded to 8
 * bytes. Numbers are those of the machine. For the module and its readers.
 *
 * A write may be on the medium from RECORD_WRITE on, whole, in part or not at
 * all. It is there for certain from its RECORD_DONE on if that is durable,
 * else from the first RECORD_FLUSHED on whose RECORD_FLUSH came after its
 * RECORD_DONE. What has no RECORD_DONE is covered by no flush.
 */
#ifndef DRIVE_RECORD_H
#define DRIVE_RECORD_H

#include <linux/types.h>

enum drive_record_kind {
	RECORD_DRIVE = 1,	/* first of all records of @drive; data: struct drive_record_drive */
	RECORD_WRITE,		/* data: what is written */
	RECORD_ZERO,		/* discard or write-zeroes: a write of zeros */
	RECORD_DONE,		/* the command @id has completed */
	RECORD_FLUSH,		/* a flush @id covers what has completed */
	RECORD_FLUSHED,		/* it has completed */
	RECORD_CUT,		/* the power of @drive has gone: what is not durable is as the following say */
	RECORD_LEFT,		/* after RECORD_CUT: what is there now, durably; data */
	RECORD_MARK,		/* from user space; data: its bytes */
	RECORD_OVERRUN,		/* the last: there was no room for more */
};

/* flags of RECORD_DONE: durable; of RECORD_WRITE: it has FUA */
#define RECORD_DURABLE	1

struct drive_record {
	__u8 kind;
	__u8 flags;
	__u16 drive;
	__u32 data_bytes;
	__u64 id;
	__u64 start;		/* bytes */
	__u64 bytes;
};

struct drive_record_drive {
	__u64 bytes;
	__u64 atom;		/* bytes that are written whole or not at all */
	char name[32];
};

#define RECORD_MAX_MARK	64u

#endif
