// SPDX-License-Identifier: GPL-2.0-or-later
/* Files sensed and their deaths put to use; see follow.h. */
#include "follow.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "act/device.h"
#include "act/invalidate.h"
#include "act/streams.h"
#include "descent.h"
#include "log.h"
#include "sense/watch.h"

#define LOOK_TICKS	20	/* between looks for new filesystems */
#define AT_ONCE		64
#define FAST_LOGS	16u	/* of all ranges that the kernel keeps, a quarter at most */

_Static_assert((1u << CONFIG_PROFILES) - 1 == FILE_PROFILES, "settings name them by the same bits");

struct follow {
	char name[CONFIG_NAME_BYTES];
	struct watch *watch;
	struct invalidate *invalidate;	/* NULL: off */
	struct port *port;
	struct engine *engine;		/* during a tick */
	bool inherits, ignores;		/* switches */
	double tail_share;		/* 0: none is kept */
	double cold_share;		/* negative: no stream is taken for cold */
	double bottom_share;		/* the same of those to the bottom level */
	bool logs;
	bool fast_logs;
	struct streams streams, fast;	/* cold ones; logs */
	struct tails marked;		/* the kernel's marks of dead files, or what a write has left of them */
	uint64_t warm_streams, bottom_streams;
	uint64_t ticks;
};

static struct stream_key key_of(const struct file_id *id)
{
	return (struct stream_key){ .inode = id->inode, .of = (uint64_t)id->dev << 32 | id->generation };
}

/* Part of what compactions are ignored for: what they write is no more asked for than what they read. */
static void written_once(struct follow *f, const struct extent *extents, uint32_t nr, bool yes)
{
	for (uint32_t i = 0; i < nr; i++)
		engine_once(f->engine, extents[i].block, extents[i].nr, yes && f->ignores);
}

/* Trims are the filesystem's, which knows what is free; marks and heat are ours: they are left to others that may lie there. */
static void on_dead(void *ctx, const char *path, const struct file_id *id, const struct extent *extents, uint32_t nr, bool sure)
{
	const struct stream_key key = key_of(id);
	struct follow *f = ctx;
	struct dead_range range[AT_ONCE];
	uint32_t n = 0;

	streams_end(&f->streams, &key);
	streams_end(&f->fast, &key);
	written_once(f, extents, nr, false);
	for (uint32_t i = 0; i < nr; i++) {
		engine_unpin(f->engine, extents[i].block, extents[i].nr);
		engine_placed(f->engine, extents[i].block, extents[i].nr, false);
		if (!sure)
			continue;
		engine_dead(f->engine, extents[i].block, extents[i].nr, true);
		engine_forget(f->engine, extents[i].block, extents[i].nr);
	}
	for (uint32_t i = 0; f->invalidate && i < nr; i++) {
		/* All is trimmed; the kernel's marks are few, and are others' as well. */
		range[n++] = (struct dead_range){
			.block = extents[i].block, .nr = extents[i].nr, .physical = extents[i].physical,
			.unsure = !sure, .unmarked = i >= EXTENTS_FIRST,
		};
		if (n == AT_ONCE || i + 1 == nr) {
			invalidate_add(f->invalidate, path, id->dev, range, n);
			n = 0;
		}
	}
}

static void on_left(void *ctx, const struct file_id *id)
{
	const struct stream_key key = key_of(id);
	struct follow *f = ctx;

	streams_end(&f->streams, &key);
	streams_end(&f->fast, &key);
}

static void on_busy(void *ctx, uint32_t thread, bool yes)
{
	struct follow *f = ctx;

	if (f->ignores || !yes)
		device_ignore(f->port, thread, yes);
}

/*
 * The room of a file that lives.  What it wrote there lifts the mark of a dead one, but not if that was set only after
 * the write: deaths are heard of a tick later.  The engine is told of that write later still, and takes it for one that did.
 */
static void in_use(struct follow *f, const struct extent *extents, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (tails_meet(&f->marked, extents[i].block, extents[i].nr))
			device_range(f->port, TERRACE_RANGE_CLEAR, extents[i].block, extents[i].nr);
		tails_cut(&f->marked, extents[i].block, extents[i].nr);
		engine_dead(f->engine, extents[i].block, extents[i].nr, false);
		engine_placed(f->engine, extents[i].block, extents[i].nr, true);
	}
}

/*
 * A log that grows, or has been closed: until it is dead it is written to the fast tier, be it megabytes without a sync, and
 * stays there.  One in many pieces is written in the last of them.
 */
