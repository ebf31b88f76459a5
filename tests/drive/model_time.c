// SPDX-License-Identifier: GPL-2.0
/*
 * The arithmetic of drive time; see model_time.h for the idea.
 *
 * Every function is pure in (model, clock, command, now): nothing here reads
 * a clock, allocates or locks, so user space can test it to the nanosecond.
 * All products are kept below 2^64 by mul_u64_u64_div_u64().
 */
#include <linux/kernel.h>
#include <linux/math64.h>

#include "model_time.h"

#define NS_PER_S	1000000000ULL
#define SQRT_ONE	65536ULL	/* fixed point of the seek curve */

bool drive_model_is_disk(const struct drive_model *m)
{
	return m->rev_ns || m->seek_max_ns;
}

/* True if no command ever takes time: the model then needs no timer. */
bool drive_model_is_instant(const struct drive_model *m)
{
	return !m->read_lat_ns && !m->write_lat_ns && !m->flush_lat_ns &&
	       !m->discard_lat_ns && !m->read_bw && !m->write_bw &&
	       !m->flush_bw && !m->slc_bytes && !drive_model_is_disk(m);
}

static u64 transfer_ns(u64 bytes, u64 bw)
{
	return bw ? mul_u64_u64_div_u64(bytes, NS_PER_S, bw) : 0;
}

static u64 bandwidth(const struct drive_model *m, enum drive_kind kind)
{
	return kind == DRIVE_READ ? m->read_bw : m->write_bw;
}

static u64 latency(const struct drive_model *m, enum drive_kind kind)
{
	switch (kind) {
	case DRIVE_READ:
		return m->read_lat_ns;
	case DRIVE_WRITE:
		return m->write_lat_ns;
	case DRIVE_FLUSH:
		return m->flush_lat_ns;
	default:
		return m->discard_lat_ns;
	}
}

/* ---- flash: SLC buffer and indirection unit ---- */

/* The SLC buffer folds into QLC in the background while the bus is idle. */
static void slc_drain(const struct drive_model *m, struct drive_clock *c,
		      u64 now)
{
	u64 room, idle;

	if (!m->slc_bytes || now <= c->slc_ns)
		return;
	idle = now - c->slc_ns;
	c->slc_ns = now;
	if (!c->slc_fill)
		return;
	room = mul_u64_u64_div_u64(idle, m->fold_bw, NS_PER_S);
	room = min(room, c->slc_fill);
	c->slc_fill -= room;
	c->folded += room;
	c->programmed += room;
}

/*
 * Time on the bus to program @bytes from @start on. What exceeds the SLC
 * buffer has to wait until as much has been folded out of it.
 */
static u64 program_ns(const struct drive_model *m, struct drive_clock *c,
		      u64 bytes, u64 start)
{
	u64 ns = transfer_ns(bytes, m->write_bw);
	u64 over;

	c->programmed += bytes;
	if (!m->slc_bytes)
		return ns;
	slc_drain(m, c, start);
	c->slc_fill += bytes;
	if (c->slc_fill > m->slc_bytes) {
		over = c->slc_fill - m->slc_bytes;
		c->slc_fill = m->slc_bytes;
		c->folded += over;
		c->programmed += over;
		ns = max(ns, transfer_ns(over, m->fold_bw));
	}
	c->slc_ns = max(c->slc_ns, start + ns);
	return ns;
}

/* Does a write at @start go on where a recent one ended? Remember its end. */
static bool join_stream(struct drive_clock *c, u64 start, u64 end)
{
	unsigned int i;

	for (i = 0; i < DRIVE_STREAMS; i++) {
		if (start && c->stream_end[i] == start) {
			c->stream_end[i] = end;
			c->stream_open |= 1U << i;
			return true;
		}
	}
	i = c->stream_next++ % DRIVE_STREAMS;
	c->stream_end[i] = end;
	c->stream_open |= 1U << i;
	return false;
}

/*
 * A drive without power-loss protection programs what it has gathered when it
 * is told to flush; a stream that stands within a unit then has that unit
 * read and programmed once more. Counted only: the time above is that of a
 * drive which keeps its buffer.
 */
static void count_split(const struct drive_model *m, struct drive_clock *c)
{
	unsigned int i;

	for (i = 0; i < DRIVE_STREAMS && m->iu_bytes; i++)
		if (c->stream_open & 1U << i &&
		    c->stream_end[i] & (m->iu_bytes - 1))
			c->split++;
	c->stream_open = 0;
}

