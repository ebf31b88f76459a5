// SPDX-License-Identifier: GPL-2.0
/*
 * dmsetup status and dmsetup table. Status is key=value words, so that scripts
 * need not count columns and new ones break nothing.
 */
#include "drive.h"

/**
 * struct snapshot - what status prints, copied under the locks
 * @counters: of the drive
 * @clock: of the drive
 * @cached: bytes that a power cut could take away
 * @time_ns: when
 */
struct snapshot {
	struct drive_counters counters;
	struct drive_clock clock;
	u64 cached;
	u64 time_ns;
};

static void take_snapshot(struct drive *d, struct snapshot *s)
{
	drive_power_settle(d->power);
	spin_lock(&d->media_lock);
	s->cached = drive_cache_settle(d);
	spin_lock_irq(&d->queue_lock);
	s->time_ns = ktime_get_ns();
	drive_time_idle(&d->config.model, &d->clock, s->time_ns);
	s->counters = d->counters;
	s->clock = d->clock;
	spin_unlock_irq(&d->queue_lock);
	spin_unlock(&d->media_lock);
}

static const char *state_of(const struct drive *d)
{
	if (drive_is_off(d))
		return "off";
	return d->dead ? "dead" : "on";
}

static u64 erases(const struct drive *d, u64 programmed)
{
	return d->config.erase_bytes ?
	       div64_u64(programmed, d->config.erase_bytes) : 0;
}

static unsigned int emit_io(const struct drive_counters *c, char *result,
			    unsigned int maxlen)
{
	unsigned int sz = 0;

	DMEMIT(" reads=%llu read_bytes=%llu writes=%llu write_bytes=%llu",
	       c->count[DRIVE_READ], c->bytes[DRIVE_READ],
	       c->count[DRIVE_WRITE], c->bytes[DRIVE_WRITE]);
	DMEMIT(" flushes=%llu fuas=%llu discards=%llu discard_bytes=%llu",
	       c->count[DRIVE_FLUSH], c->fua,
	       c->count[DRIVE_DISCARD], c->bytes[DRIVE_DISCARD]);
	DMEMIT(" zeroes=%llu zero_bytes=%llu errors=%llu struck=%llu busy_ns=%llu late_ns=%llu",
	       c->count[DRIVE_ZEROES], c->bytes[DRIVE_ZEROES], c->errors,
	       c->struck, c->busy_ns, c->late_ns);
	return sz;
}

static unsigned int emit_info(struct drive *d, const struct snapshot *s,
			      char *result, unsigned int maxlen)
{
	unsigned int sz = 0;

	DMEMIT("state=%s", state_of(d));
	sz += emit_io(&s->counters, result + sz, maxlen - sz);
	DMEMIT(" seeks=%llu programmed=%llu folded=%llu rmw=%llu split=%llu erases=%llu slc_fill=%llu",
	       s->clock.seeks, s->clock.programmed, s->clock.folded,
	       s->clock.rmw, s->clock.split, erases(d, s->clock.programmed), s->clock.slc_fill);
	DMEMIT(" cached=%llu destaged=%llu cuts=%u lost=%llu torn=%llu survived=%llu",
	       s->cached, s->counters.destaged, d->power->cuts,
	       s->counters.lost, s->counters.torn, s->counters.survived);
	DMEMIT(" held=%u time_ns=%llu", READ_ONCE(d->nr_held), s->time_ns);
	return sz;
}

static unsigned int emit_table(struct drive *d, const struct drive_config *c,
			       char *result, unsigned int maxlen)
{
	unsigned int sz = 0;

	DMEMIT("%s %s", d->name, c->preset);
	sz += drive_config_emit(c, drive_preset(c->preset), result + sz,
				maxlen - sz);
	return sz;
}

/* Not inlined: the clock in the snapshot is most of a frame. */
static noinline_for_stack void emit_status(struct drive *d, char *result, unsigned int maxlen)
{
	struct snapshot s;

	take_snapshot(d, &s);
	emit_info(d, &s, result, maxlen);
}

void drive_status(struct dm_target *ti, status_type_t type,
		  unsigned int flags, char *result, unsigned int maxlen)
{
	struct drive_target *t = ti->private;
	unsigned int sz = 0;

	switch (type) {
	case STATUSTYPE_INFO:
		emit_status(t->drive, result, maxlen);
		break;
	case STATUSTYPE_TABLE:
		emit_table(t->drive, &t->config, result, maxlen);
		break;
	case STATUSTYPE_IMA:
		DMEMIT_TARGET_NAME_VERSION(ti->type);
		DMEMIT(",drive_name=%s;", t->drive->name);
		break;
	}
}