static void keep_fast(struct follow *f, const struct file_id *id, const struct extent *extents, uint32_t nr)
{
	const uint32_t from = nr > STREAM_RANGES ? nr - STREAM_RANGES : 0;
	struct stream_range range[STREAM_RANGES];
	const struct stream_key key = key_of(id);

	for (uint32_t i = from; i < nr; i++)
		range[i - from] = (struct stream_range){ .block = extents[i].block, .nr = extents[i].nr };
	if (f->fast_logs)
		streams_hint(&f->fast, &key, range, nr - from);
}

static void on_hinted(void *ctx, const struct stream_range *range, bool yes)
{
	engine_hinted(((struct follow *)ctx)->engine, range->block, range->nr, yes);
}

static void on_log(void *ctx, const struct file_id *id, const struct extent *extents, uint32_t nr)
{
	struct follow *f = ctx;

	in_use(f, extents, nr);
	written_once(f, extents, nr, true);
	keep_fast(f, id, extents, nr);
}

/* Extents may go beyond the end of the file: what was allocated ahead. */
static void on_placed(void *ctx, const struct file *file, const struct extent *extents, uint32_t nr)
{
	struct follow *f = ctx;
	uint64_t from = tails_begin(file->size, f->tail_share), end = (file->size + 4095) / 4096 * 4096;
	const struct stream_key key = key_of(&file->id);

	streams_end(&f->streams, &key);
	in_use(f, extents, nr);
	/* One that was there before us has been written; of any other name it may be written in place from now on. */
	written_once(f, extents, nr, file->thread && (file->kind == FILE_TABLE || file->kind == FILE_LOG));
	if (file->kind == FILE_LOG)
		keep_fast(f, &file->id, extents, nr);
	/* What has no table's name has no index at its end; an input from before our time has none, and will not be there for long. */
	if (f->tail_share <= 0 || file->pins == FILE_PINS_NOTHING)
		return;
	if (file->pins == FILE_PINS_ALL)
		from = 0;
	for (uint32_t i = 0; i < nr; i++) {
		uint64_t lo = extents[i].offset > from ? extents[i].offset : from;
		uint64_t hi = extents[i].offset + extents[i].nr * 4096;

		hi = hi < end ? hi : end;
		if (lo < hi)
			engine_pin(f->engine, extents[i].block + (lo - extents[i].offset) / 4096, (hi - lo) / 4096);
	}
}

static void on_growing(void *ctx, const struct file_id *id, const struct bequest *b, bool bottom,
		       const struct extent *extents, uint32_t nr)
{
	struct follow *f = ctx;
	struct stream_range range[STREAM_RANGES + 1];
	const struct stream_key key = key_of(id);
	uint64_t bytes = 0;
	double hot = 1;

	in_use(f, extents, nr);
	written_once(f, extents, nr, true);
	for (uint32_t i = 0; i < nr; i++)
		bytes += extents[i].nr * 4096;
	if (f->cold_share >= 0 && engine_crowded(f->engine))
		hot = descent_hot_share(f->engine, b, bytes);
	/* While there is room, all may be fast; inputs that are not known may be hot. */
	if (!inherit_is_cold(hot, f->cold_share, f->bottom_share, bottom)) {
		f->warm_streams++;
		return;
	}
	f->bottom_streams += hot > f->cold_share;
	nr = nr < STREAM_RANGES + 1 ? nr : STREAM_RANGES + 1;
	for (uint32_t i = 0; i < nr; i++)
		range[i] = (struct stream_range){ .block = extents[i].block, .nr = extents[i].nr };
	streams_hint(&f->streams, &key, range, nr);
}

static void on_bequest(void *ctx, const struct bequest *b)
{
	struct follow *f = ctx;

	if (f->inherits)
		descent_tell(f->engine, b);
}

static void on_compaction(void *ctx, const char *line)
{
	log_line(LOG_LEVEL_DEBUG, ((struct follow *)ctx)->name, "compaction: %s", line);
}

static void on_logged(void *ctx, const char *line)
{
	log_line(LOG_LEVEL_DEBUG, ((struct follow *)ctx)->name, "by its own log: %s", line);
}

/* Its blocks are others' by now. */
static void on_moved(void *ctx, const struct extent *extents, uint32_t nr)
{
	struct follow *f = ctx;

	if (!nr) {
		streams_end_all(&f->streams);
		streams_end_all(&f->fast);
		engine_once(f->engine, 0, UINT64_MAX, false);
		if (f->invalidate)
			invalidate_unmark(f->invalidate);
	}
	written_once(f, extents, nr, false);
	for (uint32_t i = 0; i < nr; i++)
		engine_unpin(f->engine, extents[i].block, extents[i].nr);
}

static void on_refused(void *ctx, const char *path, const char *why)
{
	log_line(LOG_LEVEL_WARNING, ((struct follow *)ctx)->name, "the files of %s are not followed: %s", path, why);
}

