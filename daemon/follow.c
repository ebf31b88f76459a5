// SPDX-License-Identifier: GPL-2.0-or-later
/* Files sensed and their deaths put to use; see follow.h. */
#include "follow.h"

#include <stdlib.h>
#include <string.h>

#include "act/device.h"
#include "act/invalidate.h"
#include "log.h"
#include "sense/watch.h"

#define LOOK_TICKS	20	/* between looks for new filesystems */
#define AT_ONCE		64

struct follow {
	char name[CONFIG_NAME_BYTES];
	struct watch *watch;
	struct invalidate *invalidate;	/* NULL: off */
	struct port *port;
	uint64_t ticks;
};

static void on_dead(void *ctx, const char *path, uint32_t dev, const struct extent *extents, uint32_t nr)
{
	struct follow *f = ctx;
	struct dead_range range[AT_ONCE];
	uint32_t n = 0;

	for (uint32_t i = 0; f->invalidate && i < nr; i++) {
		range[n++] = (struct dead_range){
			.block = extents[i].block, .nr = extents[i].nr, .physical = extents[i].physical,
		};
		if (n == AT_ONCE || i + 1 == nr) {
			invalidate_add(f->invalidate, path, dev, range, n);
			n = 0;
		}
	}
}

static void on_busy(void *ctx, uint32_t thread, bool yes)
{
	device_ignore(((struct follow *)ctx)->port, thread, yes);
}

static void on_compaction(void *ctx, const char *line)
{
	log_line(LOG_LEVEL_DEBUG, ((struct follow *)ctx)->name, "compaction: %s", line);
}

static void on_filesystem(void *ctx, const char *path)
{
	log_line(LOG_LEVEL_NOTICE, ((struct follow *)ctx)->name, "the files of %s are followed", path);
}

struct follow *follow_open(const char *name, const struct settings *settings, struct port *port,
			   unsigned int major, unsigned int minor)
{
	struct follow *f = calloc(1, sizeof(*f));
	const struct watch_tell tell = {
		.busy = settings->ignore_compactions ? on_busy : NULL, .dead = on_dead, .compaction = on_compaction, .filesystem = on_filesystem, .ctx = f,
	};
	const struct invalidate_config c = {
		.ban = settings->ban_dead, .trim = settings->trim_dead, .wait_ms = settings->dead_wait_ms,
	};
	char why[200] = "out of memory";

	if (!f)
		return NULL;
	f->port = port;
	snprintf(f->name, sizeof(f->name), "%s", name);
	if (watch_open(major, minor, &tell, &f->watch, why, sizeof(why))) {
		log_line(LOG_LEVEL_WARNING, name, "files are not followed: %s", why);
		free(f);
		return NULL;
	}
	if ((c.ban || c.trim) && invalidate_open(port, &c, &f->invalidate))
		log_line(LOG_LEVEL_WARNING, name, "dead files are not trimmed: out of memory");
	return f;
}

void follow_close(struct follow *f)
{
	if (!f)
		return;
	if (f->invalidate)
		invalidate_close(f->invalidate);
	watch_close(f->watch);
	free(f);
}

void follow_tick(struct follow *f)
{
	watch_tick(f->watch, f->ticks++ % LOOK_TICKS == 0);
	if (f->invalidate)
		invalidate_tick(f->invalidate);
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
	number(out, "events", c->files.events);
	number(out, "events_lost", c->lost);
	number(out, "created", c->files.created);
	number(out, "closed", c->files.closed);
	number(out, "died", c->files.died);
	number(out, "flushes", c->files.flushes);
	number(out, "compactions", c->files.compactions);
	number(out, "jobs_without_death", c->files.jobs - c->files.compactions);
	number(out, "files_forgotten", c->files.forgotten_files);
	number(out, "jobs_forgotten", c->files.forgotten_jobs);
	number(out, "jobs_cut", c->files.cut_jobs);
	number(out, "mapped", c->mapped);
	number(out, "unmapped", c->unmapped);
	number(out, "extents_shared", c->extents.shared);
	number(out, "extents_unaligned", c->extents.unaligned);
	number(out, "extents_odd", c->extents.odd);
	number(out, "dead_blocks", c->dead_blocks);
	if (f->invalidate)
		report_dead(f->invalidate, out);
}