/*
 * Bus time of a write. A drive that maps in units of @iu_bytes programs whole
 * units, and reads the rest of one it gets only part of. A sequential stream
 * is gathered in the drive's buffer, so its units count once.
 */
static u64 write_bus_ns(const struct drive_model *m, struct drive_clock *c,
			const struct drive_cmd *cmd, u64 start)
{
	u64 end = cmd->start + cmd->bytes;
	u64 first, last, units, parts = 0;
	bool joins;

	c->host_bytes += cmd->bytes;
	if (!m->iu_bytes)
		return program_ns(m, c, cmd->bytes, start);

	joins = join_stream(c, cmd->start, end);
	first = div64_u64(cmd->start, m->iu_bytes);
	last = div64_u64(end - 1, m->iu_bytes);
	units = last - first + 1;
	if (cmd->start != first * m->iu_bytes) {
		if (joins)
			units--;	/* counted when the stream opened it */
		else
			parts++;
	}
	if (!joins && end != (last + 1) * m->iu_bytes && !(parts && first == last))
		parts++;
	c->rmw += parts;
	/* the host's bytes cross the bus even if their unit is open already */
	return max(program_ns(m, c, units * m->iu_bytes, start),
		   transfer_ns(cmd->bytes, m->write_bw)) +
	       parts * (m->read_lat_ns + transfer_ns(m->iu_bytes, m->read_bw));
}

/* ---- flash: channels and bus ---- */

static u64 *earliest_channel(const struct drive_model *m,
			     struct drive_clock *c, u64 now)
{
	u64 *best = &c->free_ns[0];
	unsigned int i;

	for (i = 1; i < m->channels && *best > now; i++)
		if (c->free_ns[i] < *best)
			best = &c->free_ns[i];
	return best;
}

static u64 time_flash(const struct drive_model *m, struct drive_clock *c,
		      const struct drive_cmd *cmd, u64 now)
{
	u64 *channel = earliest_channel(m, c, now);
	u64 start = max3(now, *channel, c->bus_ns);
	u64 bus = 0;

	if (cmd->kind == DRIVE_READ)
		bus = transfer_ns(cmd->bytes, m->read_bw);
	else if (cmd->kind == DRIVE_WRITE)
		bus = write_bus_ns(m, c, cmd, start);
	else if (cmd->kind == DRIVE_FLUSH)
		bus = transfer_ns(cmd->bytes, m->flush_bw);
	if (cmd->kind == DRIVE_FLUSH)
		count_split(m, c);

	if (bus)
		c->bus_ns = start + bus;
	*channel = start + bus + latency(m, cmd->kind);
	return *channel;
}

/* ---- disk: one head over a turning platter ---- */

static u64 track_bytes(const struct drive_model *m)
{
	u64 bytes = m->track_bytes;

	if (!bytes)
		bytes = mul_u64_u64_div_u64(m->rev_ns, m->read_bw, NS_PER_S);
	return max(bytes, 512ULL);
}

/* floor(sqrt(x)) for x up to 2^32 in fixed point: sixteen steps, no tables */
static u64 square_root(u64 x)
{
	u64 root = 0, bit;

	for (bit = 1ULL << 31; bit; bit >>= 1)
		if ((root | bit) * (root | bit) <= x)
			root |= bit;
	return root;
}

/**
 * drive_seek_ns() - time to move the head
 * @m: the disk
 * @from: byte the head stands at
 * @to: byte it is wanted at
 *
 * seek_min + (seek_max - seek_min) * sqrt(distance / stroke): accelerating
 * half the way and braking the other half takes the root of the distance.
 *
 * Return: nanoseconds; zero within one track.
 */
u64 drive_seek_ns(const struct drive_model *m, u64 from, u64 to)
{
	u64 distance = from > to ? from - to : to - from;
	u64 stroke = max(m->stroke_bytes, 1ULL);
	u64 track = track_bytes(m);
	u64 share;

	if (div64_u64(from, track) == div64_u64(to, track))
		return 0;
	if (m->seek_max_ns <= m->seek_min_ns)
		return m->seek_min_ns;
	distance = min(distance, stroke);
	share = mul_u64_u64_div_u64(distance, SQRT_ONE * SQRT_ONE, stroke);
	return m->seek_min_ns + mul_u64_u64_div_u64(square_root(share),
				m->seek_max_ns - m->seek_min_ns, SQRT_ONE);
}