static void on_filesystem(void *ctx, const char *path)
{
	log_line(LOG_LEVEL_NOTICE, ((struct follow *)ctx)->name, "the files of %s are followed", path);
}

static void on_banned(void *ctx, uint64_t block, uint64_t nr, bool yes)
{
	struct follow *f = ctx;

	tails_cut(&f->marked, block, nr);
	if (yes)
		tails_add(&f->marked, block, nr, UINT64_MAX);
	engine_ban(f->engine, block, nr, yes);
}

static struct invalidate_config invalidate_switches(struct follow *f, const struct settings *settings)
{
	return (struct invalidate_config){
		.ban = settings->ban_dead, .trim = settings->trim_dead, .wait_ms = settings->dead_wait_ms,
		.banned = on_banned, .ctx = f,
	};
}

void follow_retune(struct follow *f, const struct settings *settings)
{
	const struct invalidate_config c = invalidate_switches(f, settings);

	watch_profiles(f->watch, settings->profiles);
	f->inherits = settings->inherit_heat;
	f->ignores = settings->ignore_compactions;
	watch_mark(f->watch, f->ignores);
	f->cold_share = settings->cold_streams ? settings->cold_share : -1;
	f->bottom_share = settings->bottom_share;
	f->logs = settings->database_logs;
	if (f->cold_share < 0)
		streams_end_all(&f->streams);
	f->fast_logs = settings->fast_logs;
	if (!f->fast_logs)
		streams_end_all(&f->fast);
	f->tail_share = settings->pin_tails ? settings->tail_share : 0;
	if (f->invalidate)
		invalidate_retune(f->invalidate, &c);
}

struct follow *follow_open(const char *name, const struct settings *settings, struct port *port,
			   unsigned int major, unsigned int minor)
{
	struct follow *f = calloc(1, sizeof(*f));
	const struct watch_tell tell = {
		.busy = on_busy, .dead = on_dead, .placed = on_placed, .left = on_left, .growing = on_growing, .log = on_log,
		.bequest = on_bequest, .compaction = on_compaction,
		.logged = on_logged, .filesystem = on_filesystem, .refused = on_refused, .moved = on_moved, .ctx = f,
	};
	struct invalidate_config c;
	char why[200] = "out of memory";

	if (!f)
		return NULL;
	f->port = port;
	snprintf(f->name, sizeof(f->name), "%s", name);
	if (watch_open(major, minor, port->sense ? port->sense->ignored : NULL, settings->profiles, &tell, &f->watch, why, sizeof(why))) {
		log_line(LOG_LEVEL_WARNING, name, "files are not followed: %s", why);
		free(f);
		return NULL;
	}
	c = invalidate_switches(f, settings);
	f->streams.fd = device_marker(port);	/* none: nothing is hinted */
	f->streams.what = TERRACE_RANGE_HINT_COLD;
	f->fast.fd = device_marker(port);	/* another's: what one takes back may be the other's by now */
	f->fast.what = TERRACE_RANGE_HINT_FAST;
	f->fast.most = FAST_LOGS;
	f->fast.told = on_hinted;
	f->fast.ctx = f;
	if (invalidate_open(port, &c, &f->invalidate))
		log_line(LOG_LEVEL_WARNING, name, "dead files are not trimmed: out of memory");
	follow_retune(f, settings);
	return f;
}

void follow_close(struct follow *f)
{
	if (!f)
		return;
	if (f->invalidate)
		invalidate_close(f->invalidate);
	watch_close(f->watch);
	if (f->streams.fd >= 0)
		close(f->streams.fd);
	if (f->fast.fd >= 0)
		close(f->fast.fd);
	free(f);
}

/* What is dead and not trimmed yet is left to the filesystem's own trims. */
void follow_leave(struct follow *f, struct engine *e)
{
	f->engine = e;
	streams_end_all(&f->streams);
	streams_end_all(&f->fast);
	if (f->invalidate)
		invalidate_unmark(f->invalidate);
	/* Some may have stayed: the module has no room to split a range, to clear a part of it. */
	device_range(f->port, TERRACE_RANGE_CLEAR, 0, e->shape.blocks);
	engine_hinted(e, 0, UINT64_MAX, false);
	engine_unpin(e, 0, UINT64_MAX);
	engine_once(e, 0, UINT64_MAX, false);
	engine_dead(e, 0, UINT64_MAX, false);
	follow_close(f);
}

static void hear_files(struct follow *f, struct engine *e, bool look, bool logs)
{
	f->engine = e;
	watch_tick(f->watch, look, logs);
	if (f->invalidate)
		invalidate_tick(f->invalidate);
}

