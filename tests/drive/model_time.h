/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How long a drive takes: pure arithmetic, no clock, no lock, no allocation.
 *
 * A command passes three stations, each of which serves in order of arrival:
 *
 *	channel (one of N)  ->  bus (one, bytes / bandwidth)  ->  fixed latency
 *
 * and holds its channel until it is done. So at queue depth 1 it costs
 * latency + bytes / bandwidth, N deep N times that rate, deeper than N it
 * queues, and all together never exceed the bandwidth. A disk replaces the
 * channels by one head with seek and rotation. Time comes in as an argument;
 * the same calls at the same times give the same answers.
 *
 * Built into dm-drive.ko and into the user space unit test.
 */
#ifndef DRIVE_MODEL_TIME_H
#define DRIVE_MODEL_TIME_H

#include <linux/types.h>

#define DRIVE_MAX_CHANNELS	64
#define DRIVE_STREAMS		4

enum drive_kind {
	DRIVE_READ,
	DRIVE_WRITE,
	DRIVE_FLUSH,
	DRIVE_DISCARD,
	DRIVE_ZEROES,
	DRIVE_KINDS
};

/**
 * struct drive_model - what the drive is, constant while it runs
 * @read_lat_ns: fixed part of a read
 * @write_lat_ns: fixed part of a write
 * @flush_lat_ns: fixed part of a flush
 * @discard_lat_ns: fixed part of a discard or write-zeroes
 * @channels: commands served at the same time
 * @read_bw: bytes per second, 0 = infinite
 * @write_bw: bytes per second, 0 = infinite
 * @flush_bw: bytes per second at which a flush drains the cache, 0 = free
 * @seek_min_ns: seek to the next track; a disk has @rev_ns or @seek_max_ns set
 * @seek_max_ns: seek over @stroke_bytes; the curve between is a square root
 * @stroke_bytes: full stroke, 0 = size of the device
 * @rev_ns: one revolution
 * @track_bytes: one track, 0 = what passes the head in @rev_ns at @read_bw
 * @ahead_bytes: how far a disk reads ahead of, or writes behind, a stream
 * @ncq: a disk serves the nearest of this many waiting commands, 0 = in order
 * @slc_bytes: fast write buffer of a QLC drive, 0 = none
 * @fold_bw: bytes per second at which that buffer empties
 * @iu_bytes: indirection unit; smaller writes rewrite all of it, 0 = none
 */
struct drive_model {
	u64 read_lat_ns;
	u64 write_lat_ns;
	u64 flush_lat_ns;
	u64 discard_lat_ns;
	u64 channels;
	u64 read_bw;
	u64 write_bw;
	u64 flush_bw;
	u64 seek_min_ns;
	u64 seek_max_ns;
	u64 stroke_bytes;
	u64 rev_ns;
	u64 track_bytes;
	u64 ahead_bytes;
	u64 ncq;
	u64 slc_bytes;
	u64 fold_bw;
	u64 iu_bytes;
};

/**
 * struct drive_clock - what the drive is doing, all zero at power on
 * @free_ns: when each channel is free; [0] is the head of a disk
 * @bus_ns: when the bus is free
 * @media_ns: when a disk's head passed the end of the last command
 * @head: byte after the last command of a disk
 * @head_kind: kind of that command
 * @slc_fill: bytes in the SLC buffer at @slc_ns
 * @slc_ns: time up to which @slc_fill is right
 * @stream_end: bytes at which recent writes ended, to join sequential ones
 * @stream_next: which of @stream_end to replace next
 * @seeks: head movements
 * @host_bytes: bytes written by the host
 * @programmed: bytes programmed into flash, folding included
 * @folded: bytes folded out of the SLC buffer
 * @rmw: indirection units that had to be read and rewritten
 * @stream_open: bits of @stream_end that moved since the last flush
 * @split: indirection units that a flush found half written
 */
struct drive_clock {
	u64 free_ns[DRIVE_MAX_CHANNELS];
	u64 bus_ns;
	u64 media_ns;
	u64 head;
	enum drive_kind head_kind;
	u64 slc_fill;
	u64 slc_ns;
	u64 stream_end[DRIVE_STREAMS];
	unsigned int stream_next;
	u64 seeks;
	u64 host_bytes;
	u64 programmed;
	u64 folded;
	u64 rmw;
	unsigned int stream_open;
	u64 split;
};

/**
 * struct drive_cmd - one command, as far as time is concerned
 * @kind: what it does
 * @start: first byte
 * @bytes: length; for a flush the bytes in the volatile cache
 */
struct drive_cmd {
	enum drive_kind kind;
	u64 start;
	u64 bytes;
};

bool drive_model_is_disk(const struct drive_model *m);
bool drive_model_is_instant(const struct drive_model *m);
u64 drive_seek_ns(const struct drive_model *m, u64 from, u64 to);
u64 drive_position_ns(const struct drive_model *m, const struct drive_clock *c,
		      const struct drive_cmd *cmd, u64 now);
u64 drive_time(const struct drive_model *m, struct drive_clock *c,
	       const struct drive_cmd *cmd, u64 now);
void drive_time_idle(const struct drive_model *m, struct drive_clock *c,
		     u64 now);

#endif