/* Time until byte @to passes under the head if it arrives at its track at @t */
static u64 rotation_ns(const struct drive_model *m, u64 to, u64 t)
{
	u64 track = track_bytes(m);
	u64 want, have;

	if (!m->rev_ns)
		return 0;
	want = mul_u64_u64_div_u64(to - div64_u64(to, track) * track,
				   m->rev_ns, track);
	have = t - div64_u64(t, m->rev_ns) * m->rev_ns;
	return want >= have ? want - have : want + m->rev_ns - have;
}

/* Reads after reads and writes after writes go on without moving the head. */
static bool streams(const struct drive_clock *c, const struct drive_cmd *cmd)
{
	return c->media_ns && c->head == cmd->start &&
	       c->head_kind == cmd->kind;
}

/**
 * drive_position_ns() - seek and rotation a command would cost now
 * @m: the disk
 * @c: its state, unchanged
 * @cmd: the command
 * @now: when it would start
 *
 * Return: nanoseconds; zero if it continues the stream under the head.
 */
u64 drive_position_ns(const struct drive_model *m, const struct drive_clock *c,
		      const struct drive_cmd *cmd, u64 now)
{
	u64 seek;

	if (streams(c, cmd))
		return 0;
	seek = drive_seek_ns(m, c->head, cmd->start);
	return seek + rotation_ns(m, cmd->start, now + seek);
}

/*
 * A stream is limited by the medium alone: while the host thinks, the disk
 * reads ahead (or, writing, has room in its buffer) up to ahead_bytes.
 */
static u64 time_stream(const struct drive_model *m, struct drive_clock *c,
		       const struct drive_cmd *cmd, u64 now)
{
	u64 bw = bandwidth(m, cmd->kind);
	u64 ahead = transfer_ns(m->ahead_bytes, bw);
	u64 from = max(c->media_ns, now > ahead ? now - ahead : 0);

	c->media_ns = from + transfer_ns(cmd->bytes, bw);
	return max(c->media_ns, now + latency(m, cmd->kind));
}

static u64 time_disk(const struct drive_model *m, struct drive_clock *c,
		     const struct drive_cmd *cmd, u64 now)
{
	u64 start = max(now, c->free_ns[0]);
	u64 position, done;

	if (cmd->kind == DRIVE_FLUSH)
		return c->free_ns[0] = start + m->flush_lat_ns +
				       transfer_ns(cmd->bytes, m->flush_bw);
	if (cmd->kind != DRIVE_READ && cmd->kind != DRIVE_WRITE)
		return c->free_ns[0] = start + latency(m, cmd->kind);

	if (cmd->kind == DRIVE_WRITE) {
		c->host_bytes += cmd->bytes;
		c->programmed += cmd->bytes;
	}
	if (streams(c, cmd)) {
		done = time_stream(m, c, cmd, now);
	} else {
		start += latency(m, cmd->kind);
		position = drive_position_ns(m, c, cmd, start);
		done = start + position +
		       transfer_ns(cmd->bytes, bandwidth(m, cmd->kind));
		c->media_ns = done;
		c->seeks++;
	}
	c->head = cmd->start + cmd->bytes;
	c->head_kind = cmd->kind;
	c->free_ns[0] = max(c->free_ns[0], done);
	return done;
}

/**
 * drive_time() - take one command, say when it is done
 * @m: the drive
 * @c: its state, moved on
 * @cmd: the command
 * @now: when it arrived; never less than in an earlier call
 *
 * Return: the time of completion, at least @now.
 */
u64 drive_time(const struct drive_model *m, struct drive_clock *c,
	       const struct drive_cmd *cmd, u64 now)
{
	if (drive_model_is_disk(m))
		return time_disk(m, c, cmd, now);
	return time_flash(m, c, cmd, now);
}

/**
 * drive_time_idle() - let background work catch up, before a status report
 * @m: the drive
 * @c: its state, moved on
 * @now: the time
 */
void drive_time_idle(const struct drive_model *m, struct drive_clock *c,
		     u64 now)
{
	slc_drain(m, c, now);
}