void follow_tick(struct follow *f, struct engine *e)
{
	if (!f->ignores)
		engine_once(e, 0, UINT64_MAX, false);
	/* Whoever waits for a database to be understood, which lies elsewhere, is told once. */
	if (f->ticks == LOOK_TICKS && !watch_counts(f->watch)->filesystems)
		log_line(LOG_LEVEL_NOTICE, f->name, "no filesystem of this volume is mounted: no files are followed until one is");
	hear_files(f, e, f->ticks++ % LOOK_TICKS == 0, f->logs);
}

int follow_fd(const struct follow *f)
{
	return watch_fd(f->watch);
}

void follow_hear(struct follow *f, struct engine *e)
{
	hear_files(f, e, false, f->logs);
}

static void number(struct json_object *o, const char *name, uint64_t value)
{
	json_object_object_add(o, name, json_object_new_uint64(value));
}

static void report_dead(struct invalidate *i, struct json_object *out)
{
	struct json_object *o = json_object_new_object();
	struct invalidate_counts c;

	invalidate_counts(i, &c);
	number(o, "ranges", c.queued);
	number(o, "bytes", c.asked_bytes);
	number(o, "trimmed_bytes", c.trimmed_bytes);
	number(o, "trimmed_beside_bytes", c.beside_bytes);
	number(o, "trims", c.trims);
	number(o, "batches", c.batches);
	number(o, "tried_again", c.again);
	number(o, "given_up", c.left);
	number(o, "queue_was_full", c.full);
	number(o, "not_banned", c.unbanned);
	number(o, "trim_errors", c.errors);
	json_object_object_add(o, "last_error", json_object_new_int(c.last_error));
	json_object_object_add(out, "dead", o);
}

void follow_report(struct follow *f, struct json_object *out)
{
	const struct watch_counts *c = watch_counts(f->watch);

	number(out, "filesystems", c->filesystems);
	number(out, "devices_below_changed", c->restacked);
	number(out, "events", c->files.events);
	number(out, "events_lost", c->lost);
	number(out, "created", c->files.created);
	number(out, "closed", c->files.closed);
	number(out, "died", c->files.died);
	number(out, "flushes", c->files.flushes);
	number(out, "compactions", c->files.compactions);
	number(out, "jobs_without_death", c->files.jobs - c->files.compactions);
	number(out, "files_forgotten", c->files.forgotten_files);
	number(out, "places_forgotten", c->places_forgotten);
	number(out, "writers_forgotten", c->files.forgotten_writers);
	number(out, "jobs_forgotten", c->files.forgotten_jobs);
	number(out, "jobs_cut", c->files.cut_jobs);
	number(out, "mapped", c->mapped);
	number(out, "unmapped", c->unmapped);
	number(out, "not_asked", c->not_asked);
	number(out, "found", c->found);
	number(out, "found_left", c->found_left + c->walks.left);
	number(out, "walks", c->walks.walks);
	number(out, "looked_again", c->looked_again);
	number(out, "died_unheard", c->died_unheard);
	number(out, "extents_shared", c->extents.shared);
	number(out, "extents_unaligned", c->extents.unaligned);
	number(out, "extents_odd", c->extents.odd);
	number(out, "extents_cut", c->extents.cut);
	number(out, "files_realtime", c->extents.realtime);
	number(out, "places_changed", c->places_changed);
	number(out, "dead_blocks", c->dead_blocks);
	number(out, "cold_streams_not_asked", c->growing_lost);
	number(out, "cold_streams_too_late", c->growing_late);
	number(out, "bequests_lost", c->bequests_lost);
	number(out, "cold_streams", f->streams.counts.hinted);
	number(out, "cold_streams_blocks", f->streams.counts.blocks);
	number(out, "cold_streams_not_allocated", f->streams.counts.unplaced);
	number(out, "cold_streams_scattered", f->streams.counts.scattered);
	number(out, "warm_streams", f->warm_streams);
	number(out, "cold_by_level_streams", f->bottom_streams);
	number(out, "fast_logs", f->fast.counts.hinted);
	number(out, "fast_logs_now", f->fast.nr);
	number(out, "fast_logs_blocks", f->fast.counts.blocks);
	number(out, "fast_logs_not_allocated", f->fast.counts.unplaced);
	number(out, "fast_logs_not_marked", f->fast.counts.scattered + f->fast.counts.refused);
	number(out, "fast_logs_not_asked", c->logs_lost);
	number(out, "fast_logs_too_late", c->logs_late);
	number(out, "databases_with_logs", c->logs.databases);
	number(out, "log_events", c->logs.log.events);
	number(out, "log_events_malformed", c->logs.log.malformed);
	number(out, "log_compactions", c->logs.log.compactions);
	number(out, "log_compactions_cut", c->logs.log.cut);
	number(out, "log_rotations", c->logs.rotations);
	number(out, "log_rests_lost", c->logs.lost_rests);
	if (f->invalidate)
		report_dead(f->invalidate, out);
}
